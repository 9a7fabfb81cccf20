"""SQuAD's official JSON, versions 1.1 and 2.0 (Rajpurkar et al. 2016, 2018): articles, paragraphs, questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.task import DataError, Row
from tasks.readers.lines import parse_json


class Question(NamedTuple):
    """A question: the title of its article, its row, and its JSON object with whatever else a file says of it."""

    article: str
    row: Row
    source: dict[str, Any]


def questions(path: Path) -> Iterator[Question]:
    """All questions of a file, with columns id, passage, question, answers.

    Raises :class:`DataError` for a file of another layout, and naming the question where an answer is not at its offset or
    ``is_impossible`` (false in version 1.1) says otherwise than the answers do.
    """
    where = str(path)
    try:
        for article in parse_json(path)["data"]:
            where = f"{path}, article {article['title']!r}"
            for paragraph in article["paragraphs"]:
                passage = paragraph["context"]
                for source in paragraph["qas"]:
                    where = f"{path}, question {source['id']}"
                    answers = {
                        "text": [answer["text"] for answer in source["answers"]],
                        "start": [answer["answer_start"] for answer in source["answers"]],
                    }
                    check_answers(where, passage, answers, answerable=not source.get("is_impossible", False))
                    row = {"id": source["id"], "passage": passage, "question": source["question"], "answers": answers}
                    yield Question(article["title"], row, source)
    except (KeyError, TypeError) as error:
        raise DataError(f"{where}: {type(error).__name__} {error}; expected data > paragraphs > qas > answers as in SQuAD") from error


def check_answers(where: str, passage: str, answers: dict[str, list[Any]], answerable: bool) -> None:
    """Raise :class:`DataError` unless every answer stands in the passage at its offset, and there is one just when answerable."""
    if bool(answers["text"]) != answerable:
        raise DataError(f"{where}: {len(answers['text'])} answers, but the question is marked {'' if answerable else 'un'}answerable")
    for text, start in zip(answers["text"], answers["start"], strict=True):
        found = passage[start : start + len(text)]
        if start < 0 or not text or found != text:
            raise DataError(f"{where}: the answer {text!r} is not at offset {start} of its passage, where {found!r} stands")


def paragraph_key(row: Row) -> str:
    """Letters and digits of the passage in lower case: the same for a paragraph in raw, tokenised and lower-cased form."""
    return "".join(filter(str.isalnum, row["passage"].lower()))
