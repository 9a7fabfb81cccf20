"""Digests of code: another result means another digest, another look does not."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.records import Record, code_digest
from harness.records.code_digest import code_of, code_of_cell, made_by_other_code
from harness.registry import finding, sorts

ROOT = Path(__file__).parents[2]

ENCODER = '''"""A plugin."""

from torch import nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register


@register(
    "mine", name="Mine", kind="text", paper="None 2020", source="here", year=2020, recipe=Recipe(lr=0.1),
    hyperparameters={"hidden": 8}, deviations=("One layer less.",),
    variants={"mine_wide": {"name": "Mine, wide", "hyperparameters": {"hidden": 800}, "deviations": ("Wider.",)}},
)
class Mine(TextEncoder):
    """The mean."""

    scale = 0.5
    """Factor on the mean."""

    def __init__(self, width: int, hidden: int = 4):
        """Layers."""
        super().__init__()
        self.layer = nn.Linear(width, hidden)  # no bias

    def forward(self, words):
        return self.layer(words.vectors.mean(1) * self.scale)
'''

TASK = """
from harness.registry import register_task
from harness.task import Task


@register_task(
    "moods", name="Moods", type="classify", metrics=("accuracy",), main_metric="accuracy", sizes={"train": 9},
    epochs=3, protocol="As is."
)
class Moods(Task):
    def mini(self, split):
        return [{"id": "1", "text": "a", "label": "b"}]
"""

Plugin = Callable[..., str]


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """Digest of the plugin's architecture with texts replaced (pairs of old and new)."""

    def of(*changes: tuple[str, str], text: str = ENCODER, folder: Path = tmp_path, name: str = "mine.py") -> str:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / name
        file.write_bytes(text.encode())
        monkeypatch.setattr("harness.registry.finding._plugins", [file])
        code_digest._source.cache_clear()  # two versions of one size may be written within a tick of the clock
        return code_of(registry.entry("architectures", "mine"), registry.entry("tasks", "sst2"))["architecture"]

    return of


@pytest.mark.parametrize(
    "changes",
    [
        [("  # no bias", "  # with a bias")],
        [('"""The mean."""', '"""The arithmetic mean."""')],
        [('    """The mean."""\n\n', "")],
        [('"""A plugin."""', '"""Two lines\n\nof text."""')],
        [('"""Layers."""', '"""All layers."""')],
        [('"""Factor on the mean."""', '"""Times this."""')],
        [("nn.Linear(width, hidden)", "nn.Linear(\n            width,\n            hidden,\n        )")],
        [('name="Mine"', "name='My encoder'"), ("None 2020", "None 2021"), ("year=2020", "year=2021")],
        [("One layer less.", "One layer fewer."), ("Wider.", "Much wider."), ('"Mine, wide"', '"Wide"')],
        [("\n", "\r\n")],
    ],
    ids=["comment", "docstring", "no docstring", "module", "method", "attribute", "format", "name", "prose", "ends"],
)
def test_another_look_is_the_same_code(digest: Plugin, changes):
    """Otherwise a corrected sentence would mark all results as those of other code."""
    assert digest(*changes) == digest()


def test_methods_that_keep_a_system_are_no_part_of_its_result(digest: Plugin) -> None:
    """Records of a system would count as made by other code because it can be kept now."""
    keeping = "\n    def fitted_state(self):\n        return {}\n\n    def restore_fitted(self, state):\n        pass\n"
    sizing = "\n    @classmethod\n    def memory_needed(cls, size, hyperparameters):\n        return size\n"
    assert digest(text=ENCODER + keeping + sizing) == digest()
    scale, telling = "    scale = 0.5\n", '    cut = "a constant"\n    from_dev: tuple = ("k",)\n'
    told = ENCODER.replace(scale, scale + telling)
    assert digest(text=told) == digest()


def test_a_decorator_may_be_named_with_its_module(digest: Plugin) -> None:
    text = ENCODER.replace("from harness.registry", "from harness import registry\nfrom harness.registry")
    text = text.replace("@register(", "@registry.register(")
    assert digest(text=text) == digest(text=text.replace('name="Mine"', 'name="Other"'))


def test_a_method_that_is_called_as_an_attribute_for_the_contract_is_a_part(digest: Plugin) -> None:
    """ERNIE's texts are divided into pieces by a method `cut`: another one gives other results."""
    cuts = [f"{ENCODER}\n    def cut(self, longest):\n        return longest - {number}\n" for number in (1, 2)]
    assert digest(text=cuts[0]) != digest(text=cuts[1])


def test_another_reason_of_a_budget_is_the_same_code_and_another_budget_is_not() -> None:
    """A reason is corrected when the grid has shown it to be wrong: its records stay."""

    def written(budget: str) -> str:
        return code_digest._written(ast.parse(f'@register_task("moods", budgets={{"full": {budget}}})\nclass A: pass'))

    reasoned = written('Budget(3, min_steps=9, reason="few texts")')
    assert written('Budget(3, min_steps=9, reason="long texts")') == reasoned == written("Budget(3, min_steps=9)")
    assert written('Budget(4, min_steps=9, reason="few texts")') != reasoned


def test_another_place_or_name_of_the_file_is_the_same_code(digest: Plugin, tmp_path: Path):
    """A colleague's clone lies elsewhere."""
    assert digest(folder=tmp_path / "elsewhere" / "deep", name="other.py") == digest()


@pytest.mark.parametrize(
    "change",
    [
        ("mean(1)", "mean(2)"),
        ("scale = 0.5", "scale = 0.25"),
        ("hidden: int = 4", "hidden: int = 5"),
        ('{"hidden": 8}', '{"hidden": 9}'),
        ('{"hidden": 800}', '{"hidden": 900}'),
        ("self.layer = nn", "self.layer = 1 if False else nn"),
        ("from torch import nn", "from torch import nn, optim"),
    ],
)
def test_another_result_is_other_code(digest: Plugin, change):
    assert digest(change) != digest()


def test_a_text_that_is_no_docstring_counts(digest: Plugin):
    assert digest(("scale = 0.5", "mode = 'sum'")) != digest(("scale = 0.5", "mode = 'max'"))


def test_the_text_of_a_tree_is_the_same_for_every_python():
    """Python 3.12 gives functions and classes a field for type parameters, 3.13 leaves empty fields
    out of its dumps: none of them may mark every result as made by other code."""
    tree = ast.parse('def f(x, *, y=None):\n    """Doc."""\n    return f"{x!r:>3}", -1, u"é", {**y}\nclass A: pass')
    assert code_digest._written(tree) == (
        "Module(body=[FunctionDef(name='f',args=arguments(args=[arg(arg='x',),],kwonlyargs=[arg(arg='y',),],"
        "kw_defaults=[Constant(),],),body=[Return(value=Tuple(elts=[JoinedStr(values=[FormattedValue(value=Name("
        "id='x',),conversion=114,format_spec=JoinedStr(values=[Constant(value='>3',),],),),],),UnaryOp(op=USub(),"
        "operand=Constant(value=1,),),Constant(value='é',),Dict(keys=[None,],values=[Name(id='y',),],),],),),],),"
        "ClassDef(name='A',body=[Pass(),],),],)"
    )


def test_a_deep_expression_is_read_like_any_other():
    """Not as bytes: how deep a walk may go depends on who asks."""
    deep = "x = " + "+".join(f"a{number}" for number in range(700))
    assert code_digest._written(ast.parse(deep + "  # sum")) == code_digest._written(ast.parse(deep))


# --- what a file imports ---


def test_a_module_beside_a_plugin_counts_and_what_that_imports(digest: Plugin, tmp_path: Path):
    text = "import helper\n" + ENCODER
    alone = digest(text=text)
    (tmp_path / "helper.py").write_text("from deeper import number\n")
    (tmp_path / "deeper.py").write_text("number = 1\n")
    (tmp_path / "other.py").write_text("number = 1\n")
    both = digest(text=text)
    (tmp_path / "other.py").write_text("number = 2\n")
    assert alone != both == digest(text=text), "a file that nobody imports does not count"
    (tmp_path / "deeper.py").write_text("number = 2\n")
    assert digest(text=text) not in (alone, both)
    (tmp_path / "deeper.py").write_text("number = 1  # again\nimport helper\n")
    assert digest(text=text) not in (alone, both), "a circle ends"


@pytest.mark.parametrize(
    "form", ["from .parts import layers", "from pack.parts.layers import x", "import pack.parts.layers"]
)
def test_the_modules_of_a_plugins_package_count(digest: Plugin, tmp_path: Path, form: str):
    package = tmp_path / "pack"
    (package / "parts").mkdir(parents=True)
    (package / "parts" / "__init__.py").write_text("")
    layers = package / "parts" / "layers.py"
    found = []
    for number in (1, 2):
        layers.write_text(f"x = {number}\n")
        found.append(digest(text=f"{form}\n{ENCODER}", folder=package))
    assert found[0] != found[1]


def test_what_a_package_itself_defines_counts(digest: Plugin, tmp_path: Path):
    """A number of its ``__init__.py`` that changes would leave results of another model as they
    are."""
    (tmp_path / "pack").mkdir()
    found = []
    for number in (3, 44):
        (tmp_path / "pack" / "__init__.py").write_text(f"SIZE = {number}\n")
        found.append(digest(text=f"from . import SIZE\n{ENCODER}", folder=tmp_path / "pack"))
    assert found[0] != found[1]


def test_neither_the_harness_nor_other_packages_are_read(digest: Plugin, tmp_path: Path):
    """They are a number and versions; a plugin may lie beside them."""
    place = tmp_path / "site-packages"
    for name in ("harness", "torch"):
        (place / name).mkdir(parents=True)
        (place / name / "__init__.py").write_text("1 / 0")
    assert digest(folder=place) == digest(folder=tmp_path / "alone")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this package's plugins that may be edited."""
    for folder in ("architectures", "tasks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sorts, "ROOT", tmp_path)
    monkeypatch.setattr(code_digest, "_ROOT", tmp_path)
    monkeypatch.setitem(sorts.FOLDERS, "problems", str(ROOT / "harness/problems"))
    return tmp_path


def test_a_shared_block_or_reader_counts_for_those_that_import_it(copy: Path):
    def codes() -> list[str]:
        code_digest._source.cache_clear()
        pairs = ("lstm", "sst2"), ("dan", "wikiqa")
        found = [code_of(registry.entry("architectures", a), registry.entry("tasks", t)) for a, t in pairs]
        return [code[part] for code in found for part in ("architecture", "task")]

    before = codes()
    for file in ("architectures/blocks/recurrent.py", "tasks/readers/trees.py"):
        (copy / file).write_text((copy / file).read_text() + "\nMORE = 1\n")
    lstm, sst2, dan, wikiqa = (a == b for a, b in zip(before, codes(), strict=True))
    assert (lstm, sst2, dan, wikiqa) == (False, False, True, True)


def test_the_architecture_that_a_regime_wraps_counts(copy: Path):
    def digests() -> list[str]:
        code_digest._source.cache_clear()
        entry, task = registry.entry("architectures", "adversarial"), registry.entry("tasks", "sst2")
        return [code_of(entry, task, {"wraps": wraps})["architecture"] for wraps in ("lstm", "dan")]

    lstm, dan = digests()
    file = copy / "architectures/feedforward/dan.py"
    file.write_text(file.read_text() + "\nMORE = 1\n")
    again = digests()
    assert lstm != dan and again[0] == lstm and again[1] != dan


def test_a_tasks_own_problem_counts_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    problem, task = tmp_path / "problem.py", tmp_path / "task.py"
    task.write_text(TASK.replace('"classify"', '"sort"'))
    monkeypatch.setattr("harness.registry.finding._plugins", [problem, task])
    found = []
    for number in (1, 2):
        problem.write_text(
            "from harness.registry import register_problem\n\n\n"
            '@register_problem("sort", name="-", columns=("text",), inputs=("text",), texts=("text",), metrics=())\n'
            f"class Sort:\n    number = {number}\n"
        )
        code_digest._source.cache_clear()
        found.append(code_of(registry.entry("architectures", "dan"), registry.entry("tasks", "moods"))["task"])
    assert found[0] != found[1]


# --- records ---


def test_every_registered_name_has_a_digest_of_its_own_file():
    tasks = registry.entries("tasks")
    for entry in registry.entries("architectures").values():
        code = code_of(entry, tasks["sst2"])
        assert len(code["architecture"]) == len(code["task"]) == 64 and code["harness"] == code_digest.HARNESS
    digests = {code_of(entry, task)["task"] for task in tasks.values()}
    assert len(digests) == len({task.file for task in tasks.values()})


def test_a_file_that_is_no_python_has_a_digest_too(digest: Plugin, tmp_path: Path):
    """Reading it is no business of the plan; loading it fails with a message."""
    (tmp_path / "helper.py").write_bytes(b"def broken(:\n \xff")
    assert digest(text="import helper\n" + ENCODER) != digest()


def test_an_installed_package_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "toy_pack").mkdir()
    (tmp_path / "toy_pack" / "enc.py").write_text(ENCODER)
    info = tmp_path / "toy_pack-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pack\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text("[archbench.architectures]\nmine = toy_pack.enc\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    try:
        code = code_of(registry.entry("architectures", "mine"), registry.entry("tasks", "sst2"))
    finally:
        monkeypatch.undo()
        forget()
    assert code["packages"]["toy-pack"] == "2.5" and set(code["packages"]) == {"toy-pack", "archbench"}


def forget() -> None:
    finding._installed.cache_clear()
    finding._declares_entry_points.cache_clear()
    finding.modules.clear()


def test_a_record_of_other_code_is_told_from_one_of_this(make_cell):
    cell = make_cell("dan")
    code = code_of_cell(cell)
    same, older, silent = (Record.skeleton(cell, "ok", code=c) for c in (code, code | {"harness": 0}, None))
    mended = Record.skeleton(cell, "ok", code=code | {"task": "0" * 64})
    version = Record.skeleton(cell, "ok", code=code | {"packages": {"archbench": "0.0.1"}})
    part = Record.skeleton(cell, "ok", code={"harness": code["harness"]})
    gone = Record.skeleton(make_cell("no_such_plugin"), "ok", code=code)
    assert made_by_other_code([same, older, silent, mended, version, part, gone]) == [older, mended]


def test_what_started_from_other_code_is_made_by_other_code(make_cell):
    """`archbench run` said so of a child, and its page and MLflow that it was of this code."""
    code = code_of_cell(make_cell("dan"))
    parent = Record.skeleton(make_cell("dan"), "ok", code=code | {"architecture": "0" * 64})
    lineage = [{"key": parent.key, "role": "weights", "architecture": "dan", "task": "sst2"}]
    child = Record.skeleton(make_cell("bilstm"), "ok", code=code_of_cell(make_cell("bilstm")), lineage=lineage)
    assert made_by_other_code([child, parent]) == [child, parent]
    assert made_by_other_code([child]) == []


def test_digests_are_computed_once_for_a_grid(make_cell, monkeypatch):
    """Thousands of cells are a few names."""
    code, asked, digest = code_of_cell(make_cell("dan")), [], code_digest._digest
    monkeypatch.setattr(
        code_digest, "_digest", lambda *asked_for: asked.append(asked_for[0][0].stem) or digest(*asked_for)
    )
    names = [("dan", "sst2"), ("dan", "wikiqa"), ("lstm", "sst2"), ("lstm", "wikiqa")]
    cells = [make_cell(name, task=task, seed=seed) for seed in range(50) for name, task in names]
    others = made_by_other_code(Record.skeleton(cell, "ok", code=code) for cell in cells)
    assert {(record.architecture, record.task) for record in others} == set(names[1:]) and len(others) == 150
    assert sorted(asked) == ["dan", "lstm", "sst2", "wikiqa"]


def test_the_code_is_no_part_of_a_cells_identity(make_cell):
    record = Record.skeleton(make_cell(), "ok", code=code_of_cell(make_cell()))
    assert record.key == make_cell().key == Record.from_json(record.to_json()).cell.key
