"""Short passages with facts about several persons, and a question about one: the mini tier of
SQuAD.

The places of dev and test and some of their persons never occur in train: an answer has to be
copied. The same relation is told of several persons, often in one sentence, so the sentence with
the most words of the question does not give the answer. A fifth of the questions chain two facts
("Where does the baker live?": who is the baker, where does she live).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home

PERSONS = ("Anna", "Ben", "Carla", "David", "Emma", "Frank", "Gina", "Henry")
HELD_OUT_PERSONS = ("Mona", "Nils", "Olga", "Piet")
PLACES = tuple(
    a + b
    for a, b in product(
        ("Vel", "Tar", "Kos", "Mir", "Dun", "Hol", "Bre", "Sal"), ("mar", "sund", "by", "ford", "ten", "wick")
    )
)
JOBS = ("baker", "painter", "nurse", "farmer", "teacher", "pilot")
THINGS = ("coins", "books", "goats")
SIZES = {"train": 600, "dev": 160, "test": 160}


@dataclass(frozen=True)
class Fact:
    """One property of ``person``: home, job, or a number of things, as ``relation`` says."""

    person: str
    relation: str
    value: str

    def predicate(self, mark: str = "") -> str:
        """The fact without its person; the value in brackets if ``mark`` is "value"."""
        value = f"[{self.value}]" if mark == "value" else self.value
        return {"home": f"lives in {value}", "job": f"works as a {value}"}.get(
            self.relation, f"has {value} {self.relation}"
        )

    def clause(self, mark: str = "") -> str:
        """The fact in the usual order."""
        return f"{self.name(mark)} {self.predicate(mark)}"

    def name(self, mark: str) -> str:
        """The person, in brackets if ``mark`` is "person"."""
        return f"[{self.person}]" if mark == "person" else self.person

    def turned(self, mark: str) -> str:
        """The fact with its value first."""
        value, person = f"[{self.value}]" if mark == "value" else self.value, self.name(mark)
        turned = {"home": f"{value} is the home of {person}", "job": f"The {value} is called {person}"}
        return turned.get(self.relation, f"There are {value} {self.relation} in the house of {person}")


def _facts(random: Random, split: Split) -> list[Fact]:
    persons = random.sample(PERSONS, 3)
    if split != "train" and random.random() < 0.4:
        persons[random.randrange(3)] = random.choice(HELD_OUT_PERSONS)
    places = random.sample([place for place in PLACES if home(place) == split], 3)
    numbers = random.sample([n for n in range(2, 100) if split != "train" or n % 3], 3)
    things = random.sample(THINGS, 2)
    facts = []
    for person, place, job, number in zip(persons, places, random.sample(JOBS, 3), numbers, strict=True):
        facts += [
            Fact(person, "home", place),
            Fact(person, "job", job),
            Fact(person, random.choice(things), str(number)),
        ]
    return facts


def _rivals(facts: list[Fact], asked: Fact) -> list[Fact]:
    """Facts of the same relation about other persons: what makes a question hard."""
    return [fact for fact in facts if fact.relation == asked.relation and fact.person != asked.person]


def _question(random: Random, facts: list[Fact]) -> tuple[str, Fact, str]:
    """A question with the fact that answers it, and which side of the fact is the answer: its value
    or its person."""
    asked = random.choice([fact for fact in facts if _rivals(facts, fact)])
    if asked.relation == "job":
        return f"Who works as a {asked.value}?", asked, "person"
    if asked.relation == "home":
        (job,) = (fact.value for fact in facts if fact.person == asked.person and fact.relation == "job")
        who = f"the {job}" if random.random() < 0.6 else asked.person
        return f"Where does {who} live?", asked, "value"
    return f"How many {asked.relation} does {asked.person} have?", asked, "value"


def _passage(random: Random, facts: list[Fact], asked: Fact, side: str) -> str:
    """The facts told in a random order, the answer in brackets."""
    rest = random.sample(facts, len(facts))
    sentences = []
    while rest:
        fact = rest.pop()
        mark = side if fact == asked else ""
        partner = next((f for f in rest if f.relation == fact.relation and f.person != fact.person), None)
        if partner is None or random.random() < 0.3:
            sentences.append(fact.turned(mark) if random.random() < 0.5 else fact.clause(mark))
            continue
        rest.remove(partner)
        other_mark = side if partner == asked else ""
        if random.random() < 0.5:
            sentences.append(f"{fact.clause(mark)}, while {partner.clause(other_mark)}")
        else:
            sentences.append(f"Unlike {fact.name(mark)}, who {fact.predicate(mark)}, {partner.clause(other_mark)}")
    random.shuffle(sentences)
    return " ".join(f"{sentence}." for sentence in sentences)


def _example(random: Random, split: Split, unanswerable: bool) -> tuple[str, str, dict[str, list]]:
    facts = _facts(random, split)
    question, asked, side = _question(random, facts)
    chained = question.startswith("Where does the ")
    own = [fact for fact in facts if fact.person == asked.person and fact != asked]
    # Without an answer the passage still speaks of the person and tells the relation of another
    # one.
    if unanswerable and random.random() < 1 / 3:
        needed = [random.choice(own)]
        facts.remove(asked)
    else:
        needed = [asked]
    needed += [fact for fact in own if chained and fact.relation == "job" and fact not in needed]
    needed.append(random.choice(_rivals(facts, asked)))
    told = needed + random.sample([fact for fact in facts if fact not in needed], 6 - len(needed))
    marked = _passage(random, told, asked, side)
    passage = marked.replace("[", "").replace("]", "")
    start = marked.find("[")
    answer = marked[start + 1 : marked.index("]")] if start >= 0 else None
    return passage, question, {"text": [answer] if answer else [], "start": [start] if answer else []}


def rows(split: Split, unanswerable: bool) -> Iterator[Row]:
    """Rows with ``passage``, ``question`` and ``answers``; with ``unanswerable`` a third have no
    answer (both lists empty)."""
    random = Random(f"reading {split} {unanswerable}")
    seen: set[str] = set()
    while len(seen) < SIZES[split]:
        passage, question, answers = _example(random, split, unanswerable)
        if home(passage) == split and passage not in seen:
            yield {"id": f"{split}-{len(seen)}", "passage": passage, "question": question, "answers": answers}
            seen.add(passage)
