"""BERT."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from torch import Tensor, nn

from harness.errors import MissingWeights
from harness.kinds import PretrainedEncoder
from harness.registry import Recipe, TaskEntry, register
from harness.views.subwords import SubwordBatch, Subwords


@register(
    "bert",
    name="BERT, small and not pre-trained",
    kind="plm",
    paper="Devlin et al. 2018",
    source="M2.10[7] R25",
    year=2018,
    version=2,
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00003,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    tiny={"layers": 1, "hidden": 32, "vocabulary": 1000},
    deviations=(
        (
            "Starts from random weights and is small, with a vocabulary learnt on the training texts, so that it needs"
            " no download; -o bert.pretrained=FOLDER loads trained ones."
        ),
        "The recipe is that of tuning trained weights: three passes at a low rate are few for random ones.",
        "Pre-training itself (masked words, next sentence) is not part of this entry, which can only load its weights.",
        (
            "One rate, batch size and number of passes serves all tasks; the paper chooses among several on dev, and"
            " has 5e-5 for SQuAD (2.0: batches of 48, two passes)."
        ),
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "In the warm-up the rate is up to a tenth lower than the authors', since its linear fall has begun.",
        "The layer on top starts as PyTorch's do; the authors draw from normal numbers of deviation 0.02.",
        "No answer is given where its score is the higher one; the paper adds a threshold that it chooses on dev.",
        "A batch is 32 questions with all windows of their passages; the authors' is 32 windows.",
        "Words are tagged in their sentence alone; the paper adds as much of the document as fits.",
    ),
    variants={
        "bert_base": {
            "name": "BERT-base",
            "sees": ("foreign weights",),
            "source": "M2.10[7] T1-T4 R25",
            "hyperparameters": {"pretrained": "bert-base-{case}", "layers": 12, "hidden": 768, "heads": 12},
            "tiny": {"pretrained": "", "layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
            "without_deviations": ("Starts from random weights", "The recipe is that of tuning trained weights"),
        },
        "bert_large": {
            "name": "BERT-large",
            "sees": ("foreign weights",),
            "source": "M2.10[7] T1-T4 R25",
            "hyperparameters": {"pretrained": "bert-large-{case}", "layers": 24, "hidden": 1024, "heads": 16},
            "tiny": {"pretrained": "", "layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
            "without_deviations": ("Starts from random weights", "The recipe is that of tuning trained weights"),
            "deviations": (
                "Each seed counts; the paper starts several times on small tasks and keeps the best run on dev.",
            ),
        },
    },
)
class BERT(PretrainedEncoder):
    """Piece, segment and learned position vectors added, then transformer layers with GELU and the
    norm after each residual sum.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer; ``{case}`` in it stands for "cased" where words are tagged, and "uncased" elsewhere.
    Without it the weights are random, ``layers``, ``hidden``, ``heads`` and ``dropout`` are the
    model's and ``vocabulary`` is the size of the tokenizer that is learnt on the training texts;
    loaded weights bring their own. A sequence has at most ``max_length`` pieces; a longer passage
    is read in windows that begin ``stride`` pieces apart. The vector of a text is the last state of
    [CLS] through a linear layer and tanh. In front of the layer that scores classes or labels,
    dropout stands; spans are scored without.
    """

    unused = ("model.pooler",)  # tags and spans are read from the states of the pieces
    view_settings: ClassVar[dict[str, str]] = {
        "pretrained": "pretrained",
        "size": "vocabulary",
        "max_length": "max_length",
        "stride": "stride",
    }

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> Subwords | None:
        """The pieces of a task's texts: words that are tagged keep their case, which tells
        names."""
        view = super().view_for(task, hyperparameters)
        if view is None:
            return None
        cased = task.type == "tag"
        source = view.pretrained.replace("{case}", "cased" if cased else "uncased")
        return dataclasses.replace(view, lower=not cased, pretrained=source)

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 2,
        hidden: int = 128,
        heads: int = 2,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 384,
        stride: int = 128,
    ):
        super().__init__()
        try:
            import transformers  # slow to import, and an extra
        except ImportError as error:
            raise ImportError("BERT needs transformers: pip install 'archbench[plm]'") from error
        if view.pretrained:
            self.model = _loaded(view.pretrained, width, view.max_length)
        else:
            config = transformers.BertConfig(
                vocab_size=width,
                hidden_size=hidden,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=4 * hidden,
                hidden_act="gelu",
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=dropout,
                max_position_embeddings=view.max_length,
            )
            self.model = transformers.BertModel(config)
        self.size = self.model.config.hidden_size
        self.dropout = nn.Dropout(self.model.config.hidden_dropout_prob)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        # A mask (B, T) would be looked at for padding first: a wait for the GPU at each step, and
        # no pass without values to count FLOPs.
        attended = pieces.mask[:, None, None]
        return self.model(
            input_ids=pieces.ids, attention_mask=attended, token_type_ids=pieces.segments
        ).last_hidden_state

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(self.model.pooler(states))

    def word_states(self, states: Tensor) -> Tensor:
        return self.dropout(states)


def _loaded(source: str, pieces: int, max_length: int) -> nn.Module:
    """The pre-trained BERT in a folder or on the hub; ``ValueError`` when there is none or it does
    not suit tokenizer and length."""
    from transformers import AutoConfig, AutoModel

    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        # The folder may name another way to attend, which takes other masks: "eager" would add
        # ours, true or false, to the scores.
        config._attn_implementation = "sdpa"
        model = AutoModel.from_pretrained(source, config=config, use_safetensors=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise MissingWeights(
            f"pretrained={source!r}: neither a folder with safetensors weights nor a name on the hub: {error}"
        ) from error
    if config.model_type != "bert":
        raise ValueError(f"pretrained={source!r} is of type {config.model_type}, expected bert")
    if pieces > config.vocab_size:
        raise ValueError(
            f"pretrained={source!r}: its tokenizer has {pieces} pieces, its model vectors for {config.vocab_size}"
        )
    if max_length > config.max_position_embeddings:
        raise ValueError(
            f"max_length={max_length}: pretrained={source!r} has {config.max_position_embeddings} positions"
        )
    return model.float().train()
