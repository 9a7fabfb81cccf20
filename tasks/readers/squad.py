"""SQuAD's official JSON, versions 1.1 and 2.0 (Rajpurkar et al. 2016, 2018): articles, paragraphs,
questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import DataError
from harness.task import Row
from tasks.readers.lines import parse_json, text


class Question(NamedTuple):
    """A question: its row, and its JSON object with whatever else a file says of it."""

    row: Row
    source: dict[str, Any]


def questions(path: Path) -> Iterator[Question]:
    """All questions of a file, with columns id, passage, question, answers and article (its title).

    Raises :class:`DataError` for a file of another layout, and naming the question where an answer
    is not at its offset or ``is_impossible`` (false in version 1.1) says otherwise than the answers
    do.
    """
    where = str(path)
    try:
        for article in parse_json(path)["data"]:
            title = text(article["title"], "title")
            where = f"{path}, article {title!r:.80}"
            for paragraph in article["paragraphs"]:
                passage = text(paragraph["context"], "context")
                for source in paragraph["qas"]:
                    id, question = text(source["id"], "id"), text(source["question"], "question")
                    where = f"{path}, question {id:.80}"
                    answers: dict[str, list[Any]] = {
                        "text": [text(answer["text"], "text") for answer in source["answers"]],
                        "start": [_offset(answer["answer_start"]) for answer in source["answers"]],
                    }
                    check_answers(where, passage, answers, answerable=not source.get("is_impossible", False))
                    row = {"id": id, "passage": passage, "question": question, "answers": answers}
                    yield Question(row | {"article": title}, source)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{where}: {type(error).__name__} {error}; expected data > paragraphs > qas > answers as in SQuAD"
        ) from error


def _offset(value: Any) -> int:
    if type(value) is not int:  # true is an int for Python
        raise TypeError(f"answer_start is a {type(value).__name__}, not a whole number")
    return value


def check_answers(where: str, passage: str, answers: dict[str, list[Any]], answerable: bool) -> None:
    """Raise :class:`DataError` unless every answer stands in the passage at its offset, and there
    is one just when answerable."""
    if bool(answers["text"]) != answerable:
        raise DataError(
            f"{where}: {len(answers['text'])} answers, but the question is marked"
            f" {'' if answerable else 'un'}answerable"
        )
    for answer, start in zip(answers["text"], answers["start"], strict=True):
        found = passage[start : start + len(answer)]
        if start < 0 or not answer or found != answer:
            raise DataError(
                f"{where}: the answer {answer!r:.80} is not at offset {start} of its passage, where {found!r:.80}"
                " stands"
            )


def paragraph_key(row: Row) -> str:
    """Letters and digits of the passage in lower case: the same for a paragraph in raw, tokenised
    and lower-cased form."""
    return "".join(filter(str.isalnum, row["passage"].lower()))
