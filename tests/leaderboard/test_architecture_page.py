"""The page of one architecture: what it says is what a reader reports of it and runs again."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer.main

from harness import cli, registry
from harness.leaderboard.pages.architecture_facts import docstring, paragraphs, source_in_words
from harness.leaderboard.pages.error_analysis import mean_slices
from harness.leaderboard.published import Published
from harness.leaderboard.repeat import KEPT, repeat
from harness.records.outcomes import Outcomes
from harness.settings import Recipe
from tests.support.made_pages import architecture, architecture_pages, board_of, html_of, task
from tests.support.made_records import judged, record

EVIL = "<img src=x onerror=alert(1)></script>\u2028"
TASKS = [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer")]
SOURCE = '''
import a_library_that_is_not_there

class Other:
    """Not this."""

class Model:
    """Averages :class:`~torch.Tensor` rows.

    Then one layer: ``W x``.
    """
'''


def page_of(store, id="dan", entries=(architecture("dan", "Deep averaging"),), *published):
    pages = {page.file: page for page in architecture_pages(board_of(store, entries, TASKS, *published))}
    return pages[f"architecture-{id}.html"]


def cells(page, table: str, row: str) -> dict[str, str]:
    """A row of one of the page's tables: the lines of each cell, by column."""
    (found,) = [each for each in page.parts["tables"] if each.id == table]
    (line,) = [each for block in found.blocks for each in block.rows if each.name == row]
    return dict(zip(found.columns[1:], (" / ".join(part.text for part in cell) for cell in line.cells), strict=True))


def outcomes(score: float, slices, confusion=None) -> Outcomes:
    return Outcomes("accuracy", ["u"], np.array([score]), np.array([1.0]), slices, confusion)


def add_outcomes(store, made, slices, confusion=None) -> None:
    ids, _ = store.load_predictions(made)
    store.save_outcomes(
        made, made.predictions, ids, Outcomes("accuracy", ids, np.ones(len(ids)), np.ones(len(ids)), slices, confusion)
    )


def test_a_result_has_its_score_interval_place_and_every_seed(store):
    """A mean without its seeds hides the bad one; a place without the number of rivals says
    nothing."""
    judged(store, "1" * 64 + "0" * 36, seed=0)
    judged(store, "1" * 66 + "0" * 34, seed=1)
    judged(store, "1" * 99 + "0", architecture="bilstm")
    row = cells(page_of(store), "results-local-equal-full", "SST-2")
    assert row["score"] == "65.0 ± 1.4 (2)"
    assert row["by seed"] == "0: 64.0, 1: 66.0"
    assert row["place"] == "2 of 2"
    assert row["training examples"] == "1,000"
    low, high = map(float, row["95 % interval"].split(" to "))
    assert 50 < low < 65 < high < 80
    assert cells(page_of(store, "bilstm"), "results-local-equal-full", "SST-2")["place"] == "1 of 2"


def test_who_shares_the_first_place_is_told_so(store):
    judged(store, "1" * 60 + "0" * 40)
    judged(store, "1" * 61 + "0" * 39, architecture="bilstm")
    assert cells(page_of(store), "results-local-equal-full", "SST-2")["place"] == "1 of 2, shares the first"


def test_without_saved_predictions_the_interval_is_a_dash(store):
    """The place is that of the task's page, which needs scores alone."""
    store.write(record(score=0.8))
    page = page_of(store)
    row = cells(page, "results-local-equal-full", "SST-2")
    assert (row["score"], row["95 % interval"], row["place"]) == ("80.0 (1)", "–", "1 of 1")
    assert not page.parts["errors"]
    assert "Error analysis" not in html_of(page)


def test_a_failed_cell_is_shown_with_its_reason_and_command(store):
    """The reader who wants to know why must not search the log folder first."""
    store.write(record(status="oom", error={"type": "Killed", "message": "12 GiB"}, command="archbench run -a dan"))
    text = html_of(page_of(store))
    assert cells(page_of(store), "results-local-equal-full", "SST-2")["score"] == "oom"
    assert "oom: Killed: 12 GiB" in text
    assert "archbench run -a dan" in text


def test_every_record_has_its_file_settings_and_command(store):
    made = [record(score=0.5, seed=seed, command=f"archbench run --seeds {seed}") for seed in (0, 1)]
    for each in made:
        store.write(each)
    text = html_of(page_of(store))
    for each in made:
        assert f"records/sst2/dan/{each.key}.json" in text
        assert each.command in text
    assert "<dt>hidden</dt><dd>100</dd>" in text


def test_a_record_says_when_and_from_which_code_it_is(store):
    """Twelve commits without a day stood on one page, and no row said which was its own."""
    fields = {"commit": "0123456789abcdef", "started": "2026-11-23T08:00:00+00:00"}
    store.write(record(score=0.5, **fields))
    store.write(record(seed=1, status="oom", error={"type": "Killed", "message": ""}, **fields, dirty=True))
    store.write(record("nse", score=0.5, commit="", started=""))
    text = html_of(page_of(store))
    assert "seed 0, ok, on 2026-11-23, at commit 0123456789ab," in text
    assert "seed 1, oom, on 2026-11-23, at commit 0123456789ab with local changes," in text
    assert "<p>seed 0, ok, <code>" in html_of(page_of(store, "nse"))


def test_a_recipe_and_the_settings_of_an_id_are_words(store):
    """ "lr_schedule=step, betas=None" is what the code says."""
    recipe = Recipe(optimizer="adadelta", rho=0.95, lr_schedule="step", decay_exempt=("biases", "vectors"))
    entry = architecture("dan", "Deep averaging", recipe=recipe, hyperparameters={"channels": "random", "depth": 9})
    store.write(record(score=0.5))
    facts = dict(page_of(store, "dan", (entry,)).parts["facts"])
    assert facts["settings of this id"] == "channels random, depth 9"
    assert facts["training in protocol paper"] == (
        "optimizer adadelta, learning rate 0.001, batches of 64, 20 passes, patience of 5 passes, schedule step of the"
        " learning rate, word vectors of 300 dimensions, rho 0.95, no weight decay of biases and vectors"
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("M2.3[50] T1 T2", "Minaee et al. 2020: 2.3[50] T1 T2"),
        ("X4.5.3 eq.4.77", "Xiao & Zhu: 4.5.3 eq.4.77"),
        ("Z16.1.1 R25.3 M-A.4", "Zhang & Teng 2021: 16.1.1; Russell & Norvig 2020: 25.3; Minaee et al. 2020: A.4"),
        ("my thesis, ch. 3", "my thesis, ch. 3"),
        ("Miller 1990", "Miller 1990"),
        ("", ""),
    ],
)
def test_a_source_names_its_text(source, words):
    """ "X4.2.4 M-T5[209]" was on every page, and no page said what X and M are."""
    assert source_in_words(source) == words


def test_the_sources_of_all_architectures_are_words():
    """A letter of another text would stand there unexplained."""
    entries = registry.entries("architectures").values()
    sources = {word for entry in entries for word in source_in_words(entry.source).replace(";", "").split()}
    assert not [word for word in sources if re.match(r"[A-Z]-?\d", word) and not re.match(r"T\d", word)]


def test_a_row_has_one_command_of_its_own(store):
    """The command of the whole grid, with four architectures and another machine's workers, repeats
    no row."""
    grid = (
        "archbench run --tier local --data-dir $ARCHBENCH_DATA --workers 2 --mlflow none -a 'dan,b*' -t sst2,fsdd"
        " --home --seeds 0,1 --protocol equal -o 'dan.note=a b' --budget=small --cpu-limit 780"
    )
    made = [record(score=0.5, seed=seed, command=grid, commit="c" * 40) for seed in (0, 1)]
    assert repeat(made) == [
        f"git checkout {'c' * 40}",
        'archbench run -a dan -t sst2 --seeds 0,1 --tier local --data-dir "$ARCHBENCH_DATA" --protocol equal'
        " -o 'dan.note=a b' --budget=small --cpu-limit 780",
    ]
    for each in made:
        store.write(each)
    (rerun,) = page_of(store).parts["reruns"]
    assert rerun.commands == repeat(made)
    assert repeat([record(command="")]) == []


def test_seeds_are_repeated_with_the_code_of_their_own_commit(store):
    """A stranger repeated two of three seeds with other code than made them. Nobody has the code of
    a seed with local changes."""
    states = [("a" * 40, False), ("b" * 40, False), ("a" * 40, False), ("b" * 40, True)]
    for seed, (commit, dirty) in enumerate(states):
        store.write(record(score=0.5, seed=seed, command="archbench run", commit=commit, dirty=dirty))
    store.write(record(seed=9, status="failed", command="archbench run", commit="f" * 40))
    (rerun,) = page_of(store).parts["reruns"]
    run = "archbench run -a dan -t sst2 --seeds"
    assert rerun.commands == [
        f"{run} 3",
        f"git checkout {'a' * 40}",
        f"{run} 0,2",
        f"git checkout {'b' * 40}",
        f"{run} 1",
    ]


@pytest.mark.parametrize("given", ["--parent weights={}", "--parent=weights={}"])
def test_seeds_with_parents_of_their_own_have_commands_of_their_own(given):
    """Seed 1 of the parent of seed 0 is another cell, with another score."""
    command = f"archbench run -a dan -t sst2 --seeds {{}} {given}"
    made = [record(seed=seed, command=command.format(seed, key)) for seed, key in enumerate(["aa", "bb", "bb"])]
    assert repeat(made) == [command.format("0", "aa"), command.format("1,2", "bb")]


def test_settings_of_other_architectures_are_left_out():
    """The command would end at once: nothing in it takes them."""
    own = ["-o", "vat.epsilon=1.0", "-olstm.hidden=8", "--override=d*.x=1", "-o", "tree_lstm.hidden=5"]
    command = shlex.join(["archbench", "run", "-a", "*", *own, "-o", "gru.hidden=4", "--override=bert.layers=2"])
    parents = {"teacher": {"architecture": "tree_lstm", "task": "sst2", "key": "k" * 16, "row": "k" * 16}}
    settings = {"wraps": "lstm", "parents": parents}
    (found,) = repeat([record("vat", hyperparameters=settings, command=command)])
    kept = "-o vat.epsilon=1.0 -o lstm.hidden=8 -o tree_lstm.hidden=5"
    assert found == f"archbench run -a vat -t sst2 --seeds 0 {kept}"
    named = "archbench run -a dan --vectors 'my -ovectors.txt'"
    assert repeat([record("dan", command=named)]) == [
        "archbench run -a dan -t sst2 --seeds 0 --vectors 'my -ovectors.txt'"
    ]


def test_every_option_of_a_run_is_kept_or_left_out_on_purpose():
    """A new option that says what a cell is would be missing in the command that repeats it."""
    group = typer.main.get_command(cli.app)
    command = group.get_command(group.make_context("archbench", [], resilient_parsing=True), "run")
    options = {name for parameter in command.params for name in parameter.opts}
    left_out = {"--architectures", "-a", "--tasks", "-t", "--seeds", "--home", "--shard", "--retry-failed", "--changed"}
    left_out |= {
        "--keep",
        "--refit",
        "--dry-run",
        "--engine",
        "--workers",
        "--timeout",
        "--memory-limit",
        "--speed-alone",
    }
    left_out |= {"--results", "--mlflow"}
    assert options == KEPT | left_out


def test_a_page_says_how_far_it_was_verified(store):
    """Who reads a score wants to know whether the model is what its name says."""
    (store.folder / "default_size.csv").write_text(
        "architecture,task,metric,word,floor,dev,test,epochs,seconds,minutes,note\n"
        "bilstm,sst2,accuracy,chance,0.5,0.5,0.51,3,9,2,\n"
        "bilstm,snli,accuracy,learns,0.3,0.5,0.6,3,9,2,\n",
        encoding="utf-8",
    )
    store.write(record("bilstm", score=0.5, protocol="paper", environment={"cpu": "A"}))
    store.write(record("bilstm", score=0.5, seed=1, environment={"cpu": "B"}))
    store.write(record("dan", score=0.5))
    ours = registry.entry("architectures", "bilstm").file
    entries = [architecture("bilstm", "BiLSTM", file=ours), architecture("dan", "DAN", file=ours.with_name("dan2.py"))]
    test, size, other_size, recipe, cells = page_of(store, "bilstm", entries).parts["verified"]
    number = r"(1 deliberate error is|([2-9]|\d\d+) deliberate errors are)"
    assert re.search(rf"tests/architectures/test_bilstm\.py; {number} listed", test)
    assert size == "At its default size it did not learn its small generated task (SST-2, accuracy 0.51, floor 0.5)."
    assert other_size == "At its default size it learns its small generated task (SNLI, accuracy 0.6, floor 0.3)."
    assert recipe == "The recipe of its paper (protocol paper): run on SST-2."
    assert cells == "Cells that ended well: 2, on 2 kinds of processor."
    size, recipe, _ = page_of(store, "dan", entries).parts["verified"]
    assert "was not tried yet" in size and "never run to its end" in recipe


def test_a_copy_of_ours_does_not_have_our_test(store):
    """An author copies a file of ours first and changes it; nobody ran our test on that."""
    store.write(record("my_lstm", score=0.5))
    for file, tested in ((registry.entry("architectures", "lstm").file, True), (Path("my models/lstm.py"), False)):
        told = " ".join(page_of(store, "my_lstm", [architecture("my_lstm", "My LSTM", file=file)]).parts["verified"])
        assert ("Its mechanism has a test" in told) == tested


def test_a_page_says_what_it_knows_of_the_architecture(store, tmp_path):
    """Paper, mechanism of the catalogue, class docstring (read without importing the file) and
    deviations."""
    file = tmp_path / "dan.py"
    file.write_text(SOURCE, encoding="utf-8")
    (tmp_path / "catalogue.csv").write_text(
        "id,name,year,paper,source,family,kind,wave,defining_mechanism,home,home_reason\ndan,D,2015,P,S,feedforward,"
        "text,1,word dropout,sst2,in the paper\n",
        encoding="utf-8",
    )
    store.write(record(score=0.5))
    text = html_of(
        page_of(
            store, "dan", (architecture("dan", "Deep averaging", file=file, deviations=("no pretrained vectors",)),)
        )
    )
    for known in (
        "Somebody 2015",
        "<dd>dan.py</dd>",
        "word dropout",
        "Averages <code>torch.Tensor</code> rows.",
        "no pretrained vectors",
    ):
        assert known in text
    assert "<code>W x</code>" in text
    assert "Not this" not in text
    assert str(tmp_path) not in text, "a path of one machine would change the bytes on another"


LEARNT = {"architecture": "bert", "task": "mix", "key": "a" * 16, "row": "b" * 16}


@pytest.mark.parametrize(
    ("given", "embedding", "is_noted"),
    [
        ({"vectors": None}, 500, True),
        ({"vectors": {"file": "glove.txt", "dims": 50}}, 500, False),
        ({"vectors": None, "parents": {"weights": LEARNT}}, 500, False),
        ({"vectors": None, "parents": {"vectors": LEARNT}}, 500, False),
        ({"vectors": None, "parents": {"teacher": LEARNT}}, 500, True),
        ({"vectors": None}, 0, False),
    ],
    ids=["random", "given", "learnt with all weights", "learnt", "a teacher gives none", "no words"],
)
def test_a_result_with_random_word_vectors_names_those_of_the_paper(store, given, embedding, is_noted):
    """A record made with the paper's vectors must not be said to lack them, nor one whose parent
    learnt them, nor one on speech."""
    store.write(record(score=0.5, hyperparameters=given, parameters={"embedding": embedding}))
    text = "Word vectors start at random; the paper starts from word2vec."
    entry = architecture("dan", "Deep averaging", vectors_of_paper="word2vec")
    assert (text in html_of(page_of(store, "dan", (entry,)))) == is_noted
    assert "Word vectors start at random" not in html_of(page_of(store))


def test_a_file_that_cannot_be_read_leaves_the_docstring_out(tmp_path):
    broken = tmp_path / "x.py"
    broken.write_text("class Model(", encoding="utf-8")
    assert docstring(architecture("x", "X", file=broken)) == ""
    assert docstring(architecture("x", "X", file=tmp_path / "nowhere.py")) == ""
    assert paragraphs("one :class:`~harness.a`\n\n\ntwo") == ["one ``harness.a``", "two"]


def test_only_architectures_with_records_have_a_page_also_unregistered_ones(store):
    """Results of a plugin must not vanish on a machine without it; an empty page would be a dead
    end."""
    store.write(record("theirs", score=0.5))
    pages = list(architecture_pages(board_of(store, [architecture("dan", "Deep averaging")], TASKS)))
    assert [page.file for page in pages] == ["architecture-theirs.html"]
    text = html_of(pages[0])
    assert "<h1>theirs</h1>" in text
    assert "only its records are known here" in text
    assert "Mechanism" not in text
    assert "50.0 (1)" in text


def test_a_page_says_how_far_its_scores_are_from_others_and_why(store):
    """The reason stood at the end of a page of 37,000 pixels, by id."""
    (store.folder / "gaps.csv").write_text(
        "task,architecture,reported,by,with,why\nsst2,dan,86.0,paper,GloVe,ours has a tenth of the phrases\n",
        encoding="utf-8",
    )
    store.write(record(score=0.8, counts={"train": 500, "test": 100}))
    store.write(record("bilstm", score=0.7))
    entries = [architecture("dan", "D"), architecture("bilstm", "B")]
    row = cells(page_of(store, "dan", entries), "gaps", "SST-2 accuracy")
    assert (row["published"], row["from"], row["difference"]) == ("86.0", "paper (GloVe)", "−6.0")
    assert row["share of the data"] == "50 % (500 of 1,000)" and "a tenth of the phrases" in row["reason"]
    assert not any(table.id == "gaps" for table in page_of(store, "bilstm", entries).parts["tables"])


def test_published_values_stand_beside_ours_with_the_difference(store):
    value = Published("1", "dan", "DAN [29]", "sst2", "accuracy", "83.2", False, ("from a figure",), "dan")
    store.write(record(score=0.80))
    store.write(record(score=0.99, tier="mini"))
    row = cells(page_of(store, "dan", (architecture("dan", "D"),), value), "published", "SST-2 accuracy")
    assert (row["published"], row["method as printed"]) == ("83.2", "DAN [29]")
    ours = [text for column, text in row.items() if column.startswith("ours")]
    assert ours == ["80.0 (1) / published 83.2, difference −3.2"], (
        "the generated corpus is not what the survey's values are of"
    )
    assert "from a figure" in html_of(page_of(store, "dan", (architecture("dan", "D"),), value))


def test_slices_are_means_over_seeds_and_unknown_scores_stay_unknown():
    seeds = [
        outcomes(1, {"class": [("a", 10, 0.5), ("b", 4, None)]}),
        outcomes(1, {"class": [("a", 10, 1.0), ("b", 4, None), ("c", 2, 0.5)]}),
    ]
    assert mean_slices(seeds, "class") == [("a", 10, 0.75), ("b", 4, None), ("c", 2, 0.5)]


def test_error_tables_show_parts_units_and_scores(store):
    made = judged(store, "11")
    add_outcomes(store, made, {"class": [("pos", 1200, 0.75), ("neg", 3, None)]})
    text = re.sub(r"\s*<span.*?</span>", "", html_of(page_of(store)))
    assert '<tr><th scope="row">pos</th><td>1,200</td><td>75.0</td>' in text
    assert '<tr><th scope="row">neg</th><td>3</td><td>–</td>' in text
    assert "One seed." in text


def test_the_confusion_matrix_is_the_sum_over_seeds(store):
    """Rows are the actual classes; a class that one seed alone predicted widens the table for
    both."""
    first, second = judged(store, "11", seed=0), judged(store, "11", seed=1)
    add_outcomes(store, first, {}, (["a", "b"], [[3, 1], [0, 4]]))
    add_outcomes(store, second, {}, (["a", "b", "c"], [[2, 0, 2], [1, 3, 0], [0, 0, 0]]))
    (errors,) = page_of(store).parts["errors"]
    assert errors.confusion.title == "Sum over 2 seeds"
    assert errors.confusion.labels == ["a", "b", "c"]
    assert [[n for n, _ in row] for row in errors.confusion.rows] == [[5, 1, 2], [1, 7, 0], [0, 0, 0]]
    assert errors.confusion.rows[0][0][1] == "0.625"


def test_lengths_are_drawn_in_their_order_and_thin_parts_are_not(store):
    """A point of three sentences between two of a thousand would read as a trend."""
    made = judged(store, "11")
    parts = [("6 to 10", 200, 0.7), ("up to 5", 100, 0.8), ("11 to 20", 3, 0.0), ("more than 40", 50, 0.6)]
    add_outcomes(store, made, {"length in words": parts})
    (plot,) = page_of(store).parts["plots"]
    (line,) = plot.data
    assert dict(zip(line["x"], line["y"], strict=True)) == {"6 to 10": 70.0, "up to 5": 80.0, "more than 40": 60.0}
    assert plot.layout["xaxis"]["categoryarray"] == ["up to 5", "6 to 10", "more than 40"]
    assert plot.layout["xaxis"]["title"]["text"] == "length, words"
    assert "%" in plot.layout["yaxis"]["title"]["text"]


def test_texts_cannot_become_markup(store, tmp_path):
    """Plugins, records and labels of a corpus are other people's texts."""
    (tmp_path / "catalogue.csv").write_text(
        "id,name,year,paper,source,family,kind,wave,defining_mechanism,home,home_reason\n"
        f'dan,D,2015,P,S,f,text,1,"{EVIL}","{EVIL}","{EVIL}"\n',
        encoding="utf-8",
    )
    made = judged(store, "11", command=EVIL, hyperparameters={"inner": EVIL})
    judged(store, "11", hyperparameters={"inner": "plain"})
    add_outcomes(
        store, made, {"length in words": [(EVIL, 30, 0.5), ("b", 30, 0.5)], EVIL: [("x", 1, 1.0)]}, ([EVIL], [[2]])
    )
    entry = architecture("dan", EVIL, paper=EVIL, deviations=(EVIL,), hyperparameters={"a": EVIL}, source=EVIL)
    page = page_of(
        store, "dan", (entry,), Published("1", "dan", EVIL, "sst2", "accuracy", "80.0", False, (EVIL,), "dan")
    )
    text = html_of(page)
    assert "<img" not in text
    assert text.count("&lt;img src=x") > 8
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        assert "<img" not in json.dumps(json.loads(block)), "plotly reads markup in the texts of a plot"
