"""LSTMs after a sequence autoencoder or a language model: one LSTM reads a text and tells it again,
or foretells it; its weights and the vectors of words go over to a task, and are tuned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.unsupervised.sa_lstm import (
    LanguageModelLSTM,
    NextWordByLSTM,
    Retold,
    SequenceAutoencoderLSTM,
)
from harness import registry
from harness.errors import ModelError
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import lstm_step
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat", "a dog ran", "mat"]
SIZES = {"embedding": 4, "hidden": 5, "dense": 3, "word_dropout": 0.0, "dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = WholeWords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> SequenceAutoencoderLSTM:
    return small(SequenceAutoencoderLSTM, view.width, view, **SIZES)


def states_of(model: SequenceAutoencoderLSTM, ids: list[int], h: Tensor, c: Tensor) -> tuple[list[Tensor], Tensor]:
    """States of the LSTM after each of the words, going on from a state and a memory; and the last
    memory."""
    states = []
    for word in ids:
        h, c = lstm_step(model.lstm, model.table.weight[word], h, c, 0)
        states.append(h)
    return states, c


def log_of(objective: NextWordByLSTM, state: Tensor, word: int) -> Tensor:
    scores = objective.output.weight @ state + objective.output.bias
    return scores[word] - scores.exp().sum().log()


# --- telling a text again ---


def test_a_text_is_told_by_a_decoder_that_is_the_encoder_and_goes_on_from_its_last_state(view, model):
    """The two networks of the paper's figure 1 written out: one reads the text and its end, the
    other, which has the same weights, begins with the state and the memory of the first."""
    pieces, objective = batch(view, *TEXTS), small(Retold, model)
    logs, texts = objective(model, pieces, noise_of(pieces))
    expected, rows = [], []
    for row, length in enumerate(pieces.lengths.tolist()):
        ids = pieces.ids[row, :length].tolist()
        begin, words, end = ids[0], ids[1:-1], ids[-1]
        assert (begin, end) == (view.start, view.separator)
        states, memory = states_of(model, [begin, *words, end], torch.zeros(5), torch.zeros(5))
        told, _ = states_of(model, words, states[-1], memory)
        for state, word in zip([states[-1], *told], [*words, end], strict=True):
            expected.append(log_of(objective, state, word))
            rows.append(row)
    assert texts.tolist() == rows
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_all_words_of_a_text_reach_its_first_word_that_is_told(view, model):
    """Through the state at its end alone: an autoencoder that decodes from nothing is a language
    model."""
    one, two = batch(view, "the cat sat on the mat"), batch(view, "the cat sat on the dog")
    objective = small(Retold, model)
    logs = [objective(model, pieces, noise_of(pieces)).logs for pieces in (one, two)]
    assert not torch.isclose(logs[0][0], logs[1][0])
    assert len(logs[0]) == 7, "six words and the end"


def test_texts_of_training_stay_apart_where_they_are_told_again_and_are_packed_in_a_language_model():
    assert not Retold.packs and NextWordByLSTM.packs
    assert Retold.unit != NextWordByLSTM.unit == "words"


def test_who_reads_a_text_can_tell_it_for_certain_and_a_language_model_cannot(view):
    rows: Any = [{"id": str(number), "text": text} for number, text in enumerate(["the cat", "a dog"])]
    assert Retold.by_heart(view, rows) == [[0.0, 1], [0.0, 1]]
    assert all(log < 0 for log, _ in NextWordByLSTM.by_heart(view, rows))


def test_the_floors_are_asked_as_many_words_as_the_models(view, model):
    rows: Any = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    pieces = batch(view, *TEXTS)
    for learns in (Retold, NextWordByLSTM):
        _, texts = small(learns, model)(model, pieces, noise_of(pieces))
        assert [count for _, count in learns.floor(view, rows, rows)] == texts.bincount().tolist() == [7, 4, 2]


# --- foretelling a text ---


def test_a_language_model_foretells_each_word_from_the_state_before_it(view, model):
    """Written out: the end is foretold, the beginning is not, and what follows is not read."""
    pieces, objective = batch(view, *TEXTS), small(NextWordByLSTM, model)
    logs, _ = objective(model, pieces, noise_of(pieces))
    expected = []
    for row, length in enumerate(pieces.lengths.tolist()):
        ids = pieces.ids[row, :length].tolist()
        states, _ = states_of(model, ids, torch.zeros(5), torch.zeros(5))
        expected += [log_of(objective, state, word) for state, word in zip(states, ids[1:], strict=False)]
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert LanguageModelLSTM.learns is NextWordByLSTM and SequenceAutoencoderLSTM.learns is Retold


# --- tuning ---


def test_the_vector_is_a_linear_layer_over_the_last_state(view, model):
    """That at the end of the text, whatever padding stands behind it."""
    pieces = batch(view, *TEXTS)
    found = model.vector(pieces)
    for row, length in enumerate(pieces.lengths.tolist()):
        states, _ = states_of(model, pieces.ids[row, :length].tolist(), torch.zeros(5), torch.zeros(5))
        assert_same(found[row], model.dense.weight @ states[-1] + model.dense.bias)
    assert model.size == found.shape[1] == 3


def kept(encoder: nn.Module) -> Any:
    """A kept model of an encoder, as a child asks for it."""
    model = nn.Module()
    model.encoder = encoder
    described = SimpleNamespace(part=SimpleNamespace(architecture="parent"))
    return SimpleNamespace(model=model, view=getattr(encoder, "view", None), description=described)


def test_words_and_lstm_begin_as_the_parents_the_rest_anew_and_all_of_it_is_tuned(view, model):
    torch.manual_seed(7)
    child = SequenceAutoencoderLSTM(view.width, view, **SIZES)
    dense = child.dense.weight.clone()
    child.inherit("weights", kept(model), ())
    for name, value in child.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]) != name.startswith("dense"), name
    assert torch.equal(child.dense.weight, dense)
    child.train().vector(batch(view, *TEXTS)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in child.parameters())


def test_a_parent_of_another_size_is_refused(view, model):
    child = SequenceAutoencoderLSTM(view.width, view, **SIZES | {"hidden": 6})
    with pytest.raises(ModelError, match="weight_ih_l0"):
        child.inherit("weights", kept(model), ())


def test_tuning_drops_whole_words_and_numbers_of_the_layer_and_pre_training_nothing(view):
    """Two words in ten, by their whole vectors; half of the layer."""
    torch.manual_seed(0)
    model = SequenceAutoencoderLSTM(view.width, view, **SIZES | {"word_dropout": 0.2, "dropout": 0.5}).train()
    read: list[Tensor] = []
    model.lstm.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    pieces = batch(view, *[TEXTS[0]] * 500)
    vectors = model.vector(pieces)
    words = model.table(pieces.ids)
    dropped = (read[0] == 0).all(-1)
    assert torch.equal((read[0] == 0).any(-1), dropped)
    torch.testing.assert_close(read[0][~dropped], words[~dropped] / 0.8)
    assert dropped.float().mean().item() == pytest.approx(0.2, abs=0.02)
    assert (vectors == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    for learns in (Retold, NextWordByLSTM):
        small(learns, model)(model.train(), pieces, noise_of(pieces))
    assert torch.equal(read[2], words)
    assert torch.equal(read[1][:, : words.shape[1]], words)
    expected = F.linear(model.eval().read(words)[:, -1], model.dense.weight, model.dense.bias)
    torch.testing.assert_close(model.vector(pieces), expected)


def test_both_start_from_themselves_on_plain_text_and_are_for_texts_with_classes():
    for id, cls in (("sa_lstm", SequenceAutoencoderLSTM), ("lm_lstm", LanguageModelLSTM)):
        entry = registry.entry("architectures", id)
        assert entry.parents == {"weights": f"{id}@text_mix"}
        assert registry.load(entry) is cls
        assert [type for type in ("text", "classify", "match", "tag", "extract") if cls.can_answer(type)] == [
            "text",
            "classify",
        ]
        read: Any = cls.reads("text", {"vocabulary": 77, "max_length": 33})
        assert isinstance(read, WholeWords) and (read.size, read.max_length) == (77, 33)
