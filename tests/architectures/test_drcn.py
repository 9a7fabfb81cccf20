"""The mechanism of DRCN: dense layers of BiLSTM and cosine co-attention, autoencoders that take the
features' place, five features of the maxima."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from architectures.matching.drcn import DRCN
from harness.objectives import collected_losses
from harness.views.words_and_characters import WordCharacterBatch
from tests.support.batches import assert_each_alone, mask_of, poisoned, random_texts
from tests.support.oracles import convolution, cosine, softmax_mean
from tests.support.pairs import bilstm, dense, inputs_of, share_of_zeros, shipped
from tests.support.same import assert_same

WIDTH, ALPHABET, LETTERS = 3, 6, 4
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""
SIZES = {
    "hidden": 2,
    "layers": 3,
    "between": 2,
    "code": 4,
    "output": 5,
    "character_size": 3,
    "character_filters": 2,
}


def texts(lengths, seed: int) -> WordCharacterBatch:
    """Texts with tuned and fixed vectors, up to four characters a word, and spellings 1 to 4."""
    words = random_texts(lengths, seed, WIDTH, words=4)
    generator = torch.Generator().manual_seed(seed + 100)
    letters = torch.randint(1, LETTERS + 1, words.mask.shape, generator=generator)
    character_mask = (torch.arange(LETTERS) < letters[..., None]) & words.mask[..., None]
    characters = torch.randint(1, ALPHABET, character_mask.shape, generator=generator) * character_mask
    static = poisoned(torch.randn(*words.mask.shape, WIDTH, generator=generator), words.mask)
    return WordCharacterBatch(*words[:4], static, words.spellings, characters, character_mask)


def model_of(**options) -> DRCN:
    return shipped("drcn", WIDTH, SimpleNamespace(alphabet_size=ALPHABET), **SIZES | options)


def words(model: DRCN, text: WordCharacterBatch, row: int, other: set[int]) -> list[Tensor]:
    """Features of the words of one text: both vectors, its characters, and the mark."""
    found = []
    for position in range(int(text.lengths[row])):
        letters = model.characters.vectors.weight[text.characters[row, position][text.character_mask[row, position]]]
        maps = convolution(model.characters.convolution, list(letters), 2, 2)
        spelt = torch.stack(maps).amax(0).tanh()
        mark = torch.tensor([float(text.spellings[row, position].item() in other)])
        found.append(torch.cat([text.vectors[row, position], text.static[row, position], spelt, mark]))
    return found


def layer(own: list[Tensor], other: list[Tensor], recurrence: torch.nn.Module) -> list[Tensor]:
    """[h; a; x] of each word of one text."""
    ours, theirs = bilstm(recurrence, own), bilstm(recurrence, other)
    attended = [softmax_mean([cosine(h, candidate) for candidate in theirs], theirs) for h in ours]
    return [torch.cat(parts) for parts in zip(ours, attended, own, strict=True)]


def written_out(
    model: DRCN, first: WordCharacterBatch, second: WordCharacterBatch, row: int
) -> tuple[Tensor, list[Tensor]]:
    """The vector of one pair, and the squared errors of its reconstructions: either text at each
    autoencoder."""
    spelt = [set(text.spellings[row].tolist()) - {0} for text in (first, second)]
    p, q = words(model, first, row, spelt[1]), words(model, second, row, spelt[0])
    errors = []
    for number, each in enumerate(model.layers, start=1):
        p, q = layer(p, q, each.recurrence), layer(q, p, each.recurrence)
        if number in (2, 3):  # every second layer, and the last
            autoencoder = model.autoencoders[str(number)]
            codes = [[dense(autoencoder.encode, x) for x in text] for text in (p, q)]
            for text, code in zip((p, q), codes, strict=True):
                pairs = zip(text, code, strict=True)
                errors.append(torch.stack([(dense(autoencoder.decode, c) - x.detach()).square() for x, c in pairs]))
            p, q = codes
    p, q = (torch.stack(text).amax(0) for text in (p, q))
    vector = torch.cat([p, q, p + q, p - q, (p - q).abs()])
    for linear in model.output[::2]:
        vector = dense(linear, vector).clamp(min=0)
    return vector, errors


def test_a_batch_of_pairs_is_each_pair_written_out():
    """A layer that does not read all before it, other scores or axes of attention, padding that is
    attended to or pooled, a code that is only added, or other final features would each show."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, 5) and model.size == 5
    rows = iter(range(3))
    vectors = (first.vectors, first.mask), (second.vectors, second.mask)
    assert_each_alone(
        result, lambda *_: written_out(model, first, second, next(rows))[0], *vectors, rtol=1e-3, atol=1e-4
    )


def test_the_reconstructions_are_a_loss_over_the_real_positions():
    """The mean squared error of either text at each autoencoder; padding would count numbers that
    no word has. What is to be rebuilt is a constant to the gradient."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    with collected_losses() as losses:
        model(first, second)
    groups = zip(*(written_out(model, first, second, row)[1] for row in range(3)), strict=True)
    expected = sum(torch.cat(group).mean() for group in groups)
    assert set(losses) == {"reconstruction"}
    assert_same(losses["reconstruction"], expected, rtol=1e-4, atol=1e-4)


def test_the_reconstruction_reaches_the_features_through_the_code_alone():
    """As a target they are constants: else the loss would be least for features that say nothing.
    With the matrix to the code at zero no gradient goes further down."""
    autoencoder = model_of().autoencoders["2"]
    features = torch.randn(2, 3, autoencoder.encode.in_features, requires_grad=True)
    autoencoder(features, mask_of([3, 2]))[1].backward()
    assert features.grad.any()
    with torch.no_grad():
        autoencoder.encode.weight.zero_()
    features.grad = None
    autoencoder(features, mask_of([3, 2]))[1].backward()
    assert not features.grad.any()


def test_the_width_that_each_layer_reads():
    """Both vectors, characters and the mark; 4 * hidden more after each layer; the code behind the
    third and the fifth layer. These are the paper's sizes."""
    model = shipped("drcn", 300, SimpleNamespace(alphabet_size=ALPHABET), stretch=None, output=2)
    read = [each.recurrence.forwards[0].input_size for each in model.layers]
    assert read == [633, 1033, 1433, 200, 600]
    assert sorted(model.autoencoders) == ["3", "5"]
    assert {each.encode.out_features for each in model.autoencoders.values()} == {200}
    assert model.output[0].in_features == 1000


def test_both_texts_share_all_weights():
    """Swapping them leaves p + q and |p - q|, swaps p and q, and turns the sign of p - q."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    (seen,) = inputs_of(model.output)
    model(first, second), model(second, first)
    p, q, total, difference, absolute = seen[0].chunk(5, dim=1)
    assert_same(seen[1], torch.cat([q, p, total, -difference, absolute], dim=1))


def test_dropout_stands_on_the_words_on_the_codes_and_before_the_dense_layers():
    """The mark is not dropped. Rates differ, so that each is seen at its own place."""
    sizes = {"hidden": 30, "code": 40, "character_filters": 20, "layers": 2, "between": 1}
    model = model_of(**sizes, word_dropout=0.5, code_dropout=0.25, dropout=0.6).train()
    recurrence = model.layers[0].recurrence.forwards[0]
    second = model.layers[1].recurrence.forwards[0]
    decode, output = model.autoencoders["1"].decode, model.output
    reads = inputs_of(recurrence, second, decode, output)
    first = texts((9,) * 30, 1)._replace(spellings=torch.ones(30, 9, dtype=torch.long))
    model(first, first)
    embedded, mark = torch.cat(reads[0]).split([26, 1], dim=-1)
    assert 0.4 < share_of_zeros([embedded]) < 0.6 and bool((mark == 1).all())
    assert 0.2 < share_of_zeros(reads[1]) < 0.3 and 0.2 < share_of_zeros(reads[2]) < 0.3
    assert 0.55 < share_of_zeros(reads[3]) < 0.75


def test_nothing_is_dropped_in_evaluation():
    rates = {"word_dropout": 0.5, "code_dropout": 0.5, "dropout": 0.5}
    model, other = model_of(**rates), model_of(**dict.fromkeys(rates, 0.0))
    first, second = texts(FIRST, 1), texts(SECOND, 2)
    torch.testing.assert_close(model(first, second), other(first, second))


def test_protocol_equal_turns_off_all_three_dropouts():
    assert DRCN.ordinary_dropouts == ("word_dropout", "dropout", "code_dropout")
    assert DRCN.vectors == "multichannel"
