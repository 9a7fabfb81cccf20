"""Cost of a model: speed in steady state, latency, memory, parameters and floating-point
operations."""

from __future__ import annotations

import copy
import functools
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.data.batches import length_buckets
from harness.data.corpus import Batch, Split
from harness.objectives import Objective, Step
from harness.records import UNSTABLE_ABOVE
from harness.training.model import Model, in_format_of

WARM_UP_STEPS = 5
"""First steps of a fit that no figure counts: caches fill and memory is allocated."""

FEWEST_PARTS = 3
"""Parts of a fit below which their spread says nothing."""

COUNTED = 8
"""Batches of all lengths on which operations are counted."""


class StepClock:
    """Examples and units per second of training, from the end of one step to the end of the next.

    Time between epochs (dev evaluation, checkpoints) is left out: :meth:`pause` says when it
    begins.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[float, float, int]] = []
        self._last: float | None = None
        self._seen = 0

    def pause(self) -> None:
        """The next step has no predecessor."""
        self._last = None

    def step(self, examples: float, units: int) -> None:
        """One optimiser step is over."""
        now = time.perf_counter()
        self._seen += 1
        if self._last is not None and self._seen > WARM_UP_STEPS:
            self.steps.append((now - self._last, examples, units))
        self._last = now

    def rates(self) -> dict[str, Any]:
        """``train_examples_per_second``, ``train_tokens_per_second`` (without padding),
        ``train_spread`` and ``unstable``.

        The spread is sd / mean of the rates in ten consecutive parts of the fit; it is None, and
        ``unstable`` true, where there are fewer than three. Before any step counted there is no
        rate either.
        """
        rates: dict[str, Any] = {
            "train_examples_per_second": None,
            "train_tokens_per_second": None,
            "train_spread": None,
            "unstable": True,
        }
        if not self.steps:
            return rates
        seconds, examples, units = np.array(self.steps, dtype=float).T
        rates["train_examples_per_second"] = float(examples.sum() / seconds.sum())
        rates["train_tokens_per_second"] = float(units.sum() / seconds.sum())
        parts = np.array_split(np.arange(len(seconds)), min(10, len(seconds)))
        if len(parts) >= FEWEST_PARTS:
            by_part = np.array([units[part].sum() / seconds[part].sum() for part in parts])
            rates["train_spread"] = float(by_part.std() / by_part.mean())
            rates["unstable"] = rates["train_spread"] > UNSTABLE_ABOVE
        return rates


def _timed(run: Callable[[], Any]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def inference(
    answer: Callable[[np.ndarray], Any], lengths: np.ndarray, batch_size: int, seconds: float = 2.0
) -> dict[str, float]:
    """Latency of one example (p50 and p95, ms) and examples/s at ``batch_size``, over at most about
    ``seconds`` each.

    ``answer`` predicts the given rows, collation and decoding included; ``lengths`` are those of
    the rows it can be asked for.
    """
    order = np.random.default_rng(0).permutation(len(lengths))
    answer(order[:1])
    singles: list[float] = []
    while len(singles) < len(order) and sum(singles) < seconds and len(singles) < 200:
        singles.append(_timed(lambda: answer(order[len(singles) : len(singles) + 1])))
    done, spent = 0, 0.0
    for rows in length_buckets(lengths, batch_size, np.random.default_rng(0)):
        spent += _timed(functools.partial(answer, rows))
        done += len(rows)
        if spent > seconds:
            break
    return {
        "inference_examples_per_second": done / spent,
        "latency_ms_p50": 1000 * float(np.percentile(singles, 50)),
        "latency_ms_p95": 1000 * float(np.percentile(singles, 95)),
    }


def answering(model: Model, split: Split, device: torch.device | str) -> Callable[[np.ndarray], Any]:
    """Prediction of given rows by a model, as :func:`inference` times it."""
    from pytorch_lightning.utilities import move_data_to_device

    model.eval()

    def answer(rows: np.ndarray) -> Any:
        with torch.inference_mode():
            return model.predict(in_format_of(model, move_data_to_device(split.collate(rows), device)), split)

    return answer


def parameters(model: nn.Module) -> dict[str, int]:
    """All parameters (a shared one counts once), and those that are rows of look-up tables."""
    tables = {id(m.weight): m.weight.numel() for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    return {"total": sum(p.numel() for p in model.parameters()), "embedding": sum(tables.values())}


def flops_per_example(model: Model, batches: Sequence[Batch]) -> float | None:
    """Floating-point operations of a forward pass over the batches divided by their examples: two
    for each product and sum of the products of matrices and of convolutions. PyTorch's counter
    knows none of a matrix and one vector, of sparse matrices, or of distances.

    A generator has no forward pass before it is told what to write: of it the pass of the training
    loss (teacher forcing) is counted.

    Counted on a copy without storage (device ``meta``), and where the pass depends on values (a
    generator that packs its source by length) on a copy on the CPU, with fused layers taken apart.
    None where neither pass runs, or does nothing that the counter knows.
    """
    batches = [in_format_of(model, batch) for batch in batches]
    for device in ("meta", "cpu"):
        for counted in (_forward, _loss):
            try:
                if found := _operations(model, batches, device, counted):
                    return found / sum(len(batch.rows) for batch in batches)
            except Exception:  # whatever a pass does with values that are not there; the cell is trained by now
                continue
    return None


def flops_of_losses(model: Model, objective: Objective, steps: Sequence[Step]) -> float | None:
    """Operations of an objective's losses, without their gradients, divided by the labelled
    examples of the steps: what the parts that answer no question (a generator, a decoder, texts
    that are made of others) take is in it.

    Counted as by :func:`flops_per_example`, on a copy on the CPU; no random number is drawn from
    the stream of the training.
    """

    def losses(both: Any, steps: Sequence[Step]) -> None:
        both.train()  # a generator is not asked in evaluation
        for step in steps:
            both[1].losses(both[0], step)

    try:
        with torch.random.fork_rng():
            found = _operations(nn.ModuleList((model, objective)), steps, "cpu", losses)
    except Exception:  # as above
        return None
    return found / sum(len(step.batch.rows) for step in steps) if found else None


def _forward(model: Model, batches: Sequence[Batch]) -> None:
    for batch in batches:
        model(batch.inputs)


def _loss(model: Model, batches: Sequence[Batch]) -> None:
    for batch in batches:
        model.loss(batch)


def _operations(model: Any, batches: Any, device: str, counted: Callable[[Any, Any], None]) -> int:
    """Operations of a copy on a device, asked for each of the batches."""
    from pytorch_lightning.utilities import move_data_to_device
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    clone = copy.deepcopy(model).to(device).eval().requires_grad_(False)  # the counter hooks into gradients of views
    with ExitStack() as settings:
        # The counter knows no fused layers of the CPU (LSTM, attention, a transformer's whole
        # layer): it would count nothing for them.
        settings.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        settings.enter_context(warnings.catch_warnings(action="ignore"))  # the next line warns of Intel's GPUs
        settings.enter_context(torch.backends.mkldnn.flags(enabled=False))
        settings.enter_context(sdpa_kernel(SDPBackend.MATH))
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            counted(clone, move_data_to_device(batches, device))
    return counter.get_total_flops()


def memory(peak_rss_mib: float) -> dict[str, float | None]:
    """Peak resident memory of the cell's processes together, as it was measured, and peak memory of
    this one on the GPU, in MiB."""
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None
    return {"peak_rss_mib": peak_rss_mib, "peak_gpu_mib": gpu}
