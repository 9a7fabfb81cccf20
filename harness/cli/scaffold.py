"""Generates a working plugin and its test as a starting point (``archbench new``).

Each kind of architecture has two files in ``templates``: a plugin, ``text.py``, and the test of its
mechanism, ``test_text.py``. They are whole files of a model called ``my_model``, which is renamed.
Each type of task has two as well, ``task_classify.py`` and ``test_task_classify.py``.
"""

from __future__ import annotations

import datetime
import keyword
import os
import re
from pathlib import Path

from harness import registry
from harness.errors import UsageError
from harness.registry.sorts import ROOT as _ROOT

TASKS = {
    "text": "sst2",
    "seq": "sst2",
    "tree": "sst5",
    "pair": "snli",
    "tag": "conll2003_ner",
    "span": "squad1",
    "answer": "babi",
    "ctc": "fsdd",
    "generate": "fsdd",
    "lm": "wikitext2",
    "plm": "sst2",
    "fit": "sst2",
    "regime": "sst2",
}
"""A task to try a new architecture of each kind on."""

KINDS = (*TASKS, "task")
TEMPLATES = Path(__file__).with_name("templates")
TYPES = tuple(sorted(path.stem.removeprefix("task_") for path in TEMPLATES.glob("task_*.py")))
"""Task types that there is a template for."""

CONTRACT_TEST = """

def test_it_keeps_the_contract():
    failed = [result for result in check(registry.entry("architectures", "my_model")) if not result.passed]
    assert not failed, failed
"""


def write(name: str, kind: str, family: str | None, out: Path | None) -> tuple[Path, Path]:
    """Write the plugin of an architecture and its test; returns both paths.

    Both go to ``out``, by default the current folder. With a ``family`` they go where a contributor
    puts them, to ``architectures/<family>/`` and ``tests/architectures/<family>/`` of the checkout.
    Raises :class:`UsageError` for a name that is taken or not allowed, and never overwrites a file.
    """
    _check_names("architectures", name, family)
    if family is not None:
        if out is not None:
            raise UsageError("--family and --out exclude each other: one names a folder of the checkout, one any other")
        if not is_checkout(_ROOT):
            raise UsageError("--family: archbench does not run from its repository; leave it out, or give --out DIR")
        folders = (_ROOT / "architectures" / family, _ROOT / "tests" / "architectures" / family)
    else:
        folders = (out or Path(), out or Path())
    plugin, test = _templates(kind)
    return _write(name, folders, plugin, test if family else _outside_the_checkout(test))


def write_task(name: str, type: str, out: Path | None) -> tuple[Path, Path]:
    """Write the plugin of a task and its test to ``out``, by default the current folder; returns
    both paths. Raises :class:`UsageError` as :func:`write` does."""
    _check_names("tasks", name)
    return _write(name, (out or Path(), out or Path()), *_templates(f"task_{type}"))


def _templates(name: str) -> tuple[str, str]:
    plugin, test = (TEMPLATES / f"{prefix}{name}.py" for prefix in ("", "test_"))
    return plugin.read_text(encoding="utf-8"), test.read_text(encoding="utf-8")


def _write(name: str, folders: tuple[Path, Path], plugin: str, test: str) -> tuple[Path, Path]:
    _check_class(name, plugin)
    files = folders[0] / f"{name}.py", folders[1] / f"test_{name}.py"
    for file in files:
        if os.path.exists(file):  # noqa: PTH110 - pathlib raises for a name that is too long
            raise UsageError(f"{file} exists already; choose another name or folder")
    for file, text in zip(files, (plugin, test), strict=True):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_renamed(text, name), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}; choose another folder with --out") from error
    return files


def is_checkout(folder: Path) -> bool:
    """True for the root of archbench's repository, as against an installed package's folder."""
    return (folder / "pyproject.toml").is_file() and (folder / "harness").is_dir()


def _check_names(sort: registry.Sort, name: str, family: str | None = None) -> None:
    for option, value in (("NAME", name), ("--family", family)):
        if value is not None and (not re.fullmatch(r"[a-z][a-z0-9_]*", value) or keyword.iskeyword(value)):
            raise UsageError(f"{option} {value}: use lower-case letters, digits and underscores, a letter first")
    if other := registry.entries(sort).get(name):
        raise UsageError(f"NAME {name}: already registered in {other.file}; choose another")


def _check_class(name: str, plugin: str) -> None:
    """Raise :class:`UsageError` for a name whose class Python cannot have, or which would hide what
    the template means by it."""
    title = _class_name(name)
    if keyword.iskeyword(title) or title in re.findall(r"\w+", re.sub("MyModel|MyTask", "", plugin)):
        raise UsageError(f"NAME {name}: its class would be called {title}, which means something else; choose another")


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _renamed(text: str, name: str) -> str:
    """A template with the plugin's own name, and this year for its paper."""
    title = name.replace("_", " ")
    names = {"2000": str(datetime.datetime.now(datetime.UTC).year)}
    for thing in ("model", "task"):
        names |= {
            f"my_{thing}": name,
            f"My{thing.capitalize()}": _class_name(name),
            f"My {thing}": title.capitalize(),
            f"my {thing}": title,
        }
    return re.sub("|".join(names), lambda match: names[match[0]], text)


def _outside_the_checkout(test: str) -> str:
    """The test of a plugin in a folder of its own, where no other test registers and checks it."""
    imports, rest = re.split(r"\n\n\n", test, maxsplit=1)
    imports = imports.replace("annotations\n\n", "annotations\n\nfrom pathlib import Path\n\n")
    imports = imports.replace("import registry", "import registry\nfrom harness.contract import check")
    add = 'registry.add_plugin(Path(__file__).with_name("my_model.py"))'
    return f"{imports}\n\n{add}\n\n\n{rest}{CONTRACT_TEST}"
