"""The contract between an architecture and the harness: one base class per kind.

A constructor's first parameter is ``width``, the size of one input vector (or, for a view that
indexes a table of the architecture's own, the number of its rows). One that also has a parameter
``classes``, ``labels`` or ``symbols`` is given the number of classes to score, of labels (tagging,
CTC) or of output symbols (generation), one with ``answers`` the words that can be the answer or
the names of the classes, one with ``tree`` the :class:`~harness.label_tree.LabelTree` of the
classes, which has no edges where the task declares no tree; one with ``view`` is given the fitted
view. All other parameters are hyperparameters with the paper's
values as defaults.

A class that is trained on further tasks beside that of the cell names them as the default of a
parameter ``companions``, a tuple of task ids, and :class:`~harness.objectives.MultiTask` or one
derived from it as ``trained_by``. It is given them without the cell's own task.
"""

from harness.kinds.base import OUTPUTS, Architecture, Parent, Prediction
from harness.kinds.encoders import (
    VECTORS,
    Answerer,
    Encoder,
    PairEncoder,
    Reader,
    SequenceEncoder,
    SpanScores,
    SupportedAnswerer,
    Tagger,
    TextEncoder,
    TreeEncoder,
)
from harness.kinds.estimators import Estimator, made
from harness.kinds.generators import CopyingGenerator, Generator, LanguageModel
from harness.kinds.inputs import InputSource
from harness.kinds.pieces import PretrainedEncoder
from harness.kinds.recordings import AligningEncoder, AudioEncoder, FrameEncoder
from harness.kinds.regimes import Regime
from harness.layers.pooling import pool as pool  # plugins may import it from here

__all__ = [
    "OUTPUTS",
    "VECTORS",
    "AligningEncoder",
    "Answerer",
    "Architecture",
    "AudioEncoder",
    "CopyingGenerator",
    "Encoder",
    "Estimator",
    "FrameEncoder",
    "Generator",
    "InputSource",
    "LanguageModel",
    "PairEncoder",
    "Parent",
    "Prediction",
    "PretrainedEncoder",
    "Reader",
    "Regime",
    "SequenceEncoder",
    "SpanScores",
    "SupportedAnswerer",
    "Tagger",
    "TextEncoder",
    "TreeEncoder",
    "made",
]
