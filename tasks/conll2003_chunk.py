"""CoNLL-2003 English: syntactic chunks."""

from __future__ import annotations

from harness.registry import register_task
from tasks.conll2003_ner import Conll2003Ner

_TYPES = ("ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP")


@register_task(
    "conll2003_chunk",
    name="CoNLL-2003 chunks",
    type="tag",
    metrics=("span_f1", "token_accuracy"),
    main_metric="span_f1",
    sizes={"train": 14041, "dev": 3250, "test": 3453},
    budgets="conll2003_ner",
    # as on CoNLL-2003 NER.
    dropout=0.1,
    protocol=(
        "Official split (testa is dev); the chunk column, made by a tagger and a chunker, not by hand; -DOCSTART- lines"
        " left out; IOB1 tags turned into BIOES. Not the CoNLL-2000 task."
    ),
)
class Conll2003Chunk(Conll2003Ner):
    """The sentences of the entity task with their chunks."""

    name = "chunk"
    column = 2
    tags = ("O", *(f"{prefix}-{kind}" for kind in _TYPES for prefix in "BI"))
