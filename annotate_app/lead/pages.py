"""The pages of the lead, who runs the study: their list, the frame around them (the study's name,
links, logout), and three of them: Overview (next step and verdicts), Progress and Agreement.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.components.v2 import component

from evenhand.analysis.report.source import ALL, ALL_BINARY, GROUPS, rater_title
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.verdicts import judge
from evenhand.analysis.verdicts.wording import PASSES, TITLES
from evenhand.annotate_app import logins
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.html_texts import block, heading, show, show_complaint
from evenhand.annotate_app.lead import (
    adjudication_page,
    new_study_page,
    parts,
    raters_page,
    settings_page,
)
from evenhand.annotate_app.lead.parts import PageLink, latest, latest_figures, page_of, show_table
from evenhand.annotate_app.logins import FIRST_PLACE, LOGIN, hidden_page, leave, place_of
from evenhand.annotate_app.payload import app_files, typesetter
from evenhand.annotate_app.sites import present_site, sites
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting.report import BELOW, agreement_of_pairs, count_look
from evenhand.reporting.workers import run_apart
from evenhand.study import Study
from evenhand.study.access import LINK_PARAMETER, Role
from evenhand.study.desk.claims import oversight
from evenhand.study.lead import progress
from evenhand.study.lead.disagreements import adjudication_queue, raised_flags
from evenhand.study.session.sessions import Costs, costs
from evenhand.study.settings.study_toml import START
from evenhand.study.workspace import hours_since_backup
from evenhand.texts import DASH, number_of, written


class Tile(NamedTuple):
    """A tile of the overview: what it counts, the number as a link to its page, and a note."""

    question: str
    answer: PageLink
    note: str = ""


_FAILED = {"do_not_use", "disagrees_with_reference"}  # verdicts on a grader that does not pass


@st.fragment(run_every="5s")
def show_overview(study: Study) -> None:
    """Draw the recommendations, the next step, the tiles, the open issues and the verdicts."""
    logins.require(study, "lead")
    figures = latest_figures(study)
    is_current = figures is not None and figures.version == progress.data_version(study)
    verdicts, age = _verdicts(figures), "current" if is_current else "older"  # for lead.css
    if figures is not None:
        with st.container(key=f"advice-{age}"):
            show(*_advice(study, figures.report) or [block(written("lead.no_verdict"))])
    outlook, issues = latest(study, progress.forecast), open_issues(study, figures)
    step = next_step(study, figures, outlook, issues)
    with st.container(key="next-step"):
        st.text("Next step")
        if step:
            step.show()
        else:
            _ask_for_verdict(study)
    time_left = _time_left_tile(outlook, is_optional=is_decided(verdicts))
    tiles = [_progress_tile(study, outlook), time_left, _cost_tile(latest(study, costs))]
    tiles += [_review_tile(study, figures), _backup_tile(study)]
    with st.container(key="tiles"):
        for number, tile in enumerate(tiles):
            with st.container(key=f"tile-{number}"):
                show(block(tile.question, "question"))
                tile.answer.show()
                show(block(tile.note, "note"))
    st.header("Needs your attention", anchor=False)
    with st.container(key="waiting"):
        for link in issues.values():
            link.show()
    if not issues:
        st.text(written("lead.nothing_waits"))
    if figures is not None and verdicts:
        with st.container(key=f"verdicts-{age}"):
            _show_verdicts(study, figures, verdicts)
    if step:  # else the button is drawn above, as the next step
        with st.expander("Another verdict") if is_decided(verdicts) else st.container():
            _ask_for_verdict(study)


def _advice(study: Study, report: Mapping[str, Any]) -> list[str]:
    """Return a card of HTML for each rubric with graders: its title, the first sentence of its
    recommendation in bold, the others below it. Its class says whether a grader passes.
    """
    titles, cards = parts.rubric_titles(study), []
    for rubric, recommendation in report["study"]["recommendations"].items():
        # The title says which rubric, and the sentence need not repeat it.
        name = re.escape(report["names"].get(rubric, rubric))
        sentences = re.sub(rf" (for|of) {name}(?=[ .:,])", "", recommendation)
        first, _, others = sentences.partition(". ")
        text = block(f"{first.rstrip('.')}.", "advice") + (block(others, "note") if others else "")
        outcomes = _outcomes(report["verdicts"], rubric)
        state = "passes" if outcomes & {*PASSES} else "fails" if outcomes <= _FAILED else "open"
        title = heading(titles.get(rubric, rubric))
        cards.append(f'<section class="evenhand-{state}">{title}{text}</section>')
    return cards


def _outcomes(verdicts: Sequence[judge.Verdict], rubric: str) -> set[str]:
    """Return the kinds of verdict on the graders for a rubric, such as "do_not_use"."""
    return {verdict["verdict"] for verdict in verdicts if verdict["rubric"] == rubric}


# ---- the tiles ----------------------------------------------------------------------------------


def _progress_tile(study: Study, outlook: progress.Forecast) -> Tile:
    states = latest(study, progress.rater_progress)["state"].tolist()
    done, wanted = outlook.done, outlook.wanted
    counts = {state: states.count(state) for state in ("working", "finished")}
    note = written("cockpit.labels", done=done, wanted=wanted, came=len(states), **counts)
    number = parts.WORDS["tiles"]["share"].format(share=done / wanted) if wanted else DASH
    return Tile("Progress", PageLink("Progress", number), note)


def _time_left_tile(outlook: progress.Forecast, *, is_optional: bool) -> Tile:
    title = "Time left"
    if not outlook.wanted or math.isnan(outlook.hours):
        return Tile(title, PageLink("Progress", DASH), progress.time_left(outlook))
    if outlook.labels_left <= 0:
        return Tile(title, PageLink("Progress", parts.WORDS["tiles"]["nobody"]))
    note = written(f"cockpit.{'optional' if is_optional else 'at_pace'}")
    return Tile(title, PageLink("Progress", outlook.work), note)


def _cost_tile(spent: Costs) -> Tile:
    notes, answer = [written("cockpit.no_pay")], PageLink("Progress", DASH)
    if spent.owed is not None:  # annotators are paid
        amount = written("cockpit.amount", amount=spent.owed, currency=spent.currency)
        answer, notes = PageLink("Recruitment", amount), []
        if spent.graders_usd is not None:
            notes.append(written("cockpit.graders", amount=spent.graders_usd))
    elif spent.graders_usd is not None:
        amount = written("cockpit.amount", amount=spent.graders_usd, currency="USD")
        answer, notes = PageLink("Progress", amount), [written("cockpit.graders_only")]
    if spent.unpriced:
        notes.append(written("cockpit.unpriced", count=spent.unpriced))
    return Tile("Cost", answer, " ".join(notes))


def _review_tile(study: Study, figures: parts.LiveFigures | None) -> Tile:
    number, note = DASH, written("cockpit.not_yet")
    if figures is not None:
        names = annotators_to_review(study, figures)
        number = parts.WORDS["tiles"]["flagged" if names else "nobody"].format(count=len(names))
        note = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return Tile("Annotators to review", PageLink("Annotators", number), note)


def annotators_to_review(study: Study, figures: parts.LiveFigures) -> list[str]:
    """Return the ids of annotators whose work is flagged and who are not excluded."""
    flagged = figures.quality[figures.quality["flagged"] != ""]["rater_id"].tolist()
    excluded = oversight(study.store).exclusions
    return [rater for rater in flagged if rater not in excluded]


def _backup_tile(study: Study) -> Tile:
    hours = hours_since_backup(study.store)
    age, note = parts.WORDS["tiles"]["never"], ""
    if hours is not None:
        age, note = written("cockpit.backup", hours=hours), written("doctor.backup", hours=hours)
    return Tile("Last backup", PageLink("Log", age), note)


def _verdicts(figures: parts.LiveFigures | None) -> list[judge.Verdict]:
    return figures.report["verdicts"] if figures else []


# ---- the next step ------------------------------------------------------------------------------


def next_step(
    study: Study,
    figures: parts.LiveFigures | None,
    outlook: progress.Forecast,
    issues: Mapping[str, PageLink],
) -> PageLink | None:
    """Return a link to what the lead should do next; None if that is to ask for a verdict."""
    if "paused" in issues:
        return PageLink("Recruitment", written("cockpit.go_on"))
    if not outlook.wanted:
        return PageLink("Progress", written("cockpit.no_units"))
    if "invites" in issues:
        return issues["invites"]
    if figures is not None and (names := annotators_to_review(study, figures)):
        text = written("cockpit.look_at", rater=names[0])
        return PageLink("Annotators", text, {"one_rater": names[0]})
    verdicts = _verdicts(figures)
    if outlook.labels_left > 0 and not is_decided(verdicts):
        if "flags" in issues:
            return issues["flags"]
        _, missing = latest(study, progress.places_without_annotator)
        if missing and (figures is not None or not outlook.done):  # else the first figures are due
            return PageLink("Recruitment", written("several.invite"))
        return PageLink("Progress", written("cockpit.wait"))
    # Inconclusive only because labels came in since the last interim analysis.
    if any(verdict["next"] and verdict["next"]["kind"] == "look" for verdict in verdicts):
        return None
    inconclusive = (verdict for verdict in verdicts if verdict["verdict"] == "inconclusive")
    could_decide = any(verdict["more_clusters"] for verdict in inconclusive)
    if could_decide and len(study.store.sample()) < len(study.store.pairs()):
        return PageLink("Recruitment", written("cockpit.enlarge"))
    return report_link(verdicts, parts.rubric_titles(study))


def is_decided(verdicts: Sequence[judge.Verdict]) -> bool:
    """Return True if there are verdicts and none is inconclusive, so that no label is needed."""
    return bool(verdicts) and all(verdict["verdict"] != "inconclusive" for verdict in verdicts)


def report_link(verdicts: Sequence[judge.Verdict], names: Mapping[str, str]) -> PageLink:
    """Return the link to the report, naming the first rubric on which no grader passes."""
    for rubric in dict.fromkeys(verdict["rubric"] for verdict in verdicts):
        if _outcomes(verdicts, rubric) <= _FAILED:
            return PageLink("Export", written("cockpit.better", rubric=names.get(rubric, rubric)))
    return PageLink("Export", written("cockpit.report"))


def _ask_for_verdict(study: Study) -> None:
    """Draw the button for an interim analysis, which is counted, and the result of the last one."""
    folder = study.folder.resolve()
    counting = lead_callback(study, "look", lambda study, _: run_apart(count_look, folder))
    with st.container(key="ask"):
        st.button("Ask for a verdict now", on_click=counting)
        show(block(written("lead.look"), "note"))
    show_outcome("look")


_QUEUES = {"adjudication": "Adjudication", "flags": "Flags", "raters": "Annotators"}


def open_issues(study: Study, figures: parts.LiveFigures | None) -> dict[str, PageLink]:
    """Return links to the pages on which a decision of the lead is due, by kind of issue."""
    counts = {
        "adjudication": len(latest(study, adjudication_queue)),
        "flags": sum(flag.is_open for flag in raised_flags(study)),
        "raters": len(annotators_to_review(study, figures)) if figures else 0,
    }
    links = {
        name: PageLink(_QUEUES[name], written(f"lead.to_do_{name}", count=count))
        for name, count in counts.items()
        if count
    }
    if latest(study, progress.rater_progress).empty:
        links["invites"] = PageLink("Recruitment", written("lead.invite_first"))
    if hours_since_backup(study.store) is None:
        links["backup"] = PageLink("Log", written("lead.to_do_backup"))
    if oversight(study.store).paused:
        links["paused"] = PageLink("Recruitment", written("lead.paused"))
    return links


def _show_verdicts(
    study: Study, figures: parts.LiveFigures, verdicts: Sequence[judge.Verdict]
) -> None:
    """Draw the table of verdicts, graders by rubrics, and each verdict as a folded sentence."""
    st.header("Verdicts", anchor=False)
    table, titles = verdict_table(verdicts, figures.results), parts.rubric_titles(study)
    table["grader"] = table["grader"].replace(figures.report["names"])
    columns = {name: titles.get(name, name) for name in table.columns}
    html_columns, columns = [*columns][1:], columns | {"grader": "Grader"}  # first: `grader`
    show_table(table, written("first.legend"), columns, html_columns=html_columns)
    with st.expander(written("first.in_full")):
        for verdict in verdicts:
            st.text(verdict["sentence"])
    show(block(" ".join(judge.limits_of(verdicts)), "note"))


def verdict_table(verdicts: Sequence[judge.Verdict], results: pd.DataFrame) -> pd.DataFrame:
    """Return a row per grader, best first, with the column `grader` and one column per rubric. A
    cell is HTML: the verdict, and below it both kappas if known, and what decided it; a dash if
    there is no verdict. `results` are rows of results.csv.
    """
    estimates = results.set_index(list(RESULTS_KEY))["estimate"]
    graders = judge.best_first(judge.rank_graders(results, verdicts))
    rows = {grader: {"grader": grader} for grader in graders}
    for verdict in verdicts:
        kind, title = verdict["verdict"], TITLES[verdict["verdict"]]
        icon, style = (f"({title.icon})", "part") if verdict["holds_for"] else (title.icon, kind)
        kappas = [estimates.get(tuple(key), math.nan) for key in verdict["kappas"]]
        are_known = len(kappas) == 2 and not any(map(math.isnan, kappas))  # grader's, annotators'
        both = f"{kappas[0]:z.2f} vs {kappas[1]:z.2f}" if are_known else ""  # z: no -0.00
        why = html.escape("; ".join(filter(None, (both, verdict["reason"]))))
        cell = f'<b class="is-{style}">{icon} {title.words}</b><small>{why}</small>'
        rows[verdict["grader"]][verdict["rubric"]] = cell
    return pd.DataFrame([*rows.values()]).fillna(DASH)


# ---- progress of the labelling ------------------------------------------------------------------


@st.fragment(run_every="10s")
def show_progress(study: Study) -> None:
    """Draw what is left of the labelling, by rubric and annotator, and the work of the graders."""
    logins.require(study, "lead")
    rubrics = latest(study, progress.rubric_progress)
    raters = latest(study, progress.rater_progress)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
    outlook = latest(study, progress.forecast)
    is_optional = outlook.labels_left > 0 and is_decided(_verdicts(parts.current_figures(study)))
    if outlook.wanted:
        share = outlook.done / outlook.wanted
        st.progress(min(share, 1.0), parts.WORDS["tiles"]["share"].format(share=share))
    st.text(progress.time_left(outlook))
    if is_optional:
        st.text(written("cockpit.decided", left=outlook.labels_left))
    n_items, n_more = latest(study, progress.places_without_annotator)
    if n_more:
        items, annotators = number_of(n_items, "item"), number_of(n_more, "more annotator")
        with st.container(key="optional-step" if is_optional else "next-step"):
            st.text(written("progress.short", items=items, annotators=annotators))
            PageLink("Recruitment", written("several.invite")).show()
    columns = "rubric done wanted free hours_left units open median_seconds"
    headings = {"wanted": "Planned labels", "done": "Given", "free": "Not yet assigned"}
    titles = parts.rubric_titles(study)
    with st.container(key="stacked-rubrics"):
        show_table(rubrics, "Labels by rubric", columns, headings=headings, display_names=titles)
    if raters.empty:
        st.text(written("oversight.nobody"))
        return
    columns = "rater_id state answers hours last_answer median_seconds skipped open"
    names, links = study.config.names, {"rater_id": partial(page_of, "Annotators", "one_rater")}
    with st.container(key="stacked-raters"):
        show_table(raters, "By annotator", columns, links=links, display_names=names)
    if not (totals := latest(study, Study.grade_totals)).empty:
        columns = "rater_id rubric units labelled unscored tokens_input tokens_output cost_usd"
        head, names = {"rater_id": "Grader"}, names | titles
        show_table(totals, "By grader", columns, headings=head, folded=True, display_names=names)


# ---- agreement between annotators, and of graders with annotators -------------------------------


@st.fragment(run_every="3s")
def show_agreement(study: Study) -> None:
    """Draw kappa for pairs of annotators, and the graders' kappas."""
    logins.require(study, "lead")
    figures, above = latest_figures(study), st.container(key="stacked-agreement")  # filled below
    _show_pairs(study)
    adjudication_page.show_least_agreed(study, folded=figures is not None)
    if figures is None:
        return
    ordered = study.config.analysis.ordered
    kappas = deciding_kappas(figures.results, ordered)
    if kappas.empty and not figures.forests:
        above.text(written("lead.no_agreement"))
        return
    rubrics, verdicts = parts.rubric_titles(study), _verdicts(figures)
    kappas = kappas.assign(rubric=kappas["rubric"].replace(rubrics))
    if not kappas.empty:
        binary, graders = binary_kappas(figures.results, verdicts), {v["grader"] for v in verdicts}
        binary_titles = binary["rubric"].replace(rubrics) + f" {parts.WORDS['agreement']['binary']}"
        table = agreement_table(pd.concat([kappas, binary.assign(rubric=binary_titles)]), graders)
        names = {"rubric": "Rubric", "": GROUPS["humans"]} | figures.report["names"]
        titles = {name: names.get(name) or rater_title(name) for name in table.columns}
        words, raters = parts.WORDS["agreement"], [*titles][1:]  # the first column is `rubric`
        with above:
            show_table(table, words["caption"].format(ordered=ordered), titles, html_columns=raters)
            if not binary.empty:
                show(block(words["tuned"], "note"))
    with above:
        st.header("Graders compared with human agreement", anchor=False)
        parts.show_charts(figures.forests)
        show(block(" ".join(figures.report["study"]["notes"]), "note"))


def _show_pairs(study: Study) -> None:
    """Draw a table per rubric: kappa by pair, in the first one's row, under the second's number."""
    names, titles = study.config.names, parts.rubric_titles(study)
    if pairs := latest(study, agreement_of_pairs):
        st.header("Kappa between each pair of annotators (shared items)", anchor=False)
    with st.container(key="pairs"):
        for rubric, (raters, n_shared, kappas) in pairs.items():  # arrays of raters by raters
            numbers = {str(number): str(number) for number in range(2, len(raters) + 1)}
            rows = [{"": f"{n}. {names.get(rater, rater)}"} for n, rater in enumerate(raters, 1)]
            for row, column in zip(*n_shared.nonzero(), strict=True):
                if row >= column:
                    continue
                kappa = kappas[row, column]
                shade = min(max(0, (kappa - 0.4) / 0.6), 1)  # from moderate to perfect
                text = f"{kappa:.2f}".replace("nan", DASH)
                cell = f'<b style="--at: {shade:.0%}">{text}</b> ({n_shared[row, column]:,})'
                rows[row][str(column + 1)] = cell
            table = pd.DataFrame(rows, columns=["", *numbers]).fillna("")
            show_table(table, titles[rubric], {"": "Annotator"} | numbers, html_columns=numbers)


def deciding_kappas(results: pd.DataFrame, ordered: str) -> pd.DataFrame:
    """Return the rows of results.csv with the kappas on all items that decide verdicts on rubrics
    with categories: annotators' (`rater_b` is "") before graders', and weighted by the setting
    `ordered` if the options are ordered.
    """
    is_kappa = (
        (results["rater_a"] == "humans")
        & (results["subset"] == ALL)
        & (results["at"] == "")  # over all options, not at one
        & results["statistic"].isin(["cohen_kappa", f"weighted_kappa_{ordered}"])
    )
    rows = results[is_kappa].assign(is_grader=results["rater_b"] != "")
    rows = rows.sort_values(["rubric", "statistic", "is_grader"], kind="stable")
    return rows.drop_duplicates(["rubric", "rater_b"], keep="last")  # sorted: "weighted" is last


def binary_kappas(results: pd.DataFrame, verdicts: Sequence[judge.Verdict]) -> pd.DataFrame:
    """Return the rows of results.csv with kappa on the binary label, for rubrics with a pass for it
    only: those that decided the pass, then other graders'; annotators' has "" as `rater_b`.
    """
    used = {tuple(key) for v in verdicts if v["holds_for"] == "binary" for key in v["kappas"]}
    binary = results[(results["subset"] == ALL_BINARY) & (results["rater_a"] == "humans")]
    rows = binary[[key in used for key in zip(*map(binary.get, RESULTS_KEY), strict=True)]]
    raters = rows["rater_b"].mask(rows["statistic"] == "people_kappa", "")
    plain = binary.query("statistic == 'cohen_kappa' and at == ''")
    others = plain[plain["rubric"].isin(rows["rubric"])]
    return pd.concat([rows.assign(rater_b=raters), others]).drop_duplicates(["rubric", "rater_b"])


def agreement_table(kappas: pd.DataFrame, graders: Collection[str]) -> pd.DataFrame:
    """Return a row per rubric of `kappas`: annotators' kappa and that of each of the `graders`, as
    HTML with 95% CI, by `rater_b`; marked if below annotators', or with * if on held-out items.
    """
    rows = kappas[kappas["rater_b"].isin(["", *graders])]
    lows = rows["rubric"].map(rows[rows["rater_b"] == ""].set_index("rubric")["low"])  # annotators'
    marks = (rows["high"] < lows).map({True: f' <b class="evenhand-below">{BELOW}</b>', False: ""})
    marks += rows["statistic"].str.endswith("_held_out").map({True: " *", False: ""})
    figures = zip(rows["estimate"], rows["low"], rows["high"], marks, strict=True)
    cells = [f"{kappa:z.2f} [{low:z.2f}, {high:z.2f}]{mark}" for kappa, low, high, mark in figures]
    table = rows.assign(cell=cells).pivot(index="rubric", columns="rater_b", values="cell")
    return table[[*dict.fromkeys(rows["rater_b"])]].reset_index().fillna(DASH)


_marker = component(
    "evenhand_marker",
    html="<span hidden></span>",
    js=f"const TYPESETTER = new URL('{typesetter()[0]}', document.baseURI);\n"
    + app_files("panel/formulas.js", "lead/marker.js"),
)
"""Marks the links to the present page and to the listed page of its group; typesets formulas."""


@dataclass(frozen=True)
class _Page:
    """A page of the lead's: what draws it, its group in the sidebar, and who may see it."""

    title: str
    draw: Callable[[Study], None]
    group: str
    roles: tuple[Role, ...] = ("lead",)
    is_listed: bool = True
    """False for a page that the sidebar leaves out: the pages of its group link to it."""

    def show(self, study: Study) -> None:
        """Draw the page. Raises InputError unless the visitor has one of its roles."""
        logins.require(study, *self.roles)
        self.draw(study)


PAGES = (
    _Page("Overview", show_overview, "Results"),
    _Page("Agreement", show_agreement, "Results"),
    _Page("Items", adjudication_page.show_items, "Results"),
    _Page("Export", raters_page.show_export, "Results"),
    _Page("Annotators", raters_page.show_raters, "People"),
    _Page("Progress", show_progress, "People"),
    _Page("Recruitment", raters_page.show_recruitment, "People"),
    _Page("Flags", raters_page.show_flags, "Quality"),
    _Page("Adjudication", adjudication_page.show_adjudication, "Quality", ("lead", "expert")),
    _Page("Disagreements", adjudication_page.show_disagreements, "Quality"),
    _Page("Settings", settings_page.show_settings, "Set-up"),
    _Page("Texts", settings_page.show_texts, "Set-up", is_listed=False),
    _Page("Rubrics", settings_page.show_rubrics, "Set-up", is_listed=False),
    _Page("Training and checks", settings_page.show_training, "Set-up", is_listed=False),
    _Page("Accounts", raters_page.show_accounts, "Set-up", is_listed=False),
    _Page("Log", raters_page.show_log, "Set-up", is_listed=False),
    _Page("New study", new_study_page.show_new_study, "", is_listed=False),
)


def show_pages(present: Callable[[], Study]) -> None:
    """Draw the page that the address names, if the visitor's role permits it, else the first one.

    `present` returns the study as its files are now.
    """
    study = present()
    visitor = logins.require(study, "lead", "expert")
    parts.stand_by()
    pages = PAGES[-1:] if study.folder.name == START else PAGES  # no study yet: New study alone
    permitted = [page for page in pages if visitor.role in page.roles]
    addressed = [
        st.Page(
            _page_function(present, page),
            title=page.title,
            url_path=place_of(page.title),
            visibility="visible" if page.is_listed else "hidden",
        )
        for page in permitted
    ]
    # The annotators' address (""), and pages that another role alone may see, show the first page.
    first, rest = permitted[0], {"", logins.present_place()} - {page.url_path for page in addressed}
    hidden = [hidden_page(path, first.title, _page_function(present, first)) for path in rest]
    # Not in Streamlit's groups, in which a screen reader finds no list: lead.css names the groups.
    chosen = st.navigation([*addressed, *hidden], expanded=True)
    st.set_page_config(page_title=f"{chosen.title}: {study.config.name}")
    if not chosen.url_path:
        for page in addressed:  # on the first run Streamlit does not know the page by its address
            if page.url_path == logins.present_place():
                st.switch_page(page)
        st.query_params[LINK_PARAMETER] = "in"  # a reload asks for the lead's pages (`entry`)
    st.html(Path(__file__).with_name("lead.css"))
    name = study.config.name.replace(START, "A new study")
    note = "\nSynthetic study: responses or ratings are simulated"
    with st.sidebar.container(key="lead-study"):
        st.text("Leading the study")
        st.text(name + (note if study.config.synthetic else ""))
        if visitor.role == "lead" and len(permitted) > 1:
            PageLink("New study", "New study").show()
    with st.sidebar.container(key="lead-visitor"):
        st.text(f"Logged in as {visitor.name}")
        st.button("Log out", on_click=leave, args=(study, LOGIN.held()), width="stretch")
    other_studies = (site.folder.name for site in sites() if site != present_site())
    studies = [name for name in other_studies if name != START]
    if visitor.role == "lead" and studies:  # the login is a separate one for each study
        heading = written("several.others")
        links = [f'<li><a href="../{name}/{FIRST_PLACE}">{name}</a></li>' for name in studies]
        with st.sidebar.container(key="lead-other-studies"):
            show(f'<nav aria-label="{heading}"><p>{heading}</p><ul>{"".join(links)}</ul></nav>')
    with st.container(key="lead"):
        chosen.run()


def _page_function(present: Callable[[], Study], page: _Page) -> Callable[[], None]:
    """Return the function by which Streamlit draws a page, with links to the pages of its group."""

    @st.fragment  # its events wait for earlier ones, and end no run of the whole page
    def draw() -> None:
        study = present()
        try:
            logins.require(study, *page.roles)
        except InputError:
            st.rerun()  # shows the login
        show(block(study.config.name, "study"))
        st.title(page.title, anchor=False)
        siblings = [entry for entry in PAGES if entry.group == page.group]
        if page.group and not all(entry.is_listed for entry in siblings):
            with st.container(horizontal=True, key="beside"):
                for entry in siblings:
                    PageLink(entry.title, entry.title).show()
        above = "" if page.is_listed else place_of(siblings[0].title)  # the group's listed page
        _marker(key="marker", data={"page": place_of(page.title), "above": above})
        try:
            page.draw(study)
        except InputError as error:
            show_complaint(str(error))

    return draw
