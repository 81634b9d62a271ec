"""How far a study's labelling is: by rubric, by rater, and how long it will still take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from study.claims import Ledger
from study.dealing import minutes_ago
from study.design import SessionDesign
from study.oversight import Oversight
from study.schema import grades, labels, lead_events, pairs, responses

if TYPE_CHECKING:
    import pandas as pd

    from study.workspace import Study

__all__ = ["data_version", "rater_progress", "rubric_progress", "time_left"]


def data_version(study: Study) -> str:
    """Changes whenever a label, a grade, a decision of the lead, a pair or a response comes in."""
    counts = [
        sa.select(sa.func.coalesce(sa.func.max(table.c.event_id), 0)).scalar_subquery()
        for table in (labels, grades, lead_events)
    ]
    counts.append(sa.select(sa.func.count(pairs.c.sample_position)).scalar_subquery())
    counts.append(sa.select(sa.func.count()).select_from(responses).scalar_subquery())
    with study.store.read() as connection:
        return "-".join(str(count) for count in connection.execute(sa.select(*counts)).one())


def rubric_progress(study: Study) -> pd.DataFrame:
    """One row per rubric that people label: `rubric, units, wanted, done, open, free,
    median_seconds, hours_left`.

    A place is a unit's label by one of the raters that it wants. It is `done`, `open` (given out,
    and its lease not over) or `free`; the three add up to `wanted`. Labels of excluded raters fill
    no place. `hours_left` is the time that the open and the free ones take at the rubric's median
    pace; NaN before anyone has labelled.
    """
    import pandas as pd

    design = SessionDesign(study)
    holders = _holders(study, design)
    seconds = _human_ratings(study).groupby("rubric")["seconds"].median()
    each = study.config.annotation.raters_per_unit
    rows = []
    for rubric in study.labelled_rubrics():
        keys = [key for key in design.places if key[1] == rubric.name]
        done = sum(min(each, holders.get((*key, "labelled"), 0)) for key in keys)
        taken = sum(
            min(each, holders.get((*key, "labelled"), 0) + holders.get((*key, "open"), 0))
            for key in keys
        )
        wanted = each * len(keys)
        median = float(seconds.get(rubric.name, float("nan")))
        rows.append(
            {
                "rubric": rubric.name,
                "units": len(keys),
                "wanted": wanted,
                "done": done,
                "open": taken - done,
                "free": wanted - taken,
                "median_seconds": median,
                "hours_left": (wanted - done) * median / 3600,
            }
        )
    return pd.DataFrame(rows)


def rater_progress(study: Study) -> pd.DataFrame:
    """One row per person: `rater_id, state, answers, skipped, open, median_seconds, hours,
    last_answer`.

    `state` is "excluded", "working" (has a task whose lease runs) or "away"; `hours` is the time
    spent on answers, without idle time; repeats count among `answers`.
    """
    import pandas as pd

    opened = _open_tasks(study)
    with study.store.read() as connection:
        excluded = Oversight().renewed(connection).exclusions
    ratings = _human_ratings(study)
    rows = []
    for rater in sorted({*ratings["rater_id"], *opened}):
        own = ratings[ratings["rater_id"] == rater]
        waiting = opened.get(rater, 0)
        rows.append(
            {
                "rater_id": rater,
                "state": "excluded" if rater in excluded else "working" if waiting else "away",
                "answers": len(own),
                "skipped": int((own["label"] == "").sum()),
                "open": waiting,
                "median_seconds": own["seconds"].median(),
                "hours": own["seconds"].sum() / 3600,
                "last_answer": own["created_at"].max() if len(own) else "",
            }
        )
    columns = ["rater_id", "state", "answers", "skipped", "open", "median_seconds", "hours"]
    return pd.DataFrame(rows, columns=[*columns, "last_answer"])


def time_left(progress: pd.DataFrame) -> str:
    """What `rubric_progress` says of the work that is left, in a sentence."""
    left = int((progress["wanted"] - progress["done"]).sum())
    if left == 0:
        return "Every place has its label."
    hours = progress["hours_left"].sum(min_count=len(progress))
    labels_left = f"{left} of {int(progress['wanted'].sum())} labels are still to be given"
    if hours != hours:
        return f"{labels_left}; how long that takes is not known before people have labelled."
    return f"{labels_left}: about {hours:.1f} hours of work at the pace so far."


def _human_ratings(study: Study) -> pd.DataFrame:
    ratings = study.ratings()
    return ratings[ratings["rater_kind"] == "human"]


def _holders(study: Study, design: SessionDesign) -> dict[tuple[str, str, str], int]:
    """How many raters who count hold each (unit, rubric) as labelled, and as open."""
    with study.store.read() as connection:
        ledger = _ledger(study, connection)
        excluded = Oversight().renewed(connection).exclusions
    since = minutes_ago(design.settings.lease_minutes)
    counts: dict[tuple[str, str, str], int] = {}
    for rater in ledger.raters - excluded.keys():
        for claim in ledger.of_rater(rater).values():
            running = claim.state == "labelled" or claim.claimed_at >= since
            if claim.draw == 0 and claim.state != "released" and running:
                at = (*claim.key, claim.state)
                counts[at] = counts.get(at, 0) + 1
    return counts


def _open_tasks(study: Study) -> dict[str, int]:
    """How many tasks whose lease runs each rater has."""
    with study.store.read() as connection:
        ledger = _ledger(study, connection)
    since = minutes_ago(study.config.annotation.lease_minutes)
    return {
        rater: sum(
            claim.state == "open" and claim.claimed_at >= since
            for claim in ledger.of_rater(rater).values()
        )
        for rater in ledger.raters
    }


def _ledger(study: Study, connection: sa.Connection) -> Ledger:
    ledger = Ledger({digest for hashes in study.accepted_hashes().values() for digest in hashes})
    ledger.refresh(connection)
    return ledger
