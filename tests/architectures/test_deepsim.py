"""Deep similarity network: the score by plain numpy, and vectors that its training leaves alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from architectures.blocks.random_vectors import random_vector
from architectures.blocks.text_vectors import TextVectorBatch, TextVectors
from architectures.siamese.deepsim import DeepSimilarity
from harness.errors import ModelError
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import KeptModel, load
from harness.task import Row
from tasks.mini import answers
from tests.support.sessions import session

ROWS: list[Row] = [
    {name: row[name] for name in ("id", "first", "second", "group")} for row in list(answers.rows("test"))[:6]
]


@pytest.fixture
def network() -> DeepSimilarity:
    torch.manual_seed(1)
    made = DeepSimilarity(width=5, hidden=4, layers=2)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def test_both_texts_pass_the_same_layers_and_their_difference_is_read(network):
    x, y = torch.randn(2, 3, 5)
    weights = [parameter.detach().numpy() for parameter in network.parameters()]
    assert len(weights) == 6

    def tower(each: np.ndarray) -> np.ndarray:
        for weight, bias in (weights[:2], weights[2:4]):
            each = np.tanh(each @ weight.T + bias)
        return each

    difference = abs(tower(x.numpy()) - tower(y.numpy()))
    found = network(TextVectorBatch(x), TextVectorBatch(y)).detach().numpy()
    np.testing.assert_allclose(found, np.tanh(difference @ weights[4].T + weights[5]), atol=1e-5)


def test_of_a_text_with_itself_the_bias_alone_is_left(network):
    x = TextVectorBatch(torch.randn(3, 5))
    assert torch.allclose(network(x, x), torch.tanh(network.joined.bias).expand(3, -1))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeptModel]:
    """A small doc2vec and its child, as a run of the child alone keeps them."""
    folder = Path(tmp_path_factory.mktemp("results"))
    small = ("doc2vec.dims=6", "doc2vec.contexts=(1,0)", "doc2vec.epochs=2", "deepsim.hidden=8")
    planned = session(folder, "deepsim", tasks="wikiqa", max_train=200, keep=True, overrides=small)
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == ("doc2vec", "wikiqa")
    first = run_cell(parent, planned.settings)
    before = load(storage.place(folder, parent.key)).estimator.fitted_state()
    second = run_cell(child, planned.settings)
    assert (first.status, second.status) == ("ok", "ok"), (first.error, second.error)
    assert second.lineage[0]["key"] == parent.key and second.inputs[0]["name"] == "doc2vec"
    found = {cell.architecture: load(storage.place(folder, cell.key)) for cell in (parent, child)}
    after = found["doc2vec"].estimator.fitted_state()
    assert all(np.array_equal(a, b) for one, other in zip(before["tables"], after["tables"], strict=True)
               for a, b in zip(one, other, strict=True))  # fmt: skip
    return found


def test_texts_are_read_as_the_parent_gives_them_and_no_gradient_reaches_it(kept):
    """A kept child asks it about texts that it never saw."""
    child, parent = kept["deepsim"], kept["doc2vec"]
    assert child.model.encoder.tower[0][0].in_features == 12
    inputs = child.split(ROWS).collate(np.arange(len(ROWS))).inputs
    for side in ("first", "second"):
        wanted = parent.estimator.text_vectors([row[side] for row in ROWS])
        assert np.array_equal(inputs[side].vectors.numpy(), wanted) and not inputs[side].vectors.requires_grad
    own = [parameter.detach().numpy() for parameter in child.model.parameters()]
    tables = [table for model in child.view.vectors_of.__self__.models for table in (model.words, model.outputs)]
    assert not any(np.shares_memory(table, parameter) for table in tables for parameter in own)
    assert len(child.answers(ROWS)) == len(ROWS)


def test_without_a_parent_a_text_is_the_mean_of_the_vectors_of_its_words():
    view = TextVectors(dims=7)
    view.fit(["a b"])
    assert view.width == 7
    found = view.encode(["Dog bites dog", ["dog"], ""])["vectors"]
    dog, bites = random_vector("dog", 7), random_vector("bites", 7)
    np.testing.assert_allclose(found[0], (2 * dog + bites) / 3, rtol=1e-5)
    np.testing.assert_allclose(found[1], dog, rtol=1e-5)
    assert abs(dog - bites).max() > 0.1 and np.isfinite(found).all()


def test_random_vectors_belong_to_a_word_and_a_seed():
    assert np.array_equal(random_vector("dog", 4, seed=1), random_vector("dog", 4, seed=1))
    assert not np.array_equal(random_vector("dog", 4, seed=1), random_vector("dog", 4, seed=2))


def test_a_parent_without_vectors_of_texts_is_told():
    other = SimpleNamespace(estimator=None, description=SimpleNamespace(part=SimpleNamespace(architecture="lsa")))
    with pytest.raises(ModelError, match="lsa gives no vectors of texts, as doc2vec does"):
        DeepSimilarity.inherited_view(TextVectors(), "inputs", other)
