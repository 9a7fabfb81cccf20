"""URIs and locks of MLflow's database."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

SQLITE = "sqlite:///"


class TrackingError(Exception):
    """MLflow could not be reached, or it refused; the message names its URI. The records are not
    affected."""


def default_uri(results: str | Path) -> str:
    """URI of the SQLite database in a results folder."""
    return f"{SQLITE}{Path(results).resolve() / 'mlflow.db'}"


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
    from filelock import FileLock

    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{database}.lock"):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
        yield
