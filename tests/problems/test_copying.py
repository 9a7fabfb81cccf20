"""Output vocabularies that a source extends by its own words: a fake copier on the mini translation
corpus, whose names must be copied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness import registry
from harness.data.corpus import Corpus
from harness.kinds import CopyingGenerator, Generator
from harness.problems import problem
from harness.problems.extract import AsWritten, as_written
from harness.problems.symbols import GenerateOrCopy
from harness.training.model import Model, answers, build, predict
from harness.views.words import Words
from tests.support.toy_corpus import ToyTask, toy_corpus

END = 2


class Reading(NamedTuple):
    """Numbers (B, S + 1) of the source, the end behind them, and the place (B,) to be said next."""

    said: Tensor
    place: Tensor


class Echo(CopyingGenerator):
    """Says the source again with certainty, word by word."""

    def __init__(self, width: int, symbols: int):
        super().__init__()
        self.symbols = symbols

    def start(self, vectors: Tensor, mask: Tensor, source: Tensor) -> Reading:
        said = F.pad(source.masked_fill(~mask, END), (0, 1), value=END)
        return Reading(said, torch.zeros_like(source[:, 0]))

    def step(self, symbols: Tensor, state: Reading) -> tuple[Tensor, Reading]:
        number = state.said.gather(1, state.place[:, None])
        size = self.symbols + state.said.shape[1] - 1
        scores = torch.zeros(len(number), size).scatter(1, number, 1.0).log()
        return scores, state._replace(place=(state.place + 1).clamp(max=state.said.shape[1] - 1))

    def forward(self, vectors: Tensor, mask: Tensor, source: Tensor, prefix: Tensor) -> Tensor:
        state, scores = self.start(vectors, mask, source), []
        for symbols in prefix.unbind(1):
            step, state = self.step(symbols, state)
            scores.append(step)
        return torch.stack(scores, dim=1)


def mini(task: str) -> Corpus:
    entry = registry.entry("tasks", task)
    return Corpus(registry.load(entry)(entry), "mini", None, Words(), Echo.gives)


def echo(corpus: Corpus) -> Model:
    return build(Echo, corpus.problem, {}, corpus.view, corpus.target, dims=2)


def toy(rows: list[dict[str, str]], task_type: str = "translate", metric: str = "bleu") -> Corpus:
    task = ToyTask({"train": rows, "dev": rows, "test": rows}, task_type, metric)
    return toy_corpus(task, gives=Echo.gives)


def pair(number: int, source: str, target: str) -> dict[str, str]:
    return {"id": str(number), "source": source, "target": target}


def test_names_that_training_lacks_come_out_of_the_source():
    """Batches of texts of different lengths: a word taken from another row, or from another place,
    would be another name."""
    corpus = mini("multi30k")
    found = predict(echo(corpus), corpus.dev, batch_size=16)
    assert found == [" ".join(Words().read(row["source"])) for row in corpus.dev.rows]
    unseen = {"hugo", "nina"}
    assert not unseen & {*corpus.target.symbols, *corpus.view.vocabulary.words}
    assert unseen <= {word for text in found for word in text.split()}


def test_a_gold_word_is_a_symbol_or_else_the_place_of_the_first_like_it_in_the_source_or_else_unknown():
    """Every gold text without unknown symbols can be read back from its numbers, names too."""
    rows = [pair(n, "the cat", "die Katze") for n in range(2)] + [pair(2, "Nina the Hugo Nina", "Hugo die Nina oh")]
    corpus = toy(rows)
    known = {word: number for number, word in enumerate(corpus.target.symbols, start=4)}
    symbols = len(corpus.target)
    assert symbols == 4 + 2
    gold = corpus.train.targets["symbols"][2].tolist()
    assert gold == [symbols + 2, known["die"], symbols + 0, 3]
    assert corpus.target.join(gold[:3], ["nina", "the", "hugo", "nina"]) == "hugo die nina"


def test_source_words_are_numbered_as_the_gold_words_are():
    """A word of both languages is its symbol; others have the first place where they stand."""
    rows = [pair(n, f"Anna a{n} Anna b{n} die a{n}", f"a{n} die Anna b{n}") for n in range(5)]
    corpus = toy(rows)
    head, batch = GenerateOrCopy(None, corpus.target), corpus.train.collate(np.array([3, 0, 4]))
    numbers = head.numbered(batch.inputs["text"].spellings)
    known = {word: number for number, word in enumerate(corpus.target.symbols, start=4)}
    assert set(known) == {"anna", "die"}
    for row, place in zip((3, 0, 4), numbers.tolist(), strict=True):
        words = Words().read(rows[row]["source"])
        assert place == [known.get(word, len(corpus.target) + words.index(word)) for word in words]
        gold = corpus.train.targets["symbols"][row].tolist()
        assert gold == [place[words.index(word)] for word in (f"a{row}", "die", "anna", f"b{row}")]


def test_what_is_copied_rightly_has_no_loss_and_probability_one():
    rows = [pair(n, f"name{n} says name{n}", f"name{n} says name{n}") for n in range(4)]
    corpus = toy(rows)
    model = echo(corpus)
    batch = corpus.train.collate(np.arange(4))
    assert model.loss(batch) == 0
    found = answers(model, corpus.train, batch_size=3)
    assert [answer["prediction"] for answer in found] == [row["source"] for row in rows]
    assert [answer["probability"] for answer in found] == [1.0] * 4


def test_the_evidence_of_a_row_has_no_place_of_another_rows_words():
    corpus = toy([pair(0, "a b c d", "x"), pair(1, "e", "y")])
    model = echo(corpus)
    found = model.head.evidence(model.encoder, model(corpus.train.collate(np.array([0, 1])).inputs))
    assert [len(numbers) for numbers in found] == [len(corpus.target) + 4, len(corpus.target) + 1]
    assert found[1][-1] == found[1].sum() == 1.0, "a row's evidence are probabilities of its own words"


def test_an_answer_is_copied_from_question_or_passage():
    """The passage's words are numbered behind the question's."""
    corpus = mini("squad1")
    model = echo(corpus)
    model.head.LONGEST = 200
    found = predict(model, corpus.dev.some(20, seed=1), batch_size=7)
    rows = corpus.dev.some(20, seed=1).rows
    assert found == [" ".join(map(str.lower, corpus.fields["text"](row))) for row in rows]
    symbols = corpus.dev.targets["symbols"].values
    assert not (symbols == 3).any(), "every answer of the mini corpus stands in its passage"
    assert (symbols >= len(corpus.target)).any(), "and some words of them in no training answer"


PASSAGE = "Denver's 24–10 win in the\n3rd  Super Bowl (50), it said, was a WIN."


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("24 – 10", "24–10"),
        ("the 3rd super bowl ( 50 )", "the\n3rd  Super Bowl (50)"),
        ("win", "win"),
        ("denver ' s", "Denver's"),
        ("won", "won"),
        ("win win", "win win"),
        ("( . * ) +", "( . * ) +"),
        ("", ""),
    ],
)
def test_an_answer_is_written_as_the_passage_writes_it(words, written):
    """Blanks around a hyphen would be another answer: of SQuAD's own answers a tenth would be
    wrong."""
    assert as_written(words, PASSAGE) == written


class Says(Generator):
    """Says two symbols, whatever it reads."""

    def __init__(self, width: int, symbols: int):
        super().__init__()
        self.symbols = symbols

    def start(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return torch.zeros(len(vectors), dtype=torch.long)

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        said = torch.tensor([4, 5, END])[state.clamp(max=2)]
        return F.one_hot(said, self.symbols).float().log(), state + 1


@pytest.mark.parametrize("passage", ["It was 3-0 .", ["It", "was", "3-0", "."]])
@pytest.mark.parametrize("encoder", [Says, Echo])
def test_generated_and_copied_answers_of_questions_are_written_so(encoder, passage):
    """Others are not: a translation stands in no passage."""
    rows = [{"id": "1", "passage": passage, "question": "?", "answers": {"text": ["3-0", "-0"], "start": [7, 8]}}]
    task = ToyTask(dict.fromkeys(("train", "dev", "test"), rows), "extract", "f1")
    corpus = toy_corpus(task, gives=encoder.gives)
    corpus.target.symbols = ["3", "-"]
    head = build(encoder, corpus.problem, {}, corpus.view, corpus.target, dims=2).head
    batch = corpus.dev.collate(np.array([0]))
    assert head.texts([[4, 5]], batch, corpus.dev) == ["3-"]
    assert isinstance(head, GenerateOrCopy) == (encoder is Echo)
    assert not issubclass(problem("translate").heads[encoder.gives], AsWritten)


@pytest.mark.parametrize(("task", "runs"), [("multi30k", True), ("squad2", True), ("an4", False), ("sst2", False)])
def test_a_copier_runs_where_there_are_words_to_be_copied(task, runs):
    reason = Echo.reason_to_skip(registry.entry("tasks", task), {})
    assert reason is None if runs else "words of the source among them" in reason


def test_the_table_of_spellings_is_no_weight():
    """A kept model has its symbols already, and one of other symbols could not go on from it."""
    assert not GenerateOrCopy(None, SimpleNamespace(symbols=["a"], reserved=4)).state_dict()


def test_labels_of_a_copier_are_not_smoothed():
    """Words that are not in the source would have a share of the probability that they cannot
    get."""
    assert not GenerateOrCopy(None, SimpleNamespace(symbols=[], reserved=4)).smooths
