"""Deep bidirectional LSTM trained with connectionist temporal classification."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch, Frames


@register(
    "bilstm_ctc",
    name="Deep BiLSTM with CTC",
    kind="ctc",
    paper="Graves et al. 2006, 2013",
    source="X4.5.2 Fig4.11",
    year=2013,
    version=2,
    recipe=Recipe(
        optimizer="sgd", lr=0.0001, momentum=0.9, batch_size=1, epochs=100, patience=20, reduction="sentence"
    ),
    tiny={"hidden": 96, "layers": 1, "limit": 0.2},
    deviations=(
        "Two frames are joined into one step, which halves the sequence.",
        "No noise is added to the weights.",
        "The gates do not read the memory cell; those of the paper do.",
        "Best path by default, because dev is decoded after each epoch; the paper searches with a beam of 100.",
        "The paper gives no limit to training; here it is 100 epochs, or 20 without a better dev score, as in the"
        " author's library.",
        "Gradients are not cut; in the author's library the errors of each gate are kept within +-1.",
        "A gate has two biases, as PyTorch's fused layer does.",
    ),
)
class BiLSTMCTC(FrameEncoder):
    """Stacked BiLSTM over filter-bank frames and a score of every label, the blank among them, for
    every frame.

    The probability of a transcript is the sum over all paths that collapse to it: repeats are
    merged first, then blanks are dropped. ``beam=1`` reads the most probable path, more searches
    over prefixes. Sizes are those of the paper's CTC-3l-250h; its features are 40 filters and
    energy with their first and second differences. All weights start uniform within +- ``limit``.
    """

    view = Frames(deltas=2)

    def __init__(self, width: int, labels: int, hidden: int = 250, layers: int = 3, limit: float = 0.1, beam: int = 1):
        super().__init__()
        self.beam = beam
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.output = nn.Linear(self.recurrence.size, labels)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -limit, limit)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        return self.output(self.recurrence(frames.vectors, frames.mask)), frames.lengths
