"""BiLSTM-CRF on CoNLL-2003 (the mini corpus where it is not at hand): sentences a second in
training, beside how it is usually written.

That is one ``nn.LSTM`` over packed sequences, pytorch-crf, torch's Adam as it comes, and shuffled
batches padded by ``pad_sequence``, drawn without regard to length. Sizes, weights at the beginning
and sentences are the same; one round is one pass over them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchcrf
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

from architectures.tagging.bilstm_crf import BiLSTMCRF
from harness import registry
from harness.data.batches import Batches
from harness.data.corpus import Corpus
from harness.training.model import Model, build
from harness.training.optimizers import optimizer
from harness.training.protocols import EQUAL

SENTENCES = 320
WIDTH, HIDDEN = EQUAL.vector_dims, 300

Sentence = tuple[Tensor, Tensor]


@pytest.fixture(scope="module")
def corpus(corpora_if_any: Path | None) -> Corpus:
    """All of the training split, so that the vocabulary is as large as in training."""
    torch.set_num_threads(1)
    entry = registry.entry("tasks", "conll2003_ner")
    view = BiLSTMCRF.view_for(entry, {})
    tier = "local" if corpora_if_any else "mini"
    return Corpus(registry.load(entry)(entry), tier, corpora_if_any, view, BiLSTMCRF.output_form())


class UsualTagger(nn.Module):
    """Embedding, packed BiLSTM, linear layer, CRF."""

    def __init__(self, words: int, labels: int):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH, padding_idx=0)
        self.lstm = nn.LSTM(WIDTH, HIDDEN, bidirectional=True, batch_first=True)
        self.linear = nn.Linear(2 * HIDDEN, labels)
        self.crf = torchcrf.CRF(labels, batch_first=True)

    def forward(self, sentences: list[Tensor], tags: list[Tensor]) -> Tensor:
        """Mean loss of the sentences."""
        lengths = torch.tensor([len(words) for words in sentences])
        padded = pad_sequence(sentences, batch_first=True)
        packed = pack_padded_sequence(self.embedding(padded), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mask = torch.arange(padded.shape[1]) < lengths[:, None]
        return -self.crf(self.linear(states), pad_sequence(tags, batch_first=True), mask, reduction="mean")


def our_model(corpus: Corpus) -> Model:
    torch.manual_seed(0)
    return build(BiLSTMCRF, corpus.problem, {"hidden": HIDDEN}, corpus.view, corpus.target, WIDTH)


def by_their_names(model: Model) -> dict[str, nn.Parameter]:
    """Our parameters, as :class:`UsualTagger` calls them."""
    recurrence, crf = model.encoder.recurrence, model.head.crf
    directions = {"": recurrence.forwards[0], "_reverse": recurrence.backwards[0]}
    return {
        "embedding.weight": model.table.tuned.weight,
        "linear.weight": model.encoder.emissions.weight,
        "linear.bias": model.encoder.emissions.bias,
        "crf.transitions": crf.transitions,
        "crf.start_transitions": crf.start,
        "crf.end_transitions": crf.end,
    } | {f"lstm.{name}{end}": weight for end, lstm in directions.items() for name, weight in lstm.named_parameters()}


def their_model(corpus: Corpus, model: Model) -> UsualTagger:
    """With the weights of ours."""
    theirs = UsualTagger(corpus.view.width, len(corpus.target.labels))
    theirs.load_state_dict(by_their_names(model))
    return theirs


def sentences_of(corpus: Corpus) -> list[Sentence]:
    """Word and label numbers of each sentence."""
    split = corpus.train.some(SENTENCES, seed=0)
    words, tags = split.inputs["text"]["ids"], split.targets["tags"]
    return [(torch.tensor(words[row]).long(), torch.tensor(tags[row]).long()) for row in range(len(split))]


def together(sentences: list[Sentence]) -> tuple[list[Tensor], list[Tensor]]:
    """Words and labels of a batch, each in a list."""
    words, tags = zip(*sentences, strict=True)
    return list(words), list(tags)


@pytest.mark.parametrize("batch_size", [10, 32])
def test_training(beside, benchmark, corpus: Corpus, corpora_if_any: Path | None, batch_size: int) -> None:
    split, sentences = corpus.train.some(SENTENCES, seed=0), sentences_of(corpus)
    exact = our_model(corpus)
    usual = their_model(corpus, exact).double()
    found = exact.double().loss(split.collate(np.arange(batch_size)))
    expected = usual(*together(sentences[:batch_size]))
    torch.testing.assert_close(found, expected)
    found.backward()
    expected.backward()
    own = by_their_names(exact)
    for name, parameter in usual.named_parameters():
        torch.testing.assert_close(
            own[name].grad, parameter.grad, msg=lambda difference, name=name: f"{name}: {difference}"
        )

    def step(model: nn.Module, chosen: torch.optim.Optimizer, loss: Tensor) -> None:
        chosen.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), EQUAL.clip)
        chosen.step()

    model = our_model(corpus)
    usual, lr = their_model(corpus, model), EQUAL.learning_rates[0]
    our_adam, their_adam = optimizer(list(model.parameters()), EQUAL, lr), torch.optim.Adam(usual.parameters(), lr=lr)

    def ours() -> None:
        for batch in Batches(split.lengths, batch_size, split.collate, seed=0):
            step(model, our_adam, model.loss(batch))

    def theirs() -> None:
        for words, tags in DataLoader(sentences, batch_size, shuffle=True, collate_fn=together):
            step(usual, their_adam, usual(words, tags))

    name = "CoNLL-2003" if corpora_if_any else "mini corpus"
    what, against = f"bilstm_crf sentences/s, {name}, batch {batch_size}", "nn.LSTM, packed, with pytorch-crf"
    beside(what, against, 2.0, ours, theirs, rounds=4)
    benchmark.extra_info["sentences_per_second"] = len(split) / benchmark.stats.stats.median
