"""Nearest-neighbour language model: the search against all distances, the mixture by a loop, and
its parent's probabilities where the neighbours have no share."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from architectures.memory import knn_lm
from architectures.memory.knn_lm import NearestNeighbourLanguageModel, nearest, read
from harness.errors import ModelError
from harness.saved_models import storage
from harness.saved_models.model import KeptModel, load
from harness.task import Row
from tasks.mini import articles
from tests.support.sessions import carried_out, session

ROWS: list[Row] = list(articles.rows("train"))[:40]
ASKED: list[Row] = list(articles.rows("test"))[:4]


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("at_once", [7, 1000])
@pytest.mark.parametrize("count", [4, 50])
def test_a_search_in_blocks_finds_what_all_distances_show(monkeypatch, at_once, count):
    """Also where more neighbours are wanted than there are."""
    monkeypatch.setattr(knn_lm, "KEYS_AT_ONCE", at_once)
    queries, keys = numbers(5, 3), numbers(23, 3, seed=1).half()
    distances, places = nearest(queries, keys, count)
    table = [[sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) for k in keys.tolist()] for q in queries.tolist()]
    for row, found, where in zip(table, distances, places, strict=True):
        assert where.tolist() == sorted(range(23), key=row.__getitem__)[:count]
        assert found.tolist() == pytest.approx(sorted(row)[:count], abs=1e-5)


def test_a_text_without_words_is_no_key():
    model = NearestNeighbourLanguageModel(neighbours=2)
    model.fit([{"id": "0", "text": "a b a"}, {"id": "1", "text": ""}], [])
    assert model.keys.shape == (3, 32)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeptModel]:
    """A small parent and its child, as a run of the child alone keeps them."""
    folder = Path(tmp_path_factory.mktemp("results"))
    small = ("rnn_lm_lstm.hidden=12", "rnn_lm_lstm.layers=1", "knn_lm.neighbours=9")
    records = carried_out(session(folder, "knn_lm", tasks="wikitext2", keep=True, overrides=small))
    assert [record.status for record in records.values()] == ["ok", "ok"], [r.error for r in records.values()]
    parent, child = records["rnn_lm_lstm"], records["knn_lm"]
    assert child.lineage[0]["key"] == parent.key and child.inputs[0]["name"] == "rnn_lm_lstm"
    return {name: load(storage.place(folder, record.key)) for name, record in records.items()}


def child(parent: KeptModel | None, **settings) -> NearestNeighbourLanguageModel:
    system = NearestNeighbourLanguageModel(**settings)
    if parent is not None:
        system.inherit("inputs", parent, ROWS)
    system.fit(ROWS, [])
    return system


def test_without_a_share_of_the_neighbours_it_is_its_parent(kept):
    parent = kept["rnn_lm_lstm"]
    wanted = [answer["prediction"] for answer in parent.answers(ASKED)]
    system = child(parent, share=0.0)
    for found, expected in zip(system.predict(ASKED), wanted, strict=True):
        assert found == pytest.approx(expected, rel=1e-5)
    assert system.vocabulary == parent.target.vocabulary


def test_a_text_is_read_stretch_by_stretch_as_in_one_piece(kept, monkeypatch):
    """The state goes on from stretch to stretch."""
    parent = kept["rnn_lm_lstm"]
    short = read(parent, ASKED[0])
    monkeypatch.setattr(parent.model.head, "stretch", 10**6)
    whole = read(parent, ASKED[0])
    assert len(short.words) == len(ASKED[0]["text"]) > 35
    for one, other in zip(short, whole, strict=True):
        assert torch.allclose(one.float(), other.float(), atol=1e-5)


def test_probabilities_are_those_of_a_loop_over_the_memory(kept):
    """Every place of training is a key, the word that follows its value."""
    system = child(kept["rnn_lm_lstm"], neighbours=9, share=0.4)
    memory = [(key, word) for row in ROWS for key, word in zip(*_states(system, row), strict=True)]
    assert len(memory) == sum(len(row["text"]) for row in ROWS)
    text = system.read(ASKED[0])
    total = 0.0
    for word, state, log in zip(*text, strict=True):
        table = sorted((((key.half().double() - state.double()) ** 2).sum().item(), int(w)) for key, w in memory)[:9]
        weights = [math.exp(-distance) for distance, _ in table]
        own = sum(weight for weight, (_, w) in zip(weights, table, strict=True) if w == word)
        total += math.log(0.4 * own / sum(weights) + 0.6 * math.exp(log))
    assert system.predict(ASKED[:1])[0] == pytest.approx([total, len(text.words)], rel=1e-4)


def _states(system: NearestNeighbourLanguageModel, row: Row) -> tuple[torch.Tensor, torch.Tensor]:
    found = system.read(row)
    return found.states, found.words


def test_neighbours_at_one_distance_give_each_word_its_share():
    """And the nearest alone, where the others are far, its own word."""
    system = NearestNeighbourLanguageModel(neighbours=100)
    system.keys, system.values = torch.zeros(8, 2).half(), torch.tensor([3, 3, 3, 5, 5, 6, 6, 6])
    words = torch.tensor([3, 5, 6, 4])
    assert system.of_neighbours(words, torch.ones(4, 2)).tolist() == pytest.approx([3 / 8, 2 / 8, 3 / 8, 0])
    system.keys[3] = 1
    near = system.of_neighbours(words, torch.ones(4, 2))
    assert near[1].item() == pytest.approx((1 + math.exp(-2)) / (1 + 7 * math.exp(-2)))


def test_a_context_of_training_finds_itself(kept):
    system = child(kept["rnn_lm_lstm"])
    found = system.read(ROWS[2])
    assert nearest(found.states, system.keys, 1)[0].max() < 1e-3
    begin = sum(len(row["text"]) for row in ROWS[:2])
    assert begin + 20 in nearest(found.states[20:21], system.keys, 5)[1]


def test_a_kept_child_asks_its_parent_about_new_texts(kept):
    """And answers as it did, from a folder that has its memory alone."""
    loaded = kept["knn_lm"]
    assert loaded.estimator.parent is not None and loaded.estimator.neighbours == 9
    answers = [answer["prediction"] for answer in loaded.answers(ASKED)]
    fresh = NearestNeighbourLanguageModel(neighbours=9)
    fresh.parent = loaded.estimator.parent
    fresh.restore_fitted(loaded.estimator.fitted_state())
    assert answers == fresh.predict(ASKED)
    assert set(loaded.estimator.fitted_state()) == {"keys", "values", "parameter_count"}


def test_without_a_parent_words_have_their_shares_and_near_words_make_the_state():
    system = child(None, neighbours=3)
    words = [word for row in ROWS for word in row["text"]]
    found = system.read({"id": "1", "text": ["The", "river", "Nowhere", "."]})
    share = (words.count("river") + 1) / (len(words) + len(set(words)) + 1)
    assert found.logs[1].item() == pytest.approx(math.log(share))
    assert found.words[2] == system.vocabulary.index("<unk>")
    assert not found.states[0].any()
    the = found.states[1]
    river = found.states[2] - the / 2
    assert torch.allclose(system.read({"id": "2", "text": ["river", "The", "."]}).states[2], river / 2 + the)


def test_a_parent_without_states_is_told():
    """Counts of n-grams have none, and a classifier's are of another kind."""
    for model in (None, SimpleNamespace(encoder=torch.nn.Linear(1, 1))):
        other = SimpleNamespace(model=model, description=SimpleNamespace(part=SimpleNamespace(architecture="other")))
        with pytest.raises(ModelError, match="other is no language model"):
            NearestNeighbourLanguageModel().inherit("inputs", other, [])
