"""Linear-chain conditional random field: the output layer that scores whole label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Constraints(NamedTuple):
    """Parts that a label sequence must not have: ``transitions[i, j]`` (L,L) label j after i,
    ``start`` (L), ``end`` (L); all bool."""

    transitions: Tensor
    start: Tensor
    end: Tensor


def transition_constraints(labels: Sequence[str], scheme: str = "BIOES") -> Constraints:
    """Transitions that the chunk scheme forbids between ``labels`` ("O", "B-PER", ...), at the
    start and at the end of a sentence.

    BIO (IOB2): I-X follows B-X or I-X only. BIOES: besides, B-X and I-X are followed by I-X or E-X,
    E-X closes a chunk, S-X is a chunk of one word. Raises ValueError for another scheme, or a label
    that the scheme does not know.
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
    """P(y | x) = exp(score(x, y)) / Z, score = start[y_1] + sum_t emission_t[y_t] + sum_t
    transitions[y_{t-1}, y_t] + end[y_T].

    Lafferty et al. 2001; Huang et al. 2015 (bilstm_crf). Emissions are (B,T,L) scores, masks (B,T)
    bool with every row true from the left for at least one position; what stands in padding does
    not matter. ``forbidden`` is a (L,L) bool matrix (from, to), or :func:`transition_constraints`;
    methods with ``constrained=True`` give forbidden steps the score -inf, so that no sequence with
    one counts. Decoding does so by default, training by choice.
    """

    forbidden_transitions: Tensor
    forbidden_start: Tensor
    forbidden_end: Tensor

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
        """Emissions in the parameters' precision (sums over a sentence need it when the encoder ran
        in half), 0 in padding."""
        return emissions.to(self.transitions.dtype).masked_fill(~mask.unsqueeze(2), 0)

    def log_partition(self, emissions: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """log Z of every sentence (B), by the forward algorithm: -inf where the constraints allow
        no sequence."""
        transitions, start, end = self._parameters_for(constrained)
        emissions, last = self._emissions(emissions, mask).transpose(0, 1), mask.sum(1) - 1
        with torch.autocast(emissions.device.type, enabled=False):
            chart = _forward_by_matmul(emissions, transitions, start, end, last)
        if chart is None:
            return _forward_by_logsumexp(emissions, transitions, start, end, last)
        return _LogPartition.apply(emissions, transitions, start, end, last, chart)

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """Score of the label sequences ``tags`` (B,T): (B), -inf for a forbidden one."""
        transitions, start, end = self._parameters_for(constrained)
        tags = tags.masked_fill(~mask, 0)
        emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).to(transitions.dtype).masked_fill(~mask, 0).sum(1)
        moved = transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(1)
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        return start[tags[:, 0]] + emitted + moved + end[last]

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor, constrained: bool = False) -> Tensor:
        """Mean over the sentences of log Z - score(tags).

        Raises ValueError when ``constrained`` and ``tags`` hold a forbidden sequence: its loss
        would be infinite.
        """
        gold = self.score(emissions, tags, mask, constrained)
        if constrained and (impossible := torch.isneginf(gold)).any():
            row = int(impossible.nonzero()[0])
            found = tags[row][mask[row]].tolist()
            raise ValueError(
                f"the constraints forbid the gold labels {found} of row {row}: correct them, or train with"
                " constrained=False"
            )
        return (self.log_partition(emissions, mask, constrained) - gold).mean()

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor, constrained: bool = True) -> Tensor:
        """Best label sequences (B,T), 0 in padding; among equal scores the first label, the last
        position deciding first.

        Raises ValueError when the constraints allow no sequence as long as one of the sentences.
        """
        transitions, start, end = self._parameters_for(constrained)
        # Labels first and sentences last: the maximum over the label before is then one over whole
        # rows, several times as fast.
        first, *rest = self._emissions(emissions, mask).permute(1, 2, 0).contiguous().unbind()
        moves, scores = transitions.unsqueeze(2), [start.unsqueeze(1) + first]
        for emission in rest:
            scores.append((scores[-1].unsqueeze(1) + moves).amax(0) + emission)
        forward = torch.stack(scores).transpose(1, 2).contiguous()

        rows, last = torch.arange(len(mask), device=mask.device), mask.sum(1) - 1
        best, final = (forward[last, rows] + end).max(1)
        if torch.isneginf(best).any():
            raise ValueError(f"the constraints allow no label sequence of length {int(last[best.argmin()]) + 1}")
        into, tags = transitions.T.contiguous(), [final]
        # The maximum alone is much cheaper than with its place for all labels; the place is wanted
        # for one label per position.
        for score, inside in zip(forward[:-1].unbind()[::-1], mask[:, 1:].unbind(1)[::-1], strict=True):
            before = (score + into.index_select(0, tags[-1])).argmax(1)
            tags.append(torch.where(inside, before, final))
        return torch.stack(tags[::-1], 1).masked_fill(~mask, 0)

    def marginals(self, emissions: Tensor, mask: Tensor, constrained: bool = True) -> Tensor:
        """P(y_t = label | x) (B,T,L), 0 in padding: the gradient of log Z with respect to the
        emissions; no gradient flows back."""
        with torch.inference_mode(False), torch.enable_grad():
            emissions = emissions.detach().clone().requires_grad_()
            log_partition = self.log_partition(emissions, mask, constrained)
            return torch.autograd.grad(log_partition.sum(), emissions)[0]


class _Chart(NamedTuple):
    """The forward algorithm without logarithms: ``states`` (T,B,L) are exp of the forward scores,
    scaled so that a row's best is 1.

    ``states[t] = (states[t - 1] @ weights) * steps[t]``; ``ends`` (B,L) times the last states sums
    to 1; ``log_partition`` (B).
    """

    states: Tensor
    weights: Tensor
    steps: Tensor
    ends: Tensor
    log_partition: Tensor


@torch.no_grad()
def _forward_by_matmul(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, last: Tensor
) -> _Chart | None:
    """The chart of emissions (T,B,L), rescaled at each step (Rabiner 1989, V.A); None where that
    would not be exact.

    A weight or potential of 0 is harmless, but where all that leads to a label is forbidden or
    vanishes beside the best score (a sum below tiny / eps, had its states not been scaled up, from
    which underflow may have taken a visible part; no weight is above 1), log Z and its gradient are
    wrong.
    """
    towards, most = transitions.amax(0), end.amax()
    weights = (transitions - towards).exp()
    scores = torch.cat([emissions[:1] + start, emissions[1:] + towards])
    shifts = scores.amax(2, keepdim=True)
    potentials = (scores - shifts).exp()
    states, sums, scales = [potentials[0]], [], [torch.ones_like(shifts[0])]
    for potential in potentials[1:]:
        sums.append(states[-1] @ weights)
        reached = sums[-1] * potential
        scales.append(reached.amax(1, keepdim=True))
        states.append(reached / scales[-1])

    at_end = last, torch.arange(len(last), device=last.device)
    forward, scale = torch.stack(states), torch.stack(scales)
    ends = (end - most).exp()
    total = (forward[at_end] * ends).sum(1, keepdim=True)
    limit = torch.finfo(forward.dtype)
    # No more than any sum of the sentence is, unscaled; to take each by its own scale is slower.
    smallest = torch.cat([total, *sums], 1).amin(1) * scale.amin((0, 2))
    # Written so that a NaN, from a label or a sentence that nothing leads to, fails as well.
    if not smallest.amin() >= limit.tiny / limit.eps:
        return None
    log_partition = total.log() + most + (scale.log() + shifts).cumsum(0)[at_end]
    return _Chart(forward, weights, potentials / scale, ends / total, log_partition.squeeze(1))


class _LogPartition(torch.autograd.Function):
    """log Z with its gradient by the backward algorithm: how probable each label is, and how often
    each transition is expected."""

    @staticmethod
    def forward(
        ctx, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, last: Tensor, chart: _Chart
    ) -> Tensor:
        ctx.save_for_backward(last, *chart[:-1])
        return chart.log_partition

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        last, states, weights, steps, ends = ctx.saved_tensors
        at_end = last, torch.arange(len(last), device=gradient.device)
        backward = torch.zeros_like(states)
        backward[at_end] = ends * gradient.unsqueeze(1)
        with torch.autocast(gradient.device.type, enabled=False):
            *before, after = backward.unbind()
            for earlier, step in zip(before[::-1], steps[1:].unbind()[::-1], strict=True):
                after = earlier.addmm_(after * step, weights.T)
            expected = states * backward
            pairs = states[:-1].flatten(0, 1).T @ (backward[1:] * steps[1:]).flatten(0, 1)
        return expected, weights * pairs, expected[0].sum(0), expected[at_end].sum(0), None, None


def _forward_by_logsumexp(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, last: Tensor) -> Tensor:
    """log Z (B) of emissions (T,B,L), term by term: exact for any scores, -inf among them, and
    slower."""
    forward = [start + emissions[0]]
    for emission in emissions[1:]:
        forward.append(_logsumexp(forward[-1].unsqueeze(1) + transitions.T) + emission)
    return _logsumexp(torch.stack(forward)[last, torch.arange(len(last), device=last.device)] + end)


def _logsumexp(scores: Tensor) -> Tensor:
    """log sum exp over the last dimension, whose gradient stays finite (0) where all scores are
    -inf."""
    shift = scores.detach().amax(-1, keepdim=True)
    shift = shift.masked_fill(shift.isneginf(), 0)
    total = (scores - shift).exp().sum(-1)
    empty = total == 0
    return total.masked_fill(empty, 1).log().masked_fill(empty, -torch.inf) + shift.squeeze(-1)
