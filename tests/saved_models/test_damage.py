"""Kept models that are damaged, foreign or of another architecture are named, and nothing of theirs
is run."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from harness.errors import ArchbenchError, ModelError
from harness.records import Record
from harness.saved_models import folder as files
from harness.saved_models import storage
from harness.saved_models.model import load
from tests.saved_models.cells import kept_cell

PARTS = (files.DESCRIPTION, files.STATE, files.WEIGHTS)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Path]:
    results = tmp_path_factory.mktemp("results")
    return kept_cell("avg_vectors", "sst2", results), results


@pytest.fixture
def model(record: tuple[Record, Path], tmp_path: Path) -> Path:
    """A copy of a kept model, to be spoilt."""
    return shutil.copytree(record[1] / "models" / record[0].key, tmp_path / "model")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_off_is_named(model: Path, name: str, share: float) -> None:
    content = (model / name).read_bytes()
    (model / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelError, match=name):
        load(model)


@pytest.mark.parametrize("name", PARTS)
def test_a_file_with_one_other_byte_is_named(model: Path, name: str) -> None:
    """A disk that forgets would otherwise give other answers without a word."""
    content = bytearray((model / name).read_bytes())
    content[-40] ^= 1
    (model / name).write_bytes(content)
    with pytest.raises(ModelError, match=name):
        load(model)


@pytest.mark.parametrize("name", PARTS)
def test_a_file_that_is_missing_is_named(model: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(ModelError, match=f"{name}.*No such file"):
        load(model)


def test_a_pipe_in_the_place_of_a_file_does_not_hang(model: Path) -> None:
    (model / files.WEIGHTS).unlink()
    os.mkfifo(model / files.WEIGHTS)
    with pytest.raises(ModelError, match="a pipe or device, not a file"):
        load(model)


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"model\.json: No such file"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format": 2}', b"\x80\x04.", b'{"format": 1}', b"[" * 100_000]
)
def test_a_foreign_description_is_named(model: Path, content: bytes) -> None:
    (model / files.DESCRIPTION).write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.json"):
        load(model)


def rewritten(model: Path, state: object = None, **fields: object) -> None:
    """Write a model anew with other fields or another state, and digests that fit."""
    description = files.describe(model)
    old, weights = files.read(model, description)
    for name, value in fields.items():
        setattr(description, name, value)
    files.write(model, description, old if state is None else state, weights)


def test_a_model_of_another_version_of_its_architecture_is_refused(model: Path) -> None:
    """Its weights may have the same sizes and mean something else."""
    rewritten(model, part=files.describe(model).part.model_copy(update={"version": 99}))
    with pytest.raises(ModelError, match="version 99 of avg_vectors, and here is version 1: train it again"):
        load(model)


def test_a_model_of_other_code_answers_with_a_warning(model: Path) -> None:
    """Its author had edited `forward`, and it answered at chance without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(model)
    assert not storage.of_other_code(files.describe(model))
    origin = files.describe(model).origin
    not_here = origin.cell | {"task": "reviews_sealed"}  # as with one's own data: nobody asks for the task
    rewritten(model, origin=origin.model_copy(update={"code": "0" * 64, "cell": not_here}))
    assert storage.of_other_code(files.describe(model))
    with pytest.warns(match="the code of avg_vectors has changed since"):
        load(model)


def test_a_model_of_an_architecture_that_is_not_here_is_refused(model: Path) -> None:
    rewritten(model, part=files.describe(model).part.model_copy(update={"architecture": "avg_vector"}))
    with pytest.raises(ArchbenchError, match="no architecture is called 'avg_vector'; did you mean avg_vectors"):
        load(model)


def test_a_vocabulary_of_another_size_is_refused(model: Path) -> None:
    """Word 7 would be looked up in the place of another word."""
    state, _ = files.read(model, files.describe(model))
    view = {"words": [*state["view"]["words"], "more"], "counts": [*state["view"]["counts"], 1]}
    rewritten(model, {"view": view, "target": state["target"]})
    with pytest.raises(ModelError, match=r"table\.tuned\.weight has size .* in the file and size .* by its vocabulary"):
        load(model)


def test_weights_of_another_name_are_refused(model: Path) -> None:
    description = files.describe(model)
    state, weights = files.read(model, description)
    files.write(model, description, state, weights | {"extra": weights["head.output.bias"].clone()})
    with pytest.raises(ModelError, match="extra has size .* in the file and no such weights by its vocabulary"):
        load(model)


@pytest.mark.parametrize("state", [[], {}, {"view": 3, "target": {}}, {"view": {"words": 3}, "target": {"labels": []}}])
def test_a_state_of_another_form_is_refused(model: Path, state: object) -> None:
    rewritten(model, state)
    with pytest.raises(ModelError, match="its parts do not fit together"):
        load(model)


def test_the_view_of_another_architecture_is_refused(model: Path) -> None:
    rewritten(model, view={"view": "Characters"})
    with pytest.raises(ModelError, match="avg_vectors reads Words of text, and the kept view is 'Characters'"):
        load(model)


def test_a_file_cannot_name_what_is_made_of_it(record: tuple[Record, Path], tmp_path: Path) -> None:
    """A state that names a class or a function of its own choice is no value."""
    from harness.saved_models.values import unpacked

    for name in ("os.system", "sklearn.svm.LinearSVC", "function"):
        with pytest.raises(ValueError, match="is no type of a kept value"):
            unpacked({name: ["true"]}, {})


def test_loading_draws_no_random_numbers(model: Path) -> None:
    """A child's own training would depend on whether it has a parent."""
    import torch

    torch.manual_seed(3)
    load(model)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1))


def test_weights_are_plain_safetensors(model: Path, tmp_path: Path) -> None:
    """Other programs read them by their own library."""
    weights = load_file(model / files.WEIGHTS)
    assert {"table.tuned.weight", "head.output.weight"} <= set(weights)
    save_file(weights, tmp_path / "again")


def test_the_folder_is_replaced_as_a_whole(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up leaves the old model, or none, and never half of one."""
    description = files.describe(model)
    state, weights = files.read(model, description)
    before = {path.name: path.read_bytes() for path in model.iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(model, description, state, weights)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]
