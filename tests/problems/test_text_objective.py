"""Pre-training: what a text is asked, how the answers are counted, and what a child takes."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces, share_of
from architectures.blocks.objectives.next_piece import NextPiece
from architectures.blocks.piece_transformer import PieceTransformer
from harness.data.corpus import Split
from harness.errors import ContractError
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.text_objective import Foretold, FromText, LearnText, PieceTarget, TextObjective, counted, summed
from harness.settings import TrainingSettings
from harness.training.model import Model, build, objective_of
from harness.views.base import words_of
from harness.views.subwords import SPECIAL, SubwordBatch, Subwords
from tests.support.same import assert_same

TEXTS = ["the band sat on the mat", "a cat", "the bands and the cats sat on the mats"]
ASKED = problem("text")


def rows(*texts: str) -> list[dict[str, str]]:
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


VIEW = Subwords(size=60, max_length=16)
VIEW.fit(TEXTS * 3)


class Masked(PieceTransformer):
    learns = MaskedPieces

    def __init__(self, width: int, view: Subwords, **options: Any):
        super().__init__(width, view, layers=1, hidden=8, heads=2, dropout=0.0, spread=0.5, **options)


class Causal(Masked):
    learns = NextPiece

    def __init__(self, width: int, view: Subwords):
        super().__init__(width, view, causal=True)


def model_of(cls: type[PieceTransformer]) -> Model:
    torch.manual_seed(0)
    return build(cls, ASKED, {}, VIEW, ASKED.target(cls.gives), 100)


def batch_of(*texts: str) -> SubwordBatch:
    return VIEW.collate(VIEW.encode(list(texts)), np.arange(len(texts)))


def ids_of(text: str) -> list[int]:
    return VIEW.encode([text])["ids"][0].tolist()


# --- what is asked ---


def test_every_text_is_asked_a_share_of_its_pieces_and_one_at_least():
    numbers = torch.tensor([[0.5, 0.1, 0.9, 0.3], [0.5, 0.1, 0.9, 0.3], [0.2, 0.1, 0.1, 0.1]])
    allowed = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 0, 0]], dtype=torch.bool)
    assert share_of(allowed, 0.5, numbers).tolist() == [
        [False, True, False, True],
        [True, False, False, True],
        [True, False, False, False],
    ]
    assert share_of(allowed, 0.01, numbers).sum(1).tolist() == [1, 1, 1]
    assert not share_of(allowed & False, 0.5, numbers).any(), "a text without pieces is asked nothing"


def asked(texts: tuple[str, ...], key: tuple[int, ...]) -> list[list[int]]:
    """Places that each text is asked for."""
    pieces = batch_of(*texts)
    chosen = MaskedPieces.chosen(pieces, VIEW, Noise(pieces.ids, pieces.mask, key))
    return [row.nonzero()[:, 0].tolist() for row in chosen]


def test_a_text_is_asked_the_same_in_any_batch_and_something_else_at_each_pass():
    together = asked(tuple(TEXTS), (5, 1))
    assert together == [asked((text,), (5, 1))[0] for text in TEXTS]
    passes = {str(asked((TEXTS[2],), (5, number))) for number in range(20)}
    assert len(passes) > 5
    assert asked((TEXTS[2],), ()) == asked((TEXTS[2],), ())


def test_what_begins_and_ends_a_text_is_never_asked():
    for number in range(30):
        for places, text in zip(asked(tuple(TEXTS), (0, number)), TEXTS, strict=True):
            assert places and all(1 <= place <= len(ids_of(text)) for place in places)


def test_most_hidden_pieces_are_masked_some_are_others_and_some_stay():
    """80, 10 and 10 per cent (Devlin et al. 2018, 3.1); whatever is not chosen stays."""
    ids = torch.full((200, 50), VIEW.width - 1)
    chosen = torch.rand(ids.shape) < 0.5
    read = MaskedPieces.hidden(ids, chosen, VIEW, Noise(ids + torch.arange(200)[:, None], chosen | True))
    assert (read == ids)[~chosen].all()
    hidden = read[chosen]
    assert (hidden == VIEW.mask).float().mean().item() == pytest.approx(0.8 + 0.1 / VIEW.width, abs=0.02)
    assert (hidden == ids[chosen]).float().mean().item() == pytest.approx(0.1 + 0.1 / VIEW.width, abs=0.02)
    others = Counter(hidden[(hidden != VIEW.mask) & (hidden != VIEW.width - 1)].tolist())
    assert len(others) == VIEW.width - 2, "every piece of the vocabulary comes in another's place"


# --- how it is counted ---


def plain_scores(model: Model, states: Tensor) -> Tensor:
    """Scores of all pieces by the equations: dense layer, GELU, norm, table, bias."""
    weights = dict(model.head.learns.named_parameters())
    dense = states @ weights["scores.transform.0.weight"].T + weights["scores.transform.0.bias"]
    dense = dense * (1 + torch.erf(dense / math.sqrt(2))) / 2
    centred = dense - dense.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    normed = normed * weights["scores.transform.2.weight"] + weights["scores.transform.2.bias"]
    return normed @ model.encoder.table.weight.T + weights["scores.bias"]


def test_the_loss_is_the_mean_surprise_of_the_hidden_pieces():
    """In values and gradients, against scores of all places."""
    model = model_of(Masked)
    torch.nn.init.normal_(model.head.learns.scores.bias)
    pieces, objective = batch_of(*TEXTS), objective_of(model, TrainingSettings())
    loss = objective.losses(model, Step({"labelled": Batch({"text": pieces}, None, np.arange(3), 9)}, 0.5, None, 3, 7))
    noise = Noise(pieces.ids, pieces.mask, (3, 7))
    chosen = MaskedPieces.chosen(pieces, VIEW, noise)
    states = model.encoder(pieces._replace(ids=MaskedPieces.hidden(pieces.ids, chosen, VIEW, noise)))
    logs = plain_scores(model, states).log_softmax(-1).gather(2, pieces.ids[..., None])[..., 0]
    expected = -logs[chosen].sum() / chosen.sum()
    assert_same(loss["loss"], expected)


def test_the_next_piece_is_told_from_those_before_it_alone():
    """The sum over a text is that of its pieces and the separator behind them, in values and
    gradients; a later piece changes no earlier one's probability."""
    model = model_of(Causal)
    pieces = batch_of(*TEXTS)
    (logs, texts), count = model({"text": pieces})
    expected = []
    for text in TEXTS:
        ids = torch.tensor([[VIEW.start, *ids_of(text), VIEW.separator]])
        alone = pieces._replace(ids=ids, mask=ids >= 0, segments=0 * ids)
        scores = model.encoder(alone)[0, :-1] @ model.encoder.table.weight.T
        expected.append(scores.log_softmax(-1)[range(ids.shape[1] - 1), ids[0, 1:]])
    assert count == 3 and texts.tolist() == [i for i, each in enumerate(expected) for _ in each]
    assert_same(logs, torch.cat(expected))
    changed = pieces.ids.clone()
    changed[0, 4] = VIEW.unknown
    (after, _), _ = model({"text": pieces._replace(ids=changed)})
    torch.testing.assert_close(logs[:3], after[:3])
    assert logs[3] != after[3]


def test_a_prediction_is_the_sum_of_a_text_and_the_number_of_its_questions():
    head: Any = model_of(Masked).head
    foretold = Foretold(torch.tensor([-1.0, -2.0, -4.0]), torch.tensor([0, 0, 2])), 3
    assert head.decode(None, foretold, None, None) == [[-3.0, 2], [0.0, 0], [-4.0, 1]]
    assert head.row_losses(None, foretold, None).tolist() == [3, 0, 4]
    assert head.loss(None, foretold, None).item() == pytest.approx(7 / 3)
    assert [each.tolist() for each in head.evidence(None, foretold)] == [[-1, -2], [], [-4]]


def test_the_floor_is_the_share_of_a_piece_in_the_training_texts():
    """Of the same pieces that a model is asked for; one is added to the count of each piece."""
    counts = Counter(id for text in TEXTS for id in ids_of(text))
    total = sum(counts.values()) + len(TEXTS) + VIEW.width
    log = {id: math.log((counts[id] + 1) / total) for id in range(VIEW.width)}
    log[VIEW.separator] = math.log((len(TEXTS) + 1) / total)
    found = ASKED.floors_of(Masked, rows(*TEXTS), rows(*TEXTS), VIEW)["pieces"]
    for text, places, (sum_, count) in zip(TEXTS, asked(tuple(TEXTS), ()), found, strict=True):
        assert count == len(places)
        assert sum_ == pytest.approx(sum(log[ids_of(text)[place - 1]] for place in places))
    found = ASKED.floors_of(Causal, rows(*TEXTS), rows(*TEXTS), VIEW)["pieces"]
    for text, (sum_, count) in zip(TEXTS, found, strict=True):
        ids = [*ids_of(text), VIEW.separator]
        assert count == len(ids) and sum_ == pytest.approx(sum(log[id] for id in ids))


def test_scores_of_different_questions_or_vocabularies_are_not_compared():
    """The record of a model says what its score counts."""
    targets = [ASKED.target(Masked.gives) for _ in range(2)]
    for cls, target in zip((Masked, Causal), targets, strict=True):
        build(cls, ASKED, {}, VIEW, target, 100)
    masked, causal = map(ASKED.tokens, targets)
    assert (masked["name"], causal["name"]) == (f"masked pieces of {VIEW.width}", f"pieces of {VIEW.width}")
    other = Subwords(size=30, max_length=16)
    other.fit(TEXTS)
    build(Masked, ASKED, {}, other, targets[0], 100)
    assert ASKED.tokens(targets[0])["artefact"] != masked["artefact"]
    restored = PieceTarget()
    restored.restore(targets[1].state())
    assert ASKED.tokens(restored) == causal, "a kept model says so too"


@pytest.mark.parametrize("wrong", [[0.5, 3], [-math.inf, 2], [math.nan, 2], [-1.0, 0]])
def test_an_impossible_surprise_breaks_the_contract(wrong):
    target = PieceTarget()
    target.counted = {"name": "pieces"}
    with pytest.raises(ContractError, match="row 0 have the log-probability"):
        ASKED.sound(target, lambda asked: [wrong for _ in asked], rows("a cat"))
    ASKED.sound(target, lambda asked: [[-1.0, 2] for _ in asked], rows("a cat"))


# --- how it is trained, and what goes over to a child ---


def test_texts_are_packed_to_full_length_with_a_separator_behind_each():
    view = Subwords(size=60, max_length=7)
    view.fit(TEXTS * 3)
    columns = view.encode(TEXTS)
    joined = [id for text in TEXTS for id in [*view.encode([text])["ids"][0].tolist(), view.separator]]
    packed = view.packed(columns)["ids"]
    assert [packed[row].tolist() for row in range(len(packed))] == [joined[i : i + 5] for i in range(0, len(joined), 5)]
    cut = view.cut(columns, 4)["ids"]
    alone = [view.encode([text])["ids"][0].tolist() for text in TEXTS]
    assert [cut[row].tolist() for row in range(len(cut))] == [t[i : i + 4] for t in alone for i in range(0, len(t), 4)]


def test_an_objective_is_told_how_much_of_the_training_is_done(monkeypatch):
    """One that asks other things later would else ask those of evaluation all the time."""
    told: list[tuple[bool, float]] = []
    forward = MaskedPieces.forward

    def told_by(learns: MaskedPieces, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        told.append((noise.anew, noise.progress))
        return forward(learns, encoder, pieces, noise)

    monkeypatch.setattr(MaskedPieces, "forward", told_by)
    model = model_of(Masked)
    batch = Batch({"text": batch_of(*TEXTS)}, None, np.arange(3), 9)
    for progress, passes in ((0.25, 2), (0.75, 4), (0.75, 0)):
        objective_of(model, TrainingSettings()).losses(model, Step({"labelled": batch}, progress, None, 3, passes))
    model(batch.inputs)
    assert told == [(True, 0.25), (True, 0.75), (False, 1.0), (False, 1.0)]


@pytest.mark.parametrize(("packs", "expected"), [(True, "packed"), (False, "cut to 14")])
def test_an_objective_says_whether_texts_are_joined(packs, expected):
    split: Any = SimpleNamespace(view=VIEW, packed=lambda: "packed", cut=lambda longest: f"cut to {longest}")
    learns = SimpleNamespace(packs=packs, pieces_per_word=None, last_phase=0.0)
    learner: Any = SimpleNamespace(head=SimpleNamespace(learns=learns))
    assert FromText(None, learner).portions(split, TrainingSettings()) == expected


def portions(texts: list[str], packs: bool, pieces_per_word: float) -> Split:
    """The training texts as an objective reads them."""
    split = Split(datasets.Dataset.from_list(rows(*texts)), VIEW, PieceTarget(), {"text": VIEW.encode(texts)}, {})
    learns = SimpleNamespace(packs=packs, pieces_per_word=pieces_per_word, last_phase=0.0)
    learner: Any = SimpleNamespace(head=SimpleNamespace(learns=learns))
    return FromText(None, learner).portions(split, TrainingSettings())


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_an_objective_may_read_no_more_pieces_than_so_many_for_each_word(packs, share):
    """Else a vocabulary that divides words into more pieces is trained for longer: here one that
    knows other words."""
    texts = [" ".join("the cats sat on the mat unknown"[:length] for _ in range(3)) for length in range(1, 31)]
    read = portions(texts, packs, share)
    words = sum(len(words_of(text)) for text in texts)
    pieces = [len(VIEW.encode([text])["ids"][0]) + 1 for text in texts]
    assert sum(pieces) > words, "else there is nothing to leave out"
    kept = [texts.index(text) for text in read.rows["text"]]
    assert kept == sorted({*kept}), "in their order"
    taken = sum(pieces[text] for text in kept)
    assert share * words - max(pieces) < taken <= share * words
    found = sum(len(text) for text in read.inputs["text"]["ids"])
    assert found == taken - (0 if packs else len(kept)), "a separator stands behind each where they are put together"
    if share == 0.5:
        assert kept != [*range(len(kept))] and max(kept) > 20, "of all parts of the corpus"


def test_a_text_is_read_even_where_it_is_alone():
    assert portions(["unknown words"], True, 0.1).rows["text"] == ["unknown words"]


def test_an_encoder_is_pre_trained_under_the_head_of_plain_text_alone():
    """Its own loss on another task is the supervised one."""
    assert objective_of(model_of(Masked), TrainingSettings()).name == "MaskedPieces"
    target = problem("classify").target(Masked.gives)
    target.labels = ["a", "b"]
    model = build(Masked, problem("classify"), {}, VIEW, target, 100)
    assert objective_of(model, TrainingSettings()).name == "Supervised"
    assert Masked.can_answer("text") and not PieceTransformer.can_answer("text") and PieceTransformer.can_answer("tag")


def test_a_child_takes_the_weights_and_the_tokenizer_and_leaves_the_head():
    parent: Any = SimpleNamespace(model=model_of(Masked), view=VIEW)
    torch.manual_seed(1)
    view = Masked.inherited_view(Subwords(max_length=16), "weights", parent)
    view.fit(["other texts of the child"])
    assert view.state() == VIEW.state() and Subwords.learnt is None
    child = Masked(view.width, view)
    child.inherit("weights", parent, [])
    wanted = parent.model.encoder.state_dict()
    assert child.state_dict().keys() == wanted.keys()
    assert all(torch.equal(value, wanted[name]) for name, value in child.state_dict().items())
    assert not torch.equal(child.table.weight, parent.model.head.learns.scores.transform[0].weight)
    with pytest.raises(RuntimeError, match="size mismatch"):
        Masked(view.width + 1, view).inherit("weights", parent, [])


def test_special_pieces_of_a_view_that_was_kept_before_it_had_a_mask_are_read():
    state = VIEW.state() | {"special": SPECIAL[:4]}
    view = Subwords()
    view.restore(state)
    assert view.mask is None and view.separator == VIEW.separator and VIEW.mask == SPECIAL.index("[MASK]")


def test_the_loss_of_no_question_is_a_number():
    """A batch of texts without pieces."""
    model = model_of(Masked)
    outputs = model({"text": batch_of("", "")})
    assert model.head.loss(model.encoder, outputs, None).item() == 0


def test_texts_that_are_asked_nothing_have_predictions_too():
    """Else the last ones of a batch would be lost, and rows and scores no longer match."""
    foretold = Foretold(torch.tensor([-1.0, -2.0, -4.0]), torch.tensor([1, 1, 0]))
    assert summed(foretold, 4) == [[-4.0, 1], [-3.0, 2], [0.0, 0], [0.0, 0]]


def test_the_order_in_which_a_tokenizer_tells_its_pieces_is_no_other_unit():
    """It has another one in each process: results of one vocabulary would not be compared."""
    told = []
    for pieces in ({"a": 0, "b": 1}, {"b": 1, "a": 0}, {"a": 1, "b": 0}):
        tokenizer = SimpleNamespace(get_vocab=lambda pieces=pieces: pieces)
        told.append(counted("pieces", SimpleNamespace(tokenizer=tokenizer, width=2)))
    assert told[0] == told[1] != told[2] and told[0]["name"] == "pieces of 2"


def test_texts_are_joined_unless_an_objective_says_otherwise():
    """Most positions of a short text would be padding."""
    assert TextObjective.packs


def test_an_objective_is_given_the_kept_model_and_its_role():
    """A teacher taken for weights would be unlearnt."""
    given = []

    class Taught(TextObjective):
        takes = ("teacher",)

        def inherit(self, role, parent):
            given.append((role, parent))

    head = LearnText(SimpleNamespace(learns=Taught), PieceTarget())
    assert head.takes == ("teacher",)
    head.inherit("teacher", "a kept model", [])
    assert given == [("teacher", "a kept model")]
