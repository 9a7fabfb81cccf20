"""Plain text of planted topics, whose words are each other's neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

TOPICS = {name: [f"{name}{number}" for number in range(6)] for name in ("fish", "law", "rail", "film")}
"""Words of each topic."""


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Texts of twelve words of one topic, with one in four words of all of them."""
    rng = np.random.default_rng(seed)
    common = [f"of{number}" for number in range(6)]
    made = []
    for number in range(count):
        topic = rng.choice(list(TOPICS))
        words = [str(rng.choice(common if rng.random() < 0.25 else TOPICS[topic])) for _ in range(12)]
        made.append({"id": str(number), "text": " ".join(words)})
    return made


def share_of_neighbours(words: Sequence[str], vectors: np.ndarray, nearest: int = 5) -> float:
    """Share of the ``nearest`` neighbours of the topics' words that are of the same topic, by the
    cosine; by chance it is a sixth."""
    scaled = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = scaled @ scaled.T
    np.fill_diagonal(cosines, -2)
    of = np.array([word.rstrip("0123456789") for word in words])
    places = [place for place, name in enumerate(of) if name in TOPICS]
    return float(np.mean([of[np.argsort(-cosines[place])[:nearest]] == of[place] for place in places]))
