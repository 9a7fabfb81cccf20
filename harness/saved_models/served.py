"""Kept models as MLflow's: loaded by this module, with no pickle, and served by ``mlflow models
serve``."""

from __future__ import annotations

from pathlib import Path

from harness.saved_models.folder import describe
from harness.saved_models.model import KeptModel, load
from harness.saved_models.prediction import answers_to


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
    """The model in a folder; MLflow calls the loader by this name."""
    return Served(load(Path(path)))


def save(folder: Path, out: Path) -> None:
    """Write a kept model as one of MLflow's to ``out``, with signature and input example.

    Every column is a text: words are parted, and a recording is the path of a file.
    """
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    inputs = list(describe(folder).inputs)
    mlflow.pyfunc.save_model(
        path=str(out),
        loader_module=__name__,
        data_path=str(folder),
        signature=ModelSignature(inputs=Schema([ColSpec(DataType.string, name) for name in inputs])),
        input_example=pd.DataFrame({name: [f"some {name}"] for name in inputs}),
        pip_requirements=["archbench"],
    )
