"""Errors whose message is all that a user needs, and the names that a wrong one resembles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class ArchbenchError(Exception):
    """Base of the errors that a user can cause: the command prints the message and no traceback."""


class RegistryError(ArchbenchError):
    """A plugin that cannot be listed or loaded: the message names the file and what would be
    right."""


class UnknownName(RegistryError):
    """A name nobody registered; the message offers near ones and names plugin files that failed."""


class ContractError(ArchbenchError):
    """An architecture that does not keep to what its kind says; the message names what is missing
    and what would be right."""


class DataError(ArchbenchError):
    """A data file that is missing or not as its format says: the message names the file, the line
    and what was expected."""


class ModelError(ArchbenchError):
    """A kept model that is damaged, foreign or not of the architecture here: the message names its
    folder or file, what was found and what would be right."""

    def __init__(self, message: str):
        super().__init__(message.encode("utf-8", "backslashreplace").decode())  # half a surrogate pair is in its files


class MissingWeights(ArchbenchError, ValueError):
    """Pre-trained weights or their tokenizer that are neither on this machine nor to be fetched."""


class MissingFile(DataError):
    """A data file that is not where it should be: the others of its corpus lie there too."""


class RecordError(ArchbenchError):
    """A record that cannot be read, written or trusted; the message names the file and what is
    wrong with it."""


class LeaderboardError(ArchbenchError):
    """Input that no leaderboard can be built from; the message names the file or option."""


class UsageError(ArchbenchError):
    """A command line that cannot be carried out: the message names the option, what was found and
    what would be right."""


def near(name: str, known: Iterable[str]) -> list[str]:
    """Up to three names that a mistyped one may stand for, the most similar first."""
    import difflib  # a listing does without

    plain: dict[str, str] = {}
    for each in known:
        plain.setdefault(_plain(each), each)
    return [plain[each] for each in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.5)]


def _plain(name: str) -> str:
    """A name without what people write in several ways."""
    return name.casefold().replace("-", "_")


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Half a sentence that offers the names near a mistyped one; ``otherwise`` without any."""
    names = near(name, known)
    return f"did you mean {' or '.join(names)}?" if names else otherwise


def unknown(what: str, name: str, known: Iterable[str], otherwise: str) -> UnknownName:
    """The error for a name that is none of the ``known``."""
    return UnknownName(f"no {what} is called {name!r}; {did_you_mean(name, known, otherwise)}")


class Named(dict[str, T]):
    """Things by name, such as metrics or schedules; looking up another name raises
    :class:`UnknownName` with the names near it."""

    def __init__(self, what: str, **things: T):
        super().__init__(**things)
        self.what = what

    def __missing__(self, name: str) -> T:
        raise unknown(self.what, name, self, f"there are {', '.join(self)}")


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise :class:`UsageError` with a near choice for a ``value`` that is none of ``choices``."""
    if value not in choices:
        listed = ", ".join(choices)
        names = near(value, choices)
        advice = f"did you mean {' or '.join(names)}? Choose from {listed}" if names else f"choose from {listed}"
        raise UsageError(f"{option} {value}: unknown; {advice}")
