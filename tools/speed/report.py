"""``results/speed.md`` and its plot from ``results/speed.json``: ``python -m tools.speed.report
results/speed.json``."""

from __future__ import annotations

import itertools
import json
import math
import string
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from harness.running.ruler import rescaled
from tools.speed.goals import Row, markdown, markdown_table

LAYERS = {
    "LSTM": ("O(n d^2)", "O(n)", "O(n)"),
    "convolution, window 3": ("O(k n d^2)", "O(1)", "O(n / k)"),
    "self-attention": ("O(n^2 d)", "O(1)", "O(1)"),
}
"""Zhang and Teng's table of one layer: cost, steps that wait for each other, length of the path
between two words."""


def document(kept: dict[str, Any]) -> str:
    """The Markdown text."""
    parts = [
        "# Speed",
        "Generated from `speed.json` by `tools/speed/report.py`; measured by `make bench` and `tools/speed/models.py`.",
        "\n".join(["Machines:", "", *map(machine_line, kept["machines"].values())]),
    ]
    if rows := [Row(**row) for row in kept.get("targets", [])]:
        parts += ["## Targets", f"{sum(row.met for row in rows)} of {len(rows)} are met.", markdown(rows)]
    if points := kept.get("scaling"):
        parts += [
            "## Cost against length",
            SCALING.format(machines=machines_of(points)),
            "![time and operations against length](speed_scaling.svg)",
            scaling_table(points),
        ]
    if rows := kept.get("many"):
        parts += ["## Many records", MANY.format(machines=machines_of(rows)), many_table(rows)]
    if models := kept.get("models"):
        parts += ["## Every architecture", MODELS, model_part(models)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


SCALING = (
    "One layer of each sort, 128 wide, forward and backward, batch 8, one thread. n is the number of words, d the"
    " width, k the window. A growth of 1 is linear in n, 2 is quadratic; it is taken between the two greatest lengths."
    " The self-attention layer has its projections and feed-forward network beside the n^2 part, which therefore shows"
    " only in long texts. Measured on: {machines}."
)
MANY = (
    "A grid of all pairs that fit and so many seeds, made up by `tools/speed/many.py`: planning it, resuming it when it"
    " is finished, `archbench.results()` of its records, and their leaderboard. Seconds are of the processor, memory is"
    " that of the largest process (below some 550 MiB that of the script which starts it); a growth of 1 is linear in"
    " the cells, between this row and the one above. Measured on: {machines}."
)
MODELS = (
    "At the sizes of the papers, on the mini tier of the home task, batch 32, one thread, one cell at a time with"
    " nothing else running. Examples/s are of training; memory is that of the cell's processes with Python and its"
    " libraries (about 400 MiB). ~ marks a rate whose spread was too wide to trust. Rows of different tasks do not"
    " compare: their texts differ in length."
)
MACHINES = (
    "Rows of different machines do not compare as they are. Rescaled is the training rate as it would be on machine"
    " {first}, by the ruler (examples/s of one frozen cell) of both; blank where a ruler is missing or one is more than"
    " twice the other."
)


def machine_line(machine: dict[str, Any]) -> str:
    """A machine in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"- {machine['cpu']}, {machine['cores']} cores, {machine['ram_gib']} GiB, {machine['device']}; {versions}."


def machines_of(rows: list[dict[str, Any]]) -> str:
    """The processors that rows were measured on."""
    return " and ".join(dict.fromkeys(row["cpu"] for row in rows))


def growth(points: list[dict[str, Any]], figure: str) -> float:
    """The exponent of n by which a figure grows between the two greatest lengths."""
    before, last = sorted(points, key=lambda point: point["length"])[-2:]
    return math.log(last[figure] / before[figure]) / math.log(last["length"] / before["length"])


def many_table(rows: list[dict[str, Any]]) -> str:
    """The costs of each number of cells, and how they grow from row to row."""
    steps = [name for name in rows[0] if name not in ("cells", "cpu")]
    headings = ["cells", *(f"{step}{of}" for step in steps for of in (", s", ", MiB", ", growth"))]
    lines = []
    for i, row in enumerate(rows):
        line = [f"{row['cells']:,}"]
        for step in steps:
            seconds, mib = row[step]["seconds"], row[step]["mib"]
            line += [_number(seconds), f"{mib:,}", ""]
            if i:
                before = rows[i - 1]
                exponent = math.log(seconds / before[step]["seconds"]) / math.log(row["cells"] / before["cells"])
                line[-1] = f"{exponent:.2f}"
        lines.append(line)
    return markdown_table([headings, ["---:"] * len(headings), *lines])


def scaling_table(points: list[dict[str, Any]]) -> str:
    """The table of the source text with what was measured beside it."""
    lengths = sorted({point["length"] for point in points})
    shown = [
        "layer",
        "cost",
        "steps in turn",
        "path",
        "growth of operations",
        "of time",
        "words seen by a state",
        *lengths,
    ]
    rows = [[f"{name} words, ms" if isinstance(name, int) else name for name in shown], ["---"] * len(shown)]
    for name, complexity in LAYERS.items():
        mine = {point["length"]: point for point in points if point["layer"] == name}
        measured = [f"{growth(list(mine.values()), figure):.2f}" for figure in ("flops", "ms")]
        sees = mine[lengths[-1]]["sees"]
        rows.append(
            [
                name,
                *complexity,
                *measured,
                f"{sees} of {lengths[-1]}",
                *(f"{mine[length]['ms']:.3g}" for length in lengths),
            ]
        )
    return markdown_table(rows)


Machine = tuple[str, str]
"""A processor, and the JSON text of its ruler on the day of a measurement."""


def machine_of(model: dict[str, Any]) -> Machine:
    """The machine that a row was measured on."""
    return model["cpu"], json.dumps(model["ruler"], sort_keys=True)


def model_part(models: list[dict[str, Any]]) -> str:
    """The rows, with a list of the machines where they are several: A is that with most rows."""
    machines = [machine for machine, _ in Counter(map(machine_of, models)).most_common()]
    if len(machines) == 1:
        return model_table(models, {})
    pairs = map("".join, itertools.product(string.ascii_uppercase, repeat=2))
    letters = dict(zip(machines, [*string.ascii_uppercase, *pairs], strict=False))
    told = [
        f"- {letter}: {cpu}, ruler {json.loads(ruler)['examples_per_second']:,.0f}"
        if ruler != "null"
        else f"- {letter}: {cpu}, ruler not measured"
        for (cpu, ruler), letter in letters.items()
    ]
    return "\n\n".join([MACHINES.format(first="A"), "\n".join(told), model_table(models, letters)])


def model_table(models: list[dict[str, Any]], letters: dict[Machine, str]) -> str:
    """One row for each architecture; ``letters`` name the machines where they are several."""
    headings = [
        "task",
        "architecture",
        "examples/s",
        "latency, ms",
        "inference, examples/s",
        "memory, MiB",
        "parameters",
        "FLOPs/example",
    ]
    if letters:
        headings += ["machine", "rescaled"]
    rows = [headings, ["---", "---", *["---:"] * (len(headings) - 2)]]
    for model in models:
        figures = [model[name] for name in ("latency_ms", "inference_per_second", "memory_mib", "parameters", "flops")]
        rate = _number(model["examples_per_second"]) + (
            "~" if model["unstable"] and model["examples_per_second"] else ""
        )
        told = [rate, *map(_number, figures)] if model["status"] == "ok" else [model["status"], *[""] * 5]
        rows.append([model["task"], model["architecture"], *told])
        if letters:
            here, first = machine_of(model), next(iter(letters))
            rate = model["examples_per_second"]
            same = rate if here == first else rate and rescaled(rate, model["ruler"], json.loads(first[1]))
            rows[-1] += [letters[here], _number(same)]
    return markdown_table(rows)


def _number(value: float | None) -> str:
    """Three digits, with the thousands apart."""
    if value is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(value))) if 0 < value < 1000 else 0
    return f"{value:,.{digits}f}"


def plot(points: list[dict[str, Any]], file: Path) -> None:
    """Time and operations against length, both axes logarithmic, so that a power of n is a straight
    line."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "archbench", "svg.fonttype": "none"}
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, name, label in zip(
        axes, ("ms", "flops"), ("ms per text, forward and backward", "operations per text, forward"), strict=True
    ):
        for layer, style in zip(LAYERS, ("o-", "s--", "^:"), strict=True):
            mine = sorted((point["length"], point[name]) for point in points if point["layer"] == layer)
            axis.loglog(*zip(*mine, strict=True), style, label=layer, base=2)
        axis.set(xlabel="words", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(file, metadata={"Date": None})


def main(file: Path) -> None:
    """Write the report and the plot beside the file."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    (file.parent / "speed.md").write_text(document(kept), encoding="utf-8")
    if kept.get("scaling"):
        plot(kept["scaling"], file.parent / "speed_scaling.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
