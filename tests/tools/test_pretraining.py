"""The table of pre-training where few labels do not tell: its corpus, its commands, its words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import registry
from tools.pretraining import __main__ as tool
from tools.pretraining import few_labels


def test_dev_and_test_ask_for_words_of_both_kinds_that_no_labelled_text_of_training_has():
    """Else the labels alone would tell."""
    texts, kinds = {split: [*few_labels.labelled(split)] for split in ("train", "dev", "test")}, few_labels.kinds()
    asked = {split: {w for text, _ in rows for w in text.split()} & {*kinds} for split, rows in texts.items()}
    assert (len(texts["train"]), len(texts["test"])) == (32, 56) and len(asked["train"]) == 16
    assert not asked["train"] & asked["dev"] and not asked["test"] & (asked["dev"] | asked["train"])
    for rows in texts.values():
        labels = [label for _, label in rows]
        assert labels.count("animal") == labels.count("tool")
        for text, label in rows:
            words = text.split(" and ")
            assert len({*words}) == 3 and {kinds[word] for word in words} == {label}


def test_plain_texts_show_all_words_among_others_of_their_kind_and_with_what_it_does():
    of, seen = few_labels.kinds(), set()
    for text in few_labels.plain("train"):
        clauses = [clause.split() for clause in text.split(" while ")]
        words = [word for clause in clauses for word in clause[:-1:2]]
        [kind] = {of[word] for word in words}
        assert {clause[-1] for clause in clauses} <= {*few_labels.DEEDS[kind]}
        seen |= {*words}
    assert seen == {*of}


def test_no_text_tells_of_the_further_divisions():
    """Half of the words of a group are animals, and other words are shown."""
    kinds, shown = few_labels.kinds(), set()
    for division in (1, 2):
        groups = few_labels.kinds(division)
        assert {*groups} == {*kinds} and list(groups.values()) == list(kinds.values())
        assert 0.4 < sum(groups[word] == kinds[word] for word in kinds) / few_labels.WORDS < 0.6
        shown |= {frozenset(text.split(" and ")) for text, _ in few_labels.labelled("train", division)}
    assert len(shown) > 48 and not shown & {frozenset(text.split(" and ")) for text, _ in few_labels.labelled("train")}


def test_shuffled_texts_have_the_same_words_as_often():
    plain, shuffled = few_labels.plain("dev"), few_labels.shuffled("dev")
    assert sorted(" ".join(plain).split()) == sorted(" ".join(shuffled).split())
    assert [len(text.split()) for text in plain] == [len(text.split()) for text in shuffled] and plain != shuffled


def test_those_with_a_parent_of_their_own_on_plain_text_are_asked_at_the_small_size():
    found = {entry.id for entry in tool.learners()}
    assert {"roberta", "gpt", "electra"} <= found
    assert not found & {"bilstm", "distilbert", "cpc_speech"}, "no parent, a teacher beside it, no text"
    words = tool.options(registry.entry("architectures", "roberta"))
    assert words[::2] == ["-o"] * 8 and {"roberta.layers=2", "roberta.training.patience=60"} < {*words}
    assert {"electra.hidden=128", "electra.layers=2"} < {*tool.options(registry.entry("architectures", "electra"))}


@pytest.fixture
def calls(monkeypatch):
    """The commands that were called, none of which runs."""
    found: list[list[str]] = []

    def run(command, **_):
        found.append([str(word) for word in command])
        return SimpleNamespace(returncode=int("albert" in command), stdout="no such luck", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    return found


def record(task: str, seed: int, score: float, parent: str | None = None, older: int = 0) -> SimpleNamespace:
    metric = "accuracy" if task in tool.DIVISIONS else "nats_per_token"
    lineage = [] if parent is None else [{"task": parent}]
    scores = {"test": {metric: score}}
    version = registry.entry("architectures", "roberta").version - older
    return SimpleNamespace(
        architecture="roberta",
        architecture_version=version,
        status="ok",
        task=task,
        seed=seed,
        scores=scores,
        lineage=lineage,
        commit="c" * 40,
    )


def records() -> list[SimpleNamespace]:
    """Of three seeds, each from three parents, and of these."""
    found = [record("few_labels", seed, seed / 10 + 0.05, tool.TEXT) for seed in (0, 1, 2)]
    found += [
        record(task, seed, seed / 10 + share + more, parent)
        for seed in (0, 1, 2)
        for parent, share in ((tool.SHUFFLED, 0.02), (None, 0.0))
        for task, more in zip(tool.DIVISIONS, (0.0, 0.01, 0.02), strict=True)
    ]
    found += [record(tool.TEXT, seed, 1.5 + seed) for seed in (0, 1, 2)]
    return found + [record(tool.SHUFFLED, seed, 9.0) for seed in (0, 1, 2)]


def test_scores_of_other_settings_stay_out_of_a_line(calls, monkeypatch, tmp_path):
    """After an edit of the sizes a line was made of old scores and new ones."""
    asked: list[Path] = []
    monkeypatch.setattr(tool, "Store", lambda folder: asked.append(folder) or SimpleNamespace(all=records))
    for layers in (2, 3, 2):
        monkeypatch.setitem(tool.SMALL, "layers", layers)
        tool.lines_of(registry.entry("architectures", "roberta"), tmp_path)
    monkeypatch.setattr(tool, "PLUGIN", Path(__file__))
    tool.lines_of(registry.entry("architectures", "roberta"), tmp_path)
    assert asked[0] == asked[2] and len({*asked}) == 3, "of other layers, and of another corpus"
    assert [command[command.index("--results") + 1] for command in calls[::3]] == [*map(str, asked)]


def test_a_line_has_the_scores_of_the_children_of_a_seed(calls, monkeypatch, tmp_path):
    """Of those who know nothing the mean over the divisions; not those of an older version, which
    may lie in the same folder."""
    found = records()
    found += [record(each.task, each.seed, 0.99, *[p["task"] for p in each.lineage], older=1) for each in [*found]]
    monkeypatch.setattr(tool, "Store", lambda folder: SimpleNamespace(all=lambda: found))
    lines = tool.lines_of(registry.entry("architectures", "roberta"), tmp_path)
    assert [line["seed"] for line in lines] == ["0", "1", "2"]
    assert lines[1] | {"version": "1"} == {
        "architecture": "roberta", "version": "1", "seed": "1", "commit": "cccccccc", "nats": "2.500",
        tool.TEXT: "0.1500", tool.SHUFFLED: "0.1300", tool.NONE: "0.1100",
    }  # fmt: skip
    parents = [command[command.index("--parent") + 1] for command in calls]
    assert parents == ["weights=roberta@few_labels_text", "weights=roberta@few_labels_shuffled", "weights=none"]
    assert all(command[command.index("--seeds") + 1] == "0,1,2" for command in calls)
    tasks = [command[command.index("-t") + 1] for command in calls]
    assert tasks == ["few_labels", *["few_labels,few_labels_second,few_labels_third"] * 2]


def lines(id: str, text: float, shuffled: float, none: float) -> list[tool.Line]:
    values = {tool.TEXT: text, tool.SHUFFLED: shuffled, tool.NONE: none, "nats": 1.5}
    return [
        {"architecture": id, "version": "1", "seed": str(seed), "commit": "c"}
        | {name: str(value + seed / 100) for name, value in values.items()}
        for seed in (0, 1, 2)
    ]


def test_what_is_there_is_not_made_again_and_a_failure_is_told(calls, tmp_path, capsys):
    table = tmp_path / "table.csv"
    version = registry.entry("architectures", "bert").version
    tool.write([line | {"version": str(version)} for line in lines("bert", 0.9, 0.5, 0.5)], table)
    asked = ["bert", "albert", "gpt", "--table", str(table), "--results", str(tmp_path)]

    def measured(entry, results: Path) -> list[tool.Line]:
        if entry.id == "albert":
            tool.run(entry, tool.NONE, results)
        assert entry.id == "gpt"
        return lines("gpt", 0.8, 0.7, 0.5)

    assert tool.main(asked, measured) == 1
    assert "albert, none: no such luck" in capsys.readouterr().out
    assert {line["architecture"] for line in tool.read(table)} == {"bert", "gpt"}
    text = table.with_suffix(".md").read_text()
    assert "| bert | 91.0 (90.0 to 92.0) | 51.0 (50.0 to 52.0) | 51.0 (50.0 to 52.0) | +40.0 | +1.0 | 1.51 |" in text
    assert "Less than 10 points above random weights: none." in text
    assert "As much above chance after shuffled words: gpt." in text
    with pytest.raises(SystemExit):
        tool.main(["no_such_id"], measured)
    assert "no_such_id: known are" in capsys.readouterr().err
