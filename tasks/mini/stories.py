"""Short stories of persons, places and things, with a question after each: the mini tier of bAbI.

Six skills: where a person is (the newest of their moves counts), where a thing is (who has it, and
where they are), where a person was before, whether a person is somewhere, how many things someone
has, and who gave a thing to whom. A bag of the story's words does not tell the answer: each story
is of three persons and several places, and the answer rests on who went where, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home

PERSONS = ("Joe", "Lena", "Omar", "Ruth")
HELD_OUT_PERSONS = ("Vera", "Karl")
"""One of them is in some stories of dev and test, and is no answer: it names nobody that a model
could have learnt to say."""
PLACES = ("office", "kitchen", "garden", "cellar", "attic", "stable")
THINGS = ("lamp", "apple", "letter", "ball", "key")
MOVES = ("went to", "travelled to", "walked to", "moved to", "hurried to")
TAKES = ("took", "picked up", "grabbed", "found")
COUNTS = ("none", "one", "two", "three", "four")
SIZES = {"train": 900, "dev": 180, "test": 180}


class World:
    """Places of persons and things at one point of a story."""

    def __init__(self, random: Random, split: Split):
        self.random = random
        self.persons = random.sample(PERSONS, 3)
        if split != "train" and random.random() < 0.2:
            self.persons[0] = random.choice(HELD_OUT_PERSONS)
        self.facts: list[str] = []
        self.visits: dict[str, list[str]] = {person: [] for person in self.persons}
        self.holder: dict[str, str] = {}
        self.gift: tuple[str, str] | None = None
        for person in self.persons:
            self.move(person)

    def move(self, person: str) -> None:
        """The person goes to another place."""
        place = self.random.choice([p for p in PLACES if p not in self.visits[person][-1:]])
        self.visits[person].append(place)
        self.facts.append(f"{person} {self.random.choice(MOVES)} the {place}.")

    def take(self, person: str) -> None:
        """The person takes a thing that nobody has."""
        free = [thing for thing in THINGS if thing not in self.holder]
        if free:
            thing = self.random.choice(free)
            self.holder[thing] = person
            self.facts.append(f"{person} {self.random.choice(TAKES)} the {thing}.")

    def give(self, person: str) -> None:
        """The person gives a thing away, if they have one."""
        owned = [thing for thing, owner in self.holder.items() if owner == person]
        if owned:
            thing, other = self.random.choice(owned), self.random.choice([p for p in self.persons if p != person])
            self.holder[thing] = other
            self.gift = (person, thing)
            self.facts.append(f"{person} gave the {thing} to {other}.")


Asked = tuple[str, str] | None
"""Question and answer; None when this story has none of the skill's."""


def _person(world: World) -> Asked:
    person = world.random.choice(world.persons)
    return f"Where is {person}?", world.visits[person][-1]


def _thing(world: World) -> Asked:
    if not world.holder:
        return None
    thing, owner = world.random.choice(sorted(world.holder.items()))
    return f"Where is the {thing}?", world.visits[owner][-1]


def _before(world: World) -> Asked:
    moved = [person for person in world.persons if len(world.visits[person]) > 1]
    if not moved:
        return None
    person = world.random.choice(moved)
    return f"Where was {person} before the {world.visits[person][-1]}?", world.visits[person][-2]


def _yes_no(world: World) -> Asked:
    person = world.random.choice(world.persons)
    here, others = (
        world.visits[person][-1],
        [p for other in world.persons for p in world.visits[other] if p != world.visits[person][-1]],
    )
    if world.random.random() < 0.5 or not others:
        return f"Is {person} in the {here}?", "yes"
    return f"Is {person} in the {world.random.choice(others)}?", "no"


def _count(world: World) -> Asked:
    person = world.random.choice(world.persons)
    return f"How many things does {person} have?", COUNTS[sum(owner == person for owner in world.holder.values())]


def _giver(world: World) -> Asked:
    if world.gift is None or world.gift[0] in HELD_OUT_PERSONS:
        return None
    giver, thing = world.gift
    return f"Who gave the {thing} last?", giver


SKILLS: dict[str, Callable[[World], Asked]] = {
    "person": _person,
    "thing": _thing,
    "before": _before,
    "yes-no": _yes_no,
    "count": _count,
    "giver": _giver,
}


def _story(random: Random, split: Split) -> World:
    world = World(random, split)
    for _ in range(random.randint(3, 6)):
        act = random.choice((world.move, world.move, world.take, world.take, world.give))
        act(random.choice(world.persons))
    return world


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``facts``, ``question``, ``answer`` and ``skill``; as many of each skill."""
    random = Random(f"stories {split}")
    seen: set[str] = set()
    for number in range(SIZES[split]):
        skill = list(SKILLS)[number % len(SKILLS)]
        while True:
            world = _story(random, split)
            asked, told = SKILLS[skill](world), " ".join(world.facts)
            if asked and home(told) == split and told not in seen:
                break
        seen.add(told)
        question, answer = asked
        yield {"id": f"{split}-{number}", "facts": world.facts, "question": question, "answer": answer, "skill": skill}
