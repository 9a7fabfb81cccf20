"""The interface that tasks, training and re-scoring use: names, directions, errors, no side
effects."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest

from harness import metrics
from harness.errors import UnknownName
from harness.metrics import INFOS, METRICS, better, display_info, info, score
from harness.metrics.units import unit_scores

ROWS = {
    "classify": ["x", [{"label": "x"}, {"label": "y"}]],
    "multilabel": [{"x": 0.9, "y": 0.2}, [{"labels": ["x", "y"]}, {"labels": ["y"]}]],
    "rank": [0.5, [{"label": "1", "group": "q"}, {"label": "0", "group": "q"}]],
    "mentions": ["A", [{"text": "[p she p]", "label": "A"}, {"text": "[p his p]", "label": "B"}]],
    "tag": [["B-X", "O"], [{"tags": ["B-X", "O"]}, {"tags": ["O", "O"]}]],
    "extract": ["x", [{"answers": {"text": ["x"], "start": [0]}}, {"answers": {"text": [], "start": []}}]],
    "answer": ["x", [{"answer": "x", "skill": "a"}, {"answer": "y", "skill": "b"}]],
    "transcribe": ["one", [{"transcript": "one"}, {"transcript": "two"}]],
    "translate": ["eins zwei drei vier", [{"target": "Eins zwei drei vier"}, {"target": "Fünf."}]],
    "regress": [2.5, [{"score": 2.0}, {"score": 4}]],
    "language_model": [(-3.0, 2), [{"text": "a bc"}, {"text": ["a", "b"]}]],
}
KIND = {
    "accuracy": "classify",
    "macro_f1": "classify",
    "hierarchical_f1": "classify",
    **dict.fromkeys(("micro_f1", "precision_at_1", "precision_at_3", "precision_at_5"), "multilabel"),
    **dict.fromkeys(("mention_f1", "mention_f1_feminine", "mention_f1_masculine"), "mentions"),
    **dict.fromkeys(("map", "mrr", "map_237", "mrr_237", "choice_accuracy"), "rank"),
    **dict.fromkeys(("span_f1", "span_precision", "span_recall", "token_accuracy"), "tag"),
    **dict.fromkeys(("exact_match", "f1", "exact_match_answerable", "f1_answerable", "no_answer_accuracy"), "extract"),
    **dict.fromkeys(("skill_accuracy", "skills_solved"), "answer"),
    **dict.fromkeys(("pearson", "spearman", "mse"), "regress"),
    "wer": "transcribe",
    "cer": "transcribe",
    **dict.fromkeys(("bleu", "chrf"), "translate"),
    **dict.fromkeys(("nats_per_token", "perplexity", "bits_per_character"), "language_model"),
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_gives_a_finite_value_of_its_own_name(name):
    """A task that names a metric finds that very key in the record; JSON could not hold anything
    but a finite number."""
    prediction, rows = ROWS[KIND[name]]
    value = score([name], [prediction] * 2, rows, {"x": "z"})[name]
    assert isinstance(value, float)
    assert np.isfinite(value)


def test_part_of_speech_accuracy_is_per_word():
    """POS tasks name their metric "accuracy": it must count words, not sentences without any
    error."""
    assert score(["accuracy"], [["A", "B", "B"], ["A"]], [{"tags": ["A", "A", "B"]}, {"tags": ["A"]}]) == {
        "accuracy": 3 / 4
    }


def test_undefined_values_are_left_out():
    """A capped SQuAD 2.0 split without unanswerable questions must not show a no-answer accuracy of
    0."""
    values = score(["exact_match", "no_answer_accuracy"], ["x"], [{"answers": {"text": ["x"]}}])
    assert values == {"exact_match": 1.0, "f1": 1.0, "exact_match_answerable": 1.0, "f1_answerable": 1.0}


def test_names_that_nobody_knows_get_an_offer():
    with pytest.raises(UnknownName, match="'acuracy'.*did you mean accuracy"):
        score(["acuracy"], ["x"], [{"label": "x"}])
    with pytest.raises(UnknownName, match="there are accuracy, macro_f1"):
        better("???", 1, 2)
    with pytest.raises(UnknownName, match="'nats_per_tokn'.*did you mean nats_per_token"):
        info("nats_per_tokn")


def test_every_metric_has_information_under_its_own_name():
    """Tables, plots and exports of a metric without it would show a wrong scale or direction."""
    assert {name: facts.name for name, facts in INFOS.items()} == {name: name for name in METRICS}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.7995, "79.9"),  # below the half as a binary fraction; 100 times it is not
        ("accuracy", 0.0625, "6.2"),
        ("wer", 1.25, "125.0"),
        ("nats_per_token", math.log(123.45), "123.5"),
        ("perplexity", 123.44, "123.4"),
    ],
)
def test_values_are_shown_on_the_scale_of_the_metric(name, value, text):
    """Nats would be read as a perplexity 20 times better than it is."""
    assert info(name).format(value) == text


def test_a_deviation_of_nats_is_shown_as_one_of_perplexity():
    """exp(5) = 148.4; 0.1 nats more or less is 164.0 or 134.3."""
    assert info("nats_per_token").format_deviation(5.0, 0.1) == "14.9"
    assert info("accuracy").format_deviation(0.81, 0.012) == "1.2"


@pytest.mark.parametrize(("mean", "deviation"), [(710.0, 1.0), (699.0, 5.0), (5.0, 900.0)])
def test_a_deviation_of_an_infinite_perplexity_is_infinite(mean, deviation):
    """A record with 710 nats stopped every page: infinity less infinity is no decimal number."""
    assert info("nats_per_token").format_deviation(mean, deviation) == "inf"
    assert info("nats_per_token").scale_deviation(mean, deviation) == math.inf


def test_a_metric_of_another_program_is_shown_as_a_fraction():
    """A record from elsewhere may hold scores that this version has no metric for."""
    facts = display_info("their_score")
    assert (facts.label, facts.format(0.5), facts.lower_is_better) == ("their score", "50.0", False)
    assert display_info("wer") is info("wer")


@pytest.mark.parametrize(
    "name",
    [
        "accuracy",
        "map",
        "choice_accuracy",
        "mention_f1",
        "span_f1",
        "f1",
        "skill_accuracy",
        "mse",
        "wer",
        "nats_per_token",
        "bits_per_character",
    ],
)
def test_the_ratio_of_unit_sums_is_the_score(name):
    """Intervals and paired tests are computed from the units, and stand beside the score."""
    prediction, rows = ROWS[KIND[name]]
    rows = [{"id": str(i)} | row for i, row in enumerate(rows)]
    predictions = [prediction] * 2
    units = unit_scores(name, predictions, rows)
    ratio = sum(units.numerators) / sum(units.denominators)
    assert ratio == pytest.approx(score([name], predictions, rows)[name])


@pytest.mark.parametrize(
    ("names", "predictions", "rows", "message"),
    [
        (["accuracy"], ["x"], [{"label": "x"}] * 2, "1 predictions for 2 rows"),
        (["accuracy"], [], [], "no rows"),
        (["accuracy"], ["x"], [{"id": "1", "text": "t"}], "column 'label'; found id, text"),
        (["accuracy"], [0], [{"label": "x"}], "Expected format"),
        (["map"], [0.1], [{"label": "yes", "group": "q"}], "label 'yes'"),
    ],
)
def test_predictions_that_do_not_fit_the_rows_are_refused(names, predictions, rows, message):
    """Otherwise a misaligned or wrongly typed list would be scored as if it were a bad model."""
    with pytest.raises(ValueError, match=message):
        score(names, predictions, rows)


def test_better_knows_the_direction_and_is_strict():
    """Early stopping with the wrong direction keeps the worst epoch; a tie must keep the earlier
    one."""
    lower = {name for name in METRICS if info(name).lower_is_better}
    assert lower == {"mse", "wer", "cer", "nats_per_token", "perplexity", "bits_per_character"}
    assert better("accuracy", 0.9, 0.8)
    assert not better("accuracy", 0.8, 0.8)
    assert better("wer", 0.1, 0.2)
    assert not better("wer", 0.2, 0.1)
    assert not better("accuracy", float("nan"), 0.1)


def test_scoring_leaves_the_random_generators_alone():
    """Dev scores are computed between epochs: were a generator moved, scoring would change the
    model that is trained."""
    before = random.getstate(), np.random.get_state()
    score(["accuracy"], ["x"], [{"label": "x"}])
    after = random.getstate(), np.random.get_state()
    assert before[0] == after[0]
    assert before[1][2] == after[1][2]
    assert (before[1][1] == after[1][1]).all()


def test_scoring_needs_neither_network_nor_a_writable_cache(tmp_path, monkeypatch):
    """Compute nodes have read-only homes and no hub; `evaluate.Metric` would make a folder in the
    cache."""
    cache = tmp_path / "file"
    cache.write_text("a file, so that no folder can be made below it")
    monkeypatch.setattr("evaluate.config.HF_METRICS_CACHE", cache)
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a metric went to the network"))
    metrics._metric.cache_clear()  # another test may have made it
    assert score(["accuracy"], ["x"], [{"label": "x"}]) == {"accuracy": 1.0}


def test_importing_the_package_imports_neither_torch_nor_evaluate():
    """The leaderboard asks `better` and must answer at once."""
    heavy = "{'torch', 'evaluate', 'datasets', 'transformers', 'numpy'}"
    code = f"import sys, harness.metrics as m; assert m.better('wer', 0, 1); print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
