"""Multi30k: translate captions of pictures from English into German."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task
from tasks.mini import translation
from tasks.readers.lines import find, lines

_FILES = {"train": "train", "dev": "val", "test": "test_2016_flickr"}


@register_task(
    "multi30k",
    name="Multi30k en-de",
    type="translate",
    metrics=("bleu", "chrf"),
    main_metric="bleu",
    sizes={"train": 29000, "dev": 1014, "test": 1000},
    budgets={
        "small": Budget(
            4,
            examples=3000,
            min_steps=600,
            batch_size=16,
            reason="captions of 12 words: fewer steps, since dev is written out by a beam after each pass",
        ),
        "full": Budget(
            8,
            min_steps=3000,
            batch_size=32,
            reason="as many passes as the costliest generator ends in 20 minutes",
        ),
    },
    dropout=0.1,
    protocol=(
        "Task 1, raw captions, English to German; the official splits, test is test_2016_flickr. BLEU and chrF are"
        " sacrebleu's in lower case (13a), and systems write the words that 13a finds, parted by blanks, in lower case."
    ),
)
class Multi30k(Task):
    """Captions with their translations by professionals (Elliott et al. 2016)."""

    def mini(self, split: Split) -> Iterable[Row]:
        return translation.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        source, target = (find(folder / "multi30k", f"{_FILES[split]}.{language}") for language in ("en", "de"))
        both = [[text.strip() for _, text in lines(path)] for path in (source, target)]
        if len(both[0]) != len(both[1]):
            raise DataError(f"{source}: {len(both[0]):,} lines, expected the {len(both[1]):,} of {target.name}")
        for number, (english, german) in enumerate(zip(*both, strict=True), 1):
            if not english or not german:
                raise DataError(f"{target if english else source}, line {number}: empty, expected a caption")
            yield {"id": f"{split}-{number}", "source": english, "target": german}
