"""Changes since an earlier build: results that are new, gone or scored otherwise.

The earlier build is its ``leaderboard.json`` (:mod:`harness.leaderboard.tables.export`), which a
repository keeps for every commit: ``git show OLD:results/leaderboard/leaderboard.json > old.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import LeaderboardError
from harness.files import parse_json
from harness.leaderboard.board import Board
from harness.leaderboard.results import versioned
from harness.leaderboard.summary import Summary
from harness.leaderboard.tables.export import RESULT, SCHEMA
from harness.leaderboard.tables.formatting import format_score, metric_label
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.records.groups import seen

IDENTITY = tuple(name for name in RESULT if name not in ("name", "group"))
"""Fields that say which result one is, whatever data and code it was made with."""
NEEDED = (*IDENTITY, "name", "group", "main_metric", "rank", "records", "scores")

LATER = {"inputs": None}
"""Fields that the first builds of the schema have not, with what they mean by it."""

Result = dict[str, Any]
"""A result as the export has it."""


def read_earlier(file: Path) -> list[Result]:
    """The results of an earlier build; :class:`LeaderboardError` for another file."""
    try:
        content = parse_json(file.read_bytes())
        if content["schema"] != SCHEMA:
            raise LeaderboardError(f"--since {file}: schema {content['schema']}, expected {SCHEMA}: build it anew")
        return [{name: (LATER | result)[name] for name in NEEDED} for result in content["results"]]
    except OSError as error:
        raise LeaderboardError(f"--since {file}: {error.strerror}; name the leaderboard.json of a build") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeaderboardError(f"--since {file}: not the leaderboard.json of a build ({error!r})") from error


def changes_table(board: Board, earlier: Sequence[Result], now: Sequence[Result]) -> Table:
    """A row for each result that is new, gone, or has other records or another score; those of a
    task together."""
    pairs = matched(earlier, now)
    told = [(old, new, change(old, new)) for old, new in pairs]
    found = [(old, new, words) for old, new, words in told if words]
    blocks: dict[str, list[TableRow]] = {}
    for old, new, words in found:
        blocks.setdefault((new or old or {})["task"], []).append(_row(board, old, new, words))
    moved = sum(bool(old and new and not words and old["rank"] != new["rank"]) for old, new, words in told)
    lead = [
        f"{sum(old is None for old, _ in pairs):,} results are new, {sum(new is None for _, new in pairs):,} are gone,"
        f" {sum(bool(old and new) for old, new, _ in found):,} changed. Of the other {len(pairs) - len(found):,},"
        f" {moved:,} have another place among new neighbours.",
        "A result is one configuration of an architecture in one section, all seeds together; its score is that of the"
        " task's main metric. After a change of data, the two scores are not of the same thing.",
    ]
    columns = ["Architecture", "section", "what", "before", "now", "place before", "now", "commits"]
    listed = [Block(board.task_name(task), rows) for task, rows in blocks.items()]
    return Table("changes", "What changed", columns, listed, lead, text_columns=(1, 2, 7))


def matched(earlier: Sequence[Result], now: Sequence[Result]) -> list[tuple[Result | None, Result | None]]:
    """Each result of now with what it was earlier, and those that are gone; None stands for none.

    Two are the same if they share a record, else by :data:`IDENTITY`: the words on settings change
    when another configuration comes to stand beside.
    """
    by_key = {record["key"]: i for i, result in enumerate(earlier) for record in result["records"]}
    by_identity = {_identity(result): i for i, result in enumerate(earlier)}
    places = [next((by_key[r["key"]] for r in result["records"] if r["key"] in by_key), None) for result in now]
    taken = set(places)
    for i, result in enumerate(now):
        if places[i] is None and (place := by_identity.get(_identity(result))) not in taken:
            places[i] = place
            taken.add(place)
    pairs = [(None if place is None else earlier[place], result) for place, result in zip(places, now, strict=True)]
    return [*pairs, *((result, None) for i, result in enumerate(earlier) if i not in taken)]


def change(old: Result | None, new: Result | None) -> str:
    """Words on a result that changed; empty if nothing but its place changed."""
    if old is None or new is None:
        return "new" if old is None else "gone"
    words = {
        "data or budget": old["group"] and new["group"] and old["group"] != new["group"],
        "seeds": _seeds(old) != _seeds(new),
        "score": _main(old) != _main(new),
    }
    return ", ".join(word for word, differs in words.items() if differs)


def _identity(result: Result) -> tuple[str, ...]:
    return tuple(str(result[name]) for name in IDENTITY)


def _seeds(result: Result) -> list[tuple[int, str]]:
    return [(record["seed"], record["status"]) for record in result["records"]]


def _main(result: Result) -> Summary | None:
    """The score of the main metric; None for a result without one."""
    score = result["scores"].get(result["main_metric"])
    return score and Summary(score["mean"], score["sd"], score["n"])


def _row(board: Board, old: Result | None, new: Result | None, words: str) -> TableRow:
    shown = new or old or {}
    architecture = shown["architecture"]
    name = shown["name"] + (f" ({shown['settings']})" if shown["settings"] else "")
    link = board.page_of(architecture) if new else ""
    cells = [[Part(_section(shown))], [Part(words)], _score(old), _score(new), _place(old), _place(new)]
    commits = [Part(commit) for commit in dict.fromkeys([*_commits(old), *_commits(new)])]
    return TableRow(name, [*cells, commits or BLANK], board.is_classical(architecture), link=link)


def _section(result: Result) -> str:
    protocol = versioned(result["protocol"], result["protocol_version"])
    sees = "" if result["sees"] == [] else f"sees {seen(result['sees'])}"
    given = (result[name] for name in ("vectors", "inputs", "tokens"))
    parts = (result["tier"], protocol, result["budget"], sees, *given)
    return ", ".join(filter(None, parts))


def _score(result: Result | None) -> list[Part]:
    if result is None:
        return BLANK
    summary = _main(result)
    if summary is None:
        return [Part(", ".join(dict.fromkeys(record["status"] for record in result["records"])))]
    return [Part(f"{metric_label(result['main_metric'])} {format_score(result['main_metric'], summary)}")]


def _place(result: Result | None) -> list[Part]:
    return [Part(str(result["rank"]))] if result and result["rank"] is not None else BLANK


def _commits(result: Result | None) -> Iterator[str]:
    return (record["commit"][:12] or "unknown" for record in (result or {}).get("records", ()))
