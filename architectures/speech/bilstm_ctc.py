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
    recipe=Recipe(
        optimizer="sgd", lr=0.0001, momentum=0.9, batch_size=1, epochs=100, patience=10, reduction="sentence"
    ),
    tiny={"hidden": 96, "layers": 1},
    deviations=(
        "Two frames are joined into one step, which halves the sequence.",
        "No noise is added to the weights.",
    ),
)
class BiLSTMCTC(FrameEncoder):
    """Stacked BiLSTM over filter-bank frames and a score of every label, the blank among them, for
    every frame.

    The probability of a transcript is the sum over all paths that collapse to it: repeats are
    merged first, then blanks are dropped. ``beam=1`` reads the most probable path, more searches
    over prefixes. Sizes are those of the paper's CTC-3l-250h; its features are 40 filters and
    energy with their first and second differences.
    """

    view = Frames(deltas=2)

    def __init__(self, width: int, labels: int, hidden: int = 250, layers: int = 3, beam: int = 1):
        super().__init__()
        self.beam = beam
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.output = nn.Linear(self.recurrence.size, labels)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        return self.output(self.recurrence(frames.vectors, frames.mask)), frames.lengths
