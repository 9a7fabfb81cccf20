"""Token files of WikiText: lines of words, and a title of the first level before each article."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

END = "\n"
"""Word at the end of each line, empty ones included, as the published perplexities count it."""
_TITLE = re.compile(r"= [^=].* =")


def articles(lines: Iterable[str]) -> Iterator[list[str]]:
    """Words of each article, its empty lines and titles included.

    A title stands between two empty lines and in one pair of equals signs. Without the empty lines
    29 legends of tables in train would be titles too. What stands before the first title belongs to
    the first article.
    """
    stripped = [line.strip(" \n") for line in lines]
    starts = [number for number, line in enumerate(stripped) if _TITLE.fullmatch(line) and _alone(stripped, number)]
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(stripped)], strict=True):
        if start < end:
            yield [word for line in stripped[start:end] for word in (*filter(None, line.split(" ")), END)]


def _alone(lines: list[str], number: int) -> bool:
    return not any(lines[max(0, number - 1) : number] + lines[number + 1 : number + 2])
