"""T5: both sides are those of transformers' own model, what is taken out of a text is what is asked
for, and classes are scored by the words of their names."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from architectures.blocks.cued_pieces import SENTINELS, CuedPieces
from architectures.blocks.objectives.removed_spans import RemovedSpans, divided
from architectures.blocks.relative_stack import buckets
from architectures.pretrained.t5 import T5
from harness import registry
from harness.layers.noise import Noise
from harness.problems.text_objective import LearnText, PieceTarget
from harness.views.subwords import SubwordBatch
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

PIECES = ["<pad>", "</s>", "<unk>", "▁the", "▁cat", "s", "▁sat", "▁on", "▁mat", "▁text", "▁good", "▁bad", ":"]
TEXTS = ["the cats sat", "cats", "sat the cat on the mat the cats sat"]
TRAIN = ["the cat sat on the mat and the dog sat on the cat", "a dog ran"]
SIZES = {"layers": 2, "hidden": 12, "heads": 3}
MODULES = {
    "shared": "table",
    "final_layer_norm": "norm",
    "SelfAttention.relative_attention_bias": "distances",
    "SelfAttention": "attention",
    "EncDecAttention": "across",
    "DenseReluDense.wi": "feedforward.0",
    "DenseReluDense.wo": "feedforward.3",
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "output",
}
"""Our names of modules, by transformers'."""


def ours_of(theirs: str) -> str:
    """Our name of a parameter of transformers' model."""
    if theirs == "shared.weight":
        return "table.weight"
    side, *rest = theirs.removesuffix(".weight").split(".")
    if rest == ["final_layer_norm"]:
        return f"{side}.norm.weight"
    _, block, _, sublayer, *parts = rest
    if parts[-1] == "relative_attention_bias":
        return f"{side}.distances.weight"
    if parts == ["layer_norm"]:
        return f"{side}.layers.{block}.norms.{sublayer}.weight"
    if parts[0] == "DenseReluDense":
        return f"{side}.layers.{block}.{MODULES['.'.join(parts)]}.weight"
    return f"{side}.layers.{block}.{MODULES[parts[0]]}.{MODULES[parts[1]]}.weight"


def save(path: Path, **settings: Any) -> Path:
    """A tiny T5 with random weights and its tokenizer, as the hub holds them."""
    torch.manual_seed(0)
    vocabulary = [(piece, -float(number)) for number, piece in enumerate(PIECES)]
    sentinels = [(f"<extra_id_{number}>", 0.0) for number in reversed(range(SENTINELS))]
    transformers.T5TokenizerFast(vocab=vocabulary + sentinels).save_pretrained(path)
    sizes = {"d_model": 12, "d_kv": 4, "num_heads": 3, "d_ff": 20, "num_layers": 2, "num_decoder_layers": 3}
    config = transformers.T5Config(vocab_size=len(PIECES) + SENTINELS + 7, decoder_start_token_id=0, **sizes | settings)
    model = transformers.T5ForConditionalGeneration(config)
    for weights in model.parameters():  # norms begin alike, and nobody would see that two are exchanged
        weights.data += (0.3 if weights.dim() == 1 else 0.1) * torch.randn_like(weights)
    model.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("tiny_t5"))


def both(folder: Path, answers: tuple[str, ...] = (), cues: tuple[str, ...] = ()) -> tuple[T5, Any]:
    """Our class as ``-o t5.pretrained=FOLDER`` makes it, and transformers' own."""
    view = T5.reads("text", {"pretrained": str(folder), "max_length": 32})
    view = view.changed({"cues": cues})
    view.fit([])
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(folder).eval()
    return T5(view.width, view, answers).eval(), theirs


@pytest.fixture(scope="module")
def view() -> CuedPieces:
    made = CuedPieces(size=60, max_length=40)
    made.fit(TRAIN)
    return made


def made(view: CuedPieces, answers: tuple[str, ...] = (), **sizes: Any) -> T5:
    return small(T5, view.width, view, answers, **SIZES | sizes)


def slopes_of(theirs: str, parameter: torch.nn.Parameter) -> torch.Tensor:
    """The gradient of a parameter of transformers' as that of ours: the numbers of our table are
    theirs divided by sqrt(12), and those of our queries theirs times the sqrt(4) that scores are
    divided by."""
    if theirs == "shared.weight":
        return parameter.grad[: len(PIECES) + SENTINELS] * math.sqrt(12)
    return parameter.grad / math.sqrt(4) if theirs.endswith("Attention.q.weight") else parameter.grad


def assert_same_gradients(t5: T5, reference: Any) -> None:
    ours = {name: p.grad for name, p in t5.named_parameters()}
    theirs = {ours_of(name): slopes_of(name, p) for name, p in reference.named_parameters()}
    assert ours.keys() == theirs.keys()
    for name, slopes in theirs.items():
        assert slopes.abs().max() > 1e-5, name
        torch.testing.assert_close(ours[name], slopes, rtol=1e-4, atol=1e-4 * float(slopes.abs().max()), msg=name)


# --- both sides ---


def test_the_tables_by_which_distances_are_known_by_hand():
    """The paper's 32 buckets: looking back alone 0 to 15 are exact; looking both ways 0 to 7, with
    buckets of their own for what stands behind."""
    back = dict(zip(range(-200, 6), buckets(torch.arange(-200, 6), False).tolist(), strict=True))
    assert [back[-distance] for distance in (0, 1, 15, 16, 18, 19, 21, 113, 127, 128, 200)] == (
        [0, 1, 15, 16, 16, 17, 18, 31, 31, 31, 31]
    )
    assert {back[distance] for distance in range(6)} == {0}
    both_ways = dict(zip(range(-200, 201), buckets(torch.arange(-200, 201), True).tolist(), strict=True))
    assert [both_ways[-distance] for distance in (0, 1, 7, 8, 11, 12, 127, 200)] == [0, 1, 7, 8, 8, 9, 15, 15]
    assert all(both_ways[distance] == both_ways[-distance] + 16 for distance in range(1, 201))


@pytest.mark.parametrize("both_ways", [True, False])
def test_distances_are_known_as_in_transformers(both_ways):
    theirs = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    distances = torch.arange(-300, 301)
    expected = theirs(distances, both_ways, 32, 128)
    assert torch.equal(buckets(distances, both_ways), expected)


def test_states_and_gradients_of_the_encoder_are_those_of_transformers(folder):
    """Queries that are loaded as they are, a mean that is taken off, or a bias that each layer has
    for itself: a published model would answer otherwise."""
    t5, reference = both(folder)
    pieces = batch(t5.view, *TEXTS)
    found = t5(pieces)[pieces.mask]
    read = {"input_ids": pieces.ids, "attention_mask": pieces.mask.long()}
    expected = reference.encoder(**read).last_hidden_state[pieces.mask]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert found.std() > 0.1
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    slopes = slopes_of("shared.weight", reference.shared.weight)
    torch.testing.assert_close(t5.table.weight.grad, slopes, rtol=1e-4, atol=1e-5)
    slopes = reference.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.grad
    torch.testing.assert_close(t5.encoder.distances.weight.grad, slopes, rtol=1e-4, atol=1e-5)


def test_what_is_written_and_all_gradients_are_those_of_transformers(folder):
    """Through the decoder: the shift by one, the scale in front of the table, a source of which
    padding is no part, and buckets of distances that differ from the encoder's from the tenth piece
    on."""
    t5, reference = both(folder)
    pieces = batch(t5.view, *TEXTS)
    written = [[4, 5, 6, 8, 3, 4, 5, 6, 8, 3, 4, 5, 6, 1], [8, 1], [3, 4, 1]]
    lengths = torch.tensor([len(each) for each in written])
    target = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in written], batch_first=True)
    mask = torch.arange(target.shape[1]) < lengths[:, None]
    found = t5.told(pieces, target, mask)
    labels = target.masked_fill(~mask, -100)
    # The start is the piece of padding, and what stands behind an end is read by nobody.
    before = torch.cat([torch.zeros(3, 1, dtype=torch.long), target[:, :-1]], 1)
    scores = reference(input_ids=pieces.ids, attention_mask=pieces.mask.long(), decoder_input_ids=before).logits[
        ..., : t5.view.width
    ]
    expected = -F.cross_entropy(scores[mask], labels[mask], reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_same_gradients(t5, reference)


def test_the_decoder_sees_nothing_of_what_it_is_to_write(view):
    """Through any number of layers: a decoder that copies would learn nothing."""
    t5 = made(view, layers=3)
    pieces = batch(view, "a dog ran on the mat")
    mask = torch.ones(1, 6, dtype=torch.bool)
    target = torch.tensor([[10, 11, 12, 13, 14, 15]])
    before = t5.told(pieces, target, mask)
    for place in range(6):
        changed = target.clone()
        changed[0, place] = 20
        moved = (t5.told(pieces, changed, mask) - before).abs() > 1e-4
        assert moved.tolist() == [False] * place + [True] * (6 - place)


def test_padding_is_invisible(view):
    t5 = made(view, ("cat", "dog"))
    together, scores = batch(view, *TRAIN), t5.vector(batch(view, *TRAIN))
    for row, text in enumerate(TRAIN):
        alone = batch(view, text)
        assert_same(t5(alone)[0], t5(together)[row, : int(alone.lengths)])
        assert_same(t5.vector(alone)[0], scores[row])


def test_all_layers_of_a_side_share_the_numbers_of_distances(view):
    tables = [name for name, _ in made(view).named_parameters() if "distances" in name]
    assert tables == ["encoder.distances.weight", "decoder.distances.weight"]
    assert not [name for name, _ in made(view).named_parameters() if "bias" in name]


def test_numbers_keep_their_size_at_the_beginning(view):
    """The weights begin so that scores have deviation 1, and so has what a matrix makes of numbers
    that have."""
    torch.manual_seed(0)
    t5 = T5(view.width, view, hidden=256, heads=4, layers=1, dropout=0.0)
    states = torch.randn(4, 50, 256)
    for stack in (t5.encoder, t5.decoder):
        attention = stack.layers[0].attention
        queries, memory = attention.project(states)
        assert 0.8 < (queries @ memory.keys.mT / 8).std() < 1.25
        assert 0.9 < memory.values.std() < 1.1
        assert 0.9 < stack.layers[0].feedforward[0](states).std() < 1.1
        last = stack.layers[0].feedforward[-1]
        assert 0.9 < last(torch.randn(200, last.in_features)).std() < 1.1
    assert 0.9 < (t5.table(torch.arange(50)) @ states[0].T).std() < 1.1


# --- what is asked of plain text ---


def words(texts: int, length: int) -> SubwordBatch:
    """Random texts of so many pieces with their end."""
    ids = torch.randint(5, 40, (texts, length), generator=torch.Generator().manual_seed(0))
    ids[:, -1] = 3
    return SubwordBatch(
        ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.full((texts,), length)
    )


@pytest.mark.parametrize(
    ("length", "removed", "spans"), [(512, 77, 26), (127, 19, 6), (10, 2, 1), (2, 1, 1), (24, 4, 1)]
)
def test_a_share_of_a_text_is_taken_out_in_so_many_spans(length, removed, spans):
    """The paper's numbers for 512 pieces, counted as on a ring: one that goes over the end is
    one."""
    pieces = words(50, length + 1)
    chosen = RemovedSpans.chosen(pieces.lengths - 1, noise_of(pieces), length + 1)
    for row in chosen.tolist():
        assert not row[length]
        assert sum(row) == removed
        assert sum(taken and not before for before, taken in itertools.pairwise([row[length - 1], *row])) == spans


@pytest.mark.parametrize("length", [12, 40])
def test_each_place_is_asked_as_often(length):
    """A short text would lose its end alone, the same in each pass: what goes before is never
    learnt."""
    pieces = words(4000, length + 1)
    chosen = RemovedSpans.chosen(pieces.lengths - 1, noise_of(pieces), length + 1)[:, :length]
    share = round(0.15 * length) / length
    assert (chosen.float().mean(0) - share).abs().max() < 5 * math.sqrt(share / 4000)


def test_texts_of_different_lengths_have_their_own_numbers():
    """Beside a longer text, a short one loses no more and nothing behind its end."""
    lengths = torch.tensor([30, 1, 0, 7, 100])
    ids = torch.arange(500).view(5, 100)
    chosen = RemovedSpans.chosen(lengths, Noise(ids, torch.ones_like(ids, dtype=torch.bool)), 100)
    assert chosen.sum(1).tolist() == [4, 0, 0, 1, 15]
    assert not (chosen & (torch.arange(100) >= lengths[:, None])).any()


def test_no_span_is_left_out_where_there_are_more_than_sentinels():
    """One that goes over the end has two sentinels."""
    pieces = words(60, 3001)
    chosen = RemovedSpans.chosen(pieces.lengths - 1, noise_of(pieces), 3001)
    assert set(chosen.sum(1).tolist()) == {450}
    begins = chosen & ~chosen.roll(1, 1)
    assert set(begins.sum(1).tolist()) == {SENTINELS - 1, SENTINELS}


def test_all_divisions_are_equally_probable():
    """Five pieces in three runs: six ways; and one run, as many as pieces, and none."""
    numbers = Noise(torch.arange(6000)[:, None], torch.ones(6000, 1, dtype=torch.bool)).uniform(8)
    found = Counter(map(tuple, divided(torch.full((6000,), 5), torch.full((6000,), 3), numbers).tolist()))
    ways = {ways for ways in itertools.product(range(1, 4), repeat=3) if sum(ways) == 5}
    assert found.keys() == ways
    assert all(abs(count - 1000) < 4 * math.sqrt(1000 * 5 / 6) for count in found.values())
    some = divided(torch.tensor([5, 4, 0, 1]), torch.tensor([1, 4, 0, 1]), numbers[:4])
    assert some.tolist() == [[5, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_what_stays_and_what_is_asked_make_up_the_text(view):
    """Put back behind its sentinel, each span stands where it stood: nothing is lost or doubled."""
    pieces = words(40, 120)
    pieces = pieces._replace(lengths=torch.arange(80, 120), mask=torch.arange(120) < torch.arange(80, 120)[:, None])
    ends = pieces.lengths - 1
    pieces.ids[torch.arange(40), ends] = view.separator
    pieces = pieces._replace(ids=pieces.ids.masked_fill(~pieces.mask, view.pad))
    source, target, mask = RemovedSpans.questions(pieces, view, noise_of(pieces, 0, 1))
    sentinels = [view.width - 1 - number for number in range(SENTINELS)]
    assert view.sentinels == sentinels
    for row in range(40):
        written = target[row, mask[row]].tolist()
        spans: dict[int, list[int]] = {}
        for piece in written[:-1]:
            if piece in sentinels:
                spans[piece] = inside = []
            else:
                inside.append(piece)
        assert written[-1] == view.separator and [*spans] == sentinels[: len(spans)] and all(spans.values())
        read = source.ids[row, : source.lengths[row]].tolist()
        again = [each for piece in read for each in spans.get(piece, [piece])]
        assert again == pieces.ids[row, : pieces.lengths[row]].tolist()
    assert torch.equal(source.mask.sum(1), source.lengths)
    assert (source.ids == view.pad)[~source.mask].all() and (target == view.pad)[~mask].all()


def test_a_text_of_one_piece_loses_nothing(view):
    pieces = batch(view, "a", "")
    source, target, mask = RemovedSpans.questions(pieces, view, noise_of(pieces))
    assert torch.equal(source.ids, pieces.ids) and source.lengths.tolist() == [2, 1]
    assert target[mask].tolist() == [view.separator] * 2


def test_the_decoder_tells_the_spans_by_what_stays(view):
    """A score has the pieces of spans alone: in training the end stands behind more spans than a
    short text has, and one that has learnt that would be the worse for it."""
    t5 = made(view)
    pieces = batch(view, *TRAIN)
    logs, texts = RemovedSpans(t5)(t5, pieces, noise_of(pieces))
    source, target, mask = RemovedSpans.questions(pieces, view, noise_of(pieces))
    expected = []
    for row in range(2):
        ids = target[row, mask[row]]
        states = t5.read(
            SubwordBatch(*(field[row : row + 1, : source.lengths[row]] for field in source[:3]), source[3])
        )
        before = torch.tensor([[view.pad, *ids[:-1].tolist()]])
        seen = torch.ones(1, len(ids), len(ids)).tril().bool()
        written = t5.decoder(
            math.sqrt(12) * t5.table(before), seen, states, torch.ones(1, states.shape[1], dtype=torch.bool)
        )[0]
        for state, piece in zip(written, ids, strict=True):
            expected.append((t5.table.weight @ state).softmax(0)[piece].log())
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert texts.tolist() == mask.nonzero()[:, 0].tolist()
    logs, texts = RemovedSpans(t5).eval()(t5, pieces, noise_of(pieces))
    of_text = [piece not in [*view.sentinels, view.separator] for piece in target[mask].tolist()]
    assert_same(logs, torch.stack(expected)[of_text], rtol=1e-4, atol=1e-4)
    assert texts.tolist() == mask.nonzero()[of_text, 0].tolist()


def test_a_text_is_asked_the_same_in_another_batch_and_something_else_in_another_pass(view):
    t5 = made(view, layers=1)
    head = LearnText(t5, PieceTarget()).eval()
    short, long = " ".join(["the cat"] * 18), " ".join(["the dog"] * 30)
    alone, beside = batch(view, short), batch(view, long, short)
    assert beside.ids.shape[1] > alone.ids.shape[1]
    logs, texts = head(t5, {"text": beside})[0]
    assert_same(head(t5, {"text": alone})[0].logs, logs[texts == 1])
    asked = [RemovedSpans.questions(alone, view, noise_of(alone, 0, number)).target.tolist() for number in range(6)]
    assert len({str(each) for each in asked}) > 1


def test_the_floor_tells_pieces_by_their_shares_of_what_is_asked(view):
    """Spans alone: whoever has learnt nothing but where sentinels stand is not above it."""
    rows = [{"id": str(number), "text": text} for number, text in enumerate(TRAIN)]
    counts, asked = Counter(range(view.width)), []
    for text in TRAIN:
        pieces = batch(view, text)
        _, target, mask = RemovedSpans.questions(pieces, view, noise_of(pieces))
        asked.append([piece for piece in target[mask].tolist() if piece not in [*view.sentinels, view.separator]])
        counts.update(asked[-1])
    total = counts.total()
    expected = [[sum(math.log(counts[piece] / total) for piece in ids), len(ids)] for ids in asked]
    found = RemovedSpans.floor(view, rows, rows)
    assert [count for _, count in found] == [count for _, count in expected]
    assert [log for log, _ in found] == pytest.approx([log for log, _ in expected], rel=1e-5)


# --- tasks as texts ---


def test_a_task_is_asked_for_by_its_name_and_those_of_its_columns(tmp_path):
    sst2, snli, mix = (registry.entry("tasks", id) for id in ("sst2", "snli", "text_mix"))
    assert T5.view_for(sst2, {}).cues == ("sst2 text:",)
    assert T5.view_for(snli, {}).cues == ("snli first:", "second:")
    assert T5.view_for(mix, {}).cues == ()
    assert T5.view_for(registry.entry("tasks", "fsdd"), {}) is None
    types = {type for type in registry.entries("problems") if T5.can_answer(type)}
    assert types == {"classify", "match", "text"}
    assert T5.default_parents({"weights": "t5@text_mix"}, {"pretrained": "folder"}) == {}


def test_a_text_behind_its_cue_is_divided_as_transformers_divides_both(folder):
    t5, _ = both(folder, cues=("the text:", "good cat:"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    view = t5.view
    pairs = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(3))
    for row, (first, second) in enumerate(zip(TEXTS, TEXTS[::-1], strict=True)):
        expected = tokenizer(f"the text: {first} good cat: {second}")["input_ids"]
        assert pairs.ids[row, : pairs.lengths[row]].tolist() == expected
        assert pairs.mask[row].sum() == len(expected)
    assert [tokenizer.convert_ids_to_tokens(view.sentinels[number]) for number in (0, 99)] == (
        ["<extra_id_0>", "<extra_id_99>"]
    )
    assert (view.separator, view.pad) == (1, 0)


def test_what_is_too_long_is_cut_behind_its_cue_and_the_end_stays():
    view = CuedPieces(size=60, max_length=16, cues=("cat:", "dog:"))
    view.fit(TRAIN)
    cues = [view.encode([cue])["ids"][0].tolist() for cue in view.cues]
    a, the, end = view.encode(["a"])["ids"][0].tolist(), view.encode(["the"])["ids"][0].tolist(), [view.separator]
    assert len(a) == len(the) == 1
    room = 16 - 1 - len(cues[0] + cues[1])
    for first, second, kept in ((30, 1, (room - 1, 1)), (30, 30, (-(-room // 2), room // 2)), (1, 30, (1, room - 1))):
        pieces = view.collate_pair(
            view.encode([" ".join(["a"] * first)]), view.encode([" ".join(["the"] * second)]), np.array([0])
        )
        assert pieces.ids[0].tolist() == cues[0] + a * kept[0] + cues[1] + the * kept[1] + end
    one = CuedPieces(size=60, max_length=16, cues=("cat:",))
    one.fit(TRAIN)
    pieces = batch(one, "a " * 30, "a")
    assert pieces.ids[0].tolist() == cues[0] + a * (15 - len(cues[0])) + end
    assert pieces.ids[1, : pieces.lengths[1]].tolist() == cues[0] + a + end
    with pytest.raises(ValueError, match="max_length=3: no room is left behind the words 'cat:'"):
        CuedPieces(size=60, max_length=3, cues=("cat:",)).fit(TRAIN)


def test_no_text_has_a_sentinel_and_a_kept_view_has_the_same(view):
    assert view.width == view.tokenizer.get_vocab_size() + SENTINELS
    assert not set(view.encode(["<extra_id_0> cat </s> [SEP]"])["ids"][0].tolist()) & {*view.sentinels, view.separator}
    again = CuedPieces(size=60, max_length=40)
    again.restore(view.state())
    assert (again.width, again.sentinels) == (view.width, view.sentinels)
    assert again.room == view.room == 39 and len(again.packed(again.encode(TRAIN * 9))["ids"][0]) == 39


@pytest.mark.parametrize("answers", [("good", "bad cats"), ("bad cats", "the", "good")])
def test_classes_are_scored_by_their_names_as_transformers_scores_them_alone(folder, answers):
    """All names are written at once: one that saw another, or the end that was left out, would be
    scored otherwise."""
    t5, reference = both(folder, answers, ("text:",))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    scores = t5.vector(batch(t5.view, *TEXTS))
    assert scores.shape == (3, len(answers))
    expected, lengths = torch.zeros(scores.shape), []
    for number, answer in enumerate(answers):
        labels = tokenizer(answer, return_tensors="pt")["input_ids"]
        lengths.append(labels.shape[1])
        for row, text in enumerate(TEXTS):
            read = tokenizer(f"text: {text}", return_tensors="pt")
            logits = reference(**read, labels=labels).logits[0, :, : t5.view.width]
            expected[row, number] = logits.log_softmax(-1)[torch.arange(labels.shape[1]), labels[0]].sum()
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-5)
    gold = torch.tensor([0, 1, len(answers) - 1])
    loss = t5.objective(scores, gold)
    by_hand = -sum(expected[row, label] for row, label in enumerate(gold)) / sum(lengths[label] for label in gold)
    torch.testing.assert_close(loss, by_hand, rtol=1e-5, atol=1e-5)
    loss.backward()
    by_hand.backward()
    assert_same_gradients(t5, reference)


def test_a_name_that_is_likelier_now_is_the_answer(view):
    """In training the words of the right class gain, and those of others only lose by it."""
    t5 = made(view, ("cat", "the dog"), layers=1)
    pieces, gold = batch(view, "a dog ran", "on the mat"), torch.tensor([1, 0])
    optimizer = torch.optim.Adam(t5.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        t5.objective(t5.vector(pieces), gold).backward()
        optimizer.step()
    assert t5.vector(pieces).argmax(1).tolist() == gold.tolist()
    assert t5.vector(pieces).gather(1, gold[:, None]).min() > -0.3


def test_classes_that_differ_in_no_piece_are_told_apart(view):
    """Numbers and capitals that no text has are one unknown piece: without a mark of their own such
    classes would have the same score."""
    t5 = made(view, ("C04", "Cat", "C06", "cat", "C10"))
    [unknown], [cat] = view.pieces("C04"), view.pieces("cat")
    end, (first, second) = view.separator, view.sentinels[:2]
    assert unknown == view.unknown
    assert t5.written.tolist() == [unknown, end, cat, end, unknown, first, end, cat, first, end, unknown, second, end]
    assert t5.of.tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert len({round(score, 4) for score in t5.vector(batch(view, "a dog")).tolist()[0]}) == 5


def test_a_child_takes_all_weights_whatever_its_classes_are(view):
    parent, child = made(view), T5(view.width, view, ("cat", "the dog"), **SIZES)
    child.load_state_dict(parent.state_dict())
    assert torch.equal(child.eval()(batch(view, *TRAIN)), parent(batch(view, *TRAIN)))


def test_numbers_of_all_matrices_begin_as_large(view):
    """Adam moves all numbers as far: a table of numbers sixteen times as large would stay as it was
    drawn, and queries whose numbers are an eighth would be another matrix at each step."""
    t5 = T5(view.width, view)
    block = t5.encoder.layers[0]
    for matrix in (t5.table.weight, block.attention.query.weight, block.feedforward[0].weight):
        assert matrix.std().item() == pytest.approx(256**-0.5, rel=0.05)
    assert block.feedforward[0].out_features == 4 * 256
    assert t5.embedded(torch.arange(view.width)).std().item() == pytest.approx(1, rel=0.05)


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feed_forward_proj": "gated-gelu"}, "feed_forward_proj is 'gated-gelu'"),
        ({"tie_word_embeddings": False}, "(tie_word_embeddings|scale_decoder_outputs) is False"),
        ({"relative_attention_num_buckets": 16}, "relative_attention_num_buckets is 16"),
        ({"relative_attention_max_distance": 64}, "relative_attention_max_distance is 64"),
        ({"d_kv": 5}, "3 heads of 5 are not d_model=12"),
    ],
)
def test_a_published_model_of_another_form_is_refused(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        both(save(tmp_path, **settings))


def test_a_tokenizer_without_sentinels_is_refused(tmp_path):
    vocabulary = [(piece, -float(number)) for number, piece in enumerate(PIECES)]
    transformers.T5TokenizerFast(vocab=vocabulary, extra_ids=3).save_pretrained(tmp_path)
    view = T5.reads("text", {"pretrained": str(tmp_path)})
    with pytest.raises(ValueError, match="its tokenizer lacks <extra_id_3>"):
        view.fit([])


def test_published_sizes_are_those_of_the_folder(folder):
    t5, reference = both(folder)
    assert (len(t5.encoder.layers), len(t5.decoder.layers)) == (2, 3)
    assert t5.encoder.layers[0].feedforward[0].out_features == 20
    assert t5.table.weight.shape == (len(PIECES) + SENTINELS, 12)
    assert {module.p for module in t5.modules() if isinstance(module, torch.nn.Dropout)} == {0.1}
    assert reference.config.layer_norm_epsilon == t5.encoder.norm.eps
