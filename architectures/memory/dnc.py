"""Differentiable neural computer: a memory whose slots are allocated, freed and linked in time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.addressing import allocated, by_content, last_written, linked, used, written
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "dnc",
    name="Differentiable neural computer",
    kind="seq",
    paper="Graves et al. 2016",
    source="X4.3.1",
    year=2016,
    recipe=Recipe(optimizer="rmsprop", lr=0.0001, momentum=0.9, alpha=0.9, eps=1e-05, batch_size=32, clip=10.0),
    tiny={"hidden": 16, "slots": 6, "memory": 5, "reads": 2},
    deviations=(
        (
            "The memory has 64 slots of 32 numbers, not 256 of 64, with which a word takes eight times as long: the"
            " number of links is the square of that of slots."
        ),
        "Strengths are softplus of a number, as in the release; the paper adds one to it (oneplus).",
        "Steps over 32 texts, not over one; the gradient is cut at a norm of 10, not each of its numbers at 10. The"
        " release cuts the norm at 50.",
        "In stories the question comes first and the last state answers; the paper asks behind the story.",
        "The mean of squared gradients begins at 0, the release's at 1.",
        "A linear layer of the harness makes scores of the state; the release also cuts them at 20.",
    ),
)
class DifferentiableNeuralComputer(SequenceEncoder):
    """States (B, T, hidden + reads * memory): what an LSTM makes of a word and of the last vectors
    that it read, and the vectors that it reads next.

    At each word the LSTM reads [x; r], and of its state come all gates, keys and strengths. Usage u
    grows by what was written and falls by what was read under an open free gate. The writing head
    mixes allocation a(u) and content c by g_a, w = g_w (g_a a + (1 - g_a) c), and writes M <- M *
    (1 - w e^T) + w v^T. Links L keep the order of writing. Each of ``reads`` heads then mixes, by a
    softmax, where it would go backward, L^T w_r, by content, and forward, L w_r, and reads r = w_r
    M. The memory has ``slots`` of ``memory`` numbers and starts empty. A text's vector is its last
    state. Slow, because no fused layer computes it and each word moves memory and links.
    """

    pooling = "last"

    def __init__(self, width: int, hidden: int = 256, slots: int = 64, memory: int = 32, reads: int = 4):
        super().__init__()
        self.slots, self.memory, self.reads = slots, memory, reads
        self.controller = nn.LSTMCell(width + reads * memory, hidden)
        self.writer = nn.Linear(hidden, 3 * memory + 3)
        self.readers = nn.Linear(hidden, reads * (memory + 1 + 1 + 3))
        self.size = hidden + reads * memory

    def written(self, state: Tensor, memory: Tensor, usage: Tensor) -> tuple[Tensor, Tensor]:
        """The memory (B, N, W) after writing, and the weights (B, N) of it."""
        key, erase, vector, controls = self.writer(state).split([*[self.memory] * 3, 3], dim=1)
        strength, allocation_gate, write_gate = controls.split(1, dim=1)
        content = by_content(memory, key[:, None], F.softplus(strength)).squeeze(1)
        weights = torch.sigmoid(write_gate) * torch.lerp(content, allocated(usage), torch.sigmoid(allocation_gate))
        return written(memory, weights[:, None], torch.sigmoid(erase)[:, None], vector[:, None]), weights

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        texts = len(vectors)
        memory, link = (vectors.new_zeros(texts, self.slots, n) for n in (self.memory, self.slots))
        usage = latest = writing = vectors.new_zeros(texts, self.slots)
        reading = vectors.new_zeros(texts, self.reads, self.slots)
        state = cell = vectors.new_zeros(texts, self.controller.hidden_size)
        read = vectors.new_zeros(texts, self.reads * self.memory)
        states = []
        for word in vectors.unbind(1):
            state, cell = self.controller(torch.cat([word, read], dim=1), (state, cell))
            controls = self.readers(state).unflatten(1, (self.reads, -1))
            keys, strengths, free, modes = controls.split([self.memory, 1, 1, 3], dim=2)
            usage = used(usage, writing, reading, torch.sigmoid(free).squeeze(2))
            memory, writing = self.written(state, memory, usage)
            link, latest = linked(link, latest, writing), last_written(latest, writing)
            content = by_content(memory, keys, F.softplus(strengths).squeeze(2))
            backward, found, forward = torch.softmax(modes, dim=2).split(1, dim=2)
            reading = backward * (reading @ link) + found * content + forward * (reading @ link.transpose(1, 2))
            read = (reading @ memory).flatten(1)
            states.append(torch.cat([state, read], dim=1))
        return torch.stack(states, dim=1)
