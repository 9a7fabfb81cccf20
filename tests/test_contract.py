"""Every plugin keeps to the contract, and the contract catches plugins that do not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from harness import registry
from harness.contract import check

ARCHITECTURES = registry.entries("architectures")


@pytest.mark.parametrize("id", ARCHITECTURES)
def test_plugin_keeps_to_the_contract(id: str) -> None:
    """A model that fails here would give wrong numbers: padding in its scores, parameters that
    never train, no determinism."""
    failed = [f"{result.name}: {result.message}" for result in check(ARCHITECTURES[id]) if not result.passed]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("sort", ["architectures", "tasks"])
def test_what_the_listing_parsed_is_what_is_registered(sort: registry.Sort) -> None:
    """`archbench list` reads source text; it must not tell another story than the imported
    plugin."""
    for id, entry in registry.entries(sort).items():
        registry.load(entry)
        assert dict(entry.options) == registry.registered(sort, id), id


SOUND = """
import torch
from harness.kinds import TextEncoder
from harness.registry import register

@register("plugin_under_test", name="Test", kind="text", paper="none", source="test", year=2026)
class Encoder(TextEncoder):
    def __init__(self, width: int, hidden: int = 16):
        super().__init__()
        self.hidden = torch.nn.GRU(width, hidden, batch_first=True)
        self.size = hidden

    def forward(self, words):
        states = self.hidden(words.vectors)[0]
        {body}
"""

MASKED = "return states.masked_fill(~words.mask[..., None], -torch.inf).amax(1)"
FAULTS = {
    "padding changes nothing": "return states.sum(1) / states.shape[1]",
    "reordering a batch changes nothing": f"{MASKED} + torch.arange(len(states))[:, None]",
    "every parameter gets a gradient": "return states.detach().masked_fill(~words.mask[..., None], -torch.inf).amax(1)",
    "same seed, same result": f"import time; {MASKED} * time.perf_counter()",
    "finite loss and a prediction per row": f"{MASKED} / 0",
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Registers the test plugin with a given last line of its forward pass."""

    def write(body: str) -> registry.Entry:
        file = tmp_path / "plugin_under_test.py"
        file.write_text(textwrap.dedent(SOUND).format(body=body))
        monkeypatch.setattr(registry, "_plugins", [file])
        return registry.entry("architectures", "plugin_under_test")

    return write


@pytest.mark.parametrize("name", FAULTS)
def test_contract_catches(plugin, name: str) -> None:
    """Each kind of unsound plugin fails the check that is named after its fault."""
    failed = {result.name.partition(": ")[2] for result in check(plugin(FAULTS[name])) if not result.passed}
    assert name in failed


def test_sound_plugin_passes(plugin) -> None:
    """The faults above are caught for what they are: the same plugin without one passes."""
    assert [result for result in check(plugin(MASKED)) if not result.passed] == []
