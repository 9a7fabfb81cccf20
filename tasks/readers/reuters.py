"""Reuters-21578: 22 SGML files in Latin-1, each with up to 1,000 documents (Lewis 1997)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import DataError
from tasks.readers.tarred import files_in

_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>([^<]+)</D>")
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+>")


class Document(NamedTuple):
    """A document: its number in the corpus, whether indexers looked at its topics (``indexed``),
    its part in Lewis's split (TRAIN, TEST or NOT-USED), its topics and its text."""

    id: str
    indexed: bool
    part: str
    topics: tuple[str, ...]
    text: str


def documents(path: Path) -> Iterator[Document]:
    """Documents of the archive, in its order; the text is title, author, dateline and body in
    one.

    Raises :class:`DataError` for a document that has no end, or lacks a text, its topics or one of
    the attributes TOPICS, LEWISSPLIT and NEWID.
    """
    for name, content in files_in(path, "*reut2-*.sgm", encoding="latin-1"):
        found = list(_DOCUMENT.finditer(content))
        if len(found) != content.count("<REUTERS"):
            raise DataError(
                f"{path}, {name}: {content.count('<REUTERS')} documents begin, but {len(found)} end with </REUTERS>"
            )
        for number, match in enumerate(found, 1):
            attributes = dict(_ATTRIBUTE.findall(match[1]))
            topics, text = _TOPICS.search(match[2]), _TEXT.search(match[2])
            missing = [name for name in ("TOPICS", "LEWISSPLIT", "NEWID") if name not in attributes]
            missing += [f"<{name}>" for name, part in (("TOPICS", topics), ("TEXT", text)) if part is None]
            if topics is None or text is None or missing:
                raise DataError(f"{path}, {name}, document {number}: no {', '.join(missing)}")
            yield Document(
                attributes["NEWID"],
                attributes["TOPICS"] == "YES",
                attributes["LEWISSPLIT"],
                tuple(map(html.unescape, _TOPIC.findall(topics[1]))),
                " ".join(html.unescape(_TAG.sub(" ", text[1])).split()),
            )
