"""SST, AG News, SNLI and WikiQA from hand-made files in the official formats, and from parquet
files with the hub's features."""

from __future__ import annotations

import json

import pytest
from datasets import ClassLabel, Value

from harness.errors import DataError, MissingFile

TREES = "(3 (2 Good) (2 film))\n(2 (2 A) (2 film))\n(0 (1 Bad) (2 film))\n"


def test_sst5_has_the_root_labels_and_the_trees(write, tmp_path, task):
    """Sentence models read the words, tree models the brackets of the same row."""
    write("sst/trees/dev.txt", TREES)
    rows = task("sst5").load("dev", "local", tmp_path).to_list()
    assert [row["label"] for row in rows] == ["positive", "neutral", "very negative"]
    assert rows[0] == {"id": "dev-1", "text": ["Good", "film"], "label": "positive", "tree": "(3 (2 Good) (2 film))"}


def test_sst2_drops_neutral_sentences_and_degrees(write, tmp_path, task):
    """The two-class corpus is made of the five-class one; ids stay those of the lines."""
    write("sst/trees/train.txt.gz", TREES)
    rows = task("sst2").load("train", "local", tmp_path).to_list()
    assert [(row["id"], row["label"]) for row in rows] == [("train-1", "positive"), ("train-3", "negative")]


SST_FEATURES = {"text": Value("string"), "label": Value("int64"), "label_text": Value("string")}


def test_sst_from_the_hub(task, from_parquet):
    """The hub's copy names its numbers in a column of their own; neutral sentences are dropped for
    two classes."""
    columns = {
        "text": ["bad film", "a film", "good"],
        "label": [0, 2, 3],
        "label_text": ["very negative", "neutral", "positive"],
    }
    rows = from_parquet(task("sst5"), "test", columns, SST_FEATURES)
    assert rows[0] == {"id": "test-1", "text": ["bad", "film"], "label": "very negative"}
    assert [row["label"] for row in from_parquet(task("sst2"), "test", columns, SST_FEATURES)] == [
        "negative",
        "positive",
    ]


def test_sst_from_the_hub_with_other_labels_is_refused(task, from_parquet):
    """Numbers that mean something else would train upside down."""
    columns = {"text": ["bad film"], "label": [4], "label_text": ["very negative"]}
    with pytest.raises(DataError, match=r"SetFit/sst5 at e51bdcd8, row 1: label 4 is called 'very negative'"):
        from_parquet(task("sst5"), "test", columns, SST_FEATURES)


def ag_rows(count: int, title: str = "T") -> str:
    return "".join(f'"{1 + i % 4}","{title} {i}","item {i} \\ #39;s"\n' for i in range(count))


def test_ag_news_joins_title_and_description(write, tmp_path, task):
    """A row of the joined file has no title and must not begin with a space."""
    write("ag_news/test.csv", '"3","Fears for T N","Unions say"\n"4","","Whole text"\n')
    rows = task("ag_news").load("test", "local", tmp_path).to_list()
    assert rows[0] == {"id": "test-1", "text": "Fears for T N Unions say", "label": "Business"}
    assert rows[1] == {"id": "test-2", "text": "Whole text", "label": "Sci/Tech"}


def test_ag_news_reads_both_partial_files_unless_the_whole_one_is_there(write, tmp_path, task):
    """The shared folder has the partial files; a user with the official train.csv must get all of
    it."""
    write("ag_news/train_partial.csv.gz", ag_rows(30))
    write("ag_news/train_partial_joined.csv.gz", ag_rows(10, title="J"))
    parts = {split: task("ag_news").load(split, "local", tmp_path).to_list() for split in ("train", "dev")}
    assert (len(parts["train"]), len(parts["dev"])) == (38, 2)
    assert not {row["text"] for row in parts["train"]} & {row["text"] for row in parts["dev"]}
    write("ag_news/train.csv", ag_rows(100, title="W"))
    assert [len(task("ag_news").load(split, "local", tmp_path)) for split in ("train", "dev")] == [95, 5]


def test_ag_news_with_an_unknown_class_is_refused(write, tmp_path, task):
    """Classes count from 1: a file that counts from 0 is another one."""
    write("ag_news/test.csv", '"1","a","b"\n"0","a","b"\n')
    with pytest.raises(DataError, match=r"test\.csv, line 2: class '0', expected 1 to 4 \(World"):
        task("ag_news").load("test", "local", tmp_path)


def test_ag_news_from_the_hub(task, from_parquet):
    """The hub has no dev split: it comes out of train by the same rule, so train and dev are
    disjoint there too."""
    features = {"text": Value("string"), "label": ClassLabel(names=["World", "Sports", "Business", "Sci/Tech"])}
    columns = {"text": [f"item {i}" for i in range(40)], "label": [i % 4 for i in range(40)]}
    train = from_parquet(task("ag_news"), "train", columns, features)
    dev = from_parquet(task("ag_news"), "dev", columns, features)
    assert (len(train), len(dev)) == (38, 2) and not {row["text"] for row in train} & {row["text"] for row in dev}
    test = from_parquet(task("ag_news"), "test", columns, features)
    assert test[3] == {"id": "test-4", "text": "item 3", "label": "Sci/Tech"}


def test_hub_classes_with_other_names_are_refused(task, from_parquet):
    """A copy of the data set with other class names is a different data set; without names nothing
    can be checked."""
    for feature in (ClassLabel(names=["world", "sports", "business", "tech"]), Value("int64")):
        with pytest.raises(DataError, match=r"fancyzhx/ag_news at eb185aad: column label has the classes .*Sci/Tech"):
            from_parquet(
                task("ag_news"), "test", {"text": ["a"], "label": [0]}, {"text": Value("string"), "label": feature}
            )


def test_a_hub_data_set_without_a_column_is_refused(task, from_parquet):
    """The error says which column is missing and which are there."""
    features = {"content": Value("string"), "label": ClassLabel(names=["World", "Sports", "Business", "Sci/Tech"])}
    with pytest.raises(DataError, match=r"no column text \(found: content, label\)"):
        from_parquet(task("ag_news"), "test", {"content": ["a"], "label": [0]}, features)


def snli_line(label: str) -> str:
    return json.dumps(
        {
            "gold_label": label,
            "sentence1": "A man runs.",
            "sentence2": "He moves.",
            "pairID": "1",
            "annotator_labels": [],
        }
    )


def test_snli_leaves_out_pairs_without_a_gold_label(write, tmp_path, task):
    """The official count of 9,842 dev pairs holds only without them."""
    write("snli/snli_1.0_dev.jsonl", "\n".join(map(snli_line, ["neutral", "-", "entailment"])))
    rows = task("snli").load("dev", "local", tmp_path).to_list()
    assert rows == [
        {"id": f"dev-{n}", "first": "A man runs.", "second": "He moves.", "label": la}
        for n, la in ((1, "neutral"), (3, "entailment"))
    ]


def test_snli_trains_on_the_partial_file_unless_the_whole_one_is_there(write, tmp_path, task):
    """The partial file is a TSV with another order of columns than the JSON lines."""
    header = "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1\tsentence2\tpairID\tsource\n"
    write("snli/train_partial.tsv.gz", f"{header}contradiction\t\t\tA cat sleeps.\tA cat runs.\t\tx/y\n")
    expected = {"id": "train-2", "first": "A cat sleeps.", "second": "A cat runs.", "label": "contradiction"}
    assert task("snli").load("train", "local", tmp_path).to_list() == [expected]
    write("snli/snli_1.0_train.jsonl", snli_line("neutral"))
    assert [row["label"] for row in task("snli").load("train", "local", tmp_path)] == ["neutral"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (snli_line("maybe"), "gold label 'maybe'"),
        ('{"gold_label": "neutral"}', "KeyError"),
        ("neutral\ta\tb", "JSONDecodeError"),
    ],
)
def test_a_broken_snli_line_is_refused(line, complaint, write, tmp_path, task):
    """Other releases (MultiNLI's text files) must not be read as SNLI."""
    write("snli/snli_1.0_test.jsonl", f"{snli_line('neutral')}\n{line}\n")
    with pytest.raises(DataError, match=rf"snli_1\.0_test\.jsonl, line 2: .*{complaint}"):
        task("snli").load("test", "local", tmp_path)


def test_snli_from_the_hub(task, from_parquet):
    """There a missing gold label is the class -1."""
    features = {
        "premise": Value("string"),
        "hypothesis": Value("string"),
        "label": ClassLabel(names=["entailment", "neutral", "contradiction"]),
    }
    columns = {"premise": ["a", "b", "c"], "hypothesis": ["x", "y", "z"], "label": [2, -1, 0]}
    rows = from_parquet(task("snli"), "train", columns, features)
    assert [(row["id"], row["first"], row["second"], row["label"]) for row in rows] == [
        ("train-1", "a", "x", "contradiction"),
        ("train-3", "c", "z", "entailment"),
    ]


def mnli_lines(count: int, label: str = "neutral") -> str:
    """Three pairs for each premise, as MultiNLI has them."""
    pair = {"gold_label": label, "sentence2": "He moves.", "genre": "fiction", "promptID": 1}
    return "".join(json.dumps(pair | {"sentence1": f"Man {n // 3} runs."}) + "\n" for n in range(count))


@pytest.mark.parametrize(("id", "name"), [("mnli_matched", "matched"), ("mnli_mismatched", "mismatched")])
def test_multinli_is_tested_on_the_official_dev_set_of_its_genres(id, name, write, tmp_path, task):
    """The labels of the official test are not published; our dev set comes out of train, premise by
    premise."""
    write(f"multinli/multinli_1.0_dev_{name}.jsonl.gz", mnli_lines(2, "-") + mnli_lines(1, "entailment"))
    write("multinli/multinli_1.0_train.jsonl", mnli_lines(150))
    assert task(id).load("test", "local", tmp_path).to_list() == [
        {"id": "test-3", "first": "Man 0 runs.", "second": "He moves.", "label": "entailment"}
    ]
    train, dev = (task(id).load(split, "local", tmp_path) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (147, 3)
    assert {*train["first"]}.isdisjoint(dev["first"])


def test_multinli_trains_on_the_sample_unless_the_whole_file_is_there(write, tmp_path, task):
    pairs = "".join(f"a dog {n} .\tan animal .\tentailment\ttravel\n" for n in range(80))
    write("multinli/mnli_train_subset.tsv", "sentence1\tsentence2\tlabel\tgenre\n" + pairs)
    rows = task("mnli_matched").load("dev", "local", tmp_path)
    assert {row["label"] for row in rows} == {"entailment"} and len(rows) == 2
    write("multinli/multinli_1.0_train.jsonl", mnli_lines(150))
    assert {*task("mnli_matched").load("dev", "local", tmp_path)["label"]} == {"neutral"}


def test_multinli_is_tested_on_the_sample_where_the_official_dev_set_is_not_there(write, tmp_path, task):
    """A score on half of the official dev set is none on the official test, nor is one on all of
    it."""
    write("multinli/mnli_val_subset.tsv", "sentence1\tsentence2\tlabel\tgenre\na dog .\ta pet .\tneutral\tslate\n")
    matched = task("mnli_matched")
    assert matched.load("test", "local", tmp_path).to_list() == [
        {"id": "test-2", "first": "a dog .", "second": "a pet .", "label": "neutral"}
    ]
    assert matched.official_test_examples("local", matched.entry.sizes["test"]) == 0
    with pytest.raises(MissingFile, match=r"multinli_1.0_dev_mismatched.jsonl: no such file"):
        task("mnli_mismatched").load("test", "local", tmp_path)
    write("multinli/multinli_1.0_dev_matched.jsonl.gz", mnli_lines(1, "entailment"))
    assert matched.load("test", "local", tmp_path)["label"] == ["entailment"]


def test_multinli_from_the_hub(task, from_parquet):
    """There a missing gold label is the class -1."""
    features = {
        "premise": Value("string"),
        "hypothesis": Value("string"),
        "label": ClassLabel(names=["entailment", "neutral", "contradiction"]),
    }
    columns = {"premise": ["a", "b"], "hypothesis": ["x", "y"], "label": [-1, 2]}
    rows = from_parquet(task("mnli_mismatched"), "test", columns, features)
    assert rows == [{"id": "test-2", "first": "b", "second": "y", "label": "contradiction"}]
    assert dict(task("mnli_mismatched").hub.splits)["test"] == "validation_mismatched"


WIKIQA = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n" + "".join(
    f'{q}\twho {q} ?\tD1\tT\tD1-{s}\tHe "said {s} .\t{label}\n'
    for q, s, label in [("Q1", 0, 0), ("Q1", 1, 1), ("Q2", 0, 0)]
)


def test_wikiqa_trains_on_answered_questions_only_and_keeps_all_test_rows(write, tmp_path, task):
    """A question without a right answer teaches no ranking; the metrics decide what to leave out of
    dev and test."""
    for split in ("train", "test"):
        write(f"wikiqa/WikiQA-{split}.tsv", WIKIQA)
    assert [row["id"] for row in task("wikiqa").load("train", "local", tmp_path)] == ["Q1-D1-0", "Q1-D1-1"]
    rows = task("wikiqa").load("test", "local", tmp_path).to_list()
    assert rows[1] == {"id": "Q1-D1-1", "first": "who Q1 ?", "second": 'He "said 1 .', "label": "1", "group": "Q1"}
    assert len(rows) == 3


def test_a_wikiqa_label_that_is_no_number_is_refused(write, tmp_path, task):
    """The message names file and line."""
    write("wikiqa/WikiQA-dev.tsv", WIKIQA.replace("1 .\t1", "1 .\tyes"))
    with pytest.raises(DataError, match=r"WikiQA-dev\.tsv, line 3: label 'yes', expected 0 or 1"):
        task("wikiqa").load("dev", "local", tmp_path)


def test_wikiqa_from_the_hub(task, from_parquet):
    """The hub's copy has no sentence ids, so rows are numbered within their question and stay
    unique."""
    names = ("question_id", "question", "document_title", "answer")
    features = {name: Value("string") for name in names} | {"label": ClassLabel(names=["0", "1"])}
    columns = {
        "question_id": ["Q1", "Q1", "Q2"],
        "question": ["who", "who", "how"],
        "document_title": ["T"] * 3,
        "answer": ["a", "b", "c"],
    }
    rows = from_parquet(task("wikiqa"), "test", columns | {"label": [0, 1, 0]}, features)
    assert rows[1] == {"id": "Q1-1", "first": "who", "second": "b", "label": "1", "group": "Q1"} and len(rows) == 3
    assert len(from_parquet(task("wikiqa"), "train", columns | {"label": [0, 1, 0]}, features)) == 2


def test_multi30k_pairs_the_lines_of_two_files(write, tmp_path, task):
    write("multi30k/val.en", "A man sleeps.\nTwo dogs.\n")
    write("multi30k/val.de.gz", "Ein Mann schläft.\nZwei Hunde.\n")
    assert task("multi30k").load("dev", "local", tmp_path).to_list() == [
        {"id": "dev-1", "source": "A man sleeps.", "target": "Ein Mann schläft."},
        {"id": "dev-2", "source": "Two dogs.", "target": "Zwei Hunde."},
    ]


@pytest.mark.parametrize(
    ("english", "message"),
    [("A man sleeps.\n", r"val\.en: 1 lines, expected the 2 of val\.de"), ("\nA man.\n", r"val\.en, line 1: empty")],
)
def test_multi30k_names_the_file_where_lines_are_missing(write, tmp_path, task, english, message):
    """From there on each caption would have the translation of another."""
    write("multi30k/val.en", english)
    write("multi30k/val.de", "Ein Mann schläft.\nZwei Hunde.\n")
    with pytest.raises(DataError, match=message):
        task("multi30k").load("dev", "local", tmp_path)
