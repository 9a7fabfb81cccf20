"""The mechanism of cross-lingual attention: a document and its translation, each the sum of its
words' states under the attention over words and over sentences of its language's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.attention.xling_att import (
    CrossLingualAttention,
    Language,
    TwoLanguageBatch,
    TwoLanguages,
    enciphered,
)
from harness import registry
from harness.errors import ModelError
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import load
from tests.support.batches import random_documents
from tests.support.models import small
from tests.support.oracles import linear, recurrent, softmax_mean
from tests.support.same import assert_same
from tests.support.sessions import session

WIDTH = 3
OURS, THEIRS = [[4, 1, 2], [5], [2, 3]], [[2, 6, 1], [3], [4, 1]]
"""Words of each sentence of each document, in either language."""


@pytest.fixture
def model() -> CrossLingualAttention:
    return small(CrossLingualAttention, WIDTH, hidden=2, context=5)


def documents() -> tuple[TwoLanguageBatch, list[list[list[Tensor]]]]:
    """A batch with large numbers at padding, and the sentences of each language's documents."""
    made = [random_documents(lengths, seed, WIDTH) for seed, lengths in enumerate((OURS, THEIRS), 1)]
    words = max(batch.ids.shape[2] for batch, _ in made)
    room = [words - batch.ids.shape[2] for batch, _ in made]
    ids, mask = (
        torch.stack([F.pad(getattr(batch, name), (0, more)) for (batch, _), more in zip(made, room, strict=True)], 1)
        for name in ("ids", "mask")
    )
    vectors = [F.pad(batch.vectors, (0, 0, 0, more), value=50.0) for (batch, _), more in zip(made, room, strict=True)]
    sentences = torch.stack([batch.sentence_mask for batch, _ in made], dim=1)
    read = TwoLanguageBatch(ids, mask, sentences, torch.stack(vectors, dim=1))
    return read, [sentences for _, sentences in made]


def vector_of(language: Language, document: list[Tensor]) -> Tensor:
    """A document's vector, from the vectors (n, width) of each of its sentences: no state of a
    sentence knows another sentence."""

    def score(attention: torch.nn.Module, seen: Tensor) -> Tensor:
        return torch.tanh(linear(attention.hidden, seen)) @ attention.context

    hidden, ends, sums = language.size // 2, [], []
    for words in document:
        states = recurrent(language.recurrence, words)
        seen = [torch.cat([word, state]) for word, state in zip(words, states, strict=True)]
        sums.append(softmax_mean([score(language.words, each) for each in seen], states))
        ends.append(torch.cat([states[-1][:hidden], states[0][hidden:]]))
    return softmax_mean([score(language.sentences, each) for each in ends], sums)


def test_a_document_is_the_sum_of_its_words_states_in_each_language(model):
    """Written out, in values and gradients: a recurrence over sentences, attention to states alone,
    shared weights, padding that is attended to, or one language for both would give other ones."""
    batch, languages = documents()
    expected = [
        torch.cat([vector_of(*each) for each in zip(model.languages, both, strict=True)])
        for both in zip(*languages, strict=True)
    ]
    assert_same(model(batch), torch.stack(expected), rtol=1e-4, atol=1e-5)
    assert model.size == model(batch).shape[1] == 8


def test_the_order_of_sentences_changes_nothing(model):
    """Nothing reads on from one sentence to the next: a second recurrence would."""
    batch, _ = documents()
    there = [getattr(batch, name)[:1, :, : len(OURS[0])] for name in ("ids", "mask", "sentence_mask", "vectors")]
    assert there[2].all(), "the first document has as many sentences in both languages"
    turned = [each[:, :, [2, 0, 1]] for each in there]
    torch.testing.assert_close(model(TwoLanguageBatch(*turned)), model(TwoLanguageBatch(*there)))


@pytest.mark.parametrize("language", [0, 1])
def test_a_language_that_is_not_asked_learns_nothing(model, language):
    """Each half of the vector is of one language: without the other's, a document still has its
    own."""
    half = slice(4 * language, 4 * language + 4)
    model(documents()[0])[:, half].sum().backward()
    for number in range(2):
        own = [p.grad is not None and bool(p.grad.any()) for p in model.languages[number].parameters()]
        assert any(own) == (number == language)


def fitted(*texts: str) -> TwoLanguages:
    view = TwoLanguages(min_count=1)
    view.fit(list(texts))
    return view


def test_without_a_translator_sentences_are_in_a_made_up_language():
    """Word for word and back to front, so that nothing of their order is left."""
    assert enciphered(["good", "film"]) == ["mlif", "doog"]
    view = fitted("good film. Dull plot.")
    assert {*view.vocabulary.words} == {"good", "film", ".", "dull", "plot", "mlif", "doog", "llud", "tolp"}
    batch = view.collate(view.encode(["good film. Dull plot.", "plot"]), np.arange(2))
    names = ["", "?", *view.vocabulary.words]
    told = [[[names[each] for each in words if each] for words in language] for language in batch.ids[0].tolist()]
    assert told == [
        [["good", "film", "."], ["dull", "plot", "."]],
        [[".", "mlif", "doog"], [".", "tolp", "llud"]],
    ]
    assert batch.sentence_mask.tolist() == [[[True, True]] * 2, [[True, False]] * 2]
    assert view.lengths(view.encode(["good film. Dull plot.", "plot"])).tolist() == [12, 2]


class Translator:
    """One that says nothing to "plot", and writes three words for anything else."""

    description = SimpleNamespace(type="translate")

    def answers(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"prediction": "" if row["source"] == "plot" else f"das ist {row['source'][0]}"} for row in rows]


def test_sentences_are_translated_one_by_one():
    """A translation may be of another length; one without a word is an empty word."""
    view = TwoLanguages(min_count=1)
    view = CrossLingualAttention.inherited_view(view, "inputs", Translator())
    view.fit(["good film. Dull."])
    assert {"das", "ist", "g", "d"} <= {*view.vocabulary.words}
    batch = view.collate(view.encode(["good film. Dull.", "plot"]), np.arange(2))
    assert batch.mask.sum(-1).tolist() == [[[3, 2], [3, 3]], [[1, 0], [1, 0]]]


def test_a_translation_is_cut_as_a_sentence_is():
    view = TwoLanguages(min_count=1, max_words=2)
    view.translator = Translator()
    assert view.translated([["good", "film"], ["plot"]]) == [["das", "ist"], [""]]


def test_a_parent_that_translates_nothing_is_told():
    other = SimpleNamespace(description=SimpleNamespace(type="classify", part=SimpleNamespace(architecture="bilstm")))
    with pytest.raises(ModelError, match="bilstm translates nothing, as attn_seq2seq does"):
        CrossLingualAttention.inherited_view(TwoLanguages(), "inputs", other)


def test_a_run_trains_the_translator_first_and_a_kept_child_asks_it(tmp_path: Path):
    assert registry.entry("architectures", "xling_att").parents == {"inputs": "attn_seq2seq@multi30k"}
    sizes = ("attn_seq2seq.encoder_hidden=4", "attn_seq2seq.hidden=4", "attn_seq2seq.symbol_size=4")
    planned = session(tmp_path, "xling_att", keep=True, overrides=[*sizes, "xling_att.hidden=4"])
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == ("attn_seq2seq", "multi30k")
    records = [run_cell(cell, planned.settings) for cell in (parent, child)]
    assert [record.status for record in records] == ["ok", "ok"], [record.error for record in records]
    found = load(storage.place(tmp_path, child.key))
    assert found.view.translator.description.part.architecture == "attn_seq2seq"
    assert len(found.answers([{"id": "0", "text": "a fine film"}])) == 1
