"""The check that importing a plugin leaves the process as it was."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
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
    return getattr(_module(entry), entry.class_name)


@contextmanager
def loaded_again(entry: Entry) -> Iterator[None]:
    """Give the class of :func:`again` to all that load the plugin meanwhile."""
    name = registry.load(entry).__module__
    before, sys.modules[name] = sys.modules[name], _module(entry)
    try:
        yield
    finally:
        sys.modules[name] = before


def _module(entry: Entry) -> ModuleType:
    """The plugin's file, imported once more, in the package of the first one: it may import its
    neighbours by a dot."""
    package = registry.load(entry).__module__.rpartition(".")[0]
    spec = importlib.util.spec_from_file_location(f"{package}.archbench_contract_import".lstrip("."), entry.file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its annotations up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def _generators() -> tuple[bytes, ...]:
    """States of the global random generators of torch, numpy and Python."""
    numpy_state = np.random.get_state(legacy=False)["state"]  # drawing moves "pos", and "key" once in 624 draws
    return (
        torch.get_rng_state().numpy().tobytes(),
        numpy_state["key"].tobytes() + bytes(str(numpy_state["pos"]), "ascii"),
        bytes(str(random.getstate()), "ascii"),
    )
