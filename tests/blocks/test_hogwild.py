"""Lock-free steps: the random numbers by their published values, and what each thread is given."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from architectures.blocks import negative_sampling
from architectures.blocks.hogwild import Rates, fraction, learn_passes, rate_at, states
from architectures.feedforward import doc2vec, fasttext_sgd
from architectures.vectors import glove
from harness import registry
from harness.kinds import made


def test_random_numbers_are_those_of_splitmix64():
    """The first five that Rosetta Code lists for the seed 1234567."""
    state = np.array([1234567], np.uint64)
    listed = (
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    )
    assert [fraction(state) for _ in listed] == [number // 2**11 / 2**53 for number in listed]


def test_compiled_loops_are_kept_in_no_file():
    """Another user could plant one there, which would then run as ours."""
    fraction(np.array([1], np.uint64))
    assert fraction.nopython_signatures and fraction.stats.cache_path is None


def test_the_rate_falls_linearly():
    assert [rate_at(Rates(0.4, 0.2), number, 4) for number in range(4)] == pytest.approx([0.4, 0.35, 0.3, 0.25])


def test_each_pass_gives_all_examples_in_an_order_of_its_own_and_a_lower_rate():
    """The last source of a sorted corpus would otherwise be learnt at a rate of almost zero."""
    given: list[tuple[list[int], Rates, int]] = []

    def learn(order, rates, state):
        given.append((order.tolist(), rates, int(state[0])))

    learn_passes(learn, 20, 2, 0.4, 1, np.random.default_rng(0))
    orders, rates, seeds = zip(*given, strict=True)
    assert [sorted(order) for order in orders] == [list(range(20))] * 2 and orders[0] != orders[1]
    assert rates == (Rates(0.4, 0.2), Rates(0.2, 0.0)) and len({*seeds}) == 2


def test_threads_take_a_part_each_side_by_side():
    """Both of two wait until the other is there: one after the other they would wait for ever."""
    meeting = threading.Barrier(2, timeout=20)
    given: list[tuple[list[int], int]] = []

    def learn(order, rates, state):
        meeting.wait()
        given.append((order.tolist(), int(state[0])))

    learn_passes(learn, 21, 1, 0.4, 2, np.random.default_rng(0))
    (first, one), (second, other) = given
    assert sorted(first + second) == list(range(21)) and {len(first), len(second)} == {10, 11} and one != other
    with pytest.raises(ValueError, match="threads=0: at least one has to learn"):
        learn_passes(learn, 21, 1, 0.4, 0, np.random.default_rng(0))


def test_an_error_in_a_thread_ends_the_training():
    """Else a table that nothing was learnt into would count as a result."""

    def learn(order, rates, state):
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        learn_passes(learn, 4, 1, 0.1, 2, np.random.default_rng(0))


def test_states_differ_and_obey_the_seed():
    first, again = (states(3, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again) and len({*first[:, 0].tolist()}) == 3


@pytest.mark.parametrize(
    ("id", "type", "loop"),
    [
        ("skipgram", "text", negative_sampling.learn_windows),
        ("cbow", "text", negative_sampling.learn_windows),
        ("subword_vectors", "text", negative_sampling.learn_windows),
        ("glove", "text", glove.learn_cells),
        ("doc2vec", "classify", doc2vec.learn_texts),
        ("fasttext_sgd", "classify", fasttext_sgd.learn_texts),
        ("fasttext_sgd", "classify", fasttext_sgd.best_labels),
    ],
)
def test_nothing_is_compiled_within_a_measured_fit(id, type, loop):
    """Two seconds of compiling would make fastText a hundred times slower on a small corpus."""
    entry = registry.entry("architectures", id)
    system = made(registry.load(entry), type, 0, entry.tiny)
    system.prepare()
    compiled = len(loop.signatures)
    words = [f"one two three four five six {n}" for n in range(6)]
    rows = [{"id": str(n), "text": text, "label": str(n % 2)} for n, text in enumerate(words)]
    system.fit(rows, rows)
    system.predict([{"id": row["id"], "text": row["text"]} for row in rows])
    assert compiled and len(loop.signatures) == compiled
