"""School questions of several choices, and short texts that state their answers: the mini tier of
the AI2 science questions.

Each question asks for one fact on animals, and its wrong choices are what is true of others. What
dev and test ask of an animal no training question asks. Training asks for the animal by the fact,
so that who remembers its answers knows some of the others; of a few animals it never asks, and only
who reads the texts (:func:`texts`) knows these. There each fact stands several times, in other
words, and some sentences tell of two animals, so that a wrong choice is near as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home

ANIMALS = {
    "frogs": ("insects", "ponds", "skin"),
    "cows": ("grass", "farms", "hair"),
    "owls": ("mice", "forests", "feathers"),
    "bears": ("berries", "mountains", "fur"),
    "seals": ("fish", "oceans", "fur"),
    "camels": ("thorns", "deserts", "hair"),
    "pandas": ("leaves", "mountains", "fur"),
    "snakes": ("mice", "deserts", "scales"),
    "whales": ("fish", "oceans", "skin"),
    "squirrels": ("nuts", "forests", "fur"),
    "herons": ("fish", "ponds", "feathers"),
    "turtles": ("weeds", "oceans", "shells"),
    "goats": ("grass", "mountains", "hair"),
    "lizards": ("insects", "deserts", "scales"),
    "ducks": ("weeds", "ponds", "feathers"),
    "snails": ("leaves", "gardens", "shells"),
    "rabbits": ("grass", "gardens", "fur"),
    "parrots": ("nuts", "jungles", "feathers"),
    "monkeys": ("berries", "jungles", "hair"),
    "crickets": ("leaves", "farms", "shells"),
    "foxes": ("mice", "forests", "fur"),
    "hens": ("worms", "farms", "feathers"),
}
"""Food, home and covering of each animal."""
HELD_OUT_ANIMALS = {
    "moles": ("worms", "gardens", "fur"),
    "trout": ("insects", "rivers", "scales"),
    "otters": ("fish", "rivers", "fur"),
    "crows": ("worms", "farms", "feathers"),
}
"""Animals that no training question asks for."""
EVERY = ANIMALS | HELD_OUT_ANIMALS
QUESTIONS = (
    ("What do {} eat?", "Which food do grown {} like?"),
    ("Where do {} live?", "In which of these places are {} at home?"),
    ("What covers the bodies of {}?", "What do {} have on their backs?"),
)
BACKWARDS = (
    ("Which of these animals eat {}?", "Which animals have {} as their food?"),
    ("Which of these animals live in {}?", "Which animals are at home in {}?"),
    ("Which of these animals have {} on their backs?", "Which animals have bodies with {}?"),
)
"""Questions for an animal, which training alone has."""
STATEMENTS = (
    ("{} eat {}.", "{} like to eat {}.", "The food of {} is mostly {}."),
    ("{} live in {}.", "{} live mostly in {}.", "Many {} are at home in {}."),
    ("{} have {} on their bodies.", "The bodies of {} are covered with {}.", "All {} have {}."),
)
COMPARISONS = (
    "{} eat {}, but {} eat {}.",
    "{} live in {}, while {} live in {}.",
    "{} have {}, and {} have {}.",
)
CHOICES = 4
ROUNDS = 3
"""Texts that are on each animal first of all."""


def asked_in(animal: str, relation: int) -> Split:
    """The split whose questions ask for a fact."""
    told = f"{animal} {relation} {EVERY[animal][relation]}"
    if animal in ANIMALS:
        return home(told)
    return "dev" if home(told, train=0) == "dev" else "test"


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``first`` (question), ``second`` (choice), ``label`` ("1" right, "0" wrong) and
    ``group``."""
    random = Random(f"school {split}")
    asked = [
        (question.format(animal), EVERY[animal][relation], sorted({facts[relation] for facts in EVERY.values()}))
        for relation, questions in enumerate(QUESTIONS)
        for animal in EVERY
        for question in questions
        if asked_in(animal, relation) == split
    ]
    if split == "train":
        for relation, questions in enumerate(BACKWARDS):
            for number, (animal, facts) in enumerate(ANIMALS.items()):
                others = [each for each in ANIMALS if ANIMALS[each][relation] != facts[relation]]
                asked.append((questions[number % 2].format(facts[relation]), animal, others))
    random.shuffle(asked)
    told: set[tuple[str, str]] = set()
    for group, (question, right, others) in enumerate(asked):
        left = [each for each in others if each != right and (question, each) not in told]
        choices = [right, *random.sample(left, CHOICES - 1)]
        told.update((question, choice) for choice in choices)
        random.shuffle(choices)
        for number, choice in enumerate(choices):
            row = {"id": f"{split}-{group}-{number}", "first": question, "second": choice}
            yield row | {"label": str(int(choice == right)), "group": f"{split}-{group}"}


def texts() -> Iterator[str]:
    """Short texts on two animals each, in which every fact is stated."""
    random = Random("school texts")
    for number in range(ROUNDS):
        for animal, facts in EVERY.items():
            other = random.choice([each for each in EVERY if each != animal])
            told = [random.choice(STATEMENTS[relation]).format(animal, fact) for relation, fact in enumerate(facts)]
            relation = (number + len(animal)) % len(facts)
            pair = (animal, facts[relation], other, EVERY[other][relation])
            told.append(COMPARISONS[relation].format(*pair))
            random.shuffle(told)
            yield " ".join(sentence[0].upper() + sentence[1:] for sentence in told)
