"""A label model: how often each of several sources of labels is right, by how often they agree
(Ratner et al. 2019)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

PRECISION = 0.7
"""Share of a source's labels that are right, where the search for the true share begins: on that
side of a half on which sources are better than chance."""
LEAST = 0.01
"""Smallest probability, and distance of the greatest one from 1, by which posteriors are made."""


def indicators(votes: Tensor, classes: int) -> Tensor:
    """1 (N, sources, classes) at the class that a source says, nothing where it abstains; ``votes``
    (N, sources) are -1 there, and else numbers of classes."""
    return F.one_hot(votes + 1, classes + 1)[..., 1:].double()


def fitted(votes: Tensor, balance: Tensor, steps: int = 500) -> Tensor:
    """Probability mu (sources, classes said, classes) that a source says a class, given the true
    one, for votes (N, sources) on texts whose classes have the shares ``balance`` (classes,).

    Sources are independent given the class: two of them say c and d together with probability sum
    over y of mu_i[c, y] balance[y] mu_j[d, y]. The squared distance to the shares in which they do
    is least for mu, and so is that of mu balance to the shares in which each says each class. With
    more than two classes several mu may do so; found is one near the beginning, where each source
    is right as often.
    """
    said = indicators(votes, len(balance))
    together = torch.einsum("nic,njd->icjd", said, said) / len(said)
    shares, balance = said.mean(0), balance.double()
    others = ~torch.eye(votes.shape[1], dtype=torch.bool)[:, None, :, None]
    right = torch.eye(len(balance), dtype=torch.double)
    rest = (1 - balance).clamp(min=1e-9)  # 0 where there is one class
    given = right * PRECISION / balance + (1 - right) * ((1 - PRECISION) / rest)[:, None]
    mu = (shares[..., None] * given).requires_grad_()
    search = torch.optim.LBFGS([mu], max_iter=steps, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        differences = (together - torch.einsum("icy,y,jdy->icjd", mu, balance, mu)) * others
        total = differences.square().sum() + (mu @ balance - shares).square().sum()
        total.backward()
        return total

    search.step(loss)
    return mu.detach()


def posterior(votes: Tensor, mu: Tensor, balance: Tensor) -> Tensor:
    """Probabilities (N, classes) of the classes given the votes: the product of the balance and of
    what each source says; one that abstains says nothing."""
    logs = mu.clamp(LEAST, 1 - LEAST).log()
    said = indicators(votes, len(balance))
    return (torch.einsum("nic,icy->ny", said, logs) + balance.double().log()).softmax(-1)
