"""A model of every kind is kept, loaded, and says what its record says that it said."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import registry
from harness.errors import ModelError
from harness.records import Store
from harness.saved_models.folder import DESCRIPTION, STATE, WEIGHTS
from tests.saved_models.cells import kept_cell, loaded, rows_of_test

CELLS = (
    ("bilstm", "sst2"),  # seq
    ("kim_cnn_rand", "snli"),  # text, twins
    ("capsule_a", "sst2"),  # its own scores
    ("tree_lstm", "sst5"),
    ("decomposable", "snli"),
    ("dssm", "wikiqa"),  # pair, a loss of several candidates
    ("bcnn", "wikiqa"),
    ("bilstm_crf", "conll2003_ner"),
    ("lstm_cnns_crf", "conll2003_ner"),  # transitions scored anew at each word
    ("span_search", "squad1"),
    ("memn2n", "babi"),
    ("bilstm_ctc", "fsdd"),
    ("attn_seq2seq", "fsdd"),  # generate
    ("rnn_lm", "wikitext2"),
    ("bert", "squad2"),
    ("adversarial", "sst2"),  # regime
    ("naive_bayes", "sst2"),
    ("nbsvm", "ag_news"),
    ("delta_tfidf", "sst2"),
    ("tfidf_char_logreg", "ag_news"),
    ("tfidf_pair_logreg", "wikiqa"),
    ("hmm", "conll2003_ner"),
    ("floor_majority", "fsdd"),
)


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, atol=1e-5)) if isinstance(a, float) else a == b


def require_no_pickle(folder: Path) -> None:
    """Every file is JSON or a safetensors file, whose head is JSON too."""
    assert {path.name for path in folder.iterdir()} == {DESCRIPTION, STATE, WEIGHTS}
    for name in (DESCRIPTION, STATE):
        json.loads((folder / name).read_bytes())
    data = (folder / WEIGHTS).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + size])
    ends = [each["data_offsets"][1] for name, each in head.items() if name != "__metadata__"]
    assert max(ends, default=0) == len(data) - 8 - size  # the numbers, and nothing behind them


@pytest.mark.parametrize(("architecture", "task"), CELLS)
def test_the_predictions_of_a_kept_model_are_those_of_its_record(architecture: str, task: str, tmp_path: Path) -> None:
    """Whoever shares a model would share another one than the table shows."""
    record = kept_cell(architecture, task, tmp_path)
    assert record.status == "ok", record.error
    folder = tmp_path / "models" / record.key
    require_no_pickle(folder)
    model = loaded(record, tmp_path)
    ids, predictions = Store(tmp_path).load_predictions(record)
    rows = [{"id": row["id"]} | {name: row[name] for name in model.description.inputs} for row in rows_of_test(task)]
    assert ids == [row["id"] for row in rows]
    answers = model.answers(rows)
    assert all(close(answer["prediction"], said) for answer, said in zip(answers, predictions, strict=True))
    for answer in answers:
        shares = np.atleast_1d(answer.get("probability", 0.0))
        assert ((shares >= 0) & (shares <= 1 + 1e-6)).all()
        if "probabilities" in answer:
            assert sum(answer["probabilities"].values()) == pytest.approx(1)
            assert max(answer["probabilities"], key=answer["probabilities"].get) == answer["prediction"]
            assert answer["probability"] == max(answer["probabilities"].values())


def test_a_transductive_system_says_that_it_cannot_answer_new_texts(tmp_path: Path) -> None:
    """Its user would get an error about nodes of a graph."""
    record = kept_cell("sgc", "sst2", tmp_path, most=100)
    with pytest.raises(ModelError, match="sgc is transductive: .* cannot answer new ones"):
        loaded(record, tmp_path)


def test_every_kind_is_among_the_cells() -> None:
    """A new kind would go untested."""
    entries = registry.entries("architectures")
    assert {entries[id].kind for id, _ in CELLS} == {entry.kind for entry in entries.values()}
