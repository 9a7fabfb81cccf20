"""The mechanism of DSCNN: recurrent states of two channels under wide convolutions, and the same
over the sentences of a document."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.hybrid.dscnn import DSCNN, DocumentDSCNN
from harness import registry
from harness.views.sentences import Sentences
from tests.support.batches import assert_each_alone, random_documents, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, lstm
from tests.support.same import assert_same

WIDTH = 4

model_of = partial(small, DSCNN, WIDTH, hidden=3, maps=5, stretch=30.0)


def maxima(model: DSCNN | DocumentDSCNN, states: Tensor) -> Tensor:
    """The largest ReLU of each map over all windows that hold a state."""
    pooled = []
    for layer in model.features.convolutions:
        beside = layer.kernel_size[0] - 1
        pooled.append(torch.stack(convolution(layer, states, left=beside, right=beside)).clamp(min=0).amax(0))
    return torch.cat(pooled)


def written_out(model: DSCNN, tuned: Tensor, static: Tensor) -> Tensor:
    """The vector of one text, given in its two channels."""
    first, second = (channel.forwards[0] for channel in model.channels)
    return maxima(model, torch.cat([lstm(first, tuned), lstm(second, static)], dim=1))


def test_a_text_is_wide_convolutions_over_the_states_of_two_channels():
    """Narrow windows, one channel twice, or padding in a maximum would show here."""
    model, batch = model_of(), random_texts((7, 4, 2, 1), 1, WIDTH)
    static = random_texts((7, 4, 2, 1), 2, WIDTH)
    assert_each_alone(model(batch._replace(static=static.vectors)), partial(written_out, model), batch, static)
    assert [layer.kernel_size[0] for layer in model.features.convolutions] == [3, 4, 5]


def test_a_window_of_padding_alone_does_not_count():
    """Where all windows of the text are below zero but the bias is not, the batch would decide."""
    model = model_of()
    with torch.no_grad():
        for layer in model.features.convolutions:
            layer.weight.fill_(-50.0)
            layer.bias.fill_(0.5)
        for channel in model.channels:
            channel.forwards[0].bias_ih_l0.fill_(9.0)
    short, long = random_texts((2,), 1, WIDTH), random_texts((2, 20), 1, WIDTH)
    with torch.no_grad():
        long.vectors[0, :2] = short.vectors[0]
    alone, beside = (model(batch._replace(static=batch.vectors))[0] for batch in (short, long))
    torch.testing.assert_close(beside, alone)


def test_the_channels_are_tuned_and_fixed_vectors():
    assert DSCNN.vectors == "multichannel"


def document_of(model: DocumentDSCNN, sentences: list[Tensor]) -> Tensor:
    """The vector of one document from its sentences' word vectors."""
    means = torch.stack([lstm(model.sentence.forwards[0], words).mean(0) for words in sentences])
    return maxima(model, lstm(model.document.forwards[0], means))


def test_a_document_is_read_by_sentences_and_then_as_sentences():
    model = small(DocumentDSCNN, WIDTH, hidden=3, maps=5, stretch=30.0)
    batch, documents = random_documents([[4, 1, 2], [5], [2, 3]], 1, WIDTH)
    for vector, sentences in zip(model(batch), documents, strict=True):
        assert_same(vector, document_of(model, sentences))


def test_each_id_reads_what_its_name_says():
    classes = {id: registry.load(registry.entry("architectures", id)) for id in ("dscnn", "dscnn_document")}
    assert classes == {"dscnn": DSCNN, "dscnn_document": DocumentDSCNN}
    assert isinstance(DocumentDSCNN.view, Sentences) and DocumentDSCNN.view.max_sentences == 30


def test_filters_start_uniform_and_biases_at_zero():
    for model, spread in ((DSCNN(WIDTH), 0.01), (DocumentDSCNN(WIDTH), 0.1)):
        for layer in model.features.convolutions:
            assert 0.98 * spread < layer.weight.abs().max() <= spread and not layer.bias.any()


def test_half_of_the_features_are_dropped_in_training():
    words = random_texts([6], 1, WIDTH)
    document, _ = random_documents([[3, 2]], 1, WIDTH)
    for model, batch in ((DSCNN(WIDTH), words._replace(static=words.vectors)), (DocumentDSCNN(WIDTH), document)):
        with torch.no_grad():
            for layer in model.features.convolutions:
                layer.bias.fill_(9.0)
        assert 0.4 < (model.train()(batch) == 0).float().mean() < 0.6
