"""Choice of the tests that must see a mutant of a file."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from pathlib import Path

FAR = 8
"""Number of test files that are run after those of a file's own folder."""

FAR_OF_ARCHITECTURES = 2
"""The same for the file of an architecture, which has settings and a contract too."""

APART = ("bench", "browser", "cli", "docs", "faults", "first_command", "fuzz", "tools", "support", "frozen")
"""Folders of tests that look at no mechanism, or that take too long."""

NEAR = {
    "harness/layers/": "tests/layers/", "harness/problems/": "tests/problems/",
    "architectures/floors/": "tests/problems/", "architectures/blocks/": "tests/blocks/",
    "architectures/": "tests/architectures/",
}  # fmt: skip
"""Folders, and where the tests of their files are."""

SETTINGS = "tests/architectures/test_paper_settings.py::test_an_architecture_has_the_settings_of_its_paper"
DROPOUTS = "tests/architectures/test_dropouts.py::test_an_architecture_drops_what_the_table_says"
STARTS = "tests/architectures/test_start_values.py::test_each_parameter_starts_as_declared"
CONTRACTS = {
    "register": "tests/test_contract.py::test_plugin_keeps_to_the_contract",
    "register_input": "tests/test_contract.py::test_input_source_keeps_to_the_contract",
}


class Choice:
    """The tests that concern each file of a tree.

    First the tests of its folder that import the file or name an id of it, the one of its name
    before others and small ones before large ones. Then the line of each id in the table of
    settings, and some of the other tests: those that import the file, and behind them those that
    import a file that does, or that name a task of its problem. Last of each id the start values,
    the dropouts, if the file has any, and the contract. Problems are looked up by name, so that the
    other tests of their folder count, but last: each of them runs all problems.
    """

    def __init__(self, root: Path):
        self.root = root

    def of(self, file: str, declares: bool = False) -> tuple[str, ...]:
        """The tests of a file, in the order in which they are run; the settings come first for a
        place that ``declares`` them."""
        ids = self.ids(file)
        folder = next(tests for folder, tests in NEAR.items() if file.startswith(folder))
        of_folder = [test for test in self._tests if test.startswith(folder)]
        near = [test for test in of_folder if self._concerns(test, file, ids)]
        others = [test for test in of_folder if folder == "tests/problems/" and test not in near]
        users = {file, *(user for user in self._code if file in self._imports[user])}
        of_tasks = self._of_tasks(file)
        far = [test for test in self._tests if users & self._imports[test] or test in of_tasks]
        settings = [f"{SETTINGS}[{id}]" for id in ids if self._has_settings(id)]
        contracts = [f"{CONTRACTS[sort]}[{id}]" for id, sort in ids.items() if self._has_settings(id)]
        drops = [f"{DROPOUTS}[{id}]" for id in ids if self._has_settings(id) and "dropout" in self._code[file]]
        starts = [f"{STARTS}[{id}]" for id in ids if self._has_settings(id) and self._starts_by_lot(file)]
        most = FAR_OF_ARCHITECTURES if folder == "tests/architectures/" else FAR
        rest = self._ordered([test for test in far if test not in of_folder], file)
        rest = sorted(rest, key=lambda test: file not in self._imports[test])[:most]
        tests = [
            *self._ordered(near, file),
            *settings,
            *rest,
            *starts,
            *drops,
            *contracts,
            *self._ordered(others, file),
        ]
        return tuple(dict.fromkeys([*settings, *tests] if declares else tests))

    def users(self, files: set[str]) -> set[str]:
        """These files, and those that import one of them or of their users."""
        while files and (more := {user for user in self._code if self._imports[user] & files} - files):
            files = files | more
        return files

    @cached_property
    def _tests(self) -> dict[str, str]:
        """The text of each test file."""
        found = {path.relative_to(self.root).as_posix(): path for path in sorted(self.root.glob("tests/**/test_*.py"))}
        return {name: path.read_text() for name, path in found.items() if name.split("/")[1] not in APART}

    @cached_property
    def _code(self) -> dict[str, str]:
        """The text of each file of the architectures, the harness and the tasks."""
        folders = ("architectures", "harness", "tasks")
        paths = [path for folder in folders for path in sorted((self.root / folder).rglob("*.py"))]
        return {path.relative_to(self.root).as_posix(): path.read_text() for path in paths}

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        """The files that each file imports."""
        return {file: _imported(text) for file, text in (self._code | self._tests).items()}

    def ids(self, file: str) -> dict[str, str]:
        """The architectures and input sources that a file registers, and the decorator of each."""
        found = {}
        for node in ast.walk(ast.parse(self._code[file])):
            match node:
                case ast.Call(
                    func=ast.Name(id="register" | "register_input" as sort), args=[ast.Constant(value=id), *_]
                ):
                    found[id] = sort
                    variants = [each.value for each in node.keywords if each.arg == "variants"]
                    for each in variants:
                        found |= dict.fromkeys([k.value for k in getattr(each, "keys", [])], sort)
        return found

    def _of_tasks(self, file: str) -> set[str]:
        """The tests that name a task of the problems that a file registers."""
        problems = self._problems(file)
        tasks = [text for path, text in self._code.items() if path.startswith("tasks/")]
        of_them = [text for text in tasks if any(f'type="{problem}"' in text for problem in problems)]
        ids = [id for text in of_them for id in re.findall(r'@register_task\(\s*"(\w+)"', text)]
        tests = {test: text for test, text in self._tests.items() if test.startswith("tests/tasks/")}
        return {test for test, text in tests.items() if any(f'"{id}"' in text for id in ids)}

    def _problems(self, file: str) -> list[str]:
        """The problems that a file registers."""
        return re.findall(r'@register_problem\(\s*"(\w+)"', self._code[file])

    def _has_settings(self, id: str) -> bool:
        return any(line.startswith(f"{id},") for line in self._lines_of_settings)

    def _starts_by_lot(self, file: str) -> bool:
        """False for systems that make their numbers while they fit."""
        return not re.search(r'kind="(fit|floor)"', self._code[file])

    @cached_property
    def _lines_of_settings(self) -> list[str]:
        return (self.root / "tests/architectures/paper_settings.csv").read_text().splitlines()

    def _concerns(self, test: str, file: str, ids: dict[str, str]) -> bool:
        names = [*ids, *self._problems(file)]
        return file in self._imports[test] or any(f'"{name}"' in self._tests[test] for name in names)

    def _ordered(self, tests: list[str], file: str) -> list[str]:
        """Tests, those of the file's name first, then by size."""
        stem = Path(file).stem
        return sorted(tests, key=lambda test: (not test.endswith(f"/test_{stem}.py"), len(self._tests[test])))


def _imported(text: str) -> set[str]:
    """The files that a text may import."""
    found = re.findall(r"^[ \t]*import ([\w.]+)", text, re.MULTILINE)
    for module, names in re.findall(r"^[ \t]*from ([\w.]+) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE):
        found += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
    return {f"{module.replace('.', '/')}.py" for module in found}
