"""The proof of `archbench try`: what is put aside stays aside, and what the table claims."""

from __future__ import annotations

import csv
import math
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from harness import registry
from harness.records import Store
from tests.support.made_records import record
from tools import bench_try

WORDS = np.array(["film", "plot", "was", "dull", "warm", "slow", "odd", "fine", "long", "deep"])


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Texts of ten words, good if they say warm more often than dull."""
    drawn = np.random.default_rng(seed).choice(WORDS, (count, 10))
    good = (drawn == "warm").sum(axis=1) > (drawn == "dull").sum(axis=1)
    return [
        {"id": str(place), "text": " ".join(words), "label": ("neg", "pos")[int(one)]}
        for place, (words, one) in enumerate(zip(drawn, good, strict=True))
    ]


def line(**changes: str) -> bench_try.Line:
    values = dict.fromkeys(bench_try.COLUMNS, "0") | {"set": "sst2", "asked": "3000", "rows": "3000"}
    return values | {"handed_over": "nbsvm", "reference": "tfidf_svm", "oracle": "nbsvm"} | changes


def test_rows_are_drawn_alike_each_time_and_from_the_whole_file():
    """A file that is sorted by class would give one class."""
    found = bench_try.drawn(rows(100, 0), 30)
    assert found == bench_try.drawn(rows(100, 0), 30) and len({row["id"] for row in found}) == 30
    assert max(int(row["id"]) for row in found) > 80
    assert len(bench_try.drawn(rows(10, 0), 30)) == 10


def test_what_is_put_aside_is_of_the_official_test(tmp_path, monkeypatch):
    task = registry.load(registry.entry("tasks", "sst2"))
    official = {"train": rows(40, 1), "dev": rows(20, 2), "test": rows(30, 3)}

    def load(self, split, tier, folder):
        import datasets

        assert (tier, folder) == ("local", tmp_path)
        return datasets.Dataset.from_list([row | {"id": f"{split}-{row['id']}"} for row in official[split]])

    monkeypatch.setattr(task, "load", load)
    known, aside = bench_try.divided("sst2", tmp_path, 1000)
    assert len(known) == 60 and {row["id"].split("-")[0] for row in known} == {"train", "dev"}
    assert len(aside) == 30 and {row["id"].split("-")[0] for row in aside} == {"test"}


def test_words_are_joined_and_labels_stay_out_of_what_is_asked(tmp_path):
    pairs = [{"first": ["A", "b"], "second": "c", "label": "same"}]
    bench_try.write_rows(pairs, bench_try.texts_of(pairs), tmp_path / "aside.csv")
    assert (tmp_path / "aside.csv").read_text().split() == ["first,second", "A", "b,c"]
    bench_try.write_rows(pairs, (*bench_try.texts_of(pairs), "label"), tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"first": "A b", "second": "c", "label": "same"}]


def test_a_reference_is_what_three_lines_of_scikit_learn_would_be(monkeypatch):
    """Strength by an eighth of the rows, then all of them."""
    known, aside = rows(160, 1), rows(100, 2)
    found = bench_try.references(registry.entry("tasks", "sst2"), known, aside)
    assert set(found) == {"tfidf_logreg", "tfidf_svm", "tfidf_ridge", "tfidf_char_logreg", "tfidf_char_svm"}

    def fitted(some: list[dict[str, Any]], C: float, asked: list[dict[str, Any]]) -> np.ndarray:
        terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        machine = LinearSVC(C=C, random_state=0).fit(
            terms.fit_transform([row["text"] for row in some]), [row["label"] for row in some]
        )
        return machine.predict(terms.transform([row["text"] for row in asked]))

    part, rest = known[::8], [row for place, row in enumerate(known) if place % 8]
    right = np.array([row["label"] for row in part])
    rights = {C: (fitted(rest, C, part) == right).astype(float) for C in (0.03, 0.1, 0.3, 1.0, 3.0)}
    lost = {C: max(rights.values(), key=np.mean) - own for C, own in rights.items()}
    near = [C for C, each in lost.items() if each.mean() <= each.std() / len(each) ** 0.5 / 2]
    assert found["tfidf_svm"].tolist() == fitted(known, min(near), aside).tolist()


def test_the_error_of_a_difference_is_over_the_same_rows():
    """By hand: right where the other is wrong once, wrong once, alike twice."""
    right, ours, theirs = (np.array(list(text)) for text in ("aaaa", "aaba", "abaa"))
    difference, error = bench_try.paired(ours, theirs, right)
    assert difference == 0.0 and error == pytest.approx(math.sqrt(2 / 3) / 2)
    assert bench_try.paired(ours, ours, right) == (0.0, 0.0)


def test_the_oracle_is_the_best_of_all_and_the_share_is_from_the_floor():
    """Ten rows, six of them the commonest label: 7 of 10 is a third of the way from 6 to 9."""
    right = np.array(["a"] * 6 + ["b"] * 4)
    known = np.array(["a", "a", "b"])

    def answers(wrong: int) -> np.ndarray:
        return np.where(np.arange(10) < wrong, "c", right)

    found = bench_try.judged(known, right, ("tfidf_svm", answers(3)), {"tfidf_svm": answers(2)}, {"dan": answers(1)})
    assert (found["score"], found["reference_score"], found["oracle_score"]) == ("0.7000", "0.8000", "0.9000")
    assert (found["reference"], found["oracle"], found["floor"]) == ("tfidf_svm", "dan", "0.6000")
    assert float(found["reached"]) == pytest.approx(1 / 3, abs=1e-3) and float(found["difference"]) == -0.1
    found = bench_try.judged(known, right, ("tfidf_svm", answers(3)), {"tfidf_svm": answers(2)}, {})
    assert found["oracle_score"] == "0.8000", "the reference, though one of its name was handed over"


def test_what_cannot_run_for_the_oracle_is_told(tmp_path, monkeypatch):
    """An oracle of nothing would be reached by whatever is handed over."""
    done = subprocess.CompletedProcess([], 2, "", "archbench: --tier own: unknown")
    monkeypatch.setattr(bench_try, "call", lambda *_: done)
    monkeypatch.setattr(bench_try, "tried", lambda store: [SimpleNamespace(architecture=id) for id in ("dan", "rnn")])
    with pytest.raises(RuntimeError, match="archbench run -a dan: .*--tier own"):
        bench_try.next_keys(tmp_path, "rnn", 2)
    assert bench_try.next_keys(tmp_path, "rnn", 0) == {}


def test_a_line_is_of_what_the_trial_did_in_its_own_folder(tmp_path, monkeypatch):
    """Models and records were looked for in the results above it, and each set ended with "nothing
    was handed over"."""
    asked = []

    def call(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        asked.append((command, arguments[0], arguments[-1]))
        if command == "try":
            (folder / bench_try.TRIAL / "records").mkdir(parents=True)
            store = Store(folder / bench_try.TRIAL)
            for task, score in (("rows_choice", 0.8), ("rows_sealed", 0.7)):
                store.write(record("nbsvm", task, score, main_metric="accuracy", commit="0" * 40))
            [key] = [each.key for each in store.all() if each.task == "rows_sealed"]
            said = f"next:\n  archbench predict {bench_try.TRIAL}/models/{key} NEW.csv\n"
        else:
            said = "line,prediction\n" + "1,pos\n" * 20
        return subprocess.CompletedProcess([], 0, said, "")

    monkeypatch.setattr(bench_try, "call", call)
    monkeypatch.setattr(bench_try, "divided", lambda *_: (rows(40, 1), rows(20, 2)))
    monkeypatch.setattr(bench_try, "references", lambda *_: {"tfidf_svm": np.array(["neg"] * 20)})
    found = bench_try.line_of("sst2", 40, 1.0, tmp_path, 2, tmp_path)
    assert (found["handed_over"], found["tried"], found["commit"]) == ("nbsvm", "1", "0" * 8)
    [key] = [each.key for each in Store(tmp_path / bench_try.TRIAL).all() if each.task == "rows_sealed"]
    assert asked == [("try", "rows.csv", "results"), ("predict", key, bench_try.TRIAL)]


def test_an_answer_too_few_is_an_error(tmp_path, monkeypatch):
    """The answers would be compared with other rows' labels."""
    done = subprocess.CompletedProcess([], 0, "line,prediction\n1,pos\n", "")
    monkeypatch.setattr(bench_try, "call", lambda *_: done)
    assert bench_try.answers(tmp_path, "abc", rows(1, 0)).tolist() == ["pos"]
    with pytest.raises(RuntimeError, match="1 answers to 2 rows"):
        bench_try.answers(tmp_path, "abc", rows(2, 0))


def test_the_goal_is_missed_by_more_than_a_standard_error():
    lines = [
        line(difference="-0.011", error="0.01"),
        line(set="snli", difference="-0.009", error="0.01"),
        line(set="imdb", difference="0.002", error="0.01"),
    ]
    assert bench_try.goals(lines) == (["sst2 (3,000)"], 1)
    text = bench_try.page(lines)
    assert "more than a standard error: sst2 (3,000)." in text and "on 1 of 3" in text and "9 of the 12" in text
    header, *below = [each for each in text.splitlines() if each.startswith("|")]
    assert len(below) == 4 and {each.count("|") for each in (header, *below)} == {15}


def test_a_line_that_is_there_is_not_made_again_and_a_failure_does_not_end_the_others(tmp_path, capsys):
    table, asked = tmp_path / "bench.csv", []

    def measured(task: str, count: int, minutes: float, data: Path, following: int, folder: Path) -> bench_try.Line:
        asked.append((task, count))
        if (task, count) == ("sst2", 20):
            raise RuntimeError("nothing was handed over")
        return line(set=task, asked=str(count), rows=str(count))

    options = ["--data-dir", str(tmp_path), "--sets", "snli,sst2", "--rows", "10,20", "--table", str(table)]
    assert bench_try.main(options, measured) == 1 and "nothing was handed over" in capsys.readouterr().out
    assert asked == [("snli", 10), ("snli", 20), ("sst2", 10), ("sst2", 20)]
    assert [(each["set"], each["asked"]) for each in bench_try.read(table)] == [
        ("sst2", "10"), ("snli", "10"), ("snli", "20")
    ]  # fmt: skip
    asked.clear()
    bench_try.main(options, measured)
    assert asked == [("sst2", 20)] and (tmp_path / "bench.md").is_file()


def test_a_wrong_name_or_folder_is_told(tmp_path, capsys):
    with pytest.raises(SystemExit):
        bench_try.main(["--data-dir", str(tmp_path), "--sets", "sst"])
    assert "--sets sst: known are sst2" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench_try.main(["--data-dir", str(tmp_path / "none")])
    assert "no such folder" in capsys.readouterr().err
