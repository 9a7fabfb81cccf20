"""Writing the most probable token sequence with a model that scores the next token: greedily, or by
a beam (Sutskever et al. 2014).

A model is ``step(tokens (N,), state) -> (log probabilities of the next token (N,V), state)``. The
state is a tensor, or tuples, lists, dicts and named tuples of tensors; dimension 0 of every tensor
is N (an LSTM's (layers, N, hidden) must be transposed), and whatever else stands in it is handed on
as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


@torch.no_grad()
def greedy(step: Step, state: Any, start: int, end: int, max_length: int) -> list[list[int]]:
    """The most probable token at every step, for each source, without ``start`` and ``end``.

    ``state`` has one row per source. Stops when every source has ended, or after ``max_length``
    tokens, ``end`` counted. Raises ValueError for a state without tensors, or whose tensors differ
    in dimension 0.
    """
    sources, device = _rows(state)
    tokens = torch.full((sources,), start, device=device)
    ended = torch.zeros(sources, dtype=torch.bool, device=device)
    written: list[list[int]] = [[] for _ in range(sources)]
    for _ in range(max_length):
        log_probs, state = step(tokens, state)
        tokens = log_probs.argmax(1)
        ended |= tokens == end
        for sequence, token, is_over in zip(written, tokens.tolist(), ended.tolist(), strict=True):
            if not is_over:
                sequence.append(token)
        if ended.all():
            break
    return written


@torch.no_grad()
def beam_search(
    step: Step, state: Any, start: int, end: int, max_length: int, beam: int = 6, length_penalty: float = 0.0
) -> list[list[int]]:
    """The best finished sequence that a beam finds, for each source, without ``start`` and ``end``.

    ``state`` has one row per source; ``step`` sees ``beam`` rows for each, one source's beside one
    another, re-ordered as hypotheses live and die. The score is the sum of log p divided by length
    ** ``length_penalty`` (length in tokens, ``end`` counted). A hypothesis whose ``end`` is among
    the ``beam`` best continuations is finished and put aside; the best ``beam`` of the others go
    on, until none can beat its source's finished one, or for ``max_length`` tokens, ``end``
    counted: a source without a finished hypothesis then gets its best unfinished one. With
    ``beam=1`` and no length penalty this is :func:`greedy`.

    Raises ValueError for a beam below 1, a negative ``length_penalty`` (it would break the stopping
    rule), and as :func:`greedy` does.
    """
    if beam < 1:
        raise ValueError(f"beam is {beam}: it must keep at least one hypothesis")
    if length_penalty < 0:
        raise ValueError(f"length_penalty is {length_penalty}: it must be 0 or more")
    sources, device = _rows(state)
    source = torch.arange(sources, device=device).unsqueeze(1)
    state = _select(state, source.expand(sources, beam).flatten())
    tokens = torch.full((sources, beam), start, device=device)
    written = torch.empty(sources, beam, 0, dtype=torch.long, device=device)
    # The hypotheses of a source begin alike, so only one may be continued at first.
    scores = torch.full((sources, beam), -torch.inf, device=device)
    scores[:, 0] = 0
    finished: list[list[int] | None] = [None] * sources
    finished_score = torch.full((sources,), -torch.inf, device=device)

    for length in range(1, max_length + 1):
        log_probs, state = step(tokens.flatten(), state)
        vocabulary = log_probs.shape[1]
        continued = scores.unsqueeze(2) + log_probs.reshape(sources, beam, vocabulary)
        # A hypothesis has one continuation that ends, so twice the beam holds enough that do not.
        candidates, places = continued.flatten(1).topk(min(2, vocabulary) * beam)
        origins, tokens = places // vocabulary, places % vocabulary
        ends = tokens == end

        closing = candidates[:, :beam].masked_fill(~ends[:, :beam], -torch.inf) / length**length_penalty
        best, rank = closing.max(1)
        for better in (best > finished_score).nonzero().flatten().tolist():
            finished[better] = written[better, origins[better, rank[better]]].tolist()
        finished_score = torch.maximum(finished_score, best)

        open_ranks = ends.int().argsort(dim=1, stable=True)[:, :beam]
        scores, origins, tokens = (field.gather(1, open_ranks) for field in (candidates, origins, tokens))
        written = torch.cat([written[source, origins], tokens.unsqueeze(2)], 2)
        # Log p only falls, so a hypothesis is worth most as it stands, over the greatest length.
        if (finished_score >= scores[:, 0] / max_length**length_penalty).all():
            break
        state = _select(state, (source * beam + origins).flatten())
    return [written[i, 0].tolist() if sequence is None else sequence for i, sequence in enumerate(finished)]


def _rows(state: Any) -> tuple[int, torch.device]:
    """Dimension 0 of every tensor in ``state``, and their device."""
    tensors = list(_tensors(state))
    if not tensors:
        raise ValueError("the state holds no tensor: a search reads the number of sources from dimension 0")
    if len({tensor.shape[:1] for tensor in tensors}) > 1:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise ValueError(f"the tensors of the state differ in dimension 0, which must be the source: {shapes}")
    return len(tensors[0]), tensors[0].device


def _tensors(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, (tuple, list, dict)):
        for part in state.values() if isinstance(state, dict) else state:
            yield from _tensors(part)


def _select(state: Any, rows: Tensor) -> Any:
    """``state`` with the given rows of every tensor."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return {name: _select(part, rows) for name, part in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_select(part, rows) for part in state))
    if isinstance(state, (tuple, list)):
        return type(state)(_select(part, rows) for part in state)
    return state
