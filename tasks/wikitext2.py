"""WikiText-2: the next word of Wikipedia's articles."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import articles as generated
from tasks.readers.articles import articles
from tasks.readers.lines import find, lines

if TYPE_CHECKING:
    import datasets

FILES = {"train": "wiki.train.tokens", "dev": "wiki.valid.tokens", "test": "wiki.test.tokens"}


@register_task(
    "wikitext2",
    name="WikiText-2",
    type="language_model",
    metrics=("nats_per_token", "perplexity", "bits_per_character"),
    main_metric="nats_per_token",
    sizes={"train": 600, "dev": 60, "test": 60},
    budgets={
        "small": Budget(
            4,
            examples=10,
            reason="ten articles: beside other work nnlm trained for 19 s, rnn_lm for 30 s, and scored dev for twice"
            " as long; their test perplexities were 217 and 198, that of ngram_lm 144",
        ),
        "full": Budget(
            10,
            reason="all 600 articles: by the same speeds 5 to 20 hours of a core, work for a GPU; the number of passes"
            " is not measured",
        ),
    },
    dropout=0.1,
    protocol=(
        "The token files of Merity et al. 2017, in which words seen fewer than three times are <unk> already. A row is"
        " an article, which begins with a title of the first level between two empty lines: 600, 60 and 60. Each line,"
        " empty ones included, ends with one end mark that is predicted as a word: 2,088,628, 217,646 and 245,569"
        " tokens, as published perplexities count them. Published models carry their state from an article to the"
        " next; here each article is read by itself, so that articles are independent units. The score is the mean"
        " negative log-likelihood per token, shown as perplexity; bits per character divide by the characters of the"
        " tokenised text, the blanks between words included. Systems with another vocabulary are never in one table."
        " The hub's pinned copy was not read when this was written, for want of a network: its lines are taken to be"
        " those of the token files."
    ),
)
class WikiText2(Task):
    """Good and featured articles of Wikipedia (Merity et al. 2017)."""

    hub = Hub("Salesforce/wikitext", "b08601e04326c79dfdd32d625aee71d232d685c3", "wikitext-2-v1")

    def mini(self, split: Split) -> Iterable[Row]:
        return generated.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return _rows(split, (line for _, line in lines(find(folder / "wikitext2", FILES[split]))))

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        return _rows(split, rows["text"])


def _rows(split: Split, lines: Iterable[str]) -> Iterable[Row]:
    return ({"id": f"{split}-{number}", "text": words} for number, words in enumerate(articles(lines), 1))
