"""The frame around the lead's pages: the way to each, what the study is called, the way out. And
the pages on how the study goes: the overview, with the next step and the verdicts in the report's
own words; progress; agreement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.components.v2 import component

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.report.source import ALL, ALL_BINARY, GROUPS, rater_title
from evenhand.analysis.requirement import clusters_for_width
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import (
    Verdict,
    best_first,
    deciding_keys,
    limits_of,
    rank_graders,
)
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.html_texts import block, show, show_complaint
from evenhand.annotate_app.lead.adjudication_page import (
    show_adjudication,
    show_disagreements,
    show_items,
    show_least_agreed,
)
from evenhand.annotate_app.lead.new_study_page import show_new_study
from evenhand.annotate_app.lead.parts import (
    LiveFigures,
    PageLink,
    current_figures,
    latest,
    latest_figures,
    page_of,
    show_drawn,
    show_table,
    stand_by,
)
from evenhand.annotate_app.lead.raters_page import (
    show_accounts,
    show_export,
    show_flags,
    show_log,
    show_raters,
    show_sessions,
)
from evenhand.annotate_app.lead.settings_page import (
    show_rubrics,
    show_settings,
    show_texts,
    show_training,
)
from evenhand.annotate_app.logins import (
    FIRST_PLACE,
    LOGIN,
    hidden_page,
    leave,
    place_of,
    present_place,
    require,
)
from evenhand.annotate_app.payload import app_files, typesetter
from evenhand.annotate_app.sites import present_site, sites
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting.report import agreement_of_pairs, count_look
from evenhand.reporting.workers import run_apart
from evenhand.study import Study
from evenhand.study.access import LINK_PARAMETER, Role
from evenhand.study.desk.claims import oversight
from evenhand.study.lead.disagreements import queue_length, raised_flags
from evenhand.study.lead.progress import (
    Forecast,
    data_version,
    forecast,
    places_without_annotator,
    rater_progress,
    rubric_progress,
    time_left,
)
from evenhand.study.prompts.pairs import cluster_noun
from evenhand.study.session.sessions import Costs, costs, grader_costs
from evenhand.study.settings.study_toml import START
from evenhand.study.workspace import hours_since_backup
from evenhand.texts import DASH, number_of, written


class Tile(NamedTuple):
    """A question, the number that answers it, which leads to what it counts, and how to read it."""

    question: str
    answer: PageLink
    note: str = ""


_FAILED = {"do_not_use", "disagrees_with_reference"}


@st.fragment(run_every="5s")
def show_overview(study: Study) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    is_current = figures is not None and figures.version == data_version(study)
    verdicts, age = _verdicts(figures), "current" if is_current else "older"
    if figures is not None:
        with st.container(key=f"advice-{age}"):
            advice = figures.report["study"]["recommendations"].values()
            lines = [block(sentence, "advice") for sentence in advice]
            show(*lines or [block(written("lead.no_verdict"))])
    ends, to_do = latest(study, forecast), waiting(study, figures)
    step = next_step(study, figures, ends, to_do)
    with st.container(key="next-step"):
        st.text("Next step")
        if step:
            step.show()
        else:
            _ask_for_verdict(study)
    if ends.left > 0 and is_decided(verdicts):
        st.text(written("cockpit.decided", left=ends.left))
    tiles = [_progress_tile(study, ends), _end_tile(ends), _cost_tile(latest(study, costs))]
    tiles += [_raters_tile(study, figures), _backup_tile(study)]
    with st.container(key="tiles"):
        for number, tile in enumerate(tiles):
            with st.container(key=f"tile-{number}"):
                show(block(tile.question, "question"))
                tile.answer.show()
                show(block(tile.note, "said"))
    st.header("Needs your attention", anchor=False)
    with st.container(key="waiting"):
        for link in to_do.values():
            link.show()
    if not to_do:
        st.text(written("lead.nothing_waits"))
    if figures is not None and verdicts:
        with st.container(key=f"verdicts-{age}"):
            _show_verdicts(figures, verdicts)
    if step:
        _ask_for_verdict(study)


# ---- the tiles ----------------------------------------------------------------------------------


def _progress_tile(study: Study, ends: Forecast) -> Tile:
    states = latest(study, rater_progress)["state"].tolist()
    share = ends.done / ends.wanted if ends.wanted else math.nan
    note = written("cockpit.raters", share=share, working=states.count("working"), came=len(states))
    number = written("cockpit.labels", done=ends.done, wanted=ends.wanted) if ends.wanted else DASH
    return Tile("Progress", PageLink("Progress", number), note)


def _end_tile(ends: Forecast) -> Tile:
    if not ends.wanted or math.isnan(ends.hours):
        return Tile("Time left", PageLink("Progress", DASH), time_left(ends))
    if ends.left <= 0:
        return Tile("Time left", PageLink("Progress", written("cockpit.nobody")))
    end = f"{ends.end[:1].upper()}{ends.end[1:]}."
    return Tile("Time left", PageLink("Progress", written("progress.work", work=ends.work)), end)


def _cost_tile(paid: Costs) -> Tile:
    notes, answer = [written("cockpit.no_pay")], PageLink("Progress", DASH)
    if paid.owed is not None:
        amount = written("cockpit.amount", amount=paid.owed, currency=paid.currency)
        answer, notes = PageLink("Sessions", amount), []
        if paid.graders_usd is not None:
            notes.append(written("cockpit.graders", amount=paid.graders_usd))
    elif paid.graders_usd is not None:
        amount = written("cockpit.amount", amount=paid.graders_usd, currency="USD")
        answer, notes = PageLink("Progress", amount), [written("cockpit.graders_only")]
    if paid.unpriced:
        notes.append(written("cockpit.unpriced", count=paid.unpriced))
    return Tile("Cost", answer, " ".join(notes))


def _raters_tile(study: Study, figures: LiveFigures | None) -> Tile:
    number, note = DASH, written("cockpit.not_yet")
    if figures is not None:
        names = suspects(study, figures)
        number = written("cockpit.flagged" if names else "cockpit.nobody", count=len(names))
        note = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return Tile("Annotators to review", PageLink("Annotators", number), note)


def suspects(study: Study, figures: LiveFigures) -> list[str]:
    """The raters whose work is flagged and who are not excluded."""
    flagged = figures.quality[figures.quality["flagged"] != ""]["rater_id"].tolist()
    excluded = oversight(study.store).exclusions
    return [rater for rater in flagged if rater not in excluded]


def _backup_tile(study: Study) -> Tile:
    hours = hours_since_backup(study.store)
    age, note = written("cockpit.unsafe"), written("lead.no_backup")
    if hours is not None:
        age, note = written("cockpit.backup", hours=hours), written("doctor.backup", hours=hours)
    return Tile("Last backup", PageLink("Log", age), note)


def _verdicts(figures: LiveFigures | None) -> list[Verdict]:
    return figures.report["verdicts"] if figures else []


# ---- the next step ------------------------------------------------------------------------------


def next_step(
    study: Study, figures: LiveFigures | None, ends: Forecast, to_do: Mapping[str, PageLink]
) -> PageLink | None:
    """Return what the lead had best do now; None where that is to ask for a verdict."""
    if "paused" in to_do:
        return PageLink("Sessions", written("cockpit.go_on"))
    if not ends.wanted:
        return PageLink("Progress", written("cockpit.no_units"))
    if "invites" in to_do:
        return to_do["invites"]
    if figures is not None and (names := suspects(study, figures)):
        text = written("cockpit.look_at", rater=names[0])
        return PageLink("Annotators", text, {"one_rater": names[0]})
    verdicts = _verdicts(figures)
    if ends.left > 0 and not is_decided(verdicts):
        if "flags" in to_do:
            return to_do["flags"]
        _, missing = latest(study, places_without_annotator)
        invite = PageLink("Sessions", written("several.invite"))
        return invite if missing else PageLink("Progress", written("cockpit.wait"))
    # Open because a verdict was not asked for on these labels.
    if any(verdict["next"] and verdict["next"]["kind"] == "look" for verdict in verdicts):
        return None
    could_decide = any(
        verdict["verdict"] == "inconclusive" and verdict["more_clusters"] for verdict in verdicts
    )
    if could_decide and len(study.store.sample()) < len(study.store.pairs()):
        return PageLink("Sessions", written("cockpit.enlarge"))
    return after_the_verdicts(verdicts, figures.report["names"] if figures else {})


def is_decided(verdicts: Sequence[Verdict]) -> bool:
    """Return True if there are verdicts and none is inconclusive, so that the planned labels still
    missing decide nothing.
    """
    return bool(verdicts) and all(verdict["verdict"] != "inconclusive" for verdict in verdicts)


def after_the_verdicts(verdicts: Sequence[Verdict], names: Mapping[str, str]) -> PageLink:
    """Return the link to the report, naming the first rubric on which no grader may be used."""
    for rubric in dict.fromkeys(verdict["rubric"] for verdict in verdicts):
        outcomes = {verdict["verdict"] for verdict in verdicts if verdict["rubric"] == rubric}
        if outcomes <= _FAILED:
            return PageLink("Export", written("cockpit.better", rubric=names.get(rubric, rubric)))
    return PageLink("Export", written("cockpit.report"))


def _ask_for_verdict(study: Study) -> None:
    """Draw the button for a verdict: only on request, as each interim analysis is counted."""
    folder = study.folder.resolve()
    counting = lead_callback(study, "look", lambda study, _: run_apart(count_look, folder))
    st.button("Ask for a verdict now", on_click=counting)
    show_outcome("look")
    st.text(written("lead.look"))


_QUEUES = {"adjudication": "Adjudication", "flags": "Flags", "raters": "Annotators"}


def waiting(study: Study, figures: LiveFigures | None) -> dict[str, PageLink]:
    """Links to all that waits for the lead's decision, each to the page where it is made."""
    counts = {
        "adjudication": latest(study, queue_length),
        "flags": sum(flag.is_open for flag in raised_flags(study)),
        "raters": len(suspects(study, figures)) if figures else 0,
    }
    links = {
        name: PageLink(_QUEUES[name], written(f"lead.to_do_{name}", count=count))
        for name, count in counts.items()
        if count
    }
    if latest(study, rater_progress).empty:
        links["invites"] = PageLink("Sessions", written("lead.invite_first"))
    if oversight(study.store).paused:
        links["paused"] = PageLink("Sessions", written("lead.paused"))
    return links


def _show_verdicts(figures: LiveFigures, verdicts: Sequence[Verdict]) -> None:
    """Draw the table of graders by rubrics, and each verdict's own sentence on a click."""
    st.header("Verdicts", anchor=False)
    table, names = verdict_table(verdicts, figures.results), figures.report["names"]
    table["grader"] = table["grader"].replace(names)
    columns = {name: names.get(name, name) for name in table.columns}
    show_table(table, written("first.legend"), columns | {"grader": "Grader"})
    with st.expander(written("first.in_full")):
        for verdict in verdicts:
            st.text(verdict["sentence"])
    for limit in limits_of(verdicts):
        st.text(limit)


def verdict_table(verdicts: Sequence[Verdict], results: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each grader and, after `grader`, a column for each rubric: the verdict, both
    kappas where they are known, and what decided it.
    """
    estimates = results.set_index(list(RESULTS_KEY))["estimate"]
    graders = best_first(rank_graders(results, verdicts))
    rows = {grader: {"grader": grader} for grader in graders}
    for verdict in verdicts:
        title, grader = TITLES[verdict["verdict"]], verdict["grader"]
        kappas = [estimates.get(tuple(key), math.nan) for key in verdict["kappas"]]
        is_known = len(kappas) == 2 and not any(map(math.isnan, kappas))
        both = f"{kappas[0]:z.2f} vs {kappas[1]:z.2f}" if is_known else ""
        parts = filter(None, (f"{title.icon} {title.words}", both, verdict["reason"]))
        rows[grader][verdict["rubric"]] = "; ".join(parts)
    return pd.DataFrame([*rows.values()]).fillna(DASH)


# Progress of the labelling.


@st.fragment(run_every="10s")
def show_progress(study: Study) -> None:
    require(study, "lead")
    rubrics, raters = latest(study, rubric_progress), latest(study, rater_progress)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
    ends = latest(study, forecast)
    decided = ends.left > 0 and is_decided(_verdicts(current_figures(study)))
    if decided:
        st.text(written("cockpit.decided", left=ends.left))
    st.text(time_left(ends))
    units, more = latest(study, places_without_annotator)
    if more and not decided:
        items, annotators = number_of(units, "item"), number_of(more, "more annotator")
        with st.container(key="next-step"):
            st.text(written("progress.short", items=items, annotators=annotators))
            PageLink("Sessions", written("several.invite")).show()
    columns = "rubric units wanted done open free median_seconds hours_left"
    headings = {"wanted": "Planned labels", "done": "Given", "free": "Not assigned"}
    show_table(rubrics, "Labels by rubric", columns, headings=headings)
    if raters.empty:
        st.text(written("oversight.nobody"))
        return
    columns = "rater_id state answers skipped open median_seconds hours last_answer"
    names, links = study.config.names, {"rater_id": partial(page_of, "Annotators", "one_rater")}
    show_table(raters, "By annotator", columns, links=links, display_names=names)
    totals = latest(study, grader_costs)
    if not totals.empty:
        columns = "rater_id rubric units labelled unscored tokens_input tokens_output cost_usd"
        head = {"rater_id": "Grader"}
        show_table(totals, "By grader", columns, headings=head, folded=True, display_names=names)


# Agreement among people, and of each grader with them, while labels come in.


def _titles(study: Study) -> dict[str, str]:
    names = study.config.names
    return {name: names.get(name, rubric.title) for name, rubric in study.rubrics.items()}


_STATISTICS = ("observed_agreement", *DECIDING_KAPPAS, CEILING)


@st.fragment(run_every="3s")
def show_agreement(study: Study) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    _show_pairs(study)
    show_least_agreed(study, folded=figures is not None)
    if figures is None:
        return
    verdicts = _verdicts(figures)
    main = main_rows(figures.results, verdicts)
    if main.empty:
        st.text(written("lead.no_agreement"))
        return
    st.header("Precision so far", anchor=False)
    half_width = st.number_input(
        "Wanted precision: half-width of kappa's 95% CI", 0.01, 0.5, 0.05, 0.01
    )
    noun = cluster_noun(study.store.pairs(), study.config.analysis.cluster)
    main["rubric"] = main["rubric"].replace(_titles(study))
    for sentence in enough(main, half_width, noun):
        st.text(sentence)
    st.header("Graders compared with human agreement", anchor=False)
    show_drawn(figures.forests)
    caption = f"Main figures with 95% CIs. {written('verdict.bounds')}"
    columns = "rubric who figure estimate low high n_units n_clusters note"
    main = main.assign(who=main["who"].replace(figures.report["names"]))
    show_table(main, caption, columns, folded=True, display_names=figures.report["names"])
    for note in figures.report["study"]["notes"]:
        st.text(note)


def _show_pairs(study: Study) -> None:
    """A table of every two annotators for each rubric; columns go by the numbers of the rows."""
    called, titles, pairs = study.config.names, _titles(study), latest(study, agreement_of_pairs)
    if pairs:
        st.header("Kappa between each pair of annotators (shared items)", anchor=False)
    with st.container(key="pairs"):
        for rubric, (raters, n, kappa) in pairs.items():
            heads = {str(at): str(at) for at in range(1, len(raters) + 1)}
            rows = [{"": f"{at}. {called.get(name, name)}"} for at, name in enumerate(raters, 1)]
            for a, b in zip(*n.nonzero(), strict=True):
                at, number = max(0, kappa[a, b]), f"{kappa[a, b]:.2f}".replace("nan", DASH)
                drawn = f'<b style="--at: {at:.0%}">{number}</b> ({n[a, b]:,})'
                rows[a][str(b + 1)] = drawn * bool(a != b)
            table = pd.DataFrame(rows, columns=["", *heads]).fillna("")
            show_table(table, titles[rubric], {"": "Annotator"} | heads, html_columns=heads)


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
    keys = [
        key
        for verdict in verdicts
        for key in deciding_keys(verdict["verdict"], verdict["evidence"])
        if key
    ]
    rows = results[usual | results.set_index(list(RESULTS_KEY)).index.isin(keys)]
    rows = rows.assign(
        who=[rater_title(grader) if grader else GROUPS["humans"] for grader in rows["rater_b"]],
        figure=[
            entry_for(name).label.replace("κ", "kappa")
            + (", binary label" if subset == ALL_BINARY else "")
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
        facts = {"rubric": row["rubric"], "within": (row["high"] - row["low"]) / 2}
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], half_width, math.inf)
        facts |= {"more": more, "noun": noun, "wanted": half_width}
        state = "unknown" if more is None else "more" if more else "enough"
        sentences.append(written(f"lead.precision_{state}", **facts))
    return sentences


_marker = component(
    "evenhand_marker",
    html="<span hidden></span>",
    js=f"const TYPESETTER = new URL('{typesetter()[0]}', document.baseURI);\n"
    + app_files("panel/formulas.js", "lead/marker.js"),
)
"""Marks the page's entry among those beside it, and that above it; typesets formulas."""


@dataclass(frozen=True)
class _Page:
    title: str
    draw: Callable[[Study], None]
    group: str
    roles: tuple[Role, ...] = ("lead",)
    is_listed: bool = True
    """False for a page that is reached from the others of its group."""

    def show(self, study: Study) -> None:
        """Draw the page. Raises InputError unless the visitor has one of its roles."""
        require(study, *self.roles)
        self.draw(study)


PAGES = (
    _Page("Overview", show_overview, "Results"),
    _Page("Agreement", show_agreement, "Results"),
    _Page("Items", show_items, "Results"),
    _Page("Export", show_export, "Results"),
    _Page("Annotators", show_raters, "People"),
    _Page("Progress", show_progress, "People"),
    _Page("Sessions", show_sessions, "People"),
    _Page("Flags", show_flags, "Quality"),
    _Page("Adjudication", show_adjudication, "Quality", ("lead", "expert")),
    _Page("Disagreements", show_disagreements, "Quality"),
    _Page("Settings", show_settings, "Set-up"),
    _Page("Texts", show_texts, "Set-up", is_listed=False),
    _Page("Rubrics", show_rubrics, "Set-up", is_listed=False),
    _Page("Training and checks", show_training, "Set-up", is_listed=False),
    _Page("Accounts", show_accounts, "Set-up", is_listed=False),
    _Page("Log", show_log, "Set-up", is_listed=False),
    _Page("New study", show_new_study, "Set-up", is_listed=False),
)


def show_pages(present: Callable[[], Study]) -> None:
    """Draw the page that the address names, among those for the visitor's role."""
    study = present()
    who = require(study, "lead", "expert")
    stand_by()
    pages = PAGES[-1:] if study.folder.name == START else PAGES
    permitted = [page for page in pages if who.role in page.roles]
    listed = [
        st.Page(
            _shown(present, page),
            title=page.title,
            url_path=place_of(page.title),
            visibility="visible" if page.is_listed else "hidden",
        )
        for page in permitted
    ]
    # The root is the raters' address; there, and at a page of another role, the first is shown.
    first, others = permitted[0], {"", present_place()} - {page.url_path for page in listed}
    hidden = [hidden_page(place, first.title, _shown(present, first)) for place in others]
    # Flat, as a screen reader finds no list in Streamlit's own groups; the style names them.
    chosen = st.navigation([*listed, *hidden], expanded=True)
    st.set_page_config(page_title=f"{chosen.title}: {study.config.name}")
    if not chosen.url_path:
        for page in listed:  # the browser has not yet heard what the page at its address is called
            if page.url_path == present_place():
                st.switch_page(page)
        st.query_params[LINK_PARAMETER] = "in"
    st.html(Path(__file__).with_name("lead.css"))
    name = study.config.name.replace(START, "A new study")
    about = "\nSynthetic study: responses or ratings are simulated" * study.config.synthetic
    with st.sidebar.container(key="lead-study"):
        st.text("Leading the study")
        st.text(f"{name}{about}")
    with st.sidebar.container(key="lead-visitor"):
        st.text(f"Logged in as {who.name}")
        st.button("Log out", on_click=leave, args=(study, LOGIN.held()), width="stretch")
    other_studies = (site.folder.name for site in sites() if site != present_site())
    studies = [name for name in other_studies if name != START]
    if who.role == "lead" and studies:  # the others at this address, each with its own login
        heading = written("several.others")
        links = [f'<li><a href="../{name}/{FIRST_PLACE}">{name}</a></li>' for name in studies]
        with st.sidebar.container(key="lead-other-studies"):
            show(f'<nav aria-label="{heading}"><p>{heading}</p><ul>{"".join(links)}</ul></nav>')
    with st.container(key="lead"):
        chosen.run()


def _shown(present: Callable[[], Study], page: _Page) -> Callable[[], None]:
    # A fragment: what happens in it waits for what happened before, and never ends a run.
    @st.fragment
    def show() -> None:
        study = present()
        try:
            require(study, *page.roles)
        except InputError:
            st.rerun()  # to the login
        st.title(page.title, anchor=False)
        siblings = [entry for entry in PAGES if entry.group == page.group]
        if not all(entry.is_listed for entry in siblings) and study.folder.name != START:
            with st.container(horizontal=True, key="beside"):
                for entry in siblings:
                    PageLink(entry.title, entry.title).show()
        shown, above = place_of(page.title), place_of(next(entry.title for entry in siblings))
        _marker(key="marker", data={"page": shown, "above": "" if page.is_listed else above})
        try:
            page.draw(study)
        except InputError as error:
            show_complaint(str(error))

    return show
