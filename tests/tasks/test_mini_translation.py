"""The translation corpus: agreement and word order that word by word gets wrong."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from sacrebleu.metrics import BLEU

from tasks.mini import translation
from tasks.mini.translation import HELD_OUT, NAMES, NOUNS, phrase, sentence

NOUN = {noun.english: noun for noun in NOUNS}


@pytest.mark.parametrize(
    ("parts", "german"),
    [
        (("the", None, "dog", "subject"), "der Hund"),
        (("the", "old", "dog", "object"), "den alten Hund"),
        (("a", "old", "dog", "subject"), "ein alter Hund"),
        (("a", "old", "dog", "object"), "einen alten Hund"),
        (("a", "big", "cat", "object"), "eine große Katze"),
        (("the", "red", "house", "object"), "das rote Haus"),
        (("a", "red", "house", "subject"), "ein rotes Haus"),
    ],
)
def test_articles_and_adjectives_agree_with_gender_and_case(parts, german) -> None:
    """Forms as any German grammar lists them."""
    article, adjective, noun, case = parts
    assert phrase(article, adjective, NOUN[noun], case).german == german


def test_the_verb_comes_second_behind_an_adverb_and_last_behind_weil() -> None:
    subject, done_to = phrase("the", None, NOUN["man"], "subject"), phrase("a", None, NOUN["ball"], "object")
    reason = (phrase("the", None, NOUN["child"], "subject"), "looks for", phrase("the", None, NOUN["dog"], "object"))
    assert sentence("plain", "here", subject, "sees", done_to, reason) == (
        "The man sees a ball.", "Der Mann sieht einen Ball."
    )  # fmt: skip
    assert sentence("adverb", "here", subject, "sees", done_to, reason) == (
        "Here the man sees a ball.", "Hier sieht der Mann einen Ball."
    )  # fmt: skip
    assert sentence("reason", "here", subject, "sees", done_to, reason) == (
        "The man sees a ball because the child looks for the dog.",
        "Der Mann sieht einen Ball, weil das Kind den Hund sucht.",
    )


def test_a_dictionary_of_words_is_far_from_right() -> None:
    """Each word by the one that stands most often in the same place beside it, in the same order:
    what a system without order and agreement reaches."""
    together: dict[str, Counter[str]] = defaultdict(Counter)
    shares: Counter[str] = Counter()
    train, test = list(translation.rows("train")), list(translation.rows("test"))
    for row in train:
        target = row["target"].lower().rstrip(".").replace(",", "").split()
        shares.update(set(target))
        for word in set(row["source"].lower().rstrip(".").split()):
            together[word].update(set(target))
    best = {word: max(found, key=lambda t: found[t] ** 2 / shares[t]) for word, found in together.items()}
    written = [" ".join(best.get(w, w) for w in row["source"].lower().rstrip(".").split()) + " ." for row in test]
    bleu = BLEU(lowercase=True).corpus_score(written, [[row["target"] for row in test]]).score
    assert bleu < 30


def test_names_are_copied_and_some_are_new() -> None:
    """Only a system that copies gets the name of a stranger right."""
    new = 0
    for split in ("train", "dev", "test"):
        for row in translation.rows(split):
            assert all((name in row["source"]) == (name in row["target"]) for name in (*NAMES, *HELD_OUT))
            strange = any(name in row["source"] for name in HELD_OUT)
            assert not (strange and split == "train")
            new += strange
    assert new > 10
