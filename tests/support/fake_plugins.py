"""The text of a plugin file with a few architectures and tasks that need no torch and no data (grid
and command line)."""

from __future__ import annotations

PLUGIN = """
from harness.registry import Recipe, register, register_task
from harness.task import Task


class Base:
    types = ()
    trained_by = None

    @classmethod
    def reason_to_skip(cls, task, hyperparameters):
        if task.type not in cls.types:
            return f"gives what {task.type} cannot use"
        return "reads no audio" if task.id == "toy_sound" else None

    @classmethod
    def reader_and_view(cls, task, hyperparameters):
        return None, None


@register("toy_text", name="Toy", kind="text", paper="Nobody 2020", source="test", year=2020)
@register("toy_wide", name="Toy, wide", kind="text", paper="Nobody 2020", source="test", year=2020,
    hyperparameters={"hidden": 999})
class Toy(Base):
    types = ("classify",)

    def __init__(self, width, classes, hidden=300, dropout=0.5, windows=(3, 4), mode="max", deep=False, clip=None):
        pass


@register("toy_seq", name="Toy sequence", kind="seq", paper="Nobody 2021", source="test", year=2021,
    recipe=Recipe(lr=0.25))
class ToySequence(Base):
    types = ("classify", "tag")

    def __init__(self, width, hidden=64):
        pass


@register("toy_fit", name="Toy counts", kind="fit", paper="Nobody 1999", source="test", year=1999)
class ToyCounts(Base):
    types = ("classify", "tag")

    def __init__(self, alpha=1.0, seed=0):
        pass


@register_task(
    "toy_topic", name="Topics", type="classify", metrics=("accuracy",), main_metric="accuracy",
    sizes={"train": 9}, epochs=7, protocol="-"
)
@register_task(
    "toy_sound", name="Sounds", type="classify", metrics=("accuracy",), main_metric="accuracy",
    sizes={"train": 9}, epochs=7, protocol="-"
)
@register_task(
    "toy_tags", name="Tags", type="tag", metrics=("span_f1",), main_metric="span_f1",
    sizes={"train": 9}, epochs=7, protocol="-"
)
class ToyTask(Task):
    inputs = ("text",)

    def mini(self, split):
        return [{"id": f"{n}", "text": ["a", "film"], "label": "ab"[n % 2], "tags": ["O", "O"]} for n in range(9)]

    def local(self, folder, split):
        return self.mini(split)
"""
