"""The architectures to try, and their order: nothing is silently absent."""

from __future__ import annotations

import pytest

from harness import registry
from harness.errors import UnknownName
from harness.model_selection.candidates import candidates
from harness.running.estimate import measured_speeds
from tests.model_selection.conftest import reviews


def test_the_cheapest_comes_first_and_each_architecture_is_somewhere(own):
    """Other tools are blamed for models that are silently absent."""
    found, left_out = candidates("*", own(reviews(20)).entry, 1000)
    works = [each.work for each in found if not each.is_floor]
    assert works == sorted(works) and len(works) > 30
    assert all(each.is_floor for each in found[: len(found) - len(works)])
    models = {id for id, entry in registry.entries("architectures").items() if entry.kind != "floor"}
    assert {each.entry.id for each in found if not each.is_floor} | set(left_out) == models
    assert not {each.entry.id for each in found} & set(left_out)
    assert "texts of test" in left_out["text_gcn"]
    assert "tag" in left_out["bilstm_crf"]
    assert {each.entry.id for each in found if each.is_floor} >= {"floor_majority"}


def test_only_what_the_user_names_is_tried_beside_the_floors(own):
    task = own(reviews(20)).entry
    found, left_out = candidates("dan,*bayes", task, 1000)
    assert [each.entry.id for each in found if not each.is_floor] == ["naive_bayes", "dan"]
    assert left_out["bilstm"] == "not chosen by -a dan,*bayes"
    with pytest.raises(UnknownName, match="did you mean bilstm"):
        candidates("bilstn", task, 1000)


def test_more_rows_are_more_work_once_there_are_enough_steps(own):
    """The smallest number of steps costs the same for 100 rows and for 1,000."""
    task = own(reviews(20)).entry
    work = {rows: {e.id: w for e, w in candidates("dan", task, rows)[0]}["dan"] for rows in (100, 1000, 50_000)}
    assert work[100] == work[1000] < work[50_000] / 10


def test_every_architecture_has_a_speed():
    """One without would be tried last of all, or never."""
    shipped = {id for id, each in registry.entries("architectures").items() if each.shipped and each.kind != "floor"}
    assert shipped <= measured_speeds().keys(), "measure them: python -m tools.speed.models results/speed.json ID"
