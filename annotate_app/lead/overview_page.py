"""The lead's pages on how the study goes: the overview, with the next step and the verdicts in the
report's own words; progress; agreement.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.charts import ROLES, SERIES, SHAPES, Spec, chart_spec
from evenhand.analysis.report.figures import ALL, ALL_BINARY
from evenhand.analysis.report.source import GROUPS, rater_title
from evenhand.analysis.requirement import clusters_for_width
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import Verdict, limits_of
from evenhand.analysis.verdicts.ranking import deciding_keys
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.drawn import block, heading, plain, show
from evenhand.annotate_app.lead.parts.drawing import (
    BoardCard,
    board,
    rater_page,
    records,
    show_chart,
    show_drawn,
    show_funnel,
    show_table,
)
from evenhand.annotate_app.lead.parts.live_figures import LiveFigures, latest, latest_figures
from evenhand.annotate_app.logins.lead_login import place_of, require
from evenhand.lazy import pd
from evenhand.reporting.live_figures import count_look
from evenhand.reporting.workers import apart
from evenhand.study import Study
from evenhand.study.access.accounts import Visitor
from evenhand.study.desk.claims import oversight
from evenhand.study.lead.disagreements import queue_length, raised_flags
from evenhand.study.lead.progress import (
    FEWEST_HOURS,
    FEWEST_LABELS,
    Forecast,
    forecast,
    labels_over_time,
    rater_progress,
    rubric_progress,
    time_left,
)
from evenhand.study.prompts.pairs import cluster_noun
from evenhand.study.session.sessions import Costs, costs, grader_costs
from evenhand.study.workspace import hours_since_backup
from evenhand.texts import DASH, written

# Links from one of the lead's pages to another, with what is to be chosen there; and tiles, whose
# number leads to the rows that it counts.


@dataclass(frozen=True)
class Way:
    """A sentence or number that leads to the page with this title. `chosen` are the values that
    fields take there, by their keys; such a field is bound to the address.
    """

    title: str
    said: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def show(self) -> None:
        page = st.Page(lambda: None, title=self.title, url_path=place_of(self.title))
        st.page_link(page, label=plain(self.said), query_params=self.chosen)


@dataclass(frozen=True)
class Tile:
    """A question, the number that answers it, and how to read it."""

    question: str
    answer: Way
    said: str = ""


def show_tiles(tiles: Sequence[Tile]) -> None:
    """Draw tiles beside one another, as many as fit."""
    with st.container(key="tiles"):
        for number, tile in enumerate(tiles):
            with st.container(key=f"tile-{number}"):
                show(block(tile.question, "question"))
                tile.answer.show()
                show(block(tile.said, "said"))


_EVERY = "5s"
_FAR = timedelta(days=30)
_FAILED = {"do_not_use", "disagrees_with_reference"}


def show_overview(study: Study) -> None:
    require(study, "lead")
    _cockpit(study)


@st.fragment(run_every=_EVERY)
def _cockpit(study: Study) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    ends, paid = latest(study, forecast), latest(study, costs)
    step = next_step(study, figures, ends)
    with st.container(key="next-step"):
        st.text("Next step")
        if step:
            step.show()
        else:
            _ask_for_verdict(study)
    show_tiles(
        [
            _how_far(study, ends),
            Tile("Until when?", Way("Progress", _until(ends)), how_sure(ends)),
            _what_it_costs(paid),
            _whose_work(study, figures),
            _in_the_way(study, figures),
            _is_safe(study),
        ]
    )
    to_do = waiting(study, figures)
    st.header("Waiting for you", anchor=False)
    with st.container(key="waiting"):
        for way in to_do:
            way.show()
    if not to_do:
        st.text(written("lead.nothing_waits"))
    _verdicts(study, figures)
    if step:
        _ask_for_verdict(study)
    st.header("Who has come how far", anchor=False)
    rubrics = latest(study, rubric_progress)
    st.text(time_left(rubrics))
    show_funnel(study, place_of("Progress"))
    _by_rubric(study, rubrics)


# ---- the tiles ----------------------------------------------------------------------------------


def _how_far(study: Study, ends: Forecast) -> Tile:
    states = latest(study, rater_progress)["state"].tolist()
    share = ends.done / ends.wanted if ends.wanted else math.nan
    said = written("cockpit.raters", share=share, working=states.count("working"), came=len(states))
    way = Way("Progress", written("cockpit.labels", done=ends.done, wanted=ends.wanted))
    return Tile("How far?", way if ends.wanted else Way("Progress", DASH), said)


def _until(ends: Forecast) -> str:
    if ends.wanted and ends.left <= 0:
        return written("cockpit.all_given")
    return DASH if ends.at is None else _said(ends.at)


def how_sure(ends: Forecast) -> str:
    """Return the range of the end and what it rests on, or why there is none."""
    if not ends.wanted:
        return written("progress.nothing")
    if ends.left <= 0:
        return written("progress.done")
    if not ends.hours:
        return written("cockpit.no_pace")
    if ends.at is None or ends.earliest is None:
        least = {"labels": FEWEST_LABELS, "hours": FEWEST_HOURS}
        return written("cockpit.short_pace", recent=ends.recent, **least)
    about = {"earliest": _said(ends.earliest), "hours": ends.hours}
    if ends.latest is None:
        return written("cockpit.uneven_pace", **about)
    return written("cockpit.pace", latest=_said(ends.latest), **about)


def _said(at: datetime) -> str:
    """A moment to the hour, or a date where it is far away."""
    if at - datetime.now(UTC) > _FAR:
        return f"{at.day} {at:%b %Y}"
    at += timedelta(minutes=30)
    return f"{at:%a} {at.day} {at:%b}, {at.hour}:00 UTC"


def _what_it_costs(paid: Costs) -> Tile:
    said, way = [], Way("Progress", DASH)
    if paid.owed is not None:
        amount = written("cockpit.amount", amount=paid.owed, currency=paid.currency)
        way = Way("Sessions", amount)
    elif paid.graders_usd is not None:
        amount = written("cockpit.amount", amount=paid.graders_usd, currency="USD")
        way = Way("Progress", amount)
    if paid.owed is None:
        said.append(written("cockpit.no_pay"))
    elif paid.expected is None:
        said.append(written("cockpit.no_expected"))
    else:
        said.append(written("cockpit.expected", amount=paid.expected, currency=paid.currency))
    if paid.undecided:
        said.append(written("cockpit.undecided", count=paid.undecided))
    if paid.graders_usd is not None:
        said.append(written("cockpit.graders", amount=paid.graders_usd))
    if paid.unpriced:
        said.append(written("cockpit.unpriced", count=paid.unpriced))
    return Tile("At what cost?", way, " ".join(said))


def _whose_work(study: Study, figures: LiveFigures | None) -> Tile:
    question = "Whose work needs a look?"
    if figures is None:
        return Tile(question, Way("Raters", DASH), written("cockpit.not_yet"))
    names = suspects(study, figures)
    if not names:
        return Tile(question, Way("Raters", written("cockpit.nobody")))
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return Tile(question, Way("Raters", written("cockpit.flagged", count=len(names))), shown)


def suspects(study: Study, figures: LiveFigures) -> list[str]:
    """The raters whose work is flagged and who are not excluded."""
    flagged = figures.quality[figures.quality["flagged"] != ""]["rater_id"].tolist()
    excluded = oversight(study.store).exclusions
    return [rater for rater in flagged if rater not in excluded]


def _in_the_way(study: Study, figures: LiveFigures | None) -> Tile:
    question, verdicts = "What stands in the way?", figures.report["verdicts"] if figures else []
    if not verdicts:
        why = written("lead.no_verdict" if figures else "cockpit.not_yet")
        return Tile(question, Way("Agreement", DASH), why)
    undecided = [each for each in verdicts if each["verdict"] == "cannot_tell"]
    decided = written(
        "cockpit.decided", decided=len(verdicts) - len(undecided), graders=len(verdicts)
    )
    return Tile(question, Way("Agreement", decided), obstacle(study, undecided))


def obstacle(study: Study, undecided: list[Verdict]) -> str:
    """Return what keeps most of these verdicts open, and how much more would close them."""
    if not undecided:
        return written("cockpit.no_obstacle")
    if any(is_unseen(each) for each in undecided):
        return written("cockpit.unseen")
    more = [each["more_clusters"] for each in undecided if each["more_clusters"]]
    if more:
        noun = cluster_noun(study.store.pairs(), study.config.analysis.cluster)
        return written("cockpit.more", more=max(more), noun=noun, count=len(more))
    return written("lead.reason", reason=undecided[0]["reason"])


def _is_safe(study: Study) -> Tile:
    hours = hours_since_backup(study.store)
    if hours is None:
        return Tile("Is it safe?", Way("Log", written("cockpit.unsafe")), written("lead.no_backup"))
    said = written("doctor.backup", hours=hours)
    return Tile("Is it safe?", Way("Log", written("cockpit.backup", hours=hours)), said)


def is_unseen(verdict: Verdict) -> bool:
    """Return True if the verdict is open because nobody has asked for it on these labels."""
    return verdict["next"] is not None and verdict["next"]["kind"] == "look"


# ---- the next step ------------------------------------------------------------------------------


def next_step(study: Study, figures: LiveFigures | None, ends: Forecast) -> Way | None:
    """Return what the lead had best do now; None where that is to ask for a verdict."""
    if oversight(study.store).paused:
        return Way("Sessions", written("cockpit.go_on"))
    if not ends.wanted:
        return Way("Progress", written("cockpit.no_units"))
    if latest(study, rater_progress).empty:
        return Way("Sessions", written("lead.invite_first"))
    if figures is not None and (names := suspects(study, figures)):
        said = written("cockpit.look_at", rater=names[0])
        return Way("Raters", said, {"one_rater": names[0]})
    if flags := sum(flag.is_open for flag in raised_flags(study)):
        return Way("Flags", written("lead.to_do_flags", count=flags))
    verdicts = figures.report["verdicts"] if figures else []
    titles = {name: rubric.title for name, rubric in study.rubrics.items()}
    if is_over(ends, verdicts):
        return after_the_verdicts(verdicts, titles)
    if ends.left > 0:
        return Way("Progress", written("cockpit.wait"))
    if count := latest(study, queue_length):
        return Way("Adjudication", written("lead.to_do_adjudication", count=count))
    if any(map(is_unseen, verdicts)):
        return None
    undecided = [each for each in verdicts if each["verdict"] == "cannot_tell"]
    sampled, total = len(study.store.sample()), len(study.store.pairs())
    if any(each["more_clusters"] for each in undecided) and sampled < total:
        return Way("Sessions", written("cockpit.enlarge"))
    return after_the_verdicts(verdicts, titles)


def is_over(ends: Forecast, verdicts: list[Verdict]) -> bool:
    """Return True if nobody labels any more and every grader has its verdict: what is left over
    of the labels wanted decides nothing.
    """
    decided = all(each["verdict"] != "cannot_tell" for each in verdicts)
    return bool(verdicts) and decided and not ends.hours


def after_the_verdicts(verdicts: list[Verdict], titles: Mapping[str, str]) -> Way:
    """Return the way to the report; it names the first of these rubrics on which no grader may be
    used.
    """
    for rubric, title in titles.items():
        found = {each["verdict"] for each in verdicts if each["rubric"] == rubric}
        if found and found <= _FAILED:
            return Way("Export", written("cockpit.better", rubric=title))
    return Way("Export", written("cockpit.report"))


def _ask_for_verdict(study: Study) -> None:
    """A look at the verdict: only on request, never as a side effect, as each look is counted."""
    st.button("Ask for a verdict now", on_click=lead_callback(study, "look", _count_look))
    show_outcome("look")
    st.text(written("lead.look"))


def _count_look(study: Study, who: Visitor) -> None:
    apart(count_look, study.folder.resolve())


def waiting(study: Study, figures: LiveFigures | None) -> list[Way]:
    """What waits for the lead's decision, each with the page where it is made."""
    counts = {
        "adjudication": latest(study, queue_length),
        "flags": sum(flag.is_open for flag in raised_flags(study)),
        "raters": len(suspects(study, figures)) if figures else 0,
    }
    found = [
        Way(name.capitalize(), written(f"lead.to_do_{name}", count=count))
        for name, count in counts.items()
        if count
    ]
    if missing := latest(study, Study.missing_images):
        said = {"count": len(missing), "first": missing[0]}
        found.append(Way("Rubrics", written("lead.to_do_images", **said)))
    if latest(study, rater_progress).empty:
        found.append(Way("Sessions", written("lead.invite_first")))
    if oversight(study.store).paused:
        found.append(Way("Sessions", written("lead.paused")))
    return found


# ---- verdicts and progress ----------------------------------------------------------------------


def _verdicts(study: Study, figures: LiveFigures | None) -> None:
    st.header("Verdicts so far", anchor=False)
    if figures is None:
        return
    verdicts = figures.report["verdicts"]
    if not verdicts:
        st.text(written("lead.no_verdict"))
    titles = {name: rubric.title for name, rubric in study.rubrics.items()}
    boards = []
    for rubric in dict.fromkeys(each["rubric"] for each in verdicts):
        own = [each for each in verdicts if each["rubric"] == rubric]
        cards = [verdict_card(each, figures.results) for each in own]
        boards.append(board(titles.get(rubric, rubric), cards))
    show(f'<div class="evenhand-boards">{"".join(boards)}</div>')
    for limit in limits_of(verdicts):
        st.text(limit)


def verdict_card(verdict: Verdict, results: pd.DataFrame) -> BoardCard:
    """Make the board's card of one grader on one rubric."""
    title = TITLES[verdict["verdict"]]
    said = [written("lead.reason", reason=verdict["reason"])] if verdict["reason"] else []
    estimates = results.set_index(list(RESULTS_KEY))["estimate"]
    kappas = [estimates.get(tuple(key), math.nan) for key in verdict["kappas"]]
    if len(kappas) == 2 and not any(map(math.isnan, kappas)):
        said.append(written("lead.kappas", grader=kappas[0], people=kappas[1]))
    words = f"{title.icon} {title.words}"
    return BoardCard(verdict["verdict"], words, verdict["grader"], said, verdict["sentence"])


def _by_rubric(study: Study, rubrics: pd.DataFrame) -> None:
    titles = {name: rubric.title for name, rubric in study.rubrics.items()}
    show_table(
        rubrics.assign(rubric=rubrics["rubric"].map(titles)),
        "By rubric",
        "rubric wanted done open",
        headings={"wanted": "Labels wanted", "done": "Given"},
        ways=dict.fromkeys(("wanted", "done", "open"), lambda _: place_of("Progress")),
    )


# Progress of the labelling.

_PROGRESS_EVERY = "10s"
_PLACES = {
    "type": "quantitative",
    "title": "places",
    "stack": True,
    "axis": {"tickCount": 6},
}
_RUBRIC = {"type": "nominal", "title": None}
_STATES = {"done": "labelled", "open": "given out", "free": "free"}


def show_progress(study: Study) -> None:
    require(study, "lead")
    _progress(study)


@st.fragment(run_every=_PROGRESS_EVERY)
def _progress(study: Study) -> None:
    require(study, "lead")
    rubrics, raters = latest(study, rubric_progress), latest(study, rater_progress)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
    st.text(time_left(rubrics))
    show_funnel(study)
    show_chart(places_chart(rubrics.to_dict("records")))
    show_table(
        rubrics,
        "Places by rubric: one for every rater that a unit wants",
        "rubric units wanted done open free median_seconds hours_left",
        headings={"wanted": "Places", "done": "Labelled"},
        folded=True,
    )
    if raters.empty:
        st.text(written("lead.nobody_began"))
        return
    counts, step = latest(study, labels_over_time)
    show(heading(f"Labels by the {step}"))
    show_chart(timeline_chart(counts, step))
    columns = "rater_id state answers skipped open median_seconds hours last_answer"
    ways = {"rater_id": rater_page}
    show_table(raters, "By rater", columns, headings={"open": "Open"}, ways=ways)
    totals = latest(study, grader_costs)
    if not totals.empty:
        columns = "rater_id rubric units labelled unscored tokens_input tokens_output cost_usd"
        show_table(totals, "By grader", columns, headings={"rater_id": "Grader"}, folded=True)


def timeline_chart(counts: pd.DataFrame, step: str) -> Spec:
    """Bars of labels by the hour or day, in UTC."""
    unit = "utcyearmonthdate" + ("hours" if step == "hour" else "")
    return chart_spec(
        records(counts),
        {
            "description": f"Labels by the {step}, by rubric.",
            "mark": "bar",
            "height": 280,
            "encoding": {
                "x": {
                    "field": "start", "type": "temporal", "timeUnit": unit,
                    "title": f"{step} (UTC)",
                },
                "y": {
                    "field": "labels", "type": "quantitative", "title": "labels", "stack": True
                },
                "color": {"field": "rubric", **_RUBRIC, "scale": {"range": SERIES}},
                "tooltip": [{"field": name} for name in ("start", "rubric", "labels")],
            },
        },
    )  # fmt: skip


def places_chart(rubrics: list[dict[Hashable, Any]]) -> Spec:
    """Bars of places labelled, given out and free, by rubric."""
    values = [
        {"rubric": row["rubric"], "state": word, "places": row[state], "at": at}
        for row in rubrics
        for at, (state, word) in enumerate(_STATES.items())
    ]
    colours = [SERIES[0], SERIES[4], ROLES["rule"]]
    states = {"domain": list(_STATES.values()), "range": colours}
    return chart_spec(
        values,
        {
            "description": "Places labelled, given out and free, by rubric; "
            "the table has the numbers.",
            "mark": "bar",
            "height": {"step": 28},
            "encoding": {
                "y": {"field": "rubric", **_RUBRIC},
                "x": {"field": "places", **_PLACES},
                "order": {"field": "at", "type": "quantitative"},
                "color": {"field": "state", "type": "nominal", "title": None, "scale": states},
                "tooltip": [{"field": name} for name in ("rubric", "state", "places")],
            },
        },
    )


# Agreement among people, and of each grader with them, while labels come in.

_AGREEMENT_EVERY = "3s"
_UNTIL = {
    "type": "temporal",
    "title": "labels until (UTC)",
    "scale": {"type": "utc"},
    "axis": {"tickCount": 8},
}
_STATISTICS = ("observed_agreement", *DECIDING_KAPPAS, CEILING)


def show_agreement(study: Study) -> None:
    require(study, "lead")
    wanted = st.number_input(
        "Wanted half-width of an interval of kappa", 0.01, 0.5, 0.05, 0.01, key="half_width"
    )
    _agreement(study, wanted)


@st.fragment(run_every=_AGREEMENT_EVERY)
def _agreement(study: Study, half_width: float) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    if figures is None:
        return
    verdicts = figures.report["verdicts"]
    main = main_rows(figures.results, verdicts)
    if main.empty:
        st.text(written("lead.no_agreement"))
        return
    st.header("Is it enough?", anchor=False)
    noun = cluster_noun(study.store.pairs(), study.config.analysis.cluster)
    for sentence in enough(main, half_width, noun):
        st.text(sentence)
    if verdicts:
        st.header("Verdicts so far", anchor=False)
    for verdict in verdicts:
        st.text(verdict["sentence"])
    st.header("Agreement", anchor=False)
    show_drawn(figures.forests)
    caption = f"Main figures with 95% CIs. {written('verdict.bounds')}"
    columns = "rubric who figure estimate low high n_units n_clusters note"
    show_table(main, caption, columns, folded=True)
    st.header("As labels came in", anchor=False)
    show_chart(over_time_chart(figures.over_time))
    show_table(
        figures.over_time,
        "People's kappa with 95% intervals, as labels came in",
        "rubric until labels n_units estimate low high",
        headings={"n_units": "Units labelled twice", "estimate": "People's kappa"},
        folded=True,
    )
    for note in figures.report["study"]["notes"]:
        st.text(note)


def main_rows(results: pd.DataFrame, verdicts: Iterable[Verdict] = ()) -> pd.DataFrame:
    """The rows that matter while labels come in and those that decide the verdicts, people with
    each other first, with `who` and `figure` in words.
    """
    usual = (
        (results["rater_a"] == "humans")
        & (results["subset"] == ALL)
        & (results["at"] == "")
        & results["statistic"].isin(_STATISTICS)
    )
    found = (deciding_keys(each["verdict"], each["evidence"]) for each in verdicts)
    keys = [key for each in found for key in each if key]
    rows = results[usual | results.set_index(list(RESULTS_KEY)).index.isin(keys)]
    rows = rows.assign(
        who=[rater_title(grader) if grader else GROUPS["humans"] for grader in rows["rater_b"]],
        figure=[
            entry_for(name).label + (", binary verdict" if subset == ALL_BINARY else "")
            for name, subset in zip(rows["statistic"], rows["subset"], strict=True)
        ],
        people_first=rows["rater_b"] != "",
    )
    return rows.sort_values(["rubric", "statistic", "people_first"], kind="stable")


def enough(main: pd.DataFrame, half_width: float, noun: str) -> list[str]:
    """Return for every rubric the number of clusters (each a `noun`) still to label for the wanted
    half-width of people's kappa, as a sentence.
    """
    sentences = []
    people = main[(main["rater_b"] == "") & main["statistic"].isin(DECIDING_KAPPAS)]
    for row in people.drop_duplicates("rubric", keep="last").to_dict("records"):
        rubric, known = row["rubric"], (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], half_width, math.inf)
        if more is None:
            sentences.append(f"{rubric}: too few labels to say.")
        elif more == 0:
            sentences.append(f"{rubric}: enough. People's kappa is known to within {known:.2f}.")
        else:
            sentences.append(
                f"{rubric}: label about {more} more {noun}s to know people's kappa to within "
                f"{half_width:.2f}; it is known to within {known:.2f}."
            )
    return sentences


def over_time_chart(course: pd.DataFrame) -> Spec:
    """People's kappa by rubric, after each further share of their labels."""
    kappa = {"type": "quantitative", "title": "people's kappa", "scale": {"zero": False}}
    rubric: Spec = {"field": "rubric", **_RUBRIC}
    estimate = {"field": "estimate", **kappa}
    return chart_spec(
        records(course.dropna(subset=["estimate"])),
        {
            "description": "People's kappa with 95% intervals as labels came in; "
            "the table has it all.",
            "height": 320,
            "encoding": {
                "x": {"field": "until", **_UNTIL},
                "color": rubric | {"scale": {"range": SERIES}},
            },
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {"y": {"field": "low", **kappa}, "y2": {"field": "high"}},
                },
                {"mark": {"type": "line"}, "encoding": {"y": estimate}},
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"y": estimate, "shape": rubric | {"scale": {"range": SHAPES}}},
                },
            ],
        },
    )
