"""A data set of the Hugging Face hub as the cells of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.errors import DataError
from harness.user_data.description import Column
from harness.user_data.raw_tables import AT_ONCE, Cells, batch_rows, places_of


def read(hub: tuple[str, str, str | None], split: str, wanted: Sequence[Column]) -> Cells:
    """Rows of a split; classes have their names. ``hub`` is path, revision and configuration.

    Raises :class:`DataError` where it cannot be had, and for a column that it has not.
    """
    import datasets

    path, revision, config = hub
    place = f"{path} at {revision[:8]}, split {split}"
    try:
        rows = datasets.load_dataset(path, config, split=split, revision=revision)
    except Exception as error:  # the library raises what its parts raise, of the network too
        raise DataError(f"{place}: {type(error).__name__}: {error!s:.300}") from error
    names = list(rows.column_names)
    chosen = [names[number] for number in places_of(place, names, wanted, len(names))]
    kinds = {name: getattr(each := rows.features[name], "feature", each) for name in chosen}  # of a list its values'
    classes = {name: kind.names for name, kind in kinds.items() if isinstance(kind, datasets.ClassLabel)}

    def values() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 1
        for table in rows.select_columns(list(dict.fromkeys(chosen))).with_format("arrow").iter(AT_ONCE):
            for batch in table.to_batches():
                for row, found in batch_rows(batch, chosen, number):
                    yield row, [_named(value, classes.get(name)) for name, value in zip(chosen, found, strict=True)]
                number += len(batch)

    return Cells(names, "row", values())


def _named(value: Any, names: list[str] | None) -> Any:
    """The name of a class, or those of a list; -1, which the hub writes for an unknown one, is an
    empty cell."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names[value] if 0 <= value < len(names) else None
