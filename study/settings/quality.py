"""The section `[quality]` of study.toml: limits from which a rater is flagged, or their part
ends.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.study.settings.sections import Section

QualityFlag = Literal["fast", "idle", "run", "low_agreement", "leaning", "drift", "attention"]


class QualitySettings(Section):
    """Limits from which a rater is flagged; the measures are those of `analysis.raters.quality`.

    Shares are of the others' figures on the same units. All but `stop` only warn.
    """

    stop: tuple[QualityFlag, ...] = Field(
        default=(),
        description="flags that end a rater's session while the app runs: no new units, labels "
        "kept, places given to others",
    )
    min_answers: int = Field(
        default=20,
        gt=0,
        description="raters with fewer answers are not judged yet, except by attention checks",
    )
    fast: float = Field(
        default=0.33, ge=0, lt=1, description="the median time, as a share of the others'"
    )
    idle: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="share of the time at work without an answer",
    )
    run: float = Field(
        default=2.0,
        ge=1,
        description="the longest run of one label, in multiples of the usual for these units",
    )
    agreement: float = Field(
        default=0.2,
        ge=0,
        description="how far, in kappa, the agreement with the others lies below theirs",
    )
    leaning: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="how much more often, as a share of units, a category is used than by the "
        "others",
    )
    drift: float = Field(
        default=0.05,
        ge=0,
        description="how much of the agreement with the others is lost in the second half",
    )
    attention: int = Field(
        default=1, ge=0, description="how many failed attention checks are allowed"
    )
