"""CoNLL-2003 English: parts of speech."""

from __future__ import annotations

from harness.registry import register_task
from tasks.conll2003_ner import Conll2003Ner

_TAGS = (
    "\" '' # $ ( ) , . : `` CC CD DT EX FW IN JJ JJR JJS LS MD NN NN|SYM NNP NNPS NNS PDT POS PRP PRP$ RB RBR RBS RP"
    " SYM TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB"
)


@register_task(
    "conll2003_pos",
    name="CoNLL-2003 POS",
    type="tag",
    metrics=("token_accuracy",),
    main_metric="token_accuracy",
    sizes={"train": 14041, "dev": 3250, "test": 3453},
    budgets="conll2003_ner",
    # as on CoNLL-2003 NER.
    dropout=0.1,
    protocol=(
        "Official split (testa is dev); the part-of-speech column, made by a tagger, not by hand; -DOCSTART- lines left"
        " out. Not the usual Penn Treebank sections."
    ),
)
class Conll2003Pos(Conll2003Ner):
    """The sentences of the entity task with their part-of-speech tags."""

    name = "pos"
    column = 1
    spans = False
    tags = tuple(_TAGS.split(" "))
