"""Solvers against loops over all sentences, and the regression above them."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from architectures.classical import aristo
from architectures.classical.aristo import (
    Aristo,
    Combiner,
    Library,
    SentenceCorpus,
    SentenceIndex,
    content,
    latent_vectors,
    runs,
    statements,
)
from harness import registry
from harness.errors import ModelError
from harness.ragged import Ragged

LETTERS = [f"w{number}" for number in range(9)]


def drawn(count: int, longest: int = 30, seed: int = 0) -> list[str]:
    """Sentences of few words, so that all of them meet somewhere."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(LETTERS, random.integers(1, longest))) for _ in range(count)]


# What the solvers read.


def test_sentences_are_plain_words_without_questions_and_scraps():
    """A question would be found as the best statement of itself."""
    text = "The Sun, a star, is hot. Is it big? Yes. It warms the 8 planets!"
    assert list(statements(text)) == ["the sun a star is hot", "it warms the 8 planets"]
    assert list(statements(["It", "is", "hot", ".", "Is", "it", "?"])) == ["it is hot"]
    assert content(["which", "of", "the", "frogs", "eat", "big", "frogs"]) == ["frogs", "eat", "big"]


def test_runs_begin_and_end_with_content_and_may_skip_one_word():
    """By hand. Runs of stop words would be near everything."""
    found = runs(["force", "of", "gravity", "pulls", "force", "of", "gravity"])
    expected = {
        *[("force",), ("gravity",), ("pulls",)],
        *[("gravity", "pulls"), ("pulls", "force")],
        *[
            ("force", "of", "gravity"),
            ("force", "", "gravity"),
            ("gravity", "pulls", "force"),
            ("gravity", "", "force"),
        ],
    }
    assert set(found) == expected and len(found) == len(expected)


# Pointwise mutual information.

THREE = ["frogs eat green insects", "cows eat grass near frogs", "insects fly"]


def test_pmi_by_hand_on_three_sentences():
    """Of three sentences two have frogs, two insects and one both: log (1/3) / (2/3 * 2/3). What
    never meets, or is not there, counts 0 and not minus infinity."""
    index = SentenceIndex(THREE)

    def pmi(one: str, other: str) -> float:
        return index.pmi(index.found(one.split()), index.found(other.split()))

    assert pmi("frogs", "insects") == pytest.approx(math.log((1 / 3) / (2 / 3 * 2 / 3)))
    assert pmi("eat grass", "frogs") == pytest.approx(math.log((1 / 3) / (1 / 3 * 2 / 3)))
    assert pmi("green insects", "eat") == pytest.approx(math.log((1 / 3) / (1 / 3 * 2 / 3)))
    assert pmi("grass", "insects") == pmi("frogs", "fly") == pmi("frogs", "stones") == 0
    # frogs eat: [frogs, eat, frogs eat]; insects: one run. Their only meeting is in the first one.
    expected = (2 * math.log((1 / 3) / (4 / 9)) + math.log((1 / 3) / (1 / 3 * 2 / 3))) / 3
    assert index.mean_pmi(["frogs", "eat"], ["insects"]) == pytest.approx(expected)
    assert not len(index.found(["fly", "cows"])), "no run goes beyond its sentence"
    # stones are in no sentence, and all pairs with them count.
    assert index.mean_pmi(["frogs", "eat"], ["insects", "stones"]) == pytest.approx(expected / 3)
    assert index.mean_pmi(["what", "is"], ["insects"]) == 0


def places_of(run: tuple[str, ...], words: list[str]) -> list[int]:
    fits = [all(w in ("", own) for w, own in zip(run, words[at:], strict=False)) for at in range(len(words))]
    return [at for at, fit in enumerate(fits) if fit and at + len(run) <= len(words)]


def by_loops(sentences: list[str], one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """PMI by a look at each sentence; word by word."""
    ours, theirs, both = 0, 0, 0
    for sentence in sentences:
        words = sentence.split()
        a, b = places_of(one, words), places_of(other, words)
        ours, theirs = ours + bool(a), theirs + bool(b)
        both += any(abs(i - j) <= 10 for i in a for j in b)
    count = len(sentences)
    return math.log((both / count) / (ours / count * theirs / count)) if both else 0.0


def test_pmi_is_that_of_a_look_at_each_sentence():
    """Words ten places apart meet, eleven apart they do not, and neither do words of neighbouring
    sentences."""
    sentences = [*drawn(40), "a " + "x " * 9 + "b", "c " + "x " * 10 + "d", "e", "f"]
    index = SentenceIndex(sentences)
    pairs = [("w1", "w2"), ("w3 w4", "w5"), ("w1  w2", "w3"), ("w1 w2 w3", "w1"), ("w6", "w6")]
    for one, other in [*pairs, ("a", "b"), ("c", "d"), ("e", "f"), ("b", "a")]:
        runs_of_both = tuple(one.split(" ")), tuple(other.split(" "))
        found = index.pmi(*map(index.found, runs_of_both))
        assert found == pytest.approx(by_loops(sentences, *runs_of_both)), (one, other)
    assert by_loops(sentences, ("a",), ("b",)) > 0 == by_loops(sentences, ("c",), ("d",))


# Retrieval and coverage.


def test_retrieval_is_the_best_bm25_of_sentences_with_words_of_both_sides():
    """By loops. A sentence about the question alone would speak for every choice."""
    sentences = drawn(30, 8)
    lengths = [len(sentence.split()) for sentence in sentences]
    index = SentenceIndex(sentences)

    def bm25(sentence: str, words: set[str]) -> float:
        total, own = 0.0, sentence.split()
        for word in words:
            having = sum(word in each.split() for each in sentences)
            rarity = math.log(1 + (len(sentences) - having + 0.5) / (having + 0.5))
            count = own.count(word)
            length = len(own) / (sum(lengths) / len(lengths))
            total += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length)) if count else 0
        return total

    for asked, offered in ((["w1", "w2"], ["w3"]), (["w1"], ["w1", "w4", "nowhere"]), (["w5", "w6", "w7"], ["w8"])):
        fit = [{*asked} & {*each.split()} and {*offered} & {*each.split()} for each in sentences]
        scores = [bm25(each, {*asked, *offered}) if ok else 0.0 for each, ok in zip(sentences, fit, strict=True)]
        found = index.best(asked, offered)
        assert found.score == pytest.approx(max(scores)) and found.sentence == int(np.argmax(scores))
    assert index.best(["w1"], ["nowhere"]) == index.best([], []) == SentenceIndex([]).best(["w1"], ["w2"]) == (-1, 0)


def test_coverage_is_the_share_by_rarity_of_the_words_that_the_sentence_has():
    """By hand: frogs and eat stand in two of three sentences, grass in one, stones in none."""
    index = SentenceIndex(THREE)
    two, one, none = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5), math.log(1 + 3.5 / 0.5)
    assert index.covered(["frogs", "grass"], 1) == pytest.approx(1)
    assert index.covered(["frogs", "grass"], 0) == pytest.approx(two / (two + one))
    assert index.covered(["frogs", "stones", "frogs"], 0) == pytest.approx(two / (two + none))
    assert index.covered(["frogs"], -1) == 0


# Vectors.


def test_word_vectors_are_those_of_the_singular_values():
    """Cosines are all that is read of them, so that their products must be those of the matrix."""
    sentences = drawn(25, 7, seed=3)
    index = SentenceIndex(sentences)
    table = np.array([[sentence.split().count(word) for word in index.words] for sentence in sentences])
    table = np.log(1 + table) * np.log(len(sentences) / (table > 0).sum(0))
    u, s, _ = np.linalg.svd(table.T, full_matrices=False)
    vectors = latent_vectors(index.texts, len(index.words), 4, seed=0)
    assert np.allclose(vectors @ vectors.T, (u[:, :4] * s[:4] ** 2) @ u[:, :4].T, atol=1e-6)


def test_a_corpus_without_directions_has_vectors_all_the_same():
    """A single training question, as a user may try it."""
    assert not latent_vectors(Ragged.of([[0, 1]]), 2, 4, 0).any()
    assert not latent_vectors(Ragged.of([]), 0, 4, 0).any()


def test_the_cosine_is_that_of_mean_vectors_and_unknown_words_have_none():
    given = {"frogs": np.array([1.0, 0]), "insects": np.array([1.0, 1]), "grass": np.array([0, 2.0])}
    library = Library(THREE, 2, 0, given)
    assert library.cosine(["frogs", "stones"], ["insects"]) == pytest.approx(1 / math.sqrt(2))
    assert library.cosine(["frogs", "grass"], ["insects"]) == pytest.approx((0.5 + 1) / math.sqrt(1.25 * 2))
    assert library.cosine(["stones"], ["insects"]) == library.cosine(["fly"], ["insects"]) == 0


# The regression.


def questions(count: int, solvers: int, seed: int, good: int | None = 0, noise: float = 1.0):
    """Scores of four choices a question, of which the first is right; one solver knows it."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(4 * count, solvers))
    right = np.arange(4 * count) % 4 == 0
    if good is not None:
        scores[:, good] = noise * scores[:, good] + 2 * right
    return scores, [f"q{place // 4}" for place in range(4 * count)], right


def fitted(scores, groups, right, C: float = 1.0) -> Combiner:
    combiner = Combiner()
    combiner.fit(scores, groups, right, C)
    return combiner


@pytest.mark.parametrize("seed", range(6))
def test_with_one_solver_its_order_is_kept(seed):
    """The better score would else be the worse answer."""
    scores, groups, right = questions(60, 1, seed)
    combiner = fitted(scores, groups, right)
    asked, places, _ = questions(40, 1, seed + 100)
    logits = combiner(asked, places)
    for start in range(0, len(logits), 4):
        assert logits[start : start + 4].argsort().tolist() == asked[start : start + 4, 0].argsort().tolist()


def test_a_solver_that_is_always_right_gets_the_weight():
    """Beside three that guess; and its answers are the ensemble's."""
    scores, groups, right = questions(150, 4, seed=1, good=2, noise=0.0)
    combiner = fitted(scores, groups, right)
    weights = np.abs(combiner.weights).reshape(3, 4).sum(0)
    assert weights[2] > 0.9 * weights.sum()
    asked, places, truth = questions(50, 4, seed=2, good=2, noise=0.0)
    best = combiner(asked, places).reshape(-1, 4).argmax(1)
    assert (best == 0).all() and truth.reshape(-1, 4)[:, 0].all()


def test_features_are_the_score_its_probability_and_its_rank():
    """By hand, with a question whose choices do not stand together, and with equal scores."""
    combiner = Combiner()
    combiner.deviation = np.array([2.0])
    scores = np.array([[4.0], [1.0], [0.0], [4.0], [1.0]])
    found = combiner.raw(scores, ["a", "b", "a", "a", "b"])
    powers = [math.exp(2), math.exp(0), math.exp(2)]
    shares = [powers[0] / sum(powers), 0.5, powers[1] / sum(powers), powers[2] / sum(powers), 0.5]
    assert found == pytest.approx(np.array([scores[:, 0], shares, [1.5, 1.5, 3, 1.5, 1.5]]).T)


def test_the_weights_are_those_of_a_penalised_logistic_regression():
    """The slope of the loss is zero where it should be: loops over rows, none of the model's."""
    scores, groups, right = questions(30, 2, seed=4)
    combiner = fitted(scores, groups, right, C=0.5)
    assert combiner.deviation == pytest.approx(scores.std(0))
    rows = []
    for place in range(len(scores)):
        own = [each for each in range(len(scores)) if groups[each] == groups[place]]
        units = scores / scores.std(0)
        shares = [math.exp(units[place, k]) / sum(math.exp(units[each, k]) for each in own) for k in (0, 1)]
        ranks = [1 + sum(scores[each, k] > scores[place, k] for each in own) for k in (0, 1)]
        rows.append([*scores[place], *shares, *ranks])
    features = np.array(rows, dtype=float)
    features = (features - features.mean(0)) / features.std(0)
    logits = features @ combiner.weights + combiner.bias
    assert logits == pytest.approx(combiner(scores, groups))
    errors = 1 / (1 + np.exp(-logits)) - right
    assert combiner.weights + 0.5 * errors @ features == pytest.approx(0, abs=1e-2)
    assert errors.sum() == pytest.approx(0, abs=1e-2)


def test_a_solver_without_an_opinion_is_no_division_by_zero():
    scores, groups, right = questions(20, 2, seed=5)
    scores[:, 1] = 3.0
    combiner = fitted(scores, groups, right)
    assert np.isfinite(combiner(scores, groups)).all() and not combiner.weights.reshape(3, 2)[:, 1].any()


# The whole.

FACTS = {"frogs": "insects", "cows": "grass", "owls": "mice", "crows": "worms", "seals": "fish", "pandas": "leaves"}
CORPUS = [f"{animal} eat {food}" for animal, food in FACTS.items()] + ["all animals sleep at night"]
FOODS = list(FACTS.values())


def rows_of(animals: list[str]) -> list[dict[str, str]]:
    found = []
    for animal in animals:
        right = FOODS.index(FACTS[animal])
        for food in (FOODS[(right + step) % 6] for step in (1, 0, 3)):
            row = {"id": f"{animal}-{food}", "first": f"What do {animal} eat?", "second": food, "group": animal}
            found.append(row | {"label": str(int(food == FACTS[animal]))})
    return found


def parent(sentences=CORPUS, vectors=None):
    return SimpleNamespace(estimator=SimpleNamespace(sentences=sentences), word_vectors=lambda: vectors)


def hidden(rows):
    return [{name: value for name, value in row.items() if name != "label"} for row in rows]


def test_what_the_corpus_states_is_answered_of_animals_that_training_never_asked_for():
    """The answers come from the corpus and not from the training labels; one solver is enough, and
    settings choose it."""
    train, asked = rows_of(["frogs", "cows", "owls"]), rows_of(["seals", "pandas", "crows"])
    for solvers in (aristo.SOLVERS, ["retrieval"], ["pmi"], ["coverage"]):
        model = Aristo(solvers=solvers, dimensions=3)
        model.inherit("vectors", parent(), [])
        model.fit(train, [])
        scores = np.array(model.predict(hidden(asked))).reshape(-1, 3)
        assert (scores.argmax(1) == 1).all(), solvers
        assert len(model.combiner.weights) == 3 * len(solvers)
        answers = model.answers(hidden(asked))
        assert [each["prediction"] for each in answers] == scores.ravel().tolist()
        assert answers[1]["probability"] == pytest.approx(1 / (1 + math.exp(-scores[0, 1])))


def test_the_parents_vectors_are_those_of_the_solver():
    vectors = {word: np.eye(6)[number] for number, pair in enumerate(FACTS.items()) for word in pair}
    model = Aristo(solvers=["vectors"])
    model.inherit("vectors", parent(vectors=vectors), [])
    model.fit(rows_of(["frogs", "cows"]), [])
    assert model.library.solved("What do seals eat?", "fish")["vectors"] == pytest.approx(1)
    assert model.library.solved("What do seals eat?", "mice")["vectors"] == 0


def test_without_a_corpus_no_question_is_looked_up_among_its_own_answers():
    """Scores by the own half would all be perfect, and the regression would trust what test has
    not."""
    train = rows_of(list(FACTS))
    model = Aristo(dimensions=2, solvers=["retrieval", "pmi"])
    library, scores = model._held_out(train)
    assert library.index.sentences == [f"what do {animal} eat {food}" for animal, food in FACTS.items()]
    for number, animal in enumerate(FACTS):
        others = [f"what do {each} eat {FACTS[each]}" for place, each in enumerate(FACTS) if place % 2 != number % 2]
        other = Library(others, 2, 0, {})
        for place, row in enumerate(train):
            if row["group"] == animal:
                solved = other.solved(row["first"], row["second"])
                assert scores[place].tolist() == [solved["retrieval"], solved["pmi"]]
    model.fit(train, [])
    assert np.isfinite(model.predict(hidden(train))).all()


def test_settings_and_rows_that_cannot_be_are_told():
    with pytest.raises(ValueError, match="'tables' is none of retrieval, pmi, vectors, coverage"):
        Aristo(solvers=["pmi", "tables"])
    wrong = [row | {"label": "0"} for row in rows_of(["frogs", "cows"])]
    with pytest.raises(ValueError, match="all 6 training rows are alike"):
        Aristo().fit(wrong, [])
    with pytest.raises(ModelError, match="it keeps no sentences, as aristo_corpus does"):
        Aristo().inherit("vectors", SimpleNamespace(estimator=object()), [])


def test_it_weighs_choices_alone():
    """A sentence that answers a question is no choice: question and sentence make no statement."""
    settings = {"solvers": aristo.SOLVERS}
    assert Aristo.reason_to_skip(registry.entry("tasks", "ai2_questions"), settings) is None
    skipped = Aristo.reason_to_skip(registry.entry("tasks", "wikiqa"), settings)
    assert skipped == "weighs choices, and the candidates of wikiqa are none"


def test_the_corpus_has_vectors_of_stretches_of_ten_words():
    """Words of one article would all be alike; the real ones have thousands."""
    random = np.random.default_rng(7)
    texts = [random.integers(2, 9, length) for length in (23, 10, 4)]
    flat = np.concatenate(texts)
    ends = {0, 23, 33, 37, 10, 20, 30}  # every tenth word of all, and the ends of the texts
    cut = np.split(flat, sorted(ends - {0, 37}))
    vectors = SentenceCorpus(dimensions=3).train(Ragged.of(texts), [None] * 9)
    expected = latent_vectors(Ragged.of(cut), 9, 3, 0)
    assert vectors[2:] @ vectors[2:].T == pytest.approx(expected[2:] @ expected[2:].T, abs=1e-6)


def test_the_corpus_keeps_its_sentences_and_vectors_of_known_words():
    """What is kept is all that the ensemble will know; each sentence once."""
    rows = [{"id": str(n), "text": f"{s.capitalize()}. Do {s}?"} for n, s in enumerate(CORPUS * 6)]
    rows[0]["text"] = rows[0]["text"].replace("Do", "Xylophones? Do")  # a word that is unknown
    model = SentenceCorpus(dimensions=3)
    model.fit(rows, rows[:8])
    restored = SentenceCorpus(dimensions=3)
    restored.restore_fitted(model.fitted_state())
    for each in (model, restored):
        assert each.sentences == CORPUS
        assert not each.vectors[:2].any()
        assert all(each.word_vectors()[word].any() for pair in FACTS.items() for word in pair)
    assert {*restored.word_vectors()} >= {*FACTS}
