"""The section `[quality]` of study.toml: from where on a rater is flagged, and what ends a part."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.study.settings.sections import Section

__all__ = ["Flag", "QualitySettings"]

Flag = Literal["fast", "idle", "run", "low_agreement", "leaning", "drift", "attention"]


class QualitySettings(Section):
    """The measures are explained in `analysis.raters.quality`; all but `stop` only warn."""

    stop: tuple[Flag, ...] = ()
    """A rater with one of these flags is excluded, with the flag as the reason, while the app runs:
    no further task, labels kept, places given to others. `evenhand exclude --readmit` undoes it."""
    min_answers: int = Field(default=20, gt=0)
    fast: float = Field(default=0.33, ge=0, lt=1)
    idle: float = Field(default=0.5, gt=0, le=1)
    run: float = Field(default=2.0, ge=1)
    agreement: float = Field(default=0.2, ge=0)
    leaning: float = Field(default=0.2, ge=0, le=1)
    drift: float = Field(default=0.05, ge=0)
    attention: int = Field(default=1, ge=0)

    @property
    def rules(self) -> dict[str, float]:
        """The thresholds by name, as `analysis.raters.flags.QualityRules` takes them."""
        return self.model_dump(exclude={"stop"})
