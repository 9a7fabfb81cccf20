"""Records as another program, a damaged disk or somebody in bad faith might have written them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from harness.records import Cell
from tests.support.made_records import record

HUGE = 10**400
"""A whole number that no float holds."""
LONG = "x" * 250

CELL_FIELDS = [field.name for field in fields_of(Cell) if field.name != "protocol_version"]  # 1, which is not written


def sound() -> dict[str, Any]:
    """The fields of a sound record with something in every part that readers look at."""
    made = record(
        score={"accuracy": 0.75, "macro_f1": 0.5},
        seed=1,
        hyperparameters={"hidden": 100, "limits": {"max_train": 50, "max_epochs": 2}, "training": {"lr": 0.1}},
        main_metric="accuracy",
        partial=True,
        speed={"train_examples_per_second": 12.5, "latency_ms_p50": 1.5, "unstable": False},
        memory={"peak_rss_mib": 300.0},
        parameters={"total": 10, "embedding": 5},
        flops_per_example=1000,
        seconds={"train": 1.0, "total": 2.0},
        training={
            "best_epoch": 1,
            "epochs": 2,
            "learning_rates": {"0.1": 0.5},
            "curve": [{"epoch": 1, "train_loss": 0.5, "accuracy": 0.5}],
            "settings": {"lr": 0.1},
        },
        environment={"versions": {"torch": "2"}, "threads": 1, "device": "cpu", "cpu": "x", "load_average": 0.5},
        data={"test": "t" * 64},
        started="2025-01-01T00:00:00+00:00",
        spent={"steps": 3},
        view={"min_count": 2},
    )
    return json.loads(made.to_json())


def put(fields: dict[str, Any], way: str, value: Any) -> None:
    """Put a value at a dotted place."""
    *holders, last = way.split(".")
    for holder in holders:
        fields = fields.setdefault(holder, {})
    fields[last] = value


Text = Callable[[int], str]
"""Text of an odd record for a seed, which tells the records of one folder apart."""


def with_values(**places: Any) -> Text:
    """The sound record with other values at places, whose dots are written ``__``; its key is that
    of the cell that it describes then."""

    def text(seed: int) -> str:
        fields = sound() | {"seed": seed}
        for way, value in places.items():
            put(fields, way.replace("__", "."), value)
        cell = {name: fields[name] for name in CELL_FIELDS}
        canonical = json.dumps(cell, sort_keys=True, separators=(",", ":"))
        return json.dumps(fields | {"key": hashlib.sha256(canonical.encode()).hexdigest()[:16]}, indent=1)

    return text


def replaced(old: str, new: str) -> Text:
    """The sound record with one piece replaced."""

    def text(seed: int) -> str:
        whole = with_values()(seed)
        assert old in whole
        return whole.replace(old, new, 1)

    return text


REFUSED: dict[str, Text] = {
    "task with a blank": with_values(task="my task"),
    "task with an umlaut": with_values(task="täsk"),
    "task with a line end": with_values(task="a\nb"),
    "task with markup": with_values(task="<b>"),
    "task of dots": with_values(task=".."),
    "task of 250 letters": with_values(task=LONG),
    "architecture with a blank": with_values(architecture="my architecture"),
    "architecture with an umlaut": with_values(architecture="ärchitecture"),
    "architecture with markup": with_values(architecture="<b>"),
    "architecture of 250 letters": with_values(architecture=LONG),
    "architecture without letters": with_values(architecture=""),
    "limits are a list": with_values(hyperparameters__limits=[1]),
    "limits are null": with_values(hyperparameters__limits=None),
    "limits are a number": with_values(hyperparameters__limits=5),
    "limits are a text": with_values(hyperparameters__limits="none"),
    "budget's name is a number": with_values(hyperparameters__limits__budget=7),
    "limit on examples is a list": with_values(hyperparameters__limits__max_train=[1]),
    "limit on examples is a text": with_values(hyperparameters__limits__max_train="many"),
    "limit on examples is huge": with_values(hyperparameters__limits__max_train=HUGE),
    "limit on examples is a fraction": with_values(hyperparameters__limits__max_train=0.5),
    "limit on passes is a mapping": with_values(hyperparameters__limits__max_epochs={}),
    "training is a list": with_values(hyperparameters__training=[1]),
    "training is null": with_values(hyperparameters__training=None),
    "training is a text": with_values(hyperparameters__training="none"),
    "score is almost infinite": with_values(scores__test__accuracy=1e308),
    "score is far below zero": with_values(scores__test__accuracy=-1e200),
    "dev score is far above one": with_values(scores__dev={"accuracy": 1e200}),
    "score is infinite": replaced("0.75", "Infinity"),
    "score is infinite in digits": replaced("0.75", "1e999"),
    "score is not a number": replaced("0.75", "NaN"),
    "training examples are huge": with_values(counts__train=HUGE),
    "parameters are huge": with_values(parameters__total=HUGE),
    "operations are huge": with_values(flops_per_example=HUGE),
    "operations of training are huge": with_values(training__flops=1e308),
    "speed is almost infinite": with_values(speed__train_examples_per_second=1e308),
    "memory is almost infinite": with_values(memory__peak_rss_mib=1e308),
    "seconds are almost infinite": with_values(seconds__train=1e308),
    "loss is almost infinite": with_values(training__curve=[{"epoch": 1, "train_loss": 1e308}]),
    "epoch is huge": with_values(training__curve=[{"epoch": HUGE, "train_loss": 0.5}]),
    "best epoch is huge": with_values(training__best_epoch=HUGE),
    "score of a rate is almost infinite": with_values(training__learning_rates={"0.1": 1e308}),
    "seed is huge": with_values(seed=HUGE),
    "version is huge": with_values(architecture_version=HUGE),
    "devices are huge": with_values(devices=HUGE),
    "steps are huge": with_values(spent__steps=HUGE),
    "hyperparameter is huge": with_values(hyperparameters__hidden=HUGE),
    "setting is huge": with_values(training__settings__lr=HUGE),
    "setting of the view is huge": with_values(view__min_count=HUGE),
    "load is huge": with_values(environment__load_average=HUGE),
    "load is infinite": replaced('"load_average": 0.5', '"load_average": Infinity'),
    "status stands twice": replaced('"status": "ok"', '"status": "ok", "status": "failed"'),
    "hyperparameter stands twice": replaced('"hidden": 100', '"hidden": 100, "hidden": 100'),
    "score stands twice": replaced('"accuracy": 0.75', '"accuracy": 0.75, "accuracy": 0.25'),
    "tier is unknown": with_values(tier="moon"),
    "status is unknown": with_values(status="fine"),
    "field is unknown": with_values(colour="red"),
    "started is no time": with_values(started="yesterday"),
    "predictions lie elsewhere": with_values(predictions={"path": "/etc/passwd", "sha256": "0" * 64}),
    "predictions have a null byte": with_values(predictions={"path": "a\0b", "sha256": "0" * 64}),
    "key is that of another cell": replaced('"protocol": "equal"', '"protocol": "paper"'),
    "text is UTF-16": lambda seed: with_values()(seed).encode("utf-16").decode("latin-1"),
    "text is cut off": lambda seed: with_values()(seed)[:300],
    "text is a list": lambda seed: "[]",
    "text is empty": lambda seed: "",
    "text is deep": lambda seed: '{"key": ' + "[" * 100_000,
}
"""Texts that no reader takes for a record."""

READ: dict[str, Text] = {
    "metric with markup": with_values(scores__test={"<b>": 0.5}),
    "metric with a path": with_values(scores__test={"../../x": 0.5}),
    "metric of 300 letters": with_values(scores__test={"m" * 300: 0.5}),
    "metric without letters": with_values(scores__test={"": 0.5}),
    "no score": with_values(scores={}),
    "main metric with markup": with_values(main_metric="<b>"),
    "main metric of 6,000 letters": with_values(main_metric="m" * 6000),
    "loss with markup": with_values(training__curve=[{"<b>": 0.5}]),
    "curve without numbers": with_values(training__curve=[{"epoch": None, "accuracy": None}, {}]),
    "curve with an epoch before the first": with_values(training__curve=[{"epoch": -5, "train_loss": 0.5}]),
    "hyperparameter of 300 letters": with_values(hyperparameters={"h" * 300: 1}),
    "hyperparameter with markup": with_values(hyperparameters={"<b>\n": 1}),
    "hyperparameter without letters": with_values(hyperparameters={"": 1}),
    "hyperparameter of 100,000 letters": with_values(hyperparameters={"text": "x" * 100_000}),
    "hyperparameters that differ by a dot": with_values(hyperparameters={"a.b": 1, "a": {"b": 2}}),
    "hyperparameters in a hundred levels": with_values(hyperparameters=json.loads('{"a":' * 100 + "1" + "}" * 100)),
    "tokens are a list": with_values(hyperparameters__tokens=["bpe", {}]),
    "no limits": with_values(hyperparameters={}),
    "limits are empty": with_values(hyperparameters__limits={}),
    "limit below zero": with_values(hyperparameters__limits__max_train=-1),
    "seed below zero": with_values(seed=-1),
    "protocol with markup": with_values(protocol="</script><script>alert(1)</script>"),
    "protocol of 6,000 letters": with_values(protocol="p" * 6000),
    "protocol without letters": with_values(protocol=""),
    "precision with markup": with_values(precision="<b>"),
    "precision of 6,000 letters": with_values(precision="p" * 6000),
    "versions are a list": with_values(environment__versions=[1]),
    "versions are a number": with_values(environment__versions=5),
    "device is a list": with_values(environment__device=["x", {}]),
    "processor is a mapping": with_values(environment__cpu={"x": 1}),
    "threads are a mapping": with_values(environment__threads={"x": 1}),
    "load is a text": with_values(environment__load_average="high"),
    "environment is empty": with_values(environment={}),
    "speed that is negative": with_values(speed__train_examples_per_second=-5.0),
    "no time": with_values(started=""),
    "time before 1970 here": with_values(started="1970-01-01T00:00:00+14:00"),
    "time without a zone": with_values(started="2025-01-01T00:00:00"),
    "seconds below zero": with_values(seconds={"total": -1e9}),
    "error of a million letters": with_values(status="failed", error={"type": "E", "message": "x" * 10**6}),
    "log is a device": with_values(status="failed", error={"type": "E", "message": "", "log": "/dev/zero"}),
    "log has a null byte": with_values(status="failed", error={"type": "E", "message": "", "log": "a\0b"}),
    "log is the folder": with_values(status="failed", error={"type": "E", "message": "", "log": "."}),
    "failed without an error": with_values(status="failed"),
    "command of 100,000 letters": with_values(command="x" * 100_000),
    "predictions are missing": with_values(predictions={"path": "records/x.xz", "sha256": ""}),
    "commit of 10,000 letters": with_values(commit="c" * 10_000),
    "data without a digest": with_values(data={"test": ""}),
    "name of a plugin with markup": with_values(
        registered={"architecture": {"name": "<b>", "family": "<i>", "kind": 3, "year": -1}, "task": {"name": "<b>"}}
    ),
    "plugin that says nothing": with_values(registered={"architecture": {}, "task": {}}),
    "budget with markup": with_values(budget={"name": "<b>\n", "passes": 1e99}),
    "budget without letters": with_values(budget={"name": ""}),
    "sees markup": with_values(sees=["<b>", "", "x" * 6000]),
    "vectors with markup": with_values(vectors={"name": "<b>", "sha256": "0" * 64}),
    "settings of vectors are a list": with_values(hyperparameters__vectors=[1, {}]),
    "limit is a budget": with_values(hyperparameters__limits={"budget": "<b>"}),
}
"""Texts that are records, odd as they are."""

ODD = REFUSED | READ


def text_of(name: str) -> str:
    """Text of an odd record, with a seed of its own."""
    return ODD[name](100 + list(ODD).index(name))


def write_odd(folder: Path, name: str) -> Path:
    """Write an odd record below a results folder, where its own fields say where it can be."""
    text = text_of(name)
    encoded = text.encode("latin-1") if "UTF-16" in name else text.encode()
    try:
        fields = json.loads(text)
        names = [fields["task"], fields["architecture"], fields["key"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        names = ["sst2", "dan", "0123456789abcdef"]
    place = [name if name.strip(".") else "odd" for name in names]
    path = Path(folder, "records", *place[:2], f"{place[2]}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded)
    return path
