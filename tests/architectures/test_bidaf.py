"""BiDAF against its equations word by word, with torch's own bidirectional layers as reference; and
its 'no answer' on mini SQuAD 2.0."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.reading.bidaf import BiDAF, Similarity
from harness import registry
from harness.data.corpus import Corpus
from harness.training.model import Model, build
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.oracles import recurrent, softmax_mean

WIDTH, SIZES = 5, {"hidden": 3, "character_size": 4, "filters": 3, "window": 3, "no_answer_hidden": 4}
PASSAGES = ["Anna lives in Velmar", "Ben", "the baker Ann"]
QUESTIONS = ["Where ?", "Who is Anna ?", "who"]


def reader_and_texts(self_attention: bool) -> tuple[BiDAF, WordCharacterBatch, WordCharacterBatch]:
    """A small reader, and three passages with their questions."""
    view = WordsAndCharacters(min_count=1)
    view.fit(PASSAGES + QUESTIONS)
    options = {"self_attention": True, "cell": "gru"} if self_attention else {}
    reader = small(BiDAF, WIDTH, view, stretch=2.5, **SIZES, **options)
    batches = [view.collate(view.encode(texts), [0, 1, 2]) for texts in (PASSAGES, QUESTIONS)]
    passages, questions = (batch._replace(vectors=torch.randn(*batch.ids.shape, WIDTH)) for batch in batches)
    return reader, passages, questions


def similarity(layer: Similarity, h: Tensor, u: Tensor) -> Tensor:
    """w . [h; u; h * u] of one pair."""
    return torch.cat([layer.first.weight[0], layer.second.weight[0], layer.product]) @ torch.cat([h, u, h * u])


def highway(reader: BiDAF, x: Tensor) -> Tensor:
    for transform, gate in zip(reader.highway.transforms, reader.highway.gates, strict=True):
        g = torch.sigmoid(gate.weight @ x + gate.bias)
        x = g * torch.relu(transform.weight @ x + transform.bias) + (1 - g) * x
    return x


def by_hand(
    reader: BiDAF, passage: WordCharacterBatch, question: WordCharacterBatch, row: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Start and end scores (T,) and the 'no answer' score of one example without its padding."""
    texts = []
    for text in (passage, question):
        spelt = reader.spelling(text.characters[row], text.character_mask[row])
        words = [highway(reader, torch.cat([text.vectors[row, t], spelt[t]])) for t in range(int(text.lengths[row]))]
        texts.append(recurrent(reader.contextual, words))
    h, u = texts
    s = [[similarity(reader.similarity, h_t, u_j) for u_j in u] for h_t in h]
    of_passage = softmax_mean([max(scores) for scores in s], h)
    g = []
    for h_t, scores in zip(h, s, strict=True):
        of_question = softmax_mean(scores, u)
        g.append(torch.cat([h_t, of_question, h_t * of_question, h_t * of_passage]))
    if reader.within is not None:
        g = self_attention(reader, g)
    m = recurrent(reader.modelling, g)
    last = recurrent(reader.ending, m)
    start = torch.stack([reader.start.weight[0] @ torch.cat(pair) for pair in zip(g, m, strict=True)])
    end = torch.stack([reader.end.weight[0] @ torch.cat(pair) for pair in zip(g, last, strict=True)])
    none = reader.no_answer(torch.cat([softmax_mean(start, m), softmax_mean(end, last)]))[0]
    return start, end, none


def self_attention(reader: BiDAF, g: list[Tensor]) -> list[Tensor]:
    """Each word's compressed vector plus what it makes of the other words."""
    layer, found = reader.within, []
    x = [torch.relu(layer.compress(g_t)) for g_t in g]
    r = recurrent(layer.recurrence, x)
    for t in range(len(g)):
        others = [k for k in range(len(g)) if k != t]
        a = torch.zeros_like(r[t])
        if others:
            a = softmax_mean([similarity(layer.similarity, r[t], r[k]) for k in others], r[others])
        found.append(x[t] + torch.relu(layer.merge(torch.cat([r[t], a, r[t] * a]))))
    return found


@pytest.mark.parametrize("self_attention", [False, True])
def test_a_padded_batch_is_each_example_written_out_word_by_word(self_attention):
    """Wrong similarity or softmax axis, one M for both scores, attention to oneself or to padding:
    each gives other numbers."""
    reader, passages, questions = reader_and_texts(self_attention)
    scores = reader(passages, questions)
    for row, length in enumerate(passages.lengths.tolist()):
        start, end, none = by_hand(reader, passages, questions, row)
        torch.testing.assert_close(scores.start[row, :length], start, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(scores.end[row, :length], end, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(scores.no_answer[row], none, rtol=1e-4, atol=1e-5)
        assert scores.start[row, length:].isneginf().all() and scores.end[row, length:].isneginf().all()


def test_the_attended_passage_is_one_vector_for_all_positions():
    """Query-to-context attention asks which passage words matter to ANY question word: h * h~ has
    one h~ per example."""
    torch.manual_seed(0)
    reader, _, _ = reader_and_texts(self_attention=False)
    h, u = torch.randn(2, 7, 6), torch.randn(2, 4, 6)
    joined = reader.attend(h, mask_of([7, 7]), u, mask_of([4, 4]))
    attended = joined[..., 18:] / h
    torch.testing.assert_close(attended, attended[:, :1].expand_as(attended), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(attended[0], attended[1], atol=0.1)


def squad2(architecture: str) -> tuple[Model, Corpus]:
    """A tiny model for mini SQuAD 2.0, a third of whose questions have no answer, and the
    corpus."""
    entry, task = registry.entry("architectures", architecture), registry.entry("tasks", "squad2")
    cls, settings = registry.load(entry), entry.hyperparameters | entry.tiny
    view = cls.view_for(task, settings)
    corpus = Corpus(registry.load(task)(task), "mini", None, view, cls.output_form(), max_train=64)
    torch.manual_seed(0)
    return build(cls, corpus.problem, settings, view, corpus.target, 8), corpus


@pytest.mark.parametrize("architecture", ["bidaf", "bidaf_self_attention"])
def test_the_readers_own_no_answer_score_is_learnt_and_decides_on_mini_squad2(architecture):
    """The head has a scalar for readers without a score: were it used, all questions would be
    judged by one number."""
    model, corpus = squad2(architecture)
    batch = corpus.train.collate(torch.arange(12).numpy())
    model.loss(batch).backward()
    assert all(parameter.grad.any() for parameter in model.encoder.no_answer.parameters())
    assert model.head.no_answer.grad is None
    model.eval()
    with torch.no_grad():
        scores = model(batch.inputs).no_answer
        assert scores.std() > 0
        for bias, expected in ((50.0, 12), (-50.0, 0)):
            model.encoder.no_answer[-1].bias.fill_(bias)
            assert model.predict(batch, corpus.train).count("") == expected
