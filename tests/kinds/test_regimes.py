"""Regimes: the architectures that they can wrap, and what is said of the others."""

from __future__ import annotations

import pytest

from harness import registry
from harness.errors import RegistryError
from harness.kinds import Regime

REGIMES = [e.id for e in registry.entries("architectures").values() if e.shipped and e.kind == "regime"]
TASK = "sst2"


@pytest.mark.parametrize("id", REGIMES)
@pytest.mark.parametrize(
    ("wraps", "why"),
    [
        ("naive_bayes", "wraps naive_bayes, which is not trained by gradients"),
        ("floor_majority", "wraps floor_majority, which is not trained by gradients"),
        ("cs_gan", "wraps cs_gan, which is itself a way of training"),
        ("itself", "wraps {id}, which is itself a way of training"),
    ],
)
def test_a_regime_that_wraps_what_cannot_be_wrapped_is_skipped_with_the_reason(id, wraps, why):
    """Whoever chose a wrong name for ``-o ID.wraps`` lost the whole grid to a traceback."""
    entry, task = registry.entry("architectures", id), registry.entry("tasks", TASK)
    regime = registry.load(entry)
    given = {**entry.hyperparameters, "wraps": id if wraps == "itself" else wraps}
    assert issubclass(regime, Regime)
    assert regime.reason_to_skip(task, given) == f"{why.format(id=id)}: name an encoder"
    assert regime.reader_and_view(task, given) == (None, None), "a protocol asks for the view first"


def test_a_regime_that_wraps_nothing_is_told_that_nothing_has_the_name():
    """``-o ID.wraps=None`` must be a message about the name, not a ``TypeError``."""
    regime = registry.load(registry.entry("architectures", "adversarial"))
    with pytest.raises(RegistryError, match="no architecture is called 'None'"):
        regime.reader({"wraps": None})
