"""Language modelling: floors by hand, probabilities that sum to one, and vocabularies apart."""

from __future__ import annotations

import hashlib
import json
import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from harness import registry
from harness.contract import Broken, cases, check
from harness.data.corpus import Corpus, Split
from harness.errors import ContractError
from harness.kinds import LanguageModel
from harness.metrics import score
from harness.objectives import Step
from harness.problems import problem
from harness.problems.language_model import Foretold, NextWord, Vocabulary
from harness.records.groups import comparable, group_of
from harness.running import grid
from harness.running.worker import run_cell
from harness.settings import TrainingSettings
from harness.training.fit_module import FitModule
from harness.training.model import Model, build, objective_of, predict
from harness.views.stream import UNKNOWN, Stream
from harness.views.words import WordBatch

ASKED = problem("language_model")
TRAIN = [{"id": "1", "text": "a b a"}, {"id": "2", "text": ["a", "c"]}]
ROWS = [{"id": "3", "text": "a new b"}]


def test_the_unigram_floor_by_hand():
    """Each word once more than in train: a 4, b 2, c 2 and the unknown word 1, of 9."""
    [[logs, count]] = ASKED.floors(TRAIN, ROWS)["unigram"]
    assert (math.exp(logs), count) == (pytest.approx(4 / 9 * 1 / 9 * 2 / 9), 3)


def test_the_uniform_floor_has_the_perplexity_of_its_vocabulary():
    values = score(["nats_per_token", "perplexity"], ASKED.floors(TRAIN, ROWS)["uniform"], ROWS)
    assert values == {"nats_per_token": pytest.approx(math.log(4)), "perplexity": pytest.approx(4)}


def test_texts_without_words_have_a_loss():
    """A batch of dev may have no others: a loss that is no number would end the cell."""
    head = NextWord(None, Vocabulary())
    silent = Foretold(torch.zeros(2, 1), torch.zeros(2, 1, dtype=torch.bool), None)
    assert head.loss(None, silent, None) == 0
    mixed = Foretold(torch.tensor([[-1.0, -2.0], [0.0, 0.0]]), torch.tensor([[True, True], [False, False]]), None)
    assert head.loss(None, mixed, None) == 1.5


def test_bits_per_character_are_of_the_text_and_not_of_the_tokens():
    """A model of letters and one of words that give a text the same probability have the same."""
    for count in (2, 4):
        assert score(["bits_per_character"], [[-4 * math.log(2), count]], [{"text": ["a", "bc"]}]) == {
            "bits_per_character": pytest.approx(4 / 4)
        }
    with pytest.raises(ValueError, match="no text has a character"):
        score(["bits_per_character"], [[-1.0, 1]], [{"text": ""}])


MODEL = """
import math

from harness.kinds import Estimator
from harness.problems.language_model import vocabulary
from harness.registry import register


@register("{id}", name="Test", kind="fit", paper="none", source="test", year=2026)
class Model(Estimator):
    task_types = ("language_model",)

    def fit(self, train, dev, unlabelled=()):
        {fit}

    def log(self, text, place):
        {log}

    def predict(self, rows):
        texts = [row["text"] for row in rows]
        return [[sum(self.log(text, place) for place in range(len(text))), len(text)] for text in texts]
"""
ALL_WORDS, FIRST_WORDS = "self.vocabulary = vocabulary(train)", "self.vocabulary = vocabulary(train[:1])"
UNIFORM = "return -math.log(len(self.vocabulary))"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Registers models by their id, each as what ``fit`` and ``log`` do."""

    def write(**models: tuple[str, str]) -> list[registry.ArchitectureEntry]:
        files = [tmp_path / f"{id}.py" for id in models]
        for file, (fit, log) in zip(files, models.values(), strict=True):
            file.write_text(MODEL.format(id=file.stem, fit=fit, log=log))
        monkeypatch.setattr("harness.registry.finding._plugins", files)
        return [registry.entry("architectures", id) for id in models]

    return write


@pytest.mark.parametrize(
    ("fit", "log", "message"),
    [
        (ALL_WORDS, "return 0.0", "sum to 61, not 1"),
        (ALL_WORDS, "return math.log(text.count(text[place]) / len(text))", "sum to .*, not 1"),
        ("pass", "return 0.0", "self.vocabulary has 0 words, and '<unk>' is not one of them"),
    ],
    ids=["certain of every word", "shares within the text that is asked about", "no vocabulary"],
)
def test_a_model_whose_probabilities_are_none_fails_the_check(fit, log, message, written):
    """Its perplexity would be the best of the table, and no metric can see why."""
    [entry] = written(dishonest_lm=(fit, log))
    results = {result.name: result for result in check(entry)}
    [rules] = [result for name, result in results.items() if name.endswith("predictions keep the rules of the problem")]
    assert not rules.passed and re.search(message, rules.message), rules


def test_models_of_other_vocabularies_are_in_no_group_together(written, make_settings):
    """One that reads rare words as unknown is surprised less by each, and would lead the table."""
    entries = written(few_words=(FIRST_WORDS, UNIFORM), all_words=(ALL_WORDS, UNIFORM), again=(ALL_WORDS, UNIFORM))
    few, every, again = (_record(entry, make_settings()) for entry in entries)
    assert few.scores["test"]["perplexity"] < every.scores["test"]["perplexity"] == pytest.approx(61)
    assert every.tokens["symbols"] == 61 and group_of(every).tokens
    assert comparable(every, again) and not comparable(few, every)


def test_a_cell_without_a_vocabulary_fails(written, make_settings):
    record = _record(*written(silent=("pass", "return -1.0")), make_settings())
    assert record.status == "failed" and "self.vocabulary has 0 words" in record.error["message"]


def _record(entry: Any, settings: Any) -> Any:
    task = registry.entry("tasks", "wikitext2")
    [planned] = grid.plan([entry], [task], tier="mini", protocol="equal", seeds=[0], overrides=[])
    return run_cell(planned.cell, settings)


def test_a_vocabulary_is_told_by_its_words_in_whatever_order():
    """Each process has an order of its own for a set: equal systems would not be compared."""
    words = [*"fcadbegh", UNKNOWN]
    digest = hashlib.sha256(json.dumps(sorted(words)).encode()).hexdigest()
    told = problem("language_model").tokens(SimpleNamespace(vocabulary=[*words, *words]))
    assert told == {"name": "9 words", "symbols": 9, "artefact": digest}


def test_only_a_vocabulary_with_the_unknown_word_is_one():
    with pytest.raises(ContractError, match="has 1 words, and '<unk>'"):
        ASKED.tokens(type("Model", (), {"vocabulary": ["a"]})())


# --- networks ---


class Fading(LanguageModel):
    """A word scores by what is left of the words before it, the half of each with each word."""

    def __init__(self, width: int, symbols: int):
        super().__init__()
        self.output = nn.Linear(width, symbols)

    def start(self, texts: int) -> torch.Tensor:
        return self.output.weight.new_full((texts, self.output.in_features), 0.3)

    def forward(self, words: WordBatch, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states = []
        for vectors in words.vectors.unbind(1):
            state = 0.5 * state + vectors
            states.append(state)
        return torch.stack(states, 1), state

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        return self.output(states)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    entry = registry.entry("tasks", "wikitext2")
    return Corpus(registry.load(entry)(entry), "mini", None, Stream(), "next words")


def fading(corpus: Corpus, stretch: int = 35, **settings: Any) -> Model:
    """The same weights for any stretch."""
    torch.manual_seed(0)
    training = TrainingSettings(stretch=stretch, **settings)
    return build(Fading, corpus.problem, {}, corpus.view, corpus.target, 6, None, training).double().eval()


def one_by_one(model: Model, words: list[int]) -> float:
    """Natural log-probability of a text, from a loop over its words."""
    state, total = torch.full((6,), 0.3, dtype=torch.double), 0.0
    table, output = model.table.tuned.weight, model.encoder.output
    for before, word in zip([0, *words], words, strict=False):
        state = 0.5 * state + table[before]
        total += (output.weight @ state + output.bias).log_softmax(0)[word - 1].item()
    return total


@pytest.mark.parametrize(("stretch", "batch_size"), [(1, 64), (3, 7), (35, 1), (35, 64), (1000, 16)])
def test_what_is_read_at_once_and_beside_what_changes_no_probability(corpus, stretch, batch_size):
    """Else the score of a network would be one of its batches."""
    model, test = fading(corpus, stretch), corpus.test()
    found = predict(model, test, batch_size)
    ids = test.inputs["text"]["next"]
    assert [count for _, count in found] == ids.lengths.tolist()
    for row in (0, 11, len(test) - 1):
        assert found[row][0] == pytest.approx(one_by_one(model, (ids[row] + 1).tolist()))


def test_a_text_without_words_has_probability_one(corpus):
    columns = {"text": corpus.view.encode(["", "= Arden ="])}
    found = predict(fading(corpus, 2), Split([{}, {}], corpus.view, corpus.target, columns, {}), 2)
    assert found[0] == [0.0, 0] and found[1][1] == 3


def epoch_of(corpus: Corpus, stretch: int, lanes: int) -> tuple[list[dict[str, Any]], FitModule]:
    """The steps of an epoch without learning: the batch, its loss, and the state before it."""
    model = fading(corpus, stretch, batch_size=lanes)
    training = TrainingSettings(stretch=stretch, batch_size=lanes, epochs=1)
    objective = objective_of(model, training)
    metrics = ("nats_per_token",)
    module = FitModule(model, objective, corpus.train, corpus.dev, training, 0.1, 0, metrics, metrics[0])
    steps, state = [], None
    for rows in module._batches("labelled", 0, 1).rows():
        batch = module.splits["labelled"].collate(rows)
        step = Step({"labelled": batch}, 0.0, state)
        with torch.no_grad():
            loss = objective.losses(model, step)["loss"].item()
        steps.append({"batch": batch, "loss": loss, "before": state})
        state = step.state
    return steps, module


@pytest.mark.parametrize(("stretch", "lanes"), [(7, 1), (35, 1), (10, 20), (35, 32)])
def test_an_epoch_has_every_word_once(corpus, stretch, lanes):
    """One that is read twice has twice the weight, and an epoch is no pass over the corpus."""
    steps, module = epoch_of(corpus, stretch, lanes)
    words = sorted(w for step in steps for w in step["batch"].inputs["text"].next[step["batch"].inputs["text"].mask])
    assert words == sorted(corpus.train.inputs["text"]["next"].values.tolist())
    assert max(step["batch"].inputs["text"].ids.shape[1] for step in steps) <= stretch
    assert sum(step["batch"].units for step in steps) == len(words)
    assert max(len(step["batch"].rows) for step in steps) == lanes
    assert len(module.splits["labelled"]) * module.splits["labelled"].share == pytest.approx(len(corpus.train))


@pytest.mark.parametrize("stretch", [4, 35, 100])
def test_in_training_the_state_goes_on_until_its_text_ends(corpus, stretch):
    """In one lane the losses of an epoch add up to the probability of the texts; a state that is
    lost between stretches, or that outlives its text, gives another sum."""
    steps, module = epoch_of(corpus, stretch, 1)
    total = sum(step["loss"] * step["batch"].units for step in steps)
    assert -total == pytest.approx(sum(logs for logs, _ in predict(module.model, corpus.train, 32)))


def test_lanes_are_carried_each_for_itself(corpus):
    """Beside others a lane has the losses that it has alone."""
    steps, module = epoch_of(corpus, 10, 8)
    model, split = module.model, module.splits["labelled"]
    state, alone = None, []
    for step in steps[:30]:
        inputs = model.read(split.collate(step["batch"].rows[5:6]).inputs) | {"state": state}
        with torch.no_grad():
            outputs = model.head(model.encoder, inputs)
        state = outputs.state
        alone.append(outputs)
        whole = model.head(model.encoder, model.read(step["batch"].inputs) | {"state": step["before"]})
        length = outputs.logs.shape[1]
        torch.testing.assert_close(whole.logs[5:6, :length], outputs.logs)


def test_no_gradient_reaches_the_stretch_before(corpus):
    """Else the graph of the first stretch would be kept until the last."""
    model, split = fading(corpus, 5), corpus.train.cut(5)
    objective = objective_of(model, TrainingSettings(stretch=5))
    step = Step({"labelled": split.collate(np.array([0]))}, 0.0)
    objective.losses(model, step)
    assert step.state.requires_grad, "the harness detaches it: what a head leaves has a graph"
    state = torch.ones_like(step.state).requires_grad_()
    objective.losses(model, Step({"labelled": split.collate(np.array([1]))}, 0.0, state))["loss"].backward()
    assert state.grad.abs().sum() > 0, "within a stretch the gradient goes back to its beginning"


def test_the_loss_is_the_mean_over_the_words_of_a_batch(corpus):
    """Not the mean of the texts' means: then a word of a short text would count more."""
    model, batch = fading(corpus), corpus.dev.collate(np.arange(9))
    sums = model.predict(batch, corpus.dev)
    expected = -sum(logs for logs, _ in sums) / sum(count for _, count in sums)
    assert model.loss(batch).item() == pytest.approx(expected)
    outputs = model(batch.inputs)
    rows = model.head.row_losses(model.encoder, outputs, None)
    assert rows.tolist() == pytest.approx([-logs for logs, _ in sums])


def test_dropout_of_protocol_equal_acts_on_what_words_are_scored_from_and_not_on_the_state(corpus):
    """With all dropped the bias alone scores; in the state it would wipe out the words before."""
    model, batch = fading(corpus), corpus.dev.collate(np.arange(2))
    words = model.read(batch.inputs)["text"]
    inputs = {"text": words._replace(**{n: getattr(words, n)[:, :20] for n in ("ids", "next", "mask", "vectors")})}
    expected = model.encoder.output.bias.log_softmax(0)[inputs["text"].next]
    _, state = model.encoder(words.before(slice(None), 0, 20), model.encoder.start(2))
    model.head.dropout = 1.0
    outputs = model.train().head(model.encoder, inputs)
    torch.testing.assert_close(outputs.logs, expected)
    torch.testing.assert_close(outputs.state, state)


def test_what_can_be_known_by_heart_by_hand():
    """Two texts that part at the second word: nobody knows which one begins. Who sees one word
    cannot tell the places of "a" from each other."""
    rows = [{"text": "a b a c"}, {"text": "a c"}]
    for window, expected in ((None, [1 / 2, 1 / 2]), (1, [1 / 3 * 2 / 3, 2 / 3])):
        found = ASKED.by_heart(rows, type("Encoder", (), {"window": window})())
        assert [math.exp(logs) for logs, _ in found] == pytest.approx(expected)
        assert [count for _, count in found] == [4, 2]


AHEAD = """
import torch
from torch import nn
from harness.kinds import LanguageModel
from harness.registry import register


@register("{id}", name="Test", kind="lm", paper="none", source="test", year=2026, tiny={{"hidden": 48}})
class Model(LanguageModel):
    def __init__(self, width: int, symbols: int, hidden: int = 48):
        super().__init__()
        self.recurrence = nn.GRU(width, hidden, batch_first=True{options})
        self.output = nn.Linear(hidden{factor}, symbols)

    def forward(self, words, state):
        return self.recurrence(words.vectors)[0], state

    def scores(self, states):
        return self.output(states)
{more}
"""


@pytest.mark.parametrize(
    ("options", "factor", "more", "message"),
    [
        (", bidirectional=True", " * 2", "", "sum to .*, not 1"),
        ("", "", "    def log_probabilities(self, states, words):\n        return -states.abs().mean(-1)", "not 1"),
    ],
    ids=["reads ahead", "gives numbers that are no probabilities"],
)
def test_a_network_whose_probabilities_are_none_fails_the_check(options, factor, more, message, tmp_path, monkeypatch):
    """One that reads ahead is told each word before it foretells it: its perplexity would be 1."""
    file = tmp_path / "dishonest_network.py"
    file.write_text(AHEAD.format(id=file.stem, options=options, factor=factor, more=more))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    case = next(cases(registry.entry("architectures", file.stem)))
    with pytest.raises(Broken, match=message):
        case.rules()


def test_a_network_is_compared_with_a_count_model_over_the_same_words(make_settings):
    """And its record counts articles, not stretches, as all others do."""
    task, settings = registry.entry("tasks", "wikitext2"), make_settings()
    small = ["rnn_lm.hidden=16", "rnn_lm.training.epochs=2"]
    ids = {"rnn_lm": small, "ngram_lm": []}
    network, counts = (
        run_cell(
            grid.plan(
                [registry.entry("architectures", id)], [task], tier="mini", protocol="equal", seeds=[0], overrides=over
            )[0].cell,
            settings,
        )
        for id, over in ids.items()
    )
    assert network.status == counts.status == "ok", network.error
    assert network.tokens == counts.tokens and network.tokens["symbols"] == 61
    passes = network.training["epochs"] * network.training.get("passes_per_epoch", 1)
    assert network.counts["train"] == 400 and network.spent["examples"] / 400 == pytest.approx(
        passes + 3 * 0.2, abs=0.1
    )
    per_token = network.spent["tokens"] / network.spent["examples"]
    train = registry.load(task)(task).load("train", "mini")
    assert per_token == pytest.approx(sum(map(len, train["text"])) / 400, rel=0.01)
    width, hidden = 100, 16
    products = width * hidden + hidden * hidden + hidden * 61
    assert 1 <= network.flops_per_example / (2 * products * per_token) < 1.4, "a third of it is padding in short texts"
