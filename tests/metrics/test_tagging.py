"""Spans, their F1 and token accuracy: by hand and against seqeval."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, IOBES, Entities

from harness.metrics import score
from harness.metrics.tagging import spans


def _score(predictions, references, names=("span_f1", "token_accuracy")):
    return score(names, [tags.split() for tags in predictions], [{"tags": tags.split()} for tags in references])


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        pytest.param("B-A I-A O B-A B-B", {(0, 2, "A"), (3, 4, "A"), (4, 5, "B")}, id="IOB2"),
        pytest.param("B-A I-A E-A S-B O S-B S-B", {(0, 3, "A"), (3, 4, "B"), (5, 6, "B"), (6, 7, "B")}, id="BIOES"),
        pytest.param("B-A B-A", {(0, 1, "A"), (1, 2, "A")}, id="neighbours of one type"),
        pytest.param("O I-A I-A", {(1, 3, "A")}, id="I without B begins a span"),
        pytest.param("B-A I-B I-B", {(0, 1, "A"), (1, 3, "B")}, id="a change of type begins a span"),
        pytest.param("O E-A I-A", {(1, 2, "A"), (2, 3, "A")}, id="E without B is a span of one and closes it"),
        pytest.param("B-A E-B", {(0, 1, "A"), (1, 2, "B")}, id="E of another type"),
        pytest.param("B-A E-A E-A", {(0, 2, "A"), (2, 3, "A")}, id="E after E"),
        pytest.param("S-A I-A E-A", {(0, 1, "A"), (1, 3, "A")}, id="S closes, so I begins"),
        pytest.param("B-A S-A I-A", {(0, 1, "A"), (1, 2, "A"), (2, 3, "A")}, id="S in an open span"),
        pytest.param("B-A O I-A", {(0, 1, "A"), (2, 3, "A")}, id="O ends a span"),
        pytest.param("B-A-1 I-A-1 I-A-2", {(0, 2, "A-1"), (2, 3, "A-2")}, id="a type may hold a hyphen"),
        pytest.param("", set(), id="no words"),
    ],
)
def test_spans_by_hand(tags, expected):
    assert spans(tags.split()) == expected


def test_f1_by_hand():
    """Gold has 3 spans, 5 are predicted, 2 agree in ends and type: P 2/5, R 2/3, F1 4/8; 4 of the 8
    tags agree."""
    gold = ["B-A I-A O B-B", "O B-A I-A O"]
    predicted = ["B-A I-A B-A B-B", "O I-A O B-B"]
    assert _score(predicted, gold) == {
        "span_f1": pytest.approx(4 / 8),
        "span_precision": pytest.approx(2 / 5),
        "span_recall": pytest.approx(2 / 3),
        "token_accuracy": pytest.approx(4 / 8),
    }


def test_spans_do_not_run_across_sentences():
    """An I- that opens a sentence begins a span even when the sentence before ended in the same
    type."""
    assert _score(["B-A", "I-A"], ["B-A", "B-A"])["span_f1"] == 1.0


def test_both_notations_of_the_same_spans_agree():
    """A CRF trained on BIOES is scored against IOB2 references without conversion."""
    assert _score(["B-A E-A S-B O"], ["B-A I-A B-B O"])["span_f1"] == 1.0


@pytest.mark.parametrize(("predicted", "gold"), [("O O", "O O"), ("B-A O", "O O"), ("O O", "B-A O")])
def test_f1_without_spans_on_a_side_is_zero(predicted, gold):
    """conlleval divides by nothing and prints 0; an epoch that predicts no span yet must not fail a
    run."""
    assert _score([predicted], [gold])["span_f1"] == 0.0


def test_a_sentence_of_the_wrong_length_is_an_error():
    """Truncated predictions would otherwise count as if the rest of the sentence were right."""
    for name in ("span_f1", "token_accuracy"):
        with pytest.raises(ValueError, match="sentence 2 has 1 predicted tags for 2 words"):
            _score(["O", "O"], ["O", "O B-A"], [name])


def test_tags_that_mark_no_spans_are_refused_by_name():
    """Span F1 of part-of-speech tags is a mistake in a task file, not a score of 0."""
    with pytest.raises(ValueError, match="tag 'NNP' marks no span"):
        _score(["NNP"], ["NNP"], ["span_f1"])


tags = st.sampled_from(["O", *(f"{prefix}-{type_}" for prefix in "BIES" for type_ in ("A", "B"))])


@settings(max_examples=100)
@given(st.lists(tags, max_size=10))
def test_any_sequence_is_read_as_seqeval_reads_it_by_default(sequence):
    """seqeval's default mode is conlleval's reading; it gives the last word of a span, we the word
    after."""
    assert spans(sequence) == {(first, last + 1, type_) for type_, first, last in get_entities(sequence)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:.*ill-defined")
@settings(max_examples=25)
@given(st.lists(st.lists(st.tuples(tags, tags), min_size=1, max_size=8), min_size=1, max_size=3))
def test_corpus_values_equal_seqeval(sentences):
    predictions = [[p for p, _ in sentence] for sentence in sentences]
    references = [[r for _, r in sentence] for sentence in sentences]
    assert score(["span_f1"], predictions, [{"tags": reference} for reference in references]) == {
        "span_f1": pytest.approx(f1_score(references, predictions, zero_division=0)),
        "span_precision": pytest.approx(precision_score(references, predictions, zero_division=0)),
        "span_recall": pytest.approx(recall_score(references, predictions, zero_division=0)),
    }


@pytest.mark.parametrize(
    ("scheme", "malformed", "strict"),
    [
        (IOB2, "O I-A I-A", set()),
        (IOB2, "B-A I-B O", {(0, 1, "A")}),
        (IOBES, "B-A I-A O", set()),
        (IOBES, "O E-A O", set()),
    ],
)
def test_seqeval_in_strict_mode_drops_spans_that_conlleval_reads(scheme, malformed, strict):
    """The two disagree on malformed sequences. Ours is conlleval's reading, which published CoNLL
    figures use."""
    found = Entities([malformed.split()], scheme).entities[0]
    assert {(entity.start, entity.end, entity.tag) for entity in found} == strict
    assert strict < spans(malformed.split())
