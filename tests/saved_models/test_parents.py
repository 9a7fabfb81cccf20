"""Cells that start from what others learnt."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from mlflow import pyfunc

from harness import registry
from harness.errors import ModelError, UsageError
from harness.records import Cell, Record, Store
from harness.running import parents
from harness.running.keeping import of_parents
from harness.running.pending import Planned
from harness.running.progress import show
from harness.running.session import Session
from harness.running.worker import run_cell
from harness.saved_models import served, storage
from harness.saved_models.folder import describe, read, write
from harness.saved_models.model import load
from harness.saved_models.parents import Parents
from tests.support import sessions
from tests.support.sessions import carried_out

PLUGIN = Path(__file__).parents[1] / "support" / "inheriting.py"


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    registry.add_plugin(PLUGIN)


def session(results: Path, architectures: str, *named: str, **fields: object) -> Session:
    return sessions.session(results, architectures, *named, **{"plugins": [PLUGIN]} | fields)


def names(session: Session) -> list[str]:
    return [cell.architecture for cell in session.pending.run]


# Planning.


def test_parents_are_planned_before_and_once_for_all_their_children(tmp_path: Path) -> None:
    """A grid of fifty children would train their language model fifty times."""
    planned = session(tmp_path, "mean_last,mean_after,pupil", seeds=(0, 1))
    assert sorted(names(planned)) == sorted(2 * ["mean_words", "mean_after", "mean_last", "pupil"])
    assert {cell.architecture for cell in planned.pending.run if planned.settings.keeps(cell)} == {
        "mean_words",
        "mean_after",
    }
    first, second = ({cell.architecture: cell for cell in planned.pending.run if cell.seed == seed} for seed in (0, 1))
    for cells in (first, second):
        assert cells["mean_after"].parents["weights"]["key"] == cells["mean_words"].key
        assert cells["mean_last"].parents["weights"]["key"] == cells["mean_after"].key
    assert first["mean_last"].row == second["mean_last"].row != first["mean_after"].row


def test_an_architecture_is_pre_trained_first_on_the_task_that_it_names(tmp_path: Path) -> None:
    """And begins from nothing there: it would else wait for itself."""
    planned = session(tmp_path, "roberta", tasks="sst2,ag_news", protocol="paper")
    assert [(cell.architecture, cell.task) for cell in planned.pending.run] == [
        ("roberta", "text_mix"),
        ("roberta", "sst2"),
        ("roberta", "ag_news"),
    ]
    first, *children = planned.pending.run
    assert not first.parents and {cell.parents["weights"]["key"] for cell in children} == {first.key}
    assert names(session(tmp_path, "roberta", tasks="text_mix", protocol="paper")) == ["roberta"]
    (alone,) = session(tmp_path, "roberta", "weights=none", tasks="sst2", protocol="paper").pending.run
    assert not alone.parents, "and where the user wants no parent"


def chains(session: Session) -> dict[tuple[str, str], tuple[str, str] | None]:
    """Architecture and task of the parent of each cell."""
    cells = {cell.key: (cell.architecture, cell.task) for cell in session.pending.run}
    parents = {cell.key: cell.parents.get("weights") for cell in session.pending.run}
    return {own: cells[parents[key]["key"]] if parents[key] else None for key, own in cells.items()}


def test_a_parent_is_trained_on_several_tasks_one_after_another(tmp_path: Path) -> None:
    """Continued pre-training, of any architecture: its last corpus alone would be another model."""
    named = "weights=roberta@text_mix+general_text+news_text"
    planned = session(tmp_path, "roberta", named, tasks="ag_news,sst2", protocol="paper")
    assert chains(planned) == {
        ("roberta", "text_mix"): None,
        ("roberta", "general_text"): ("roberta", "text_mix"),
        ("roberta", "news_text"): ("roberta", "general_text"),
        ("roberta", "ag_news"): ("roberta", "news_text"),
        ("roberta", "sst2"): ("roberta", "news_text"),
    }
    other_order = "weights=roberta@general_text+text_mix+news_text"
    keys = [
        cell.key for cell in session(tmp_path, "roberta", other_order, tasks="ag_news", protocol="paper").pending.run
    ]
    assert not {*keys} & {cell.key for cell in planned.pending.run}


def test_one_that_is_pre_trained_on_several_tasks_begins_with_the_first(tmp_path: Path) -> None:
    """Asked for on the second, it would be one that has not read the first; and on the first it
    would wait for itself."""
    name = "domain_pretraining_continued"
    whole = session(tmp_path, name, tasks="ag_news", protocol="paper")
    first, second, child = ((name, task) for task in ("general_text", "news_text", "ag_news"))
    assert chains(whole) == {first: None, second: first, child: second}
    keys = {cell.task: cell.key for cell in whole.pending.run}
    for tasks in ("news_text", "general_text"):
        part = session(tmp_path, name, tasks=tasks, protocol="paper")
        assert {cell.key for cell in part.pending.run} <= {*keys.values()}
        assert len(part.pending.run) == (2 if tasks == "news_text" else 1)
    assert chains(session(tmp_path, name, tasks="text_mix", protocol="paper")) == {(name, "text_mix"): None}


def test_a_kept_model_that_was_not_trained_on_the_first_task_is_no_parent_of_that_name(tmp_path: Path) -> None:
    """It has learnt the last task alone."""
    (alone,) = carried_out(session(tmp_path, "mean_words", tasks="sst2", keep=True)).values()
    assert chains(session(tmp_path, "mean_after", "weights=mean_words@ag_news+sst2", tasks="sst2")) == {
        ("mean_words", "ag_news"): None,
        ("mean_words", "sst2"): ("mean_words", "ag_news"),
        ("mean_after", "sst2"): ("mean_words", "sst2"),
    }
    (child,) = session(tmp_path, "mean_after", "weights=mean_words@sst2", tasks="sst2").pending.run
    assert child.parents["weights"]["key"] == alone.key


def test_an_architecture_that_cannot_go_on_with_weights_has_no_tasks_before(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="vectors=word_table@ag_news.sst2: word_table takes no parent in the role wei"):
        session(tmp_path, "mean_words", "vectors=word_table@ag_news+sst2")


def test_what_makes_vectors_of_any_plain_text_makes_them_of_all_of_it(tmp_path: Path) -> None:
    """Parts of the text mix, which are there to be compared, would leave no task to choose."""
    parent, _ = session(tmp_path, "mean_words", "vectors=skipgram", max_epochs=None).pending.run
    assert (parent.architecture, parent.task) == ("skipgram", "text_mix")


CIRCLE = """
from harness.kinds import TextEncoder
from harness.registry import register


@register("hen", name="Hen", kind="text", paper="none", source="-", year=1, parents={"weights": "egg"})
@register("egg", name="Egg", kind="text", paper="none", source="-", year=1, parents={"weights": "hen"})
class Bird(TextEncoder):
    takes = ("weights",)
"""


def test_architectures_that_start_from_each_other_are_refused(tmp_path: Path) -> None:
    """The plan would have no end."""
    file = tmp_path / "birds.py"
    file.write_text(CIRCLE)
    with pytest.raises(UsageError, match="hen on sst2 starts from egg on sst2 starts from hen on sst2"):
        session(tmp_path, "hen", plugins=[file])


def test_a_dry_run_shows_parents_first_and_who_waits_for_them(tmp_path: Path, capsys) -> None:
    planned = session(tmp_path, "mean_after", dry_run=True)
    show(planned.pending, planned.estimate, planned.slots)
    parent, child = capsys.readouterr().out.splitlines()[:2]
    assert parent.startswith("run   mean_words on sst2, seed 0") and "after" not in parent
    assert child.startswith("run   mean_after on sst2") and f"after mean_words ({planned.pending.run[0].key})" in child
    assert not (tmp_path / "models").exists()


def test_a_cell_without_parents_keeps_its_key(tmp_path: Path) -> None:
    """Records that were there before would all be computed again."""
    (cell,) = session(tmp_path, "mean_words").pending.run
    assert "parents" not in cell.hyperparameters
    (child,) = [c for c in session(tmp_path, "mean_words", "vectors=word_table").pending.run if c.parents]
    assert child.key != cell.key


@pytest.mark.parametrize(
    ("architectures", "named", "message"),
    [
        (
            "mean_words",
            "teacher=mean_words",
            "mean_words takes no parent in the role teacher; it takes weights, vectors",
        ),
        ("word_table", "weights=mean_words", "word_table takes no parent in the role weights; it takes none"),
        ("mean_words", "weigths=mean_words", "did you mean weights"),
        ("mean_words", "weights", "expected ROLE=ARCHITECTURE or ROLE=KEY"),
        ("mean_words", "weights=mean_word", "did you mean mean_words"),
        ("mean_words", "weights=0123", "no model of such a key is kept"),
    ],
)
def test_a_parent_that_cannot_be_meant_is_refused(tmp_path: Path, architectures: str, named: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        session(tmp_path, architectures, named)


def test_a_kept_parent_is_not_trained_again_and_named_by_its_key(tmp_path: Path) -> None:
    kept = carried_out(session(tmp_path, "word_table", keep=True))["word_table"]
    for named in ("vectors=word_table", f"vectors={kept.key[:6]}"):
        planned = session(tmp_path, "mean_words", named)
        assert names(planned) == ["mean_words"]
        assert planned.pending.run[0].parents["vectors"]["key"] == kept.key


def test_two_kept_models_that_could_be_meant_are_listed(tmp_path: Path) -> None:
    """One of them would be taken by chance."""
    for hidden in (3, 5):
        carried_out(session(tmp_path, "mean_words", keep=True, overrides=[f"mean_words.hidden={hidden}"]))
    keys = [kept.folder.name for kept in storage.kept_models(tmp_path)]
    with pytest.raises(UsageError, match="2 kept models could be the parent of mean_after on sst2, seed 0") as refused:
        session(tmp_path, "mean_after")
    assert all(key in str(refused.value) for key in keys)
    chosen = session(tmp_path, "mean_after", overrides=["*.hidden=3"])
    assert names(chosen) == ["mean_after"], "the one with the settings of this run is meant"


def test_a_parent_that_cannot_run_on_the_task_is_taken_from_where_it_is_kept(tmp_path: Path) -> None:
    """A tagger is trained on tags; of two tasks with tags, the user says which is meant."""
    (item,) = session(tmp_path, "tagged_mean", "tags=word_tagger").pending.skip
    assert "its parent word_tagger on sst2" in item.reason and "does not fit: gives label scores" in item.reason
    kept = carried_out(session(tmp_path, "word_tagger", tasks="conll2003_pos", keep=True))["word_tagger"]
    planned = session(tmp_path, "tagged_mean", "tags=word_tagger")
    assert names(planned) == ["tagged_mean"] and planned.pending.run[0].parents["tags"]["key"] == kept.key
    other_seed = session(tmp_path, "tagged_mean", "tags=word_tagger", seeds=(1,))
    assert names(other_seed) == [], "a parent of another seed is another parent"
    carried_out(session(tmp_path, "word_tagger", tasks="conll2003_chunk", keep=True))
    with pytest.raises(UsageError, match="(?s)2 kept models .*word_tagger on conll2003_(chunk|pos)"):
        session(tmp_path, "tagged_mean", "tags=word_tagger")


def test_a_parent_that_is_not_kept_any_more_is_trained_again(tmp_path: Path) -> None:
    """Its record alone is of no use; and a finished child needs no parent."""
    carried_out(session(tmp_path, "mean_after"))
    (parent,) = [kept.folder.name for kept in storage.kept_models(tmp_path)]
    storage.remove(parent, tmp_path)
    assert names(session(tmp_path, "mean_after")) == []
    again = session(tmp_path, "mean_after", overrides=["mean_after.training.batch_size=7"])
    assert sorted(names(again)) == ["mean_after", "mean_words"]


def test_what_started_from_a_model_of_other_code_is_of_other_code_too(tmp_path: Path) -> None:
    """A mended language model would else leave its children's scores as they were, without a
    word."""
    records = carried_out(session(tmp_path, "mean_last,word_table"))
    of_before = records["mean_words"].model_copy(
        update={"code": records["mean_words"].code | {"architecture": "0" * 64}}
    )
    Store(tmp_path).write(of_before)
    planned = session(tmp_path, "mean_last,word_table")
    assert names(planned) == [] and [record.architecture for record in planned.pending.changed] == ["mean_last"]
    again = session(tmp_path, "mean_last,word_table", changed=True)
    assert sorted(names(again)) == ["mean_after", "mean_last", "mean_words"]
    assert {record.status for record in carried_out(again).values()} == {"ok"}
    settled = session(tmp_path, "mean_last,word_table", changed=True)
    assert names(settled) == [] and settled.pending.changed == []


def of_other_code(record: Record) -> Record:
    return record.model_copy(update={"code": record.code | {"architecture": "0" * 64}})


def test_a_run_that_is_cut_leaves_no_parent_of_the_old_code(tmp_path: Path) -> None:
    """The same command went on with the child alone, from the old parent's weights, and no later
    run could tell."""
    records = carried_out(session(tmp_path, "mean_after"))
    Store(tmp_path).write(of_other_code(records["mean_words"]))
    session(tmp_path, "mean_after", changed=True)  # both records are set aside, and then it is cut
    for changed in (True, False):
        assert sorted(names(session(tmp_path, "mean_after", changed=changed))) == ["mean_after", "mean_words"]
    assert (tmp_path / storage.MODELS / f".{records['mean_words'].key}.old" / "model.json").is_file()


def test_a_model_that_another_run_has_made_anew_is_not_set_aside(tmp_path: Path, monkeypatch) -> None:
    """Its record stays, so that nobody would train it again, and its children would have no
    parent."""
    records = carried_out(session(tmp_path, "mean_after"))
    Store(tmp_path).write(of_other_code(records["mean_words"]))
    monkeypatch.setattr(Store, "set_aside", Store.path)  # leaves a record that is newer than the plan
    session(tmp_path, "mean_after", changed=True)
    assert storage.is_kept(tmp_path, records["mean_words"].key)


def test_a_dry_run_sets_no_model_aside(tmp_path: Path) -> None:
    records = carried_out(session(tmp_path, "mean_after"))
    Store(tmp_path).write(of_other_code(records["mean_words"]))
    session(tmp_path, "mean_after", changed=True, dry_run=True)
    assert storage.is_kept(tmp_path, records["mean_words"].key)


def test_a_parent_that_failed_after_it_was_kept_is_none(tmp_path: Path) -> None:
    """It was kept, and ended while it was measured: the next run started its children."""
    parent = carried_out(session(tmp_path, "mean_after"))["mean_words"]
    error = {"type": "RuntimeError", "message": "it broke", "log": None}
    Store(tmp_path).write(Record.skeleton(parent.cell, "failed", error=error))
    planned = session(tmp_path, "mean_after", overrides=["mean_after.training.batch_size=7"])
    assert names(planned) == [] and "ended failed: it broke" in planned.pending.skip[0].reason


def test_children_of_a_kept_model_that_nobody_planned_are_of_other_code_too(tmp_path: Path) -> None:
    """A parent with settings of its own is found as it was kept, and `--changed` trains it as it
    was."""
    kept = carried_out(session(tmp_path, "mean_words", overrides=["mean_words.training.batch_size=7"], keep=True))
    child = carried_out(session(tmp_path, "mean_after"))
    assert [*child] == ["mean_after"]
    Store(tmp_path).write(of_other_code(kept["mean_words"]))
    assert [record.architecture for record in session(tmp_path, "mean_after").pending.changed] == ["mean_after"]
    again = session(tmp_path, "mean_after", changed=True)
    assert {cell.key for cell in again.pending.run} == {kept["mean_words"].key, child["mean_after"].key}
    carried_out(again)
    assert session(tmp_path, "mean_after", changed=True).pending.changed == []


def test_a_model_that_learnt_from_test_is_no_parent(tmp_path: Path) -> None:
    """Its child ended as failed, and stayed so when the model had been removed."""
    record = carried_out(session(tmp_path, "mean_words", refit=True))["mean_words"]
    planned = session(tmp_path, "mean_after")
    assert names(planned) == [] and f"archbench models --remove {record.key}" in planned.pending.skip[0].reason
    storage.remove(record.key, tmp_path)
    assert sorted(names(session(tmp_path, "mean_after"))) == ["mean_after", "mean_words"]


def test_a_model_that_learnt_from_test_is_passed_over_where_another_can_be_trained(tmp_path: Path) -> None:
    carried_out(session(tmp_path, "mean_words", refit=True, overrides=["mean_words.training.batch_size=7"]))
    assert sorted(names(session(tmp_path, "mean_after"))) == ["mean_after", "mean_words"]


def test_a_failure_that_cannot_run_again_stands(tmp_path: Path) -> None:
    """`--retry-failed` without the memory for it wrote `skipped` over the timeout."""
    planned = session(tmp_path, "mean_words", "weights=none")
    cell = planned.pending.run.pop()
    planned.pending.skip.append(Planned(cell, "its fit needs more memory"))
    Store(tmp_path).write(Record.skeleton(cell, "timeout"))
    planned.run()
    assert Store(tmp_path).find(cell).status == "timeout"


def test_a_model_of_an_older_version_of_its_task_is_no_parent(tmp_path: Path) -> None:
    """It learnt from the labels that were mended since."""
    (cell,) = session(tmp_path, "mean_words").pending.run
    assert parents._is_like(cell, cell, "sst2")
    assert not parents._is_like(dataclasses.replace(cell, task_version=cell.task_version - 1), cell, "sst2")


def test_the_children_of_a_parent_that_failed_are_skipped_with_the_reason(tmp_path: Path) -> None:
    broken = dict(overrides=["mean_words.breaks=True"])
    assert carried_out(session(tmp_path, "mean_words", **broken))["mean_words"].status == "failed"
    planned = session(tmp_path, "mean_last", **broken)
    assert names(planned) == []
    (item,) = planned.pending.skip
    assert "its parent mean_after on sst2" in item.reason and "RuntimeError" not in item.reason
    assert "its parent mean_words on sst2" in item.reason and "ended failed: it broke" in item.reason


def test_a_family_is_in_one_part_of_a_grid(tmp_path: Path) -> None:
    """Machines that share a grid would each train the parent, or wait for one that another has."""
    cells = session(tmp_path, "mean_last,mean_after,mean_words,word_table", seeds=range(6)).cells
    first = parents.first_of_families(cells)
    for seed in range(6):
        family = [c for c in cells if c.seed == seed and c.architecture != "word_table"]
        assert len({first[cell.key].key for cell in family}) == 1
    assert all(first[cell.key] is cell for cell in cells if cell.architecture == "word_table")
    parts = [session(tmp_path, "mean_last,word_table", seeds=range(6), shard=f"{n}/3") for n in range(3)]
    keys = [{cell.key for cell in part.pending.run} for part in parts]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 6 * 4


def test_a_grandparent_of_two_branches_is_trained_in_one_part(tmp_path: Path) -> None:
    """Two machines trained the same BERT for some hours each."""
    asked = dict(tasks="sst2", protocol="paper", seeds=(0, 1, 2))
    parts = [session(tmp_path, "distilbert,minilm", shard=f"{n}/5", **asked) for n in range(5)]
    keys = [cell.key for part in parts for cell in part.pending.run]
    assert len(keys) == len({*keys}) == 3 * 5


@pytest.mark.parametrize(
    ("architecture", "settings", "sees"),
    [
        ("adversarial", {"wraps": "tree_lstm"}, {"labels of phrases"}),
        ("mtl_rnn_shared", {"companions": ["imdb"]}, {"training rows of imdb"}),
        (
            "bilstm",
            {"vectors": {"file": "glove.txt", "sha256": "ab" * 32, "dims": 50}},
            {"word vectors glove.txt abababab"},
        ),
    ],
)
def test_all_that_a_parent_saw_is_seen(architecture: str, settings: dict, sees: set[str]) -> None:
    """Its student was ranked with systems that saw labels alone; and so was the student's own."""
    cell = Cell(architecture, 1, "sst2", 1, "local", "equal", settings, 0)
    origin = SimpleNamespace(key=cell.key, cell=cell.to_dict(), sees=None, refitted=None)
    model = SimpleNamespace(description=SimpleNamespace(origin=origin))
    told = Parents({"teacher": {"key": cell.key}}, Path(), lambda folder: model)
    assert told.sees == sees
    student = Cell("xtreme_distil", 1, "sst2", 1, "local", "equal", {"companions": ["sst5"]}, 0)
    fields = of_parents(SimpleNamespace(models={"teacher": model}, ancestors=[], sources={}, sees=sees), student)
    assert fields["sees"] == sorted({"training rows of sst5", *sees})
    origin.sees = ["what its own parents saw"]
    assert told.sees >= {"what its own parents saw"}


# Learning.


def test_weights_are_copied_before_training_and_the_chain_is_recorded(tmp_path: Path) -> None:
    """A child that began at random would be called pre-trained."""
    still = ["mean_after.training.learning_rates=[1e-12]"]  # whose weights stay where they began
    records = carried_out(session(tmp_path, "mean_last", overrides=still))
    assert {record.status for record in records.values()} == {"ok"}
    child = records["mean_last"]
    lineage = child.lineage
    assert [(a["role"], a["architecture"]) for a in lineage] == [
        ("weights", "mean_words"),
        ("vectors", "mean_words"),
        ("weights", "mean_after"),
    ]
    parent = records["mean_words"]
    assert lineage[0]["key"] == parent.key and lineage[0]["corpus"] == parent.data
    assert {name: lineage[0][name] for name in parent.spent} == parent.spent
    assert lineage[0]["seconds"] == parent.seconds["train"] and lineage[0]["objective"] == "Supervised"
    assert child.spent["examples"] == 40 and child.spent["steps"] > 0 and child.spent["tokens"] > 40
    after = load(tmp_path / "models" / records["mean_after"].key)
    before = load(tmp_path / "models" / parent.key)
    torch.testing.assert_close(after.model.encoder.layer.weight, before.model.encoder.layer.weight, rtol=0, atol=1e-6)
    assert Record.from_json(child.to_json()).cell == child.cell


def test_word_vectors_of_a_kept_table_are_those_that_training_starts_from(tmp_path: Path) -> None:
    still = ["mean_words.training.learning_rates=[1e-12]"]
    planned = session(tmp_path, "mean_words", "vectors=word_table", protocol="smoke", keep=True, overrides=still)
    records = carried_out(planned)
    child = records["mean_words"]
    assert child.status == "ok", child.error
    assert child.vectors["key"] == records["word_table"].key and child.vectors["name"] == "word_table"
    assert child.vectors["dims"] == 2 and child.vectors["words"] > 10 and child.vectors["tuned"]
    kept = load(tmp_path / "models" / child.key)
    vectors = load(tmp_path / "models" / records["word_table"].key).word_vectors()
    places = [(place, word) for place, word in enumerate(kept.view.vocabulary.words, 2) if word in vectors]
    assert len(places) > 10
    for place, word in places:
        assert np.allclose(kept.model.table.tuned.weight[place].detach(), vectors[word], atol=1e-5), word


def test_a_teacher_is_asked_and_its_loss_is_a_column(tmp_path: Path) -> None:
    records = carried_out(session(tmp_path, "pupil"))
    assert records["pupil"].status == "ok", records["pupil"].error
    losses = [row["train_teacher"] for row in records["pupil"].training["curve"]]
    assert all(0 < loss < 5 for loss in losses)


def test_tags_of_a_kept_tagger_are_an_input_also_of_new_texts(tmp_path: Path) -> None:
    """The tagger of another task is planned first; a kept child asks it again."""
    planned = session(tmp_path, "tagged_mean", keep=True)
    assert [(c.architecture, c.task) for c in planned.pending.run] == [
        ("word_tagger", "conll2003_pos"),
        ("tagged_mean", "sst2"),
    ]
    child = carried_out(planned)["tagged_mean"]
    assert child.status == "ok", child.error
    assert child.inputs == [
        {"name": "word_tagger", "key": child.lineage[0]["key"], "artefact": child.lineage[0]["artefact"]}
    ]
    entry = registry.entry("tasks", "sst2")
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    model = load(tmp_path / "models" / child.key)
    _, said = Store(tmp_path).load_predictions(child)
    assert [answer["prediction"] for answer in model.answers(model.problem.input_rows(rows))] == said


@pytest.mark.filterwarnings("ignore")  # MLflow warns of its own code at import
def test_a_kept_child_takes_the_parents_that_it_asks_to_mlflow(tmp_path: Path) -> None:
    """There is no folder of kept models where MLflow's registry is read."""
    child = carried_out(session(tmp_path, "tagged_mean", keep=True))["tagged_mean"]
    served.save(tmp_path / "models" / child.key, tmp_path / "logged")
    texts = ["a warm film", "it is dull"]
    wanted = load(tmp_path / "models" / child.key).answers([{"id": text, "text": text} for text in texts])
    shutil.rmtree(tmp_path / "models")
    model = pyfunc.load_model(str(tmp_path / "logged"))
    assert model.predict(pd.DataFrame({"text": texts}))["prediction"].tolist() == [a["prediction"] for a in wanted]


def test_a_kept_child_refuses_a_parent_that_was_trained_anew(tmp_path: Path) -> None:
    """It has the key of the one that the child learnt from, and other tags."""
    records = carried_out(session(tmp_path, "tagged_mean", keep=True))
    child, parent = (tmp_path / "models" / records[name].key for name in ("tagged_mean", "word_tagger"))
    load(child)
    description = describe(parent)
    state, arrays = read(parent, description)
    write(parent, description, state, {name: values + 1 for name, values in arrays.items()})
    with pytest.raises(ModelError, match=f"{child.name}: its parent {parent.name} in the role tags was trained anew"):
        load(child)


def test_an_input_source_starts_from_a_parent_of_its_own_also_in_a_kept_child(tmp_path: Path) -> None:
    """Whatever reads the source starts from what another cell learnt, and a kept child reads it
    again."""
    planned = session(tmp_path, "mean_words", inputs=("kept_words",), keep=True)
    assert sorted(names(planned)) == ["mean_words", "word_table"]
    records = carried_out(planned)
    child, parent = records["mean_words"], records["word_table"]
    assert child.status == "ok", child.error
    assert child.cell.parents["inputs"]["key"] == parent.key and not parent.cell.inputs
    assert [(a["role"], a["architecture"]) for a in child.lineage] == [("inputs", "word_table")]
    model = load(tmp_path / "models" / child.key)
    given, counts = model.model.sources["kept_words"], load(tmp_path / "models" / parent.key).word_vectors()
    assert not given.table.weight.requires_grad
    for word, vector in zip(given.words, given.table.weight[2:].tolist(), strict=True):
        assert vector == counts[word].tolist()
    entry = registry.entry("tasks", "sst2")
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    _, said = Store(tmp_path).load_predictions(child)
    assert [answer["prediction"] for answer in model.answers(model.problem.input_rows(rows))] == said


def test_the_parent_of_a_source_is_another_or_none_where_the_user_says_so(tmp_path: Path) -> None:
    (alone,) = session(tmp_path, "mean_words", "inputs=none", inputs=("kept_words",)).pending.run
    assert alone.inputs and not alone.parents
    other = session(tmp_path, "mean_words", "inputs=mean_words", inputs=("kept_words",))
    assert names(other) == ["mean_words", "mean_words"]
    with pytest.raises(UsageError, match="mean_words takes no parent in the role inputs; it takes weights, vectors"):
        session(tmp_path, "mean_words", "inputs=word_table")


def test_two_sources_with_a_parent_in_one_role_are_refused(tmp_path: Path) -> None:
    """One of them would be given the other's."""
    message = "--inputs kept_words_too: --inputs kept_words starts from a parent in the role inputs too; a cell has one"
    with pytest.raises(UsageError, match=message):
        session(tmp_path, "mean_words", inputs=("kept_words", "kept_words_too"))


# Parents that are not as they should be.


def started(results: Path, damage) -> Record:
    """The record of a child whose parent is damaged after it was kept."""
    planned = session(results, "mean_after")
    parent, child = sorted(planned.pending.run, key=lambda cell: cell.architecture, reverse=True)
    planned.store.write(run_cell(parent, planned.settings))
    damage(results / "models" / parent.key)
    return run_cell(child, planned.settings)


def truncate(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-20])


def foreign(folder: Path) -> None:
    description = json.loads((folder / "model.json").read_text())
    description["origin"]["key"] = "0" * 16
    (folder / "model.json").write_text(json.dumps(description))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "weights.safetensors: cut off, changed or of another model"),
        (foreign, "model.json: no description of a kept model: it is not as it was written"),
        (lambda folder: (folder / "state.json").unlink(), "state.json: No such file"),
    ],
    ids=["cut off", "changed", "missing"],
)
def test_a_damaged_parent_ends_the_cell_by_name(tmp_path: Path, damage, message: str) -> None:
    record = started(tmp_path, damage)
    assert (record.status, record.error["type"]) == ("failed", "ModelError")
    assert message in record.error["message"]


def test_a_parent_of_another_size_ends_the_cell_by_name(tmp_path: Path) -> None:
    records = carried_out(session(tmp_path, "mean_after", overrides=["mean_words.hidden=3"]))
    assert records["mean_after"].status == "failed"
    assert (
        "in the role weights: encoder: layer.weight has size [3, 50] in the file and size [6, 50]"
        in (records["mean_after"].error["message"])
    )


def test_a_parent_of_another_vocabulary_ends_the_cell_by_name(tmp_path: Path) -> None:
    """Its rows would be taken for those of other words."""
    same = carried_out(session(tmp_path, "numbered", "weights=numbered"))["numbered"]
    assert same.status == "ok", same.error
    other = carried_out(session(tmp_path, "numbered_elsewhere"))["numbered_elsewhere"]
    assert other.status == "failed" and "entries of another vocabulary" in other.error["message"]


def test_two_seeds_with_parents_are_one_row_of_the_leaderboard(tmp_path: Path) -> None:
    """Each seed starts from another cell; they would be shown as two systems of one seed each."""
    from harness.files import sorted_json
    from harness.leaderboard.results import sections_of
    from harness.records.groups import along

    planned = session(tmp_path, "tagged_mean", seeds=(0, 1))
    carried_out(planned)
    records = [record for record in planned.store.all() if record.architecture == "tagged_mean"]
    assert len(records) == 2 and len(along("seeds", records)) == 1
    (section,) = sections_of(records, {}, sorted_json()).values()
    ((results),) = section.values()
    assert len(results) == 1
