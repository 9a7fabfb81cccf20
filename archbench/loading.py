"""Kept models that answer new texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from harness.records import Record
    from harness.saved_models.model import KeptModel


class Predictor:
    """A kept model.

    ``key``: that of the cell that trained it. ``architecture``, ``task``: ids. ``type``: the type
    of the task, such as ``classify``. ``inputs``: columns that an answer needs. ``classes``: those
    that it may name, None where answers are no classes.
    """

    def __init__(self, kept: KeptModel):
        self._kept, found = kept, kept.description
        self.key = found.origin.key
        self.architecture = found.part.architecture
        self.task = str(found.origin.cell.get("task"))
        self.type = found.type
        self.inputs = tuple(found.inputs)
        self.classes = None if found.classes is None else tuple(found.classes)

    def __repr__(self) -> str:
        return f"<Predictor {self.key}: {self.architecture} trained on {self.task} ({self.type})>"

    def predict(self, texts: Iterable[str | Mapping[str, Any]] | pd.DataFrame) -> list[dict[str, Any]]:
        """The answer to each text, in their order.

        ``texts``: where ``inputs`` is one column, texts; else mappings from each column to its
        value, or a data frame with these columns. Words that are already parted may be a list, and
        a recording is the path of a WAV file.

        An answer has ``prediction`` (a class, a list of tags, a span, a rank's score, a
        transcript), and as far as the model tells how sure it is ``probability`` of the prediction
        and ``probabilities`` of all classes by name, from 0 to 1; ``scores`` where these are no
        probabilities.

        Raises :class:`~harness.errors.DataError` for a text that cannot be read, with its place.
        """
        import pandas as pd

        from harness.errors import UsageError
        from harness.saved_models.prediction import answers_to

        if isinstance(texts, str | Mapping):
            raise UsageError(f"predict({texts!r:.60}): expected a list of texts; put it in brackets")
        rows = texts.to_dict("records") if isinstance(texts, pd.DataFrame) else texts
        return list(answers_to(self._kept, rows, "texts"))


def load(
    model: str | Path | Record,
    results: str | Path = "results",
    *,
    plugins: str | Path | Sequence[str | Path] = (),
    device: str | None = None,
) -> Predictor:
    """A model that ``archbench run --keep``, or ``run(..., keep=True)``, kept.

    ``model``: its folder, its key (its beginning will do) below ``results``, or the record of its
    cell. ``plugins``: Python files with architectures or task types of your own that it is made of.
    ``device``: ``cpu`` or ``cuda``; by default a GPU if there is one. No code of the folder is run.

    Raises :class:`~harness.errors.UsageError` where no such model, or more than one, is kept;
    :class:`~harness.errors.ModelError` for one that is damaged, of another version of its
    architecture, or cannot answer new texts; :class:`~harness.errors.UnknownName` for an
    architecture that is not registered.
    """
    import torch

    from harness import registry
    from harness.records import Record
    from harness.saved_models.model import load as load_folder
    from harness.saved_models.storage import find

    for file in [plugins] if isinstance(plugins, str | Path) else plugins:
        registry.add_plugin(file)
    named = model.key if isinstance(model, Record) else str(model)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return Predictor(load_folder(find(named, Path(results)), place))
