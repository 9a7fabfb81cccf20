"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

from harness import registry


def test_pairs_of_words_decide_where_single_words_cannot():
    model = registry.load(registry.entry("architectures", "my_model"))(penalty=0.01)
    rows = [{"text": "not good", "label": "0"}, {"text": "good not", "label": "1"}]
    model.fit(rows, rows)
    assert model.predict(rows) == ["0", "1"]
