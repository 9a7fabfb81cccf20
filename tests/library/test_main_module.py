"""Classes registered in a script or in a notebook, as files that cells can import."""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path

import pytest

from archbench import main_module
from harness import registry
from harness.errors import UsageError


class Notebook:
    """A main module whose cells are run and kept as IPython does."""

    def __init__(self):
        self.module = types.ModuleType("__main__")
        self.module.In = [""]

    def run(self, cell: str) -> None:
        """Runs a cell, which may raise."""
        self.module.In.append(cell)
        exec(compile(cell, "<cell>", "exec", dont_inherit=True), self.module.__dict__)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, without_plugins: None) -> Notebook:
    """A new one, in whose place the registry is afterwards as before."""
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "__main__", notebook.module)
    monkeypatch.setattr(main_module, "_written", [])
    return notebook


IMPORTS = "from harness.registry import register, register_metric\nimport math, os.path\n"
CLASS = """
@register("own", name="Own", kind="text", paper="-", source="-", year=2026)
class Own:
    def __init__(self, hidden=WIDTH):
        self.hidden = hidden

    def forward(self, words: "Words") -> "Tensor":
        table = squash(self.hidden)
        return table
"""


def written(notebook: Notebook, folder: Path) -> dict[str, object]:
    """The namespace of the plugin file, loaded as a cell loads it."""
    [file] = main_module.add_plugin(folder)
    assert registry.plugin_files() == [file]
    return vars(sys.modules[registry.load(registry.declared(file)[0]).__module__])


def test_a_class_goes_with_all_that_it_uses_and_nothing_else(notebook, tmp_path):
    """A worker that ran the whole script would start a grid inside the grid."""
    notebook.run(IMPORTS)
    notebook.run("SIZE = 8\nWIDTH = 2 * SIZE\ntable = print('not again')\nother = table")
    notebook.run("def square(x):\n    return math.pow(x, 2)")
    notebook.run("def squash(x):\n    return square(x)")
    notebook.run("for SIZE in (): pass\nprint('a run')")
    notebook.run(CLASS)
    found = written(notebook, tmp_path)
    assert {"Own", "WIDTH", "SIZE", "square", "squash", "math"} <= set(found)
    assert not {"table", "other"} & set(found), "a local variable of the same name is another one"
    assert found["Own"]().hidden == 16
    assert found["Own"]().forward(None) == 256


def test_items_and_attributes_that_are_set_go_with_what_they_are_of(notebook, tmp_path):
    """Cells would be trained with other values than the notebook shows."""
    notebook.run(IMPORTS + "SIZES = {}\nSIZES['wide'] = 5\nWIDTH = SIZES.get('wide', 1)\nOTHER = {}\nOTHER[0] = 1")
    notebook.run("def squash(x):\n    return squash.rate * x\nsquash.rate = 3")
    notebook.run(CLASS + "Own.label = 'a'")
    found = written(notebook, tmp_path)
    assert (found["Own"]().hidden, found["Own"]().forward(None), found["Own"].label) == (5, 15, "a")
    assert "OTHER" not in found


def test_a_cell_that_is_run_again_replaces_the_class(notebook, tmp_path):
    """Else the old class would be trained in silence, or the id be registered twice."""
    notebook.run(IMPORTS + "WIDTH = 8")
    notebook.run("def squash(x):\n    return x")
    notebook.run(CLASS)
    assert written(notebook, tmp_path)["Own"]().hidden == 8
    assert main_module.add_plugin(tmp_path) == registry.plugin_files(), "nothing changed"
    notebook.run("def squash(x):\n    return -x")
    assert written(notebook, tmp_path)["Own"]().forward(None) == -8, "what the class uses counts too"
    notebook.run(CLASS.replace("hidden=WIDTH", "hidden=3"))
    assert written(notebook, tmp_path)["Own"]().hidden == 3
    assert [entry.class_name for entry in registry.entries("architectures").values() if entry.id == "own"] == ["Own"]


def test_cells_that_no_parser_takes_are_passed_over(notebook, tmp_path):
    """IPython keeps what was mistyped, too."""
    notebook.run(IMPORTS + "WIDTH = 8")
    with pytest.raises(SyntaxError):
        notebook.run("def squash(x:")
    notebook.run(CLASS)
    assert written(notebook, tmp_path)["WIDTH"] == 8


def test_a_metric_and_definitions_that_depend_on_the_machine_come_along(notebook, tmp_path):
    notebook.run(IMPORTS)
    notebook.run("try:\n    import no_such_module as tool\nexcept ImportError:\n    tool = None\ncount = 1\ncount += 1")
    notebook.run(
        "from __future__ import annotations\n"
        '@register_metric("own_metric", name="Own")\n'
        "def own_metric(predictions, rows) -> Float:\n    return tool, count"
    )
    assert written(notebook, tmp_path)["own_metric"](None, None) == (None, 2)


def test_names_in_quoted_annotations_come_along(notebook, tmp_path):
    """The view of an architecture is the annotation of what it reads."""
    notebook.run(IMPORTS + "WIDTH = 8\nfrom decimal import Decimal as Words\nfrom fractions import Fraction as Rest")
    notebook.run(CLASS)
    found = written(notebook, tmp_path)
    assert "Words" in found and "Rest" not in found


def test_a_script_is_read_from_its_file(notebook, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(IMPORTS + "WIDTH = 5\nraise SystemExit('run again')\n" + CLASS)
    notebook.module.__file__ = str(script)
    notebook.module.In = "no list of cells"
    exec(compile(IMPORTS + "WIDTH = 5\n" + CLASS, "script", "exec", dont_inherit=True), notebook.module.__dict__)
    file = main_module.add_plugin(tmp_path / "plugins")[0]
    assert not any(isinstance(node, ast.Raise) for node in ast.parse(file.read_text()).body)
    assert registry.entries("architectures")["own"].file == file


@pytest.mark.parametrize("cell", ["def make():\n" + CLASS.replace("\n", "\n    ") + "\nmake()", CLASS])
def test_a_class_without_a_source_at_top_level_is_refused_with_what_to_do(notebook, tmp_path, cell):
    """One that was typed into an interpreter, or is made by a function."""
    exec(IMPORTS + "WIDTH = 5\n" + cell, notebook.module.__dict__)
    with pytest.raises(UsageError, match=r"Own: registered in the main module, .* write it to a file"):
        main_module.add_plugin(tmp_path / "plugins")
    assert not (tmp_path / "plugins").exists()


def test_without_a_class_there_is_no_file(notebook, tmp_path):
    notebook.run("x = 1")
    assert main_module.add_plugin(tmp_path / "plugins") == []
    assert not (tmp_path / "plugins").exists()
