"""CoNLL-2003 English: named entities."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import tagging
from tasks.readers import hub
from tasks.readers.conll import bioes, sentences
from tasks.readers.lines import find

if TYPE_CHECKING:
    import datasets

_FILES = {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"}


@register_task(
    "conll2003_ner",
    name="CoNLL-2003 NER",
    type="tag",
    metrics=("span_f1", "token_accuracy"),
    main_metric="span_f1",
    sizes={"train": 14041, "dev": 3250, "test": 3453},
    budgets={
        "small": Budget(
            5,
            examples=1500,
            min_steps=450,
            batch_size=16,
            reason="about half a core minute for the median tagger",
        ),
        "full": Budget(
            10,
            min_steps=1500,
            batch_size=16,
            reason="the best pass of the reference tagger is its third; slower ones get three times as many",
        ),
    },
    # F1 on dev at .1, .3, .5: bilstm_crf .611 .584 .554, window_mlp .242 .239 .234,
    # transformer_tagger .502 .476 .420.
    dropout=0.1,
    protocol=(
        "Official split (testa is dev); -DOCSTART- lines left out, sentences without their documents; IOB1 tags turned"
        " into BIOES."
    ),
)
class Conll2003Ner(Task):
    """Sentences of Reuters news with entities of four types (Tjong Kim Sang & De Meulder 2003).

    ``column`` is the file's column of the tags, ``tags`` what may stand there, ``spans`` whether
    they are chunks in IOB.
    """

    hub = Hub("lhoestq/conll2003", "19edcb426bfd625c275c17b9a99b2239243f4377")
    name: ClassVar[tagging.Column] = "ner"
    column: ClassVar[int] = 3
    spans: ClassVar[bool] = True
    tags: ClassVar[tuple[str, ...]] = (
        "O",
        *(f"{prefix}-{kind}" for kind in ("PER", "ORG", "LOC", "MISC") for prefix in "BI"),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return tagging.rows(split, self.name)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        path = find(folder / "conll2003", _FILES[split])
        for number, sentence in enumerate(sentences(path, columns=4), 1):
            for line, fields in sentence:
                if fields[self.column] not in self.tags:
                    raise DataError(
                        f"{path}, line {line}: {fields[self.column]!r:.80} is no {self.name} tag (known:"
                        f" {' '.join(self.tags)})"
                    )
            tags = [fields[self.column] for _, fields in sentence]
            yield self._row(split, number, [fields[0] for _, fields in sentence], tags)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        names = hub.class_names(self.hub, rows, f"{self.name}_tags", self.tags)
        hub.require_columns(self.hub, rows, "tokens")
        for number, row in enumerate(rows, 1):
            yield self._row(split, number, row["tokens"], [names[tag] for tag in row[f"{self.name}_tags"]])

    def _row(self, split: Split, number: int, words: list[str], tags: list[str]) -> Row:
        return {"id": f"{split}-{number}", "text": words, "tags": bioes(tags) if self.spans else tags}
