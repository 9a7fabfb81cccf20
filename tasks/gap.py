"""GAP: which of two names does a pronoun stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import DataError
from harness.mentions import CANDIDATES, NEITHER, PRONOUN
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task
from harness.views.base import words_of
from tasks.mini import mentions
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find

_HEADER = (
    "ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL",
)  # fmt: skip
_FILES: dict[Split, str] = {"train": "development", "dev": "validation", "test": "test"}
_TRUTHS = {"TRUE": True, "FALSE": False}


@register_task(
    "gap",
    name="GAP",
    type="classify",
    metrics=("mention_f1", "mention_f1_feminine", "mention_f1_masculine", "accuracy"),
    main_metric="mention_f1",
    sizes={"train": 2000, "dev": 454, "test": 2000},
    budgets={
        "small": Budget(
            6,
            examples=2000,
            min_steps=400,
            batch_size=32,
            reason="2,000 texts are all there are: as many passes as half a core minute allows",
        ),
        "full": Budget(
            12,
            min_steps=750,
            batch_size=32,
            reason="few texts, and words for persons must be learnt from them",
        ),
    },
    # not measured.
    dropout=0.1,
    protocol=(
        "The official development part (2,000 texts) is our train, the validation part (454) dev, the test part (2,000)"
        " test. Pronoun and names are marked in the text by words of their own. A prediction is one name or neither"
        " (no text has both), and F1 counts the decisions on both names, as the authors' script does; with pronouns of"
        " women alone and of men alone beside it. Page titles and addresses are not shown."
    ),
)
class Gap(Task):
    """Ambiguous pronouns of Wikipedia, as many of women as of men (Webster et al. 2018)."""

    marks_mentions = True

    def mini(self, split: Split) -> Iterable[Row]:
        return mentions.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return _rows(find(folder / "gap", f"gap-{_FILES[split]}.tsv"))


def _rows(path: Path) -> Iterator[Row]:
    for line, found in tab_separated(path, _HEADER):
        where = f"{path}, line {line}"
        places = {PRONOUN: _place(where, found, "Pronoun")}
        meant = [name for name in CANDIDATES if _truth(where, found, f"{name}-coref")]
        if len(meant) > 1:
            raise DataError(f"{where}: both names are marked TRUE, expected one at most")
        places |= {marks: _place(where, found, name) for name, marks in CANDIDATES.items()}
        label = meant[0] if meant else NEITHER
        yield {"id": found["ID"], "text": marked(found["Text"], places), "label": label}


def _place(where: str, found: dict[str, str], column: str) -> tuple[int, int]:
    """The characters at which a mention begins and ends."""
    words, offset = found[column], found[f"{column}-offset"]
    start = int(offset) if offset.isdecimal() else -1
    if start < 0 or found["Text"][start : start + len(words)] != words or not words:
        raise DataError(f"{where}: {column} {words!r:.80} does not stand at character {offset!r:.20} of the text")
    return start, start + len(words)


def _truth(where: str, found: dict[str, str], column: str) -> bool:
    if found[column] not in _TRUTHS:
        raise DataError(f"{where}: {column} {found[column]!r:.80}, expected TRUE or FALSE")
    return _TRUTHS[found[column]]


def marked(text: str, mentions: dict[tuple[str, str], tuple[int, int]]) -> list[str]:
    """Words of a text with marks around its mentions, each given by the characters at which it
    begins and ends.

    >>> marked("Ann left. She's ill.", {PRONOUN: (10, 13), CANDIDATES["A"]: (0, 3)})
    ['[a', 'Ann', 'a]', 'left', '.', '[p', 'She', 'p]', "'", 's', 'ill', '.']
    """
    words, done = list[str](), 0
    for (before, behind), (start, end) in sorted(mentions.items(), key=lambda each: each[1]):
        words += [*words_of(text[done:start]), before, *words_of(text[start:end]), behind]
        done = end
    return words + words_of(text[done:])
