"""Policies: choices that are drawn while a text is read, and the loss that teaches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from harness.layers.noise import Noise

State = tuple[Tensor, Tensor]
"""State of an LSTM, (h, c), of B texts."""

Lots = Callable[[Tensor, Tensor], Tensor]
"""From the ids and the mask (B, T) of words, a number for each of them: a choice is yes where it is
below the probability of yes."""


def likeliest(_: Tensor, mask: Tensor) -> Tensor:
    """Lots by which each choice is the likelier one."""
    return torch.full(mask.shape, 0.5, device=mask.device)


def every(step: int) -> Lots:
    """Lots by which the choice is yes for every ``step``-th word and for no other, whatever is
    likely."""

    def lots(_: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        return torch.where(places % step == 0, -1.0, 2.0).expand(mask.shape)

    return lots


def draws_of(ids: Tensor, mask: Tensor, key: Sequence[int], draws: int) -> Tensor:
    """Numbers in [0, 1) for so many draws of each text: (draws, B, T) for words or sentences, whose
    ids and mask are (B, T) or (B, T, words). They depend on the text's words and on ``key``
    alone."""
    words = mask.flatten(1)
    first = (~words).long().argsort(dim=1, stable=True)  # padding stands between sentences too
    noise = Noise(ids.flatten(1).gather(1, first), words.gather(1, first), key)
    return torch.stack([noise.uniform(mask.shape[1]) for _ in range(draws)])


def drawn(key: Sequence[int], draws: int) -> Lots:
    """Lots of so many draws of a batch that is :func:`repeated` as often; ``key`` is (seed, number
    of the pass over the data)."""

    def lots(ids: Tensor, mask: Tensor) -> Tensor:
        texts = len(ids) // draws
        return draws_of(ids[:texts], mask[:texts], key, draws).flatten(0, 1)

    return lots


class Told(NamedTuple):
    """Of each text of a pass: the logarithm (B,) of the probability of its choices together, and
    the share (B,) of its words for which the choice was yes."""

    logs: Tensor
    share: Tensor


class Chooser(nn.Module):
    """Choices that a policy makes: by lots in training, and for whom it tells of them.

    Until the policy has learnt something (``acts``), choices in evaluation are those that
    ``before`` gives; from then on the likelier ones.
    """

    acts: Tensor

    def __init__(self, before: Lots):
        super().__init__()
        self.before = before
        self.register_buffer("acts", torch.tensor(False))
        self.chosen: Lots | None = None
        self.told: list[Told] | None = None

    @contextmanager
    def choosing(self, lots: Lots) -> Iterator[list[Told]]:
        """Choose by these lots while the block runs, and tell of each text that is read in it."""
        self.chosen, self.told = lots, []
        try:
            yield self.told
        finally:
            self.chosen, self.told = None, None

    def lots_of(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The lots (B, T) by which choices are made for words of these ids and this mask."""
        return (self.chosen or (likeliest if self.acts else self.before))(ids, mask)

    def lots(self, words: Any) -> Tensor:
        """The lots (B, T) by which choices are made for the words or sentences of a batch."""
        return self.lots_of(words.ids, words.mask)


class Policy(Chooser):
    """Yes or no to each word, by a linear layer and a sigmoid. No gradient goes to what it looks
    at: rewards teach the policy alone.

    ``start`` is the first bias, an inclination to yes or no.
    """

    def __init__(self, size: int, start: float, before: Lots):
        super().__init__(before)
        self.yes = nn.Linear(size, 1)
        nn.init.constant_(self.yes.bias, start)

    def forward(self, seen: Tensor, lots: Tensor) -> tuple[Tensor, Tensor]:
        """The choices (B,) by what is seen (B, size) and by lots (B,), true for yes, and the
        logarithm (B,) of the probability of each."""
        scores = self.yes(seen.detach())[:, 0]
        return chosen_by(scores, lots)

    def tell(self, logs: Tensor, yes: Tensor, free: Tensor, mask: Tensor) -> Tensor:
        """The share (B,) of words for which the choice was yes, told with the logarithms (B, T) of
        choices to who listens: which of them are ``free`` and not forced (B, T), and which are
        words (B, T)."""
        share = (yes & mask).sum(1) / mask.sum(1)
        if self.told is not None:
            self.told.append(Told((logs * (free & mask)).sum(1), share))
        return share


def chosen_by(scores: Tensor, lots: Tensor) -> tuple[Tensor, Tensor]:
    """Choices by scores of yes (any shape) and lots, and the logarithms of their probabilities."""
    chosen = lots < scores.sigmoid()
    return chosen, nn.functional.logsigmoid(torch.where(chosen, scores, -scores))


def where(chosen: Tensor, new: State, old: State) -> State:
    """The new state of the texts that are chosen (B,), the old one of the others."""
    return torch.where(chosen[:, None], new[0], old[0]), torch.where(chosen[:, None], new[1], old[1])


def reinforced(logs: Tensor, rewards: Tensor) -> Tensor:
    """The loss whose gradient is that of a policy (REINFORCE, Williams 1992): the mean of -(R - b)
    log pi over draws (K, B), where b is a text's mean reward over its K draws; R and b count as
    constants. Since a draw is in its own mean, the gradient is (K - 1) / K of the exact one on
    average; ``ValueError`` if there is one draw, whose own mean leaves nothing to learn."""
    if len(rewards) < 2:
        raise ValueError("draws=1: rewards are compared with the mean of a text's draws, which takes two at least")
    advantage = (rewards - rewards.mean(0)).detach()
    return -(advantage * logs).mean()


def repeated(batch: Any, times: int) -> Any:
    """A batch of texts so many times, one behind the other."""
    return type(batch)(*(torch.cat([field] * times) if field.numel() else field for field in batch))
