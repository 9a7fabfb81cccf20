"""The ruler's cell: the training of a small BiLSTM on random words, in plain torch.

Frozen. Its speed says how fast a machine is, so it must compute the same for ever: whoever changes
it raises :data:`VERSION`, and speeds under the old one are no longer compared. Run as a program, it
prints its version and the examples per second of one thread.
"""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any

import torch
from torch import nn

VERSION = 1
PARTS, STEPS = 40, 6
"""Parts of the training that are timed, and steps of each."""
BATCH, LENGTH, WORDS, VECTOR, HIDDEN, CLASSES = 32, 20, 5000, 100, 100, 5


class Cell(nn.Module):
    """Word vectors, a bidirectional LSTM, the mean of its states, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Embedding(WORDS, VECTOR)
        self.lstm = nn.LSTM(VECTOR, HIDDEN, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, words: torch.Tensor) -> Any:
        """Scores (B, classes) of words (B, T)."""
        states, _ = self.lstm(self.vectors(words))
        return self.output(states.mean(1))


def train() -> tuple[float, float]:
    """Examples per second, and the last loss.

    The rate is the median of the parts, in seconds of the processor: other work on the machine then
    counts as little as it can, and the moments in which a processor is faster than it can stay do
    not count at all.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = torch.randint(WORDS, (PARTS + 1, STEPS, BATCH, LENGTH))
    labels = words[..., 0] % CLASSES
    model = Cell()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    loss: Any = None
    seconds = []
    for part in range(PARTS + 1):
        began = time.process_time()
        for step in range(STEPS):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(words[part, step]), labels[part, step])
            loss.backward()
            optimiser.step()
        seconds.append(time.process_time() - began)
    return STEPS * BATCH / median(seconds[1:]), loss.item()  # in the first part memory is allocated


if __name__ == "__main__":
    rate, last_loss = train()
    print(json.dumps({"version": VERSION, "examples_per_second": rate, "loss": last_loss}))
