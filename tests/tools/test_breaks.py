"""The tool of deliberate mistakes: which it tries, and what it calls caught."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.breaks.__main__ import DRAWN, Kept, concerned, reported
from tools.breaks.changes import changed_since, git
from tools.breaks.lists import BadList, Break, mirror_of, read
from tools.breaks.mutants import Mutant
from tools.breaks.trial import Outcome

ROOT = Path(__file__).parents[2]


def test_every_committed_break_fits_the_code():
    """A break whose text is gone, or stands twice, is tried no more and nobody hears of it."""
    assert read(ROOT)


HEAD = """
file = "toy.py"
tests = ["test_toy.py"]
"""
ENTRY = """
["minus"]
text = "a + b"
replacement = "a - b"
"""
SOUND = HEAD + ENTRY


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one file, its test, and no list of breaks yet."""
    (tmp_path / "tests" / "breaks").mkdir(parents=True)
    (tmp_path / "toy.py").write_text("def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a / 2\n")
    (tmp_path / "test_toy.py").write_text("from toy import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    return tmp_path


def listed(tree: Path, text: str) -> list[Break]:
    (tree / "tests" / "breaks" / "toy.toml").write_text(text)
    return read(tree)


def test_a_break_replaces_its_text(tree):
    (one,) = listed(tree, SOUND)
    assert one.applied("return a + b") == "return a - b"


def test_a_break_of_another_file_names_it_itself(tree):
    """A mechanism may lie in a shared block, and only one test may see it."""
    own = 'file = "test_toy.py"\ntests = ["test_toy.py::test_add"]\ntext = "1, 2"\nreplacement = "1, 3"\n'
    first, second = listed(tree, SOUND + '["other"]\n' + own)
    assert (first.id, first.file, first.tests) == ("toy", "toy.py", ("test_toy.py",))
    assert (second.id, second.file, second.tests) == ("toy", "test_toy.py", ("test_toy.py::test_add",))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("a + b", "a * b", "its text stands 0 times in toy.py"),
        ("a + b", "return", "its text stands 2 times in toy.py"),
        ("a - b", "a + b", "its replacement is the text itself"),
        ('file = "toy.py"', 'file = "gone.py"', "there is no file 'gone.py'"),
        ("test_toy.py", "test_gone.py", "there is no test file test_gone.py"),
        ('["test_toy.py"]', "[]", "names no tests"),
        ("replacement =", "instead =", "has the keys"),
        ('"minus"', '"minus', "toy.toml: "),
    ],
)
def test_a_wrong_entry_is_named(tree, old, new, complaint):
    with pytest.raises(BadList, match=complaint):
        listed(tree, SOUND.replace(old, new))


def test_all_wrong_entries_are_named_at_once(tree):
    wrong = ENTRY.replace("a + b", "a * b")
    with pytest.raises(BadList, match=r"'minus'.*\n.*'times'"):
        listed(tree, HEAD + wrong + wrong.replace("minus", "times"))


def test_two_breaks_of_one_name_are_refused(tree):
    with pytest.raises(BadList, match=r"toy\.toml: .*minus"):
        listed(tree, SOUND + ENTRY)


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("architectures/recurrent/lstm.py", "tests/architectures/test_lstm.py"),
        ("architectures/blocks/objectives/next_word.py", "tests/blocks/test_next_word.py"),
        ("harness/layers/crf.py", "tests/layers/test_crf.py"),
        ("tasks/sst2.py", "tests/tasks/test_sst2.py"),
    ],
)
def test_a_file_has_the_tests_that_mirror_it(file, tests):
    assert mirror_of(file) == tests


def test_a_list_without_a_head_is_of_its_architecture(tree):
    """Most are: their file and their test are found by their name. A break of another file has that
    file's tests."""
    folders = tree / "architectures" / "graph", tree / "tests" / "architectures", tree / "tests" / "layers"
    for folder in folders:
        folder.mkdir(parents=True)
    (tree / "architectures" / "graph" / "toy.py").write_text("a + b")
    (tree / "harness" / "layers").mkdir(parents=True)
    (tree / "harness" / "layers" / "sums.py").write_text("a + b")
    for test in ("tests/architectures/test_toy.py", "tests/layers/test_sums.py"):
        (tree / test).write_text("")
    other = ENTRY.replace('"minus"]', '"elsewhere"]\nfile = "harness/layers/sums.py"')
    own, elsewhere = listed(tree, ENTRY + other)
    assert (own.file, own.tests) == ("architectures/graph/toy.py", ("tests/architectures/test_toy.py",))
    assert (elsewhere.file, elsewhere.tests) == ("harness/layers/sums.py", ("tests/layers/test_sums.py",))


def test_a_list_of_no_architecture_must_name_its_file(tree):
    with pytest.raises(BadList, match="has the keys"):
        listed(tree, ENTRY)


def made(id: str, count: int, file: str = "") -> list[Break]:
    file = file or f"architectures/recurrent/{id}.py"
    return [Break(id, file, "a", "b", f"{id} {n}", (f"tests/architectures/test_{id}.py",)) for n in range(count)]


@pytest.mark.parametrize(
    "changed", ["architectures/recurrent/rnn.py", "tests/architectures/test_rnn.py", "tests/breaks/rnn.toml"]
)
def test_a_change_of_an_architecture_asks_for_its_own_breaks(changed):
    breaks = [*made("rnn", 3), *made("gru", 3)]
    assert concerned(breaks, {changed, "README.md"}, "seed") == breaks[:3]


def test_a_change_of_shared_code_asks_for_some_of_all():
    """A layer or the training loop may make any architecture wrong, and trying all takes too long
    for every commit."""
    breaks = [*made("rnn", 100), *made("gru", 3)]
    drawn = concerned(breaks, {"harness/layers/crf.py"}, "seed")
    assert len(drawn) == DRAWN
    assert drawn == concerned(breaks, {"harness/layers/crf.py"}, "seed")
    assert drawn != concerned(breaks, {"harness/layers/crf.py"}, "other seed")


def test_a_change_of_neither_asks_for_nothing():
    assert concerned(made("rnn", 3), {"README.md", "tests/test_pages.py"}, "seed") == []


def test_an_unknown_commit_asks_for_some_of_all():
    """A fresh copy may lack the landed commit; an empty choice would be green."""
    assert changed_since(ROOT, "no-such-commit") is None
    assert len(concerned(made("rnn", 100), None, "seed")) == DRAWN


def test_words_are_no_change_of_code(tmp_path: Path):
    """An audit that declared deviations of forty architectures had each of them trained by the
    suite."""
    then = (
        "@register('a', deviations=('one',), variants={'b': {'deviations': ()}})\nclass A:\n    'Doc.'\n    size = 1\n"
    )
    words = then.replace("('one',)", "('one', 'two')").replace("Doc", "Docs").replace("()}", "('x',)}")
    now = {
        "words.py": words + "# more\n",
        "code.py": then.replace("size = 1", "size = 2"),
        "settings.py": then.replace("'a',", "'a', tiny={},"),
        "broken.py": then + "class",
        "page.md": "two",
    }
    git(tmp_path, "init", "-q")
    for name in now:
        (tmp_path / name).write_text("one" if name == "page.md" else then)
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=test", "-c", "user.email=t@example.org", "commit", "-q", "-m", "then")
    for name, text in now.items():
        (tmp_path / name).write_text(text)
    assert changed_since(tmp_path, "HEAD") == {"code.py", "settings.py", "broken.py", "page.md"}


CONTRACT = """
from toy import half


def cases(entry):
    yield Case()


class Case:
    def answers(self):
        assert half(2) * 0 == 0
"""


def test_what_is_called_caught(tree):
    """Only a wrong model that answers counts, and only where the tests are green without it. A
    mutant has to be seen whatever it answers."""
    harness = tree / "harness"
    (harness / "layers").mkdir(parents=True)
    (tree / "tests" / "layers").mkdir()
    (tree / "tests" / "architectures").mkdir()
    (tree / "tests" / "architectures" / "paper_settings.csv").touch()
    (harness / "__init__.py").touch()
    (harness / "contract.py").write_text(CONTRACT)
    (harness / "registry.py").write_text("def entry(sort, id):\n    return id\n\n\ndef entries(sort):\n    return {}\n")
    (harness / "layers" / "wait.py").write_text(
        "def rounds(number):\n    while number > 0:\n        number -= 2\n    return number\n"
    )
    (tree / "tests" / "layers" / "test_wait.py").write_text(
        "from harness.layers.wait import rounds\n\n\ndef test_rounds():\n    assert rounds(4) == 0\n"
    )
    (tree / "test_red.py").write_text("def test_nothing():\n    assert False\n")
    survivor = ENTRY.replace("a + b", "a / 2").replace("a - b", "a / 4").replace("minus", "quarter")
    crash = survivor.replace("a / 4", "a / 0").replace("quarter", "no model")
    blind = ENTRY.replace("minus", "red before") + 'tests = ["test_red.py"]\n'
    listed(tree, SOUND + survivor + crash + blind)
    for call in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *call], cwd=tree, check=True)
    # The toy needs no torch, which takes longer to load than all the trials.
    call = (
        "import sys, tools.breaks.__main__ as t, tools.breaks.trial as s;"
        "t.load_company = lambda: None; s.LIMIT_S = t.LIMIT_S = 6; sys.exit(t.main(sys.argv[1:]))"
    )
    first = subprocess.run(
        [sys.executable, "-c", call, "--kept", "kept.json", "--each", "9"],
        cwd=tree, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert first.returncode == 1, first.stderr
    ends = first.stdout.splitlines()
    assert any(line.startswith("survived: toy: quarter") for line in ends)
    assert any(line.startswith("no model: toy: no model") and "ZeroDivisionError" in line for line in ends)
    assert any(line.startswith("no tests: toy: red before") for line in ends)
    assert any("caught    harness/layers/wait.py:rounds statement-dropped 0" in line for line in ends)  # has no end
    survived = [line for line in ends if line.startswith("survived: harness/")]
    assert len(survived) == 1 and "rounds constant-changed 0: 0 -> 1" in survived[0]
    assert ends[-1] == "5 of 9 caught"
    kept = Kept(tree / "kept.json", tree)
    assert [one.what for one in read(tree) if kept.of(one)] == ["minus"]
    (tree / "test_toy.py").write_text("")
    assert not any(map(Kept(tree / "kept.json", tree).of, read(tree)))  # other tests, other outcomes


@pytest.mark.parametrize(
    ("listed", "missed", "code"), [(0, 0, 0), (1, 0, 1), (0, 2, 0), (0, 12, 1)], ids=["none", "list", "few", "many"]
)
def test_a_listed_break_fails_a_run_and_so_do_many_mutants(capsys, listed, missed, code):
    """Of a hundred drawn mutants some two survive always: that a change was unlucky is no reason to
    refuse it, and twelve are no bad luck."""
    one = Break("toy", "toy.py", "a + b", "a - b", "minus", ("test_toy.py",))
    made = [Mutant("toy.py", "add", "sign", n, 0, (0, 1), "+", "-") for n in range(100)]
    outcomes = {mutant: Outcome("survived" if n < missed else "caught") for n, mutant in enumerate(made)}
    outcomes[one] = Outcome("survived" if listed else "caught")
    assert reported([one, *made], outcomes) == code
    assert reported([one, *made], outcomes, lists_alone=True) == listed
    assert f"{101 - listed - missed} of 101 caught" in capsys.readouterr().out
