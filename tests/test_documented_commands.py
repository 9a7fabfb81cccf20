"""Commands that pages show do what these say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from harness import cli, registry

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TASK, OWN = DOCS / "tutorials" / "add-a-task.md", DOCS / "how-to" / "describe-data.md"
INPUTS = DOCS / "how-to" / "inputs.md"
TOKENS = DOCS / "how-to" / "tokens.md"


def blocks(page: Path) -> list[list[str]]:
    """Lines of each block of commands on a page."""
    return [text.splitlines() for text in re.findall(r"^```\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)]


SHOWN = [
    pytest.param(line, id=f"{page.stem}-{number}")
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    for number, line in enumerate(line for block in blocks(page) for line in block if line.startswith("archbench "))
]


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_on_a_page_is_one_that_there_is(line):
    """An option that was renamed stays in prose for years otherwise."""
    words = shlex.split(re.split(r"[<>|]", line)[0], comments=True)
    group = typer.main.get_command(cli.app)
    command = group.get_command(group.make_context("archbench", [], resilient_parsing=True), words[1])
    assert command is not None, f"no command {words[1]}"
    command.make_context(words[1], words[2:])


def test_a_plugin_is_named_to_the_command_that_a_page_shows():
    """Whoever typed `archbench check my_model` was told that there is no such model."""
    shown = [
        command
        for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
        for command in re.findall(r"archbench (?:check|run) [^`\n]*\bmy_\w+[^`\n]*", page.read_text())
    ]
    assert shown
    assert [command for command in shown if "--plugin" not in command] == []


def test_the_commands_for_a_task_of_ones_own_work_in_their_order(tmp_path, monkeypatch, capsys, without_plugins):
    """Task authors had to find out by trying. Nothing is trained: a dry run says that it would be.
    A folder of official files that is set has none of the new task."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCHBENCH_DATA", raising=False)
    lines = blocks(TASK)[0]
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
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    rows = "".join(f"film {number},{number % 5}\n" for number in range(100))
    Path("reviews.csv").write_text(f"review,stars\n{rows}", encoding="utf-8")
    for line in blocks(OWN)[0][:2]:
        _, *arguments = shlex.split(line)
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, *(["--dry-run"] if arguments[0] == "run" else [])])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
    assert "7 to run" in out


def test_the_commands_for_input_sources_plan_what_the_page_says(tmp_path, monkeypatch, capsys):
    """A source or a setting that was renamed would be a usage error to who follows the page."""
    monkeypatch.chdir(tmp_path)
    runs = [line for line in blocks(INPUTS)[0] if line.startswith("archbench run")]
    planned = []
    for line in runs:
        _, *arguments = shlex.split(line, comments=True)
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, "--dry-run"])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        planned += re.findall(r"run   (.* with .*), seed", out)
    assert planned == [
        "kim_cnn_rand with char_cnn_words on sst2",
        "bilstm_crf with char_cnn_words and char_lstm_words on conll2003_ner",
        "esim with char_cnn_words and char_lstm_words on snli",
        "bilstm with char_cnn_words on sst2",
        "bilstm with char_cnn_words on sst2",
    ]


def test_the_input_source_on_the_page_is_sound(tmp_path, without_plugins):
    """Authors begin with a copy of it."""
    from harness.contract.inputs import case_of

    file = tmp_path / "letters.py"
    file.write_text(re.search(r"```python\n(.*?)```", INPUTS.read_text(), re.DOTALL)[1], encoding="utf-8")
    registry.add_plugin(file)
    with case_of(registry.entry("inputs", "letter_means")) as case:
        for check in (case.shape, case.answers, case.gradients, case.padding, case.longer_word, case.unknown_words):
            check()


def test_the_commands_for_pieces_plan_the_parent_once_before_its_children(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = []
    for line in blocks(TOKENS)[0]:
        _, *arguments = shlex.split(line, comments=True)
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, "--dry-run"])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        found.append([row.split()[1] for row in out.splitlines() if row.startswith("run ")])
    assert found == [
        ["bpe", "bilstm"],
        ["wordpiece", "bilstm", "han", "bilstm", "han"],
        ["bpe", "wordpiece", "unigram", "floor_characters"],
        ["unigram", "kim_cnn_static"],
    ]


def test_the_description_on_the_page_is_one(tmp_path, monkeypatch):
    """Its comments may be taken away."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    text = re.search(r"```toml\n(.*?)```", OWN.read_text(), re.DOTALL)[1]
    (tmp_path / "reviews.toml").write_text(text, encoding="utf-8")
    [entry] = registry.match("tasks", str(tmp_path / "reviews.toml"))
    assert entry.type == "classify"


def test_the_page_names_every_type_that_has_a_template():
    from harness.cli import scaffold

    assert [type for type in scaffold.TYPES if not re.search(rf"\b{type}\b", TASK.read_text())] == []
