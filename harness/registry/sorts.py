"""Sorts of what can be registered, and the entry that each one has in a listing."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from harness.errors import RegistryError
from harness.settings import FULL, ROLES, Budget, Recipe

Sort = Literal["architectures", "inputs", "tasks", "problems", "metrics"]
KINDS: dict[str, tuple[str, ...]] = {
    "seq": ("SequenceEncoder",),
    "text": ("TextEncoder", "PretrainedEncoder"),
    "tree": ("TreeEncoder",),
    "pair": ("PairEncoder", "PretrainedEncoder"),
    "tag": ("Tagger",),
    "span": ("Reader",),
    "answer": ("Answerer",),
    "ctc": ("FrameEncoder", "AudioEncoder"),
    "generate": ("Generator",),
    "lm": ("LanguageModel",),
    "plm": ("PretrainedEncoder",),
    "fit": ("Estimator",),
    "regime": ("Regime",),
    "floor": ("Estimator",),
}
"""Kinds of architectures, with the base classes in :mod:`harness.kinds` that one may have."""
TASK_TYPES = (
    "classify", "multilabel", "language_model", "text", "audio", "match", "rank", "tag", "extract", "answer",
    "transcribe", "translate", "regress", "regress_pair",
)  # fmt: skip
"""The task types of this package; plugins may register more with :func:`register_problem`."""

ROOT = Path(__file__).resolve().parents[2]
FOLDERS: dict[Sort, str] = {
    "architectures": "architectures", "inputs": "architectures", "tasks": "tasks",
    "problems": "harness/problems", "metrics": "harness/metrics",
}  # fmt: skip
"""Folders below :data:`ROOT` with this package's own files, by sort."""

REFERENCE = "reference"
"""``source`` of a system of no paper, which everybody compares with."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One registered class: its place, and in subclasses the options of its decorator."""

    id: str
    file: Path
    class_name: str
    sort: ClassVar[Sort]

    @property
    def family(self) -> str:
        """Folder of the file: the architecture's family."""
        return self.file.parent.name

    @property
    def shipped(self) -> bool:
        """True for one of this package's own."""
        return self.file.is_relative_to(ROOT / FOLDERS[self.sort])

    def check(self) -> None:
        """Raise :class:`RegistryError` for options that do not fit each other."""

    def check_class(self, cls: type[Any]) -> None:
        """Raise :class:`RegistryError` for a class that is none of what the options say."""

    @property
    def options(self) -> dict[str, Any]:
        """The decorator's keyword arguments by name, defaults included."""
        return {name: getattr(self, name) for name in options_of(type(self))}


@dataclass(frozen=True, kw_only=True)
class ArchitectureEntry(Entry):
    """One id of an architecture."""

    sort = "architectures"
    name: str
    kind: str
    paper: str
    source: str
    year: int
    recipe: Recipe = Recipe()
    recipes: dict[str, Recipe] = field(default_factory=dict, hash=False)
    """Recipes of tasks on which it is trained otherwise, by their type: that of pre-training,
    ``{"text": Recipe(...)}``."""
    hyperparameters: dict[str, Any] = field(default_factory=dict, hash=False)
    """Constructor arguments that are fixed for this id."""
    tiny: dict[str, Any] = field(default_factory=dict, hash=False)
    """Sizes for the contract tests."""
    deviations: tuple[str, ...] = ()
    """Sentences, each on one difference from the paper."""
    sees: tuple[str, ...] = ()
    """Data that it learns from beside the labelled training examples, such as "texts of test"."""
    vectors_of_paper: str | None = None
    """Word vectors that the paper starts from ("word2vec"), for a note at results without any."""
    parents: dict[str, str] = field(default_factory=dict, hash=False)
    """Architectures that are trained first, by the role in which this one starts from them
    (:data:`harness.settings.ROLES`): ``"some_lm"``, or ``"some_lm@task"`` for another task than the
    cell's, or ``"some_lm@first+second"`` for several, one after another. One that names itself is
    pre-trained on tasks of that one's type."""
    inputs: tuple[str, ...] = ()
    """Input sources that it reads behind the vectors of words, whatever a run names by
    ``--inputs``."""
    version: int = 1
    """Raised when results would change."""

    @property
    def is_reference(self) -> bool:
        """True for a system of no paper, which has no home, no settings of a paper and no published
        scores."""
        return self.source == REFERENCE

    def recipe_on(self, type: str) -> Recipe:
        """The recipe for tasks of a type."""
        return self.recipes.get(type, self.recipe)

    def check(self) -> None:
        if self.kind not in KINDS:
            raise RegistryError(f"{self.id}: kind {self.kind!r} is none of {', '.join(KINDS)}")
        if strange := [role for role in self.parents if role not in ROLES]:
            raise RegistryError(f"{self.id}: parents: role {strange[0]!r} is none of {', '.join(ROLES)}")

    def check_class(self, cls: type[Any]) -> None:
        bases = [each.__name__ for each in cls.__mro__ if each.__module__.startswith("harness.kinds.")]
        fitting = {kind: base for base in reversed(bases) for kind, names in KINDS.items() if base in names}
        if fitting and self.kind not in fitting:
            raise RegistryError(
                f"{self.file}: {self.id} has kind {self.kind!r}, and its class {cls.__name__} is derived from"
                f" {' and '.join(dict.fromkeys(fitting.values()))}: expected {' or '.join(fitting)}"
            )


@dataclass(frozen=True, kw_only=True)
class InputEntry(Entry):
    """A source of further numbers for each word, which a run names by ``--inputs``."""

    sort = "inputs"
    name: str
    paper: str
    source: str
    year: int
    tiny: dict[str, Any] = field(default_factory=dict, hash=False)
    """Sizes for the contract tests."""
    deviations: tuple[str, ...] = ()
    """Sentences, each on one difference from the paper."""
    parents: dict[str, str] = field(default_factory=dict, hash=False)
    """Architectures that are trained first, as those of an :class:`ArchitectureEntry`: ``{"inputs":
    "some_lm@some_task"}``."""
    version: int = 1
    """Raised when results would change."""

    def check(self) -> None:
        if strange := [role for role in self.parents if role != "inputs"]:
            raise RegistryError(f"{self.id}: parents: a source starts from one in the role inputs, not {strange[0]!r}")


@dataclass(frozen=True, kw_only=True)
class TaskEntry(Entry):
    """A task."""

    sort = "tasks"
    name: str
    type: str
    metrics: tuple[str, ...]
    main_metric: str
    sizes: dict[str, int] = field(hash=False)
    """Official counts per split; a smaller training set makes a record ``partial``."""
    protocol: str
    """Choices of the adapter, in words."""
    epochs: int = 10
    """Passes of the budget ``full`` where ``budgets`` has none."""
    budgets: dict[str, Budget] | str = field(default_factory=dict, hash=False)
    """Amounts of training by name, the smallest first; ``full`` has all examples. Or the id of the
    task that has the same."""
    dropout: float = 0.1
    """Dropout of all encoders in protocol ``equal``."""
    equal_view: dict[str, Any] = field(default_factory=dict, hash=False)
    """Settings that protocol ``equal`` gives to views that have them, such as the sampling rate."""
    mini_needs_order: bool = False
    """True where the words of a text, without their order, do not tell its label in the generated
    corpus: architectures are checked on other tasks of the type first."""
    part_of: str = ""
    """The task of whose texts it is made, for a comparison of parts or to learn from: a system that
    needs any task of the type takes another one."""
    version: int = 1

    def check(self) -> None:
        if self.main_metric not in self.metrics:
            raise RegistryError(f"{self.id}: main metric {self.main_metric!r} is not among its metrics {self.metrics}")
        if isinstance(self.budgets, str):
            return
        sizes = [math.inf if each.examples is None else each.examples for each in self.budgets.values()]
        if sizes != sorted(sizes):
            raise RegistryError(f"{self.id}: budgets {', '.join(self.budgets)}: a later one has fewer examples")
        if FULL in self.budgets and self.budgets[FULL].examples is not None:
            raise RegistryError(f"{self.id}: budget {FULL} has all examples, not {self.budgets[FULL].examples}")


@dataclass(frozen=True, kw_only=True)
class ProblemEntry(Entry):
    """A task type."""

    sort = "problems"
    name: str
    columns: tuple[str, ...]
    """Columns that every row has beside ``id``."""
    inputs: tuple[str, ...]
    """Columns that a system may read."""
    texts: tuple[str, ...]
    """Inputs that are texts."""
    metrics: tuple[str, ...]
    """Metrics that fit its predictions."""
    unit_texts: tuple[str, ...] | None = None
    """Columns in whose words the length of a unit is counted; None for ``texts``."""
    cluster: str | None = None
    """Column that dependent rows share; a row without it depends on no other."""
    stratum: str | None = None
    """Column of whose values a sample of the rows has as large shares as all rows."""
    equal_view: dict[str, Any] = field(default_factory=dict, hash=False)
    """Settings that protocol ``equal`` gives to views of words on such tasks, where they have
    them."""
    unit: str = "example"
    """One of those that a score is a mean over."""
    survey: str | None = None
    """Table of the leaderboard that its tasks belong to."""
    answers: str = "harness.problems.answers.base:Answers"
    """Class that says how its answers read, as module and name
    (:func:`harness.problems.answers.answers_of`); the default is for texts."""
    forms: dict[str, str] = field(default_factory=dict, hash=False)
    """Forms of columns (:data:`harness.rows.FORMS`), which every row is checked for; ``texts`` have
    one without."""

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """Columns that say what is right, the first of them what a system predicts; plain text has
        none."""
        return tuple(name for name in self.columns if name not in self.inputs)

    def check(self) -> None:
        if missing := set(self.texts) - set(self.inputs):
            raise RegistryError(f"{self.id}: texts that are no inputs: {', '.join(sorted(missing))}")


@dataclass(frozen=True, kw_only=True)
class MetricEntry(Entry):
    """A metric: a function of the predictions and their rows to a number."""

    sort = "metrics"
    name: str
    """Label on pages."""
    better: Literal["higher", "lower"] = "higher"
    """Direction: ``higher`` or ``lower``."""
    unit: str = "%"
    """Unit of the shown value: "%" shows a fraction in percent, any other the number itself."""
    digits: int = 1
    """Decimals of the shown value."""
    per_row: bool = False
    """True where the function takes one prediction and its row, and the metric is the mean: only
    such a metric has intervals, paired tests and an error analysis."""


def options_of(entry_class: type[Entry]) -> dict[str, Field[Any]]:
    """Options of a decorator, by name: the fields that its entries have beside their place."""
    place = {each.name for each in fields(Entry)}
    return {each.name: each for each in fields(entry_class) if each.name not in place}
