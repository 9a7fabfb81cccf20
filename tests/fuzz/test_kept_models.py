"""Folders of kept models that were damaged, mixed up, or written by somebody else: a model, or an
error that names the folder, and nothing else.

A digest finds what happened by accident. Whoever writes a folder writes its digests too, so that
what is behind them is also tried with digests that are right.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ModelError, UnknownName
from harness.saved_models.folder import DESCRIPTION, STATE, WEIGHTS
from harness.saved_models.model import KeptModel, load
from harness.task import Row
from tests.fuzz.mutations import mutated, wrong_json
from tests.saved_models.cells import kept_cell, rows_of_test

fuzz = settings(settings.get_profile("fuzz"))
ARCHITECTURES = ("avg_vectors", "naive_bayes")
"""One that is trained, whose files are vocabularies and weights, and one that is fitted."""
REFUSED = (ModelError, UnknownName)
FILES = (DESCRIPTION, STATE, WEIGHTS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The files of a kept model of each architecture, by name."""
    results = tmp_path_factory.mktemp("results")
    records = {id: kept_cell(id, "sst2", results) for id in ARCHITECTURES}
    folders = {id: results / "models" / record.key for id, record in records.items()}
    return {id: {name: (folder / name).read_bytes() for name in FILES} for id, folder in folders.items()}


@pytest.fixture
def loaded(attempt: Callable[..., Any], tmp_path: Path) -> Callable[[dict[str, bytes]], KeptModel | None]:
    """The model that a folder of these files holds; None where it is refused."""

    def read(contents: dict[str, bytes]) -> KeptModel | None:
        folder = tmp_path / "model"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        names = (str(folder), "no architecture is called", "no problem is called")
        same = lambda first, second: repr(first.description) == repr(second.description)  # noqa: E731
        return attempt("kept models", lambda: load(folder), REFUSED, *names, same=same)

    return read


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return rows_of_test("sst2")[:4]


@pytest.fixture(scope="module")
def answers(kept: dict[str, dict[str, bytes]], rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Answers of the models as they were written, by architecture."""
    found = {}
    for id, contents in kept.items():
        folder = tmp_path_factory.mktemp(id)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        found[id] = load(folder).answers(rows)
    return found


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def signed(contents: dict[str, bytes], description: Any = None) -> dict[str, bytes]:
    """The files with digests that are right, and another description if one is given."""
    found = json.loads(contents[DESCRIPTION]) if description is None else description
    if isinstance(found, dict):
        found.pop("digest", None)
        if description is None:
            found["files"] = {name: digest(contents[name]) for name in (STATE, WEIGHTS)}
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        found["digest"] = digest(text.encode())
    return contents | {DESCRIPTION: json.dumps(found).encode()}


@pytest.mark.parametrize("id", ARCHITECTURES)
@pytest.mark.parametrize("name", FILES)
@fuzz
@given(data=st.data())
def test_a_damaged_file(kept, rows, answers, loaded, id, name, data):
    """What is read in spite of an accident is the model that was written."""
    model = loaded(kept[id] | {name: data.draw(mutated(kept[id][name], b","))})
    if model is not None:
        assert model.answers(rows) == answers[id]


@pytest.mark.parametrize("names", [(name,) for name in FILES] + [(STATE, WEIGHTS)], ids="-".join)
@pytest.mark.parametrize("with_digests", [False, True])
def test_files_of_another_model(kept, loaded, names, with_digests):
    ours, theirs = (kept[id] for id in ARCHITECTURES)
    mixed = ours | {name: theirs[name] for name in names}
    assert loaded(signed(mixed) if with_digests else mixed) is None


@pytest.mark.parametrize("id", ARCHITECTURES)
@fuzz
@given(data=st.data())
def test_a_state_of_another_form(kept, loaded, id, data):
    state = data.draw(wrong_json(json.loads(kept[id][STATE])))
    loaded(signed(kept[id] | {STATE: state.encode("utf-8", "surrogatepass")}))


@pytest.mark.parametrize("id", ARCHITECTURES)
@fuzz
@given(data=st.data())
def test_weights_of_another_form(kept, loaded, id, data):
    loaded(signed(kept[id] | {WEIGHTS: data.draw(mutated(kept[id][WEIGHTS], b","))}))


@pytest.mark.parametrize(
    "change",
    [
        {"training": {"\ud800": 1}},
        {"view": {"view": "Words", "\ud800": 1}},
        {"part": {"architecture": "avg_vectors", "version": 1, "settings": {"\ud800": 1}}},
        {"files": {STATE: "\ud800"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_name_that_cannot_be_printed(kept, loaded, change):
    """The message had half of a surrogate pair, which ended whoever printed it."""
    contents = kept["avg_vectors"]
    assert loaded(signed(contents, json.loads(contents[DESCRIPTION]) | change)) is None


@pytest.mark.parametrize("id", ARCHITECTURES)
@fuzz
@given(data=st.data())
def test_a_description_of_another_form(kept, loaded, id, data):
    text = data.draw(wrong_json(json.loads(kept[id][DESCRIPTION])))
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        loaded(kept[id] | {DESCRIPTION: text.encode("utf-8", "surrogatepass")})
    else:
        loaded(signed(kept[id], description))
