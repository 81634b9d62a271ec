"""The pages on raters: those whose labels deserve a second look, the lead's decisions on them, and
the flags that they raise.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from evenhand.annotate_app.acts import act_form, lead_callback, show_outcome
from evenhand.annotate_app.drawn import block, heading, show, show_complaint
from evenhand.annotate_app.lead.drawing import (
    rater_page,
    show_table,
    to_the_minute,
    unit_blocks,
)
from evenhand.annotate_app.lead.live_figures import counted, latest, latest_figures
from evenhand.annotate_app.logins import require
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study import Study
from evenhand.study.access.accounts import Visitor
from evenhand.study.desk.claims import (
    Exclusion,
    attention_results,
    decisions_table,
    exclude,
    oversight,
    readmit,
)
from evenhand.study.lead.disagreements import RaisedFlag, raised_flags, reopen_flag, settle_flag
from evenhand.study.lead.progress import confusions, label_shares, rater_answers, rater_progress
from evenhand.study.store.logs.answers import remarks_table
from evenhand.texts import written

_EVERY = "3s"


def show_raters(study: Study) -> None:
    raters = latest(study, rater_progress)["rater_id"].tolist()
    rater = st.selectbox(
        "A page for one annotator",
        raters,
        index=None,
        placeholder="All annotators",
        key="one_rater",
        bind="query-params",
    )
    if rater is None:
        _quality(study)
    else:
        _second_look(study, rater)
        _show_rater(study, rater)
        st.subheader("Exclude or readmit", anchor=False)
        st.text(written("lead.exclusion"))
        is_out = rater in oversight(study.store).exclusions
        label = "Readmit" if is_out else "Exclude"
        with act_form(study, "exclusion", label, _decide, rater, is_out):
            key = "exclusion.reason"
            st.text_input("Reason, which stands in the report", autocomplete="off", key=key)
    decisions = decisions_table(study.store)
    if len(decisions):
        columns, headings = "created_at kind rater_id reason done_by", {"kind": "Decision"}
        ways = {"rater_id": rater_page}
        show_table(decisions, "Decisions so far", columns, headings=headings, ways=ways)


@st.fragment(run_every=_EVERY)
def _quality(study: Study) -> None:
    require(study, "lead")
    figures = latest_figures(study)
    if figures is None:
        return
    table = flagged_first(in_words(figures.quality), oversight(study.store).exclusions)
    states = latest(study, rater_progress).set_index("rater_id")["state"]
    table = table.assign(state=table["rater_id"].map(states).fillna(""))
    show_table(
        table,
        "Annotators compared with the others on the same items",
        "rater_id state why answers median_seconds pace idle_minutes run kappa lean drift checks",
        headings={"why": "A second look, because"},
        ways={"rater_id": rater_page},
    )


@st.fragment(run_every=_EVERY)
def _second_look(study: Study, rater: str) -> None:
    require(study, "lead")
    if (figures := latest_figures(study)) is not None:
        reason = "".join(figures.quality["reason"][figures.quality["rater_id"] == rater])
        flagged = written("lead.rater_flagged", reason=reason)
        st.text(flagged if reason else written("lead.rater_not_flagged"))


def flagged_first(table: pd.DataFrame, excluded: Mapping[str, Exclusion]) -> pd.DataFrame:
    """The raters with the reasons `why` they deserve a second look: those who do first, the
    excluded last.
    """
    out = table["rater_id"].isin(list(excluded))
    why = [
        f"excluded: {excluded[rater].reason}" if rater in excluded else reason
        for rater, reason in zip(table["rater_id"], table["reason"], strict=True)
    ]
    turn = out.astype(int) * 2 + (table["flagged"] == "").astype(int)
    return table.assign(why=why).loc[turn.sort_values(kind="stable").index]


def in_words(quality: pd.DataFrame) -> pd.DataFrame:
    """The table of raters, with related columns joined in one cell: `run, kappa, lean, checks`."""
    rows = quality.assign(
        agreed=quality["agreement"].notna(), has_interval=quality["agreement_low"].notna()
    ).to_dict("records")

    def cells(template: str, given: str) -> list[str]:
        return [template.format_map(row) if row[given] else "" for row in rows]

    kappa = cells("{agreement:.2f}", "agreed")
    interval = cells(" ({agreement_low:.2f} to {agreement_high:.2f})", "has_interval")
    return quality.assign(
        run=cells("{longest_run} ({usual_run:.0f})", "longest_run"),
        kappa=[f"{estimate}{bounds}" for estimate, bounds in zip(kappa, interval, strict=True)],
        lean=cells("{leaning:+.2f} {leaning_at}", "leaning_at"),
        checks=cells("{attention_passed} of {attention_given}", "attention_given"),
    )


def _decide(study: Study, who: Visitor, rater: str, is_out: bool, *, reason: str) -> None:
    (readmit if is_out else exclude)(study.store, rater, reason, who.name)


# The page of one rater


_MOST_ROWS = 50
"""Answers and remarks that are shown, the latest; all are in the export."""
_COLOUR = "#4a8fc7"


def _show_rater(study: Study, rater: str) -> None:
    """Draw everything that there is to see of one rater."""
    out = oversight(study.store).exclusions.get(rater)
    if out is not None:
        at = to_the_minute(out.created_at)
        st.text(written("lead.rater_excluded", by=out.done_by, at=at, reason=out.reason))
    answers = counted(study, rater_answers, rater)
    shares = counted(study, label_shares, rater)
    show_table(shares, "Labels given", "rubric label answers share others_share")
    tables = counted(study, confusions, rater)
    st.subheader("Confusions with the others", anchor=False)
    st.text(written("lead.confusions" if tables else "lead.rater_no_others"))
    for rubric, table in tables.items():
        titles = {"label": "This annotator"} | {key: key for key in table.columns}
        show_table(table.reset_index(), study.rubrics[rubric].title, titles, number=".1f")
    st.subheader("Pace", anchor=False)
    st.vega_lite_chart(pace_chart(answers), width="stretch")
    st.subheader("Attention checks", anchor=False)
    checks = counted(study, attention_results)
    checks = checks[checks["rater_id"] == rater]
    if checks.empty:
        st.text(written("lead.rater_no_checks"))
    else:
        checks = checks.assign(result=checks["passed"].map({True: "passed", False: "failed"}))
        show_table(checks, "Attention checks", "created_at check_id rubric expected given result")
    st.subheader("Flags and remarks", anchor=False)
    remarks = remarks_table(study.store)
    remarks = remarks[remarks["rater_id"] == rater]
    remarks = remarks[(remarks["kind"] == "flag") | (remarks["text"] != "")]
    if remarks.empty:
        st.text(written("lead.rater_no_remarks"))
    else:
        columns = "created_at kind rubric unit_id reason text withdrawn_at"
        show_table(remarks.iloc[::-1].head(_MOST_ROWS), "Flags and remarks", columns)
    with st.expander("Latest answers"):
        columns = "created_at rubric unit_id label others seconds"
        show_table(answers.iloc[::-1].head(_MOST_ROWS), "Latest answers", columns)


def pace_chart(answers: pd.DataFrame) -> dict[str, object]:
    """Seconds for each answer, in the order in which they were given."""
    timed = answers.dropna(subset=["seconds"])
    values = [
        {"turn": turn, "seconds": seconds, "rubric": rubric}
        for turn, (seconds, rubric) in enumerate(
            zip(timed["seconds"], timed["rubric"], strict=True), start=1
        )
    ]
    x = {"field": "turn", "type": "quantitative", "title": "answer"}
    y = {"field": "seconds", "type": "quantitative", "title": "seconds (log scale)"}
    tooltip = [{"field": "turn"}, {"field": "seconds"}, {"field": "rubric"}]
    return {
        "description": "Seconds for each answer, in the order in which they were given.",
        "data": {"values": values},
        "mark": {"type": "point", "size": 24, "color": _COLOUR},
        "height": 180,
        "encoding": {"x": x, "y": {**y, "scale": {"type": "symlog"}}, "tooltip": tooltip},
    }


# Flags raised by people, with the unit in question, and the lead's response.

_REASONS = {
    "harmful": "Harmful content",
    "personal_data": "Personal data",
    "broken_text": "Broken text",
    "unclear_rubric": "The rubric is unclear",
    "other": "Something else",
}
_MOST = 20
"""Flags on the page; the next ones follow once these are dealt with."""


def show_flags(study: Study) -> None:
    flags = raised_flags(study)
    if not flags:
        st.text(written("lead.no_flags"))
        return
    left = sum(flag.is_open for flag in flags)
    withdrawn = sum(flag.withdrawn for flag in flags)
    st.text(written("lead.flags_open", open=left, closed=len(flags) - left - withdrawn))
    if withdrawn:
        st.text(written("lead.flags_withdrawn", count=withdrawn))
    kinds = [reason for reason in _REASONS if any(flag.reason == reason for flag in flags)]
    chosen = st.selectbox(
        "Reason",
        ["", *kinds],
        format_func=lambda reason: _REASONS.get(reason, "All"),
        key="flags",
        bind="query-params",
    )
    shown = [flag for flag in flags if chosen in ("", flag.reason)]
    for flag in shown[:_MOST]:
        with st.container(border=True):
            _show_flag(study, flag)


def _show_flag(study: Study, flag: RaisedFlag) -> None:
    at = to_the_minute(flag.created_at)
    show(heading(_REASONS.get(flag.reason, flag.reason), 3))
    st.text(written("lead.flag_raised", rater=flag.rater_id, rubric=flag.rubric, at=at))
    if flag.text:
        show(block(flag.text, "quote", "What they wrote"))
    with st.expander("The item"):
        st.text(flag.unit_id)
        try:
            show(unit_blocks(study, flag.unit_id, flag.rubric))
        except InputError as error:  # no such rubric any more; the flag can still be dealt with
            show_complaint(str(error))
    place = f"flag-{flag.number}"
    if flag.is_open:
        with act_form(study, place, "Mark as dealt with", _settle, flag.number):
            note, answer = "What was done about it (leads see it)", "Answer to the annotator"
            st.text_input(note, autocomplete="off", key=f"{place}.answer")
            st.text_input(f"{answer} (optional)", autocomplete="off", key=f"{place}.told")
    elif flag.withdrawn:
        at = to_the_minute(flag.done_at)
        st.text(written("lead.flag_withdrawn", rater=flag.rater_id, at=at))
    else:
        at = to_the_minute(flag.done_at)
        st.text(written("lead.flag_settled", by=flag.done_by, at=at, answer=flag.answer))
        reopening = lead_callback(study, place, _reopen, flag.number)
        st.button("Open it again", key=f"reopen-{flag.number}", on_click=reopening)
    show_outcome(place)


def _settle(study: Study, who: Visitor, number: int, *, answer: str, told: str) -> None:
    settle_flag(study, number, answer, who.name, told)


def _reopen(study: Study, who: Visitor, number: int) -> None:
    reopen_flag(study, number, who.name)
