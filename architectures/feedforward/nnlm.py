"""Neural probabilistic language model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.word_contexts import contexts
from harness.kinds import LanguageModel
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "nnlm",
    name="Neural probabilistic language model",
    kind="lm",
    paper="Bengio et al. 2003",
    source="M1[2] R25",
    year=2003,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.001,
        lr_schedule="constant",
        batch_size=20,
        epochs=20,
        weight_decay=0.07,
        decay_exempt=("biases",),
        vector_dims=30,
        reduction="batch",
        stretch=35,
    ),
    tiny={"hidden": 64},
    deviations=(
        "The penalty of 0.0001 comes with each step of 700 words, not with each word, and so is 700 times as large.",
        "Its probabilities are its own; the paper's best are mixed half and half with those of a trigram model.",
        "Steps are of 20 lanes and 35 words, each of which moves the weights by the rate; the paper's are of one word.",
        "Vectors of the words before a stretch are not trained by its words, since each step has one stretch.",
        "The rate stays as it is; the paper's falls by a hundred-millionth of itself with each word.",
    ),
)
class NeuralProbabilisticLanguageModel(LanguageModel):
    """The vectors of the n - 1 words before a word, side by side, are read by a layer of tanh units
    and by a softmax over all words: x = [C(w_{t-n+1}); ...; C(w_{t-1})],
    y = b + W x + U tanh(d + H x) (Bengio et al. 2003, equation 1).

    ``order`` is n, and ``direct`` says whether there is a W. Before a text stand n - 1 vectors of
    zeros. What a stretch carries to the next one are its last n - 2 vectors.
    """

    def __init__(self, width: int, symbols: int, order: int = 5, hidden: int = 100, direct: bool = False):
        super().__init__()
        self.width, self.direct, self.window = width, direct, order - 1
        self.hidden = nn.Linear(self.window * width, hidden)
        self.output = nn.Linear(hidden + direct * self.window * width, symbols)  # U, and W beside it

    def start(self, texts: int) -> Tensor:
        return self.output.weight.new_zeros(texts, self.window - 1, self.width)

    def forward(self, words: WordBatch, state: Tensor) -> tuple[Tensor, Tensor]:
        before, state = contexts(state, words.vectors)
        side_by_side = before.flatten(2)
        states = torch.tanh(self.hidden(side_by_side))
        if self.direct:
            states = torch.cat([states, side_by_side], dim=2)
        return states, state

    def scores(self, states: Tensor) -> Tensor:
        return self.output(states)
