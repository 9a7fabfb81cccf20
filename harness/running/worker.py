"""One cell from start to record: data, model, training, one scoring of test, measurements.

The engine runs :func:`run_cell` in a process of its own; whatever escapes from it, the engine turns
into a record.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import os
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from datasets import Dataset

from harness import registry
from harness.data.loaded_rows import training_rows
from harness.errors import MissingWeights
from harness.kinds import Estimator, made
from harness.metrics import score
from harness.objectives import collected_choices
from harness.problems import problem
from harness.records import Cell, Record, portable_text
from harness.records.blocks import Ruler
from harness.records.code_digest import code_of_cell
from harness.records.record import Status
from harness.running import devices, refit
from harness.running.assembly import Assembly, constructor_settings, parents_of, task_of
from harness.running.behind import Behind, Halving
from harness.running.checkpoints import checkpoints, forget_checkpoints
from harness.running.keeping import keep, of_parents, origin, part_of
from harness.running.learning_rates import Foresight, Pilot, TooSlow, best_rate, try_rates
from harness.running.neighbours import Watch, watched
from harness.running.ruler import known_ruler, wants_ruler
from harness.running.scored import scored
from harness.running.spending import (
    companions_read,
    cost_of_all,
    examples_of_a_pass,
    flops_of_answers,
    flops_of_training,
)
from harness.running.usage import clocks, since
from harness.running.worker_settings import Settings
from harness.saved_models.model import KeptModel, fitted_model, trained_model
from harness.settings import Limits
from harness.task import DataName, Row, Split, Task, fingerprint
from harness.training import cost
from harness.training.fit import fit, part
from harness.training.fit_module import Diverged, FitModule
from harness.training.model import Model, predict

CURVE_FIELDS = ("epoch", "train_loss", "dev_loss", "seconds")
"""Fields of a curve row that are no dev scores; so are the objective's other losses, whose names
begin with ``train_``."""


ENDS: dict[type[Exception], Status] = {
    Diverged: "diverged",
    torch.cuda.OutOfMemoryError: "oom",
    MemoryError: "oom",
    TooSlow: "timeout",
    Behind: "interrupted",  # alone it would have gone on: the same cell may run again
    MissingWeights: "skipped",  # no result of the architecture: the same command tries again
}
"""Status of a cell by the error that ended it."""


def run_cell(cell: Cell, settings: Settings) -> Record:
    """Carry out a cell and return its record; predictions are saved on the way. Divergence and
    out-of-memory are results."""
    _set_up(settings)
    record = Record.skeleton(
        cell, "ok", command=settings.command, code=code_of_cell(cell), ruler=_ruler(cell, settings)
    )
    began = clocks()
    with watched() as watch:
        fields: dict[str, Any] = {}
        status: Status = "ok"
        error: Exception | None = None
        try:
            entry = registry.entry("architectures", cell.architecture)
            run = _fit_estimator if issubclass(registry.load(entry), Estimator) else _train
            fields = run(cell, settings, watch)
        except Exception as failure:
            if not isinstance(failure, tuple(ENDS)):  # which say by themselves what happened
                traceback.print_exc()
            status, error = _status_of(failure), failure
        fields = {"memory": cost.memory(watch.peak_rss_mib())} | fields
        if "speed" in fields:
            fields["speed"]["beside"] = watch.beside
    forget_checkpoints(cell, settings)  # a cell that ended is not resumed
    seconds = fields.pop("seconds", {"train": 0.0, "dev": 0.0})
    earlier = fields.pop("earlier", {"train": 0.0, "dev": 0.0, "train_processor": 0.0})
    total, computed = since(began)
    total, computed = total + earlier["train"] + earlier["dev"], computed + earlier["train_processor"]
    record = record.model_copy(update=fields | {"status": status})
    other = max(0.0, total - seconds["train"] - seconds["dev"])
    record.seconds = seconds | {"other": other, "total": total, "total_processor": computed}
    record.main_metric = registry.entry("tasks", cell.task).main_metric
    # What else this machine did meanwhile: a speed taken beside other work is lower than it could
    # be.
    record.environment = record.environment | {"load_average": round(os.getloadavg()[0], 2)}
    if error is not None:
        record.error = {
            "type": type(error).__name__,
            "message": portable_text(str(error), settings.results, settings.data_dir),
            "log": os.path.relpath(settings.log(cell), settings.results),
        }
    return record


def _set_up(settings: Settings) -> None:
    for plugin in settings.plugins:
        registry.add_plugin(plugin)
    torch.set_num_threads(settings.threads)


def _ruler(cell: Cell, settings: Settings) -> Ruler | None:
    """The machine's speed today, which the engine has had measured; None where that failed, or the
    cell wants none. Measured here, it would count against the limits of the cell."""
    return known_ruler(settings.work / "ruler") if wants_ruler(cell) else None


def _status_of(failure: Exception) -> Status:
    """The status of a cell that an error ended. A full disk is no result of the architecture: the
    same command runs the cell again."""
    if known := next((status for error, status in ENDS.items() if isinstance(failure, error)), None):
        return known
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return "interrupted"
    return "oom" if "can't allocate memory" in str(failure) else "failed"


def _timed(cell: Cell, seconds: float) -> float:
    """Seconds for which answers are timed: less of a cell that only shows that it runs."""
    return seconds / 10 if cell.protocol == "smoke" else seconds


def _partial(cell: Cell, task: Task, examples: int) -> bool:
    """True if the cell saw less than the task offers: fewer training examples than the official
    split has, or capped passes over them."""
    return examples < task.entry.sizes.get("train", 0) or Limits.of(cell.hyperparameters).max_epochs is not None


def _fit_estimator(cell: Cell, settings: Settings, watch: Watch) -> dict[str, Any]:
    """A cell without gradient training."""
    entered = clocks()
    task = task_of(cell)
    architecture = registry.load(registry.entry("architectures", cell.architecture))
    train = training_rows(task, cell.tier, settings.data_dir, Limits.of(cell.hyperparameters).labelled)
    dev = task.load("dev", cell.tier, settings.data_dir)
    asked_of = problem(task.entry.type)
    hidden, learnt = asked_of.input_rows, asked_of.learnt_rows
    parents = parents_of(cell, settings)

    def fresh(**found: Any) -> Estimator:
        learner = made(architecture, task.entry.type, cell.seed, constructor_settings(cell) | found)
        parents.give(learner, hidden(train.to_list()) if parents.models else ())
        return learner

    estimator = fresh()
    unlabelled = hidden(task.load("test", cell.tier, settings.data_dir)) if estimator.transductive else ()
    estimator.prepare()
    given = learnt(train.to_list()), learnt(dev.to_list())
    began = clocks()
    estimator.fit(*given, unlabelled)
    took, computed = since(began)
    trained = time.perf_counter()
    asked = hidden(dev)
    dev_scores = score(task.entry.metrics, estimator.predict(asked), dev, task.label_tree)
    ended = time.perf_counter()
    test = task.load("test", cell.tier, settings.data_dir)
    loaded: dict[Split, Dataset] = {"train": train, "dev": dev, "test": test}
    data: dict[DataName, str] = {name: fingerprint(rows.to_list()) for name, rows in loaded.items()}
    fields = scored(cell, task, settings, watch, dev_scores, train, test, data, estimator.predict(hidden(test)))
    fields |= of_parents(parents, cell) | {"spent": {"examples": len(train)}}
    if (tokens := asked_of.tokens(estimator)) is not None:
        fields["tokens"] = tokens
    if settings.keeps(cell):
        part = part_of(registry.entry("architectures", cell.architecture), constructor_settings(cell))

        def model(fitted: Estimator, refitted: int | None = None) -> KeptModel:
            return fitted_model(origin(cell, fields, took, refitted=refitted), task.entry.type, part, fitted, train[0])

        def anew() -> KeptModel:
            rows: dict[Split, list[Row]] = {name: learnt(split.to_list()) for name, split in loaded.items()}
            shipped = registry.entry("architectures", cell.architecture).shipped
            return model(*refit.learnt_anew(estimator, fresh, shipped, task.together, rows, unlabelled))

        fits = refit.FOLDS - 1 if estimator.chosen_on_dev() else 1
        keep(cell, settings, lambda: model(estimator), anew, entered, (fits * took, fits * computed))
    speed: dict[str, Any] = {
        "train_examples_per_second": len(train) / took,
        "train_tokens_per_second": None,
    }
    speed |= {"train_spread": None, "unstable": True}
    if not estimator.transductive:
        speed |= cost.inference(
            lambda rows: estimator.predict([asked[i] for i in rows]),
            np.ones(len(asked)),
            batch_size=64,
            seconds=_timed(cell, 1.0),
        )
    return fields | {
        "counts": {"train": len(train), "dev": len(dev), "test": len(test)},
        "partial": _partial(cell, task, len(train)),
        "parameters": {"total": int(estimator.parameter_count), "embedding": 0},
        "deterministic": estimator.deterministic,
        "speed": speed,
        "flops_per_example": estimator.flops_per_example,
        "seconds": {"train": took, "dev": ended - trained, "train_processor": computed},
    }


def _trained_model(
    assembly: Assembly, model: Model, fields: dict[str, Any], objective: str, refitted: int | None = None
) -> KeptModel:
    cell, corpus, regime = assembly.cell, assembly.corpus, None
    if assembly.regime is not None:
        regime = part_of(registry.entry("architectures", cell.architecture), constructor_settings(cell))
    return trained_model(
        origin(cell, fields, fields["seconds"]["train"], objective, refitted),
        assembly.task.entry.type,
        part_of(assembly.encoder_entry, assembly.settings),
        regime,
        model,
        corpus.view,
        corpus.target,
        assembly.dims,
        assembly.training,
        corpus.train.rows[0],
    )


def train_along(cell: Cell, settings: Settings) -> None:
    """The work of a further process of a cell on several devices (:mod:`harness.running.devices`):
    the training, and nothing that comes after it."""
    _set_up(settings)
    _fitted(cell, settings)


def _train(cell: Cell, settings: Settings, watch: Watch) -> dict[str, Any]:
    """A cell trained by gradients."""
    entered = clocks()
    if cell.devices > 1:
        devices.lead(cell, settings)
    assembly, training, pilots, kept, folder = _fitted(cell, settings)
    fields = _score_and_measure(cell, settings, watch, assembly, training, kept)
    flops = flops_of_training(training) or fields["flops_per_example"]
    spent = cost_of_all(training, kept, pilots, flops, cell.devices)
    fields |= of_parents(assembly.parents, cell) | {"spent": spent}
    if assembly.companions:
        fields["companions"] = companions_read(assembly.companions, training, kept, pilots, cell.devices)
    if sources := training.model.sources:
        described = [{"name": name, "dims": source.size} for name, source in sources.items()]
        fields["inputs"] = [*fields.get("inputs", []), *described]
    if settings.keeps(cell):
        name, seconds = training.objective.name, fields["seconds"]

        def anew() -> KeptModel:
            # The digest in the name of the folder is not of test, from which this training learns.
            own = folder / f"refit-{fields['data']['test'][:16]}"
            again, second = refit.trained(cell, settings, training.lr, own)
            return _trained_model(again, second.model, fields, name, len(again.corpus.train))

        made = functools.partial(_trained_model, assembly, training.model, fields, name)
        both = seconds["train"] + seconds["dev"]
        cores = seconds["train_processor"] / max(1e-9, seconds["train"])  # dev keeps as many of them busy
        keep(cell, settings, made, anew, entered, (both, cores * both))
    tried = {str(lr): pilot and pilot.score for lr, pilot in pilots.items()}
    fields["training"] = kept | {
        "objective": training.objective.name,
        "settings": dataclasses.replace(training.settings, lr=training.lr).to_dict(complete=True),
        "learning_rates": tried,
        "curve": training.curve,
    }
    if flops:  # a backward pass takes about twice a forward pass
        passes = 3 * kept["epochs"] * training.passes_per_epoch * examples_of_a_pass(training)
        fields["training"]["flops"] = float(passes * flops)
    return fields


def _fitted(
    cell: Cell, settings: Settings
) -> tuple[Assembly, FitModule, dict[float, Pilot | None], dict[str, Any], Path]:
    """The assembly, the training at the best learning rate, the pilots at all, what :func:`fit`
    tells, and the folder of checkpoints."""
    assembly = Assembly(cell, settings)
    data = {str(split): digest for split, digest in assembly.corpus.fingerprints.items()}
    data |= {each.task.entry.id: each.identity for each in assembly.companions}
    data |= {f"parent {role}": digest for role, digest in assembly.parents.digests.items()}
    folder = checkpoints(cell, settings, data)
    pilots = try_rates(assembly, settings, folder)
    training = assembly.training_of(assembly.model(cell.seed), best_rate(pilots, assembly))
    epochs = assembly.most_epochs(training)
    limited = settings.timeout is not None or settings.cpu_limit is not None
    asked: list[pl.Callback] = [Foresight(settings, epochs)] if limited and len(pilots) == 1 else []
    if settings.rival is not None:
        asked.append(Halving(settings.rival, epochs))
    kept = fit(training, folder, cell.devices, settings.strategy, cell.precision, epochs, callbacks=asked)
    part()
    return assembly, training, pilots, kept, folder


def _score_and_measure(
    cell: Cell, settings: Settings, watch: Watch, assembly: Assembly, training: FitModule, kept: dict[str, Any]
) -> dict[str, Any]:
    """Test scored once with the best weights, on one device, and what the model costs."""
    corpus, task, batch_size = assembly.corpus, assembly.task, assembly.training.batch_size
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = training.model.to(device)
    test = corpus.test()
    dev_scores = {
        name: value
        for name, value in training.curve[kept["best_epoch"] - 1].items()
        if name not in CURVE_FIELDS and not name.startswith("train_")
    }
    with collected_choices() as choices:
        predictions = predict(model, test, batch_size, device)
    fields = scored(
        cell, task, settings, watch, dev_scores, corpus.train.rows, test.rows, corpus.fingerprints, predictions
    )
    if choices:
        fields["choices"] = {name: torch.cat(values).double().mean().item() for name, values in choices.items()}
    speed = training.clock.rates() | cost.inference(
        cost.answering(model, corpus.dev, device), corpus.dev.padded_lengths, batch_size, _timed(cell, 2.0)
    )
    flops, batches = flops_of_answers(training, assembly)
    if (tokens := corpus.problem.tokens(corpus.target)) is not None:
        fields["tokens"] = tokens
    return fields | {
        "counts": {"train": len(corpus.train), "dev": len(corpus.dev), "test": len(test)},
        "partial": _partial(cell, task, len(corpus.train)),
        "view": corpus.view.settings(),
        "vectors": assembly.vectors,
        "parameters": cost.parameters(model),
        "speed": speed,
        "flops_per_example": flops,
        "flops_batches": batches,
        "seconds": dict(training.seconds),
        "earlier": training.earlier,
    }
