"""Progress of a study's labelling: labels so far, and of one rater compared with the others; what
is left by rubric and by rater; and when it will end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.desk.claims import SessionDesign, minutes_ago, oversight
from evenhand.study.prompts.units import Key
from evenhand.study.store.schema import (
    claims,
    grades,
    labels,
    lead_events,
    look_events,
    pairs,
    responses,
    threshold_events,
)
from evenhand.study.workspace import Study
from evenhand.texts import DASH, number_of, written

# Labels of people and adjudicators so far: cheap enough to query every few seconds

PEOPLE_COLUMNS = (
    "unit_id", "rubric", "rater_id", "rater_kind", "draw", "label", "seconds", "created_at"
)  # fmt: skip


def people_labels(study: Study) -> pd.DataFrame:
    """`PEOPLE_COLUMNS` of the present labels under texts that count, in the order of the answers.
    The same as these rows of `Study.ratings()`, without reading a single grade.
    """
    columns = [labels.c[name] for name in PEOPLE_COLUMNS]
    query = sa.select(*columns).where(accepted_text(study, labels)).order_by(labels.c.event_id)
    frame = study.store.table(query).astype({"seconds": "float64"})
    return frame.drop_duplicates(["unit_id", "rubric", "rater_id", "draw"], keep="last")


def accepted_text(study: Study, table: sa.Table) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the row was given under a rubric's text that counts."""
    return sa.or_(
        table.c.rubric_hash == "",
        *(
            sa.and_(table.c.rubric == name, table.c.rubric_hash.in_(hashes))
            for name, hashes in study.accepted_hashes().items()
        ),
    )


ANSWER_COLUMNS = (
    "created_at", "rubric", "unit_id", "label", "others", "seconds", "draw"
)  # fmt: skip


def rater_answers(study: Study, rater: str) -> pd.DataFrame:
    """`ANSWER_COLUMNS` of a rater's present answers, in the order in which they were given.
    `others` are the labels of everyone else who counts on the same unit, sorted and parted by
    spaces; `label` is empty where the unit was skipped, `draw` above 0 marks a hidden repeat.
    """
    answers, others = _split(study, rater)
    given = others.groupby(["rubric", "unit_id"])["label"].agg(lambda rows: " ".join(sorted(rows)))
    table = answers.join(given.rename("others"), on=["rubric", "unit_id"])
    table = table.assign(others=table["others"].fillna(""))
    table = table.sort_values("created_at", kind="stable").reset_index(drop=True)
    return table[list(ANSWER_COLUMNS)]


def confusions(study: Study, rater: str) -> dict[str, pd.DataFrame]:
    """Return a table for each rubric that counts the others' labels against the rater's.

    Rows are the rater's labels, columns the others'; a cell is a number of units, of which each
    counts once, shared among the labels of the others. Rubrics without shared units, and those that
    ask for a number or for several options, are left out.
    """
    answers, others = _split(study, rater)
    columns = ["rubric", "unit_id", "label"]
    first = answers.loc[(answers["draw"] == 0) & (answers["label"] != ""), columns]
    both = first.merge(others[columns], on=columns[:2], suffixes=("", "_other"))
    both["weight"] = 1 / both.groupby(["rubric", "unit_id"])["label"].transform("size")
    return {
        rubric.name: table.pivot_table(
            index="label", columns="label_other", values="weight", aggfunc="sum", fill_value=0.0
        ).reindex(index=rubric.categories, columns=rubric.categories, fill_value=0.0)
        for rubric in study.asked_rubrics()
        if rubric.kind.is_choice and len(table := both[both["rubric"] == rubric.name])
    }


def _split(study: Study, rater: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A rater's answers; and the labels of the others who count, repeats and skips left out."""
    people = _human_labels(study)
    is_own = people["rater_id"] == rater
    excluded = people["rater_id"].isin(list(oversight(study.store).exclusions))
    counts = ~is_own & ~excluded & (people["draw"] == 0) & (people["label"] != "")
    return people[is_own], people[counts]


def data_version(study: Study) -> str:
    """Return a text that changes whenever a label, a grade, an exclusion, a tuned threshold, a look
    at the verdict, a sampled pair or a response comes in, or a lead changes the study's files.
    """
    decided = lead_events.c.kind.in_(("exclude", "readmit", "settings", "file"))
    always = (labels, grades, threshold_events, look_events)
    events = dict.fromkeys(always, sa.true()) | {lead_events: decided}
    counts = [
        sa.select(sa.func.coalesce(sa.func.max(table.c.event_id), 0)).where(rule).scalar_subquery()
        for table, rule in events.items()
    ]
    counts.append(sa.select(sa.func.count(pairs.c.sample_position)).scalar_subquery())
    counts.append(sa.select(sa.func.count()).select_from(responses).scalar_subquery())
    return "-".join(map(str, study.store.rows(sa.select(*counts))[0]))


def rubric_progress(study: Study) -> pd.DataFrame:
    """Return a row per rubric that people label: `rubric, units, wanted, done, open, free,
    median_seconds, hours_left`.

    A place is a unit's label by one of the raters that it needs. It is `done`, `open` (given out,
    and its lease not over) or `free`; the three add up to `wanted`. Labels of excluded raters fill
    no place. `hours_left` is the time that the open and the free ones take at the rubric's median
    pace; NaN before anyone has labelled.
    """
    holders = _holders(study)
    seconds = _human_labels(study).groupby("rubric")["seconds"].median()
    most = study.config.annotation.raters_per_unit
    rows = []
    for rubric in study.asked_rubrics():
        held = [states for (_, name), states in holders.items() if name == rubric.name]
        done = sum(min(most, states.get("labelled", 0)) for states in held)
        taken = sum(min(most, sum(states.values())) for states in held)
        wanted = most * len(held)
        median = float(seconds.get(rubric.name, float("nan")))
        places = {"units": len(held), "wanted": wanted, "done": done, "open": taken - done}
        left = {"median_seconds": median, "hours_left": (wanted - done) * median / 3600}
        rows.append({"rubric": rubric.name, **places, "free": wanted - taken, **left})
    return pd.DataFrame(rows)


def _holders(study: Study) -> dict[Key, dict[str, int]]:
    """Return how many raters, without excluded ones, hold each question that is asked, by state."""
    columns = (claims.c.unit_id, claims.c.rubric, claims.c.state)
    counts = claims.c.draw == 0, claims.c.rater_id.not_in([*oversight(study.store).exclusions])
    raters = sa.func.count(sa.distinct(claims.c.rater_id))
    query = sa.select(*columns, raters).where(_running(study), *counts).group_by(*columns)
    holders: dict[Key, dict[str, int]] = {key: {} for key in SessionDesign(study).questions}
    for unit, name, state, number in study.store.rows(query):
        if (unit, name) in holders:
            holders[unit, name][state] = number
    return holders


def places_without_annotator(study: Study) -> tuple[int, int]:
    """Return how many units lack more raters than there are who still label, and the most raters
    that one of them lacks beyond these.
    """
    states, most = rater_progress(study)["state"], study.config.annotation.raters_per_unit
    labelling = int(states.isin(("working", "away")).sum())
    lacking: dict[str, int] = {}
    for (unit, _), held in _holders(study).items():
        lacking[unit] = max(lacking.get(unit, 0), most - sum(held.values()) - labelling)
    short = [number for number in lacking.values() if number > 0]
    return len(short), max(short, default=0)


def rater_progress(study: Study) -> pd.DataFrame:
    """Return a row per person: `rater_id, state, answers, skipped, open, median_seconds, hours,
    last_answer`. `state` is "excluded", "working" (has a task whose lease runs), "finished" (no
    item is left for them) or "away"; `hours` is the time spent on answers, without idle time;
    repeats count among `answers`.
    """
    most, enough = study.config.annotation.raters_per_unit, study.config.annotation.units_per_rater
    free = {key for key, held in _holders(study).items() if sum(held.values()) < most}
    running = sa.case((sa.and_(claims.c.state == "open", _running(study)), 1), else_=0)
    query = sa.select(claims.c.rater_id, sa.func.sum(running)).group_by(claims.c.rater_id)
    opened = {rater: int(tasks) for rater, tasks in study.store.rows(query)}
    excluded = oversight(study.store).exclusions
    labelled = _human_labels(study)
    rows = []
    for rater in sorted({*labelled["rater_id"], *opened}):
        answers, waiting = labelled[labelled["rater_id"] == rater], opened.get(rater, 0)
        given = {*zip(answers["unit_id"], answers["rubric"], strict=True)}
        is_over = free <= given or 0 < enough <= answers["unit_id"].nunique()
        idle = "finished" if is_over else "away"
        state = "excluded" if rater in excluded else "working" if waiting else idle
        counts = len(answers), int((answers["label"] == "").sum()), waiting
        seconds = answers["seconds"].median(), answers["seconds"].sum() / 3600
        last = answers["created_at"].max() if len(answers) else ""
        rows.append((rater, state, *counts, *seconds, last))
    columns = ["rater_id", "state", "answers", "skipped", "open", "median_seconds", "hours"]
    return pd.DataFrame(rows, columns=[*columns, "last_answer"])


def _human_labels(study: Study) -> pd.DataFrame:
    people = people_labels(study)
    return people[people["rater_kind"] == "human"]


def _running(study: Study) -> sa.ColumnElement[bool]:
    """Claims that hold their place: answered, or open with a lease that is not over."""
    since = minutes_ago(study.config.annotation.lease_minutes)
    open_still = sa.and_(claims.c.state == "open", claims.c.claimed_at >= since)
    return sa.and_(accepted_text(study, claims), sa.or_(claims.c.state == "labelled", open_still))


# What is left of a study's labelling, and when it ends at the pace of the last hours

WINDOW_HOURS = 24
"""A whole day, so that a study's nights count once it has had one."""
_FEWEST_HOURS, _FEWEST_LABELS = 2, 20
_LONGEST = timedelta(days=36_500)  # where dates end


@dataclass(frozen=True)
class Forecast:
    """What is left of the labelling: labels `done` of those `wanted`, the `hours` of work in the
    others at the median pace (NaN before anyone has labelled), and the end of it, `until` (UTC), if
    the `annotators` of the last day go on as they did; None where there is no pace to go by.
    """

    done: int
    wanted: int
    hours: float = math.nan
    annotators: int = 0
    until: datetime | None = None

    @property
    def left(self) -> int:
        return self.wanted - self.done

    @property
    def work(self) -> str:
        """The work that is left, such as "42 hours"; a dash where it is not known."""
        if self.hours < 2:
            return number_of(math.ceil(60 * self.hours), "minute")
        return DASH if math.isnan(self.hours) else number_of(round(self.hours), "hour")

    @property
    def end(self) -> str:
        """Who labels, and until when, such as "3 annotators until Friday 17:00 UTC"."""
        if not self.annotators:
            return written("progress.nobody", hours=WINDOW_HOURS)
        who = number_of(self.annotators, "annotator")
        if self.until is None:
            return written("progress.some", annotators=who, hours=WINDOW_HOURS)
        at, is_near = self.until, self.until - datetime.now(UTC) < timedelta(days=6)
        until = f"{at:%A %H}:00 UTC" if is_near else f"{at.day} {at:%B %Y}"
        return written("progress.until", annotators=who, until=until)


def forecast(study: Study, now: datetime | None = None) -> Forecast:
    """Extrapolate the labels of the last `WINDOW_HOURS`, or of all hours since the first label.
    Hidden repeats and excluded raters fill no place, so they have no pace.
    """
    now = now or datetime.now(UTC)
    progress = rubric_progress(study)
    done, wanted = int(progress["done"].sum()), int(progress["wanted"].sum())
    hours = float(progress["hours_left"].sum(min_count=len(progress)))
    given = _human_labels(study)
    out = given["rater_id"].isin(list(oversight(study.store).exclusions))
    given = given[(given["draw"] == 0) & (given["created_at"] != "") & ~out]
    stamps = pd.to_datetime(given["created_at"], utc=True, format="ISO8601")
    ago = (now - stamps).dt.total_seconds() / 3600
    recent = given[(ago >= 0) & (ago < WINDOW_HOURS)]
    counted = Forecast(done, wanted, hours, recent["rater_id"].nunique())
    over = min(ago.max(), WINDOW_HOURS)
    if counted.left <= 0 or over < _FEWEST_HOURS or len(recent) < _FEWEST_LABELS:
        return counted
    until = now + min(timedelta(hours=counted.left * over / len(recent)), _LONGEST)
    return replace(counted, until=until)


def time_left(ends: Forecast) -> str:
    """Return a sentence on the work that is left, and until when it takes."""
    if not ends.wanted:
        return written("progress.nothing")
    if ends.left <= 0:
        return written("progress.done")
    about = {"left": ends.left, "wanted": ends.wanted}
    if math.isnan(ends.hours):
        return written("progress.left_unknown", **about)
    return written("progress.left", work=ends.work, end=ends.end, **about)


# The work that a study asks of people before anyone has labelled

WORDS_PER_MINUTE = 238
"""Silent reading of English prose by adults (Brysbaert 2019, J. of Memory and Language 109)."""
SECONDS_TO_DECIDE = 5


@dataclass(frozen=True)
class RubricLoad:
    """The work that a rubric asks of people."""

    rubric: str
    units: int
    raters: int
    words: int
    """Words to read once through all units."""

    @property
    def judgments(self) -> int:
        return self.units * self.raters

    @property
    def hours(self) -> float:
        reading = self.raters * self.words / WORDS_PER_MINUTE / 60
        return reading + self.judgments * SECONDS_TO_DECIDE / 3600


def workload(study: Study) -> tuple[RubricLoad, ...]:
    """Judgments and reading for every rubric that people label; none before there are responses."""
    sampled = set(study.store.sample())
    wanted = set(study.config.annotation.subjects)
    responses = study.store.responses()
    responses = responses[responses["pair_id"].isin(sampled)]
    if wanted:
        responses = responses[responses["subject"].isin(wanted)]
    if responses.empty:
        return ()
    words = sum(len(text.split()) for text in responses["response"])
    raters = study.config.annotation.raters_per_unit
    sides = {rubric.name: 2 if rubric.has_sides else 1 for rubric in study.labelled_rubrics()}
    return tuple(
        RubricLoad(name, len(responses) // of, raters, words) for name, of in sides.items()
    )


def annotator_minutes(study: Study) -> float:
    """Return the minutes of work for one annotator, who labels all that one may; 0 before there are
    responses.
    """
    minutes = sum(60 * load.hours / load.raters for load in workload(study))
    most, units = study.config.annotation.units_per_rater, SessionDesign(study).questions
    return minutes * (min(1.0, most / len({unit for unit, _ in units})) if most and units else 1.0)
