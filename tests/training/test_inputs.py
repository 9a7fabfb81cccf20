"""Input sources beside the table of words: what an encoder reads of a word, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness import registry
from harness.data.corpus import Corpus
from harness.objectives import Supervised
from harness.running import grid
from harness.settings import TrainingSettings
from harness.training.model import Model, build
from harness.views.words_and_characters import WordsAndCharacters
from tests.support.toy_corpus import toy_corpus

PLANTED = """
import torch
from harness.kinds import InputSource
from harness.registry import register_input

@register_input("{id}", name="Constant", paper="none", source="test", year=2026)
class Constant(InputSource):
    def __init__(self, view, value: float = 0.0, size: int = 1):
        super().__init__()
        self.value, self.size = value, size

    def forward(self, words):
        return torch.full((*words.ids.shape, self.size), self.value)
"""
DIMS = 6


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources that say the same of every word, and of padding too."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    for id in ("before", "after"):
        file = tmp_path / f"{id}.py"
        file.write_text(PLANTED.format(id=id))
        registry.add_plugin(file)


def made(corpus: Corpus, architecture: str, inputs: dict[str, Any], **training: Any) -> Model:
    """A small model of a registered architecture with given word vectors, without its dropout."""
    entry = registry.entry("architectures", architecture)
    cls, given = registry.load(entry), torch.randn(corpus.view.width, DIMS)
    settings = grid.without_dropouts(entry) | entry.tiny
    chosen = TrainingSettings(**training)
    return build(cls, corpus.problem, settings, corpus.view, corpus.target, DIMS, given, chosen, inputs)


def losses(model: Model, corpus: Corpus) -> list[float]:
    """Losses of a few steps on the same batches."""
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.05), []
    for start in range(0, 32, 8):
        batch = corpus.train.collate(np.arange(start, start + 8))
        loss = Supervised().at(model, model.read(batch.inputs), batch.target)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize(
    ("architecture", "gives"), [("kim_cnn_multichannel", "vector"), ("bilstm", "states"), ("avg_vectors", "vector")]
)
def test_a_source_of_zeros_leaves_results_as_they_are_without_it(architecture: str, gives: str) -> None:
    """Whatever a row with a source has more than one without comes from what the source says."""
    corpus = toy_corpus(view=WordsAndCharacters(min_count=1), gives=gives)
    plain = made(corpus, architecture, {})
    wide = made(corpus, architecture, {"before": {"version": 1, "value": 0.0, "size": 4}})
    weights, changed = plain.state_dict(), 0
    with torch.no_grad():
        for name, weight in wide.state_dict().items():
            changed += weight.shape != weights[name].shape
            weight[tuple(map(slice, weights[name].shape))] = weights[name]
    assert changed, "the encoder reads no more numbers than before"
    assert losses(wide.train(), corpus) == pytest.approx(losses(plain.train(), corpus), rel=1e-4)


def test_a_word_is_its_vector_then_each_source_by_name_then_the_mark() -> None:
    """In another order after loading, an encoder would read one source for the other; what stands
    at padding would be read by who looks at neighbours."""
    corpus = toy_corpus(view=WordsAndCharacters(min_count=1))
    inputs = {"before": {"version": 1, "value": 2.0, "size": 2}, "after": {"version": 1, "value": 3.0}}
    model = made(corpus, "kim_cnn_multichannel", inputs).eval()
    model.marked = ("text", "other")
    text, other = (corpus.train.collate(np.array(rows)).inputs["text"] for rows in ([0, 1], [2, 3]))
    read = model.read({"text": text, "other": other})["text"]
    for vectors, table in ((read.vectors, model.table.tuned), (read.static, model.table.static)):
        torch.testing.assert_close(vectors[..., :DIMS], table(text.ids))
        expected = torch.tensor([3.0, 2.0, 2.0]) * text.mask[..., None]
        assert torch.equal(vectors[..., DIMS:-1], expected)
        assert set(vectors[..., -1].unique().tolist()) == {0.0, 1.0}
    assert not text.mask.all(), "nothing is padded here"


def test_dropout_acts_on_what_sources_say_too() -> None:
    """Protocol equal drops a share of what encoders read; a source without it would have less
    noise than the table."""
    corpus = toy_corpus(view=WordsAndCharacters(min_count=1))
    inputs = {"before": {"version": 1, "value": 1.0, "size": 50}}
    model = made(corpus, "avg_vectors", inputs, dropout=0.5).train()
    text = corpus.train.collate(np.arange(4)).inputs["text"]
    said = model.read({"text": text})["text"].vectors[..., DIMS:][text.mask]
    assert set(said.unique().tolist()) == {0.0, 2.0} and 0.4 < (said == 0).float().mean() < 0.6


def test_a_word_that_is_read_as_unknown_in_training_keeps_its_characters() -> None:
    """So an encoder learns to rely on the spelling where the table knows nothing."""
    corpus = toy_corpus(view=WordsAndCharacters(min_count=1))
    model = made(corpus, "avg_vectors", {"before": {"version": 1}}, unknown_rate=0.99).train()
    model.table.once = torch.ones_like(model.table.once)
    seen = []
    model.sources["before"].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    text = corpus.train.collate(np.arange(4)).inputs["text"]
    model.read({"text": text})
    assert torch.equal(seen[0].ids, text.ids) and torch.equal(seen[0].characters, text.characters)
