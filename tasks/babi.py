"""bAbI: questions about short stories, twenty skills."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import stories as mini_stories
from tasks.readers import hub
from tasks.readers.babi import member, row, stories
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find

if TYPE_CHECKING:
    import datasets

SKILLS = range(1, 21)


@register_task(
    "babi",
    name="bAbI",
    type="answer",
    version=2,
    metrics=("skill_accuracy", "skills_solved"),
    main_metric="skill_accuracy",
    sizes={"train": 18012, "dev": 1988, "test": 20000},
    budgets={
        "small": Budget(
            4,
            examples=4000,
            min_steps=500,
            batch_size=32,
            reason="about half a core minute for the median architecture",
        ),
        "full": Budget(
            20,
            min_steps=1500,
            batch_size=32,
            reason="twenty kinds of stories at once need many passes",
        ),
    },
    # on dev at .1, .3, .5: bilstm .267 .267 .278, kim_cnn_rand .405 .407 .350; memn2n, which looks
    # up and scores its answers by itself, has none.
    dropout=0.1,
    protocol=(
        "English, version 1.2, 1,000 training questions per skill. One model learns all twenty skills together; the"
        " score is the mean of their accuracies, and a skill is solved from .95. Dev is held out of train by whole"
        " stories, at most 10 % of each skill. An answer of several words is one word, as in the papers. Which facts"
        " support an answer is shown in training alone, to systems that declare it; these have a section of their own."
    ),
)
class Babi(Task):
    """Twenty kinds of questions about generated stories (Weston et al. 2015): the official train
    and test files."""

    hub = Hub(
        "facebook/babi_qa",
        "821006e33d6ff3674fd888792a4dd1c04648f69f",
        splits=(("train", "train"), ("dev", "train"), ("test", "test")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return mini_stories.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        archive = find(folder / "babi", "tasks_1-20_v1-2_en.zip")
        file = "test" if split == "test" else "train"
        for number in SKILLS:
            lines = member(archive, f"tasks_1-20_v1-2/en/qa{number}_", f"_{file}.txt")
            yield from _of_split(stories(lines, f"{archive}, qa{number} {file}", f"qa{number}"), split)

    def support(self, rows: Iterable[Row], tier: str, folder: Path | None) -> list[list[int]]:
        from tasks.mini import story_support
        from tasks.readers import babi_support

        if tier == "mini":
            return [story_support.facts(row) for row in rows]
        if tier == "hub":
            shown = babi_support.of_hub(self._download("train"))
        else:
            assert folder is not None  # the rows were read from there
            shown = babi_support.of_archive(find(folder / "babi", "tasks_1-20_v1-2_en.zip"), SKILLS)
        return [shown[row["id"]] for row in rows]

    def _download(self, split: Split) -> datasets.Dataset:
        """The twenty parquet files of the hub's conversion, a column ``skill`` added."""
        import datasets

        name = dict(self.hub.splits)[split]
        parts = []
        for number in SKILLS:
            files = f"en-qa{number}/{name}/*.parquet"
            part = datasets.load_dataset(self.hub.path, data_files=files, split="train", revision=self.hub.revision)
            parts.append(part.add_column("skill", [f"qa{number}"] * len(part)))
        return datasets.concatenate_datasets(parts)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        hub.require_columns(self.hub, rows, "story", "skill")
        told: dict[str, list[Row]] = {}
        for number, story in enumerate(rows):
            told.setdefault(story["skill"], []).extend(_questions(story["story"], story["skill"], number))
        for questions in told.values():
            yield from _of_split(questions, split)


def _questions(story: dict[str, list], skill: str, number: int) -> Iterable[Row]:
    """The questions of one story of the hub, whose lines are facts (type 0) and questions (type
    1)."""
    facts: list[str] = []
    for line, (kind, text, answer) in enumerate(zip(story["type"], story["text"], story["answer"], strict=True)):
        if kind == 0:
            facts.append(text.strip())
        else:
            yield row(f"{skill}-{number}-{line}", facts, text, answer, skill) | {"story": f"{skill}-{number}"}


def _of_split(rows: Iterable[Row], split: Split) -> list[Row]:
    """The rows of one skill that belong to train, dev or test; no story is in both train and
    dev."""
    rows = list(rows)
    first = {
        r["story"]: "\n".join(r["facts"]) for r in reversed(rows)
    }  # what a story tells before its first question names it
    chosen = rows
    if split != "test":
        train, dev = hold_out(rows, share=0.1, group=lambda r: first[r["story"]])
        chosen = train if split == "train" else dev
    return chosen
