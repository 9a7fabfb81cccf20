"""Neural Turing machine: an LSTM that reads and writes a memory through soft addresses."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.addressing import by_content, sharpened, shifted, written
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register

EMPTY = 1e-6
"""Every number of the memory at the start of a text."""


class Heads(nn.Module):
    """Weights (B, heads, N) of heads in the memory (B, N, W), from the controller's state and the
    weights that they had at the word before.

    A head finds slots like its key, w = softmax(strength * cosine), mixes w with its old weights by
    a gate, moves the mixture by up to one slot, and sharpens it: equations 5 to 9.
    """

    def __init__(self, hidden: int, heads: int, width: int):
        super().__init__()
        self.heads, self.sizes = heads, (width, 1, 1, 3, 1)
        self.controls = nn.Linear(hidden, heads * sum(self.sizes))

    def forward(self, state: Tensor, memory: Tensor, before: Tensor) -> Tensor:
        controls = self.controls(state).unflatten(1, (self.heads, -1))
        keys, strength, gate, shifts, sharpness = controls.split(self.sizes, dim=2)
        content = by_content(memory, keys, F.softplus(strength).squeeze(2))
        mixed = torch.lerp(before, content, torch.sigmoid(gate))
        moved = shifted(mixed, torch.softmax(shifts, dim=2))
        return sharpened(moved, 1 + F.softplus(sharpness).squeeze(2))


@register(
    "ntm",
    name="Neural Turing machine",
    kind="seq",
    paper="Graves et al. 2014",
    source="X4.3.1",
    year=2014,
    recipe=Recipe(optimizer="rmsprop", lr=0.0001, momentum=0.9, alpha=0.95, eps=0.01, batch_size=32, clip=10.0),
    tiny={"hidden": 16, "slots": 8, "memory": 6},
    deviations=(
        "RMSProp does not subtract the squared mean of the gradient, and its floor of 0.01 stands beside the root.",
        "The gradient is cut at a norm of 10, not each of its numbers at 10.",
        "The memory starts at a small constant, which Collier & Beel 2018 found to train best, not at learnt values.",
        "The paper leaves open when heads read: here the weights of reading heads are found after writing.",
        "The paper answers at each step and trains on copying and the like; batches of 32 texts are ours.",
    ),
)
class NeuralTuringMachine(SequenceEncoder):
    """States (B, T, hidden + heads * memory): what an LSTM makes of a word and of the last vectors
    that it read, and the vectors that it reads next.

    At each word the LSTM reads [x; r]. ``heads`` writing heads erase and add, M_i <- M_i * (1 - w_i
    e) + w_i a with e = sigmoid(.) and a = tanh(.) of its state h; ``heads`` reading heads then read
    r = sum_i w_i M_i. The memory has ``slots`` of ``memory`` numbers. Where the heads stand at the
    first word is learnt. A text's vector is its last state. Slow, because no fused layer computes
    it and each word moves the whole memory.
    """

    pooling = "last"

    def __init__(self, width: int, hidden: int = 100, slots: int = 128, memory: int = 20, heads: int = 1):
        super().__init__()
        self.memory, self.heads = memory, heads
        self.controller = nn.LSTMCell(width + heads * memory, hidden)
        self.writing, self.reading = (Heads(hidden, heads, memory) for _ in range(2))
        self.changes = nn.Linear(hidden, heads * 2 * memory)
        self.starts = nn.Parameter(torch.randn(2, heads, slots))
        """Logarithms of the weights of writing and reading heads before the first word."""
        self.size = hidden + heads * memory

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        texts, slots = len(vectors), self.starts.shape[2]
        memory = vectors.new_full((texts, slots, self.memory), EMPTY)
        writing, reading = torch.softmax(self.starts, dim=2)[:, None].expand(-1, texts, -1, -1)
        state = cell = vectors.new_zeros(texts, self.controller.hidden_size)
        read = (reading @ memory).flatten(1)
        states = []
        for word in vectors.unbind(1):
            state, cell = self.controller(torch.cat([word, read], dim=1), (state, cell))
            erase, add = self.changes(state).unflatten(1, (self.heads, -1)).chunk(2, dim=2)
            writing = self.writing(state, memory, writing)
            memory = written(memory, writing, torch.sigmoid(erase), torch.tanh(add))
            reading = self.reading(state, memory, reading)
            read = (reading @ memory).flatten(1)
            states.append(torch.cat([state, read], dim=1))
        return torch.stack(states, dim=1)
