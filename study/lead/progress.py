"""Progress of a study's labelling, for the lead's pages: annotators' labels; what is left by rubric
and rater; a forecast of its end; and the workload, estimated before anyone has labelled. A question
is a rubric on a unit (what gets a label); a claim gives it to a rater for a lease, a limited time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.desk.claims import SessionDesign, minutes_ago, oversight
from evenhand.study.prompts.units import Key
from evenhand.study.store import schema
from evenhand.study.store.schema import accepted_text, claims, labels
from evenhand.study.workspace import Study
from evenhand.texts import DASH, number_of, written

# Labels of annotators and adjudicators, read without grades, as pages do so every few seconds

PEOPLE_COLUMNS = (
    "unit_id", "rubric", "rater_id", "rater_kind", "draw", "label", "seconds", "created_at"
)  # fmt: skip


def people_labels(study: Study) -> pd.DataFrame:
    """Return `PEOPLE_COLUMNS` of the latest labels of annotators and adjudicators under rubrics'
    texts that count, in the order of the answers.
    """
    columns = [labels.c[name] for name in PEOPLE_COLUMNS]
    is_accepted = accepted_text(labels, study.accepted_hashes())
    query = sa.select(*columns).where(is_accepted).order_by(labels.c.event_id)
    frame = study.store.table(query).astype({"seconds": "float64"})
    return frame.drop_duplicates(["unit_id", "rubric", "rater_id", "draw"], keep="last")


ANSWER_COLUMNS = ("created_at", "rubric", "unit_id", "label", "others", "seconds", "draw")


def rater_answers(study: Study, rater: str) -> pd.DataFrame:
    """Return `ANSWER_COLUMNS` of a rater's latest answers, in the order of time. `others` are the
    other raters' labels of the same unit, sorted and separated by spaces; `label` is empty where
    the unit was skipped, `draw` above 0 marks a hidden repeat.
    """
    people = _human_labels(study)
    is_rater = people["rater_id"] == rater
    is_excluded = people["rater_id"].isin(list(oversight(study.store).exclusions))
    is_counted = ~is_rater & ~is_excluded & (people["draw"] == 0) & (people["label"] != "")
    by_unit = people[is_counted].groupby(["rubric", "unit_id"])["label"]
    others = by_unit.agg(lambda labels: " ".join(sorted(labels))).rename("others")
    table = people[is_rater].join(others, on=["rubric", "unit_id"]).fillna({"others": ""})
    table = table.sort_values("created_at", kind="stable").reset_index(drop=True)
    return table[list(ANSWER_COLUMNS)]


def data_version(study: Study) -> str:
    """Return a text that changes with every label, grade, exclusion, tuned threshold, interim
    analysis, sampled pair, response, or change of the study's files by a lead.
    """
    logs = (schema.labels, schema.grades, schema.threshold_events, schema.look_events)
    is_change = schema.lead_events.c.kind.in_(("exclude", "readmit", "settings", "file"))
    conditions = dict.fromkeys(logs, sa.true()) | {schema.lead_events: is_change}
    queries = [
        sa.select(sa.func.coalesce(sa.func.max(log.c.event_id), 0)).where(condition)
        for log, condition in conditions.items()
    ]
    queries.append(sa.select(sa.func.count(schema.pairs.c.sample_position)))
    queries.append(sa.select(sa.func.count()).select_from(schema.responses))
    numbers = sa.select(*(query.scalar_subquery() for query in queries))
    return "-".join(map(str, study.store.rows(numbers)[0]))


def rubric_progress(study: Study) -> pd.DataFrame:
    """Return a row per rubric that people label: `rubric, units`, the numbers of labels `wanted,
    done, open, free`, and `median_seconds, hours_left`. An `open` label is given out, with a
    running lease. Labels of excluded raters do not count. `hours_left` is the time for open and
    free labels at the median pace; NaN before any label.
    """
    holders = _holder_counts(study)
    seconds = _human_labels(study).groupby("rubric")["seconds"].median()
    n_raters = study.config.annotation.raters_per_unit
    rows = []
    for rubric in study.asked_rubrics():
        states_of_units = [states for (_, name), states in holders.items() if name == rubric.name]
        n_done = sum(min(n_raters, states.get("labelled", 0)) for states in states_of_units)
        n_claimed = sum(min(n_raters, sum(states.values())) for states in states_of_units)
        n_wanted = n_raters * len(states_of_units)
        median = float(seconds.get(rubric.name, math.nan))
        row = {"rubric": rubric.name, "units": len(states_of_units), "wanted": n_wanted}
        row |= {"done": n_done, "open": n_claimed - n_done, "free": n_wanted - n_claimed}
        row |= {"median_seconds": median, "hours_left": (n_wanted - n_done) * median / 3600}
        rows.append(row)
    return pd.DataFrame(rows)


def _holder_counts(study: Study, *conditions: sa.ColumnElement[bool]) -> dict[Key, dict[str, int]]:
    """Return how many raters hold each question, without excluded ones, by state of the claim."""
    columns = (claims.c.unit_id, claims.c.rubric, claims.c.state)
    is_counted = claims.c.rater_id.not_in([*oversight(study.store).exclusions])
    raters = sa.func.count(sa.distinct(claims.c.rater_id))
    conditions += _is_held(study), claims.c.draw == 0, is_counted
    query = sa.select(*columns, raters).where(*conditions).group_by(*columns)
    holders: dict[Key, dict[str, int]] = {key: {} for key in SessionDesign(study).questions}
    for unit, name, state, n_raters in study.store.rows(query):
        if (unit, name) in holders:
            holders[unit, name][state] = n_raters
    return holders


def places_without_annotator(study: Study) -> tuple[int, int]:
    """Return (units with too few raters still at work, further raters that complete all units)."""
    n_raters, raters = study.config.annotation.raters_per_unit, rater_progress(study)
    labelling = raters.loc[raters["state"].isin(("working", "away")), "rater_id"].tolist()
    held_by_them = _holder_counts(study, claims.c.rater_id.in_(labelling))
    missing_by_unit: dict[str, int] = {}
    for (unit, rubric), states in _holder_counts(study).items():
        n_to_come = len(labelling) - sum(held_by_them[unit, rubric].values())
        n_missing = n_raters - sum(states.values()) - n_to_come
        missing_by_unit[unit] = max(missing_by_unit.get(unit, 0), n_missing)
    shortfalls = [n_missing for n_missing in missing_by_unit.values() if n_missing > 0]
    return len(shortfalls), max(shortfalls, default=0)


def rater_progress(study: Study) -> pd.DataFrame:
    """Return a row per annotator: `rater_id, state, answers, skipped, open, median_seconds, hours,
    last_answer`. `state` is "excluded", "working" (has a task with a running lease), "finished" (no
    item is left for them) or "away"; `hours` is the time spent on `answers`, repeats included.
    """
    settings = study.config.annotation
    n_raters, max_units = settings.raters_per_unit, settings.units_per_rater
    holders = _holder_counts(study).items()
    free_keys = {key for key, states in holders if sum(states.values()) < n_raters}
    is_open = sa.case((sa.and_(claims.c.state == "open", _is_held(study)), 1), else_=0)
    query = sa.select(claims.c.rater_id, sa.func.sum(is_open)).group_by(claims.c.rater_id)
    open_by_rater = {rater: int(tasks) for rater, tasks in study.store.rows(query)}
    excluded = oversight(study.store).exclusions
    labelled = _human_labels(study)
    rows = []
    for rater in sorted({*labelled["rater_id"], *open_by_rater}):
        answers, n_open = labelled[labelled["rater_id"] == rater], open_by_rater.get(rater, 0)
        answered_keys = {*zip(answers["unit_id"], answers["rubric"], strict=True)}
        has_finished = 0 < max_units <= answers["unit_id"].nunique() or free_keys <= answered_keys
        state = "working" if n_open else ("finished" if has_finished else "away")
        row = {"rater_id": rater, "state": "excluded" if rater in excluded else state}
        row |= {"answers": len(answers), "skipped": sum(answers["label"] == ""), "open": n_open}
        row["median_seconds"] = answers["seconds"].median()
        row["hours"] = answers["seconds"].sum() / 3600
        row["last_answer"] = answers["created_at"].max() if len(answers) else ""
        rows.append(row)
    columns = ["rater_id", "state", "answers", "skipped", "open", "median_seconds", "hours"]
    return pd.DataFrame(rows, columns=[*columns, "last_answer"])


def _human_labels(study: Study) -> pd.DataFrame:
    """Return `people_labels` of annotators alone."""
    people = people_labels(study)
    return people[people["rater_kind"] == "human"]


def _is_held(study: Study) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the claim is answered, or open with a running lease."""
    since = minutes_ago(study.config.annotation.lease_minutes)
    is_running = sa.and_(claims.c.state == "open", claims.c.claimed_at >= since)
    is_accepted = accepted_text(claims, study.accepted_hashes())
    return sa.and_(is_accepted, sa.or_(claims.c.state == "labelled", is_running))


WINDOW_HOURS = 24  # that a forecast extrapolates: a whole day, so that nights are included
_MIN_HOURS, _MIN_LABELS = 2, 20  # fewest hours and labels from which an end is forecast
_MAX_TIME = timedelta(days=36_500)  # later dates cannot be represented


@dataclass(frozen=True)
class Forecast:
    """The rest of the labelling: labels `done` of those `wanted`, the `hours` of work for the
    others (NaN before any label), and the end (UTC) at the pace of the last day's `annotators`.
    If there were none, nobody has labelled for `idle_days`.
    """

    done: int
    wanted: int
    hours: float = math.nan
    annotators: int = 0
    until: datetime | None = None
    idle_days: int = 1

    @property
    def labels_left(self) -> int:
        """Labels that are still to be given."""
        return self.wanted - self.done

    @property
    def work(self) -> str:
        """Time of the work that is left, such as "42 hours"; a dash where it is not known."""
        if self.hours < 2:
            return number_of(math.ceil(60 * self.hours), "minute")
        return DASH if math.isnan(self.hours) else number_of(round(self.hours), "hour")

    @property
    def end(self) -> str:
        """The annotators and the end, such as "3 annotators will need until Friday 17:00 UTC"."""
        if not self.annotators:
            return written("progress.nobody", days=number_of(self.idle_days, "day"))
        annotators = number_of(self.annotators, "annotator")
        if self.until is None:
            return written("progress.some", annotators=annotators, hours=WINDOW_HOURS)
        day, is_near = self.until, self.until - datetime.now(UTC) < timedelta(days=6)
        until = f"{day:%A %H}:00 UTC" if is_near else f"{day.day} {day:%B %Y}"
        return written("progress.until", annotators=annotators, until=until)


def forecast(study: Study, now: datetime | None = None) -> Forecast:
    """Extrapolate the labels of the last `WINDOW_HOURS`, or of all hours since the first label,
    without hidden repeats and excluded raters.
    """
    now = now or datetime.now(UTC)
    progress = rubric_progress(study)
    done, wanted = int(progress["done"].sum()), int(progress["wanted"].sum())
    hours = float(progress["hours_left"].sum(min_count=len(progress)))  # NaN if any is not known
    people = _human_labels(study)
    is_excluded = people["rater_id"].isin(list(oversight(study.store).exclusions))
    people = people[(people["draw"] == 0) & ~is_excluded]
    times = pd.to_datetime(people["created_at"], utc=True, format="ISO8601", errors="coerce")
    hours_ago = (now - times).dt.total_seconds() / 3600  # NaN where a label has no time
    recent = people[(hours_ago >= 0) & (hours_ago < WINDOW_HOURS)]
    idle_days = max(1, int(hours_ago.min() // 24)) if hours_ago.notna().any() else 1
    without_end = Forecast(done, wanted, hours, recent["rater_id"].nunique(), idle_days=idle_days)
    window_hours = min(hours_ago.max(), WINDOW_HOURS)
    if without_end.labels_left <= 0 or window_hours < _MIN_HOURS or len(recent) < _MIN_LABELS:
        return without_end
    time_needed = timedelta(hours=without_end.labels_left * window_hours / len(recent))
    return replace(without_end, until=now + min(time_needed, _MAX_TIME))


def time_left(outlook: Forecast) -> str:
    """Return a sentence on the work that is left and the time at which it ends."""
    if not outlook.wanted:
        return written("progress.nothing")
    if outlook.labels_left <= 0:
        return written("progress.done")
    counts = {"left": outlook.labels_left, "wanted": outlook.wanted}
    if math.isnan(outlook.hours):
        return written("progress.left_unknown", **counts)
    return written("progress.left", work=outlook.work, end=outlook.end, **counts)


# The work that a study asks of annotators, estimated before anyone has labelled

WORDS_PER_MINUTE = 238
"""Silent reading of English prose by adults (Brysbaert 2019, J. of Memory and Language 109)."""
SECONDS_TO_DECIDE = 5  # an assumption


@dataclass(frozen=True)
class RubricLoad:
    """The work that a rubric asks of annotators."""

    rubric: str
    units: int
    raters: int
    words: int  # of the responses of all units; prompts are left out

    @property
    def judgments(self) -> int:
        """Number of labels wanted."""
        return self.units * self.raters

    @property
    def hours(self) -> float:
        """Time of all annotators together."""
        reading = self.raters * self.words / WORDS_PER_MINUTE / 60
        return reading + self.judgments * SECONDS_TO_DECIDE / 3600


def workload(study: Study) -> tuple[RubricLoad, ...]:
    """Return the work for every rubric that people label; empty before there are responses."""
    sampled = set(study.store.sample())
    labelled_subjects = set(study.config.annotation.subjects)
    responses = study.store.responses()
    responses = responses[responses["pair_id"].isin(sampled)]
    if labelled_subjects:
        responses = responses[responses["subject"].isin(labelled_subjects)]
    if responses.empty:
        return ()
    words = sum(len(text.split()) for text in responses["response"])
    raters = study.config.annotation.raters_per_unit
    return tuple(
        RubricLoad(rubric.name, len(responses) // (2 if rubric.has_sides else 1), raters, words)
        for rubric in study.labelled_rubrics()
    )


def annotator_minutes(study: Study) -> float:
    """Return the minutes of work for one annotator at most; 0 before there are responses."""
    minutes = sum(60 * load.hours / load.raters for load in workload(study))  # for all units
    max_units = study.config.annotation.units_per_rater  # 0: no limit
    n_units = len({unit for unit, _ in SessionDesign(study).questions})
    return minutes * (max_units / n_units) if 0 < max_units < n_units else minutes
