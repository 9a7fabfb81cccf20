"""Where each architecture drops numbers, against a table: which tensor, at which rate, and whose
decision is one.

``dropouts.csv`` has a line for each place: the ids of the architectures (or input sources); the
modules or inputs whose ``numbers`` are dropped, and what they are ``read_by`` next, each by its
name in the encoder; the option that is the ``rate``; the ``mask``; and the ``source``. Inputs stand
in brackets; ``[each]`` is a line for each of them, and a place whose numbers are computed of some
inputs alone names them behind. "own" is a mask with a decision for each number, "one for all words"
has one decision for the words of a text, "reused" is one that is drawn once and laid on several
tensors, "2 times" and "each step" one that is drawn as often in a pass (for each text, layer or
word), "unscaled" one whose kept numbers stay as they are. "within lstm" is what torch does in one
function.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
import torch

from harness import registry
from harness.contract import cases, inputs
from harness.contract.fitted import FittedCase
from harness.contract.trained import TrainedCase
from harness.registry import ArchitectureEntry, Entry, InputEntry
from harness.running.grid import hyperparameters, input_settings
from tests.support.dropouts import RATES, Draw, Place, of_a_fit, of_a_pass, options, places, set_rates

Tried = TrainedCase | FittedCase
TABLE = Path(__file__).with_name("dropouts.csv")
SHIPPED = Path(__file__).parents[2] / "architectures"
SEVERAL_OUTPUTS = ("plm",)
"""Kinds whose encoder answers some tasks from another of its outputs: all its tasks are tried."""

with TABLE.open(newline="", encoding="utf-8") as file:
    LINES = list(csv.DictReader(file))

ENTRIES: dict[str, Entry] = {
    id: e for id, e in registry.entries("architectures").items() if e.file.is_relative_to(SHIPPED) and e.kind != "floor"
}
ENTRIES |= {id: e for id, e in registry.entries("inputs").items() if e.file.is_relative_to(SHIPPED)}


TRAINED = [
    id
    for id, e in ENTRIES.items()
    if getattr(e, "kind", "") != "fit" or "dropout" in e.file.read_text(encoding="utf-8")
]
"""All but the systems that are fitted in a way of their own and have no dropout."""


@functools.cache
def dropout_options(id: str) -> list[str]:
    """The dropout options of an architecture or input source; of a regime, those of what it
    trains."""
    entry = ENTRIES[id]
    if isinstance(entry, InputEntry):
        return options(input_settings(entry))
    assert isinstance(entry, ArchitectureEntry)
    settings = hyperparameters(entry)
    return dropout_options(settings["wraps"]) if entry.kind == "regime" else options(settings)


def high(id: str) -> dict[str, float]:
    """A rate for each dropout option, no two alike."""
    return dict(zip(dropout_options(id), RATES, strict=False))


def lines_of(id: str) -> set[Place]:
    """The places that the table has for an id."""
    return {
        Place(line["numbers"], line["read_by"], line["rate"], line["mask"])
        for line in LINES
        if id in line["architectures"].split()
    }


@contextmanager
def cases_of(id: str) -> Iterator[list[Tried]]:
    """The mini tasks on which an architecture is tried."""
    entry = ENTRIES[id]
    if isinstance(entry, InputEntry):
        with inputs.case_of(entry) as case:
            yield [case]
    else:
        assert isinstance(entry, ArchitectureEntry)
        yield list(islice(cases(entry), None if entry.kind in SEVERAL_OUTPUTS else 1))


def draws_at(case: Tried, rates: dict[str, float]) -> list[Draw]:
    """The draws of a pass in training, or of a whole fit, whose dropout options have these
    rates."""
    set_rates(case, rates)
    return of_a_fit(case) if isinstance(case, FittedCase) else of_a_pass(case, training=True)


Dropped = tuple[str, list[tuple[Tried, list[Draw]]]]


@pytest.fixture(scope="module", params=TRAINED)
def dropped(request: pytest.FixtureRequest) -> Iterator[Dropped]:
    """An architecture, and its passes in training at high rates."""
    with cases_of(request.param) as tried:
        yield request.param, [(case, draws_at(case, high(request.param))) for case in tried]


def test_an_architecture_drops_what_the_table_says(dropped: Dropped) -> None:
    """Dropout of another tensor, or of whole words in the place of numbers, is another training:
    the row of the leaderboard would not be the paper's system."""
    id, in_training = dropped
    rates = high(id)
    found = set().union(*(places(case, draws, rates) for case, draws in in_training))
    wanted = lines_of(id)
    told = [f"not in the table: {place}" for place in sorted(found - wanted)]
    told += [f"not found: {place}" for place in sorted(wanted - found)]
    assert not told, "\n".join([id, *told])


def test_the_share_of_zeros_is_the_rate(dropped: Dropped) -> None:
    """A rate that is taken for the share that is kept, or halved on its way, makes two options of
    one."""
    drawn: dict[float, list[torch.Tensor]] = {}
    for _, draws in dropped[1]:
        for draw in draws:
            if draw.kept is not None and draw.rate in RATES:
                drawn.setdefault(draw.rate, []).append(draw.decisions())
    for rate, masks in drawn.items():
        decisions = torch.cat(masks)
        share, expected_error = 1 - decisions.float().mean().item(), math.sqrt(rate * (1 - rate) / len(decisions))
        assert abs(share - rate) < 4 * expected_error, f"{share:.3f} of {len(decisions)} are zero, not {rate}"


def test_nothing_is_dropped_in_evaluation(dropped: Dropped) -> None:
    """Answers would differ from one time to the next, and scores would be too low."""
    id, in_training = dropped
    for case, _ in in_training:
        set_rates(case, high(id))
        assert isinstance(case, FittedCase) or not of_a_pass(case, training=False)


def test_rates_of_zero_drop_nothing(dropped: Dropped) -> None:
    """Protocol equal sets an architecture's own rates to 0: one that is written into the code
    would go on there."""
    id, in_training = dropped
    rates = dict.fromkeys(dropout_options(id), 0.0)
    if not rates:  # what such a one drops, the table would have to say
        return
    others = {place for place in lines_of(id) if place.rate not in rates}
    found = set[Place]()
    for case, _ in in_training:
        found |= places(case, draws_at(case, rates), {})
    assert found == others


def test_each_option_named_dropout_has_a_line() -> None:
    """An option that drops nothing would stand in records as if it did."""
    without = {f"{id}: {name}" for id in ENTRIES for name in dropout_options(id)}
    without -= {f"{id}: {place.rate}" for id in TRAINED for place in lines_of(id)}
    assert not without


def test_each_line_has_its_ids_an_option_and_a_source() -> None:
    """A line of an id that is gone is looked at by nobody."""
    told = []
    for number, line in enumerate(LINES, 2):
        ids = line["architectures"].split()
        told += [f"{TABLE.name}:{number}: {id} is not registered" for id in ids if id not in ENTRIES]
        told += [f"{TABLE.name}:{number}: no source"] if not line["source"] else []
        if set(line) != {"architectures", *Place._fields, "source"} or None in line.values():
            told.append(f"{TABLE.name}:{number}: not six columns")
    assert not told
