"""Examples in docstrings: what a reader copies works, and prints what is shown."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = [file for package in ("archbench", "harness") for file in sorted((ROOT / package).rglob("*.py"))]
MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in FILES
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # where the results of an example lie
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed


def test_the_library_has_an_example():
    assert "archbench" in MODULES and len(MODULES) > 5
