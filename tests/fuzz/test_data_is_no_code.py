"""Data cannot become code: what the sources never call, what servers listen on, and what is
downloaded."""

from __future__ import annotations

import ast
import http.server
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

import leaderboard
from harness import registry
from harness.cli import app
from harness.cli.scaffold import write
from harness.errors import UsageError
from harness.tracking import ui

ROOT = Path(leaderboard.__file__).resolve().parent
SOURCES = [
    ROOT / "leaderboard.py",
    *(file for folder in ("archbench", "harness", "architectures", "tasks") for file in (ROOT / folder).rglob("*.py")),
]
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
EXTRACTING = {"extract", "extractall", "unpack_archive"}


def faults(source: str) -> list[str]:
    """What a source text does that could turn data into code, or unpack an archive to disk."""
    found = []
    for node in ast.walk(ast.parse(source)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [f"import of {module}" for module in modules if module.partition(".")[0] in FORBIDDEN_MODULES]
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if not owner and called in FORBIDDEN_NAMES:
            found.append(f"{called}()")
        if called in EXTRACTING:
            found.append(f"{owner}.{called}()")
        if owner == "torch" and called == "load" and given.get("weights_only") != "True":
            found.append("torch.load without weights_only=True")
        if called == "load_from_checkpoint" and given.get("weights_only") != "True":
            found.append("load_from_checkpoint without weights_only=True")
        if owner in ("np", "numpy") and called == "load" and given.get("allow_pickle", "False") != "False":
            found.append("np.load with allow_pickle")
        if given.get("trust_remote_code", "False") != "False":
            found.append(f"{called} with trust_remote_code")
        if called == "AutoModel.from_pretrained" or (owner.startswith("Auto") and called == "from_pretrained"):
            found += (
                []
                if given.get("trust_remote_code") == "False"
                else [f"{owner}.from_pretrained without trust_remote_code=False"]
            )
        if called == "load_dataset" and "revision" not in given:
            found.append("load_dataset without a pinned revision")
        if given.get("shell", "False") != "False" or (owner == "os" and called in ("system", "popen")):
            found.append(f"{called} through a shell")
    return found


def test_no_source_turns_data_into_code():
    """A checkpoint, cache or download from elsewhere must not run anything here."""
    assert len(SOURCES) > 50
    found = {str(file.relative_to(ROOT)): bad for file in SOURCES if (bad := faults(file.read_text(encoding="utf-8")))}
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from yaml import load",
        "eval('1')",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "np.load(x, allow_pickle=True)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)",
        "AutoTokenizer.from_pretrained(x)",
        "datasets.load_dataset(x)",
        "archive.extractall(x)",
        "subprocess.run(x, shell=True)",
    ],
)
def test_the_scan_sees_each_of_them(source):
    assert faults(source)


def test_the_scan_lets_sound_calls_pass():
    assert not faults(
        "torch.load(x, weights_only=True)\nmodel.eval()\nre.compile(x)\nnp.load(x,"
        " allow_pickle=False)\nast.literal_eval(x)"
    )


def test_lightning_resumes_by_weights_only(tmp_path):
    """Resuming hands the file to Lightning, which must not unpickle either: a checkpoint that would
    run something is refused."""
    import pytorch_lightning as pl
    import torch
    from pytorch_lightning.demos.boring_classes import BoringModel

    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'ran'}",)

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = pl.Trainer(accelerator="cpu", max_steps=1, default_root_dir=tmp_path, **quiet)
    torch.save({"state_dict": {}, "epoch": 0, "x": Runs()}, tmp_path / "last.ckpt")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        trainer.fit(BoringModel(), ckpt_path=str(tmp_path / "last.ckpt"))
    assert not (tmp_path / "ran").exists()


def test_every_hub_data_set_is_pinned():
    """A branch could be changed under us; a commit cannot."""
    for id, entry in registry.entries("tasks").items():
        hub = registry.load(entry).hub
        assert hub is None or re.fullmatch(r"[0-9a-f]{40}", hub.revision), id


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", "", "Ä", "x.y", "class", "x\n", "a\0b", "-x"])
def test_a_new_plugin_cannot_leave_its_folder(tmp_path, name):
    for arguments in ((name, "text", "mine"), ("fine_name", "text", name)):
        with pytest.raises(UsageError, match=r"lower-case letters"):
            write(*arguments, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_leaderboard_is_served_to_this_machine_alone(tmp_path, monkeypatch, capsys):
    addresses = []
    monkeypatch.setattr(
        http.server.ThreadingHTTPServer,
        "serve_forever",
        lambda server: addresses.append(server.socket.getsockname()[0]),
    )
    leaderboard.serve(tmp_path)
    assert addresses == ["127.0.0.1"] and "http://127.0.0.1:" in capsys.readouterr().out


def test_mlflow_is_asked_to_serve_this_machine_alone(tmp_path, monkeypatch):
    asked = []

    class Asked(Exception):
        """The command was seen; no server is needed."""

    def start(command, **_):
        asked.extend(command)
        raise Asked

    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ui.signal, "signal", lambda *_: None)
    with pytest.raises(Asked):
        ui.serve(tmp_path, 1, pytest.fail)
    assert asked[asked.index("--host") + 1] == "127.0.0.1"
    assert "--serve-artifacts" not in asked
    options = CliRunner().invoke(app, ["ui", "--help"]).output
    assert "--host" not in options


@pytest.mark.skipif(
    "not int(os.environ.get('ARCHBENCH_FUZZ', '0'))", reason="starts MLflow (half a minute): set ARCHBENCH_FUZZ"
)
def test_mlflow_listens_on_this_machine_alone(tmp_path):
    """The sockets of the real server and its children."""
    from harness.tracking.database import default_uri
    from harness.tracking.mlflow_runs import Tracker

    Tracker(default_uri(tmp_path))
    command = [
        sys.executable,
        "-c",
        f"from harness.tracking.ui import serve; from pathlib import Path; serve(Path({str(tmp_path)!r}), 5917, print)",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        timer = threading.Timer(90, server.kill)
        timer.start()
        try:
            assert "Ctrl-C" in server.stdout.readline()
            time.sleep(0.5)
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            listening = [
                c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN
            ]
            assert set(listening) == {"127.0.0.1"}
        finally:
            timer.cancel()
            server.terminate()
