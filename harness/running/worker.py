"""One cell from start to record: data, model, training, one scoring of test, measurements.

The engine runs :func:`run_cell` in a process of its own; whatever escapes from it, the engine turns
into a record.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from datasets import Dataset

from harness import registry
from harness.data.batches import length_buckets
from harness.data.companions import Companion
from harness.data.corpus import training_rows
from harness.data.overlap import overlap_of
from harness.errors import MissingWeights
from harness.kinds import Estimator, made
from harness.metrics import score
from harness.objectives import Supervised, collected_choices
from harness.problems import problem
from harness.records import Cell, Record, Store, portable_text
from harness.records.blocks import Ruler
from harness.records.code_digest import code_of_cell
from harness.records.provenance import own_version
from harness.records.record import Status
from harness.registry import ArchitectureEntry
from harness.running import devices, refit
from harness.running.assembly import Assembly, constructor_settings, parents_of, task_of
from harness.running.behind import Behind, Halving
from harness.running.learning_rates import Foresight, Pilot, TooSlow, best_rate, try_rates
from harness.running.neighbours import Watch, watched
from harness.running.ruler import RulerError, ruler_of_today
from harness.running.usage import clocks, since
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.folder import Origin, Part
from harness.saved_models.model import KeptModel, fitted_model, trained_model
from harness.saved_models.parents import Parents
from harness.scoring import error_analysis
from harness.settings import CUSTOM, PILOT_SHARE, Limits
from harness.task import Row, Split, Task, fingerprint
from harness.training import cost
from harness.training.fit import fit, part
from harness.training.fit_module import CURVE_FIELDS, Diverged, FitModule
from harness.training.model import Model, predict

SLOWER = 2.5
"""Seconds of a second training, on all rows, over those of the first one; rather too many."""


def run_cell(cell: Cell, settings: Settings) -> Record:
    """Carry out a cell and return its record; predictions are saved on the way. Divergence and
    out-of-memory are results."""
    _set_up(settings)
    record = Record.skeleton(
        cell, "ok", command=settings.command, code=code_of_cell(cell), ruler=_ruler(cell, settings)
    )
    began = clocks()
    with watched() as watch:
        status: Status
        error: Exception | None
        try:
            entry = registry.entry("architectures", cell.architecture)
            run = _fit_estimator if issubclass(registry.load(entry), Estimator) else _train
            fields = run(cell, settings, watch)
            status, error = "ok", None
        except Diverged as failure:
            fields, status, error = {}, "diverged", failure
        except (torch.cuda.OutOfMemoryError, MemoryError) as failure:
            fields, status, error = {}, "oom", failure
        except TooSlow as failure:
            fields, status, error = {}, "timeout", failure
        except Behind as failure:  # alone it would have gone on: the same cell may run again
            fields, status, error = {}, "interrupted", failure
        except MissingWeights as failure:  # no result of the architecture: the same command tries again
            fields, status, error = {}, "skipped", failure
        except Exception as failure:
            traceback.print_exc()
            fields, status, error = {}, "oom" if "can't allocate memory" in str(failure) else "failed", failure
        fields = {"memory": cost.memory(watch.peak_rss_mib())} | fields
        if "speed" in fields:
            fields["speed"]["beside"] = watch.beside
    _forget_checkpoints(cell, settings)  # a cell that ended is not resumed
    seconds = fields.pop("seconds", {"train": 0.0, "dev": 0.0})
    total, computed = since(began)
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
    """The machine's speed today, for a cell that others may be compared with; None where it cannot
    be measured."""
    if cell.tier == "mini" or cell.protocol == "smoke" or cell.budget["name"] == CUSTOM:
        return None
    try:
        return ruler_of_today(settings.work / "ruler")
    except RulerError as error:
        print(error)
        return None


def _checkpoints(cell: Cell, settings: Settings, data: dict[str, str]) -> Path:
    """The folder of the checkpoints from which a fit of this cell may go on: they were made by the
    same code from the same ``data`` (fingerprints by split). Others of this cell are removed."""
    origin = [code_of_cell(cell), own_version(), data]
    digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
    folder = settings.work / "checkpoints" / f"{cell.key}-{digest}"
    _forget_checkpoints(cell, settings, folder)
    return folder


def _forget_checkpoints(cell: Cell, settings: Settings, kept: Path | None = None) -> None:
    for folder in (settings.work / "checkpoints").glob(f"{cell.key}*"):
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)
            if kept is not None:
                print("the checkpoint there was is one of other code or data: training begins anew")


def _timed(cell: Cell, seconds: float) -> float:
    """Seconds for which answers are timed: less of a cell that only shows that it runs."""
    return seconds / 10 if cell.protocol == "smoke" else seconds


def _partial(cell: Cell, task: Task, examples: int) -> bool:
    """True if the cell saw less than the task offers: fewer training examples than the official
    split has, or capped passes over them."""
    return examples < task.entry.sizes.get("train", 0) or Limits.of(cell.hyperparameters).max_epochs is not None


def _scored(
    cell: Cell,
    task: Task,
    settings: Settings,
    watch: Watch,
    dev: dict[str, float],
    train: Dataset,
    rows: Dataset,
    data: dict[Split, str],
    predictions: list[Any],
) -> dict[str, Any]:
    """Fields of a record that come from the one scoring of test; ``data`` are digests by split."""
    listed = rows.to_list()
    test = score(task.entry.metrics, predictions, listed, task.label_tree)
    # Before the files are written: compressing them takes memory that is not the model's.
    memory = cost.memory(watch.peak_rss_mib())
    store, ids = Store(settings.results), [row["id"] for row in listed]
    saved = store.save_predictions(cell, ids, predictions)
    asked = problem(task.entry.type)
    # Recordings have no column of texts, and a selection of no columns has no rows to read.
    texts = set(asked.unit_texts) & set(train.column_names)
    known = error_analysis.known_words(asked, train.select_columns(sorted(texts)).to_list() if texts else [])
    outcomes = error_analysis.outcomes(asked, task.entry.main_metric, predictions, listed, known)
    if outcomes is not None:
        store.save_outcomes(cell, saved, ids, outcomes)
    return {
        "scores": {"dev": dev, "test": test},
        "predictions": saved,
        "memory": memory,
        "official_test_examples": task.official_test_examples(cell.tier, len(listed)),
        "overlap": overlap_of(asked, train, rows, data, settings.work / "overlap"),
        "data": data,
    }


def _fit_estimator(cell: Cell, settings: Settings, watch: Watch) -> dict[str, Any]:
    """A cell without gradient training."""
    entered = time.perf_counter()
    task = task_of(cell)
    architecture = registry.load(registry.entry("architectures", cell.architecture))
    train = training_rows(task, cell.tier, settings.data_dir, Limits.of(cell.hyperparameters).labelled)
    dev = task.load("dev", cell.tier, settings.data_dir)
    hidden = problem(task.entry.type).input_rows
    parents = parents_of(cell, settings)

    def fresh(**found: Any) -> Estimator:
        learner = made(architecture, task.entry.type, cell.seed, constructor_settings(cell) | found)
        parents.give(learner, hidden(train.to_list()) if parents.models else ())
        return learner

    estimator = fresh()
    unlabelled = hidden(task.load("test", cell.tier, settings.data_dir)) if estimator.transductive else ()
    estimator.prepare()
    began = clocks()
    estimator.fit(train.to_list(), dev.to_list(), unlabelled)
    took, computed = since(began)
    trained = time.perf_counter()
    asked = hidden(dev)
    dev_scores = score(task.entry.metrics, estimator.predict(asked), dev, task.label_tree)
    ended = time.perf_counter()
    test = task.load("test", cell.tier, settings.data_dir)
    loaded: dict[Split, Dataset] = {"train": train, "dev": dev, "test": test}
    data = {name: fingerprint(rows.to_list()) for name, rows in loaded.items()}
    fields = _scored(cell, task, settings, watch, dev_scores, train, test, data, estimator.predict(hidden(test)))
    fields |= _of_parents(parents) | {"spent": {"examples": len(train)}}
    if (tokens := problem(task.entry.type).tokens(estimator)) is not None:
        fields["tokens"] = tokens
    if settings.keeps(cell):
        part = _part(registry.entry("architectures", cell.architecture), constructor_settings(cell))

        def model(learnt: Estimator, refitted: int | None = None) -> KeptModel:
            return fitted_model(_origin(cell, fields, took, refitted=refitted), task.entry.type, part, learnt, train[0])

        def anew() -> KeptModel:
            rows: dict[Split, list[Row]] = {name: split.to_list() for name, split in loaded.items()}
            shipped = registry.entry("architectures", cell.architecture).shipped
            return model(*refit.learnt_anew(estimator, fresh, shipped, rows, unlabelled))

        keep(cell, settings, lambda: model(estimator), anew, entered, took)
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


def keep(
    cell: Cell,
    settings: Settings,
    made: Callable[[], KeptModel],
    anew: Callable[[], KeptModel],
    entered: float,
    took: float,
) -> None:
    """Keep what a cell learnt, in the results folder; with ``--refit`` what it learns ``anew`` of
    all rows, if there is time: the first training took so many seconds.

    The record is worth more: a disk that is full, a state that cannot be kept and a second training
    that fails are told in the log, and the cell goes on.
    """
    ways = [anew, made] if settings.refits(cell) else [made]
    spent = time.perf_counter() - entered
    if len(ways) > 1 and spent + SLOWER * took > min(settings.timeout or math.inf, settings.cpu_limit or math.inf):
        print(f"not refitted: after {spent:.0f} s, a second training would pass the cell's limit")
        ways = [made]
    for way in ways:
        try:
            way().write(storage.place(settings.results, cell.key))
            return
        except Exception as error:  # a plugin's own methods give its state
            print(f"not {'kept' if way is made else 'refitted'}: {type(error).__name__}: {error}")


def _origin(
    cell: Cell, fields: dict[str, Any], seconds: float, objective: str | None = None, refitted: int | None = None
) -> Origin:
    """The origin of a model, by the fields of its cell's record and the seconds of its training."""
    return Origin(
        key=cell.key,
        cell=cell.to_dict(),
        data=fields["data"],
        predictions=fields["predictions"]["sha256"],
        spent=fields["spent"],
        seconds=seconds,
        objective=objective,
        lineage=fields.get("lineage", []),
        refitted=refitted,
    )


def _of_parents(parents: Parents) -> dict[str, Any]:
    """Fields of a record that come from the parents of its cell."""
    return {"lineage": parents.ancestors, **parents.sources} if parents.models else {}


def _part(entry: ArchitectureEntry, values: dict[str, Any]) -> Part:
    return Part(architecture=entry.id, version=entry.version, settings=values)


def _trained_model(
    assembly: Assembly, model: Model, fields: dict[str, Any], objective: str, refitted: int | None = None
) -> KeptModel:
    cell, corpus, regime = assembly.cell, assembly.corpus, None
    if assembly.regime is not None:
        regime = _part(registry.entry("architectures", cell.architecture), constructor_settings(cell))
    return trained_model(
        _origin(cell, fields, fields["seconds"]["train"], objective, refitted),
        assembly.task.entry.type,
        _part(assembly.encoder_entry, assembly.settings),
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
    entered = time.perf_counter()
    if cell.devices > 1:
        devices.lead(cell, settings)
    assembly, training, pilots, kept = _fitted(cell, settings)
    fields = _score_and_measure(cell, settings, watch, assembly, training, kept)
    flops = _flops_of_training(training) or fields["flops_per_example"]
    spent = _spent(training, kept, pilots, flops, cell.devices)
    fields |= _of_parents(assembly.parents) | {"spent": spent}
    if assembly.companions:
        fields["companions"] = _companions(assembly.companions, training, kept, pilots, cell.devices)
    if sources := training.model.sources:
        described = [{"name": name, "dims": source.size} for name, source in sources.items()]
        fields["inputs"] = [*fields.get("inputs", []), *described]
    if settings.keeps(cell):
        name, seconds = training.objective.name, fields["seconds"]

        def anew() -> KeptModel:
            folder = settings.work / "checkpoints" / f"{cell.key}-refit"
            again, second = refit.trained(cell, settings, training.lr, folder)
            return _trained_model(again, second.model, fields, name, len(again.corpus.train))

        made = functools.partial(_trained_model, assembly, training.model, fields, name)
        keep(cell, settings, made, anew, entered, seconds["train"] + seconds["dev"])
    tried = {str(lr): pilot and pilot.score for lr, pilot in pilots.items()}
    fields["training"] = kept | {
        "objective": training.objective.name,
        "settings": dataclasses.replace(training.settings, lr=training.lr).to_dict(complete=True),
        "learning_rates": tried,
        "curve": training.curve,
    }
    if flops:  # a backward pass takes about twice a forward pass
        passes = 3 * kept["epochs"] * training.passes_per_epoch * _examples_of_a_pass(training)
        fields["training"]["flops"] = float(passes * flops)
    return fields


def _flops_of_training(training: FitModule) -> float | None:
    """Operations of the losses of a training by example; None where they are those of an answer, as
    under the head's own loss, and where tasks take turns."""
    if type(training.objective) is Supervised or training.objective.in_turn:
        return None
    found = cost.flops_of_losses(training.model, training.objective, training.first_steps(2))
    return found and found / training.splits["labelled"].share


def _spent(
    training: FitModule,
    kept: dict[str, Any],
    pilots: dict[float, Pilot | None],
    flops_per_example: float | None,
    devices: int,
) -> dict[str, Any]:
    """Cost of all training of a cell, its pilots included."""
    streams = training.objective.streams if training.objective.in_turn else ("labelled",)
    each = [_spent_on(stream, training, kept, pilots, devices) for stream in streams]
    spent: dict[str, Any] = {name: sum(cost[name] for cost in each) for name in each[0]}
    if flops_per_example:  # a backward pass takes about twice a forward pass
        worth = _examples_of_a_pass(training) / len(training.splits["labelled"].rows)
        spent["flops"] = 3.0 * worth * each[0]["examples"] * flops_per_example
    return spent


def _spent_on(
    stream: str, training: FitModule, kept: dict[str, Any], pilots: dict[float, Pilot | None], devices: int
) -> dict[str, int]:
    """Examples, tokens and steps of all training on one stream, pilots included."""
    train, passes = training.splits[stream], kept["epochs"] * training.passes_per_epoch
    of_epoch = training.steps_on(stream, devices)
    steps = kept["epochs"] * of_epoch
    pilot = max(1, round(PILOT_SHARE * training.settings.epochs * of_epoch)) if len(pilots) > 1 else 0
    share = 1 + len(pilots) * pilot / max(1, steps)
    return {
        "examples": round(share * passes * len(train.rows)),
        "tokens": round(share * passes * int(train.lengths.sum())),
        "steps": steps + len(pilots) * pilot,
    }


def _examples_of_a_pass(training: FitModule) -> float:
    """Training examples of a pass; those of companions by their tokens, as so many of the cell's
    own task."""
    own = training.splits["labelled"]
    others = sum(int(training.splits[each].lengths.sum()) for each in training.objective.streams[1:])
    if not training.objective.in_turn or not others:
        return len(own.rows)
    return len(own.rows) * (1 + others / int(own.lengths.sum()))


def _companions(
    companions: Sequence[Companion],
    training: FitModule,
    kept: dict[str, Any],
    pilots: dict[float, Pilot | None],
    devices: int,
) -> list[dict[str, Any]]:
    """The companions of a cell's task, as its record holds them."""
    return [
        {
            "task": each.task.entry.id,
            "version": each.task.entry.version,
            "train": each.digest,
            "rows": len(each.rows),
            "left_out": each.left_out,
            **_spent_on(each.task.entry.id, training, kept, pilots, devices),
        }
        for each in companions
    ]


def _fitted(cell: Cell, settings: Settings) -> tuple[Assembly, FitModule, dict[float, Pilot | None], dict[str, Any]]:
    """The assembly, the training at the best learning rate, the pilots at all, and
    what :func:`fit` tells."""
    assembly = Assembly(cell, settings)
    data = {str(split): digest for split, digest in assembly.corpus.fingerprints.items()}
    data |= {each.task.entry.id: each.identity for each in assembly.companions}
    folder = _checkpoints(cell, settings, data)
    pilots = try_rates(assembly, settings, folder)
    training = assembly.training_of(assembly.model(cell.seed), best_rate(pilots, assembly))
    epochs = assembly.most_epochs(training)
    limited = settings.timeout is not None or settings.cpu_limit is not None
    asked: list[pl.Callback] = [Foresight(settings, epochs)] if limited and len(pilots) == 1 else []
    if settings.rival is not None:
        asked.append(Halving(settings.rival, epochs))
    kept = fit(training, folder, cell.devices, settings.strategy, cell.precision, epochs, callbacks=asked)
    part()
    return assembly, training, pilots, kept


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
    fields = _scored(
        cell, task, settings, watch, dev_scores, corpus.train.rows, test.rows, corpus.fingerprints, predictions
    )
    if choices:
        fields["choices"] = {name: torch.cat(values).double().mean().item() for name, values in choices.items()}
    speed = training.clock.rates() | cost.inference(
        cost.answering(model, corpus.dev, device), corpus.dev.padded_lengths, batch_size, _timed(cell, 2.0)
    )
    dev = training.objective.portions(corpus.dev, assembly.training)
    rows = length_buckets(dev.padded_lengths, batch_size, np.random.default_rng(0))[0]
    flops = cost.flops_per_example(model, dev.collate(rows))
    if (tokens := corpus.problem.tokens(corpus.target)) is not None:
        fields["tokens"] = tokens
    return fields | {
        "counts": {"train": len(corpus.train), "dev": len(corpus.dev), "test": len(test)},
        "partial": _partial(cell, task, len(corpus.train)),
        "view": corpus.view.settings(),
        "vectors": assembly.vectors,
        "parameters": cost.parameters(model),
        "speed": speed,
        "flops_per_example": flops and flops / dev.share,
        "seconds": dict(training.seconds),
    }
