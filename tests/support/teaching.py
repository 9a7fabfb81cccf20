"""A teacher and a student on plain text, as the harness makes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.problems import problem
from harness.problems.text_objective import PieceTarget
from harness.training.model import Model, build
from harness.views.subwords import Subwords
from tests.support.models import small

TEXTS = ["the cat sat on the mat and the dog sat on the cat", "a dog ran", "the mat"]


def view_of(*texts: str, size: int = 60, max_length: int = 24) -> Subwords:
    """A view that is fitted to the texts."""
    made = Subwords(size=size, max_length=max_length)
    made.fit(list(texts))
    return made


def on_text(architecture: Any, view: Subwords, stretch: float | None = 3.0, **sizes: Any) -> Model:
    """A model that learns from plain text, with weights far from uniform."""
    return small(build, architecture, problem("text"), sizes, view, PieceTarget(), 0, stretch=stretch)


def kept(model: Model, view: Subwords) -> Any:
    """The model as a parent is given to a child."""
    part = SimpleNamespace(architecture=type(model.encoder).__name__)
    return SimpleNamespace(model=model, view=view, description=SimpleNamespace(part=part))


def inherit(student: Model, parent: Any) -> None:
    """Give the teacher to both parts of a student, as a cell does."""
    for child in (student.encoder, student.head):
        assert "teacher" in child.takes
        child.inherit("teacher", parent, [])
