"""Translation: floors by hand, and who must read words as they are."""

from __future__ import annotations

from harness.problems import problem

ASKED = problem("translate")


def test_the_floors_by_hand():
    """The commonest translation is training's: what a test asks for is not known."""
    train = [{"source": "s", "target": text} for text in ("ein", "zwei", "zwei", "drei")]
    rows = [{"source": "A  cat .", "target": "x"}, {"source": ["Two", "cats"], "target": "x"}]
    assert ASKED.floors(train, rows) == {"copy": ["A cat .", "Two cats"], "majority": ["zwei", "zwei"]}


def test_who_copies_words_reads_them_whole():
    """Pieces of a name would be copied in its place."""
    assert ASKED.whole_words("symbols and copies") == "it copies words of the source"
    assert ASKED.whole_words("next symbols") is None
