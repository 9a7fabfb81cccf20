"""Metrics of questions about stories; each question tests one skill."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import ClassVar

from harness.metrics.metric import TEXT, Metric

SOLVED = 0.95
"""Accuracy from which a skill counts as solved (Weston et al. 2015)."""


class SkillAccuracy(Metric):
    """Mean over the skills of the share of right answers, and the share of skills that are solved.
    Source: Weston et al. 2015."""

    columns: ClassVar = {"predictions": TEXT, "references": TEXT, "skills": TEXT}
    about = "predictions, references: one answer per question; skills: which one it tests"

    def _compute(self, predictions: list[str], references: list[str], skills: list[str]) -> dict[str, float]:
        right: dict[str, list[bool]] = defaultdict(list)
        for predicted, answer, skill in zip(predictions, references, skills, strict=True):
            right[skill].append(predicted == answer)
        shares = [fmean(answers) for answers in right.values()]
        return {"skill_accuracy": fmean(shares), "skills_solved": fmean(share >= SOLVED for share in shares)}
