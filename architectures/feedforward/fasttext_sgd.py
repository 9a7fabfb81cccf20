"""fastText's linear classifier, learnt as by the authors' program: a step for each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from architectures.blocks.hogwild import Hogwild, Rates, Rows, compiled, learn_passes, mean_of_rows, move_rows, rate_at
from harness.registry import register
from harness.task import Row
from harness.views.bag import Bag


@compiled
def answer(text, bags, inputs, outputs, hidden, shares):
    """Puts the mean of the rows of ``inputs`` (rows, D) of a ``text`` (1,) into ``hidden`` h (D,),
    and the softmax of its products with ``outputs`` (C, D) into ``shares`` (C,); returns the share
    of each row in h."""
    scale = mean_of_rows(text, bags, inputs, hidden)
    for label in range(len(shares)):
        product = np.float32(0)
        for i in range(len(hidden)):
            product += hidden[i] * outputs[label, i]
        shares[label] = product
    highest, total = shares.max(), np.float32(0)
    for label in range(len(shares)):
        shares[label] = np.exp(shares[label] - highest)
        total += shares[label]
    for label in range(len(shares)):
        shares[label] /= total
    return scale


@compiled
def learn_texts(order, rates, bags, labels, inputs, outputs):
    """A step of gradient ascent on the logarithm of the share of its label for each of some
    texts."""
    classes, dims = outputs.shape
    hidden, change, shares = np.zeros(dims, np.float32), np.zeros(dims, np.float32), np.zeros(classes, np.float32)
    for number in range(len(order)):
        text, rate = order[number : number + 1], rate_at(rates, number, len(order))
        scale = answer(text, bags, inputs, outputs, hidden, shares)
        change[:] = 0
        for label in range(classes):
            step = rate * (np.float32(label == labels[text[0]]) - shares[label])
            for i in range(dims):
                change[i] += step * outputs[label, i]
                outputs[label, i] += step * hidden[i]
        for i in range(dims):
            change[i] *= scale
        move_rows(text, bags, inputs, change)


@compiled
def best_labels(bags, inputs, outputs):
    """The label with the highest share for each text (N,)."""
    classes, dims = outputs.shape
    hidden, shares = np.zeros(dims, np.float32), np.zeros(classes, np.float32)
    texts = np.arange(len(bags.offsets) - 1)
    found = np.zeros_like(texts)
    for number in range(len(texts)):
        answer(texts[number : number + 1], bags, inputs, outputs, hidden, shares)
        found[number] = shares.argmax()
    return found


@register(
    "fasttext_sgd",
    name="fastText, a step for each text",
    kind="fit",
    paper="Joulin et al. 2016",
    source="M2.1[30] T2",
    year=2016,
    tiny={"buckets": 1000},
    deviations=(
        "2 million buckets, as the authors' program has them by default, instead of the paper's 10 million.",
        "The texts come in an order of chance in each pass; the authors' script shuffles them once.",
        "The rate is the authors' for AG News on all tasks; theirs goes from 0.05 to 0.5 by the data.",
        "Softmax only, without the hierarchical one that the authors use for many classes.",
    ),
)
class FastTextBySteps(Hogwild):
    """The mean of the vectors of a text's words and hashed n-grams, one linear layer without bias,
    and the softmax.

    Each text is a step, at a rate that falls linearly from ``rate`` to zero. Vectors of ``hidden``
    numbers start uniform in +-1/hidden, the layer at zero; n-grams of 2 to ``ngrams`` words share
    ``buckets`` rows. It is the system ``fasttext`` by the authors' own optimiser, without the
    harness's protocol for networks. Slow on few texts, because the rows of all buckets are drawn
    first. With several ``threads`` equal seeds give other bits
    (:func:`~architectures.blocks.hogwild.learn_passes`).
    """

    def __init__(
        self,
        seed: int = 0,
        hidden: int = 10,
        ngrams: int = Bag.ngrams,
        buckets: int = Bag.buckets,
        rate: float = 0.25,
        epochs: int = 5,
        threads: int = 1,
    ):
        super().__init__(seed, threads)
        self.hidden, self.rate, self.epochs = hidden, rate, epochs
        self.view = Bag(ngrams=ngrams, buckets=buckets)

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 30.0 * size + 4.0 * hyperparameters["hidden"] * hyperparameters["buckets"]

    def prepare(self) -> None:
        small = FastTextBySteps(buckets=10, epochs=1)
        small.fit([{"text": "word", "label": "label"}], [])
        small.predict([{"text": "word"}])

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        texts = [row["text"] for row in train]
        self.view.fit(texts)
        self.classes, labels = np.unique([row["label"] for row in train], return_inverse=True)
        rng = np.random.default_rng(self.seed)
        start = rng.random((self.view.width, self.hidden), dtype=np.float32)
        self.inputs = (2 * start - 1) / np.float32(self.hidden)
        self.outputs = np.zeros((len(self.classes), self.hidden), np.float32)
        self._learn(self._bags(texts), labels, rng)
        self.parameter_count = self.inputs.size + self.outputs.size
        self.flops_per_example = 2.0 * self.outputs.size

    def _bags(self, texts: Sequence[Any]) -> Rows:
        return Rows.of(self.view.encode(texts)["ids"])

    def _learn(self, bags: Rows, labels: np.ndarray, rng: np.random.Generator) -> None:
        def learn(order: np.ndarray, rates: Rates, _: np.ndarray) -> None:
            learn_texts(order, rates, bags, labels, self.inputs, self.outputs)

        learn_passes(learn, len(labels), self.epochs, self.rate, self.threads, rng)

    def predict(self, rows: Sequence[Row]) -> list[str]:
        bags = self._bags([row["text"] for row in rows])
        return self.classes[best_labels(bags, self.inputs, self.outputs)].tolist()

    def fitted_state(self) -> dict[str, Any]:
        names = ("classes", "inputs", "outputs", "parameter_count", "flops_per_example")
        return {name: getattr(self, name) for name in names} | {"view": self.view.state()}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.view.restore(state.pop("view"))
        vars(self).update(state)
