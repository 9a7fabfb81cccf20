"""The rule of what may be compared: who breaks it ranks a model that trained longer, on more, or on
the test itself."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UnknownName
from harness.records import Record
from harness.records.groups import AXES, Amount, along, comparable, differences, group_of
from tests.support.made_records import record

TRAIN, DEV, TEST, OTHER = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
SMALL = {"name": "small", "examples": 5000, "passes": 10, "min_steps": 500, "batch_size": 32}
KNOWN: dict[str, Any] = {
    "data": {"train": TRAIN, "dev": DEV, "test": TEST},
    "budget": SMALL,
    "protocol_version": 2,
    "hyperparameters": {"hidden": 100, "limits": {"max_train": 5000, "max_epochs": None}, "vectors": None},
}
GLOVE = {"name": "glove.txt", "sha256": "e" * 64, "dims": 50}
SPELT = {"char_cnn_words": {"version": 1, "filters": 30}}
PARENT = {"architecture": "vampire", "task": "text_mix", "key": "1" * 16, "row": "2" * 16}


def taught_by(role: str, task: str, train: str = OTHER) -> dict[str, Any]:
    """Fields of a record that learnt from a kept model of this task, which was trained on these
    rows."""
    parent = PARENT | {"task": task}
    ancestor = {name: parent[name] for name in ("architecture", "task", "key")} | {"role": role}
    return {
        "hyperparameters": KNOWN["hyperparameters"] | {"parents": {role: parent}},
        "lineage": [ancestor | {"corpus": {"train": train}}],
    }


KEPT = {"name": "lm", "dims": 50, "key": "0" * 16, "artefact": "f" * 64}


def made(*, budget: dict[str, Any] | None = None, data: dict[str, str] | None = None, **fields: Any) -> Record:
    """A record of schema 2; ``budget`` and ``data`` are changes."""
    merged = {"budget": SMALL | (budget or {}), "data": KNOWN["data"] | (data or {})}
    return record(score=fields.pop("score", 0.5), **KNOWN | merged | fields)


MATTERS: dict[str, Record] = {
    "task": made(task="sst5"),
    "version of the task": made().model_copy(update={"task_version": 2}),
    "training data": made(data={"train": OTHER}),
    "dev data": made(data={"dev": OTHER}),
    "test data": made(data={"test": OTHER}),
    "tier": made(tier="mini"),
    "protocol": made(protocol="another"),
    "version of the protocol": made(protocol_version=1),
    "name of the budget": made(budget={"name": "full"}),
    "examples": made(budget={"examples": 4999}),
    "passes": made(budget={"passes": 20}),
    "steps": made(budget={"min_steps": 1000}),
    "batch": made(budget={"batch_size": 8}),
    "seconds": made(budget={"seconds": 60.0}),
    "texts of test": made(sees=["texts of test"]),
    "labels of phrases": made(sees=["labels of phrases"]),
    "unknown sight": made(sees=None),
    "vectors": made(vectors=GLOVE),
    "a kept model": made(inputs=[KEPT]),
    "an input source": made(hyperparameters=KNOWN["hyperparameters"] | {"inputs": SPELT}),
    "its settings": made(hyperparameters=KNOWN["hyperparameters"] | {"inputs": {"char_cnn_words": {"version": 2}}}),
    "weights that learnt elsewhere": made(**taught_by("weights", "text_mix")),
    "a teacher that learnt elsewhere": made(**taught_by("teacher", "snli")),
    "a teacher with more labels": made(**taught_by("teacher", "sst2")),
}
"""Records that differ from the plain one in one thing that makes a comparison unfair."""

SAME: dict[str, Record] = {
    "architecture": made(architecture="bilstm"),
    "version of the architecture": made(architecture_version=7),
    "settings": made(hyperparameters={"hidden": 5}),
    "seed": made(seed=3),
    "score": made(score=0.9),
    "speed": made(speed={"train_examples_per_second": 5.0}),
    "code": made(commit="c" * 40, dirty=True),
    "passes as a fraction": made(budget={"passes": 10.0}),
    "own characters": made(inputs=[{"name": "characters", "dims": 30}]),
    "a limit that is none": made(budget={"seconds": None}),
    "a teacher with the same labels": made(**taught_by("teacher", "sst2", TRAIN)),
    "a metric per example": made(main_metric="accuracy", tokens={"name": "bpe"}),
}
"""Records that differ from the plain one in what is compared."""


@pytest.mark.parametrize("what", list(MATTERS))
def test_records_are_not_compared_if_they_differ_in(what):
    """A board that ranks them tells of the difference in treatment and not of the architectures."""
    assert group_of(MATTERS[what]) != group_of(made())
    assert not comparable(MATTERS[what], made())
    assert group_of(MATTERS[what]).id != group_of(made()).id
    assert len(differences(group_of(MATTERS[what]), group_of(made()))) == 1


@pytest.mark.parametrize("what", list(SAME))
def test_records_are_compared_although_they_differ_in(what):
    """This is what a benchmark is about."""
    assert comparable(SAME[what], made())
    assert group_of(SAME[what]).id == group_of(made()).id
    assert differences(group_of(SAME[what]), group_of(made())) == []


def test_any_two_unfair_differences_are_two_groups():
    """No field may stand for another."""
    groups = [group_of(each) for each in (made(), *MATTERS.values())]
    assert len(set(groups)) == len(groups) == len({group.id for group in groups})


PLAIN = {"plain": made()} | MATTERS | SAME


@settings(max_examples=40)
@given(st.lists(st.sampled_from(list(PLAIN)), max_size=6))
def test_comparable_parts_records_into_groups(names):
    """Symmetric and transitive: else two pages that begin with different rows would disagree."""
    groups = {name: group_of(PLAIN[name]) for name in names}
    pairs = {(a, b): comparable(PLAIN[a], PLAIN[b]) for a, b in itertools.product(groups, repeat=2)}
    for (a, b), alike in pairs.items():
        assert alike == pairs[b, a] == (groups[a] == groups[b])
    for a, b, c in itertools.product(groups, repeat=3):
        assert pairs[a, c] or not (pairs[a, b] and pairs[b, c])


def test_a_budget_of_ones_own_and_protocol_smoke_are_never_ranked():
    for each in (made(budget={"name": "custom"}), made(protocol="smoke")):
        assert not comparable(each, each)


def test_word_vectors_are_known_by_their_digest():
    """The same file has another name on another machine, and another file may have the same."""
    renamed = made(vectors=GLOVE | {"name": "vectors.txt"})
    other = made(vectors=GLOVE | {"sha256": "1" * 64})
    assert comparable(made(vectors=GLOVE), renamed)
    assert group_of(renamed).id == group_of(made(vectors=GLOVE)).id
    assert not comparable(made(vectors=GLOVE), other)
    by_setting = made(hyperparameters={"vectors": {"file": "glove.txt", "sha256": "e" * 64, "dims": 50}})
    assert group_of(by_setting).vectors == group_of(renamed).vectors, "as older records say it"


def test_all_that_a_chain_of_weights_has_read_is_seen():
    """Of TANDA's parents the older one has read plain text: neither may be forgotten, also not
    where the child was skipped and holds no lineage."""
    chain = taught_by("weights", "squad_sentences")
    chain["lineage"] = [*taught_by("weights", "text_mix")["lineage"], *chain["lineage"]]
    assert group_of(made(**chain)).sees == ("training rows of squad_sentences", "training rows of text_mix")
    teacher = taught_by("teacher", "sst2", TRAIN)
    vectors = {"architecture": "skipgram", "task": "text_mix", "key": "3" * 16, "role": "vectors"}
    teacher["lineage"] = [vectors, *teacher["lineage"]]
    assert group_of(made(**teacher)).sees == ("training rows of text_mix",), "the teacher began with its vectors"
    own = KNOWN["hyperparameters"] | {"parents": {"vectors": PARENT | {"key": "3" * 16}}}
    assert group_of(made(hyperparameters=own, lineage=[vectors])).sees == (), "the group has its own vectors"
    skipped = made(hyperparameters=chain["hyperparameters"], sees=["labels of phrases"])
    assert group_of(skipped).sees == ("labels of phrases", "training rows of squad_sentences")
    assert group_of(made(**chain, sees=None)).sees is None, "an old record does not say what else it saw"


def test_vectors_that_start_at_random_are_not_given():
    """A record says of them how wide they are and that they were trained."""
    assert comparable(made(vectors={"name": "none", "dims": 100, "tuned": True}), made())
    assert comparable(made(vectors=GLOVE | {"tuned": True}), made(vectors=GLOVE | {"words": 5})), (
        "the model's own choice"
    )


def test_in_protocol_paper_passes_and_batches_are_the_architectures_own():
    """Else each would be alone in its group, and no recipe could be compared with another."""
    recipes = [made(protocol="paper", budget={"passes": n, "min_steps": 0, "batch_size": n}) for n in (5, 50)]
    assert comparable(*recipes)
    assert not comparable(recipes[0], made(protocol="paper", budget={"examples": 10}))
    assert not comparable(recipes[0], made(protocol="paper", budget={"name": "full"}))


def test_the_order_of_what_a_row_sees_is_none():
    assert comparable(made(sees=["b", "a"]), made(sees=["a", "b", "a"]))


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        ({"max_train": None, "max_epochs": None}, Amount("full")),
        ({"max_train": 2000, "max_epochs": None}, Amount("custom", 2000)),
        ({"max_train": None, "max_epochs": 3}, Amount("custom", None, 3)),
        ({"max_train": 2000, "max_epochs": 3}, Amount("custom", 2000, 3)),
        ({"max_train": 5000, "max_epochs": None, "budget": "small"}, Amount("small", 5000)),
        ({}, Amount("full")),
    ],
)
def test_older_records_have_the_budget_of_their_limits(limits, budget):
    old = record(score=0.5, sees=None).model_copy(update={"hyperparameters": {"limits": limits}})
    assert group_of(old).budget == budget
    assert (group_of(old).protocol_version, group_of(old).sees) == (1, None)
    assert group_of(record(score=0.5, hyperparameters={})).budget == Amount("full")


def test_where_no_digest_was_recorded_the_number_of_examples_tells_data_apart():
    assert not comparable(record(score=0.5), record(score=0.5, counts={"train": 10}))
    assert comparable(record(score=0.5), record("bilstm", score=0.6))


def test_perplexities_of_other_tokens_are_not_compared():
    """A perplexity of 5 per character beside one of 100 per word would look twenty times better."""

    def lm(**fields: Any) -> Record:
        return record(task="lm", score={"nats_per_token": 3.0}, main_metric="nats_per_token", **fields)

    words, characters = (lm(hyperparameters={"tokens": name}) for name in ("words", "characters"))
    assert not comparable(words, characters)
    pieces = [lm(tokens={"name": "bpe", "symbols": 100, "artefact": digit * 64}) for digit in "12"]
    assert not comparable(*pieces)
    unnamed = words.model_copy(update={"main_metric": ""})
    assert group_of(unnamed, "nats_per_token") == group_of(words)


def test_the_words_of_a_budget():
    assert group_of(made()).budget.words == "5,000 examples, 10 passes, at least 500 steps, batches of 32"
    assert Amount("full").words == "all examples" and Amount("full").training_words == ""
    assert Amount("once", 1000, 1).words == "1,000 examples, 1 pass"
    assert Amount("full", seconds=1.5e3, flops=2.5e12).words == "all examples, 2.5e+12 operations, 1,500 s"


# --- along one axis ---

BUDGETS = {
    125: made(
        budget={"name": "custom", "examples": 125},
        data={"train": "1" * 64},
        hyperparameters={"hidden": 100, "limits": {"max_train": 125, "max_epochs": None}, "vectors": None},
    ),
    5000: made(),
    None: made(
        budget={"name": "full", "examples": None},
        data={"train": "2" * 64},
        hyperparameters={"hidden": 100, "limits": {"max_train": None, "max_epochs": None}, "vectors": None},
    ),
}
ALONG: dict[str, list[Record]] = {
    "examples": list(BUDGETS.values()),
    "vectors": [made(), made(vectors=GLOVE, hyperparameters=KNOWN["hyperparameters"] | {"vectors": GLOVE})],
    "tokens": [
        made(
            main_metric="nats_per_token",
            score={"nats_per_token": 2.0},
            hyperparameters=KNOWN["hyperparameters"] | {"tokens": name},
        )
        for name in ("words", "characters")
    ],
    "inputs": [
        made(),
        made(inputs=[KEPT], hyperparameters=KNOWN["hyperparameters"] | {"inputs": SPELT}),
        made(hyperparameters=KNOWN["hyperparameters"] | {"inputs": SPELT}),
    ],
    "seeds": [made(seed=0), made(seed=1), made(seed=2)],
}
"""Records that differ along an axis alone."""


WITH_SEEDS = ("examples", "seeds")
"""The axis along which a point is the mean over seeds, so that these may differ too."""


def keys(lists: list[list[Record]]) -> set[frozenset[int]]:
    return {frozenset(map(id, found)) for found in lists}


@pytest.mark.parametrize("axis", list(AXES))
def test_along_an_axis_records_that_differ_in_it_alone_are_together(axis):
    assert keys(along(axis, ALONG[axis])) == {frozenset(map(id, ALONG[axis]))}
    if axis != "seeds":
        assert not any(comparable(a, b) for a, b in itertools.combinations(ALONG[axis], 2))


@pytest.mark.parametrize(("axis", "other"), [each for each in itertools.permutations(AXES, 2) if each != WITH_SEEDS])
def test_along_an_axis_nothing_else_may_differ(axis, other):
    """A curve over examples on which the vectors change shows neither."""
    assert not any(len(found) > 1 for found in along(axis, ALONG[other][:2]))


@pytest.mark.parametrize("axis", list(AXES))
def test_along_an_axis_architectures_are_lines_of_their_own(axis):
    """What is compared along an axis is one model with itself."""
    others = [each.model_copy(update={"architecture": "bilstm"}) for each in ALONG[axis]]
    assert keys(along(axis, [*ALONG[axis], *others])) == {frozenset(map(id, each)) for each in (ALONG[axis], others)}


def test_longer_training_is_no_part_of_the_axis_of_examples():
    longer = BUDGETS[125].model_copy(update={"budget": BUDGETS[125].budget | {"passes": 100}})
    assert along("examples", [longer, BUDGETS[None]]) == []


def test_what_did_not_end_ok_is_no_point():
    assert along("seeds", [made(), made(seed=1, status="failed")]) == []


def test_an_unknown_axis_is_named_with_those_there_are():
    with pytest.raises(UnknownName, match="did you mean seeds"):
        along("sizes", [])


POOL = list(PLAIN.values()) + list(itertools.chain(*ALONG.values()))


@settings(max_examples=40)
@given(st.sampled_from(list(AXES)), st.permutations(range(len(POOL))), st.integers(0, len(POOL)))
def test_along_parts_records_whatever_their_order(axis, order, count):
    """Each record in one list at the most, and the same lists for another order of the files."""
    lists = along(axis, [POOL[i] for i in order[:count]])
    together = [id(each) for found in lists for each in found]
    assert len(together) == len(set(together))
    assert keys(along(axis, [POOL[i] for i in sorted(order[:count])])) == keys(lists)
    free = AXES[axis]
    for found in lists:
        assert len(found) > 1
        groups = {group_of(each)._replace(**dict.fromkeys(free.group)) for each in found}
        assert (
            len({group._replace(budget=group.budget._replace(**dict.fromkeys(free.budget))) for group in groups}) == 1
        )
        assert len({each.architecture for each in found}) == 1
        assert axis in WITH_SEEDS or len({each.seed for each in found}) == 1
