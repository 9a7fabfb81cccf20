"""What a model costs: speed in steady state, latency, memory, parameters and floating-point operations."""

from __future__ import annotations

import copy
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.batching import length_buckets
from harness.corpus import Batch, Split
from harness.model import Model

WARM_UP_STEPS = 5
"""First steps of a fit that no figure counts: caches fill and memory is allocated."""

UNSTABLE_ABOVE = 0.25
"""Spread (sd / mean of the rates in ten consecutive parts of the run) above which a training speed is called unstable."""


class StepClock:
    """Examples and units per second of training, from the end of one step to the end of the next.

    Time between epochs (dev evaluation, checkpoints) is left out: :meth:`pause` says when it begins.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[float, int, int]] = []
        self._last: float | None = None
        self._seen = 0

    def pause(self) -> None:
        """The next step has no predecessor."""
        self._last = None

    def step(self, examples: int, units: int) -> None:
        """One optimiser step is over."""
        now = time.perf_counter()
        self._seen += 1
        if self._last is not None and self._seen > WARM_UP_STEPS:
            self.steps.append((now - self._last, examples, units))
        self._last = now

    def rates(self) -> dict[str, Any]:
        """``train_examples_per_second``, ``train_tokens_per_second`` (without padding) and ``unstable``.

        Before any step counted there is no rate, and ``unstable`` is true.
        """
        if not self.steps:
            return {"train_examples_per_second": None, "train_tokens_per_second": None, "unstable": True}
        seconds, examples, units = np.array(self.steps, dtype=float).T
        parts = np.array_split(np.arange(len(seconds)), min(10, len(seconds)))
        rates = np.array([units[part].sum() / seconds[part].sum() for part in parts])
        return {
            "train_examples_per_second": float(examples.sum() / seconds.sum()),
            "train_tokens_per_second": float(units.sum() / seconds.sum()),
            "unstable": bool(len(rates) < 3 or rates.std() / rates.mean() > UNSTABLE_ABOVE),
        }


def _timed(run: Callable[[], Any]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def inference(answer: Callable[[np.ndarray], Any], lengths: np.ndarray, batch_size: int, seconds: float = 2.0) -> dict[str, float]:
    """Latency of one example (p50 and p95, ms) and examples/s at ``batch_size``, over at most about ``seconds`` each.

    ``answer`` predicts the given rows, collation and decoding included; ``lengths`` are those of the rows it can be asked for.
    """
    order = np.random.default_rng(0).permutation(len(lengths))
    answer(order[:1])
    singles: list[float] = []
    while len(singles) < len(order) and sum(singles) < seconds and len(singles) < 200:
        singles.append(_timed(lambda: answer(order[len(singles) : len(singles) + 1])))
    done, spent = 0, 0.0
    for rows in length_buckets(lengths, batch_size, np.random.default_rng(0)):
        spent += _timed(lambda rows=rows: answer(rows))
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
            return model.predict(move_data_to_device(split.collate(rows), device), split)

    return answer


def parameters(model: nn.Module) -> dict[str, int]:
    """All parameters (a shared one counts once), and those that are rows of look-up tables."""
    tables = {id(m.weight): m.weight.numel() for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    return {"total": sum(p.numel() for p in model.parameters()), "embedding": sum(tables.values())}


def flops_per_example(model: Model, batch: Batch) -> float | None:
    """Floating-point operations of one forward pass divided by the batch's examples.

    None where the pass depends on values, or does nothing that the counter knows (a generator's pass begins with its loss).

    Counted on a copy without storage (device ``meta``): on the CPU the counter misses fused layers such as LSTM.
    """
    from pytorch_lightning.utilities import move_data_to_device
    from torch.utils.flop_counter import FlopCounterMode

    try:
        clone = copy.deepcopy(model).to("meta").eval().requires_grad_(False)  # the counter hooks into gradients of views
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            clone(move_data_to_device(batch.inputs, "meta"))
        return counter.get_total_flops() / len(batch.rows) or None
    except Exception:  # whatever a forward pass does with values that are not there; the cell is trained by now
        return None


def memory() -> dict[str, float | None]:
    """Peak resident memory of this process and peak memory on the GPU, in MiB."""
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None
    return {"peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "peak_gpu_mib": gpu}
