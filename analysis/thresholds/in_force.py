"""Which threshold turned each grader's probabilities into verdicts, and whose threshold it is."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.thresholds.references import probability_graders

__all__ = ["ThresholdInForce", "thresholds_in_force"]


@dataclass(frozen=True)
class ThresholdInForce:
    """The threshold of one grader on one rubric; `is_own` says that it was set for this grader, and
    is not the rubric's.
    """

    rubric: str
    grader: str
    threshold: float
    is_own: bool

    @property
    def origin(self) -> str:
        """Where it came from."""
        return "set for this grader" if self.is_own else "the rubric's own"


def thresholds_in_force(labels: LabelMatrix) -> list[ThresholdInForce]:
    """One for every grader that gave probabilities; none where there is no binary verdict."""
    if not labels.has_verdicts:
        return []
    scale = labels.scale
    graders = [labels.raters[model] for model in probability_graders(labels)]
    return [
        ThresholdInForce(
            scale.name, grader, scale.threshold_for(grader), grader in scale.thresholds
        )
        for grader in graders
    ]
