"""Commands that README shows for plugins do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harness import cli, registry

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def commands(heading: str) -> list[str]:
    """Lines of the first block of commands below a heading."""
    block = re.search(rf"^## {heading}\n.*?^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def test_the_commands_for_a_task_of_ones_own_work_in_their_order(tmp_path, monkeypatch, capsys):
    """Task authors had to find out by trying. Nothing is trained: a dry run says that it would
    be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_plugins", [])
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    lines = commands("Adding a task")
    assert [line.split()[1] for line in lines] == ["new", "check", "run"]
    for line in lines:
        _, *arguments = shlex.split(line)
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, *(["--dry-run"] if arguments[0] == "run" else [])])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
    assert "1 to run" in out


def test_the_commands_for_ones_own_data_work_in_their_order(tmp_path, monkeypatch, capsys):
    """The shortest way from a file to a table; a dry run says that all would be run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_plugins", [])
    rows = "".join(f"film {number},{number % 5}\n" for number in range(100))
    Path("reviews.csv").write_text(f"review,stars\n{rows}", encoding="utf-8")
    for line in commands("Your own data")[:2]:
        _, *arguments = shlex.split(line)
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, *(["--dry-run"] if arguments[0] == "run" else [])])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
    assert "7 to run" in out


def test_the_description_in_readme_is_one(tmp_path, monkeypatch):
    """Its comments may be taken away."""
    monkeypatch.setattr(registry, "_plugins", [])
    text = re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1]
    (tmp_path / "reviews.toml").write_text(text, encoding="utf-8")
    [entry] = registry.match("tasks", str(tmp_path / "reviews.toml"))
    assert entry.type == "classify"


def test_readme_names_every_type_that_has_a_template():
    from harness.cli import scaffold

    section = README.partition("## Adding a task")[2].partition("\n## ")[0]
    assert [type for type in scaffold.TYPES if not re.search(rf"\b{type}\b", section)] == []
