"""WeSTClass: documents made of a few words of each class, and self-training on real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks import sphere
from architectures.blocks.classes_of_words import classes_of_words_missing
from architectures.blocks.few_labels import known_classes, telling_words, words_of_names
from harness.kinds import Regime
from harness.objectives import STREAMS, Objective, Step, Supervised, collected_losses
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model, on_device
from harness.views.words import UNKNOWN, spelling

SEEDS = ("documents", "names")
"""Sources of the first words of a class: texts that have its label, or the label's name."""
AT_ONCE = 256
"""Texts of a batch where all of them are answered."""


class WeakLoss(Objective):
    """The loss of made documents, and later of real texts against the model's own answers.

    A few words of each class come first. They grow to all words near them whose vectors no other
    class has as near, and a von Mises-Fisher distribution is fitted to these vectors. A document
    has a direction drawn from it, and its words come from the words nearest to that or, with
    probability ``background``, from all texts.
    """

    streams = STREAMS
    strategies = ("ddp",)  # whose processes have all weights, by which they answer all texts
    documents: Columns | None = None

    def __init__(self, owner: WeSTClass, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.owner, self.last_phase = owner, owner.pretraining
        self.register_buffer("vectors", F.normalize(model.table.tuned.weight.detach().clone(), dim=1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def begin(self, rows: Mapping[str, Any]) -> None:
        labelled, self.texts = rows["labelled"], rows["unlabelled"]
        names, classes = labelled.target.labels, labelled.targets["label"]
        if self.owner.seeds == "names":
            self.seeds = words_of_names(self.texts.view, names)
            known = np.full(len(self.texts), -1)
        else:
            read = labelled.inputs["text"]["ids"]
            self.seeds = telling_words(
                [read[row] for row in range(len(labelled))], classes, len(names), self.owner.words
            )
            known = known_classes(labelled, self.texts)
        if silent := [name for name, words in zip(names, self.seeds, strict=True) if not words]:
            raise ValueError(f"no text with the label {silent[0]!r} has a known word, by which its class would begin")
        self.register_buffer("known", torch.tensor(known))
        self.register_buffer("targets", torch.zeros(len(known), len(names)))

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        alone = step.progress < self.owner.pretraining
        with collected_losses() as terms:
            losses = self.pretraining(model, step) if alone else {"loss": self.self_training(model, step)}
        loss = losses["loss"] + sum(terms.values())
        return losses | {"loss": loss if alone else self.owner.slower * loss} | terms

    # --- made documents ---

    def pretraining(self, model: Model, step: Step) -> dict[str, Tensor]:
        """The divergence of the answers to made documents from their labels, and the loss of texts
        with labels, in the shares that both have in the authors' training set."""
        if self.documents is None:
            self.documents, self.labels = self.made(step.seed)
        labels, device = self.labels, self.vectors.device
        drawn = torch.randint(len(labels), (len(step.batch.rows),))
        documents = on_device(self.texts.view.collate(self.documents, drawn.numpy()), device)
        logs = self.scores(model, documents).log_softmax(-1)
        made = F.kl_div(logs, labels[drawn].to(logs), reduction="batchmean")
        copies = self.owner.copies * int((self.known >= 0).sum())
        if not copies:
            return {"loss": made, "made": made}
        real = F.cross_entropy(self.scores(model, step.batch.inputs["text"]), step.batch.target)
        share = copies / (copies + len(labels))
        return {"loss": (1 - share) * made + share * real, "made": made, "real": real}

    def made(self, seed: int) -> tuple[Columns, Tensor]:
        """Documents of all classes, and their labels (documents, classes): all but the background's
        share for their own class, that share for all of them alike."""
        owner, generator, vectors = self.owner, torch.Generator().manual_seed(seed), self.vectors.cpu()
        vocabulary = self.texts.view.vocabulary
        counts = torch.tensor(vocabulary.row_counts(), dtype=torch.float)
        length = int(self.texts.lengths.mean())
        ids = []
        for words in grown(self.seeds, vectors):
            mean, concentration = sphere.fitted(vectors[words])
            directions = sphere.drawn(mean, concentration, owner.documents, generator)
            nearness = (directions @ vectors.T).exp()
            nearness[:, : UNKNOWN + 1] = 0
            nearest = nearness.topk(min(owner.nearest, nearness.shape[1] - UNKNOWN - 1))
            shares = torch.zeros_like(nearness).scatter(1, nearest.indices, F.normalize(nearest.values, p=1, dim=1))
            shares = (1 - owner.background) * shares + owner.background * counts / counts.sum()
            ids.append(shares.multinomial(length, replacement=True, generator=generator))
        of_class = torch.arange(len(ids)).repeat_interleave(owner.documents)
        labels = (1 - owner.background) * F.one_hot(of_class) + owner.background / len(ids)
        flat = torch.cat(ids).flatten().numpy()
        spellings = np.array([0, 0, *map(spelling, vocabulary.words)], dtype=np.int32)
        bounds = np.arange(0, len(flat) + 1, length)
        columns = {"ids": flat.astype(np.int32), "spellings": spellings[flat]}
        return {name: Ragged(values, bounds) for name, values in columns.items()}, labels

    # --- self-training ---

    def self_training(self, model: Model, step: Step) -> Tensor:
        """Mean divergence of the answers to real texts from the model's own, sharpened ones."""
        if self.steps % self.owner.refresh == 0:
            self.answer_all(model)
        self.steps += 1
        plain = step.batches["unlabelled"]
        logs = self.scores(model, plain.inputs["text"]).log_softmax(-1)
        wanted = self.targets[torch.from_numpy(plain.rows).to(self.targets.device)]
        return F.kl_div(logs, wanted, reduction="batchmean")

    @torch.no_grad()
    def answer_all(self, model: Model) -> None:
        """Make targets of the answers to all texts; a text whose label is known has that."""
        was_training = model.training
        model.eval()
        parts = np.array_split(np.arange(len(self.texts)), -(-len(self.texts) // AT_ONCE))
        batches = (on_device(self.texts.collate(part), self.targets.device) for part in parts)
        with collected_losses():  # what the encoder adds here is no part of the step's loss
            shares = torch.cat([self.scores(model, batch.inputs["text"]).softmax(-1) for batch in batches])
        model.train(was_training)
        targets, known = sharpened(shares), self.known >= 0
        targets[known] = F.one_hot(self.known[known], shares.shape[1]).to(targets.dtype)
        self.targets = targets

    @staticmethod
    def scores(model: Model, text: Any) -> Tensor:
        """Scores (B, classes) of texts whose words are not yet looked up."""
        return model.head.class_scores(model({"text": text}))


def sharpened(shares: Tensor) -> Tensor:
    """Targets (N, classes) of probabilities: p = q^2 / f, so scaled that those of a text are 1
    together, f the sum of a class's over all texts."""
    return F.normalize(shares**2 / shares.sum(0), p=1, dim=1)


def grown(seeds: Sequence[Sequence[int]], vectors: Tensor) -> list[list[int]]:
    """The words of each class with those that are nearest to their mean: as many words for each
    class as there can be with none in two of them. A class with more words keeps them."""
    means = torch.stack([vectors[list(words)].mean(0) for words in seeds])
    orders = (means @ vectors[UNKNOWN + 1 :].T).argsort(dim=1, descending=True, stable=True) + UNKNOWN + 1

    pairs = list(zip(seeds, orders, strict=True))

    def of_size(size: int) -> list[list[int]]:
        return [list(words) if len(words) >= size else order[:size].tolist() for words, order in pairs]

    size = min(map(len, seeds))
    while size < orders.shape[1]:
        larger = [word for words in of_size(size + 1) for word in words]
        if len(larger) > len(set(larger)):
            break
        size += 1
    return of_size(size)


@register(
    "westclass",
    name="WeSTClass",
    kind="regime",
    paper="Meng et al. 2018",
    source="M2.11[169]",
    year=2018,
    version=2,
    parents={"vectors": "skipgram"},
    recipe=Recipe(
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        batch_size=256,
        epochs=20,
        patience=20,
        min_steps=400,
        vector_dims=100,
    ),
    sees=("texts without labels",),
    deviations=(
        (
            "It trains `kim_cnn_static`; the authors' CNN has 20 maps of windows of 2 to 5 words and a layer of 20"
            " units."
        ),
        (
            "Word vectors are those of skip-gram on the text mix, 300 numbers wide; the authors learn 100 numbers from"
            " the texts of the task alone. The classifier reads them at their own lengths."
        ),
        (
            "The words of a class come from all texts that have its label, which `--labels` makes few; the authors have"
            " ten texts a class. No list of stop words is left out, nor marks and words of one letter, and for"
            " sentiment not all but adjectives."
        ),
        "Of documents a batch is drawn at each step; the authors pass over all of them.",
        (
            "Pre-training is two fifths of the steps, with few labels 160, as many as the authors' passes take with"
            " names of classes; with ten documents of each of four they take 200. 240 of"
            " self-training follow, with the momentum that is there; theirs begins without any and ends when answers"
            " stay as they are, after 5,000 steps at most."
        ),
        "The epoch of self-training is chosen on dev, of whose labels the paper has none.",
        (
            "Texts of the training split are self-trained on and others are scored; the paper scores those that it is"
            " trained on."
        ),
    ),
)
class WeSTClass(Regime):
    """Pre-trains a classifier on documents made of words around a few of each class, and then
    trains it on its own sharpened answers to real texts.

    ``seeds`` says where the few words come from: the labelled texts ("documents": the ``words`` of
    highest TF-IDF in a class), or the labels' names alone ("names"), when no label of a text is
    read. ``documents`` are made for each class, whose directions are drawn; words come from the
    ``nearest`` ones to it, or from the ``background``. Labelled texts stand among them ``copies``
    times. ``pretraining`` is the share of this part in the training. In the part after it the loss
    counts ``slower``, which is the rate that it has. All texts are answered anew after ``refresh``
    steps. ``wraps`` is any classifier of words.
    """

    trained_by = WeakLoss

    def __init__(
        self,
        wraps: str = "kim_cnn_static",
        seeds: str = "documents",
        words: int = 10,
        documents: int = 500,
        nearest: int = 50,
        background: float = 0.2,
        copies: int = 10,
        pretraining: float = 0.4,
        slower: float = 0.01,
        refresh: int = 50,
    ):
        if seeds not in SEEDS:
            raise ValueError(f"seeds={seeds!r} is none of {', '.join(SEEDS)}")
        self.wraps, self.seeds, self.words, self.documents = wraps, seeds, words, documents
        self.nearest, self.background, self.copies = nearest, background, copies
        self.pretraining, self.slower, self.refresh = pretraining, slower, refresh

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return classes_of_words_missing(task, hyperparameters, "writes words")
