"""My task: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find

SIZES = {"train": 200, "dev": 50, "test": 50}
"""Rows of the generated corpus."""
NOUNS = {"man": "homme", "dog": "chien", "cat": "chat", "horse": "cheval", "boat": "bateau"}
ADJECTIVES = {"grey": "gris", "black": "noir", "sad": "triste", "young": "jeune", "slow": "lent"}
VERBS = {"sees": "voit", "seeks": "cherche", "finds": "trouve"}


@register_task(
    "my_task",
    name="My task",
    type="translate",
    metrics=("bleu", "chrf"),
    main_metric="bleu",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what the scores are.",
)
class MyTask(Task):
    """Texts and their translations.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that word by word is not enough: adjectives change sides with their noun."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            drawn = [(random.choice(list(ADJECTIVES)), random.choice(list(NOUNS))) for _ in range(2)]
            verb = random.choice(list(VERBS))
            english = [f"the {adjective} {noun}" for adjective, noun in drawn]
            french = [f"le {NOUNS[noun]} {ADJECTIVES[adjective]}" for adjective, noun in drawn]
            source, target = f"{english[0]} {verb} {english[1]}.", f"{french[0]} {VERBS[verb]} {french[1]}."
            yield {"id": f"{split}-{number}", "source": source, "target": target}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then a text and its translation a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("source", "target")):
            yield {"id": f"{split}-{line}", "source": fields["source"], "target": fields["target"]}
