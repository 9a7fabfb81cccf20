"""Plans that follow a first one: a row that is planned twice or not at all costs hours or a
table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.made_records import record
from tools import plans

P1 = """# P1
-a '*' --home -t conll2003_ner,conll2003_pos --protocol equal --budget full --seeds 0 --cpu-limit 780
-a '*' --home -t multi30k --protocol equal --budget small --seeds 0
-a 'floor_*' -t conll2003_pos --protocol equal --budget full --seeds 0
"""
OPTIONS = "--protocol equal --budget full --seeds 1,2"
HOMES = {"hmm": "conll2003_pos", "birnn_tagger": "conll2003_pos", "window_mlp": "conll2003_pos"}
HOMES |= {"crf_features": "conll2003_pos", "transformer_tagger": "conll2003_pos", "collobert": "conll2003_ner"}


def ended(architecture: str, score: float, seconds: float, **more: Any) -> Any:
    place = {"task": HOMES.get(architecture, "conll2003_pos")} | more
    times = {"train": 99999.0, "train_processor": seconds, "total": 99999.0}
    scores = {"dev": {"accuracy": score}, "test": {"accuracy": 1 - score}}
    return record(architecture, seconds=times, main_metric="accuracy", scores=scores, **place)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Lines of the plans after some of P1 has run."""
    records = [
        ended("hmm", 0.5, 1.0),
        ended("birnn_tagger", 0.9, 400.0),
        ended("window_mlp", 0.8, 10.0),
        ended("window_mlp", 0.75, 10.0, hyperparameters={"window": 3}),  # another row of the architecture
        ended("crf_features", 0.7, 10.0),
        ended("transformer_tagger", 0.6, 301.0),
        ended("floor_majority", 0.2, 0.1),
        ended("collobert", 0.5, 10.0, task="conll2003_pos"),  # not at home
        ended("collobert", 0.5, 10.0, protocol="paper"),
        ended("bilstm_crf", 0.5, 10.0, task="conll2003_ner", status="timeout"),
        ended("hmm", 0.5, 1.0, seed=1),
    ]
    store = plans.read(tmp_path).store
    for each in records:
        store.write(each)
    monkeypatch.setattr(plans, "absent", lambda tasks, folder: {task.id: "" for task in tasks if task.id != "ohsumed"})
    monkeypatch.setattr(plans, "homes", lambda *_: (HOMES, []))
    (tmp_path / "p1.txt").write_text(P1)
    plans.main([str(tmp_path / "p1.txt"), "--results", str(tmp_path), "--data-dir", "data", "--out", str(tmp_path)])
    return {name: (tmp_path / f"{name}.txt").read_text().splitlines() for name in ("P2", "P3", "P4")}


def test_fast_rows_and_the_best_three_get_two_more_seeds(written):
    """Whatever they cost: the best on dev are what the tables are about."""
    title, *lines = written["P2"]
    assert title.startswith("# P2: ")
    assert lines == [
        f"-a birnn_tagger,crf_features,window_mlp -t conll2003_pos {OPTIONS}",
        f"-a floor_majority,hmm -t conll2003_pos {OPTIONS} --cpu-limit 780",
    ]


def test_recipes_go_by_home_and_the_cheapest_task_comes_first(written):
    """Of CoNLL's entities there is one architecture, of the parts of speech there are five. Nobody
    is at home on Multi30k here, and a line without a cell would be an error."""
    assert written["P3"][1:] == [
        "-a '*' --home -t conll2003_ner --protocol paper --budget full --seeds 0 --cpu-limit 780",
        "-a '*' --home -t conll2003_pos --protocol paper --budget full --seeds 0 --cpu-limit 780",
    ]


def test_published_values_are_planned_where_method_and_data_are_at_hand(written):
    [line] = written["P4"][1:]
    chosen, _, options = line.removeprefix("-a ").partition(" ")
    assert {"text_gcn", "sgc"} <= set(chosen.split(","))
    assert options == "-t ohsumed --protocol equal --budget full --seeds 0 --cpu-limit 780"


def test_each_line_is_one_that_archbench_run_takes(written):
    for part in plans.parts("\n".join(line for lines in written.values() for line in lines)):
        assert part.task in {"conll2003_ner", "conll2003_pos", "ohsumed"}
