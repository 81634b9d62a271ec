"""What a study costs: amounts owed to people, and spent on graders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.study.desk.design import SessionDesign
from evenhand.study.session.sessions import Sessions
from evenhand.study.session.times import session_times
from evenhand.study.store.totals import grade_totals

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study


@dataclass(frozen=True)
class Costs:
    """Amounts owed to people by `[pay]`, and spent on graders so far. None where it is not known.

    `expected` is what people are owed once all is labelled; `undecided` counts those for whom the
    lead has to decide. `unpriced` counts graders whose price is not known.
    """

    currency: str = ""
    owed: float | None = None
    expected: float | None = None
    undecided: int = 0
    graders_usd: float | None = None
    unpriced: int = 0


def costs(study: Study) -> Costs:
    """Add up what people are owed so far and in the end, and what graders have cost.

    In the end everybody who is needed is paid for a whole part: the `places` at Prolific, or as
    many as it takes at `units_per_rater` units each; without either nothing is expected.
    """
    totals = grader_costs(study)
    priced = totals["cost_usd"].dropna()
    graders = float(priced.sum()) if len(priced) else None
    unpriced = int(totals["cost_usd"].isna().groupby(totals["rater_id"]).any().sum())
    pay = study.config.pay
    if pay is None:
        return Costs(graders_usd=graders, unpriced=unpriced)
    times = session_times(study, Sessions(study))
    owed = float(times["owed"].sum())
    people = _people_needed(study)
    return Costs(
        currency=pay.currency,
        owed=owed,
        expected=None if people is None else max(people * pay.complete, owed),
        undecided=int(times["owed"].isna().sum()),
        graders_usd=graders,
        unpriced=unpriced,
    )


def grader_costs(study: Study) -> pd.DataFrame:
    """Return what each grader was asked and has cost, as `store.totals.grade_totals`."""
    return grade_totals(study.store)


def _people_needed(study: Study) -> int | None:
    annotation, prolific = study.config.annotation, study.config.prolific
    if prolific is not None and prolific.places:
        return prolific.places
    if not annotation.units_per_rater:
        return None
    units = len({unit for unit, _ in SessionDesign(study).questions})
    return math.ceil(units * annotation.raters_per_unit / annotation.units_per_rater)
