"""A kept model as MLflow's: what `mlflow models serve` answers with."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from mlflow import pyfunc

from harness.records import Store
from harness.tracking.mlflow_runs import Tracker, kept_model
from tests.kept.cells import kept_cell, loaded


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow and its server warn of their own code at import
def test_it_is_loaded_by_our_module_and_the_scoring_server_answers(tmp_path: Path) -> None:
    """The application of `mlflow models serve`, asked over its own protocol."""
    from fastapi.testclient import TestClient
    from mlflow.pyfunc.scoring_server import init

    record = kept_cell("avg_vectors", "sst2", tmp_path / "results")
    results, uri = Store(tmp_path / "results"), f"sqlite:///{tmp_path / 'mlflow.db'}"
    tracker = Tracker(uri)
    tracker.log(record, model=kept_model(results, record))
    [file] = tmp_path.rglob("MLmodel")
    folder = file.parent
    assert folder.name == "model" and folder.is_relative_to(tmp_path / "mlartifacts")
    files = {path.name for path in folder.rglob("*")}
    assert {"MLmodel", "model.json", "weights.safetensors"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib", ".pt"))]
    model = pyfunc.load_model(str(folder))
    assert model.metadata.get_input_schema().input_names() == ["text"]
    texts = ["a warm film", "it is dull"]
    wanted = loaded(record, tmp_path / "results").answers([{"id": text, "text": text} for text in texts])
    assert model.predict(pd.DataFrame({"text": texts}))["prediction"].tolist() == [a["prediction"] for a in wanted]
    answer = TestClient(init(model)).post(
        "/invocations",
        content=json.dumps({"dataframe_records": [{"text": text} for text in texts]}),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()["predictions"]
    assert [each["prediction"] for each in found] == [each["prediction"] for each in wanted]
    assert all(sum(each["probabilities"].values()) == pytest.approx(1) for each in found)
