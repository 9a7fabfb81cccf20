"""Every plugin keeps to the contract, and the contract catches plugins that do not."""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from harness import registry
from harness.contract import Result, cases, check, inputs
from harness.contract.base import run
from harness.contract.imports import again
from harness.contract.trained import FIRST, TrainedCase
from harness.kinds import Encoder
from harness.problems import problem
from harness.running import fitting, grid
from tests.support.fake_objectives import Consistent
from tools.breaks.changes import changed_since
from tools.breaks.choice import Choice

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = {id: entry for id, entry in registry.entries("architectures").items() if entry.kind != "floor"}


def way(entry: registry.ArchitectureEntry) -> tuple[Any, ...]:
    """The way of an architecture through a training: the type of the task on which it is trained
    here, the form of its output, and the objective that it has of its own."""
    settings = grid.hyperparameters(entry) | entry.tiny
    tasks = registry.tasks_to_check_on()
    task = next(task for task in tasks if fitting.reason_to_skip(entry, task, settings) is None)
    cls = fitting.loaded(entry)
    reader, _ = cls.reader_and_view(task, settings)
    return task.type, reader and reader.output_form(), getattr(cls, "trained_by", None)


def by_size(entry: registry.Entry) -> tuple[int, str]:
    """An order of plugins: those with a short file, which are simple as a rule and soon trained,
    come first."""
    return entry.file.stat().st_size, entry.id


SIMPLEST = {way(entry): entry.id for entry in sorted(ARCHITECTURES.values(), key=by_size, reverse=True)}
"""One architecture of each way."""
CHANGED = {name for name in changed_since(ROOT, "origin/main") or () if name.startswith("architectures/")}
CONCERNED = {ROOT / name for name in Choice(ROOT).users(CHANGED)}
WHOLE = {*SIMPLEST.values(), *(id for id, entry in ARCHITECTURES.items() if entry.file in CONCERNED)}
"""Architectures that are asked everything in each run of the suite: also those whose file, or a
block of theirs, changed."""


def faults(results: Iterable[Result]) -> str:
    """The checks that failed, in words."""
    return "\n".join(f"{result.name}: {result.message}" for result in results if not result.passed)


@pytest.mark.parametrize("id", ARCHITECTURES)
def test_plugin_keeps_to_the_contract(id: str) -> None:
    """A model that fails here would give wrong numbers: padding in its scores, parameters that
    never train, no determinism. The simplest of each way through a training, and those that a
    change concerns, are trained, and asked on every type of tasks."""
    entry = ARCHITECTURES[id]
    assert not faults(check(entry) if id in WHOLE else check(entry, learning=False, types=1))


@pytest.mark.minutes
@pytest.mark.parametrize("id", sorted(ARCHITECTURES.keys() - SIMPLEST.values()))
def test_another_of_its_way_keeps_to_all_of_it(id: str) -> None:
    """It may learn nothing at other sizes, or not work on another type of tasks."""
    assert not faults(check(ARCHITECTURES[id]))


def test_nothing_else_is_left_out() -> None:
    """It would be asked of hardly any architecture."""
    dan = ARCHITECTURES["dan"]
    every, untrained, of_one_type = (
        [result.name for result in check(dan, **asked)]
        for asked in ({}, {"learning": False}, {"learning": False, "types": 1})
    )
    assert [name for name in every if name in untrained] == untrained
    assert [name.partition(": ")[2] for name in every if name not in untrained] == [
        "its operations can be counted", "overfits 8 examples", "beats the floor on its mini task",
        "learns from train alone",
    ]  # fmt: skip
    imports, first, *_ = untrained
    task = first.partition(": ")[0]
    assert of_one_type == [imports, *(name for name in untrained if name.startswith(f"{task}: "))]
    assert len(of_one_type) < len(untrained)


SOURCES = registry.entries("inputs")
SIMPLEST_SOURCE = min(SOURCES.values(), key=by_size).id


@pytest.mark.parametrize("id", SOURCES)
def test_input_source_keeps_to_the_contract(id: str) -> None:
    """One that fails here would give wrong numbers to every architecture that reads it. The
    simplest is trained too."""
    assert not faults(inputs.check(SOURCES[id], learning=id == SIMPLEST_SOURCE))


@pytest.mark.minutes
@pytest.mark.parametrize("id", sorted(SOURCES.keys() - {SIMPLEST_SOURCE}))
def test_another_input_source_keeps_to_all_of_it(id: str) -> None:
    assert not faults(inputs.check(SOURCES[id]))


SOURCE = """
import torch
from harness.kinds import InputSource
from harness.registry import register_input

@register_input("source_under_test", name="Test", paper="none", source="test", year=2026)
class Source(InputSource):
    def __init__(self, view, size: int = 16):
        super().__init__()
        self.letters = torch.nn.Embedding(view.alphabet_size, size)
        self.words = torch.nn.Embedding(len(view.vocabulary), size)
        self.size = size

    def forward(self, words):
        letters, mask = self.letters(words.characters), words.character_mask[..., None]
        return {body}
"""
SOUND_SOURCE = "(letters * mask).sum(2) + self.words(words.ids)"
SOURCE_FAULTS = {
    "a longer word in another text changes nothing": "letters.sum(2) + self.words(words.ids)",
    "unknown words differ by their spelling": "self.words(words.ids) + 0 * letters.sum(2)",
    "every parameter gets a gradient": "(letters * mask).sum(2)",
    FIRST: "((letters * mask).sum(2) + self.words(words.ids))[..., :3]",
}


@pytest.mark.parametrize("name", [None, *SOURCE_FAULTS])
def test_contract_catches_an_unsound_input_source(tmp_path: Path, without_plugins: None, name) -> None:
    """And passes the same source without a fault. None of them is trained here."""
    file = tmp_path / "source_under_test.py"
    file.write_text(SOURCE.format(body=SOURCE_FAULTS.get(name, SOUND_SOURCE)))
    registry.add_plugin(file)
    with inputs.case_of(registry.entry("inputs", "source_under_test")) as case:
        results = [run(check, body) for check, body in case.of_the_system(learning=False)]
    failing = [result.name for result in results if not result.passed]
    assert name in failing if name else failing == []


@pytest.mark.parametrize("sort", ["architectures", "inputs", "tasks"])
def test_what_the_listing_parsed_is_what_is_registered(sort: registry.Sort) -> None:
    """`archbench list` reads source text; it must not tell another story than the imported
    plugin."""
    for id, entry in registry.entries(sort).items():
        registry.load(entry)
        assert dict(entry.options) == registry.registered(sort, id), id


UNSEEN = {"lstm_crf_char: encoder.unknown"}
"""Parameters that no mini corpus trains: every word of theirs is seen twice. The test of the
architecture itself trains it."""


def test_each_parameter_that_is_excused_from_a_gradient_has_one_on_some_task() -> None:
    """``unused`` excuses a layer on every task for the sake of some: one that is cut off from the
    loss of all of them would go unseen."""
    never = set()
    for id, entry in ARCHITECTURES.items():
        cls = registry.load(entry)
        if issubclass(cls, Encoder) and cls.unused:
            never |= {f"{id}: {name}" for name in without_gradient(entry, cls.unused)}
    assert never == UNSEEN


def without_gradient(entry: registry.ArchitectureEntry, prefixes: tuple[str, ...]) -> set[str]:
    """The parameters of an architecture with such names that the loss of no mini task reaches."""
    settings = grid.hyperparameters(entry) | entry.tiny
    excused = tuple(f"encoder.{prefix}" for prefix in prefixes)
    left: set[str] = set()
    for task in registry.tasks_to_check_on():
        if fitting.reason_to_skip(entry, task, settings) is not None:
            continue
        case = TrainedCase(entry, task, settings)
        model = case.model().train()
        parameters = {name: p for name, p in model.named_parameters() if name.startswith(excused)}
        left = left or set(parameters)
        case.loss(model, case.corpus.train.collate(np.arange(32))).backward()
        left -= {name for name, p in parameters.items() if p.grad is not None and p.grad.any()}
        if not left:
            break
    return left


SOUND = """
import torch
from harness.kinds import TextEncoder
from harness.registry import register

@register("plugin_under_test", name="Test", kind="text", paper="none", source="test", year=2026)
class Encoder(TextEncoder):
    def __init__(self, width: int, hidden: int = 16):
        super().__init__()
        self.hidden = torch.nn.GRU(width, hidden, batch_first=True)
        {size}

    def forward(self, words):
        states = self.hidden(words.vectors)[0]
        {body}
"""

MASKED = "return states.masked_fill(~words.mask[..., None], -torch.inf).amax(1)"
FAULTS = {
    "padding changes nothing": "return states.sum(1) / states.shape[1]",
    "reordering or parting a batch changes nothing": f"{MASKED} + torch.arange(len(states))[:, None]",
    "every parameter gets a gradient": "return states.detach().masked_fill(~words.mask[..., None], -torch.inf).amax(1)",
    "its gradient is the slope of its loss": f"states = states * torch.sigmoid(states).detach(); {MASKED}",
    # not a clock: two readings of one that has run for weeks are equal in 32 bits
    "same seed, same result": f"import secrets; {MASKED} * (secrets.randbits(24) / 2**24)",
    "finite loss and a prediction per row": f"{MASKED} / 0",
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The test plugin with given last lines of its constructor and of its forward pass."""

    def write(body: str, size: str = "self.size = hidden") -> registry.Entry:
        file = tmp_path / "plugin_under_test.py"
        file.write_text(textwrap.dedent(SOUND).format(body=body, size=size))
        monkeypatch.setattr("harness.registry.finding._plugins", [file])
        return registry.entry("architectures", "plugin_under_test")

    return write


FAULTS_OF_CONSTRUCTORS = {
    "every parameter gets a gradient": (MASKED, "self.hidden.bias_hh_l0.requires_grad = False"),
    "save and load": (
        f"self.passes += self.training; states = states + self.passes; {MASKED}",
        "self.register_buffer('passes', torch.zeros(()), persistent=False)",
    ),
    # Both wait behind a weight that starts at nothing, as gates and residuals often do.
    "padding changes nothing": (
        f"{MASKED} + self.gate * states.shape[1]",
        "self.gate = torch.nn.Parameter(torch.zeros(()))",
    ),
    "reordering or parting a batch changes nothing": (
        f"{MASKED} + self.gate * states.mean((0, 1))",
        "self.gate = torch.nn.Parameter(torch.full((), 1e-5))",
    ),
    "another seed, other random numbers": (MASKED, "torch.default_generator.manual_seed(0)"),
}
"""Last lines of the forward pass, and a further one of the constructor."""


@pytest.mark.parametrize("name", FAULTS_OF_CONSTRUCTORS)
def test_contract_catches_a_parameter_and_a_buffer(plugin, name: str) -> None:
    """A parameter that stays as it was drawn, and numbers that training gathers and a saved model
    lacks."""
    body, line = FAULTS_OF_CONSTRUCTORS[name]
    assert name in failed(check(plugin(body, f"self.size = hidden; {line}"), learning=False, types=1))


def test_contract_tells_a_class_that_cannot_be_asked_what_it_fits(plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regime whose constructor raises ended the command in a traceback."""
    entry = plugin(MASKED)

    def asked(*_: object) -> str:
        raise ZeroDivisionError("no rows")

    monkeypatch.setattr(registry.load(entry), "unfit", asked, raising=False)
    last = check(entry, learning=False)[-1]
    assert (last.name, last.passed, last.message) == ("fits a task", False, "ZeroDivisionError: no rows")


def test_a_model_that_hashes_texts_answers_otherwise_in_another_process(plugin) -> None:
    """Its score is good, and the model that was kept of it answers at chance."""
    body = f"{MASKED} + hash('film') % 1000 / 1000"
    found = failed(check(plugin(body), types=1))
    assert "where texts have other hashes" in found["answers the same in another process"]


NARROW = [
    "return torch.bmm(words.mask.float()[:, None], states)[:, 0]",
    "weights = states.sum(-1).masked_fill(~words.mask, -1e9).float().softmax(-1).to(states.dtype);"
    " return (weights[..., None] * states).sum(1)",
]


@pytest.mark.parametrize("body", NARROW)
def test_numbers_of_32_bits_are_named_where_all_have_64(plugin, body: str) -> None:
    """Its author was sent to declare a cut that there is not, or read torch's words alone."""
    found = failed(check(plugin(body), learning=False, types=1))
    assert list(found) == ["its gradient is the slope of its loss"]
    assert "write .to(states.dtype) in the place of .float()" in found["its gradient is the slope of its loss"]


FITTED = """
from harness.kinds import Estimator
from harness.registry import register

@register("fit_under_test", name="Test", kind="fit", paper="none", source="test", year=2026)
class Fit(Estimator):
    from_dev = ()

    def fit(self, train, dev, unlabelled=()):
        self.table = {bucket(row["text"]): row["label"] for row in train}

    def predict(self, rows):
        return [self.table.get(bucket(row["text"]), "none") for row in rows]

    def fitted_state(self):
        return {"table": self.table}

    def restore_fitted(self, state):
        self.table = state["table"]

def bucket(text):
    return str(HASH(text) % 7)
"""


@pytest.mark.parametrize("sound", [False, True])
def test_a_fit_by_hashes_is_told_from_one_by_digests(tmp_path: Path, without_plugins: None, sound: bool) -> None:
    """`hash` of a text is another number in each process."""
    file = tmp_path / "fit_under_test.py"
    file.write_text(FITTED.replace("HASH(text)", "len(text)" if sound else "hash(text)"))
    registry.add_plugin(file)
    results = check(registry.entry("architectures", "fit_under_test"))
    assert ("answers the same in another process" in failed(results)) is not sound, results
    [told] = [result.message for result in results if result.name.endswith("other random numbers")]
    assert told == "another seed gives the same system: several seeds of it are one result"


@pytest.mark.parametrize("name", FAULTS)
def test_contract_catches(plugin, name: str) -> None:
    """Each kind of unsound plugin fails the check that is named after its fault."""
    assert name in failed(check(plugin(FAULTS[name]), learning=False, types=1))


@pytest.mark.parametrize("sees", [(), ("texts without labels",)])
def test_texts_without_labels_are_registered(plugin, monkeypatch: pytest.MonkeyPatch, sees: tuple[str, ...]) -> None:
    """One that reads them in silence would be ranked among systems that see less."""
    entry = plugin(MASKED)
    monkeypatch.setattr(registry.load(entry), "trained_by", Consistent)
    case = next(cases(replace(entry, sees=sees)))
    assert run("sees", case.tells_what_it_sees).passed is bool(sees)


@pytest.mark.parametrize("sound", [False, True])
def test_a_cut_is_declared_where_there_is_one_and_nowhere_else(plugin, sound: bool) -> None:
    """A declaration that a change left behind would hide the next mistake."""
    body = MASKED if sound else FAULTS["its gradient is the slope of its loss"]
    case = next(cases(plugin(body, "self.size = hidden; self.cut = 'gates are constants'")))
    found = run("slopes", case.slopes)
    assert found.passed is not sound
    assert found.message.endswith("gates are constants")


def test_a_task_without_a_generated_corpus_is_no_case(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fits the type of a user's task would fail, and nothing of it be checked."""
    file = tmp_path / "my_scores.py"
    file.write_text(
        "from harness.registry import register_task\n"
        "from harness.task import Task\n"
        '@register_task("my_scores", name="Mine", type="regress", metrics=("mse",), main_metric="mse",\n'
        '    sizes={"train": 9}, epochs=1, protocol="-")\n'
        "class Mine(Task):\n"
        "    def local(self, folder, split):\n"
        '        return [{"id": "1", "text": "a", "score": 1.0}]\n'
    )
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    assert {task.type for task in registry.tasks_to_check_on()} >= {"regress"}
    assert "regress" not in {case.task.entry.type for case in cases(registry.entry("architectures", "dan"))}


def test_a_module_of_a_package_may_import_its_neighbours(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No installed plugin of several files could be checked."""
    package = tmp_path / "mypkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "layers.py").write_text("size = 7\n")
    (package / "enc.py").write_text("from .layers import size\nclass Encoder:\n    size = size\n")
    monkeypatch.syspath_prepend(tmp_path)
    cls = importlib.import_module("mypkg.enc").Encoder
    monkeypatch.setattr(registry, "load", lambda entry: cls)
    made = again(SimpleNamespace(file=package / "enc.py", class_name="Encoder"))
    assert made is not cls and made.size == 7


def test_sound_plugin_passes(plugin) -> None:
    """The faults above are caught for what they are: the same plugin without one passes."""
    assert [result for result in check(plugin(MASKED)) if not result.passed] == []


def failed(results: list[Result]) -> dict[str, str]:
    """Messages of the checks that failed, by name without the task."""
    return {result.name.partition(": ")[2]: result.message for result in results if not result.passed}


def test_an_output_of_another_size_is_told_once(plugin) -> None:
    """The layers above say "mat1 and mat2 shapes cannot be multiplied", once for every check and
    task."""
    results = check(plugin(MASKED, "self.size = 24"))
    assert failed(results) == {FIRST: "forward returned (8, 16), self.size is 24"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return states", "forward returned (8, "),
        (
            f"return ({MASKED.removeprefix('return ')})[:4]",
            "forward returned (4, 16); a vector per text is wanted, and",
        ),
    ],
)
def test_an_output_of_another_form_is_told_once(plugin, body, message) -> None:
    found = failed(check(plugin(body)))
    assert list(found) == [FIRST]
    assert found[FIRST].startswith(message)


def test_a_forgotten_size_is_named(plugin) -> None:
    """The states would be taken for scores of the classes: more of them than there are classes,
    and yet most checks passed."""
    found = failed(check(plugin(MASKED, "pass")))
    assert list(found) == [FIRST]
    assert "Encoder does not set self.size" in found[FIRST]


def test_dropout_in_evaluation_is_named_for_what_it_is(plugin) -> None:
    """It was told as a fault of padding, of the order and of saving."""
    found = failed(
        check(plugin(f"states = torch.nn.functional.dropout(states, 0.2); {MASKED}"), learning=False, types=1)
    )
    assert "is dropout on" in found["two passes in evaluation are equal"]
    others = {"padding changes nothing", "reordering or parting a batch changes nothing", "save and load"}
    assert others.isdisjoint(found)


@pytest.mark.parametrize(
    "line",
    [
        "self.calls = getattr(self, 'calls', 0) + 1; states = states * self.calls",
        "mean, self.mean = getattr(self, 'mean', states.mean()), states.mean(); states = states - mean",
    ],
)
def test_what_a_pass_leaves_behind_is_not_called_dropout(plugin, line: str) -> None:
    """The mean of the batch before is the same for a batch that is asked twice on end."""
    body = f"{line}; {MASKED}"
    message = failed(check(plugin(body), learning=False, types=1))["two passes in evaluation are equal"]
    assert "dropout" not in message and "the pass before" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("torch.set_default_dtype(torch.float64)", "default dtype"),
        ("torch.manual_seed(0)", "random generator"),
        ("import numpy; numpy.random.rand()", "random generator"),
        ("import random; random.random()", "random generator"),
    ],
)
def test_an_import_with_effects_on_others_is_caught(plugin, line, message) -> None:
    """What one plugin sets, every cell of the process would have."""
    entry = plugin(MASKED)
    registry.load(entry)  # once: the second import is the one that is looked at
    entry.file.write_text(f"{entry.file.read_text()}\n{line}\n")
    try:
        [result] = check(entry)
    finally:
        torch.set_default_dtype(torch.float32)
    assert not result.passed and message in result.message


PEEKING = """
from harness.kinds import Estimator
from harness.registry import register

READ = {{
    "classify": lambda row: row["label"],
    "multilabel": lambda row: dict.fromkeys(row["labels"], 1.0),
    "match": lambda row: row["label"],
    "rank": lambda row: float(row["label"]),
    "tag": lambda row: list(row["tags"]),
    "extract": lambda row: (row["answers"]["text"] or [""])[0],
    "answer": lambda row: row["answer"],
    "transcribe": lambda row: row["transcript"],
    "translate": lambda row: row["target"],
}}


@register("peeking", name="Test", kind="fit", paper="none", source="test", year=2026)
class Peeking(Estimator):
    task_types = ("{type}",)

    @classmethod
    def unfit(cls, task, hyperparameters):
        return None

    def fit(self, train, dev, unlabelled=()):
        self.parameter_count = 0

    def predict(self, rows):
        return [READ["{type}"](row) for row in rows]
"""


COUNTING = """
from collections import Counter

from harness.kinds import Estimator
from harness.registry import register


@register("counting", name="Test", kind="fit", paper="none", source="test", year=2026)
class Counting(Estimator):
    # A word of the passage that answers of training often have.

    task_types = ("extract",)
    from_dev = {from_dev}

    def fit(self, train, dev, unlabelled=()):
        self.size = len(dev)
        self.counts = Counter(word for row in {rows} for text in row["answers"]["text"] for word in text.split())

    def predict(self, rows):
        return [max(row["passage"].split(), key=lambda word: self.counts[word]) for row in rows]
"""


@pytest.mark.parametrize(
    ("from_dev", "rows", "message"),
    [
        ((), "[*train, *dev]", "with other rows of dev it has other size, counts, answers"),
        (("size",), "[*train, *dev]", "with other rows of dev it has other counts"),
        (("size", "counts"), "[*train, *dev]", None),
        (("size", "counts", "k"), "train", "from_dev names k, of which fitted_state has nothing"),
        ((), "train", "with other rows of dev it has other size"),
        (("size",), "train", None),
    ],
)
def test_a_system_that_learns_from_dev_is_named_for_it(from_dev, rows, message, tmp_path, monkeypatch) -> None:
    """Of answers that are spans none are wrong on purpose: a model that counted those of dev passed
    all checks."""
    file = tmp_path / "counting.py"
    file.write_text(COUNTING.format(from_dev=from_dev, rows=rows))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    found = failed(check(registry.entry("architectures", "counting")))
    assert set(found) <= {"dev changes nothing", "beats the floor on its mini task"}
    told = found.get("dev changes nothing")
    assert told is None if message is None else told is not None and told.startswith(message)


HIDING = sorted(
    {
        task.type
        for task in registry.entries("tasks").values()
        if set(problem(task.type).entry.columns) - set(problem(task.type).entry.inputs)
    }
)
"""Types with answers that no system is shown; those of a language model are the texts it reads."""


@pytest.mark.parametrize("type", HIDING)
def test_a_system_that_reads_the_answers_of_the_rows_it_is_asked_about_fails(type, tmp_path, monkeypatch) -> None:
    """It scored 1.000 on story questions, and the check passed it."""
    file = tmp_path / "peeking.py"
    file.write_text(PEEKING.format(type=type))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    results = {result.name.partition(": ")[2]: result for result in check(registry.entry("architectures", "peeking"))}
    unharmed = ["", "threads bounded, settings kept", "the time limit can be kept"]
    if type in ("extract", "transcribe", "translate"):  # without wrong answers
        unharmed.append("learns from train alone")
    assert all(results.pop(name).passed for name in unharmed)
    assert len(results) > 5
    for result in results.values():
        assert not result.passed and re.match("predict reads the column '.*', which is an answer", result.message), (
            result
        )
