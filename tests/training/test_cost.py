"""What a model costs: figures that a reader compares between architectures."""

from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from torch import nn

from harness import registry
from harness.contract.trained import TrainedCase
from harness.data.batches import length_buckets, of_all_lengths
from harness.objectives import Objective, Step, Supervised
from harness.problems.base import Batch
from harness.running import grid
from harness.running.neighbours import watched
from harness.training import cost
from harness.training.cost import WARM_UP_STEPS, StepClock
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.protocols import SMOKE
from tests.support.toy_corpus import sentences, toy_corpus, toy_model, toy_task


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch):
    """A clock that stands still until it is told how many seconds pass."""
    now = [100.0]
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def pass_(seconds: float) -> None:
        now[0] += seconds

    return pass_


def run(clock: StepClock, tick, seconds: list[float], examples: int = 4, units: int = 20) -> None:
    for one in seconds:
        tick(one)
        clock.step(examples, units)


# --- speed ---


def test_the_first_steps_are_no_figure(tick):
    """They allocate memory and fill caches: ten times slower, and no property of the model."""
    clock = StepClock()
    run(clock, tick, [10.0] * WARM_UP_STEPS + [0.5] * 20)
    even = {"train_spread": 0.0, "unstable": False}
    assert clock.rates() == {"train_examples_per_second": 8.0, "train_tokens_per_second": 40.0} | even


def test_time_between_epochs_is_left_out(tick):
    clock = StepClock()
    run(clock, tick, [0.5] * (WARM_UP_STEPS + 10))
    clock.pause()
    tick(1000)  # dev evaluation, checkpoint
    run(clock, tick, [7.0] + [0.5] * 10)  # the first step of an epoch has no step before it
    assert clock.rates()["train_examples_per_second"] == 8.0
    assert len(clock.steps) == 20


def test_warm_up_is_once_in_a_fit_and_not_in_each_epoch(tick):
    clock = StepClock()
    for _ in range(3):
        clock.pause()
        run(clock, tick, [0.5] * 8)
    assert len(clock.steps) == (8 - WARM_UP_STEPS) + 7 + 7


def test_rates_weigh_steps_by_their_time(tick):
    """Examples over seconds, not the mean of the steps' rates: short last batches count for what
    they are."""
    clock = StepClock()
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    run(clock, tick, [1.0] * 9, examples=10, units=30)
    run(clock, tick, [3.0], examples=6, units=6)
    rates = clock.rates()
    assert (rates["train_examples_per_second"], rates["train_tokens_per_second"]) == (8.0, 23.0)


@pytest.mark.parametrize(
    ("seconds", "unstable"),
    [
        ([1.0] * 20, False),
        ([1.0, 1.1] * 10, False),
        ([1.0] * 10 + [3.0] * 10, True),
        ([1.0] * 2, True),
        ([1.0] * 3, False),
    ],
    ids=["even", "alternating", "twice as slow later", "two steps", "three steps"],
)
def test_a_speed_that_changed_during_the_run_is_called_unstable(tick, seconds, unstable):
    clock = StepClock()
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    run(clock, tick, seconds)
    assert clock.rates()["unstable"] is unstable


def test_the_spread_is_that_of_ten_parts(tick):
    """Parts at 10, 20, ..., 20 examples/s: by hand, mean 19 and sd 3. Of two steps there is no
    telling."""
    clock = StepClock()
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    run(clock, tick, [1.0] * 2 + [0.5] * 18, examples=10, units=10)
    assert clock.rates()["train_spread"] == pytest.approx(3 / 19)
    short = StepClock()
    run(short, tick, [1.0] * (WARM_UP_STEPS + 2))
    assert short.rates()["train_spread"] is None


def test_a_fit_too_short_for_a_figure_has_none(tick):
    """The record takes no rate for an answer, but `unstable` is yes or no: a cell of few steps must
    not fail on it."""
    nothing = {
        "train_examples_per_second": None,
        "train_tokens_per_second": None,
        "train_spread": None,
        "unstable": True,
    }
    clock = StepClock()
    assert clock.rates() == nothing
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    assert clock.rates() == nothing


@pytest.fixture
def slow(tick):
    """An answer that takes 3 ms for every call and 1 ms for every row; ``slow.asked`` are the sizes
    of its calls."""

    def answer(rows: np.ndarray) -> None:
        answer.asked.append(len(rows))
        tick(0.003 + 0.001 * len(rows))

    answer.asked = []
    return answer


def test_latency_and_throughput_of_an_answer_that_takes_a_known_time(slow):
    found = cost.inference(slow, np.arange(1, 86), batch_size=10, seconds=10)
    assert found["latency_ms_p50"] == pytest.approx(4.0)
    assert found["latency_ms_p95"] == pytest.approx(4.0)
    assert found["inference_examples_per_second"] == pytest.approx(85 / (8 * 0.013 + 0.008))
    assert slow.asked == [1] * 86 + slow.asked[86:], "one call first that is not timed"
    assert sorted(slow.asked[86:]) == [5] + [10] * 8


def test_latency_is_a_median_and_a_tail(tick):
    """One slow answer in ten moves the tail and not the median."""
    calls = iter(range(10**6))
    found = cost.inference(
        lambda rows: tick(0.1 if next(calls) % 10 == 5 else 0.001), np.ones(100), batch_size=100, seconds=100
    )
    assert (found["latency_ms_p50"], found["latency_ms_p95"]) == (pytest.approx(1.0), pytest.approx(100.0))


class Sleeps(nn.Module):
    """A model (by its encoder) whose pass takes a known time: it sleeps, and notes how long by a
    stopwatch of its own."""

    def __init__(self, encoder: nn.Module, seconds: float):
        super().__init__()
        self.encoder, self.seconds, self.slept, self.size = encoder, seconds, [], encoder.size
        self.head_max_norm = None

    trained_by = None

    def auxiliary_loss(self) -> float:
        return 0.0

    def forward(self, words):
        began = time.monotonic()
        time.sleep(self.seconds)
        self.slept.append(time.monotonic() - began)
        return self.encoder(words)


def test_a_fit_of_known_speed_is_measured_to_five_percent(tmp_path):
    """On the real clock, through Lightning's loop, which adds 1 to 2 ms to a step. A busy machine
    adds more: the best of three counts."""
    corpus = toy_corpus(toy_task(train=sentences(8 * 15)))
    for number in range(3):
        model = toy_model(corpus)
        model.encoder = sleeping = Sleeps(model.encoder, 0.12)
        settings = dataclasses.replace(SMOKE, optimizer="sgd", batch_size=8, epochs=1)
        training = FitModule(
            model, Supervised(), corpus.train, corpus.dev, settings, 0.1, 0, ["accuracy"], "accuracy", False
        )
        fit(training, tmp_path / f"{number}", 1, "auto", "32", 1)
        rates, known = training.clock.rates(), 10 * 8 / sum(sleeping.slept[WARM_UP_STEPS:15])
        assert len(training.clock.steps) == 10
        assert rates["train_examples_per_second"] < known
        if rates["train_examples_per_second"] > 0.97 * known:
            break
    assert rates["train_examples_per_second"] == pytest.approx(known, rel=0.05)
    units = np.mean([units for _, _, units in training.clock.steps])
    assert rates["train_tokens_per_second"] == pytest.approx(known * units / 8, rel=0.05)


def test_an_answer_of_known_latency_is_measured_to_five_percent():
    """Other work on the machine only adds: the best of five counts."""
    corpus = toy_corpus()
    for _ in range(5):
        model = toy_model(corpus)
        model.encoder = sleeping = Sleeps(model.encoder, 0.04)
        found = cost.inference(cost.answering(model, corpus.dev, "cpu"), corpus.dev.lengths, batch_size=8, seconds=0.5)
        singles, batches = 1000 * np.array(sleeping.slept[1:-2]), sleeping.slept[-2:]
        told = found["latency_ms_p50"], found["inference_examples_per_second"]
        known = pytest.approx((np.percentile(singles, 50), 16 / sum(batches)), rel=0.05)
        if told == known:
            break
    assert told == known


def test_measuring_stops_after_its_time(slow):
    """A slow model must not be asked a thousand times."""
    cost.inference(slow, np.ones(1000), batch_size=7, seconds=0.102)
    assert slow.asked.count(1) == 1 + 26 and sum(size > 1 for size in slow.asked) == 11


def test_a_split_of_one_row_can_be_measured(slow):
    assert cost.inference(slow, np.ones(1), batch_size=8)["inference_examples_per_second"] == pytest.approx(250)


def test_a_model_answers_as_it_is_timed():
    corpus = toy_corpus()
    model = toy_model(corpus).train()
    assert len(cost.answering(model, corpus.dev, "cpu")(np.arange(3))) == 3
    assert not model.training, "dropout is no part of an answer"


# --- size ---


def test_shared_parameters_count_once():
    """An output layer tied to the embeddings is not a second table."""
    model = nn.ModuleDict(
        {"table": nn.Embedding(10, 4), "output": nn.Linear(4, 10, bias=False), "bag": nn.EmbeddingBag(5, 2)}
    )
    assert cost.parameters(model) == {"total": 40 + 40 + 10, "embedding": 50}
    model["output"].weight = model["table"].weight
    model["again"] = model["table"]
    assert cost.parameters(model) == {"total": 40 + 10, "embedding": 50}


def test_a_models_table_is_its_embedding():
    corpus = toy_corpus()
    model = toy_model(corpus, dims=8)
    size = corpus.view.width * 8
    assert cost.parameters(model) == {"total": size + 8 * 2 + 2, "embedding": size}


class Inner(nn.Module):
    """A layer as the harness calls a model: on a dict of inputs."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, inputs):
        return self.layer(inputs["text"])


def batch(*shape: int) -> Batch:
    return Batch({"text": torch.randn(*shape)}, None, np.arange(shape[0]), 0)


def test_operations_of_a_linear_layer_are_two_per_weight():
    assert cost.flops_per_example(Inner(nn.Linear(7, 3)), [batch(5, 7)]) == 2 * 7 * 3


def test_operations_of_an_lstm_are_counted():
    """The counter misses the fused layer on the CPU: a zero would make recurrent models look
    free."""
    layer = nn.LSTM(7, 3, batch_first=True)
    found = cost.flops_per_example(Inner(layer), [batch(5, 11, 7)])
    assert found == pytest.approx(11 * 2 * 4 * 3 * (7 + 3), rel=0.05)
    assert layer.weight_hh_l0.device.type == "cpu" and layer.training, "the model itself is left as it was"


def test_operations_of_a_whole_model_are_counted():
    corpus = toy_corpus(gives="states")
    model = toy_model(corpus, "bilstm", hidden=6)
    short, long = (
        cost.flops_per_example(model, [corpus.train.collate(np.flatnonzero(corpus.train.lengths == n))]) for n in (4, 5)
    )
    assert 4 * 2 * 2 * 4 * 6 * (8 + 6) <= short < long


def test_operations_are_those_of_texts_of_all_lengths():
    """Batches are of about one length each: counted on the first of them, the same network cost
    half as much again with batches of 16 as with batches of 32."""
    lengths = np.random.default_rng(0).permutation(np.repeat(np.arange(5, 51), 20))
    found = []
    for size in (16, 32, 64):
        batches = of_all_lengths(length_buckets(lengths, size, None), lengths, cost.COUNTED)
        assert len(batches) == cost.COUNTED
        padded = [batch(len(rows), int(lengths[rows].max()), 7) for rows in batches]
        found.append(cost.flops_per_example(Inner(nn.Linear(7, 3)), padded) / (2 * 7 * 3 * lengths.mean()))
    assert found == pytest.approx([1, 1, 1], abs=0.06), "padding is a part of it"


class AsksForValues(nn.Module):
    def __init__(self, how: str):
        super().__init__()
        self.how = how

    def forward(self, x):
        ask = {
            "item": lambda: x.sum().item(),
            "if": lambda: 1 if x.sum() > 0 else 2,
            "tolist": lambda: x.tolist(),
            "numpy": lambda: x.numpy(),
            "asarray": lambda: np.asarray(x),
            "cpu": lambda: x.cpu().numpy(),
            "range": lambda: list(range(int(x.sum()))),
            "empty choice": lambda: max(i for i, one in enumerate(x.tolist()) if one),
        }[self.how]
        ask()
        return x


@pytest.mark.parametrize("how", ["item", "if", "tolist", "numpy", "asarray", "cpu", "range", "empty choice"])
def test_a_model_that_looks_at_values_is_counted_where_there_are_some(how):
    """A copy without storage has none to look at."""
    model = Inner(nn.Sequential(AsksForValues(how), nn.LSTM(3, 2, batch_first=True)))
    assert cost.flops_per_example(
        model, [Batch({"text": torch.ones(4, 5, 3)}, None, np.arange(4), 0)]
    ) == 5 * 2 * 4 * 2 * (3 + 2)


def test_a_model_that_cannot_be_counted_has_no_count_and_still_a_record():
    """Counting comes after hours of training: it must not be what a cell fails on."""

    class Breaks(nn.Module):
        def forward(self, x):
            raise RuntimeError("out of memory")

    assert cost.flops_per_example(Inner(Breaks()), [batch(2, 3)]) is None
    assert cost.flops_per_example(Inner(nn.ReLU()), [batch(2, 3)]) is None, (
        "nothing that is counted is not a cost of nothing"
    )


def test_operations_of_dan_are_those_worked_out_by_hand():
    """Two per weight: 8 x 6 into the first layer, 6 x 6 into the second, 6 x 2 classes. Look-up and
    mean are free."""
    corpus = toy_corpus()
    model = toy_model(corpus, "dan", dims=8, hidden=6, layers=2)
    assert cost.flops_per_example(model, [corpus.train.collate(np.arange(5))]) == 2 * (8 * 6 + 6 * 6 + 6 * 2)


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("bilstm", "ag_news"),
        ("gru", "ag_news"),
        ("rnn", "ag_news"),
        ("capsule_a", "ag_news"),
        ("bert", "ag_news"),
        ("tree_lstm", "sst2"),
        ("memn2n", "babi"),
        ("transformer_tagger", "conll2003_chunk"),
        ("bilstm_crf", "conll2003_chunk"),
        ("attn_seq2seq", "an4"),
    ],
)
def test_both_ways_of_counting_agree(architecture, task):
    """Layers that are fused on one device would count as nothing there, and the model would look
    cheaper than its like."""
    model, chosen = mini_model(architecture, task)
    counted = cost._loss if architecture == "attn_seq2seq" else cost._forward
    on_cpu, without_storage = (cost._operations(model, [chosen], device, counted) for device in ("cpu", "meta"))
    assert 0 < on_cpu == without_storage


@pytest.mark.parametrize(
    "architecture", ["seq2seq", "attn_seq2seq", "attn_seq2seq_dot", "attn_seq2seq_luong", "transformer_seq2seq"]
)
def test_a_generator_counts_what_it_does_in_training(architecture):
    """Its forward pass waits for what it is to write: before that, nothing was done, and nothing
    was counted."""
    model, chosen = mini_model(architecture, "an4")
    symbols = chosen.target[0].shape[1] + 1
    output = 2 * symbols * model.encoder.output.weight.numel() if hasattr(model.encoder, "output") else symbols
    assert cost.flops_per_example(model, [chosen]) > output


def mini_model(architecture: str, task: str):
    """A tiny model of an architecture for a mini task, and a batch of its dev split."""
    entry = registry.entry("architectures", architecture)
    case = TrainedCase(entry, registry.entry("tasks", task), grid.hyperparameters(entry) | entry.tiny)
    return case.model(), case.corpus.dev.collate(np.arange(4))


def test_memory_is_that_of_this_process():
    with watched() as watch:
        before = cost.memory(watch.peak_rss_mib())["peak_rss_mib"]
        held = np.ones(64 * 2**20, dtype=np.uint8)
        after = cost.memory(watch.peak_rss_mib())
    assert 50 < before < 100_000
    assert after["peak_rss_mib"] >= before and held[0] == 1
    assert after["peak_rss_mib"] >= psutil.Process().memory_info().rss / 2**20 - 1, "in MiB, not in KiB or bytes"
    assert (after["peak_gpu_mib"] is None) == (not torch.cuda.is_available())


class WithGenerator(Objective):
    """An objective with a layer of its own, which works in training alone and draws a number."""

    def __init__(self, needs_gradients: bool = False):
        super().__init__(None, None)
        self.generator, self.needs_gradients = nn.Linear(3, 5), needs_gradients

    def losses(self, model, step):
        found = model(step.batch.inputs) * torch.rand(())
        made = self.generator(found).sum() if self.training else found.sum()
        return {"loss": torch.autograd.grad(made, found)[0].sum() if self.needs_gradients else made}


def test_operations_of_a_training_are_those_of_its_losses():
    """A generator, which answers nothing, is most of what some objectives cost; and whoever trains
    after the count draws the numbers that would have been drawn without it."""
    model, objective = Inner(nn.Linear(7, 3)), WithGenerator()
    steps = [Step({"labelled": batch(rows, 7)}, 0.0) for rows in (5, 2)]
    state = torch.get_rng_state()
    assert cost.flops_of_losses(model, objective.eval(), steps) == 2 * 7 * 3 + 2 * 3 * 5
    assert torch.equal(torch.get_rng_state(), state)
    assert not objective.training and model.layer.weight.requires_grad


def test_losses_that_take_gradients_have_no_count():
    """The operations of an answer stand in the record instead."""
    steps = [Step({"labelled": batch(5, 7)}, 0.0)]
    assert cost.flops_of_losses(Inner(nn.Linear(7, 3)), WithGenerator(needs_gradients=True), steps) is None
