"""Conditional random field whose transitions are scored anew at each word."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PairCRF(nn.Module):
    """P(y | x) = exp(sum_t score_t[y_(t-1), y_t]) / Z, where y_0 is a mark of the beginning.

    Ma & Hovy 2016, section 2.3. Scores are (B, T, (labels + 1) * labels): at each word those of
    every label behind every other one and, last, behind the beginning. Masks (B, T) are bool with
    every row true from the left for at least one position; what stands in padding does not matter.
    The methods are those of :class:`~harness.layers.crf.LinearChainCRF`, whose transitions have one
    score at all words, and of which this has no constraints.
    """

    def __init__(self, labels: int):
        super().__init__()
        self.labels = labels

    def _pairs(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Scores (B, T, labels + 1, labels) in single precision at least, 0 in padding."""
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(~mask[..., None], 0)
        return exact.unflatten(2, (self.labels + 1, self.labels))

    def log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        """log Z of every sentence (B), by the forward algorithm."""
        (first, *rest), (_, *inside) = self._pairs(scores, mask).unbind(1), mask.unbind(1)
        forward = first[:, -1]
        for pairs, real in zip(rest, inside, strict=True):
            moved = (forward[:, :, None] + pairs[:, :-1]).logsumexp(1)
            forward = torch.where(real[:, None], moved, forward)
        return forward.logsumexp(1)

    def score(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Score of the label sequences ``tags`` (B, T): (B)."""
        tags = tags.masked_fill(~mask, 0)
        before = F.pad(tags[:, :-1], (1, 0), value=self.labels)
        return self._pairs(scores, mask).flatten(2).gather(2, (before * self.labels + tags)[..., None]).sum((1, 2))

    @torch.no_grad()
    def viterbi(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Best label sequences (B, T), 0 in padding; among equal scores the first label, the last
        position deciding first."""
        (first, *rest), (_, *inside) = self._pairs(scores, mask).unbind(1), mask.unbind(1)
        best, steps, itself = first[:, -1], [], torch.arange(self.labels, device=scores.device)
        for pairs, real in zip(rest, inside, strict=True):
            moved, before = (best[:, :, None] + pairs[:, :-1]).max(1)
            best = torch.where(real[:, None], moved, best)
            steps.append(torch.where(real[:, None], before, itself))
        tags = [best.argmax(1)]
        for before in reversed(steps):
            tags.append(before.gather(1, tags[-1][:, None]).squeeze(1))
        return torch.stack(tags[::-1], 1).masked_fill(~mask, 0)

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """P(y_t = label | x) (B, T, labels), 0 in padding: the gradient of log Z with respect to
        the scores, of all labels before together; no gradient flows back."""
        with torch.inference_mode(False), torch.enable_grad():
            # What inference mode made has no gradient, but copies have, the mask among them.
            scores, mask = scores.detach().clone().requires_grad_(), mask.clone()
            (gradient,) = torch.autograd.grad(self.log_partition(scores, mask).sum(), scores)
        return self._pairs(gradient, mask).sum(2)
