"""T5."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.cued_pieces import CuedPieces
from architectures.blocks.objectives.removed_spans import RemovedSpans
from architectures.blocks.piece_transformer import PieceEncoder
from architectures.blocks.published_weights import published_model
from architectures.blocks.relative_stack import BUCKETS, FAR, RelativeStack
from harness import registry
from harness.registry import Recipe, TaskEntry, register
from harness.views.subwords import SubwordBatch, Subwords

EXPECTED = {
    "feed_forward_proj": "relu",
    "tie_word_embeddings": True,
    "scale_decoder_outputs": True,
    "relative_attention_num_buckets": BUCKETS,
    "relative_attention_max_distance": FAR,
}
"""Settings without which a published model would answer otherwise here."""


@register(
    "t5",
    name="T5, small",
    kind="plm",
    paper="Raffel et al. 2019",
    source="M2.10[159] R25.6",
    year=2019,
    version=2,
    parents={"weights": "t5@text_mix"},
    recipe=Recipe(
        optimizer="adam",
        lr=0.0000625,
        batch_size=32,
        epochs=5,
        patience=5,
        clip=1.0,
    ),
    recipes={
        "text": Recipe(
            optimizer="adam",
            lr=0.000625,
            batch_size=32,
            epochs=5,
            patience=5,
            clip=1.0,
            lr_schedule="warmup_inverse_sqrt",
            warmup_share=0.019,
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Four layers of 256 on each side, not twelve of 768 or more, 8,000 word pieces in lower case, not 32,000 of"
            " SentencePiece with case, and at most 128 pieces of a text, not 512; -o t5.pretrained=FOLDER loads the"
            " paper's."
        ),
        (
            "Pre-training makes five passes over 17 million words in batches of 32 sequences; the paper makes 524,288"
            " steps of 128 sequences of 512 pieces, and its largest models 1 million of 2,048."
        ),
        (
            "Adam at a sixteenth of the paper's rates takes the place of Adafactor, by which a matrix moves in"
            " proportion to its numbers. So that one rate serves all, those of the table are kept divided by"
            " sqrt(hidden), and those of queries times the sqrt(hidden / heads) by which scores are divided here: all"
            " begin as large as in other matrices. The model is the same."
        ),
        "Gradients are cut at a norm of 1, where Adafactor cuts its steps.",
        (
            "The places of spans are turned round by a random number. What the paper reads at once, 512 pieces, always"
            " begins with what stays and ends with a span, so that a text of 30 pieces or fewer, read alone as in"
            " evaluation, would be asked for its end and nothing else."
        ),
        "In pre-training the rate rises to its height in the first steps; the paper's stands there from the beginning.",
        "Batches of 32 and five passes serve all tasks; the paper makes 262,144 steps of 128.",
        (
            "An answer is the class whose words the decoder finds likeliest, so that it is always one of the classes;"
            " the paper's model writes freely, and whatever is no class counts as wrong."
        ),
        (
            "Texts are asked for by the names of the task and of its columns, and answered by the names of its classes;"
            " the paper words some of them otherwise. Of names that are the same in pieces the later ones have a"
            " sentinel behind them."
        ),
        (
            "Classes of texts and of pairs are the tasks; the paper also writes summaries, translations, answers from"
            " a passage and numbers, and the harness has no head for written answers of encoders of pieces."
        ),
        "Each task is tuned by itself after pre-training on plain text; the last models of the paper mix the tasks in.",
    ),
)
class T5(PieceEncoder):
    """An encoder and a decoder, which answer in words: "sst2 text: a fine film" is read, and
    "positive" is written.

    Texts are read behind words that name the task. Each class is scored by the log-probability of
    the pieces of its name and the end behind them, and in training those of the right one are made
    likelier (maximum likelihood). Pieces know how far apart they are. One table of pieces is the
    output layer and, times sqrt(hidden), that of both sides. Slow: each text passes through two
    stacks, the second of which writes the names of all classes.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``; gated layers (of T5 1.1 and Flan) are refused.
    """

    view = CuedPieces()
    learns = RemovedSpans

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for what has the name of a class as its answer, and for plain text."""
        return type in ("classify", "match", "text")

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> Subwords | None:
        """The pieces of a task's texts, each behind its column's name, the first behind the
        task's."""
        view = super().view_for(task, hyperparameters)
        if view is None or task.type == "text":
            return view
        first, *others = (f"{column}:" for column in registry.entry("problems", task.type).texts)
        return dataclasses.replace(view, cues=(f"{task.id} {first}", *others))

    def __init__(
        self,
        width: int,
        view: CuedPieces,
        answers: tuple[str, ...] = (),
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
    ):
        super().__init__()
        given = published_model(view.pretrained, "t5", width, EXPECTED) if view.pretrained else None
        inner, eps, decoder_layers = 4 * hidden, 1e-6, layers
        if given is not None:
            of = given.config
            layers, hidden, heads, dropout = of.num_layers, of.d_model, of.num_heads, of.dropout_rate
            inner, eps, decoder_layers = of.d_ff, of.layer_norm_epsilon, of.num_decoder_layers
            if heads * of.d_kv != hidden:
                raise ValueError(f"pretrained={view.pretrained!r}: {heads} heads of {of.d_kv} are not d_model={hidden}")
        self.view, self.scale = view, hidden**0.5
        self.table = nn.Embedding(width, hidden)
        nn.init.normal_(self.table.weight, std=1 / self.scale)
        self.encoder = RelativeStack(hidden, heads, inner, layers, dropout, eps)
        self.decoder = RelativeStack(hidden, heads, inner, decoder_layers, dropout, eps, cross=True)
        self.classes = len(answers)
        if answers:
            self.name(answers)
        if given is not None:
            self.load_state_dict(self.state_dict() | published_state(given, width))

    def name(self, answers: tuple[str, ...]) -> None:
        """Note the pieces by which the classes are answered, those of all names one behind another.

        A sentinel stands behind a name whose pieces are also those of one before it, as those of
        "C04" and "C06" are where no text has a number.
        """
        names: list[list[int]] = []
        known: Counter[tuple[int, ...]] = Counter()
        for answer in answers:
            pieces = self.view.pieces(answer)
            twins = known[(*pieces,)]
            names.append([*pieces, *self.view.sentinels[:twins][-1:], self.view.separator])
            known[(*pieces,)] += 1
        numbers = {
            "of": [number for number, name in enumerate(names) for _ in name],
            "before": [piece for name in names for piece in (self.view.pad, *name[:-1])],
            "written": [piece for name in names for piece in name],
        }
        for buffer, values in numbers.items():
            self.register_buffer(buffer, torch.tensor(values), persistent=False)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return self.read(pieces)

    def embedded(self, ids: Tensor) -> Tensor:
        """The vectors (..., hidden) by which pieces are read."""
        return self.scale * self.table(ids)

    def read(self, pieces: SubwordBatch) -> Tensor:
        """The encoder's states (B, S, hidden)."""
        return self.encoder(self.embedded(pieces.ids), pieces.mask[:, None])

    def write(self, before: Tensor, seen: Tensor, pieces: SubwordBatch) -> Tensor:
        """The decoder's states (B, U, hidden) behind the pieces (B, U) that it has written
        ``before``, of which each place knows those that are ``seen`` (1, U, U), and those that were
        read."""
        return self.decoder(self.embedded(before), seen, self.read(pieces), pieces.mask)

    def logs(self, states: Tensor, ids: Tensor) -> Tensor:
        """Log-probabilities (N,) of pieces behind states (N, hidden)."""
        return -F.cross_entropy(F.linear(states, self.table.weight), ids, reduction="none")

    def told(self, source: SubwordBatch, target: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities (N,) of the pieces of targets (B, U) where ``mask`` is true, in their
        order: the start is read as padding."""
        before = F.pad(target[:, :-1], (1, 0), value=self.view.pad)
        past = torch.ones(2 * before.shape[1:], dtype=torch.bool, device=before.device).tril()
        return self.logs(self.write(before, past[None], source)[mask], target[mask])

    def vector(self, pieces: SubwordBatch) -> Tensor:
        """Log-probabilities (B, classes) of the classes' names. The decoder writes all of them at
        once, and each place knows those of its own name alone."""
        seen = (self.of == self.of[:, None]).tril()
        states = self.write(self.before.expand(len(pieces.ids), -1), seen[None], pieces)
        logs = self.logs(states.flatten(0, 1), self.written.repeat(len(states))).view(len(states), -1)
        return logs.new_zeros(len(states), self.classes).index_add(1, self.of, logs)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Mean surprise of the pieces of the right names."""
        pieces = self.of.bincount(minlength=self.classes)
        return -scores.gather(1, labels[:, None]).sum() / pieces[labels].sum()


def published_state(model: Any, pieces: int) -> dict[str, Tensor]:
    """The weights of a model of transformers under our names, with so many rows of its table."""
    found = {"table.weight": model.shared.weight[:pieces] / math.sqrt(model.config.d_model)}
    for side in ("encoder", "decoder"):
        stack = getattr(model, side)
        found[f"{side}.norm.weight"] = stack.final_layer_norm.weight
        found[f"{side}.distances.weight"] = stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        for number, block in enumerate(stack.block):
            layer, network = f"{side}.layers.{number}", block.layer[-1].DenseReluDense
            attentions = {"attention": block.layer[0].SelfAttention}
            if side == "decoder":
                attentions["across"] = block.layer[1].EncDecAttention
            for ours, attention in attentions.items():
                weights = {
                    "query": attention.q.weight * math.sqrt(model.config.d_kv),
                    "key": attention.k.weight,
                    "value": attention.v.weight,
                    "output": attention.o.weight,
                }
                found |= {f"{layer}.{ours}.{name}.weight": weight for name, weight in weights.items()}
            found |= {f"{layer}.norms.{norm}.weight": part.layer_norm.weight for norm, part in enumerate(block.layer)}
            found[f"{layer}.feedforward.0.weight"] = network.wi.weight
            found[f"{layer}.feedforward.3.weight"] = network.wo.weight
    return found
