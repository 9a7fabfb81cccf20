"""The reader of GAP's files: marks where the file says, and faults by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import DataError

HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
TEXT = 'Ann Lee met Bea; it\'s "she" who ran to her.'


def line(**changed: str) -> str:
    values = {
        "ID": "dev-1",
        "Text": TEXT,
        "Pronoun": "she",
        "Pronoun-offset": "23",
        "A": "Ann Lee",
        "A-offset": "0",
        "A-coref": "FALSE",
        "B": "Bea",
        "B-offset": "12",
        "B-coref": "TRUE",
        "URL": "http://x",
    }
    return "\t".join((values | {key.replace("_", "-"): value for key, value in changed.items()}).values())


@pytest.fixture
def rows(tmp_path: Path, task):
    """Rows of a dev file of this one line."""

    def read(text: str) -> list[dict[str, object]]:
        (tmp_path / "gap").mkdir(exist_ok=True)
        (tmp_path / "gap" / "gap-validation.tsv").write_text(f"{HEADER}\n{text}\n", encoding="utf-8")
        return list(task("gap").local(tmp_path, "dev"))

    return read


def test_mentions_are_marked_where_the_file_says(rows):
    """Not at the first place of the same letters; quotes are characters like others."""
    [row] = rows(line())
    words = '[a Ann Lee a] met [b Bea b] ; it\'s " [p she p] " who ran to her .'
    assert row == {"id": "dev-1", "text": words.split(), "label": "B"}
    [other] = rows(line(Pronoun="her", Pronoun_offset=str(TEXT.index("her.")), B_coref="FALSE"))
    assert other["text"][-4:] == ["[p", "her", "p]", "."] and other["label"] == "neither"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A_offset": "1"}, "line 2: A 'Ann Lee' does not stand at character '1' of the text"),
        ({"B_offset": "x"}, "line 2: B 'Bea' does not stand at character 'x' of the text"),
        ({"A_coref": "TRUE"}, "line 2: both names are marked TRUE, expected one at most"),
        ({"B_coref": "yes"}, "line 2: B-coref 'yes', expected TRUE or FALSE"),
    ],
)
def test_a_fault_is_told_by_file_and_line(rows, changed, message):
    with pytest.raises(DataError, match=f"gap-validation.tsv, {message}"):
        rows(line(**changed))
