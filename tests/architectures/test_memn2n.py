"""The mechanism of end-to-end memory networks: position encoding, soft hops over the facts with
their ages, and tied tables."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.memory.memn2n import MemN2N, position_encoded
from harness import registry
from harness.views.facts import FactBatch, Facts
from tests.support.oracles import softmax_mean
from tests.support.pairs import shipped
from tests.support.same import assert_same

STORIES = (["joe went home", "ann went out", "joe slept"], ["ann slept"])
QUESTIONS = ("who slept", "where went ann home")
ANSWERS = ["home", "yes", "ann,joe", ""]
SIZE = 4
IDS = ("memn2n", "memn2n_layerwise")


def view(most: int = 6) -> Facts:
    facts = Facts(min_count=1, most=most)
    facts.fit([list(story) for story in STORIES] + [[q] for q in QUESTIONS])
    return facts


def batch(facts: Facts, texts: list[list[str]]) -> FactBatch:
    columns = facts.encode(texts)
    return facts.collate(columns, torch.arange(len(texts)).numpy())


def model_of(id: str = "memn2n", most: int = 6, **options) -> tuple[MemN2N, FactBatch, FactBatch]:
    """The model of an id, with weights far from its start deviation of 0.1, and a batch."""
    facts = view(most)
    model = shipped(id, facts.width, ANSWERS, facts, stretch=10.0, **{"size": SIZE} | options)
    return model, batch(facts, [list(s) for s in STORIES]), batch(facts, [[q] for q in QUESTIONS])


def encoded_by_hand(table: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Section 4.1, element by element, of the words of one sentence."""
    vectors = [table[id] for id, real in zip(ids, mask, strict=True) if real]
    size, words = len(vectors[0]), len(vectors)
    total = torch.zeros(size)
    for j, vector in enumerate(vectors, 1):
        for k in range(1, size + 1):
            total[k - 1] += ((1 - j / words) - (k / size) * (1 - 2 * j / words)) * vector[k - 1]
    return total


def tables(model: MemN2N, id: str, hops: int) -> tuple[Tensor, list[tuple[Tensor, ...]], Tensor, Tensor]:
    """Table B of the question, tables A, T_A, C and T_C of each hop, H, and the answers' rows of W,
    as section 2.2 ties them."""
    words, times = ([table.weight for table in group] for group in (model.words, model.times))
    if id == "memn2n":
        tied = [(words[k], times[k], words[k + 1], times[k + 1]) for k in range(hops)]
        return words[0], tied, torch.eye(SIZE), words[hops][model.answers]
    tied = [(words[0], times[0], words[1], times[1])] * hops
    return model.question.weight, tied, model.carry.weight, model.output.weight


def answered_by_hand(model: MemN2N, id: str, hops: int, told: FactBatch, asked: FactBatch) -> Tensor:
    """Scores of the answers to one question about one story: equations 1 to 3 and section 2.2."""
    first, hop_tables, carried, scoring = tables(model, id, hops)
    state = encoded_by_hand(first, asked.ids[0], asked.mask[0])
    count = int(told.fact_mask.sum())
    for a, time_a, c, time_c in hop_tables:
        scores, outputs = [], []
        for i in range(count):
            age = count - 1 - i
            scores.append(state @ (encoded_by_hand(a, told.ids[i], told.mask[i]) + time_a[age]))
            outputs.append(encoded_by_hand(c, told.ids[i], told.mask[i]) + time_c[age])
        state = carried @ state + softmax_mean(scores, outputs)
    return scoring @ state


def test_position_encoding_of_two_words_and_two_features_is_the_papers():
    """l_11 = .5, l_21 = .5, l_12 = .5, l_22 = 1 for d = J = 2; padding behind the words changes
    nothing."""
    unit = torch.eye(2)
    for mask in (torch.tensor([True, True]), torch.tensor([True, True, False])):
        words = torch.full((len(mask), 2), 7.0)
        for j, k, expected in ((0, 0, 0.5), (0, 1, 0.5), (1, 0, 0.5), (1, 1, 1.0)):
            words[:2] = 0
            words[j] = unit[k]
            assert position_encoded(words, mask)[k].item() == pytest.approx(expected)


def test_position_encoding_of_one_word_is_the_papers():
    """l_k1 = (1 - 1) - (k/3)(1 - 2) = k/3; a sentence without words is zeros."""
    word = torch.tensor([[1.0, 2.0, 3.0]])
    expected = torch.tensor([1 / 3, 2 * 2 / 3, 3 * 3 / 3])
    torch.testing.assert_close(position_encoded(word, torch.tensor([True])), expected)
    assert not position_encoded(word, torch.tensor([False])).any()


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("hops", [1, 3])
def test_a_batch_is_each_story_written_out(id, hops):
    """An id wired to the other tying, a wrong table in a hop, facts counted from the wrong end,
    padding in the softmax, or a missing H would show here."""
    model, facts, questions = model_of(id, hops=hops)
    for row, found in enumerate(model(facts, questions)):
        told, asked = (FactBatch(*(field[row] for field in part)) for part in (facts, questions))
        assert_same(found, answered_by_hand(model, id, hops, told, asked), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("id", IDS)
def test_hops_ids_and_sizes_have_as_many_numbers_as_the_paper_says(id):
    """Adjacent: K + 1 tables, the last of which names the answers, with rows of their own for those
    that no story says. Layer-wise: A, C, B, H and W, whatever the number of hops."""
    for hops in (1, 2, 5):
        model, _, _ = model_of(id, hops=hops)
        words, times, size, answers = view().width, view().most, SIZE, len(ANSWERS)
        expected = {
            "memn2n": (hops + 1) * (words + times) * size + answers * size,
            "memn2n_layerwise": (3 * words + 2 * times) * size + size * size + answers * size,
        }
        assert sum(parameter.numel() for parameter in model.parameters()) == expected[id]


@pytest.mark.parametrize("id", IDS)
def test_padding_of_words_and_of_facts_is_invisible(id):
    """A story must be answered alike beside longer ones; what stands at padding is a word here."""
    model, facts, questions = model_of(id)

    def padded(part: FactBatch, facts: int) -> FactBatch:
        """Two more words at each fact, and so many more facts."""
        ids = F.pad(part.ids.where(part.mask, 3), (0, 2, 0, facts), value=3)
        return FactBatch(ids, F.pad(part.mask, (0, 2, 0, facts)), F.pad(part.fact_mask, (0, facts)))

    assert_same(model(padded(facts, 3), padded(questions, 0)), model(facts, questions))


@pytest.mark.parametrize("id", IDS)
def test_all_weights_start_normal_with_a_deviation_of_a_tenth(id):
    """From ten times as much, the first softmax picks one fact before anything is learned."""
    facts = view()
    model = shipped(id, facts.width, ANSWERS, facts, stretch=None, size=400)
    for name, parameter in model.named_parameters():
        assert parameter.mean().abs() < 0.02, name
        assert parameter.std().item() == pytest.approx(0.1, rel=0.1), name
        assert parameter.abs().max() > 0.25, name


def test_an_answer_that_stories_say_shares_its_row_and_others_have_their_own():
    model, _, _ = model_of()
    home, yes, both, empty = model.answers.tolist()
    assert home == view().vocabulary.ids(["home"])[0]
    assert len({yes, both, empty}) == 3 and min(yes, both, empty) >= view().width


@pytest.mark.parametrize("tying", ["layer-wise", "Adjacent", ""])
def test_another_tying_is_refused_by_the_names_of_both(tying):
    """A slip of the pen would train the layer-wise model in the adjacent one's name."""
    with pytest.raises(ValueError, match=f"tying={tying!r} is neither adjacent nor layerwise"):
        model_of(tying=tying)


def test_noise_makes_facts_older_in_training_alone_and_keeps_their_order():
    model, facts, _ = model_of(noise=0.9)
    plain = model.ages(facts.fact_mask)
    assert plain.tolist() == [[2, 1, 0], [0, 0, 0]]
    model.train()
    noisy = model.ages(facts.fact_mask)
    assert (noisy[0].diff() < 0).all() and (noisy >= plain).all() and (noisy > plain).any()


@pytest.mark.parametrize("id", IDS)
def test_a_tenth_of_the_facts_is_told_after_an_empty_slot(id):
    """Noise that is never drawn, or drawn nine times in ten, leaves the order of the facts."""
    model, _, _ = model_of(id, most=60)
    ages = model.train().ages(torch.ones(500, 41, dtype=torch.bool))
    steps = -ages.diff()
    assert set(steps.unique().tolist()) == {1, 2}
    assert (steps == 2).float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert not ages[:, -1].any()
    assert not (
        model_of(id, most=60, noise=0.0)[0].train().ages(torch.ones(1, 41, dtype=torch.bool)).diff() != -1
    ).any()


def test_facts_older_than_the_table_share_its_last_row():
    model, _, _ = model_of()
    assert model.ages(torch.ones(1, 8, dtype=torch.bool)).tolist() == [[5, 5, 5, 4, 3, 2, 1, 0]]


@pytest.mark.parametrize("id", IDS)
def test_the_fifty_newest_facts_are_read(id):
    """The paper's memory; most questions ask for the end of a story."""
    facts = registry.load(registry.entry("architectures", id)).view
    assert facts.read([f"fact {number}" for number in range(70)]) == [["fact", str(number)] for number in range(20, 70)]
