"""Texts that a generator makes of each category enlarge the training set of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.classes_of_words import classes_of_words_missing
from architectures.blocks.convolutions import WindowMaxima
from harness.kinds import Regime
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model
from harness.views.words import WordBatch, spelling

END = 0
"""Padding's number, which no word has: it stands before the first word and behind the last."""


class TextGenerator(nn.Module):
    """An LSTM over words that reads the vector of a category beside each of them.

    Texts (B, T) are numbers of words with :data:`END` behind them. One has at least one word, and
    ends without an end where it has ``longest`` words.
    """

    def __init__(self, words: int, classes: int, size: int, hidden: int, longest: int):
        super().__init__()
        self.longest = longest
        self.words, self.categories = nn.Embedding(words, size), nn.Embedding(classes, size)
        self.recurrence = nn.LSTM(2 * size, hidden, batch_first=True)
        self.output = nn.Linear(hidden, words)

    def following(self, before: Tensor, categories: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Logarithms (B, T, words) of the probabilities of what follows each word ``before`` (B, T)
        in texts of these ``categories`` (B,), and the state behind the last."""
        words = self.words(before)
        joined = torch.cat([words, self.categories(categories)[:, None].expand_as(words)], dim=-1)
        states, state = self.recurrence(joined, state)
        scores = self.output(states)
        ending = torch.arange(scores.shape[-1], device=scores.device) == END
        return scores.masked_fill((before == END)[..., None] & ending, -torch.inf).log_softmax(-1), state

    def logs(self, texts: Tensor, categories: Tensor) -> Tensor:
        """Logarithm (B,) of the probability of each text, its end included."""
        told = F.pad(texts, (1, 1), value=END)[:, : self.longest + 1]
        before, after = told[:, :-1], told[:, 1:]
        logs = self.following(before, categories)[0].gather(2, after[..., None]).squeeze(2)
        behind = before == END
        behind[:, 0] = False
        return logs.masked_fill(behind, 0).sum(1)

    @torch.no_grad()
    def drawn(self, categories: Tensor, lots: Tensor) -> Tensor:
        """Texts (B, T) of these categories, by lots (B, ``longest``) in [0, 1): a word is the first
        up to which the probabilities sum to more than its lot."""
        word, state, texts = torch.full_like(categories, END), None, []
        for lot in lots.unbind(1):
            logs, state = self.following(word[:, None], categories, state)
            upto = logs[:, 0].exp().cumsum(1)
            word = (upto <= lot[:, None] * upto[:, -1:]).sum(1).clamp(max=upto.shape[1] - 1)
            if texts:
                word = word.masked_fill(texts[-1] == END, END)
            if (word == END).all():
                break
            texts.append(word)
        return torch.stack(texts, 1)


class TextDiscriminator(nn.Module):
    """Scores (B,) of texts (B, T), positive for real ones: the maxima of a convolution."""

    def __init__(self, words: int, size: int, maps: int):
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.convolution = WindowMaxima(size, maps, (3, 4, 5))
        self.output = nn.Linear(self.convolution.size, 1)

    def forward(self, texts: Tensor) -> Tensor:
        return self.output(self.convolution(self.words(texts), texts != END))[:, 0]


class CategoryTexts(Objective):
    """Three losses for three players: of the classifier, the generator and the discriminator.

    A text is made for each labelled one, of its category. In the first phase the generator learns
    the likelihood of labelled texts alone, and the classifier reads no others; the discriminator
    learns in both.
    """

    strategies = ("ddp",)
    last_phase = 1 / 2
    kept = 0.9
    """Share of the usual reward of a category that a step leaves."""

    def __init__(self, owner: CategorySentenceGAN, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        words, classes = len(model.table.tuned.weight), len(model.head.target.labels)
        self.policy, self.weight = owner.policy, owner.weight
        self.generator = TextGenerator(words, classes, owner.size, owner.hidden, owner.longest)
        self.discriminator = TextDiscriminator(words, owner.size, owner.maps)
        self.register_buffer("usual", torch.zeros(classes))
        self.register_buffer("spellings", torch.zeros(words, dtype=torch.long))

    def begin(self, rows: Mapping[str, Any]) -> None:
        self.spellings = torch.tensor([0, 0, *map(spelling, rows["labelled"].view.vocabulary.words)])

    def players(self, model: Model) -> dict[str, list[tuple[str, nn.Parameter]]]:
        own = {
            player: [(f"objective.{player}.{name}", each) for name, each in getattr(self, player).named_parameters()]
            for player in ("generator", "discriminator")
        }
        return {"loss": list(model.named_parameters())} | own

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        categories = step.batch.target
        real = step.batch.inputs["text"].ids[:, : self.generator.longest]
        made = self.generator.drawn(categories, torch.rand(len(real), self.generator.longest, device=real.device))
        judged = self.discriminator(made)
        telling = F.softplus(-self.discriminator(real)).mean() + F.softplus(judged).mean()

        losses = self.inner.losses(model, step)
        scores = model.head.class_scores(model({"text": self.batch(made)}))
        costs = F.cross_entropy(scores, categories, reduction="none")
        rewards = (judged.sigmoid() * (-costs).exp()).detach()
        likelihood = -self.generator.logs(real, categories).mean()
        known = {"discriminator": telling, "likelihood": likelihood, "reward": rewards.mean(), "made": costs.mean()}
        if step.progress < self.last_phase:
            return losses | known | {"generator": likelihood}
        policy = self.reinforced(made, categories, rewards)
        enlarged = losses["loss"] + self.weight * costs.mean()
        return losses | known | {"loss": enlarged, "generator": likelihood + self.policy * policy}

    def reinforced(self, texts: Tensor, categories: Tensor, rewards: Tensor) -> Tensor:
        """The loss whose gradient is that of the generator's policy: the mean of -(R - b) log p,
        where b is the moving mean of the rewards of a category before this step."""
        advantages = rewards - self.usual[categories]
        sums = torch.zeros_like(self.usual).index_add(0, categories, rewards)
        counts = categories.bincount(minlength=len(self.usual))
        moved = self.kept * self.usual + (1 - self.kept) * sums / counts.clamp(min=1)
        self.usual.copy_(torch.where(counts > 0, moved, self.usual))
        return -(advantages * self.generator.logs(texts, categories)).mean()

    def batch(self, texts: Tensor) -> WordBatch:
        """The texts (B, T) as an encoder of words reads them."""
        mask = texts != END
        return WordBatch(texts, mask, mask.sum(1), spellings=self.spellings[texts])


@register(
    "cs_gan",
    name="CS-GAN",
    kind="regime",
    paper="Li et al. 2018",
    source="M2.11[180]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, clip=1.0, min_steps=1000),
    deviations=(
        "The paper's sizes and rates could not be read: those of the players are ours, and so are the phases.",
        "The classifier is `kim_cnn_rand`, with its own maps and dropout.",
        (
            "A reward is the product of both answers to the whole text, against the moving mean of its category; no"
            " rest of a text is rolled out from its beginnings."
        ),
        "The likelihood of labelled texts stays in the generator's loss when rewards begin.",
        (
            "Texts are made anew in each step, one for each labelled text and of its category; no set of them is made"
            " once and kept."
        ),
        "Rewards are read with dropout, in the pass that teaches the classifier.",
    ),
    variants={
        "cs_gan_likelihood": {
            "name": "CS-GAN, generator by likelihood alone",
            "hyperparameters": {"policy": 0.0},
        },
    },
)
class CategorySentenceGAN(Regime):
    """A classifier reads, beside each labelled text, one that a generator makes of the same
    category.

    The generator is an LSTM with ``hidden`` numbers that reads the vector of the category beside
    each word, of ``size`` numbers both; it makes texts of at most ``longest`` words. The
    discriminator tells made texts from labelled ones by ``maps`` convolutions over each of 3, 4 and
    5 words. A made text x of category c is rewarded with D(x) C(c|x), the probabilities that these
    say of it, by REINFORCE (``policy`` times its loss, beside that of the likelihood of labelled
    texts). ``weight`` is that of the mean loss of made texts beside that of labelled ones. In the
    first half of the training nobody is rewarded and no made text is read.

    ``wraps`` is any classifier of words, which alone answers when training ends. Without a
    generator it is the architecture that is wrapped, by this recipe ``weight=0``;
    ``cs_gan_likelihood`` has one that no reward teaches.

    A made text need not be of the category that it was made for. On the mini corpus of SST-2, where
    a word of negation decides, one in eight is of the other at the end and more are before, and the
    classifier falls by three or four points from all right. With 200 labels of SST-2 itself the
    discriminator knows most made texts, so that rewards stay near .02. Slow: a text is made word by
    word, and a step trains three networks.
    """

    trained_by = CategoryTexts

    def __init__(
        self,
        wraps: str = "kim_cnn_rand",
        size: int = 64,
        hidden: int = 128,
        maps: int = 64,
        longest: int = 40,
        policy: float = 1.0,
        weight: float = 1.0,
    ):
        self.wraps, self.size, self.hidden, self.maps, self.longest = wraps, size, hidden, maps, longest
        self.policy, self.weight = policy, weight

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return classes_of_words_missing(task, hyperparameters, "writes words")
