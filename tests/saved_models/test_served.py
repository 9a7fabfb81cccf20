"""A kept model as MLflow's: what `mlflow models serve` answers with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest
from mlflow import pyfunc
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from harness.records import Store
from harness.tracking.artifacts import kept_model
from harness.tracking.database import default_uri
from harness.tracking.mlflow_runs import Tracker
from tests.saved_models.cells import kept_cell, loaded
from tests.support.servers import answers, free_port


@contextmanager
def served(model: str, tracking: str) -> Iterator[str]:
    """The address at which `mlflow models serve` answers for a model of a tracking store."""
    port = free_port()
    arguments = [
        "-m",
        "mlflow",
        "models",
        "serve",
        "-m",
        f"models:/{model}",
        "--env-manager",
        "local",
        "--port",
        str(port),
    ]
    # MLflow starts uvicorn by its name, as in an environment that is active.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": path}
    environment["MLFLOW_TRACKING_URI"] = tracking
    server = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield answers(f"http://127.0.0.1:{port}", server, "/ping")
    finally:
        with suppress(ProcessLookupError):  # it ended by itself, which is what the test tells then
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow and its server warn of their own code at import
def test_it_is_loaded_by_our_module_and_mlflows_server_answers(tmp_path: Path) -> None:
    """What a user types is `mlflow models serve`; it is a process of its own, which finds our
    loader module installed."""
    record = kept_cell("avg_vectors", "sst2", tmp_path / "results")
    results, uri = Store(tmp_path / "results"), default_uri(tmp_path / "results")
    tracker = Tracker(uri)
    tracker.log(record, [kept_model(results, record)])
    [file] = (results.folder / "mlartifacts").rglob("MLmodel")
    folder = file.parent
    assert folder.is_relative_to(results.folder / "mlartifacts" / "sst2" / "models")
    [run] = MlflowClient(uri).search_runs([tracker.experiments.of("sst2")], "tags.record_key != ''")
    logged = run.data.tags["model"]
    assert [output.model_id for output in run.outputs.model_outputs] == [logged]
    files = {path.name for path in folder.rglob("*")}
    assert {"MLmodel", "model.json", "weights.safetensors"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib", ".pt"))]
    model = pyfunc.load_model(str(folder))
    assert model.metadata.get_input_schema().input_names() == ["text"]
    texts = ["a warm film", "it is dull"]
    wanted = loaded(record, tmp_path / "results").answers([{"id": text, "text": text} for text in texts])
    assert model.predict(pd.DataFrame({"text": texts}))["prediction"].tolist() == [a["prediction"] for a in wanted]
    with served(logged, uri) as address:
        question = urllib.request.Request(
            f"{address}/invocations",
            data=json.dumps({"dataframe_records": [{"text": text} for text in texts]}).encode(),
            headers={"Content-Type": "application/json"},
        )
        found = json.load(urllib.request.urlopen(question, timeout=30))["predictions"]
    assert [each["prediction"] for each in found] == [each["prediction"] for each in wanted]
    assert all(sum(each["probabilities"].values()) == pytest.approx(1) for each in found)
    tracker.sync(Store(tmp_path / "empty"))
    assert MlflowClient(uri).get_logged_model(logged).status == "READY", "another folder's model stays"
    Store(results.folder).path(record).unlink()
    with pytest.warns(UserWarning, match="1 runs removed"):
        tracker.sync(results)
    with pytest.raises(MlflowException, match="not found"):
        MlflowClient(uri).get_logged_model(logged)
