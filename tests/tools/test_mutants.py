"""The mutants: the changes that rules make, those of them that are drawn, and the tests that try
them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.breaks import __main__ as tool
from tools.breaks import mutants
from tools.breaks.choice import Choice
from tools.breaks.lists import BadList
from tools.breaks.rules import RULES

ROOT = Path(__file__).parents[2]
FILE = "harness/layers/toy.py"

CODE = '''
"""Docstring with 1 + 1."""
import torch
from torch import nn


def toy(x: list[1 + 1], mask, size=3, first=True):
    """Docstring with x - 1."""
    if size < 0:
        raise ValueError(f"{size - 1}")
    {body}
'''

CHANGES = [
    ("activation-swapped", "return torch.relu(x)", "return torch.tanh(x)"),
    ("activation-dropped", "return torch.relu(x)", "return (x)"),
    ("function-dropped", "return x.sqrt()", "return (x)"),
    ("function-dropped", "return nn.LayerNorm(size)", "return nn.Identity()"),
    ("dropout-dropped", "return self.dropout(x)", "return (x)"),
    ("mask-ignored", "return self.rnn(x, mask)", "return self.rnn(x, torch.ones_like(mask))"),
    ("masking-dropped", "return x.masked_fill(~mask, 0)", "return x"),
    ("gradient-cut", "return self.layer(x)", "return self.layer((x).detach())"),
    ("gradient-let-through", "return x.detach()", "return x"),
    ("dimension-changed", "return x.softmax(dim=-1)", "return x.softmax(dim=-2)"),
    ("dimension-changed", "return torch.sum(x, 1)", "return torch.sum(x, 0)"),
    ("transposition-dropped", "return x.transpose(1, 2)", "return x"),
    ("direction-turned", "return x.flip(1)", "return (x)"),
    ("direction-turned", "return x[::-1]", "return x[:]"),
    ("reduction-changed", "return x.sum(1)", "return x.mean(1)"),
    ("extreme-turned", "return x.amax(1)", "return x.amin(1)"),
    ("start-changed", "return torch.zeros(size)", "return torch.ones(size)"),
    ("layer-swapped", "return self.a(x) + self.b(x)", "return self.b(x) + self.b(x)"),
    ("word-changed", 'return pool(x, "mean")', 'return pool(x, "max")'),
    ("part-silenced", "return torch.cat([x, mask])", "return torch.cat([(x) * 0, mask])"),
    ("parts-exchanged", "return torch.cat([x, mask])", "return torch.cat([mask, x])"),
    ("default-changed", "return 0", "size=6"),
    ("default-changed", "return 0", "first=False"),
    ("argument-changed", "return layer(x, rate=0.5)", "return layer(x, rate=1.0)"),
    ("constant-changed", "return x * 0.5", "return x * 1.0"),
    ("flag-flipped", "return layer(x, bias=False)", "return layer(x, bias=True)"),
    ("operator-swapped", "return (x) + (1)", "return (x) - (1)"),
    ("operator-swapped", "x += size", "x -= size"),
    ("operands-exchanged", "return x - size", "return ((size) - (x))"),
    ("arguments-exchanged", "return f(x, mask)", "return f(mask, x)"),
    ("term-dropped", "return x + size", "return (x)"),
    ("first-term-dropped", "return x - size", "return (-(size))"),
    ("sign-dropped", "return -x", "return (x)"),
    ("sign-added", "return torch.exp(x)", "return torch.exp((-(x)))"),
    ("slice-moved", "return x[1:]", "return x[(1) + 1:]"),
    ("slice-moved", "return x[:-1]", "return x[:None]"),
    ("index-moved", "return x[:, -1]", "return x[:, 0]"),
    ("comparison-turned", "return x > 3", "return x < 3"),
    ("bound-moved", "return x > 3", "return x >= 3"),
    ("condition-negated", "return x if size else mask", "return x if (not (size)) else mask"),
    ("training-mistaken", "return self.training", "return (not self.training)"),
    ("branch-dropped", "if first: x = mask", "if False: x = mask"),
    ("and-for-or", "return x and mask", "return x or mask"),
    ("loop-shortened", "return range(size)", "return range((size) - 1)"),
    ("statement-dropped", "x.append(size)", "pass"),
    ("update-dropped", "x = f(x)", "pass"),
    ("targets-exchanged", "a, b = f(x)", "b, a = f(x)"),
    ("keyword-dropped", "return f(x, scale=2)", "return f(x, )"),
    ("variable-mistaken", "return x", "return "),
    ("filter-dropped", "return [y for y in x if y]", "return [y for y in x if True]"),
    ("order-dropped", "return sorted(x)", "return list(x)"),
    ("split-mistaken", "return corpus.train", "return corpus.dev"),
    ("result-untouched", "return f(x)", "return (x)"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one layer and no tests."""
    (tmp_path / "harness" / "layers").mkdir(parents=True)
    (tmp_path / "tests" / "mutants").mkdir(parents=True)
    return tmp_path


def made(tree: Path, text: str) -> list[mutants.Mutant]:
    (tree / FILE).write_text(text)
    return mutants.made(tree, FILE)


def code(body: str) -> str:
    return CODE.replace("{body}", body)


@pytest.mark.parametrize(("rule", "body", "wanted"), CHANGES)
def test_a_rule_makes_its_mistake(tree, rule, body, wanted):
    """A rule that fits no place any more would let its mistakes go unseen."""
    text = code(body)
    found = [one.applied(text) for one in made(tree, text) if one.rule == rule]
    assert any(wanted in each for each in found), found
    assert text not in found


def test_each_rule_has_an_example():
    assert {rule for rule, *_ in CHANGES} | {"attribute-declined"} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "body", "text"),
    [
        ("operands-exchanged", "return (x - size).square()", "x - size"),
        ("operands-exchanged", "return (x - size) ** 2", "x - size"),
        ("operands-exchanged", "return torch.abs(x - size)", "x - size"),
        ("part-silenced", "return torch.cat([x.new_zeros(1)])", "x.new_zeros(1)"),
        ("index-moved", "return layer.kernel_size[0]", "0"),
        ("targets-exchanged", "a, b = (nn.Linear(size, 1) for _ in range(2))", "a, b"),
        ("arguments-exchanged", "return F.cosine_similarity(x, mask)", "x, mask"),
        ("gradient-cut", "nn.init.zeros_(x)", "x"),
        ("gradient-cut", "return torch.zeros_like(x)", "x"),
        ("index-moved", "return torch.zeros_like(x[0])", "0"),
        ("branch-dropped", "if TYPE_CHECKING: import numpy", "TYPE_CHECKING"),
        ("condition-negated", "if TYPE_CHECKING: import numpy", "TYPE_CHECKING"),
    ],
)
def test_a_change_that_changes_nothing_is_not_made(tree, rule, body, text):
    """Nobody could write a test that sees it, and its survival would look like a gap."""
    assert not [one for one in made(tree, code(body)) if (one.rule, one.text) == (rule, text)]


def test_a_class_loses_its_declaration(tree):
    text = "class Layer:\n    trained_by = Objective\n"
    assert [one.applied(text) for one in made(tree, text)] == ["class Layer:\n    trained_by = None\n"]


def test_what_computes_nothing_is_left_alone(tree):
    """Docstrings, annotations, messages of errors and the checks before them, and what a
    registration tells."""
    text = code("return 'x'") + '@register("toy", year=2020, tiny={"size": 3})\nclass Toy:\n    pass\n'
    places = {one.text for one in made(tree, text)}
    assert places == {"3", "True"}  # the defaults


def test_lines_and_other_functions_change_no_choice(tree):
    """Else each refactoring would draw other mutants, and lists of equivalent ones would age."""
    first = "def a(x):\n    return x + 1 + 2 + 3\n"
    ranks = {one.rank for one in made(tree, first)}
    moved = "import torch\n\n\ndef b(x):\n    return x * 7\n\n\n" + first
    assert ranks == {one.rank for one in made(tree, moved) if one.function == "a"}
    assert len(ranks) == len(made(tree, first))


def test_so_many_of_each_rule_are_drawn(tree):
    drawn = mutants.drawn(made(tree, "def a(x):\n    return x + 1 + 2 + 3 - x\n"), 1)
    rules = [one.rule for one in drawn]
    assert len(rules) == len(set(rules)) and "operator-swapped" in rules


def test_the_functions_that_a_change_touches():
    """A comment, a docstring, another line or a neighbour is no change."""
    before = "def a(x):\n    return x + 1\n\n\nclass B:\n    size = 1\n\n    def c(self):\n        return 2\n"
    after = "# Moved.\n\n\nclass B:\n    size = 1\n\n    def c(self):\n"
    after += '        """New."""\n        return 3\n\n\ndef a(x):\n'
    after += "    return x + 1  # One.\n"
    assert tool.changed_functions(before, after) == {"B.c"}


def test_a_change_asks_for_the_mutants_of_its_functions(tree):
    """All of a file are too many for each commit, and none would let a new mistake pass."""
    (tree / "tests" / "architectures").mkdir()
    (tree / "tests" / "architectures" / "paper_settings.csv").touch()
    (tree / FILE).write_text("def a(x):\n    return x + 1\n\n\ndef b(x):\n    return x + 2\n")
    test = "tests/layers/test_toy.py"
    (tree / "tests" / "layers").mkdir()
    (tree / test).write_text("from harness.layers.toy import a, b\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for call in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "First"]):
        subprocess.run([*git, *call], cwd=tree, check=True)
    (tree / FILE).write_text("def a(x):\n    return x + 1\n\n\ndef b(x):\n    return x + 3\n")

    def of(*changed: str) -> list[mutants.Mutant]:
        return list(tool.of_changes(tree, [FILE], "HEAD", set(changed), Choice(tree)))

    assert {one.function for one in of(FILE)} == {"b"}
    assert len(of(FILE)) > 3
    assert of("README.md") == []
    rules = [one.rule for one in of(test)]
    assert len(rules) == len(set(rules)) > 3


LISTED = """
[[equivalent]]
file = "harness/layers/toy.py"
function = "a"
rule = "operator-swapped"
text = "x + 1"
reason = "x is zero"
"""


def test_an_equivalent_mutant_is_not_tried(tree):
    (tree / mutants.EQUIVALENT).write_text(LISTED)
    all_of_it = made(tree, "def a(x):\n    return x + 1\n\n\ndef b(x):\n    return x + 1\n")
    left = list(mutants.that_matter(all_of_it, tree))
    (gone,) = set(all_of_it) - set(left)
    assert (gone.function, gone.rule) == ("a", "operator-swapped")
    assert mutants.dead(tree) == []


@pytest.mark.parametrize(
    ("old", "new"), [("x + 1", "x + 3"), ("toy.py", "gone.py"), ('"a"', '"b"'), ("operator-", "no-")]
)
def test_an_entry_that_names_no_mutant_is_dead(tree, old, new):
    made(tree, "def a(x):\n    return x + 1\n")
    (tree / mutants.EQUIVALENT).write_text(LISTED.replace(old, new))
    assert len(mutants.dead(tree)) == 1


def test_an_equivalent_mutant_has_a_reason(tree):
    (tree / mutants.EQUIVALENT).write_text(LISTED.replace("x is zero", ""))
    with pytest.raises(BadList, match="wanted are file, function, reason, rule, text"):
        mutants.equivalents(tree)


def test_every_committed_entry_names_a_mutant():
    assert mutants.dead(ROOT) == []


def test_every_file_has_tests():
    """A mutant without tests would survive whatever it does."""
    choice = Choice(ROOT)
    files = mutants.files(ROOT)
    assert "architectures/recurrent/gru.py" in files and "harness/layers/crf.py" in files
    assert [file for file in files if not choice.of(file)] == []
    gru = choice.of("architectures/recurrent/gru.py")
    assert gru[0] == "tests/architectures/test_gru.py"
    assert gru[-3] == "tests/architectures/test_start_values.py::test_each_parameter_starts_as_declared[gru]"
    assert gru[-2] == "tests/architectures/test_dropouts.py::test_an_architecture_drops_what_the_table_says[gru]"
    assert gru[-1] == "tests/test_contract.py::test_plugin_keeps_to_the_contract[gru]"
    assert not any("start_values.py::" in test for test in choice.of("architectures/classical/tfidf.py"))
    assert "test_paper_settings" in choice.of("architectures/recurrent/gru.py", declares=True)[0]
    assert "tests/tasks/test_babi_support.py" in choice.of("harness/problems/answer.py")
    assert choice.of("harness/layers/crf.py")[0] == "tests/layers/test_crf.py"
    missing = {test.partition("::")[0] for file in files for test in choice.of(file)}
    assert all((ROOT / test).is_file() for test in missing)


def test_a_change_of_a_block_concerns_those_that_use_it_by_another_block():
    """Content words are read by bags of words, and these by the topic model."""
    concerned = Choice(ROOT).users({"architectures/blocks/content_words.py"})
    assert {"architectures/blocks/word_bags.py", "architectures/unsupervised/nvdm.py"} < concerned
    assert "architectures/recurrent/lstm.py" not in concerned
