"""GPT-3: an answer's score is what transformers' own model gives its pieces behind the prompt, a
mapping that stands in the prompt is followed, and nothing is trained."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.objectives.next_piece import NextPiece
from architectures.pretrained import gpt3
from architectures.pretrained.gpt2 import GPT2
from architectures.pretrained.gpt3 import Continuations, InContext, copied
from harness import registry
from harness.errors import ModelError
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.views.byte_subwords import ByteSubwords
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.sessions import carried_out, session
from tests.support.transformers_weights import renamed

VIEW = ByteSubwords(size=300, max_length=64)
VIEW.fit(["the cat sat on the mat answer: good", "a dog ran answer: very bad"] * 3)
TRAIN = [
    {"id": str(number), "text": text, "label": label}
    for number, (text, label) in enumerate(
        [("cats sat", "good"), ("dogs ran", "very bad"), ("a mat", "good"), ("the dog", "very bad"), ("on", "good")]
    )
]
ASKED = [{"id": "a", "text": "the cat ran"}, {"id": "b", "text": "mats"}]


def parent_of(encoder: Any, view: Subwords = VIEW, learns: Any = None) -> Any:
    """A kept model as far as it is read here."""
    head = SimpleNamespace(learns=NextPiece(encoder) if learns is None else learns)
    part = SimpleNamespace(architecture="gpt2", task="text_mix")
    return SimpleNamespace(
        model=SimpleNamespace(encoder=encoder, head=head), view=view, description=SimpleNamespace(part=part)
    )


def child(parent: Any, rows: list[dict[str, Any]] = TRAIN, **settings: Any) -> InContext:
    system = InContext(**{"shots": 2} | settings)
    if parent is not None:
        system.inherit("inputs", parent, [])
    system.fit(rows, [])
    return system


@pytest.fixture(scope="module")
def gpt() -> GPT2:
    return small(GPT2, VIEW.width, VIEW, stretch=20.0, layers=2, hidden=12, heads=3)


def by_transformers(encoder: GPT2, prompt: list[int], answer: list[int]) -> float:
    """The log-probability of an answer behind a prompt, one piece after another."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=VIEW.width, n_positions=64, n_embd=12, n_layer=2, n_head=3)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    given = dict(encoder.named_parameters())
    with torch.no_grad():
        for name, theirs_of_it in renamed(theirs.transformer, lambda weights: weights).items():
            theirs_of_it.copy_(given[name])
        total = 0.0
        for count in range(len(answer)):
            logits = theirs(torch.tensor([prompt + answer[:count]])).logits[0, -1]
            total += float(logits.log_softmax(-1)[answer[count]])
    return total


@pytest.mark.parametrize("shots", [0, 2])
def test_scores_are_those_of_transformers_behind_the_prompt(gpt, shots):
    """The prompt is worked out here from the texts; padding and the other answers change
    nothing."""
    system = child(parent_of(gpt), shots=shots)
    found = system.scores(ASKED)
    pieces = lambda text: VIEW.tokenizer.encode(text, add_special_tokens=False).ids  # noqa: E731
    for row, scores in zip(ASKED, found, strict=True):
        assert len(system.examples(row)) == shots
        prompt = [VIEW.start]
        for texts, answer in system.examples(row):
            prompt += [*pieces(texts[0]), *pieces(" answer:"), *pieces(f" {answer}"), VIEW.separator]
        prompt += [*pieces(row["text"]), *pieces(" answer:")]
        for answer, score in zip(["good", "very bad"], scores, strict=True):
            expected = by_transformers(gpt, prompt, pieces(f" {answer}")) / len(pieces(f" {answer}"))
            assert score.item() == pytest.approx(expected, rel=1e-4)


def test_what_the_model_says_anyway_is_taken_from_the_score(gpt):
    model = Continuations(gpt, VIEW)
    system = child(parent_of(gpt), normalised="answer")
    answers = [model.pieces(" good"), model.pieces(" very bad")]
    assert len(answers[0]) != len(answers[1])
    for row, scores in zip(ASKED, system.scores(ASKED), strict=True):
        prompt = model.prompt(system.examples(row), [row["text"]], max(map(len, answers)))
        for answer, score in zip(answers, scores, strict=True):
            anyway = by_transformers(gpt, [VIEW.start, *model.pieces(" answer:")], answer)
            assert score.item() == pytest.approx(by_transformers(gpt, prompt, answer) - anyway, rel=1e-4, abs=1e-4)


class Follows(nn.Module):
    """An encoder that tells, of each place, the piece that stood behind the longest run of pieces
    which ends here and stood in the prompt before: what is called an induction head, by hand."""

    def __init__(self, pieces: int):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.eye(pieces))

    def forward(self, pieces: SubwordBatch) -> Tensor:
        states = torch.zeros(*pieces.ids.shape, self.table.num_embeddings)
        for row, ids in enumerate(pieces.ids.tolist()):
            for place in range(len(ids)):
                runs = [self.run(ids, before, place) for before in range(place)]
                if runs and max(runs):
                    states[row, place, ids[1 + runs.index(max(runs))]] = 9.0
        return states

    @staticmethod
    def run(ids: list[int], before: int, place: int) -> int:
        length = 0
        while length <= before and ids[before - length] == ids[place - length]:
            length += 1
        return length


def test_a_mapping_that_stands_in_the_prompt_is_followed():
    """Of each of many mappings of words to answers, whatever the words mean: the examples with
    their answers stand in front of the query, in one form. A model without the prompt is at
    chance."""
    right = wrong = 0
    for seed in range(6):
        labels = np.random.default_rng(seed).permutation(["good", "very bad"] * 2).tolist()
        words = ["cats sat", "dogs ran", "a mat", "the dog"]
        rows = [{"id": w, "text": w, "label": label} for w, label in zip(words, labels, strict=True)]
        for shots, counted in ((4, True), (0, False)):
            system = child(parent_of(Follows(VIEW.width)), rows, shots=shots)
            found = system.predict([{"id": w, "text": w} for w in words])
            same = sum(map(str.__eq__, found, labels))
            right, wrong = (right + same, wrong) if counted else (right, wrong + same)
    assert (right, wrong) == (24, 12)


def test_a_pair_is_asked_by_both_of_its_texts():
    """The first, "question:", the second."""
    model = Continuations(Follows(VIEW.width), VIEW)
    prompt = model.prompt([(["a cat", "a dog"], "good")], ["the mat", "the cat"], 3)
    assert prompt[0] == VIEW.start and prompt.count(VIEW.separator) == 1
    told = VIEW.tokenizer.decode(prompt[1:], skip_special_tokens=False)
    assert told.split("[SEP]") == ["a cat question:a dog answer: good", "the mat question:the cat answer:"]


def test_long_texts_lose_their_ends_and_the_answer_has_room():
    """Each text has the same part of the pieces, whatever its length."""
    model = Continuations(Follows(VIEW.width), VIEW)
    examples = [(["a" * 90], "good"), (["b"], "very bad")]
    prompt = model.prompt(examples, ["c" * 90], 5)
    fixed = 1 + 3 * len(model.pieces(" answer:")) + sum(1 + len(model.pieces(f" {answer}")) for _, answer in examples)
    room = (64 - 5 - fixed) // 3
    assert len(prompt) == fixed + 2 * room + 1 <= 64 - 5
    full = model.pieces("a" * 90)
    assert prompt[1 : 1 + room] == full[:room] and len(full) > room
    with pytest.raises(ModelError, match="so many examples leave 0 of the 64 pieces"):
        model.prompt(examples[:1] * 20, ["c"], 5)


def test_examples_are_of_train_and_others_for_each_text_and_seed(monkeypatch):
    monkeypatch.setattr(gpt3, "POOL", 30)
    rows = [{"id": str(n), "text": f"text {n}", "label": "good" if n % 3 else "very bad"} for n in range(50)]
    dev = [{"id": "d", "text": "of dev", "label": "good"}]
    shown, sets = set(), set()
    for seed in (0, 1):
        system = InContext(seed=seed, shots=3)
        system.fit(rows, dev)
        places = [
            rows.index({"id": texts[0].split()[1], "text": texts[0], "label": label}) for texts, label in system.pool
        ]
        assert len(places) == 30 and places == sorted(places), "they keep their order"
        for asked in range(100):
            examples = system.examples({"id": "q", "text": f"asked {asked}"})
            assert examples == system.examples({"id": "other", "text": f"asked {asked}"})
            assert len({texts[0] for texts, _ in examples}) == 3
            assert all({"text": texts[0], "label": label} in _bare(rows) for texts, label in examples)
            shown |= {texts[0] for texts, _ in examples if seed == 0}
            sets.add((seed, *(texts[0] for texts, _ in examples)))
    assert len(shown) == 30 and len(sets) > 190


def test_examples_are_drawn_from_as_many_rows_as_the_deviation_says():
    system = InContext()
    system.fit([TRAIN[0]] * 1500, [])
    assert any(f"from {len(system.pool):,} rows" in each for each in registry.entry("architectures", "gpt3").deviations)


def _bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"text": row["text"], "label": row["label"]} for row in rows]


@pytest.mark.parametrize("normalised", ["length", "answer"])
def test_the_order_of_the_classes_changes_no_score(gpt, normalised):
    system = child(parent_of(gpt), normalised=normalised)
    before, answers = system.scores(ASKED), system.predict(ASKED)
    system.answers_known = system.answers_known[::-1]
    torch.testing.assert_close(system.scores(ASKED).flip(1), before, rtol=1e-5, atol=1e-5)
    assert system.predict(ASKED) == answers


def test_no_weight_changes_and_none_has_a_gradient(gpt):
    before = {name: weights.clone() for name, weights in gpt.named_parameters()}
    system = child(parent_of(gpt))
    system.predict(ASKED)
    assert system.parameter_count == sum(weights.numel() for weights in before.values())
    for name, weights in gpt.named_parameters():
        assert torch.equal(weights, before[name]) and weights.grad is None


def test_a_parent_that_tells_no_next_piece_is_refused(gpt):
    """One that is tuned on a task, or that reads both sides, would answer at random."""
    for learns in (object(), False):
        with pytest.raises(ModelError, match="gpt2 on text_mix has not learnt to tell the next piece"):
            child(parent_of(gpt, learns=learns))


def test_without_a_parent_answers_are_copied_from_like_texts():
    """Weights of examples by hand: the cosines are 1 and 0."""
    examples = [(["a b"], "x"), (["c"], "y"), (["c d"], "y")]
    found = copied(examples, ["a b"], ["x", "y"]).exp()
    assert found.tolist() == pytest.approx([math.exp(10) + 1e-3, 2 + 1e-3])
    pair = copied([(["a b", "b c"], "x"), (["a", "a d"], "y")], ["a", "c"], ["x", "y"]).exp()
    assert pair.tolist() == pytest.approx([math.exp(10) + 1e-3, 1 + 1e-3])


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"shots": -1}, "shots=-1 is below 0"), ({"normalised": "x"}, "'x' is none of length, answer")],
)
def test_settings_that_mean_nothing_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        InContext(**settings)


def test_a_run_pre_trains_the_parent_and_keeps_who_it_was(tmp_path):
    sizes = ("gpt2.layers=1", "gpt2.hidden=12", "gpt2.heads=2", "gpt2.vocabulary=300", "gpt3.shots=2")
    records = carried_out(session(tmp_path, "gpt3", tasks="sst2", keep=True, overrides=sizes))
    assert {name: record.status for name, record in records.items()} == {"gpt2": "ok", "gpt3": "ok"}
    record = records["gpt3"]
    assert [(each["architecture"], each["task"]) for each in record.lineage] == [("gpt2", "text_mix")]
    kept = load(storage.place(tmp_path, record.key))
    assert len(kept.answers([{"id": "0", "text": ["a", "fine", "film"]}])) == 1
