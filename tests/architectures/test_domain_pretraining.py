"""Pre-training on a domain: words are masked whole, which corpora each of the three reads and in
which order, and that they read equally much."""

from __future__ import annotations

import itertools
import math
from typing import Any

import datasets
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.pretrained.bert import BERT
from architectures.pretrained.domain_pretraining import DomainPretraining, MaskedWords
from harness import registry
from harness.data.corpus import Split
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.text_objective import PieceTarget
from harness.running import grid
from harness.saved_models.model import load
from harness.settings import TrainingSettings
from harness.task import fingerprint
from harness.training.model import Model, build, objective_of
from harness.views.base import words_of
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.plain_text import batch, log_shares_by_hand, noise_of
from tests.support.published import TABLES, assert_loads, layers, loaded, outputs, saved
from tests.support.same import assert_same
from tests.support.sessions import carried_out, session

transformers = pytest.importorskip("transformers")

SCRATCH, CONTINUED, GENERAL = (f"domain_pretraining{end}" for end in ("", "_continued", "_general"))
TEXTS = [
    "share prices of banks fell as dealers sold banks and bought shares of bakers",
    "a banker baked bread",
    "unbaked",
    "the dealers and the bankers sold bread to bakers while prices of shares rose and fell and rose",
]
SIZES = {"layers": 2, "hidden": 16, "heads": 4, "dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=48, max_length=128)
    made.fit(TEXTS)
    return made


def model_of(view: Subwords, **settings: Any) -> Model:
    torch.manual_seed(0)
    text = problem("text")
    model = build(DomainPretraining, text, SIZES | settings, view, text.target(DomainPretraining.gives), 100)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    return model


# --- masks ---


def words_in(ids: list[int], view: Subwords) -> list[list[int]]:
    """The places of each word's pieces; what is no piece of a text ends a word."""
    found: list[list[int]] = []
    inside = False
    for place, id in enumerate(ids):
        if id in (view.start, view.separator, view.pad):
            inside = False
        elif inside and view.tokenizer.id_to_token(id).startswith("##"):
            found[-1].append(place)
        else:
            found.append([place])
            inside = True
    return found


def masked_by_hand(pieces: SubwordBatch, view: Subwords, numbers: Tensor) -> Tensor:
    """Words in the order of the numbers of their first pieces, until 15 % of the pieces are
    masked."""
    chosen = torch.zeros_like(pieces.mask)
    for text, ids in enumerate(pieces.ids.tolist()):
        words = words_in(ids, view)
        wanted = max(1, round(0.15 * sum(map(len, words))))
        for word in sorted(words, key=lambda places: numbers[text, places[0]].item()):
            if chosen[text].sum() < wanted:
                chosen[text, word] = True
    return chosen


def read_by_hand(pieces: SubwordBatch, chosen: Tensor, view: Subwords, how: Tensor, others: Tensor) -> Tensor:
    """80 % of the pieces are the mask, 10 % any piece, 10 % as they are."""
    read = pieces.ids.clone()
    for text, place in chosen.nonzero().tolist():
        if how[text, place] < 0.8:
            read[text, place] = view.mask
        elif how[text, place] < 0.9:
            read[text, place] = int(others[text, place] * view.width)
    return read


def test_words_are_masked_whole_until_15_percent_of_the_pieces_are(view):
    pieces = batch(view, *TEXTS)
    assert max(len(word) for ids in pieces.ids.tolist() for word in words_in(ids, view)) > 2
    seen = set()
    for number in range(40):
        chosen = MaskedWords.chosen(pieces, view, noise_of(pieces, 0, number))
        expected = masked_by_hand(pieces, view, noise_of(pieces, 0, number).uniform(pieces.ids.shape[1]))
        assert torch.equal(chosen, expected)
        seen |= {tuple(row) for row in chosen.nonzero().tolist()}
    texts = [(text, place) for text, ids in enumerate(pieces.ids.tolist()) for w in words_in(ids, view) for place in w]
    assert seen == {*texts}, "every word in some pass, and no mark of the beginning or the end"


def test_a_word_is_masked_as_often_whatever_stands_beside_it(view):
    """Spans of several words would mask neighbours together."""
    pieces = batch(view, *[" ".join(["bread"] * 20)] * 1)
    word = words_in(pieces.ids[0].tolist(), view)
    together, times = 0, 600
    for number in range(times):
        chosen = MaskedWords.chosen(pieces, view, noise_of(pieces, 1, number))[0]
        masked = [index for index, places in enumerate(word) if chosen[places].all()]
        assert len(masked) == 3, "15 % of twenty words of equally many pieces"
        together += sum(b - a == 1 for a, b in itertools.pairwise(masked))
    assert together / times == pytest.approx(3 * 2 / 20, abs=0.1)  # 19 of the 190 pairs are neighbours


def log_probabilities(model: Model, states: Tensor) -> Tensor:
    """Those of all pieces by the equations: dense layer, GELU, norm, table, bias."""
    weights = dict(model.head.named_parameters())
    dense = states @ weights["learns.scores.transform.0.weight"].T + weights["learns.scores.transform.0.bias"]
    dense = dense * (1 + torch.erf(dense / math.sqrt(2))) / 2
    centred = dense - dense.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    normed = normed * weights["learns.scores.transform.2.weight"] + weights["learns.scores.transform.2.bias"]
    return (normed @ model.encoder.table.weight.T + weights["learns.scores.bias"]).log_softmax(-1)


def test_the_loss_is_the_surprise_of_the_pieces_of_masked_words(view):
    """In values and gradients, by transformers' BERT and the equations; nothing else is asked."""
    model = model_of(view)
    pieces = batch(view, *TEXTS)
    step = Step({"labelled": Batch({"text": pieces}, None, torch.arange(4).numpy(), 9)}, 0.5, None, 3, 2)
    found = objective_of(model, TrainingSettings()).losses(model, step)
    noise, length = Noise(pieces.ids, pieces.mask, (3, 2)), pieces.ids.shape[1]
    numbers, _, how, others = (noise.uniform(length) for _ in range(4))
    chosen = masked_by_hand(pieces, view, numbers)
    read = read_by_hand(pieces, chosen, view, how, others)
    assert (read != pieces.ids).any() and not torch.equal(read, torch.where(chosen, view.mask, pieces.ids))
    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    names = TABLES | layers(2) | {"pooler.dense": "pooler.0"}
    reference = transformers.BertModel(config)
    states = outputs(reference, names, model.encoder, pieces._replace(ids=read)).last_hidden_state
    logs = log_probabilities(model, states[chosen])
    assert_same(found["loss"], -logs[range(len(logs)), pieces.ids[chosen]].mean(), rtol=1e-4, atol=1e-4)
    assert found.keys() == {"loss"}


def test_the_floor_and_the_unit_are_of_masked_words(view):
    """Systems that are asked single pieces are not ranked beside it."""
    rows = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    floor = MaskedWords.floor(view, rows, rows)
    pieces = batch(view, *TEXTS)
    asked = masked_by_hand(pieces, view, noise_of(pieces).uniform(pieces.ids.shape[1]))
    assert [count for _, count in floor] == asked.sum(1).tolist()
    logs = log_shares_by_hand(view, pieces)
    expected = [logs[ids[where]].sum().item() for ids, where in zip(pieces.ids, asked, strict=True)]
    assert [log for log, _ in floor] == pytest.approx(expected, rel=1e-4)
    assert MaskedWords.unit != MaskedPieces.unit and MaskedWords.packs


# --- the body ---


def test_it_is_bert_and_loads_published_weights(tmp_path):
    config = transformers.BertConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    theirs = transformers.BertModel(config)
    saved(tmp_path, theirs, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"])
    assert_loads(DomainPretraining, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])
    ours, _ = loaded(DomainPretraining, tmp_path)
    assert torch.equal(ours.pooler[0].weight, theirs.pooler.dense.weight)
    parents = registry.entry("architectures", SCRATCH).parents
    assert DomainPretraining.default_parents(parents, {"pretrained": "folder"}) == {}
    assert DomainPretraining.default_parents(parents, {"pretrained": ""}) == parents


def test_sizes_are_the_hyperparameters(view):
    made = DomainPretraining(view.width, view, layers=3, hidden=12, heads=3, dropout=0.3)
    assert (len(made.body.layers), made.size, made.body.layers[0].attention.heads, made.dropout.p) == (3, 12, 3, 0.3)
    assert isinstance(made, BERT) and made.learns is MaskedWords and made.segments.num_embeddings == 2
    read = DomainPretraining.reads("text", {"vocabulary": 70, "max_length": 20, "stride": 5, "pieces_per_word": 0.5})
    assert (read.size, read.max_length, read.stride) == (70, 20, 5)


# --- what each of the three reads ---


@pytest.mark.parametrize(("id", "share"), [(SCRATCH, 1.0), (CONTINUED, 0.5), (GENERAL, 1.0)])
def test_a_pass_reads_as_many_pieces_as_a_corpus_has_words_and_of_two_corpora_half(view, id, share):
    texts = [text for number in range(50) for text in (f"{number} {TEXTS[number % 4]}", "banks sold")]
    rows = datasets.Dataset.from_list([{"id": str(number), "text": text} for number, text in enumerate(texts)])
    split = Split(rows, view, PieceTarget(), {"text": view.encode(texts)}, {})
    own = grid.hyperparameters(registry.entry("architectures", id))
    assert own["pieces_per_word"] == share
    model = model_of(view, pieces_per_word=own["pieces_per_word"])
    read = objective_of(model, TrainingSettings()).portions(split, TrainingSettings())
    words = sum(len(words_of(text)) for text in texts)
    pieces = sum(len(ids) for ids in read.inputs["text"]["ids"])
    longest = int(split.inputs["text"]["ids"].lengths.max())
    assert share * words - longest - 1 < pieces <= share * words < len(texts) + split.inputs["text"]["ids"].values.size


def test_which_corpora_each_reads_and_in_which_order(tmp_path):
    """The domain's alone; general texts and then the domain's; general texts alone."""
    planned = session(tmp_path, f"{SCRATCH}*", tasks="ag_news,sst2", protocol="paper").pending.run
    cells = {cell.key: cell for cell in planned}

    def corpora(key: str) -> list[str]:
        (parent,) = [*cells[key].parents.values()] or [None]
        return [*corpora(parent["key"]), cells[parent["key"]].task] if parent else []

    assert {
        (cell.architecture, cell.task): corpora(cell.key) for cell in planned if cell.task in ("ag_news", "sst2")
    } == {
        (id, task): read
        for task in ("ag_news", "sst2")
        for id, read in (
            (SCRATCH, ["news_text"]),
            (CONTINUED, ["general_text", "news_text"]),
            (GENERAL, ["general_text"]),
        )
    }
    assert len(planned) == 4 + 6, "each corpus once for both tasks"
    assert all(
        cells[parent["key"]].architecture == cell.architecture for cell in planned for parent in cell.parents.values()
    )
    settings = [cell.hyperparameters["training"] for cell in planned if cell.task.endswith("_text")]
    assert settings == 4 * settings[:1], "by one recipe, so that equal passes are equal numbers of pieces"


@pytest.mark.slow
def test_lineage_names_the_corpora_and_all_three_have_read_equally_many_pieces(tmp_path):
    """Within one percent; vocabularies are those of the corpus with which each began."""
    tiny = ["layers=1", "hidden=8", "heads=2", "vocabulary=2000", "training.epochs=1"]
    tiny += ["training.learning_rates=[0.001]"]
    planned = session(
        tmp_path,
        f"{SCRATCH}*",
        tasks="ag_news",
        protocol="paper",
        max_train=None,
        max_epochs=None,
        overrides=[f"{SCRATCH}*.{each}" for each in tiny],
    )
    records = carried_out(planned)
    assert {record.status for record in records.values()} == {"ok"}
    lineages = {id: record.lineage for id, record in records.items()}
    assert {id: [(each["task"], each["role"]) for each in lineage] for id, lineage in lineages.items()} == {
        SCRATCH: [("news_text", "weights")],
        CONTINUED: [("general_text", "weights"), ("news_text", "weights")],
        GENERAL: [("general_text", "weights")],
    }
    data = {task: _task(task) for task in ("news_text", "general_text")}
    for lineage in lineages.values():
        for each in lineage:
            assert each["corpus"]["train"] == fingerprint(data[each["task"]]) and each["objective"] == "MaskedWords"
    read = {id: sum(each["tokens"] for each in lineage) for id, lineage in lineages.items()}
    assert max(read.values()) < 1.01 * min(read.values())
    steps = {id: sum(each["steps"] for each in lineage) for id, lineage in lineages.items()}
    assert max(steps.values()) - min(steps.values()) <= 2, "of each corpus the last batch of a pass may be a short one"
    for id, task in ((SCRATCH, "news_text"), (CONTINUED, "general_text"), (GENERAL, "general_text")):
        learnt = Subwords(size=2000, max_length=128, stride=64)
        learnt.fit([row["text"] for row in data[task]])
        folders = [tmp_path / "models" / each["key"] for each in lineages[id]]
        assert all(load(folder).view.state() == learnt.state() for folder in folders), id


def _task(id: str) -> list[dict[str, Any]]:
    entry = registry.entry("tasks", id)
    return registry.load(entry)(entry).read("train", "mini")


def test_a_child_begins_with_the_weights_of_its_parent_and_not_with_its_scores(view):
    parent = model_of(view)
    torch.manual_seed(9)
    child = DomainPretraining(view.width, view, **SIZES)
    kept: Any = type("Kept", (), {"model": parent, "view": view})
    child.inherit("weights", kept, ())
    assert all(torch.equal(value, parent.encoder.state_dict()[name]) for name, value in child.state_dict().items())
