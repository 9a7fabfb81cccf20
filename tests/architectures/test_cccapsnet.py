"""The mechanism of the compositional-coding capsules: codebooks for word vectors, and k-means
routing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.capsule.cccapsnet import CompositionalCoding, CompositionalCodingCapsules, KMeansRouting
from harness import registry
from harness.views.words import WordBatch
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.oracles import cosine, gru, recurrent
from tests.support.same import assert_same

WORDS, CLASSES = 12, 3
SIZES = {"embedding": 4, "books": 2, "hidden": 6, "size": 2, "class_size": 3, "dropout": 0.0}


def batch_of(*texts: list[int]) -> WordBatch:
    mask = mask_of([len(text) for text in texts])
    ids = torch.zeros(mask.shape, dtype=torch.long)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    return WordBatch(ids, mask, mask.sum(1))


def routed(routing: KMeansRouting, capsules: Tensor) -> Tensor:
    """Parents of the capsules (n, size) of one text."""
    votes = [[matrix @ capsule for matrix in of] for capsule, of in zip(capsules, routing.transformations, strict=True)]
    parents = range(len(votes[0]))
    centres = [sum(vote[j] for vote in votes) / len(votes[0]) for j in parents]
    for _ in range(routing.iterations):
        shares = [torch.stack([cosine(vote[j], centres[j]) for j in parents]).softmax(0) for vote in votes]
        centres = [sum(share[j] * vote[j] for share, vote in zip(shares, votes, strict=True)) for j in parents]
    return torch.stack([s * s.norm() / (1 + s @ s) for s in centres])


def written_out(model: CompositionalCodingCapsules, ids: list[int]) -> Tensor:
    """Scores of one text."""
    coding = model.coding
    vectors = []
    for id in ids:
        codes = zip(coding.codes[id], coding.books, strict=True)
        vectors.append(
            sum(weight * word for code, book in codes for weight, word in zip(code.softmax(0), book, strict=True))
        )
    states = recurrent(model.features, torch.stack(vectors), gru)
    half = states.shape[1] // 2
    text = (states[:, :half] + states[:, half:]).mean(0)
    return routed(model.routing, text.view(-1, model.capsule_size)).norm(dim=1)


def test_each_text_of_a_batch_is_the_text_alone_written_out():
    """Other codes, directions that are joined, a last state for the mean, shares over children or
    padding that is read would each give other scores."""
    model = small(CompositionalCodingCapsules, WORDS, CLASSES, stretch=2.0, **SIZES)
    texts = ([3, 4, 5, 2, 7], [1, 9], [11])
    found = model(batch_of(*texts))
    for scores, text in zip(found, texts, strict=True):
        assert_same(scores, written_out(model, text))


def test_the_length_of_a_centre_has_no_say_in_the_shares():
    routing = small(KMeansRouting, 4, 2, 3, 5, 3)
    votes, centres = torch.randn(2, 4, 3, 5), torch.randn(2, 3, 5)
    shares = routing.shares(votes, centres)
    torch.testing.assert_close(routing.shares(votes, 7 * centres), shares)
    torch.testing.assert_close(shares.sum(2), torch.ones(2, 4)), "each child is shared out whole"


def test_routing_moves_the_centres_towards_the_votes_that_agree():
    """Two children vote alike for the first parent, one against: it loses weight from round to
    round."""
    votes = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-0.9, 0.0]])
    lengths = []
    for iterations in (0, 1, 3):
        routing = KMeansRouting(3, 1, 2, 2, iterations)
        with torch.no_grad():
            routing.transformations.copy_(torch.stack([votes, torch.tensor([[0.0, 1.0]]).expand(3, 2)], 1)[..., None])
        lengths.append(routing(torch.ones(1, 3, 1))[0, 0].norm().item())
    assert lengths[0] < lengths[1] < lengths[2]


@pytest.mark.parametrize(("words", "books", "codewords"), [(100, 2, 10), (101, 2, 11), (3125, 5, 5), (256, 8, 2)])
def test_a_book_has_as_many_codewords_as_give_each_word_its_own_code(words, books, codewords):
    assert CompositionalCoding(words, 4, books, "weighted").books.shape == (books, codewords, 4)


def test_hard_codes_take_one_codeword_of_each_book_and_training_draws_it():
    """In training each codeword is drawn with its probability, and the gradient reaches all
    codes."""
    coding = CompositionalCoding(9, 4, 2, "hard").eval()
    with torch.no_grad():
        coding.codes[5, 0] = torch.tensor([0.0, 3.0, 0.0])
        coding.codes[5, 1] = torch.tensor([0.0, 0.0, 1.0]).log().clamp(min=-50)
        coding.codes[6] = torch.tensor([0.2, 0.3, 0.5]).log()
    ids = torch.full((1, 200), 5)
    likeliest = coding.books[0, 1] + coding.books[1, 2]
    assert_same(coding(ids)[0], likeliest.expand(200, 4))
    coding.train()
    drawn = coding(torch.full((1, 4000), 6))[0]
    sums = (coding.books[0][:, None] + coding.books[1]).flatten(0, 1)
    distances = torch.cdist(drawn, sums)
    assert distances.amin(1).max() < 0.01, "a codeword of each book, and nothing between them"
    shares = F.one_hot(distances.argmin(1), 9).float().mean(0).view(3, 3)
    torch.testing.assert_close(shares.sum(1), torch.tensor([0.2, 0.3, 0.5]), atol=0.03, rtol=0)
    coding(ids).square().sum().backward()
    assert coding.codes.grad[5].any() and not coding.codes.grad[4].any()


def test_trained_by_the_margin_loss_each_id_with_its_coding():
    model = small(CompositionalCodingCapsules, WORDS, CLASSES, **SIZES)
    scores = torch.tensor([[0.5, 0.3, 0.1]])
    torch.testing.assert_close(model.objective(scores, torch.tensor([0])), torch.tensor(0.16 + 0.5 * 0.04))
    for id, coding in (("cccapsnet", "weighted"), ("cccapsnet_hard", "hard")):
        settings = registry.entry("architectures", id).hyperparameters
        assert CompositionalCodingCapsules(WORDS, CLASSES, **settings).coding.coding == coding


def test_dropout_acts_between_the_layers_and_wrong_settings_are_refused():
    model = CompositionalCodingCapsules(WORDS, CLASSES, **SIZES | {"dropout": 1.0}).train()
    read = []
    model.features.forwards[1].register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0].any().item()))
    model(batch_of([3, 4]))
    assert read == [False]
    with pytest.raises(ValueError, match="coding='soft' is none of weighted, hard"):
        CompositionalCodingCapsules(WORDS, CLASSES, coding="soft")
    with pytest.raises(ValueError, match="hidden=9 is not a multiple of size=8"):
        CompositionalCodingCapsules(WORDS, CLASSES, hidden=9)
