"""Kept models as MLflow's: loaded by this module, with no pickle, and served by ``mlflow models
serve``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.saved_models.folder import describe
from harness.saved_models.model import KeptModel, load
from harness.saved_models.prediction import answers_to
from harness.saved_models.storage import asked_parents_of

ANSWERING = "model"
"""Folder of the model itself among those of MLflow's; its parents have their keys as names."""


class Served:
    """A kept model that answers data frames, as MLflow asks it to."""

    def __init__(self, model: KeptModel):
        self.model = model

    def predict(self, rows):  # without hints: MLflow would take them for a signature
        """A row for each answer to a data frame: its ``prediction``, and ``probability`` and
        ``probabilities`` as far as the model tells."""
        import pandas as pd

        return pd.DataFrame(list(answers_to(self.model, rows.to_dict("records"), "rows")))


def _load_pyfunc(path: str) -> Served:
    """The model in a folder of :func:`save`; MLflow calls the loader by this name."""
    return Served(load(Path(path) / ANSWERING))


def save(folder: Path, out: Path) -> None:
    """Write a kept model as one of MLflow's to ``out``, with the parents that it asks, a signature
    and an input example.

    Every column is a text: words are parted, and a recording is the path of a file.
    """
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    inputs = list(describe(folder).inputs)
    with TemporaryDirectory(prefix="archbench-model-") as whole:
        parents = {parent.name: parent for parent in _asked(folder)}
        for name, each in (parents | {ANSWERING: folder}).items():
            (Path(whole) / name).symlink_to(each.resolve())  # MLflow copies what it leads to
        mlflow.pyfunc.save_model(
            path=str(out),
            loader_module=__name__,
            data_path=whole,
            signature=ModelSignature(inputs=Schema([ColSpec(DataType.string, name) for name in inputs])),
            input_example=pd.DataFrame({name: [f"some {name}"] for name in inputs}),
            pip_requirements=["archbench"],
        )


def _asked(folder: Path) -> Iterator[Path]:
    """The folders of the kept models that the one in ``folder`` asks, and those that these ask."""
    for parent in asked_parents_of(describe(folder)).values():
        yield folder.parent / parent["key"]
        yield from _asked(folder.parent / parent["key"])
