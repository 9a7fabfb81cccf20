"""The grid: which cells a command line means, what is in their hyperparameters, and which of them
are still to run."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from harness import kinds, registry
from harness.errors import UsageError
from harness.records import Record, Store
from harness.running import fitting, grid
from harness.running.pending import pending, skipped
from harness.settings import Budget
from tests.support.fake_plugins import PLUGIN
from tests.support.sessions import session


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    file = tmp_path / "toys.py"
    file.write_text(PLUGIN)
    registry.add_plugin(file)
    return file


def plan(architectures: str = "toy_text", tasks: str = "toy_topic", **options):
    options = {"tier": "mini", "protocol": "equal", "seeds": [0]} | options
    return grid.plan(registry.match("architectures", architectures), registry.match("tasks", tasks), **options)


def only(*arguments, **options):
    [(cell, reason, _)] = plan(*arguments, **options)
    assert reason is None
    return cell


def test_hyperparameters_are_the_constructors_keyword_defaults():
    """What the harness gives (width, classes, seed) is none; everything is as JSON will hold it."""
    found = only().hyperparameters
    own = {k: v for k, v in found.items() if k not in grid.HARNESS_SECTIONS}
    assert own == {"hidden": 300, "dropout": 0.5, "windows": [3, 4], "mode": "max", "deep": False, "clip": None}
    assert {k for k in only("toy_fit").hyperparameters if k not in grid.HARNESS_SECTIONS} == {"alpha"}
    assert (found["limits"], found["vectors"]) == ({"max_train": None, "max_epochs": None}, None)


def test_a_number_of_labels_makes_as_many_steps_as_they_need():
    """Ten passes over a hundred texts are thirty steps, in which nothing is learnt."""
    cell = only("toy_seq", labels=10)
    assert cell.hyperparameters["limits"] == {"max_train": None, "max_epochs": None, "labels": 10}
    assert cell.hyperparameters["training"]["min_steps"] == 500 and cell.budget["name"] == "10_labels"
    assert cell.budget["examples"] == 10 and cell.key != only("toy_seq").key
    with pytest.raises(UsageError, match="--labels 10 with --max-train or --max-epochs"):
        only("toy_seq", labels=10, max_train=5)


@pytest.mark.parametrize(("labels", "budget"), [(652, "full"), (100_000, "full"), (1000, "small")])
def test_more_labels_than_rows_are_refused(tmp_path, labels, budget):
    """Pages would have named a hundred thousand labels that no training had."""
    whole = {"protocol": "equal", "max_train": None, "max_epochs": None}
    with pytest.raises(UsageError, match=rf"--labels {labels}: sst2 has 651 rows to train on; give no more"):
        session(tmp_path, "avg_vectors", labels=labels, budget=budget, **whole)
    assert session(tmp_path, "avg_vectors", labels=651, **whole).pending.run


@pytest.mark.parametrize(
    ("whole", "labels", "passes", "asked"), [(1, 64, 750, 4), (1, 40_000, 2, 2), (8, 64, 750, 8), (1, 100_000, 1, 1)]
)
def test_dev_is_asked_several_times_in_the_passes_over_few_labels(whole, labels, passes, asked):
    """Else a budget of one pass over all texts goes over 64 hundreds of times before dev is asked
    whether they were too many. With many labels no pass is added."""
    amount = Budget(whole, min_steps=1500, batch_size=32).with_labels(labels)
    assert -(-amount.min_steps // -(-labels // amount.batch_size)) == passes and amount.passes == asked


def test_plain_text_has_no_labels_to_lose():
    """A parent is the same one whatever the labels of its child."""
    options = {"architectures": "skipgram", "tasks": "text_mix", "budget": "small"}
    assert only(**options, labels=10).key == only(**options).key


def test_a_variant_fixes_its_own_and_an_override_goes_above_it():
    assert only("toy_wide").hyperparameters["hidden"] == 999
    assert only("toy_wide", overrides=["toy_wide.hidden=5"]).hyperparameters["hidden"] == 5


def test_the_protocol_fills_the_training_part():
    assert only("toy_seq", protocol="equal").hyperparameters["training"]["epochs"] == 7, "what the task allows"
    assert only("toy_seq", protocol="paper").hyperparameters["training"]["learning_rates"] == [0.25], (
        "the architecture's recipe"
    )
    changed = only("toy_seq", overrides=["toy_seq.training.learning_rates=0.1,0.2", "*.training.clip=None"])
    assert changed.hyperparameters["training"]["learning_rates"] == [0.1, 0.2]
    assert changed.hyperparameters["training"]["clip"] is None


def test_a_cap_and_other_vectors_are_other_cells(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("the 0.1 0.2 0.3\nof 1 2 3\n")
    plain, capped, pretrained = only(), only(max_train=100), only(vectors=file)
    assert len({plain.key, capped.key, pretrained.key}) == 3
    assert pretrained.hyperparameters["vectors"] == {
        "file": "glove.txt",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "dims": 3,
    }
    file.write_text("2 3\nthe 0.1 0.2 0.3\nof 1 2 3\n")
    assert only(vectors=file).hyperparameters["vectors"]["dims"] == 3, "word2vec's first line is counts"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("odd.txt", b""),
        ("odd.txt", b"just words\n"),
        ("odd.txt", b"5 300\nthe 0.1\n"),
        ("odd.txt", b"the\t0.1\t0.2\n"),
        ("odd.txt", b"\xff\xfe\n"),
        ("odd.txt", "3 ²\nthe 0.1\n".encode()),
        ("odd.txt.gz", gzip.compress(b"the 0.1\n" * 999)[:20] + b"\x00\xff" * 40),
    ],
    ids=[
        "empty",
        "no numbers",
        "fewer than announced",
        "tabs between",
        "not UTF-8",
        "a raised digit",
        "broken compression",
    ],
)
def test_a_file_that_holds_no_vectors_is_named(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"--vectors .*odd\.txt"):
        only(vectors=file)


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("hidden=10", 10),
        ("dropout=1", 1.0),
        ("mode=mean", "mean"),
        ("mode=3", "3"),
        ("deep=True", True),
        ("windows=(1,2)", [1, 2]),
        ("clip=0.5", 0.5),
    ],
)
def test_an_override_has_the_type_of_the_default(override, value):
    found = only(overrides=[f"toy_text.{override}"]).hyperparameters[override.partition("=")[0]]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("one", "other"),
    [("clip=5", "clip=5.0"), ("learning_rates=[1]", "learning_rates=1.0,"), ("weight_decay=1", "weight_decay=1.0")],
)
def test_one_training_is_one_cell_however_its_numbers_are_written(one, other):
    """It was trained twice, and seeds given in both ways did not meet in one row."""
    first, second = (only("toy_seq", overrides=[f"toy_seq.training.{each}"]) for each in (one, other))
    assert first.key == second.key


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("toy_text.hiden=10", "toy_text has no hyperparameter hiden; did you mean hidden"),
        ("toy_tex.hidden=10", "no architecture of this run is called 'toy_tex'; did you mean toy_text"),
        ("toy_text.training.epoch=10", "no hyperparameter training.epoch; did you mean epochs"),
        (
            "toy_text.training.lr=0.1",
            "training.lr; rates are a list of those that are compared on dev: -o toy_text.tra",
        ),
        ("toy_text.training.lr=0.1", "-o toy_text.training.learning_rates=[0.1]"),
        ("toy_text.hidden=many", "'many' is a str, expected int"),
        ("toy_text.hidden=1.5", "1.5 is a float, expected int"),
        ("toy_text.hidden=True", "True is a bool, expected int"),
        ("toy_text.deep=1", "1 is a int, expected True or False"),
        ("toy_text.clip=1e999", "toy_text.clip=1e999"),
        (f"toy_text.dropout={10**400}", "int too large to convert to float; expected a plain finite value such as 0.5"),
        (f"toy_text.training.learning_rates=[{10**400}]", "int too large to convert to float"),
        ("hidden=10", "expected ID.hyperparameter=value"),
        ("toy_text.hidden", "expected ID.hyperparameter=value"),
        ("toy_text.limits.max_train=5", "expected ID.hyperparameter=value"),
    ],
)
def test_an_override_that_cannot_be_meant_is_refused(override, message):
    with pytest.raises(UsageError) as caught:
        plan(overrides=[override])
    assert message in str(caught.value)
    assert override in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learning_rates=['a']", "-o toy_seq.training.lr: 'a' is not a positive number"),
        ("learning_rates=None", "-o toy_seq.training.lr: None is not a positive number"),
        ("betas=0.9", "-o toy_seq.training.betas: 0.9 is not two shares"),
        ("min_steps=-4", "-o toy_seq.training.min_steps: -4 is not a whole number from 0"),
        ("groups=['table.*',2.0]", "-o toy_seq.training.groups: ('table.*', 2.0) is not a list of pairs"),
    ],
)
def test_an_override_that_no_training_can_have_is_refused_before_the_grid(override, message):
    """Each ended in a traceback, and with it the cells of all other architectures of the grid."""
    with pytest.raises(UsageError) as caught:
        plan("toy_seq", overrides=[f"toy_seq.training.{override}"])
    assert message in str(caught.value)


def test_a_setting_of_the_view_is_part_of_a_cell_only_where_it_is_another():
    """The cells of committed records keep their keys."""
    usual = only("dan", "sst2", protocol="paper")
    assert "view" not in usual.hyperparameters
    changed = only("dan", "sst2", protocol="paper", overrides=["dan.view.min_count=1", "dan.view.lower=False"])
    assert changed.hyperparameters["view"] == {"lower": False, "min_count": 1} and changed.key != usual.key
    assert only("dan", "sst2", protocol="paper", overrides=["dan.view.min_count=2"]) == usual, "as it is by default"
    both = {
        cell.architecture: cell
        for cell, *_ in plan("dan,fasttext", "sst2", protocol="paper", overrides=["*.view.max_length=9"])
    }
    assert both["dan"].hyperparameters["view"] == {"max_length": 9} and "view" not in both["fasttext"].hyperparameters


def test_a_regimes_view_is_that_of_the_architecture_that_it_wraps():
    overrides = ["adversarial.view.max_sentences=3", "adversarial.wraps=han"]
    assert only("adversarial", "sst2", protocol="paper", overrides=overrides).hyperparameters["view"] == {
        "max_sentences": 3
    }
    with pytest.raises(UsageError, match=r"no hyperparameter view.max_sentences; did you mean max_length"):
        plan("adversarial", "sst2", overrides=overrides[:1])


@pytest.mark.parametrize(
    ("architecture", "override", "message"),
    [
        ("dan", "dan.view.min_cuont=1", "dan has no hyperparameter view.min_cuont; did you mean min_count"),
        ("dan", "dan.view.min_count=often", "'often' is a str, expected int"),
        ("dan", "dan.view.min_count=1.5", "1.5 is a float, expected int"),
        ("dan", "dan.view.lower=1", "expected True or False"),
        ("dan", "dan.view.max_length=-5", "max_length=-5: a whole number from 1 is expected"),
        ("dan", "dan.view.min_count=0", "min_count=0: a whole number from 1"),
        ("dan", "dan.view.view=Bag", "no hyperparameter view.view"),
        ("char_cnn", "char_cnn.view.length=99", "no hyperparameter view.length; there are: alphabet, reverse"),
        ("char_cnn", "char_cnn.view.alphabet=AB", "alphabet: every character must be lower-case"),
        ("naive_bayes", "naive_bayes.view.lower=False", "no hyperparameter view.lower; there are: none"),
        ("toy_text", "toy_text.view.lower=False", "no hyperparameter view.lower; there are: none"),
    ],
)
def test_a_view_that_cannot_be_meant_is_refused(architecture, override, message):
    """Before the grid: not in every cell."""
    with pytest.raises(UsageError) as caught:
        plan(architecture, "sst2", overrides=[override])
    assert message in str(caught.value)


def test_a_recordings_view_has_settings_too():
    overrides = ["bilstm_ctc.view.deltas=0", "bilstm_ctc.view.mels=20", "bilstm_ctc.view.energy=True"]
    assert only("bilstm_ctc", "fsdd", overrides=overrides).hyperparameters["view"] == {"deltas": 0, "mels": 20}
    with pytest.raises(UsageError, match=r"view.deltas=7: 0, 1 .slopes. or 2"):
        plan("bilstm_ctc", "fsdd", overrides=["bilstm_ctc.view.deltas=7"])


def test_a_wildcard_override_reaches_every_architecture_that_has_it():
    cells = [cell for cell, *_ in plan("toy_text,toy_seq,toy_fit", overrides=["toy_*.hidden=7"])]
    assert [c.hyperparameters.get("hidden") for c in cells] == [7, 7, None]


def test_pairs_that_do_not_fit_are_cells_with_a_reason():
    found = {(c.architecture, c.task): reason for c, reason, _ in plan("toy_*", "toy_*")}
    assert len(found) == 12
    assert {pair for pair, reason in found.items() if reason is None} == {
        ("toy_text", "toy_topic"),
        ("toy_wide", "toy_topic"),
        ("toy_seq", "toy_topic"),
        ("toy_seq", "toy_tags"),
        ("toy_fit", "toy_topic"),
        ("toy_fit", "toy_tags"),
    }
    assert found["toy_text", "toy_tags"] == "gives what tag cannot use"
    assert found["toy_text", "toy_sound"] == "reads no audio", "the class has the last word"


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        (
            "seq",
            {
                "classify",
                "multilabel",
                "match",
                "rank",
                "tag",
                "extract",
                "answer",
                "transcribe",
                "regress",
                "regress_pair",
            },
        ),
        ("text", {"classify", "multilabel", "match", "rank", "answer", "regress", "regress_pair"}),
        ("tree", {"classify"}),
        ("pair", {"match", "rank", "regress_pair"}),
        ("tag", {"tag"}),
        ("span", {"extract"}),
        ("answer", {"answer"}),
        ("ctc", {"transcribe"}),
        ("generate", {"extract", "transcribe", "translate"}),
        ("lm", {"language_model"}),
        ("plm", {"classify", "multilabel", "match", "rank", "tag", "extract", "regress", "regress_pair"}),
    ],
)
def test_the_problems_that_an_architecture_of_each_kind_can_answer(kind: str, types: set[str]):
    """A pair that is left out silently would be a gap in the leaderboard."""
    base = {
        "seq": kinds.SequenceEncoder,
        "text": kinds.TextEncoder,
        "tree": kinds.TreeEncoder,
        "pair": kinds.PairEncoder,
        "tag": kinds.Tagger,
        "span": kinds.Reader,
        "answer": kinds.Answerer,
        "ctc": kinds.FrameEncoder,
        "generate": kinds.Generator,
        "lm": kinds.LanguageModel,
        "plm": kinds.PretrainedEncoder,
    }[kind]
    assert {type for type in registry.entries("problems") if base.can_answer(type)} == types


@pytest.mark.parametrize("kind", ["vectors", "tokens"])
def test_a_kind_with_nothing_behind_it_is_refused(kind: str):
    """Every cell of such an architecture would be skipped, and nobody told why."""
    with pytest.raises(registry.RegistryError, match=f"kind '{kind}' is none of seq, text"):
        registry.register("mine", name="-", kind=kind, paper="-", source="-", year=2020)


def test_a_seed_is_finished_everywhere_before_the_next_begins():
    order = [(c.seed, c.task, c.architecture) for c, *_ in plan("toy_text,toy_seq", "toy_topic,toy_tags", seeds=[1, 0])]
    assert [seed for seed, *_ in order] == [1] * 4 + [0] * 4
    assert order[0][1] == order[1][1], "cells of one task follow each other and share its encoded data"


def test_with_homes_an_architecture_has_one_task_and_those_without_have_none():
    """A home is planned even where it does not fit, with the reason: it is a gap that somebody must
    see."""
    homes = {"toy_text": "toy_topic", "toy_wide": "toy_tags", "toy_fit": "toy_tags"}
    found = [(c.architecture, c.task, reason) for c, reason, _ in plan("toy_*", "toy_*", homes=homes, seeds=[0])]
    assert sorted(found, key=str) == [
        ("toy_fit", "toy_tags", None),
        ("toy_text", "toy_topic", None),
        ("toy_wide", "toy_tags", "gives what tag cannot use"),
    ]


def test_a_plugin_that_fails_to_import_is_named_and_the_rest_is_left(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from harness.registry import register\nimport no_such_module\n\n"
        '@register("toy_bad", name="Bad", kind="text", paper="-", source="-", year=2020)\nclass Bad:\n    pass\n'
    )
    naked = tmp_path / "naked.py"
    naked.write_text(
        "from harness.registry import register\n\n"
        '@register("toy_naked", name="N", kind="text", paper="-", source="-", year=2020)\nclass N:\n    pass\n'
    )
    registry.add_plugin(bad)
    registry.add_plugin(naked)
    good, errors = fitting.loadable(registry.match("architectures", "toy_text,toy_bad,toy_naked"))
    assert [e.id for e in good] == ["toy_text"]
    assert "no_such_module" in errors[0] and str(bad) in errors[0]
    assert "harness.kinds" in errors[1] and str(naked) in errors[1], (
        "a class without the base class of its kind is told which"
    )


def test_a_decorator_that_fixes_an_unknown_argument_is_named(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text(PLUGIN.replace("toy_", "odd_").replace('"hidden": 999', '"hiden": 999'))
    registry.add_plugin(file)
    with pytest.raises(registry.RegistryError, match=r"odd\.py.*fixes hiden"):
        plan("odd_wide", "odd_topic")


# --- what is still to run ---


def state(planned, store, **options):
    """Numbers of cells to run, to skip, finished and damaged."""
    found = pending(planned, store, **options)
    return len(found.run), len(found.skip), len(found.finished), len(found.damaged)


@pytest.mark.parametrize(
    ("status", "again", "retried"),
    [
        ("ok", 0, 0),
        ("failed", 0, 1),
        ("oom", 0, 1),
        ("timeout", 0, 1),
        ("diverged", 0, 1),
        ("interrupted", 1, 1),
        ("skipped", 1, 1),
    ],
)
def test_the_same_command_resumes(tmp_path, status, again, retried):
    """Results stand, failures too unless asked; what was interrupted runs again; so does a skip
    whose reason is gone."""
    store, planned = Store(tmp_path / "results"), plan()
    assert state(planned, store) == (1, 0, 0, 0)
    store.write(Record.skeleton(planned[0].cell, status))
    assert state(planned, store) == (again, 0, 1 - again, 0)
    assert state(planned, store, retry_failed=True) == (retried, 0, 1 - retried, 0)


def test_a_skipped_pair_is_noted_once(tmp_path):
    store, planned = Store(tmp_path / "results"), plan("toy_text", "toy_tags")
    [item] = pending(planned, store).skip
    store.write(skipped(item, "archbench run"))
    assert store.find(item.cell).error == {"type": "unfit", "message": item.reason, "log": None}
    assert state(planned, store, retry_failed=True) == (0, 0, 1, 0)


def test_a_damaged_record_is_named_and_left_alone(tmp_path):
    store, planned = Store(tmp_path / "results"), plan()
    path = store.write(Record.skeleton(planned[0].cell, "ok"))
    path.write_text("{ cut off")
    found = pending(planned, store)
    assert (found.run, found.finished) == ([], [])
    assert str(path) in found.damaged[0]
    assert path.read_text() == "{ cut off"


def test_a_cell_read_back_from_its_record_is_the_cell_that_ran(tmp_path):
    """Otherwise a tuple in a constructor would make every cell run again and again."""
    store, cell = Store(tmp_path / "results"), only()
    store.write(Record.skeleton(cell, "ok"))
    assert store.find(cell).cell == cell


def test_every_system_without_gradient_training_tells_the_memory_of_its_fit():
    """A run asks with the settings of its cell, before anything is computed."""
    for entry in registry.entries("architectures").values():
        if entry.shipped and entry.kind in ("fit", "floor"):
            none, one, many = (
                registry.load(entry).memory_needed(size, grid.hyperparameters(entry)) for size in (0, 1, 10**6)
            )
            assert none < 10**8, f"{entry.id}: a table that grows with no text"
            assert 1 < one - none < 1000 and many - none == pytest.approx((one - none) * 10**6, rel=1e-4), entry.id
