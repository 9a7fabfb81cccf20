"""Linear-chain conditional random field: the output layer that scores whole label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn


class Constraints(NamedTuple):
    """What a label sequence must not contain: ``transitions[i, j]`` (L,L) label j after i, ``start`` (L), ``end`` (L); all bool."""

    transitions: Tensor
    start: Tensor
    end: Tensor


def transition_constraints(labels: Sequence[str], scheme: Literal["BIO", "BIOES"] = "BIOES") -> Constraints:
    """What the chunk scheme forbids between ``labels`` ("O", "B-PER", ...), at the start and at the end of a sentence.

    BIO (IOB2): I-X follows B-X or I-X only. BIOES: besides, B-X and I-X are followed by I-X or E-X, E-X closes a chunk, S-X is a
    chunk of one word. Raises ValueError for another scheme, or a label that the scheme does not know.
    """
    if scheme not in ("BIO", "BIOES"):
        raise ValueError(f"scheme {scheme!r} is neither 'BIO' nor 'BIOES'")
    parts = [label.partition("-")[::2] for label in labels]
    for label, (prefix, chunk) in zip(labels, parts, strict=True):
        if prefix not in tuple(scheme) or (prefix == "O") == bool(chunk):
            prefixes = ", ".join(f"{letter}-NAME" for letter in scheme if letter != "O")
            raise ValueError(f"label {label!r} does not belong to {scheme}: expected O, {prefixes}")

    opens = ("B", "I")
    continues = ("I", "E") if scheme == "BIOES" else ("I",)

    def forbidden(before: tuple[str, str], after: tuple[str, str]) -> bool:
        if after[0] in continues:
            return before[0] not in opens or before[1] != after[1]
        return scheme == "BIOES" and before[0] in opens

    outside = ("O", "")
    return Constraints(
        torch.tensor([[forbidden(before, after) for after in parts] for before in parts]),
        torch.tensor([forbidden(outside, after) for after in parts]),
        torch.tensor([forbidden(before, outside) for before in parts]),
    )


class LinearChainCRF(nn.Module):
    """P(y | x) = exp(score(x, y)) / Z, score = start[y_1] + sum_t emission_t[y_t] + sum_t transitions[y_{t-1}, y_t] + end[y_T].

    Lafferty et al. 2001; Huang et al. 2015 (bilstm_crf). Emissions are (B,T,L) scores, masks (B,T) bool with every row true from the
    left for at least one position; what stands in padding does not matter. ``forbidden`` is a (L,L) bool matrix (from, to), or
    :func:`transition_constraints`; methods with ``constrained=True`` give forbidden steps the score -inf, so that no sequence with one
    counts. Decoding does so by default, training by choice.
    """

    def __init__(self, labels: int, forbidden: Tensor | Constraints | None = None):
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(labels, labels))
        self.start = nn.Parameter(torch.zeros(labels))
        self.end = nn.Parameter(torch.zeros(labels))
        if forbidden is None:
            forbidden = torch.zeros(labels, labels, dtype=torch.bool)
        if isinstance(forbidden, Tensor):
            nowhere = torch.zeros(labels, dtype=torch.bool)
            forbidden = Constraints(forbidden, nowhere, nowhere)
        transitions, start, end = forbidden
        if transitions.shape != (labels, labels) or start.shape != (labels,) or end.shape != (labels,):
            raise ValueError(f"constraints are for {tuple(transitions.shape)} labels, the CRF has {labels}")
        self.register_buffer("forbidden_transitions", transitions, persistent=False)
        self.register_buffer("forbidden_start", start, persistent=False)
        self.register_buffer("forbidden_end", end, persistent=False)

    def _parameters_for(self, constrained: bool) -> tuple[Tensor, Tensor, Tensor]:
        if not constrained:
            return self.transitions, self.start, self.end
        return (
            self.transitions.masked_fill(self.forbidden_transitions, -torch.inf),
            self.start.masked_fill(self.forbidden_start, -torch.inf),
            self.end.masked_fill(self.forbidden_end, -torch.inf),
        )

    def _emissions(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Emissions in the parameters' precision (sums over a sentence need it when the encoder ran in half), 0 in padding."""
        return emissions.to(self.transitions.dtype).masked_fill(~mask.unsqueeze(2), 0)

    def log_partition(self, emissions: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """log Z of every sentence (B), by the forward algorithm: -inf where the constraints allow no sequence."""
        transitions, start, end = self._parameters_for(constrained)
        first, *rest = self._emissions(emissions, mask).unbind(1)
        rows, last = torch.arange(len(mask), device=mask.device), mask.sum(1) - 1
        with torch.autocast(emissions.device.type, enabled=False):
            forward = _forward_by_matmul(start + first, transitions, rest)
        if forward is None:
            forward = _forward_by_logsumexp(start + first, transitions, rest)
        return _logsumexp(forward[last, rows] + end)

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """Score of the label sequences ``tags`` (B,T): (B), -inf for a forbidden one."""
        transitions, start, end = self._parameters_for(constrained)
        tags = tags.masked_fill(~mask, 0)
        emitted = self._emissions(emissions, mask).gather(2, tags.unsqueeze(2)).squeeze(2).sum(1)
        moved = transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(1)
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        return start[tags[:, 0]] + emitted + moved + end[last]

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """Mean over the sentences of log Z - score(tags).

        Raises ValueError when ``constrained`` and ``tags`` hold a forbidden sequence: its loss would be infinite.
        """
        gold = self.score(emissions, tags, mask, constrained)
        if constrained and (impossible := torch.isneginf(gold.detach())).any():
            row = int(impossible.nonzero()[0])
            found = tags[row][mask[row]].tolist()
            raise ValueError(f"the constraints forbid the gold labels {found} of row {row}: correct them, or train with constrained=False")
        return (self.log_partition(emissions, mask, constrained) - gold).mean()

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor, constrained: bool = True) -> Tensor:
        """Best label sequences (B,T), 0 in padding; among equal scores the first label, the last position deciding first.

        Raises ValueError when the constraints allow no sequence as long as one of the sentences.
        """
        transitions, start, end = self._parameters_for(constrained)
        first, *rest = self._emissions(emissions, mask).unbind(1)
        into = transitions.T.contiguous()
        scores = [start + first]
        for emission in rest:
            scores.append((scores[-1].unsqueeze(1) + into).amax(2) + emission)

        rows, last = torch.arange(len(mask), device=mask.device), mask.sum(1) - 1
        best, final = (torch.stack(scores)[last, rows] + end).max(1)
        if torch.isneginf(best).any():
            raise ValueError(f"the constraints allow no label sequence of length {int(last[best.argmin()]) + 1}")
        tags = [final]
        # The maximum alone is much cheaper than with its place for all labels; the place is wanted for one label per position.
        for score, inside in zip(scores[-2::-1], mask[:, 1:].unbind(1)[::-1], strict=True):
            before = (score + into.index_select(0, tags[-1])).argmax(1)
            tags.append(torch.where(inside, before, final))
        return torch.stack(tags[::-1], 1).masked_fill(~mask, 0)

    def marginals(self, emissions: Tensor, mask: Tensor, constrained: bool = True) -> Tensor:
        """P(y_t = label | x) (B,T,L), 0 in padding: the gradient of log Z with respect to the emissions; no gradient flows back."""
        with torch.inference_mode(False), torch.enable_grad():
            emissions = emissions.detach().clone().requires_grad_()
            log_partition = self.log_partition(emissions, mask, constrained)
            return torch.autograd.grad(log_partition.sum(), emissions)[0]


def _forward_by_matmul(first: Tensor, transitions: Tensor, rest: Sequence[Tensor]) -> Tensor | None:
    """Forward scores (T,B,L) by shift, exp, matmul and log per step; None where that would not be exact.

    exp(-inf) = 0 is harmless here, but where all that leads to a label is forbidden or vanishes beside the best score (a sum below
    tiny / eps, from which underflow may have taken a visible part; no weight is above 1), the log and its gradient are wrong.
    """
    towards = transitions.detach().amax(0)
    weights = (transitions - towards).exp()
    forward, sums = [first], []
    for emission in rest:
        shift = forward[-1].detach().amax(1, keepdim=True)
        total = (forward[-1] - shift).exp() @ weights
        sums.append(total.detach())
        forward.append(total.log() + (shift + towards) + emission)
    limit = torch.finfo(first.dtype)
    # Written so that a NaN, from a label or a sentence that nothing leads to, fails as well.
    if sums and not torch.stack(sums).amin() >= limit.tiny / limit.eps:
        return None
    return torch.stack(forward)


def _forward_by_logsumexp(first: Tensor, transitions: Tensor, rest: Sequence[Tensor]) -> Tensor:
    """Forward scores (T,B,L), term by term: exact for any scores, -inf among them, and slower."""
    forward = [first]
    for emission in rest:
        forward.append(_logsumexp(forward[-1].unsqueeze(1) + transitions.T) + emission)
    return torch.stack(forward)


def _logsumexp(scores: Tensor) -> Tensor:
    """log sum exp over the last dimension, whose gradient stays finite (0) where all scores are -inf."""
    shift = scores.detach().amax(-1, keepdim=True)
    shift = shift.masked_fill(shift.isneginf(), 0)
    total = (scores - shift).exp().sum(-1)
    empty = total == 0
    return total.masked_fill(empty, 1).log().masked_fill(empty, -torch.inf) + shift.squeeze(-1)
