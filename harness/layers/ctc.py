"""Reading label sequences out of frame scores trained with connectionist temporal classification
(Graves et al. 2006).

A path gives every frame a label or the blank (index 0). Its label sequence is what remains when
repeats are merged first and blanks dropped then, so that a blank between equal labels keeps both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

BLANK = 0
NOTHING = -1


def best_path(log_probs: Tensor, lengths: Tensor) -> list[list[int]]:
    """Label sequences of the most probable paths: ``log_probs`` (B,T,L) are scores of the frames,
    ``lengths`` (B) count them."""
    path = log_probs.argmax(2)
    kept = path != BLANK
    kept[:, 1:] &= path[:, 1:] != path[:, :-1]
    kept &= torch.arange(path.shape[1], device=path.device) < lengths.to(path.device).unsqueeze(1)
    return [labels.tolist() for labels in path[kept].split(kept.sum(1).tolist())]


def prefix_beam_search(
    log_probs: Tensor, lengths: Tensor, beam: int = 16, prune: float | None = None
) -> list[list[int]]:
    """Most probable label sequences, each summed over its paths, by a beam over prefixes (Graves
    2012, 7.5; Hannun et al. 2014).

    ``log_probs`` (B,T,L) are log probabilities, ``lengths`` (B) the frames of each row. With
    ``prune`` no prefix is extended by a label whose log probability in the frame is below it (-8,
    say: faster, seldom another answer). Among equal scores prefixes of the beam go before new ones,
    and those of better rank before others. NaN counts as probability 0; a row where all is
    impossible is empty. Raises ValueError for a beam below 1.
    """
    if beam < 1:
        raise ValueError(f"beam is {beam}: it must keep at least one prefix")
    frames = lengths.cpu().numpy()
    order = np.argsort(-frames, kind="stable")  # Long rows first: the rows still running are a slice.
    frames, scores = frames[order], log_probs.detach().double().cpu().numpy()[order]
    scores[np.isnan(scores)] = -np.inf
    prefixes = _Prefixes(len(frames))
    state = _Beam.start(len(frames), beam)
    best = state.node[:, 0].copy()
    for frame in range(frames.max(initial=0)):
        running = int((frames > frame).sum())
        state = _advance(_Beam(*(field[:running] for field in state)), scores[:running, frame], prune, prefixes)
        best[:running] = state.node[:, 0]
    return [prefixes.labels(best[place]) for place in np.argsort(order)]


class _Prefixes:
    """Every prefix seen, as a node of a forest with one root per row: it has one number however
    often it leaves the beam and returns."""

    def __init__(self, rows: int):
        self.steps = [(NOTHING, BLANK)] * rows
        self.numbers: dict[tuple[int, int], int] = {}

    def extend(self, node: np.ndarray, label: np.ndarray) -> list[int]:
        """Numbers of the prefixes ``node`` (N) extended by ``label`` (N)."""
        numbers = []
        for step in zip(node.tolist(), label.tolist(), strict=True):
            number = self.numbers.setdefault(step, len(self.steps))
            if number == len(self.steps):
                self.steps.append(step)
            numbers.append(number)
        return numbers

    def labels(self, node: int) -> list[int]:
        """The labels of a prefix, first to last; none for NOTHING, to which a row of impossible
        frames comes."""
        labels = []
        while node != NOTHING:
            node, label = self.steps[node]
            labels.append(label)
        return labels[-2::-1]  # Without the root's blank.


class _Beam(NamedTuple):
    """Prefixes under consideration, best first, all fields (rows, beam); unused places have node
    NOTHING and scores -inf.

    A prefix has two scores, for its paths that end in a blank and for those that end in its last
    label: the label once more leaves the prefix as it is unless a blank stood between, so the first
    score alone extends a prefix by its own last label.
    """

    node: np.ndarray
    parent: np.ndarray
    last: np.ndarray
    by_blank: np.ndarray
    by_label: np.ndarray

    @classmethod
    def start(cls, rows: int, beam: int) -> _Beam:
        """The empty prefix in every row; its last label is the blank, which extends nothing."""
        nothing, impossible = np.full((rows, beam), NOTHING), np.full((rows, beam), -np.inf)
        node, by_blank = nothing.copy(), impossible.copy()
        node[:, 0], by_blank[:, 0] = np.arange(rows), 0.0
        return cls(node, nothing, np.full((rows, beam), BLANK), by_blank, impossible)


def _advance(beam: _Beam, emitted: np.ndarray, prune: float | None, prefixes: _Prefixes) -> _Beam:
    """The beam after one more frame, whose log probabilities are ``emitted`` (rows, L)."""
    extending = np.where(emitted < (-np.inf if prune is None else prune), -np.inf, emitted)
    extending[:, BLANK] = -np.inf
    in_use = np.any(extending > -np.inf, axis=0)
    in_use[BLANK] = True  # The blank's column, all -inf, also stands for the labels that are left out.
    used, column = np.flatnonzero(in_use), np.where(in_use, in_use.cumsum() - 1, BLANK)

    total = np.logaddexp(beam.by_blank, beam.by_label)
    stay_by_blank = total + emitted[:, BLANK, None]
    stay_by_label = beam.by_label + np.take_along_axis(emitted, beam.last, 1)
    extended = total[:, :, None] + extending[:, None, used]
    again = beam.by_blank + np.take_along_axis(extending, beam.last, 1)
    np.put_along_axis(extended, column[beam.last][:, :, None], again[:, :, None], 2)

    # An extension that is in the beam as a prefix adds to it there. (What matches as NOTHING adds
    # the blank's column: nothing.)
    row, child, origin = np.nonzero(beam.parent[:, :, None] == beam.node[:, None, :])
    meeting = row, origin, column[beam.last[row, child]]
    stay_by_label[row, child] = np.logaddexp(stay_by_label[row, child], extended[meeting])
    extended[meeting] = -np.inf

    width = beam.node.shape[1]
    candidates = np.concatenate([np.logaddexp(stay_by_blank, stay_by_label), extended.reshape(len(emitted), -1)], 1)
    chosen = np.argsort(-candidates, 1, kind="stable")[:, :width]
    score = np.take_along_axis(candidates, chosen, 1)
    is_new, is_used = chosen >= width, score > -np.inf
    origin, label = np.divmod(chosen - width, len(used))
    origin = np.where(is_new, origin, chosen)
    node, parent, last, by_blank, by_label = (
        np.take_along_axis(field, origin, 1)
        for field in (beam.node, beam.parent, beam.last, stay_by_blank, stay_by_label)
    )
    parent, last = np.where(is_new, node, parent), np.where(is_new, used[label], last)
    born = is_new & is_used
    node[born] = prefixes.extend(parent[born], last[born])
    return _Beam(
        np.where(is_used, node, NOTHING),
        np.where(is_used, parent, NOTHING),
        last,
        np.where(is_new, -np.inf, by_blank),
        np.where(is_new, score, by_label),
    )
