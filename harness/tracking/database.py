"""URIs and locks of MLflow's database."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import unquote, unquote_plus

from harness.records import without_passwords

SQLITE = "sqlite:///"
VIEW = "mlflow.sharedViewState.archbench"
"""Tag of an experiment with the view that its address names by the last part of this."""
LOCK_TIMEOUT_S = (
    60.0  # making a database takes seconds, on a busy machine many; a program that was stopped holds it for ever
)

_PLAIN = re.compile(r"([\w+.-]+://)(?:([^:/?#@\s'\"]*)(:[^:/?#@\s'\"]*)?@)?([^?#@\s'\"]*)(\?[^@\s'\"]*)?")
"""A URI that can be read in one way only: scheme, user, password, host with path, parameters."""


class TrackingError(Exception):
    """MLflow could not be reached, or it refused; the message names its URI. The records are not
    affected."""


class NotMirrored(TrackingError):
    """MLflow works, and refused one record, which the message names."""


def default_uri(results: str | Path) -> str:
    """URI of the SQLite database in a results folder."""
    return f"{SQLITE}{Path(results).resolve() / 'mlflow.db'}"


def shown_uri(uri: str) -> str:
    """A URI without its password and the values of its parameters; of one that can be read in
    several ways, the scheme alone."""
    if uri.startswith(SQLITE) and "?" not in uri:
        return uri
    match = _PLAIN.fullmatch(uri)
    if match is None:
        scheme, separator, _ = uri.partition("://")
        return f"{scheme}://***" if separator else re.sub(r".*[@=?%].*", "***", uri, flags=re.DOTALL)
    scheme, user, password, place, parameters = match.groups(default="")
    account = "" if match[2] is None else f"{user}:***@" if password else "***@"  # a user alone may be a token
    return f"{scheme}{account}{place}" + re.sub(r"=[^&;]*", "=***", parameters)


def without_secrets(text: str, uri: str) -> str:
    """A message of MLflow, or of a library below it, without any piece of a URI that
    :func:`shown_uri` does not show: they quote what they could not parse."""
    shown = shown_uri(uri)
    text = without_passwords(text.replace(uri, shown))
    hidden = {word for whole in (uri, unquote(uri), unquote_plus(uri)) for word in _words(whole)} - _words(shown)
    for word in sorted(hidden, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "***", text)
    return text


def _words(uri: str) -> set[str]:
    return {*re.findall(r"\w+", uri), *re.split(r"[:/?&=@\s]+", uri)} - {""}


def with_driver(uri: str) -> str:
    """The URI with the installed driver of PostgreSQL in its scheme.

    The default driver of a bare ``postgresql://`` depends on SQLAlchemy's version. Raises
    :class:`ValueError` when none is installed.
    """
    scheme, separator, rest = uri.partition("://")
    if scheme not in ("postgresql", "postgres"):
        return uri
    for driver in ("psycopg2", "psycopg"):
        if importlib.util.find_spec(driver):
            return f"postgresql+{driver}{separator}{rest}"
    raise ValueError("PostgreSQL needs a driver: pip install 'archbench[postgres]'")


@contextmanager
def one_at_a_time(uri: str) -> Iterator[None]:
    """Lets one process at a time open a SQLite database: two that migrate a new one crash.

    Raises the error of a file or database server at once, where MLflow would retry for minutes.
    """
    if not uri.startswith(SQLITE):
        if not uri.startswith(("http://", "https://")):
            import sqlalchemy

            engine = sqlalchemy.create_engine(with_driver(uri))
            engine.connect().close()
            engine.dispose()
        yield
        return
    from filelock import FileLock, Timeout

    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{database}.lock", timeout=LOCK_TIMEOUT_S)
    try:
        lock.acquire()
    except Timeout:
        raise TimeoutError(
            f"another program has held {database.name}.lock for {LOCK_TIMEOUT_S:.0f} s; end it if it hangs"
        ) from None
    try:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
        yield
    finally:
        lock.release()
