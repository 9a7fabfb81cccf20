"""LSTM with recurrent matrices of which only a few blocks exist."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


def barabasi_albert(nodes: int, links: int) -> Tensor:
    """Adjacency (nodes, nodes) of a random graph in which the nodes behind the first ``links`` come
    one by one, each linked to ``links`` earlier ones drawn by their number of links.

    Every node is linked to itself, and so are the first ``links`` among each other. The number of
    links does not depend on what is drawn (torch's generator).
    """
    adjacency = torch.eye(nodes, dtype=torch.bool)
    adjacency[:links, :links] = True
    degrees = torch.zeros(nodes)
    for node in range(links, nodes):
        chosen = torch.multinomial(degrees, links) if node > links else torch.arange(links)
        adjacency[node, chosen] = adjacency[chosen, node] = True
        degrees[chosen] += 1
        degrees[node] = links
    return adjacency


class BlockSparse(nn.Module):
    """Matrix (n, n) times states (B, n) plus bias, with layer normalisation, of which the blocks
    that ``adjacency`` lacks do not exist: no memory, no product.

    ``outputs`` matrices of one pattern give (B, outputs * n), each normalised by itself. Weights
    start normal with a variance of one over the inputs of a row.
    """

    def __init__(self, adjacency: Tensor, block: int, outputs: int = 1):
        super().__init__()
        self.block, self.nodes = block, len(adjacency)
        rows, columns = adjacency.nonzero(as_tuple=True)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        self.blocks = nn.Parameter(torch.randn(len(rows), block, outputs * block))
        with torch.no_grad():
            self.blocks /= (block * adjacency.sum(1)[rows]).sqrt()[:, None, None]
        self.norms = nn.ModuleList(nn.LayerNorm(self.nodes * block) for _ in range(outputs))

    def product(self, states: Tensor) -> Tensor:
        """The products (B, outputs, n)."""
        read = states.unflatten(1, (self.nodes, self.block)).transpose(0, 1)[self.columns]
        written = read.new_zeros(self.nodes, len(states), self.blocks.shape[2])
        written = written.index_add(0, self.rows, read @ self.blocks)
        return written.unflatten(2, (-1, self.block)).permute(1, 2, 0, 3).flatten(2)

    def forward(self, states: Tensor) -> Tensor:
        products = self.product(states).unbind(1)
        return torch.cat([norm(one) for norm, one in zip(self.norms, products, strict=True)], dim=1)


@register(
    "block_sparse_lstm",
    name="Block-sparse LSTM",
    kind="seq",
    paper="Gray, Radford & Kingma 2017",
    source="M-T1[218]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=128, epochs=70, averaging=0.999, averaging_warmup=True),
    tiny={"hidden": 24, "block": 4, "steps": 3, "dropout": 0.0},
    deviations=(
        (
            "The paper trains language models of characters on large corpora and classifies their states; here the"
            " network is trained on the task from the start."
        ),
        "640 units, of which two cores read a text in a second; the paper has up to 18,432.",
        "The rate does not rise over the first epochs.",
        "The average of the weights warms up, since our trainings are short; the authors' does not.",
        "All units see the word; in the authors' code every second one does.",
        "Blocks start random in all places; in the authors' code those on the diagonal are identities, others zero.",
        "The mean of the states as a text's vector is ours.",
    ),
)
class BlockSparseLSTM(SequenceEncoder):
    """A wide LSTM whose recurrent matrices have the blocks of small-world graphs alone.

    The ``hidden`` units are nodes of ``block`` units in a :func:`barabasi_albert` graph, a new one
    for each matrix; the four gates share one. As one sparse matrix links a unit to few others,
    ``steps`` of them pass within a word before the gates, each with layer normalisation: the first
    product is multiplied by what the word gives (N W_m x), to the second N W_a x is added before
    the ReLU, and ReLU follows each later one. The gates read the result u: i, f, o, and the
    candidate, on which dropout acts: c_t = f * c_{t-1} + i * tanh(candidate), h_t = o * tanh(c_t).
    The forget gate's bias starts at 1. Slow, because no fused layer computes it: ``steps`` + 1
    products a word.
    """

    pooling = "mean"

    def __init__(
        self,
        width: int,
        hidden: int = 640,
        block: int = 32,
        links: int = 2,
        steps: int = 5,
        dropout: float = 0.2,
    ):
        super().__init__()
        nodes = hidden // block
        if hidden % block or nodes <= links or steps < 2:
            raise ValueError(
                f"block_sparse_lstm: hidden={hidden}, block={block}, links={links}, steps={steps}: wanted are more"
                " than links whole blocks and two steps"
            )
        self.multiplied, self.added = (
            nn.Sequential(nn.Linear(width, hidden, bias=False), nn.LayerNorm(hidden)) for _ in range(2)
        )
        self.inner = nn.ModuleList(BlockSparse(barabasi_albert(nodes, links), block) for _ in range(steps))
        self.gates = BlockSparse(barabasi_albert(nodes, links), block, outputs=4)
        nn.init.ones_(self.gates.norms[1].bias)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        state = cell = vectors.new_zeros(len(vectors), self.size)
        states = []
        for factor, term in zip(self.multiplied(vectors).unbind(1), self.added(vectors).unbind(1), strict=True):
            inner = self.inner[0](state) * factor
            inner = torch.relu(self.inner[1](inner) + term)
            for layer in self.inner[2:]:
                inner = torch.relu(layer(inner))
            i, f, o, candidate = self.gates(inner).chunk(4, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(self.dropout(candidate))
            state = torch.sigmoid(o) * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, dim=1)
