"""The three CoNLL-2003 tasks from a hand-made column file and from a parquet file with the hub's
features, and the CoNLL-2000 task from its column file."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, List, Value

from harness.errors import DataError

COLUMNS = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
Mary NNP B-NP B-PER
"""
EXPECTED = {
    "conll2003_ner": [["S-ORG", "O", "S-MISC", "O"], ["B-PER", "E-PER", "S-PER"]],
    "conll2003_chunk": [["S-NP", "S-VP", "B-NP", "E-NP"], ["B-NP", "E-NP", "S-NP"]],
    "conll2003_pos": [["NNP", "VBZ", "JJ", "NN"], ["NNP", "NNP", "NNP"]],
}


@pytest.mark.parametrize("id", EXPECTED)
def test_each_task_takes_its_own_column(id, write, tmp_path, task):
    """Entities and chunks come as BIOES, parts of speech as they stand; testa is dev."""
    write("conll2003/eng.testa.gz", COLUMNS)
    rows = task(id).load("dev", "local", tmp_path).to_list()
    assert [row["tags"] for row in rows] == EXPECTED[id]
    assert [row["text"] for row in rows] == [["EU", "rejects", "German", "call"], ["Peter", "Blackburn", "Mary"]]
    assert [row["id"] for row in rows] == ["dev-1", "dev-2"]


@pytest.mark.parametrize(
    ("id", "old", "new"),
    [("conll2003_ner", "I-MISC", "S-MISC"), ("conll2003_pos", "VBZ", "VERB"), ("conll2003_chunk", "I-VP", "I-XP")],
)
def test_an_unknown_tag_is_refused(id, old, new, write, tmp_path, task):
    """A file already turned into BIOES, or of another tag set, would be misread silently."""
    path = write("conll2003/eng.testb", COLUMNS.replace(old, new))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if new in text)
    with pytest.raises(DataError, match=rf"eng\.testb, line {line}: '{new}' is no {id.partition('_')[2]} tag"):
        task(id).load("test", "local", tmp_path)


@pytest.mark.parametrize("id", EXPECTED)
def test_the_hub_copy_gives_the_same_rows(id, task, from_parquet):
    """The hub has IOB2 and class numbers; the rows must equal those of the official IOB1 file."""
    iob2 = {
        "conll2003_ner": [["B-ORG", "O", "B-MISC", "O"], ["B-PER", "I-PER", "B-PER"]],
        "conll2003_chunk": [["B-NP", "B-VP", "B-NP", "I-NP"], ["B-NP", "I-NP", "B-NP"]],
        "conll2003_pos": EXPECTED["conll2003_pos"],
    }[id]
    names = sorted(type(task(id)).tags)
    column = f"{id.partition('_')[2]}_tags"
    features = {"id": Value("string"), "tokens": List(Value("string")), column: List(ClassLabel(names=names))}
    columns = {"id": ["0", "1"], "tokens": [["EU", "rejects", "German", "call"], ["Peter", "Blackburn", "Mary"]]}
    rows = from_parquet(
        task(id), "train", columns | {column: [[names.index(tag) for tag in tags] for tags in iob2]}, features
    )
    assert [row["tags"] for row in rows] == EXPECTED[id] and rows[0]["text"] == columns["tokens"][0]


def test_a_hub_copy_with_another_tag_set_is_refused(task, from_parquet):
    """OntoNotes has the same columns and other entities."""
    features = {"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O", "B-DATE", "I-DATE"]))}
    with pytest.raises(DataError, match=r"column ner_tags has the classes \['O', 'B-DATE', 'I-DATE'\], expected"):
        from_parquet(task("conll2003_ner"), "train", {"tokens": [["a"]], "ner_tags": [[0]]}, features)


CONLL2000 = "".join(
    f"Shares{n} NNS B-NP\nof IN B-PP\nOld NNP B-NP\nCo. NNP I-NP\nfell VBD B-VP\n. . O\n\n" for n in range(20)
)


def test_conll2000_has_three_columns_and_its_dev_set_out_of_train(write, tmp_path, task):
    """There is no official dev set; tags become BIOES as on CoNLL-2003."""
    write("conll2000/train.txt.gz", CONLL2000)
    write("conll2000/test.txt", CONLL2000)
    parts = {split: task("conll2000_chunk").load(split, "local", tmp_path).to_list() for split in ("train", "dev")}
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 18, "dev": 2}
    assert task("conll2000_chunk").load("test", "local", tmp_path)[0] == {
        "id": "test-1",
        "text": ["Shares0", "of", "Old", "Co.", "fell", "."],
        "tags": ["S-NP", "S-PP", "B-NP", "E-NP", "S-VP", "O"],
    }


def test_an_unknown_chunk_of_conll2000_is_refused(write, tmp_path, task):
    write("conll2000/test.txt", CONLL2000.replace("I-NP", "I-ORG", 1))
    with pytest.raises(DataError, match=r"test\.txt, line 4: 'I-ORG' is no chunk tag \(known: O B-ADJP"):
        task("conll2000_chunk").load("test", "local", tmp_path)
