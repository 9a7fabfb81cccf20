"""What a model costs: figures that a reader compares between architectures."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from toy_corpus import toy_corpus, toy_model

from harness import measure
from harness.corpus import Batch
from harness.measure import WARM_UP_STEPS, StepClock


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch):
    """A clock that stands still until it is told how many seconds pass."""
    now = [100.0]
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: now[0]))

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
    assert clock.rates() == {"train_examples_per_second": 8.0, "train_tokens_per_second": 40.0, "unstable": False}


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
    """Examples over seconds, not the mean of the steps' rates: short last batches count for what they are."""
    clock = StepClock()
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    run(clock, tick, [1.0] * 9, examples=10, units=30)
    run(clock, tick, [3.0], examples=6, units=6)
    rates = clock.rates()
    assert (rates["train_examples_per_second"], rates["train_tokens_per_second"]) == (8.0, 23.0)


@pytest.mark.parametrize(
    ("seconds", "unstable"),
    [([1.0] * 20, False), ([1.0, 1.1] * 10, False), ([1.0] * 10 + [3.0] * 10, True), ([1.0] * 2, True), ([1.0] * 3, False)],
    ids=["even", "alternating", "twice as slow later", "two steps", "three steps"],
)
def test_a_speed_that_changed_during_the_run_is_called_unstable(tick, seconds, unstable):
    clock = StepClock()
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    run(clock, tick, seconds)
    assert clock.rates()["unstable"] is unstable


def test_a_fit_too_short_for_a_figure_has_none(tick):
    """The record takes no rate for an answer, but `unstable` is yes or no: a cell of few steps must not fail on it."""
    nothing = {"train_examples_per_second": None, "train_tokens_per_second": None, "unstable": True}
    clock = StepClock()
    assert clock.rates() == nothing
    run(clock, tick, [1.0] * WARM_UP_STEPS)
    assert clock.rates() == nothing


@pytest.fixture
def slow(tick):
    """An answer that takes 3 ms for every call and 1 ms for every row; ``slow.asked`` are the sizes of its calls."""

    def answer(rows: np.ndarray) -> None:
        answer.asked.append(len(rows))
        tick(0.003 + 0.001 * len(rows))

    answer.asked = []
    return answer


def test_latency_and_throughput_of_an_answer_that_takes_a_known_time(slow):
    found = measure.inference(slow, np.arange(1, 86), batch_size=10, seconds=10)
    assert found["latency_ms_p50"] == pytest.approx(4.0)
    assert found["latency_ms_p95"] == pytest.approx(4.0)
    assert found["inference_examples_per_second"] == pytest.approx(85 / (8 * 0.013 + 0.008))
    assert slow.asked == [1] * 86 + slow.asked[86:], "one call first that is not timed"
    assert sorted(slow.asked[86:]) == [5] + [10] * 8


def test_latency_is_a_median_and_a_tail(tick):
    """One slow answer in ten moves the tail and not the median."""
    calls = iter(range(10**6))
    found = measure.inference(lambda rows: tick(0.1 if next(calls) % 10 == 5 else 0.001), np.ones(100), batch_size=100, seconds=100)
    assert (found["latency_ms_p50"], found["latency_ms_p95"]) == (pytest.approx(1.0), pytest.approx(100.0))


def test_a_sleep_is_measured_in_milliseconds():
    """On the real clock: at least the time slept, and not a thousand times more."""
    found = measure.inference(lambda rows: time.sleep(0.01), np.ones(4), batch_size=4, seconds=0.1)
    assert 10 <= found["latency_ms_p50"] < 1000
    assert found["inference_examples_per_second"] <= 400


def test_measuring_stops_after_its_time(slow):
    """A slow model must not be asked a thousand times."""
    measure.inference(slow, np.ones(1000), batch_size=7, seconds=0.102)
    assert slow.asked.count(1) == 1 + 26 and sum(size > 1 for size in slow.asked) == 11


def test_a_split_of_one_row_can_be_measured(slow):
    assert measure.inference(slow, np.ones(1), batch_size=8)["inference_examples_per_second"] == pytest.approx(250)


def test_a_model_answers_as_it_is_timed():
    corpus = toy_corpus()
    model = toy_model(corpus).train()
    assert len(measure.answering(model, corpus.dev, "cpu")(np.arange(3))) == 3
    assert not model.training, "dropout is no part of an answer"


# --- size ---


def test_shared_parameters_count_once():
    """An output layer tied to the embeddings is not a second table."""
    model = nn.ModuleDict({"table": nn.Embedding(10, 4), "output": nn.Linear(4, 10, bias=False), "bag": nn.EmbeddingBag(5, 2)})
    assert measure.parameters(model) == {"total": 40 + 40 + 10, "embedding": 50}
    model["output"].weight = model["table"].weight
    model["again"] = model["table"]
    assert measure.parameters(model) == {"total": 40 + 10, "embedding": 50}


def test_a_models_table_is_its_embedding():
    corpus = toy_corpus()
    model = toy_model(corpus, dims=8)
    size = corpus.view.width * 8
    assert measure.parameters(model) == {"total": size + 8 * 2 + 2, "embedding": size}


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
    assert measure.flops_per_example(Inner(nn.Linear(7, 3)), batch(5, 7)) == 2 * 7 * 3


def test_operations_of_an_lstm_are_counted():
    """The counter misses the fused layer on the CPU: a zero would make recurrent models look free."""
    layer = nn.LSTM(7, 3, batch_first=True)
    found = measure.flops_per_example(Inner(layer), batch(5, 11, 7))
    assert found == pytest.approx(11 * 2 * 4 * 3 * (7 + 3), rel=0.05)
    assert layer.weight_hh_l0.device.type == "cpu" and layer.training, "the model itself is left as it was"


def test_operations_of_a_whole_model_are_counted():
    corpus = toy_corpus(kind="seq")
    model = toy_model(corpus, "bilstm", hidden=6)
    short, long = (measure.flops_per_example(model, corpus.train.collate(np.flatnonzero(corpus.train.lengths == n))) for n in (4, 5))
    assert 4 * 2 * 2 * 4 * 6 * (8 + 6) <= short < long


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
def test_a_model_that_looks_at_values_has_no_count_and_still_a_record(how):
    """Counting comes after hours of training: it must not be what a cell fails on."""
    assert measure.flops_per_example(Inner(AsksForValues(how)), batch(2, 3)) is None


def test_memory_is_that_of_this_process():
    before = measure.memory()["peak_rss_mib"]
    held = np.ones(64 * 2**20, dtype=np.uint8)
    after = measure.memory()["peak_rss_mib"]
    assert 50 < before < 100_000
    assert after >= before and held[0] == 1
    import psutil

    assert after >= psutil.Process().memory_info().rss / 2**20 - 1, "in MiB, not in KiB or bytes"
    assert (measure.memory()["peak_gpu_mib"] is None) == (not torch.cuda.is_available())
