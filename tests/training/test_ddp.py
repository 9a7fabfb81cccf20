"""One cell on several devices: the same mathematics as on one, every example once, one record."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.cli import app
from harness.data.batches import Batches
from harness.errors import UsageError
from harness.objectives import Supervised
from harness.records import Store
from harness.running import devices
from harness.running.worker import train_along
from harness.training import fit_module
from harness.training.fit import fit, part
from harness.training.fit_module import FitModule
from harness.training.protocols import SMOKE
from tests.support.planned_cells import planned_cell
from tests.support.ranks import results_by_rank, share_batches_of_eight
from tests.support.toy_corpus import sentences, toy_corpus, toy_model, toy_task


def epoch(
    rows: int, batch_size: int, world: int, groups: np.ndarray | None = None, number: int = 0
) -> list[list[np.ndarray]]:
    """The row numbers of each batch, by process."""
    lengths = np.random.default_rng(1).integers(1, 40, rows)
    told = []
    for rank in range(world):
        batches = Batches(lengths, batch_size, lambda rows: rows, seed=0, groups=groups)
        batches.rank, batches.world, batches.epoch = rank, world, number
        told.append(list(batches))
        assert len(batches) == len(told[-1]), "Lightning stops after as many batches as it is told there are"
    return told


@pytest.mark.parametrize("rows", [16, 17, 31, 32, 33, 47, 48, 65, 100, 1000])
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_an_epoch_has_every_example_once_and_no_process_waits_for_another(rows, world):
    """A batch less on one process leaves the others waiting for ever; rows left out, or twice, are
    a different training set."""
    processes = epoch(rows, 16, world)
    assert len({len(batches) for batches in processes}) == 1
    batches = [batch for process in processes for batch in process]
    assert sorted(np.concatenate(batches)) == list(range(rows))
    assert 1 <= min(map(len, batches)) and max(map(len, batches)) <= 16, (
        "a device holds at most the batch that was asked for"
    )


@pytest.mark.parametrize("world", [2, 3])
def test_a_question_stays_with_its_candidates(world):
    groups = np.random.default_rng(0).integers(0, 23, 100)
    processes = epoch(100, 16, world, groups)
    batches = [set(groups[batch]) for process in processes for batch in process]
    assert sum(map(len, batches)) == len(set(groups)), "no group is in two batches"
    assert sorted(row for process in processes for batch in process for row in batch) == list(range(100))
    assert len({len(process) for process in processes}) == 1


def test_fewer_examples_than_devices_are_refused():
    with pytest.raises(ValueError, match=r"2 training examples cannot be shared by 3 devices.*--devices"):
        epoch(2, 16, 3)


class Watched(FitModule):
    """Notes how many numbers this process holds."""

    def on_train_start(self) -> None:
        self.held = sum((p.to_local() if hasattr(p, "to_local") else p).numel() for p in self.parameters())


def fitted(folder: Path, strategy: str, devices: int, epochs: int) -> tuple[dict, list, dict, int]:
    """The kept state, the curve, the parameters and the numbers held of a training by so many
    processes, of which this is one; the first has the parameters whole.

    Its global batches have 8 rows, which one process takes whole and each of two by half; the last
    one has 6, 3 and 3.
    """
    share_batches_of_eight(30, devices)
    corpus = toy_corpus(toy_task(train=sentences(30)))
    model = toy_model(corpus)
    model.encoder.head_max_norm = 0.4  # rows of the last layer are longer than that after the first steps
    name, lr = ("sgd", 0.5) if strategy == "ddp" else ("adam", 0.01)
    settings = dataclasses.replace(
        SMOKE, optimizer=name, lr=lr, batch_size=8 // devices, epochs=2, patience=9, clip=5.0
    )
    training = Watched(model, Supervised(), corpus.train, corpus.dev, settings, lr, 0, ["accuracy"], "accuracy", False)
    kept = fit(training, folder, devices, strategy, "32", epochs)
    part()
    parameters = training.state_dict() if training.global_rank == 0 else {}
    return kept, training.curve, {name: value.tolist() for name, value in parameters.items()}, training.held


def train(folder: Path, strategy: str, devices: int, epochs: int = 2) -> tuple[dict, list, dict, int]:
    """Result of the first of so many processes."""
    return results_by_rank(devices, fitted, folder, strategy, devices, epochs)[0]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_train_as_one_does_on_the_same_global_batches(strategy, tmp_path):
    """Two gloo processes, half of each batch on each: the averaged gradient is the gradient of the
    whole batch.

    Losses and parameters agree to 1e-6: sums of float32 taken in another order differ by some units
    in the last place (6e-8 of numbers about 1), and eight steps add few of these up.
    """
    kept_one, curve_one, one, held_one = train(tmp_path / "one", strategy, 1)
    kept_two, curve_two, two, held_two = train(tmp_path / "two", strategy, 2)
    assert "parallel" not in kept_one
    assert (kept_two["parallel"]["strategy"], kept_two["parallel"]["effective_batch_size"]) == (strategy, 8)
    assert held_two == held_one if strategy == "ddp" else 0.4 < held_two / held_one < 0.6, (
        "FSDP leaves each process half of the parameters"
    )
    for first, second in zip(curve_one, curve_two, strict=True):
        assert second["train_loss"] == pytest.approx(first["train_loss"], abs=1e-6)
        assert second["dev_loss"] == pytest.approx(first["dev_loss"], abs=1e-6)
        assert second["accuracy"] == first["accuracy"]
    assert curve_one[0]["train_loss"] - curve_one[1]["train_loss"] > 1e-3, (
        "it learnt something, so equal is not merely unchanged"
    )
    norms = np.linalg.norm(one["model.head.output.weight"], axis=1)
    assert norms.max() == pytest.approx(0.4, abs=1e-5), "the limit on the last layer's rows was reached"
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-6, err_msg=name)


def epochs_until_patience_ends(folder: Path, devices: int) -> int:
    """Epochs of a training by so many processes, of which this is one, whose first dev score stays
    the best. Its epochs have 4 batches; 8 are made in any case."""
    scores = iter([0.9, *[0.1] * 20])
    fit_module.score = lambda *_: {"accuracy": next(scores)}
    corpus = toy_corpus(toy_task(train=sentences(32)))
    settings = dataclasses.replace(SMOKE, batch_size=8, epochs=12, patience=2, min_steps=8)
    given = toy_model(corpus), Supervised(), corpus.train, corpus.dev, settings, 0.01, 0, ["accuracy"], "accuracy"
    training = FitModule(*given)
    fit(training, folder, devices, "ddp", "32", training.epochs)
    part()
    return len(training.curve)


@pytest.mark.slow
def test_patience_ends_two_processes_after_as_many_examples_as_one(tmp_path):
    """Each makes half of the smallest number of steps: patience waited for as many again, which may
    never come."""
    told = [
        results_by_rank(devices, epochs_until_patience_ends, tmp_path / str(devices), devices) for devices in (1, 2)
    ]
    assert told == [[4], [4, 4]]


@pytest.mark.slow
def test_a_sharded_fit_that_was_cut_goes_on_as_if_it_had_not_been(tmp_path):
    """Its checkpoints are whole, and weights and Adam's state are shared out again: bit by bit, or
    a pre-empted machine changes results."""
    train(tmp_path / "parts", "fsdp", 2, epochs=1)
    kept, curve, parameters, held = train(tmp_path / "parts", "fsdp", 2)
    kept_whole, curve_whole, whole, held_whole = train(tmp_path / "whole", "fsdp", 2)
    assert (kept, held) == (kept_whole, held_whole)
    assert [row | {"seconds": 0} for row in curve] == [row | {"seconds": 0} for row in curve_whole]
    assert len(curve) == 2
    assert parameters == whole


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", pytest.param("fsdp", marks=pytest.mark.minutes)])
def test_the_command_trains_a_cell_on_two_devices_and_scores_it_once(strategy, tmp_path):
    """A reader with parameters that its loss does not reach on this task, which stop the second
    step of plain DDP; in a job of SLURM, which starts one process and not as many as there are
    devices.
    """
    job = {
        "SLURM_NTASKS": "1",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": "grid",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
    }
    small = [f"--override=bidaf_self_attention.{name}=8" for name in ("hidden", "character_size", "filters")]
    command = [
        str(Path(sys.executable).parent / "archbench"),
        "run",
        "-a",
        "bidaf_self_attention",
        "-t",
        "squad1",
        "--max-train",
        "70",
        *small,
    ]
    settings = [
        "--devices",
        "2",
        "--strategy",
        strategy,
        "--mlflow",
        "none",
        "--timeout",
        "150",
        "--results",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, *settings], env=os.environ | job, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store(tmp_path)
    [record] = store.all()
    assert (record.status, record.devices) == ("ok", 2)
    ids, _ = store.load_predictions(record)
    assert len(ids) == len(set(ids)) == record.counts["test"], "scoring loses and doubles nothing"
    assert 0.0 <= record.scores["test"][record.main_metric] <= 1.0
    assert record.hyperparameters["training"]["batch_size"] == 32
    assert record.training["parallel"] == {
        "strategy": strategy,
        "processes": 2,
        "effective_batch_size": 64,
        "sampler": "whole batches in turn, none left out",
        "learning_rate": "as given, not scaled",
    }
    [log] = (tmp_path / "work" / "logs").iterdir()
    assert log.read_text().count("epoch 1:") == 1, "one process tells the progress"


def test_further_processes_get_the_cell_and_settings_that_the_first_one_has(make_cell, make_settings):
    """All of them: one that trained by other settings, or read a path as mere text, would break or
    bend the cell."""
    file = Path("/a folder/file")
    settings = make_settings(
        data_dir=file,
        vectors=file,
        plugins=(file, file),
        timeout=0.5,
        memory_limit_mib=100,
        strategy="ddp",
        needed=frozenset({"3f2a", "77e3"}),
    )
    cell = make_cell(hyperparameters={"training": {"learning_rates": [0.1]}}, devices=2)
    assert devices.from_json(devices.to_json(cell, settings)) == (cell, settings)
    assert devices.from_json(devices.to_json(cell, make_settings())) == (cell, make_settings())


@pytest.mark.parametrize("strategy", ["ddp_fork", "ddp_spawn", "deepspeed"])
def test_a_strategy_that_cannot_work_is_refused_before_anything_runs(strategy, tmp_path):
    with pytest.raises(UsageError, match=rf"--strategy {strategy}.*auto, ddp, fsdp"):
        app(
            ["run", "--devices", "2", "--strategy", strategy, "--results", str(tmp_path / "results")],
            standalone_mode=False,
        )
    assert not (tmp_path / "results").exists()


def test_a_precision_that_lightning_does_not_shard_is_refused_before_anything_runs(tmp_path):
    options = ["--devices", "2", "--strategy", "fsdp", "--precision", "64", "--results", str(tmp_path / "results")]
    with pytest.raises(UsageError, match=r"--precision 64.*32, bf16-mixed"):
        app(["run", *options], standalone_mode=False)
    assert not (tmp_path / "results").exists()


def test_a_further_process_leaves_the_group_before_it_ends(make_settings, tmp_path):
    """One that ends as a member is aborted by gloo now and then, and Lightning kills the cell."""
    store = (tmp_path / "store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        train_along(planned_cell("dan", "sst2"), make_settings())
        assert not torch.distributed.is_initialized()
    finally:
        part()
