"""The mechanism of end-to-end memory networks: position encoding, soft hops over the facts with
their ages, and tied tables."""

from __future__ import annotations

import pytest
import torch

from architectures.memory.memn2n import MemN2N, position_encoded
from harness.views.facts import FactBatch, Facts
from tests.support.models import small
from tests.support.oracles import softmax_mean

STORIES = (["joe went home", "ann went out", "joe slept"], ["ann slept"])
QUESTIONS = ("who slept", "where went ann home")
ANSWERS = ["home", "yes", "ann,joe", ""]


def view() -> Facts:
    facts = Facts(min_count=1, most=6)
    facts.fit([list(story) for story in STORIES] + [[q] for q in QUESTIONS])
    return facts


def batch(facts: Facts, texts: list[list[str]]) -> FactBatch:
    columns = facts.encode(texts)
    return facts.collate(columns, torch.arange(len(texts)).numpy())


def model_of(**options) -> tuple[MemN2N, FactBatch, FactBatch]:
    facts = view()
    model = small(MemN2N, facts.width, ANSWERS, facts, size=4, stretch=10.0, **options)  # from a deviation of 0.1
    return model, batch(facts, [list(s) for s in STORIES]), batch(facts, [[q] for q in QUESTIONS])


def encoded_by_hand(vectors: list[torch.Tensor]) -> torch.Tensor:
    """Section 4.1, element by element."""
    size, words = len(vectors[0]), len(vectors)
    total = torch.zeros(size)
    for j, vector in enumerate(vectors, 1):
        for k in range(1, size + 1):
            total[k - 1] += ((1 - j / words) - (k / size) * (1 - 2 * j / words)) * vector[k - 1]
    return total


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


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
@pytest.mark.parametrize("hops", [1, 3])
def test_a_batch_is_each_story_written_out(tying, hops):
    """A wrong table in a hop, facts counted from the wrong end, padding in the softmax, or a
    missing H would show here."""
    model, facts, questions = model_of(hops=hops, tying=tying)
    found = model(facts, questions)
    for row, told in enumerate(STORIES):
        count = len(told)

        def words(table, ids, mask):
            return encoded_by_hand([table.weight[i] for i, real in zip(ids, mask, strict=True) if real])

        asked = model.words[0] if tying == "adjacent" else model.question
        state = words(asked, questions.ids[row, 0], questions.mask[row, 0])
        for hop in range(hops):
            first, second = (hop, hop + 1) if tying == "adjacent" else (0, 1)
            ages = [count - 1 - i for i in range(count)]
            m = [
                words(model.words[first], facts.ids[row, i], facts.mask[row, i]) + model.times[first].weight[ages[i]]
                for i in range(count)
            ]
            c = [
                words(model.words[second], facts.ids[row, i], facts.mask[row, i]) + model.times[second].weight[ages[i]]
                for i in range(count)
            ]
            read = softmax_mean([state @ fact for fact in m], c)
            state = read + (state if tying == "adjacent" else model.carry.weight @ state)
        expected = (
            state @ model.words[-1].weight[model.answers].T if tying == "adjacent" else model.output.weight @ state
        )
        torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-5)


def test_an_answer_that_stories_say_shares_its_row_and_others_have_their_own():
    model, _, _ = model_of()
    home, yes, both, empty = model.answers.tolist()
    assert home == view().vocabulary.ids(["home"])[0]
    assert len({yes, both, empty}) == 3 and min(yes, both, empty) >= view().width


def test_adjacent_tying_has_a_table_more_than_hops_and_layerwise_two():
    assert len(model_of(hops=3)[0].words) == 4
    assert len(model_of(hops=3, tying="layerwise")[0].words) == 2


def test_noise_makes_facts_older_in_training_alone_and_keeps_their_order():
    model, facts, _ = model_of(noise=0.9)
    plain = model.ages(facts.fact_mask)
    assert plain.tolist() == [[2, 1, 0], [0, 0, 0]]
    model.train()
    torch.manual_seed(0)
    noisy = model.ages(facts.fact_mask)
    assert (noisy[0].diff() < 0).all() and (noisy >= plain).all() and (noisy > plain).any()


def test_facts_older_than_the_table_share_its_last_row():
    model, _, _ = model_of()
    assert model.ages(torch.ones(1, 8, dtype=torch.bool)).tolist() == [[5, 5, 5, 4, 3, 2, 1, 0]]
