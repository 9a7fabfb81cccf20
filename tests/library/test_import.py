"""``import archbench``: light, and beside a user's files of the same names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import archbench
import harness

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that runs a script in a folder of the user's."""
    script = folder / "script.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=100,
    )


def test_importing_loads_nothing_heavy(tmp_path):
    """A notebook that only reads results does not wait for torch, and none waits at the import."""
    heavy = {"torch", "pandas", "numpy", "pydantic", "mlflow", "datasets", "rich", "typer"}
    done = python(f"import sys, archbench; print(sorted({heavy!r} & set(sys.modules)))", tmp_path)
    assert done.stdout == "[]\n", done.stderr


def test_what_is_exported_is_there():
    """These names are the promise."""
    assert set(archbench.__all__) == {"PairedTest", "Predictor", "__version__", "compare", "load", "results", "run"}
    assert all(hasattr(archbench, name) for name in archbench.__all__)
    assert archbench.__version__ == harness.__version__
    with pytest.raises(AttributeError, match="archbench"):
        archbench.no_such_name  # noqa: B018


LOAD = """
import archbench
from harness import registry
import tasks, architectures
print(registry.load(registry.entry("tasks", "sst2")).__module__)
print(*(module.__file__ for module in (tasks, architectures)), sep="\\n")
"""


def test_files_of_the_user_with_our_names_are_hidden_and_named(tmp_path):
    """A script beside a ``tasks.py`` ended with "'tasks' is not a package"."""
    (tmp_path / "harness").mkdir()
    for name in ("tasks.py", "architectures.py", "harness/__init__.py"):
        (tmp_path / name).write_text("")
    done = python(LOAD, tmp_path)
    ours = [str(ROOT / name / "__init__.py") for name in ("tasks", "architectures")]
    assert done.stdout.splitlines() == ["tasks.sst2", *ours], done.stderr
    assert "script.py:2: UserWarning: hidden by folders of archbench" in done.stderr
    assert all(str(tmp_path / name) in done.stderr for name in ("tasks.py", "architectures.py", "harness/__init__.py"))


def test_a_folder_without_modules_hides_nothing(tmp_path):
    """``tasks/`` may hold a user's notes: no warning, and the path stays as it is."""
    (tmp_path / "tasks").mkdir()
    done = python("import archbench, sys; print(sys.path[0])", tmp_path)
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n", "")


def test_a_module_of_the_user_that_was_imported_before_is_named(tmp_path):
    (tmp_path / "tasks.py").write_text("")
    done = python("import tasks\nimport archbench", tmp_path)
    assert done.returncode == 1
    assert f"ImportError: {tmp_path / 'tasks.py'} was imported as 'tasks'" in done.stderr


def test_without_the_library_a_clash_is_named(tmp_path):
    """Plugins of the command, and whoever uses the harness itself."""
    (tmp_path / "tasks.py").write_text("")
    done = python("from harness import registry\nregistry.load(registry.entry('tasks', 'sst2'))", tmp_path)
    assert f"{tmp_path / 'tasks.py'} has the name of a folder of archbench: rename it" in done.stderr
