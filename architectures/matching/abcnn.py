"""Attention-based convolutional network for sentence pairs, and the network without attention that
it grew from."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder, pool
from harness.layers.overlap import shared
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


def match_matrix(first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> Tensor:
    """A_ij = 1 / (1 + |x_i - y_j|) of columns (B, T, D) and (B, U, D): (B, T, U), zero at
    padding."""
    # Exact differences: a matrix product would leave a text some way from itself.
    distances = torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")
    return first_mask[:, :, None] * second_mask[:, None] / (1 + distances)


def window_average(columns: Tensor, window: int) -> Tensor:
    """Mean of each ``window`` consecutive columns: (B, T, D) -> (B, T - window + 1, D)."""
    return F.avg_pool1d(columns.transpose(1, 2), window, stride=1).transpose(1, 2)


class Block(nn.Module):
    """Wide convolution and tanh: (B, T, width) -> columns (B, T + window - 1, kernels) of each
    text, of which one of length n has the first n + window - 1.

    ``attend_inputs`` (ABCNN-1) joins each column of the input with what the match matrix of the
    inputs makes of ``first_map`` and ``second_map``, which have a row for each position of the
    other text. ``attend_outputs`` (ABCNN-2) weights the convolution's columns by the sums of the
    match matrix of the outputs; times the window, so that the mean of a window is the weighted sum.
    """

    def __init__(self, width: int, kernels: int, window: int, longest: int, attend_inputs: bool, attend_outputs: bool):
        super().__init__()
        self.window, self.attend_inputs, self.attend_outputs = window, attend_inputs, attend_outputs
        self.convolution = nn.Conv1d(width * (1 + attend_inputs), kernels, window, padding=window - 1)
        if attend_inputs:
            self.first_map, self.second_map = (
                nn.Parameter(torch.empty(longest, width).uniform_(-0.1, 0.1)) for _ in range(2)
            )

    def forward(self, first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> tuple[Tensor, Tensor]:
        if self.attend_inputs:
            matches = match_matrix(first, first_mask, second, second_mask)
            first, second = (
                torch.cat([first, matches @ self.first_map[: second.shape[1]]], dim=-1),
                torch.cat([second, matches.transpose(1, 2) @ self.second_map[: first.shape[1]]], dim=-1),
            )
        first, second = self.convolve(first, first_mask), self.convolve(second, second_mask)
        if self.attend_outputs:
            matches = match_matrix(first, self.wide(first_mask), second, self.wide(second_mask))
            first = first * matches.sum(2)[..., None] * self.window
            second = second * matches.sum(1)[..., None] * self.window
        return first, second

    def convolve(self, columns: Tensor, mask: Tensor) -> Tensor:
        """The columns before attention weights them."""
        return torch.tanh(self.convolution((columns * mask[..., None]).transpose(1, 2)).transpose(1, 2))

    def wide(self, mask: Tensor) -> Tensor:
        """Mask (B, T + window - 1) of a text's own columns after the convolution."""
        return F.pad(mask, (self.window - 1, 0), value=True)


@register(
    "abcnn_1",
    name="ABCNN-1",
    kind="pair",
    paper="Yin et al. 2016",
    source="M2.5[86]",
    year=2016,
    recipe=Recipe(optimizer="adagrad", lr=0.085, weight_decay=0.0012, decay_exempt=("biases",), batch_size=20),
    hyperparameters={"attend_inputs": True},
    tiny={"kernels": 12, "tuned": True},
    vectors_of_paper="word2vec",
    deviations=(
        "A batch has 20 pairs; the authors' program takes one at a time.",
        "Texts are cut after 60 words, in the authors' program after 40: the maps W0 and W1 of ABCNN-1 and ABCNN-3"
        " have a row for each place in a text. One map serves both texts in that program.",
        "Columns of a window are averaged, as in the paper; the authors' program sums them.",
        "Both blocks learn together; the authors' program learns a network of one block first, and the second block"
        " above it as it stays.",
        "After each block the match score and the cosine are both features; the paper chooses one of them, the"
        " authors' program the cosine.",
        "The word counts leave out no stop words, and counts and lengths enter as logarithms.",
        "A word's rarity comes from how often it occurs in the training texts, not from how many of them have it.",
        (
            "The logistic regression is trained with the network, not after it, on features that batch normalisation"
            " standardises; the authors' program fits a linear regression and an SVM to them behind each pass."
        ),
    ),
    version=2,
    variants={
        "bcnn": {
            "name": "BCNN",
            "hyperparameters": {},
            "deviations": ("The paper states no learning rate and no L2 for it: they are those of ABCNN-1.",),
        },
        "abcnn_2": {
            "name": "ABCNN-2",
            "recipe": Recipe(
                optimizer="adagrad", lr=0.06, weight_decay=0.0012, decay_exempt=("biases",), batch_size=20
            ),
            "hyperparameters": {"attend_outputs": True},
            "deviations": (
                (
                    "A block's vector is the mean of the convolution's columns as attention weights them, as in the"
                    " authors' program; the paper weights the pooling of windows."
                ),
            ),
        },
        "abcnn_3": {
            "name": "ABCNN-3",
            "recipe": Recipe(
                optimizer="adagrad", lr=0.06, weight_decay=0.0012, decay_exempt=("biases",), batch_size=20
            ),
            "hyperparameters": {"attend_inputs": True, "attend_outputs": True},
            "deviations": (
                (
                    "A block's vector is the mean of the convolution's columns as attention weights them, as in the"
                    " authors' program; the paper weights the pooling of windows."
                ),
            ),
        },
    },
)
class ABCNN(PairEncoder):
    """Two texts through the same convolution blocks, compared after each of them; attention lets
    each text see the other on the way.

    The next block reads the means of ``window`` consecutive columns, as many as the text has words.

    The vector (B, ``size``) that the logistic regression reads: for the words and for each block 1
    / (1 + |u - v|) and the cosine of the texts' mean columns u and v; both lengths; how many words
    of the first text stand in the second, plain and weighted by how rare they are in the training
    texts; all standardised. The word vectors are fixed; ``tuned`` trains them, for lack of
    pre-trained ones.
    """

    view = Words(max_length=60)

    def __init__(
        self,
        width: int,
        view: Words,
        blocks: int = 2,
        kernels: int = 50,
        window: int = 4,
        attend_inputs: bool = False,
        attend_outputs: bool = False,
        tuned: bool = False,
    ):
        super().__init__()
        self.vectors = "tuned" if tuned else "fixed"
        widths = [width] + [kernels] * (blocks - 1)
        self.blocks = nn.ModuleList(
            Block(w, kernels, window, view.max_length, attend_inputs, attend_outputs) for w in widths
        )
        counts = torch.tensor(view.vocabulary.row_counts(absent=1), dtype=torch.float)
        self.register_buffer("rarity", (counts.sum() / counts).log())
        self.size = 2 * (1 + blocks) + 4
        # The similarities of all pairs differ by a few hundredths around a mean near 1: as they
        # are, they would only move the bias.
        self.standardise = nn.BatchNorm1d(self.size, affine=False)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = first.vectors, second.vectors
        features = [*self.compared(u, first.mask, v, second.mask)]
        for block in self.blocks:
            ours, theirs = block(u, first.mask, v, second.mask)
            features += self.compared(ours, block.wide(first.mask), theirs, block.wide(second.mask))
            u, v = window_average(ours, block.window), window_average(theirs, block.window)
        common = shared(first, second)
        counted = [first.lengths, second.lengths, common.sum(1), (self.rarity[first.ids] * common).sum(1)]
        vector = torch.stack([*features, *(number.to(u.dtype).log1p() for number in counted)], dim=1)
        return self.standardised(vector)

    def standardised(self, features: Tensor) -> Tensor:
        """Features (B, size) of mean 0 and deviation 1 over the batch in training, over the
        training so far otherwise."""
        if len(features) == 1:  # has no deviation
            norm = self.standardise
            return F.batch_norm(features, norm.running_mean, norm.running_var, eps=norm.eps)
        return self.standardise(features)

    @staticmethod
    def compared(first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Match score and cosine (B,) of both texts' mean columns."""
        u, v = pool(first, first_mask, "mean"), pool(second, second_mask, "mean")
        return 1 / (1 + torch.linalg.vector_norm(u - v, dim=1)), F.cosine_similarity(u, v)
