"""Recurrent language models."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map

from architectures.blocks.recurrent import CELLS
from harness.kinds import LanguageModel
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "rnn_lm",
    name="RNN language model",
    kind="lm",
    paper="Mikolov et al. 2010",
    source="X4.2.1 R25.2.1",
    year=2010,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.1,
        lr_schedule="plateau",
        batch_size=20,
        epochs=20,
        patience=20,
        clip=5.0,
        vector_dims=250,
        reduction="sentence",
        stretch=10,
    ),
    tiny={"hidden": 64, "dropout": 0.0},
    deviations=(
        "The state begins anew with each text, behind a vector of zeros; the paper's goes on for ever.",
        (
            "Units are tanh, read vectors of 250 and have two biases each; the paper's are sigmoids without any, and a"
            " word is a column of their matrix."
        ),
        (
            "The rate is halved after each epoch that is not the best; the paper's is halved in every epoch from the"
            " first without a gain, and training ends at the next. The authors' toolkit also undoes a worse epoch."
        ),
        "Steps are of 20 lanes and ten words, through which gradients go back, and cut the gradient at 5; the paper's"
        " are of one word each, and gradients end at the state before.",
        "Every word has a probability of its own; the paper's rare words share one.",
        "Weights begin uniform in +-0.1; the paper draws them from a normal distribution of variance 0.1, the authors'"
        " toolkit adds three such numbers.",
    ),
    variants={
        "rnn_lm_lstm": {
            "name": "LSTM language model",
            "paper": "Zaremba et al. 2014",
            "year": 2014,
            "hyperparameters": {"cell": "lstm", "hidden": 650, "layers": 2, "dropout": 0.5, "spread": 0.05},
            "recipe": Recipe(
                optimizer="sgd",
                lr=1.0,
                lr_schedule="step",
                factor=0.8333,
                step_start=7,
                batch_size=20,
                epochs=39,
                patience=39,
                clip=5.0,
                vector_dims=650,
                reduction="sentence",
                stretch=35,
            ),
            "deviations": ("The vectors of the words begin as those of all architectures here, uniform in +-0.25.",),
            "without_deviations": ("Units are", "The rate is", "Steps are", "Every word", "Weights begin"),
        },
        "rnn_lm_gru": {
            "name": "GRU language model",
            "paper": "Cho et al. 2014",
            "year": 2014,
            "hyperparameters": {"cell": "gru", "hidden": 650, "layers": 2, "dropout": 0.5, "spread": 0.05},
            "recipe": Recipe(
                optimizer="sgd",
                lr=1.0,
                lr_schedule="step",
                factor=0.8333,
                step_start=7,
                batch_size=20,
                epochs=39,
                patience=39,
                clip=5.0,
                vector_dims=650,
                reduction="sentence",
                stretch=35,
            ),
            "deviations": (
                "The paper has the unit and no language model: sizes and recipe are the LSTM's.",
                "PyTorch's GRU resets the state behind the recurrent matrix, and has two bias vectors.",
            ),
            "without_deviations": ("Units are", "The rate is", "Steps are", "Every word", "Weights begin"),
        },
    },
)
class RecurrentLanguageModel(LanguageModel):
    """A recurrent network reads a text word by word, and a softmax over all words reads its state:
    s_t = f(U w_t + W s_{t-1}), y_t = softmax(V s_t) (Mikolov et al. 2010, equations 1 to 3).

    ``cell`` is ``rnn`` (tanh), ``lstm`` or ``gru``. Dropout acts on the vectors of the words,
    between layers, and on what the softmax reads, never from one word to the next (Zaremba et al.
    2014, equation 1). All weights begin uniform in +-``spread``.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        cell: str = "rnn",
        hidden: int = 250,
        layers: int = 1,
        dropout: float = 0.0,
        spread: float = 0.1,
    ):
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"rnn_lm: cell={cell!r} is none of {', '.join(CELLS)}")
        between = dropout if layers > 1 else 0.0  # torch warns of one that has no place
        self.recurrence = CELLS[cell](width, hidden, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, symbols)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -spread, spread)

    def start(self, texts: int) -> Any:
        zeros = self.output.weight.new_zeros(texts, self.recurrence.num_layers, self.recurrence.hidden_size)
        return (zeros, zeros) if isinstance(self.recurrence, nn.LSTM) else zeros

    def forward(self, words: WordBatch, state: Any) -> tuple[Tensor, Any]:
        return self.through(self.dropout(words.vectors), state)

    def through(self, vectors: Tensor, state: Any) -> tuple[Tensor, Any]:
        """States (B, T, hidden) of words with these vectors, and the state behind them."""
        states, state = self.recurrence(vectors, _turned(state))
        return self.dropout(states), _turned(state)

    def scores(self, states: Tensor) -> Tensor:
        return self.output(states)


def _turned(state: Any) -> Any:
    """A state with texts and layers, its first two dimensions, in each other's place."""
    return tree_map(lambda each: each.transpose(0, 1).contiguous(), state)
