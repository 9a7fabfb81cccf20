"""The check that importing a plugin leaves the process as it was."""

from __future__ import annotations

import importlib.util
import random
import sys

import numpy as np
import torch

from harness import registry
from harness.contract.base import require
from harness.registry import ArchitectureEntry


def changes_nothing(entry: ArchitectureEntry) -> None:
    """Import the plugin's file once more: defaults of torch and random generators stay."""
    registry.load(entry)  # what it imports for the first time is not its own doing
    defaults, generators = _defaults(), _generators()
    spec = importlib.util.spec_from_file_location("archbench_contract_import", entry.file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its annotations up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    require(
        _defaults() == defaults, f"default dtype, threads or gradient mode changed from {defaults} to {_defaults()}"
    )
    require(_generators() == generators, "a global random generator was used")


def _defaults() -> tuple[torch.dtype, int, bool]:
    return torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()


def _generators() -> tuple[bytes, ...]:
    """States of the global random generators of torch, numpy and Python."""
    numpy_state = np.random.get_state(legacy=False)["state"]  # drawing moves "pos", and "key" once in 624 draws
    return (
        torch.get_rng_state().numpy().tobytes(),
        numpy_state["key"].tobytes() + bytes(str(numpy_state["pos"]), "ascii"),
        bytes(str(random.getstate()), "ascii"),
    )
