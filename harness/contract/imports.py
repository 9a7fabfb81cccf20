"""The check that importing a plugin leaves the process as it was."""

from __future__ import annotations

import importlib.util
import random
import sys
from typing import Any

import numpy as np
import torch

from harness import registry
from harness.contract.base import require
from harness.contract.process import Watch
from harness.registry import Entry


def changes_nothing(entry: Entry) -> None:
    """Import the plugin's file once more: settings of the process, its threads and its random
    generators stay."""
    registry.load(entry)  # what it imports for the first time is not its own doing
    generators = _generators()
    with Watch() as watch:
        again(entry)
    watch.require_bounded()
    watch.require_endable()
    require(_generators() == generators, "a global random generator was used")


def again(entry: Entry) -> Any:
    """The plugin's class from its file imported once more: nothing that an object of the other one
    has done is left in it, as in a new process."""
    spec = importlib.util.spec_from_file_location("archbench_contract_import", entry.file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its annotations up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return getattr(module, entry.class_name)


def _generators() -> tuple[bytes, ...]:
    """States of the global random generators of torch, numpy and Python."""
    numpy_state = np.random.get_state(legacy=False)["state"]  # drawing moves "pos", and "key" once in 624 draws
    return (
        torch.get_rng_state().numpy().tobytes(),
        numpy_state["key"].tobytes() + bytes(str(numpy_state["pos"]), "ascii"),
        bytes(str(random.getstate()), "ascii"),
    )
