"""`archbench try`: from a file to a table, a page and a model, within its time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import cli, registry
from harness.errors import DataError
from harness.model_selection.candidates import Candidate
from harness.model_selection.report import sentences, write_page
from harness.model_selection.trial import Trial
from harness.model_selection.wish import Preference, Wish
from harness.records import Store
from harness.running.engines import local
from harness.saved_models.folder import describe
from harness.saved_models.reading import manner_of
from harness.saved_models.storage import is_kept, place
from tests.model_selection.conftest import HEAD, reviews
from tools import bench_try

CHEAP = "naive_bayes,delta_tfidf"


@pytest.fixture
def command(capsys):
    """Runs the command; returns its exit code and what it printed."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["try", *arguments])
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_it_ends_with_a_table_a_page_and_a_model_that_answers(command, tmp_path):
    """The whole way of who has a file and a question."""
    Path("reviews.csv").write_text(reviews(1000))
    code, out, _ = command("reviews.csv", "--minutes", "5", "-a", CHEAP)
    assert code == 0, out
    assert "525 for training" in out and "so far; results/try/reviews/index.html" in out
    end = out[out.index("What was tried") :]
    assert re.search(r"Naive Bayes \(naive_bayes\) +8\d\.\d +\d\d\.\d to \d\d\.\d +in front", end)
    assert "floor: the commonest answer" in end and "needs no training" in end
    page = Path("results/try/reviews/index.html").read_text()
    [words] = re.findall(rf"not chosen by -a {CHEAP}:\n((?:  .+\n)+)", end)
    assert words.count(", ") == 8 and re.search(r" and\s+\d{3} others, which the page\s+names", words)
    assert "blstm_2dcnn" not in end and "blstm_2dcnn" in page
    assert "Confirmed once on the sealed rows:" in end
    assert "architectures fit. Order: the cheapest first" in out and "Order: the cheapest first" in page
    assert "in front, recommended" in page and "Believe the sealed score" in page
    assert "/" + str(tmp_path) not in page
    assert not list(Store(tmp_path / "results").all()), "slices of one table would stand on the leaderboard as tasks"
    store = Store(tmp_path / "results/try/reviews")
    sealed = [record for record in store.all() if record.task == "reviews_sealed"]
    assert len(sealed) == 1, "the sealed rows are for the recommended one alone"
    assert is_kept(store.folder, sealed[0].key)
    assert f"archbench predict results/try/reviews/models/{sealed[0].key} NEW.csv" in out
    assert bench_try.HANDED_OVER.search(out)[1] == sealed[0].key, "the measurement of this command reads it there"
    assert manner_of(Path("new.csv"), place(store.folder, sealed[0].key)).names == {"text": "review", "label": "stars"}
    assert "trained once more, on 1,000 of the 1,000 rows. It is expected to be no worse" in out
    assert describe(place(store.folder, sealed[0].key)).origin.refitted == 1000
    assert len([record for record in store.all() if record.task == "reviews_choice"]) == 4
    assert not [r for r in store.all() if is_kept(store.folder, r.key) and r.task != "reviews_sealed"]


def test_a_description_of_other_data_is_not_tried(command):
    """Two files of one name: the choice was made by the rows of the first, without a word."""
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "reviews.csv").write_text(reviews(100))
    with pytest.raises(SystemExit):
        cli.main(["new-task", "a/reviews.csv"])
    code, _, err = command("b/reviews.csv", "-a", CHEAP)
    assert code == 2 and "reviews.toml exists already and is of other data than b/reviews.csv" in err
    code, _, err = command("reviews.toml", "--label", "label", "-a", CHEAP)
    assert code == 2 and "reviews.toml exists already and says otherwise than --label label" in err


def test_the_same_command_goes_on_where_it_was(command, monkeypatch):
    """All that was computed before Ctrl-C, or yesterday, counts."""
    Path("reviews.csv").write_text(reviews(200))
    code, first, _ = command("reviews.csv", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0
    monkeypatch.setattr(local, "run", lambda *_, **__: pytest.fail("a finished cell ran again"))
    code, again, _ = command("reviews.csv", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0
    assert again[again.index("What was tried") :] == first[first.index("What was tried") :]
    assert "cross-validation, 5 parts" in again and "nothing was sealed" in again
    assert "trained once more, on 200 of the 200 rows" in again, "no part of a cross-validation saw them all"
    code, limited, _ = command("reviews.csv", "--minutes", "5", "-a", "naive_bayes", "--latency-ms", "1e-9")
    assert code == 0 and "Nothing is recommended: none of those in front keeps to 1e-09 ms for an answer." in limited
    code, named, _ = command("reviews.csv", "--label", "stars", "--text", "1", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0 and named[named.index("What was tried") :] == first[first.index("What was tried") :]
    for other in (("--label", "1"), ("--text", "stars", "--label", "film"), ("--type", "regress"), ("--group", "film")):
        code, _, err = command("reviews.csv", *other)
        assert code == 2 and "reviews.toml exists already and says otherwise than" in err, other
    code, by_toml, _ = command("reviews.toml", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0 and by_toml[by_toml.index("What was tried") :] == first[first.index("What was tried") :]


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("h.csv", reviews(200).partition("\n")[2], ("--text", "1", "--label", "2")),
        ("dup.csv", reviews(200).replace("review,stars,", "review,stars,stars,", 1), ("--text", "1")),
        ("n.conll", "".join(f"w{n} {'XY'[n % 2]}\n\n" for n in range(120)), ("--text", "1", "--label", "2")),
    ],
)
def test_columns_told_by_numbers_are_those_of_the_description(command, name, content, options):
    """The very command that wrote the description was refused the second time."""
    Path(name).write_text(content)
    for _ in range(2):
        code, _, err = command(name, *options, "-a", "no_such_architecture")
        assert code == 2 and "no architecture is called" in err, err
    code, _, err = command(name, "--text", "2", "-a", "no_such_architecture")
    assert code == 2 and "exists already and says otherwise than --text" in err


def test_a_task_with_a_long_name_is_tried(command):
    """Its slices are named after it, and a slice's id may be no longer than any other."""
    name = f"{'a_long_name_' * 8}.csv"
    Path(name).write_text(reviews(200))
    code, out, err = command(name, "--minutes", "5", "-a", "naive_bayes")
    assert code == 0 and "What was tried" in out, err


def test_results_may_lie_behind_a_link(command, tmp_path):
    """The slices stand there, and name the data from where they really are."""
    Path("reviews.csv").write_text(reviews(200))
    (tmp_path / "deep" / "disk").mkdir(parents=True)
    Path("linked").symlink_to(tmp_path / "deep" / "disk")
    for _ in range(2):
        code, out, err = command("reviews.csv", "--minutes", "5", "-a", "naive_bayes", "--results", "linked")
        assert code == 0 and "What was tried" in out, err


def test_another_main_metric_in_the_toml_is_another_choice(command, own):
    """Who corrects the TOML and calls again saw a page headed macro F1, on which those in front
    were so by the accuracy of the call before."""
    toml = 'metrics = ["accuracy", "macro_f1"]\nmain_metric = "accuracy"\n' + HEAD
    own(reviews(200), toml)
    code, _, _ = command("reviews.toml", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0
    Path("reviews.toml").write_text(toml.replace('= "accuracy"', '= "macro_f1"'))
    code, _, _ = command("reviews.toml", "--minutes", "5", "-a", "naive_bayes")
    assert code == 0
    assert {each.main_metric for each in Store(Path("results/try/reviews")).all()} == {"macro_f1"}
    page = Path("results/try/reviews/index.html").read_text()
    assert "nobody asked chance" in page and "95 % interval of a score" not in page


def test_a_model_that_is_not_handed_over_is_told_with_the_reason(own, tmp_path, monkeypatch):
    """Who waited for a recommendation looked for a model that was not there, nor any word on it."""
    task = own(reviews(200))
    trial = Trial(task, tmp_path / "results", 1e4, "naive_bayes", refit=False, clock=lambda: 0.0)
    trial.run(lambda ended: None)
    assert trial.choice.recommended is not None and trial.handed_over is None
    assert sentences(trial)[-1].startswith("No model is handed over: each row was answered by another one")
    assert "--no-refit trains none on all rows; leave it out" in sentences(trial)[-1]
    trial = Trial(task, tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    whole = trial._records

    def late(ids, files, *rest, **options):
        if files == [trial.slices.last]:
            raise DataError("timeout: over 5 s")
        return whole(ids, files, *rest, **options)

    monkeypatch.setattr(trial, "_records", late)
    trial.run(lambda ended: None)
    assert sentences(trial)[-1] == "No model is handed over: timeout: over 5 s."


def test_without_refit_the_model_that_was_scored_is_handed_over(own, tmp_path):
    """An earlier call without the option kept the one that saw all rows."""
    task, saw = own(reviews(1000)), []
    for refit in (True, False, True):
        trial = Trial(task, tmp_path / "results", 1e4, "naive_bayes", refit=refit, clock=lambda: 0.0)
        trial.run(lambda ended: None)
        assert trial.handed_over is not None
        saw.append(trial.saw)
    assert saw == [1000, None, 1000]


def test_a_training_on_all_rows_that_came_to_nothing_is_told(own, tmp_path, monkeypatch):
    """Below 1,000 rows it is the only model there could be."""
    from harness.running import refit

    def fails(*_):
        raise ValueError("no such luck")

    monkeypatch.setattr(refit, "learnt_anew", fails)
    trial = Trial(own(reviews(200)), tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    trial.run(lambda ended: None)
    assert trial.handed_over is None
    assert re.search(r"No model is handed over: .*all rows came to nothing: .*no such luck", sentences(trial)[-1])


def test_rows_that_confirmed_another_choice_before_are_no_longer_said_to_do_it_once(own, tmp_path):
    """Who calls it three times and takes the best sealed score has chosen by the sealed rows."""
    task, told = own(reviews(1000)), []
    for pattern in ("naive_bayes", "nbsvm"):
        trial = Trial(task, tmp_path / "results", 1e4, pattern, clock=lambda: 0.0)
        trial.run(lambda ended: None)
        told.append(" ".join(sentences(trial)))
    assert "Confirmed once on the sealed rows" in told[0] and "luck again" not in told[0]
    assert "Confirmed on the sealed rows" in told[1]
    assert "These rows confirmed naive_bayes too, so a choice among their sealed scores is luck again." in told[1]
    [ours] = [each for each in trial.store.all() if (each.task, each.architecture) == ("reviews_sealed", "nbsvm")]
    ours.data["test"] = "0" * 64
    assert trial._also_confirmed(ours) == [], "changed rows confirmed nothing yet"


def test_what_there_is_no_time_for_is_named(own, tmp_path, monkeypatch):
    """A tool that stops for hours in one model, or drops it, is of no use. One that has no model in
    the end is of less: what is in front is confirmed and handed over, though it takes longer."""
    now, whole = [0.0], local.run

    def slow(*arguments, **options):
        now[0] += 195.0
        return whole(*arguments, **options)

    monkeypatch.setattr(local, "run", slow)
    monkeypatch.setattr("harness.model_selection.trial.default_workers", lambda threads, devices: 1)
    trial = Trial(own(reviews(200)), tmp_path / "results", 200.0, CHEAP, clock=lambda: now[0])
    trial.run(lambda ended: None)
    assert [each.entry.id for each in trial.tried if not each.is_floor] == ["naive_bayes"]
    assert re.fullmatch(r"no time: .*\d+ s were left for one", trial.left_out["delta_tfidf"])
    assert now[0] > 200.0 and trial.handed_over is not None and trial.saw == 200


@pytest.mark.parametrize(
    ("rows", "refit", "best", "seconds", "allowed"),
    [
        (1000, True, None, 0.0, 90 / (1 + 1700 / 525)),  # a training, then one on 700 rows and one on 1,000
        (1000, False, None, 0.0, 90 / (1 + 700 / 525)),
        (200, True, None, 0.0, 90 / (1 + 340 / 140)),
        (200, False, None, 0.0, 90.0),  # nothing is left to do
        (1000, True, "dan", 2.0, 90 / (1 + 1700 / 525)),
        (1000, True, "dan", 22.0, 90 - 22 * 1700 / 525),
        (1000, True, "tfidf_svm", 14.0, 90 - 14 * 2700 / 525),  # which chooses its strength again
        (1000, False, "tfidf_svm", 10.0, 90 / (1 + 700 / 525)),
        (1000, True, "dan", 60.0, 0.0),
    ],
)
def test_time_for_the_last_trainings_is_kept_free(own, tmp_path, monkeypatch, rows, refit, best, seconds, allowed):
    """The choice fell on one that had taken 15 s, with 14 s left, and nothing was handed over. Of
    those to come, and of the one in front."""
    trial = Trial(own(reviews(rows)), tmp_path / "results", 100.0, CHEAP, refit=refit, clock=lambda: 0.0)
    if rows == 200:  # five parts, which lot makes about equal
        trial.slices = replace(trial.slices, train=140, train_last=140)
    if best is not None:
        trial.tried = [SimpleNamespace(seconds=seconds, entry=registry.entry("architectures", best))]
        recommended = SimpleNamespace(tried=trial.tried[0])
        monkeypatch.setattr(Trial, "choice", SimpleNamespace(recommended=recommended, leading=()))
    assert trial._allowed(slots=5) == pytest.approx(allowed)


def leading(*seconds: float) -> SimpleNamespace:
    """A choice whose architectures in front took so many seconds, the best first."""
    rows = [
        SimpleNamespace(
            tried=SimpleNamespace(
                seconds=each, latency_ms=each, size_mib=None, entry=registry.entry("architectures", id)
            )
        )
        for id, each in zip(("naive_bayes", "delta_tfidf", "nbsvm"), seconds, strict=False)
    ]
    return SimpleNamespace(leading=rows, recommended=rows[0])


@pytest.mark.parametrize(
    ("seconds", "wish", "compared", "cost"),
    [
        ((2.0, 4.0, 6.0), Wish(), 3, 3 * 12 / 2),
        ((2.0, 15.0, 6.0), Wish(), 2, 3 * 8 / 2),  # with the second it would be more than a quarter of 100 s
        ((2.0, 15.0, 16.0), Wish(), 0, 0.0),  # one alone is compared with nothing
        ((17.0, 1.0, 1.0), Wish(), 0, 0.0),  # nor is the best, so that the others would take its place
        ((2.0, 4.0, 6.0), Wish(Preference.cheapest), 0, 0.0),
        ((2.0, 4.0, 6.0), Wish(latency_ms=5.0), 2, 3 * 6 / 2),
    ],
)
def test_those_in_front_that_are_cheap_enough_are_compared_once_more(
    own, tmp_path, monkeypatch, seconds, wish, compared, cost
):
    """And their time is kept free beforehand, like that of the last trainings."""
    trial = Trial(own(reviews(1000)), tmp_path / "results", 100.0, CHEAP, wish=wish, clock=lambda: 0.0)
    monkeypatch.setattr(Trial, "choice", leading(*seconds))
    found, expected = trial._finalists(slots=2)
    assert (len(found), expected) == (compared, pytest.approx(cost))
    trial.tried = [each.tried for each in trial.choice.leading]
    free = trial._last_trainings(seconds[0], trial.tried[0].entry) + cost
    assert trial._allowed(slots=2) == pytest.approx(max(0, min(90 / (1 + trial._last_trainings(1.0)), 90 - free)))


def test_what_all_rows_say_is_recommended(own, tmp_path):
    """The choice by a quarter of the rows is luck where many are alike."""
    trial = Trial(own(reviews(1000)), tmp_path / "results", 300.0, "naive_bayes,delta_tfidf,nbsvm", clock=lambda: 0.0)
    trial.run(lambda ended: None)
    finals = trial.choice.finals
    assert len(finals) > 1 and {len(each.tried.records) for each in finals} == {4}
    outcomes = [trial.store.load_outcomes(record) for record in finals[0].tried.records]
    assert sum(len(each.units) for each in outcomes) == 700, "all rows that are neither sealed nor end a training"
    assert trial.choice.recommended.tried.entry.id == finals[0].tried.entry.id == trial.handed_over.architecture
    assert [each.score for each in finals] == sorted((each.score for each in finals), reverse=True)
    sealed = [record for record in trial.store.all() if record.task == "reviews_sealed"]
    assert len(sealed) == 1, "the sealed rows are for the recommended one alone"
    assert f"so that more rows compare them: {finals[0].tried.entry.id}" in " ".join(sentences(trial))


@pytest.mark.parametrize(("tried", "lacking"), [(CHEAP, 1), ("naive_bayes,delta_tfidf,nbsvm", 0)])
def test_a_comparison_that_fails_changes_nothing(own, tmp_path, monkeypatch, tried, lacking):
    """A half of the scores would compare an architecture on other rows than the next; and where the
    best so far has none, the others would be compared for its place."""
    trial = Trial(own(reviews(1000)), tmp_path / "results", 300.0, tried, clock=lambda: 0.0)
    whole = trial._records

    def records(ids, files, timeout, **options):
        found, heard = whole(ids, files, timeout, **options)
        if files == trial.slices.again:
            found = {key: record for key, record in found.items() if key != (ids[lacking], "reviews_again_3")}
        return found, heard

    monkeypatch.setattr(trial, "_records", records)
    trial.run(lambda ended: None)
    assert trial.finals == () and trial.choice.finals == ()
    assert trial.handed_over.architecture == trial.choice.leading[0].tried.entry.id


@pytest.mark.parametrize(
    ("now", "seconds", "limit"), [(0.0, 1.0, 100.0), (99.0, 0.25, 5.0), (60.0, 20.0, 2 * 20 * 2700 / 525)]
)
def test_the_last_trainings_may_end_late(own, tmp_path, monkeypatch, now, seconds, limit):
    trial = Trial(own(reviews(1000)), tmp_path / "results", 100.0, CHEAP, clock=lambda: now)
    entry = registry.entry("architectures", "naive_bayes")
    recommended = SimpleNamespace(tried=SimpleNamespace(seconds=seconds, entry=entry))
    monkeypatch.setattr(Trial, "choice", SimpleNamespace(recommended=recommended))
    asked = []
    monkeypatch.setattr(trial, "_records", lambda ids, files, timeout, **options: (asked.append(timeout), ({}, []))[1])
    trial._confirm()
    assert asked == [pytest.approx(limit)]


def test_an_expensive_one_is_left_out_by_what_the_cheaper_ones_took(own, tmp_path):
    trial = Trial(own(reviews(200)), tmp_path / "results", 100.0, CHEAP, clock=lambda: 0.0)
    trial.run(lambda ended: None)
    trial._work = [(1.0, 11.0), (2.0, 21.0)]
    entry = registry.entry("architectures", "dan")
    assert trial._no_time(Candidate(entry, 0.1), slots=5) == ""
    reason = trial._no_time(Candidate(entry, 20.0), slots=5)
    assert re.fullmatch(r"no time: about \d+ s for a training, and 26 s were left for one", reason)


def test_the_time_of_a_training_is_foretold_by_those_of_like_cost(own, tmp_path):
    """Now that a dear one may come before a cheap one, the last that ended is no measure."""
    trial = Trial(own(reviews(200)), tmp_path / "results", 100.0, CHEAP, clock=lambda: 0.0)
    trial.run(lambda ended: None)
    start = min(each.seconds for each in trial.tried)
    near, far = [(9.0, start + 9.0), (10.0, start + 10.0), (11.0, start + 11.0)], [(900.0, start + 9000.0)] * 3
    for trial._work in (near + far, far + near):
        assert trial._expected(Candidate(registry.entry("architectures", "dan"), 12.0)) == pytest.approx(start + 12.0)


def test_what_is_clearly_behind_is_stopped_told_and_comes_last_the_next_time(own, tmp_path, monkeypatch):
    """Nothing is silently absent, and the same command goes on where it was."""
    monkeypatch.setattr(Trial, "_rival", 1.0)
    monkeypatch.setattr("harness.model_selection.trial.default_workers", lambda threads, devices: 1)
    task = own(reviews(1000))
    trial = Trial(task, tmp_path / "results", 1e4, "dan,naive_bayes,nbsvm", clock=lambda: 0.0)
    trial.waiting = [each for each in trial.waiting if each.entry.id != "nbsvm"]
    trial.run(lambda ended: None)
    assert "dan" not in trial.left_out and "on dev after 4 of 12 epochs" in trial.behind["dan"]
    page = write_page(trial).read_text()
    assert "Stopped early, since they were clearly behind: 1" in page and trial.behind["dan"] in page
    again = Trial(task, tmp_path / "results", 1e4, "dan,naive_bayes,nbsvm", clock=lambda: 0.0)
    assert [each.entry.id for each in again.waiting][-2:] == ["nbsvm", "dan"]


def test_parts_of_a_cross_validation_have_no_rival(own, tmp_path):
    """A part of a hundred rows tells little, and the best score of another part nothing."""
    small = Trial(own(reviews(200)), tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    small.run(lambda ended: None)
    assert small.tried and small._rival is None
    large = Trial(own(reviews(1000)), tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    assert large._rival is None
    large.run(lambda ended: None)
    assert large._rival == max(each.records[0].scores["dev"]["accuracy"] for each in large.tried)


def test_time_that_ends_while_rows_are_read_ends_no_trial(own, tmp_path, monkeypatch):
    """On a machine with much other work reading takes longer than what is left in the end."""
    trial = Trial(own(reviews(200)), tmp_path / "results", 1e4, CHEAP, clock=lambda: 0.0)
    whole = trial._records

    def late(ids, *rest, **options):
        if "delta_tfidf" in ids:
            raise DataError("reading its data was still going on after 5 s")
        return whole(ids, *rest, **options)

    monkeypatch.setattr(trial, "_records", late)
    monkeypatch.setattr("harness.model_selection.trial.default_workers", lambda threads, devices: 1)
    trial.run(lambda ended: None)
    assert trial.left_out["delta_tfidf"] == "reading its data was still going on after 5 s"
    assert trial.choice.recommended is not None


def test_ctrl_c_ends_with_what_there_is(own, tmp_path, monkeypatch):
    trial = Trial(own(reviews(200)), tmp_path / "results", 1e4, CHEAP, clock=lambda: 0.0)
    whole = local.run

    def stopped_later(cells, *rest, **options):
        return whole(cells[:0] if cells[0].architecture == "delta_tfidf" else cells, *rest, **options)

    monkeypatch.setattr(local, "run", stopped_later)
    monkeypatch.setattr("harness.model_selection.trial.default_workers", lambda threads, devices: 1)
    trial.run(lambda ended: None)
    assert trial.stopped and trial.left_out["delta_tfidf"] == "stopped"
    assert {each.entry.id for each in trial.tried} >= {"naive_bayes", "floor_majority"}


def test_a_cell_that_fails_is_named_with_its_reason(own, tmp_path, monkeypatch):
    from harness.running import worker

    fit = worker._fit_estimator

    def fails(cell, *rest):
        if cell.architecture == "delta_tfidf":
            raise ValueError("no such luck")
        return fit(cell, *rest)

    monkeypatch.setattr(worker, "_fit_estimator", fails)
    trial = Trial(own(reviews(200)), tmp_path / "results", 1e4, CHEAP, clock=lambda: 0.0)
    trial.run(lambda ended: None)
    assert trial.left_out["delta_tfidf"] == "failed: ValueError: no such luck"
    assert any("Recommended: naive_bayes" in line for line in sentences(trial))


def test_fewer_than_100_rows_give_a_table_and_no_recommendation(own, tmp_path):
    trial = Trial(own(reviews(60)), tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    trial.run(lambda ended: None)
    assert trial.choice.recommended is None
    assert sentences(trial)[-1].startswith("Nothing is recommended: ")


def test_rows_that_cannot_be_read_are_a_message_and_exit_code_2(command):
    Path("reviews.csv").write_text("review,stars\n" + "good,pos\n" * 200)
    code, _, err = command("reviews.csv", "--label", "stars", "--text", "review")
    assert code == 2 and "stars" in err


def test_records_are_those_of_any_run(own, tmp_path):
    """Pages, `results()` and `compare` read them."""
    task = own(reviews(200), HEAD + 'id = "review"\n')
    trial = Trial(task, tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)
    trial.run(lambda ended: None)
    record = trial.tried[-1].records[0]
    assert (record.tier, record.protocol, record.budget["name"]) == ("own", "equal", "full")
    assert str(tmp_path) not in json.dumps(record.to_json())


def test_files_whose_names_an_id_cannot_have_are_tried_beside_each_other(command):
    """Both were the task `task`: the second one replaced page and model of the first."""
    for name in ("отзывы", "новости"):
        Path(f"{name}.csv").write_text(reviews(120), encoding="utf-8")
        code, out, _ = command(f"{name}.csv", "--minutes", "5", "-a", "naive_bayes")
        assert code == 0, out
    assert len(list(Path("results/try").glob("task_*/index.html"))) == 2


def test_a_folder_with_the_trial_of_another_file_is_left_as_it_is(command, monkeypatch):
    """Two files of one name, from two folders with one --results."""
    Path("a").mkdir()
    Path("reviews.csv").write_text(reviews(120))
    assert command("reviews.csv", "--minutes", "5", "-a", "naive_bayes")[0] == 0
    Path("a/reviews.csv").write_text(reviews(150))
    Path("a/reviews.toml").write_text(HEAD)
    monkeypatch.setattr("harness.registry.finding._plugins", [])  # another call is another process
    code, _, err = command("a/reviews.toml", "--minutes", "5", "-a", "naive_bayes")
    assert code == 2 and "results/try/reviews holds the trial of" in err and "say another id =" in err


def test_a_limit_is_told_in_the_words_of_who_gave_minutes(own, tmp_path, monkeypatch):
    """`try` has no --timeout, and the user no task of the name of a fold."""
    trial = Trial(own(reviews(200)), tmp_path / "results", 1e4, "naive_bayes", clock=lambda: 0.0)

    def late(*_, **__):
        raise DataError("reviews_fold_1: reading its data was still going on after 7.8 s (--timeout)")

    monkeypatch.setattr(trial, "_records", late)
    with pytest.raises(DataError, match=r"reviews.toml: reading its 200 rows takes longer than its share of --minutes"):
        trial.run(lambda ended: None)
