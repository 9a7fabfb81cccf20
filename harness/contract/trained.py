"""The checks of a trained architecture on one mini task."""

from __future__ import annotations

import copy
import functools
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pytorch_lightning.utilities import move_data_to_device
from torch import Tensor

from harness.contract.base import Broken, Check, require
from harness.contract.elsewhere import OTHER_HASHES, elsewhere
from harness.contract.imports import loaded_again
from harness.contract.learning import LearningCase
from harness.contract.process import require_obeyed, seeds_given
from harness.contract.slopes import Slopes, double_precision, in_double, narrowed
from harness.data.corpus import Split
from harness.kinds import OUTPUTS, Tagger
from harness.metrics import score
from harness.objectives import Objective, Step
from harness.problems.base import NoTarget
from harness.saved_models.model import TrainedModel, load
from harness.task import WITHOUT_LABELS, Row
from harness.training.model import Model, predict

FIRST = "it can be built, and forward returns what its kind says"
"""Name of the check whose fault all others would repeat."""
DIMENSIONS = {
    "states": 3,
    "frame states": 3,
    "vector": 2,
    "class scores": 2,
    "label scores": 2,
    "node states": 2,
    "pair vector": 2,
    "pair score": 1,
    "emissions": 3,
    "fact vector": 2,
    "joined states": 3,
}
"""Dimensions of what ``forward`` returns, by the output that it stands for; other outputs are not
one tensor."""


PRACTICE = 20
"""Steps after which a model is compared with itself: a gate, scale or residual that starts at zero
hides what lies behind it."""


class Steps(NamedTuple):
    """First steps of a training: their losses, the seeds that generators were given, and the state
    of torch's own after them."""

    losses: list[float]
    seeds: set[str]
    state: Tensor


class TrainedCase(LearningCase):
    """The checks of a trained architecture on one mini task."""

    def of_the_system(self, learning: bool) -> Iterator[tuple[str, Check]]:
        yield FIRST, self.shape
        yield "finite loss and a prediction per row", self.answers
        yield "predictions keep the rules of the problem", self.rules
        yield "registers what it sees", self.tells_what_it_sees
        yield "its tensors stand where its inputs do", self.elsewhere_than_on_the_cpu
        yield "every parameter gets a gradient", self.gradients
        if self.regime is None:  # one may hold a part of the loss constant, as adversarial training its move
            yield "its gradient is the slope of its loss", self.slopes
        yield "two passes in evaluation are equal", self.repeats
        if self.repeatable:  # otherwise no two passes can be compared
            yield "padding changes nothing", self.padding
            yield "reordering or parting a batch changes nothing", self.order
            yield "reads no answer", self.blind
            yield "save and load", self.round_trip
        yield "same seed, same result", self.determinism
        yield "another seed, other random numbers", self.obedience
        if not self.audio:
            yield from self.of_odd_texts()
        if learning:
            yield "its operations can be counted", self.operations
            yield "overfits 8 examples", self.overfits
            if self.can_be_kept and not self.entry.shipped:  # a process costs seconds
                yield "answers the same in another process", self.elsewhere
            yield "beats the floor on its mini task", self.learns
            yield "learns from train alone", self.learns_from_train

    @functools.cached_property
    def practised(self) -> Model:
        """A model after some steps, which the checks that compare its answers share; a fresh one
        where it cannot be trained, as other checks tell."""
        model = self.model()
        try:
            for _ in self.train(model, self.corpus.train, [self.eight()] * PRACTICE, lr=0.01):
                pass
        except Exception:
            return self.model()
        return model

    def answers(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        loss = self.loss(model, batch)
        require(loss.dim() == 0 and math.isfinite(loss.item()), f"loss is {loss}")
        model.eval()
        with torch.no_grad():
            predictions = model.predict(batch, self.corpus.train)
        require(len(predictions) == len(batch.rows), f"{len(predictions)} predictions for {len(batch.rows)} rows")
        rows = [self.corpus.train.rows[int(i)] for i in batch.rows]
        score(self.task.entry.metrics, predictions, rows, self.task.label_tree)

    def tells_what_it_sees(self) -> None:
        require(
            "unlabelled" not in self.objective(self.model()).streams or WITHOUT_LABELS in self.entry.sees,
            f"its objective reads the stream 'unlabelled', and it is not registered with sees=({WITHOUT_LABELS!r},):"
            " where training rows have lost their labels it would be ranked among systems that see less",
        )

    def rules(self) -> None:
        model = self.model()

        def answered(rows: list[Row]) -> list[Any]:
            columns = self.encoded(dict.fromkeys(self.corpus.fields, rows))
            return predict(model, Split(rows, self.corpus.view, NoTarget(), columns, {}), 64)

        self.keeps_the_rules(self.corpus.target, answered, self.some_rows())

    def shape(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        returned: list[Any] = []
        model.encoder.register_forward_hook(lambda module, inputs, output: returned.append(output))
        failure = None
        model.eval()
        with torch.no_grad():
            try:
                model(batch.inputs)
                if not returned and self.cls.output_form() == "node states":  # whose head asks for the nodes
                    model.encoder(model.read(batch.inputs)["text"])
            except Exception as error:  # the layers above may raise anything when the shape is wrong
                failure = error
        if returned and isinstance(returned[0], Tensor):
            read = batch.inputs["text"].ids if self.cls.output_form() == "joined states" else batch.rows
            self.require_shape(model, tuple(returned[0].shape), len(read))
        if failure is not None:
            raise failure

    def elsewhere_than_on_the_cpu(self) -> None:
        """A pass on the device ``meta``, which has shapes and no numbers: a tensor that ``forward``
        makes on the CPU does not fit there, nor on a GPU. What needs numbers cannot be asked."""
        model = copy.deepcopy(self.model()).to("meta")
        inputs = move_data_to_device(self.corpus.train.collate(self.eight()).inputs, "meta")
        for training in (True, False):
            try:
                model.train(training)(inputs)
            except Exception as error:  # such as an item() of a tensor without numbers
                said = str(error)
                elsewhere = "on the expected device" in said or "on the same device" in said
                require(not elsewhere, f"{said}; say device=... of an input where it makes a tensor")

    def require_shape(self, model: Model, shape: tuple[int, ...], rows: int) -> None:
        form = "pair score" if getattr(model.encoder, "scores", False) else self.cls.output_form()
        if form not in DIMENSIONS:
            return
        wanted = f"forward returned {shape}; {OUTPUTS[form]} is wanted"
        require(len(shape) == DIMENSIONS[form], f"{wanted}, which has {DIMENSIONS[form]} dimensions")
        require(shape[0] == rows, f"{wanted}, and the batch has {rows} rows")
        size, labels = getattr(model.encoder, "size", None), getattr(self.corpus.target, "labels", None)
        if form == "pair score":
            return
        if size is not None:
            require(shape[-1] == size, f"forward returned {shape}, self.size is {size}")
        elif labels is not None:
            scores = self.cls.scores_per_word(len(labels)) if issubclass(self.cls, Tagger) else len(labels)
            require(shape[-1] == scores, f"forward returned {shape}, and {len(labels)} labels have {scores} scores")

    def repeats(self) -> None:
        """One batch is asked twice, and another one between."""
        model, rows, before = self.practised, self.eight(), torch.get_rng_state()
        first, _, second = (self.evidence(model, asked) for asked in (rows, rows[::2], rows))
        pairs = list(zip(first, second, strict=True))
        drawn = not torch.equal(torch.get_rng_state(), before)
        self.repeatable = all(
            a.shape == b.shape and torch.allclose(a, b, atol=1e-4, rtol=1e-4, equal_nan=True) for a, b in pairs
        )
        why = (
            "random numbers are drawn there; is dropout on (F.dropout without training=self.training)?"
            if drawn
            else "something enters beside weights and inputs, such as what the pass before left behind"
        )
        require(self.repeatable, f"two passes of one batch in evaluation differ: {why}")

    def gradients(self) -> None:
        model = self.model()
        model.train()
        some = np.arange(min(64, len(self.corpus.train)))
        for rows, progress in zip(np.array_split(some, 2), (0.5, 0.99), strict=True):  # it may ask more later
            self.loss(model, self.corpus.train.collate(rows), progress).backward()
        for loss in self.companion_losses(model):
            loss.backward()
        excused = tuple(f"encoder.{name}" for name in self.cls.unused)
        parameters = ((name, p) for name, p in model.named_parameters() if p.numel())
        without = [name for name, p in parameters if p.grad is None or not p.grad.any()]
        without = [name for name in without if not name.startswith(excused)] if excused else without
        require(not without, f"no gradient reaches {', '.join(without)}")

    def slopes(self) -> str:
        """For each loss, by the parameters that minimise it."""
        with double_precision():
            model = self.model().double().train()
            cut = model.encoder.cut
            try:
                self.require_slopes(model)
            except (Broken, RuntimeError) as found:
                narrow = narrowed(self.in_double(model)[1])
                require(not narrow, narrow)
                if isinstance(found, RuntimeError):
                    raise
                require(bool(cut), f"{found}. Where the paper wants it so, the class says why in `cut`")
                return f"its gradient is another, on purpose: {cut}"
        require(not cut, f"it is, although `cut` says of the class: {cut}")
        return ""

    def require_slopes(self, model: Model) -> None:
        objective, losses = self.in_double(model)
        for loss, parameters in objective.players(model).items():
            Slopes(losses, loss, dict(parameters), [model, objective]).require_gradient()

    def in_double(self, model: Model) -> tuple[Objective, Callable[[], dict[str, Tensor]]]:
        """The objective of a model of 64-bit numbers, and its losses in a step of its own, into
        which no state is carried."""
        objective = self.objective(model).double().train()
        batches = in_double(self.streams(objective, self.corpus.train.collate(self.eight())))
        return objective, lambda: objective.losses(model, Step(batches, progress=0.5, passes=1))

    def padding(self) -> None:
        """A row beside one that is longer in one of its inputs alone, and in all."""
        model, train, fields = self.practised, self.corpus.train, tuple(self.corpus.fields)
        lengths = {(field,): self.corpus.view.lengths(train.inputs[field]) for field in fields}
        for longer, units in (lengths | {fields: train.lengths}).items():
            short, long = train.rows[int(units.argmin())], train.rows[int(units.argmax())]
            beside = {field: [short, long if field in longer else short] for field in fields}
            alone = {field: rows[:1] for field, rows in beside.items()}
            one, two = (
                self.evidence(model, np.arange(n), self.asked(rows))[0] for n, rows in ((1, alone), (2, beside))
            )
            self._same(one, two, f"beside a longer {' and '.join(longer)}")

    def order(self) -> None:
        """Rows in another order, and every other one of them without those between."""
        model, rows = self.practised, self.eight()
        whole = self.evidence(model, rows)
        for part, where in ((slice(None, None, -1), "in another order"), (slice(None, None, 2), "beside fewer rows")):
            for among, apart in zip(whole[part], self.evidence(model, rows[part].copy()), strict=True):
                self._same(among, apart, where)

    @staticmethod
    def _same(a: Tensor, b: Tensor, where: str) -> None:
        require(a.shape == b.shape, f"{where} the output has shape {tuple(b.shape)}, alone {tuple(a.shape)}")
        require(
            torch.allclose(a, b, atol=1e-4, rtol=1e-4),
            f"{where} the output differs by up to {(a - b).abs().max().item():.2g}",
        )

    def blind(self) -> None:
        """Rows with and without their answers read the same."""
        model, rows = self.practised, self.some_rows()
        seen, asked = (self.asked(dict.fromkeys(self.corpus.fields, r)) for r in (rows, self.problem.input_rows(rows)))
        every = np.arange(len(rows))
        for a, b in zip(self.evidence(model, every, seen), self.evidence(model, every, asked), strict=True):
            self._same(a, b, "where its rows hold no answers")

    def determinism(self) -> None:
        first, again = self.first_steps, self.anew().steps(seed=3, count=2)
        require(first.losses == again.losses, f"losses {first.losses} and {again.losses} from one seed")

    def obedience(self) -> None:
        other = self.steps(seed=4, count=2)
        require_obeyed(self.first_steps.seeds, other.seeds)
        require(
            not torch.equal(self.first_steps.state, other.state),
            "torch's generator is in one state after steps from two seeds: it was started from a seed of its own",
        )

    @functools.cached_property
    def first_steps(self) -> Steps:
        return self.steps(seed=3, count=2)

    def steps(self, seed: int, count: int) -> Steps:
        """The first steps of a fresh model."""
        torch.default_generator.manual_seed(seed)
        with seeds_given() as seeds:
            steps = self.train(self.built(), self.corpus.train, [self.eight()] * count, lr=0.01)
            losses = [loss.item() for loss in steps]
            return Steps(losses, seeds, torch.get_rng_state())

    def round_trip(self) -> None:
        """A model is kept in a folder, loaded with what the folder holds alone, and asked: also
        what training alone fills, such as counts and moving averages, is kept.

        The plugin's file is imported anew for it, in which nothing is left of the training.
        """
        saved, rows = self.practised, self.some_rows()
        with tempfile.TemporaryDirectory(prefix="archbench-check-") as folder:
            self.kept(saved).write(Path(folder) / "model")
            with loaded_again(self.entry):
                loaded = load(Path(folder) / "model")
        assert isinstance(loaded, TrainedModel)
        asked = self.problem.input_rows(rows)
        split = loaded.split(asked)
        before, after = (self.evidence(model, np.arange(len(rows)), split) for model in (saved, loaded.model))
        for a, b in zip(before, after, strict=True):
            self._same(a, b, "after loading the saved state")
        predicted = predict(saved, split, loaded.training.batch_size)
        for wanted, answer in zip(predicted, loaded.answers(asked), strict=True):
            said = answer["prediction"]  # a number may differ in its last digits, as evidence may
            require(
                isinstance(said, float) or said == wanted,
                f"after loading, the prediction beside its probabilities is {said!r:.60}, without them {wanted!r:.60}",
            )
        self.can_be_kept = True

    def elsewhere(self) -> None:
        """A kept model is asked where texts have other hashes."""
        rows = self.problem.input_rows(self.some_rows())
        kept = self.kept(self.practised)
        with tempfile.TemporaryDirectory(prefix="archbench-check-") as folder:
            kept.write(Path(folder) / "model")
            there = elsewhere("evidence_of", Path(folder) / "model", rows)
        for a, b in zip(self.evidence(self.practised, np.arange(len(rows)), kept.split(rows)), there, strict=True):
            self._same(a, torch.tensor(b, dtype=a.dtype), OTHER_HASHES)

    def accepts(self, change: Callable[[Row], Row]) -> None:
        rows = [change(row) for row in self.some_rows()]
        small = self.labelled(self.corpus.train.rows.from_list(rows), rows)
        model, batch = self.model(), small.collate(np.arange(len(rows)))
        require(math.isfinite(self.loss(model, batch).item()), "the loss is not finite")
        model.eval()
        with torch.no_grad():
            require(len(model.predict(batch, small)) == len(rows), "a prediction is missing")
