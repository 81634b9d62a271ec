"""The pages Adjudication (items without a majority label, decided without annotators' names), Items
(every item with its labels) and Disagreements (between graders and annotators).
"""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st
from streamlit.components.v2 import component

from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.report.sections.raters import kind_title
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.html_texts import block, drawn_text, heading, items, show, show_complaint
from evenhand.annotate_app.lead import parts
from evenhand.annotate_app.logins import require
from evenhand.annotate_app.payload import own_words
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting.analysing import quoted_marks, quoted_remarks, quoted_replies
from evenhand.reporting.report import DISAGREEMENTS_FILE
from evenhand.rubrics.options import Option
from evenhand.study import Study
from evenhand.study.access import Role, Visitor
from evenhand.study.lead import disagreements as cases
from evenhand.study.prompts.units import Key
from evenhand.texts import written

# ---- adjudication -------------------------------------------------------------------------------
#
# The browser holds a choice until it is sent, with a token of its item: keys that are pressed too
# early never decide the next item.

LONGEST_REASON = 4000
_KEY = "decision.decider"  # the callback gets its value as `decider` (see `acts`)
_HERE = Path(__file__).parent
_mount = component(
    "evenhand_decider",
    html=(_HERE / "decider.html").read_text("utf-8"),
    css=(_HERE / "decider.css").read_text("utf-8"),
    js=(_HERE / "decider.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Sent:
    """A decision that the page sends on the item of this `token`; `passes` if it is skipped."""

    token: str
    label: str = ""
    reason: str = ""
    passes: bool = False


def option_rows(options: Sequence[Option], labels: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return the options for the page, each with the digit that chooses it and its votes in
    `labels`. Digits are the options' keys if any of these is one; else they number the first nine.
    """
    have_digits = any(option.key.isdecimal() and len(option.key) == 1 for option in options)
    digits = list("0123456789" if have_digits else "123456789")
    rows = []
    for number, option in enumerate(options, start=1):
        digit = option.key if have_digits else str(number)
        texts = {"key": option.key, "name": option.name, "description": option.description}
        count = labels.count(option.key)
        votes = written("lead.votes", count=count) if count else ""
        rows.append(texts | {"digit": digit if digit in digits else "", "votes": votes})
    return rows


def read_decision(sent: Any) -> Sent | None:
    """Read a decision from the page; None if it is malformed, as any client may send one."""
    if not isinstance(sent, dict):
        return None
    texts = [sent.get(name, "") for name in ("token", "label", "reason")]
    if not all(isinstance(text, str) and len(text) <= LONGEST_REASON for text in texts):
        return None
    token, label, reason = texts
    return Sent(token, label, reason, passes=sent.get("passes") is True)


_ROLES: tuple[Role, ...] = ("lead", "expert")
_WORK = "adjudication"


@dataclass
class _Work:
    """Work of a visitor: the `open` item of the queue, or a decided one that is `revised`; and
    the `complaint` about the last act. Mutable, as acts may not write to Streamlit's session.
    """

    open: Key | None = None
    revised: Key | None = None
    skipped: set[Key] = field(default_factory=set)
    complaint: str = ""
    last_label_id: int | None = None  # event id of the latest label when the item was opened

    @property
    def key(self) -> Key | None:
        return self.revised or self.open  # of the item on the page

    def clear(self) -> None:
        self.open = self.revised = self.last_label_id = None


def show_adjudication(study: Study) -> None:
    """Draw the item to be decided next, or one that is decided again, and past decisions."""
    who = require(study, *_ROLES)
    work: _Work = st.session_state.setdefault(_WORK, _Work())
    unit, rubric = (st.query_params.pop(name, "") for name in ("unit", "rubric"))  # of a link
    if unit and who.role == "lead":  # experts decide again only on what they decided
        work.revised, work.last_label_id = (unit, rubric), None
    try:
        case = _open_case(study, who, work)
    except InputError as error:
        work.clear()
        show_complaint(str(error))
        case = None
    if case is not None:
        _show_case(study, who, work, case)
    elif work.complaint:
        show_complaint(work.complaint)
        work.complaint = ""
    _show_past(study, who, work)


def _open_case(study: Study, who: Visitor, work: _Work) -> cases.QueuedUnit | None:
    """Return the item that is decided again, or the next one of the queue; draw how many wait."""
    if work.last_label_id is None:
        work.last_label_id = cases.last_label_id(study.store)
    if work.revised is not None:
        return parts.counted(study, cases.reopen, work.revised)
    case, n_waiting = parts.counted(study, cases.open_next, who.name, set(work.skipped), work.open)
    if not n_waiting:
        st.text(written("oversight.adjudicated"))
        return None
    st.text(written("lead.to_adjudicate", count=n_waiting))
    work.open = case.key if case else None
    return case


def _show_case(study: Study, who: Visitor, work: _Work, case: cases.QueuedUnit) -> None:
    """Draw an item's texts, and next to them its labels and the fields of the decision."""
    people = parts.text_for_annotators(study, case.unit_id, case.rubric)
    kind, labels = people.kind, case.labels

    def marked_by(raters: Sequence[str]) -> str:  # their number, without names
        return written("evidence.marked_by_some", count=len(raters), labels=len(labels))

    texts, decision = st.columns([3, 2])
    with texts:
        one = case.rubric, case.unit_id
        marks = cases.counted_marks(study, {one}).get(one, [])
        # Of an id "CLUSTER|..." the lead sees the cluster: the rest may name the subject.
        cluster = f" {case.unit_id.partition('|')[0]}" if who.role == "lead" else ""
        show(heading(f"Item{cluster}"), parts.marked_blocks(study, people.blocks, marks, marked_by))
    with decision, st.container(key="decision"):
        show(heading(people.title), block(people.question))
        if not kind.listed:
            counts = (f"{label} ({labels.count(label)})" for label in kind.in_order(set(labels)))
            st.text("Annotators chose: " + "; ".join(counts))
        for reason in case.reasons:
            show(block(reason, "quote", "Someone wrote"))
        if case.key == work.revised:
            past = cases.past_decisions(study, who.name)
            is_on_item = (past["unit_id"] == case.unit_id) & (past["rubric"] == case.rubric)
            for row in past[is_on_item].to_dict("records"):
                at = parts.to_the_minute(row["created_at"])
                text = written("lead.revising", label=row["label"], at=at, reason=row["reason"])
                show(block(text))
        # A label of several options is a vote for each, one of none for the label itself.
        chosen = [key for label in labels for key in kind.parts(label) or [label]]
        data = {
            "token": _token(case.key),
            "options": option_rows(kind.choices("None of these"), chosen),
            "number": "" if kind.listed else kind.permitted,
            "several": not kind.is_single,
            "reasons": list(parts.WORDS["usual_reasons"].values()),
            "complaint": work.complaint,
        }
        work.complaint = ""
        # The callback runs before the page is drawn again, and reads `sent` in `decision.decider`.
        store = lead_callback(study, "decision", _store_decision, work, roles=_ROLES)
        _mount(key=_KEY, data=data, on_sent_change=store)
        with st.container(key="keys"):
            show(block(written("lead.keys"), "note"))
        if instructions := own_words(people.instructions):
            with st.expander("Instructions"):
                # Only the lead's own text is drawn with its links, not one with an item's values.
                has_no_values = instructions == study.rubrics[case.rubric].instructions
                show(drawn_text(instructions) if has_no_values else block(instructions))


def _store_decision(study: Study, who: Visitor, work: _Work, *, decider: Mapping[str, Any]) -> None:
    """Store the decision on the open item, or skip the item."""
    if (sent := read_decision(decider.get("sent"))) is None:
        return
    key = work.key
    try:
        if key is None or sent.token != _token(key):
            raise InputError(written("lead.unit_changed"))
        if sent.passes:
            work.skipped.add(key)
        else:
            work.complaint = cases.decide(
                study, who.name, *key, sent.label, sent.reason, work.last_label_id
            )
        work.clear()
    except InputError as error:
        work.complaint = str(error)


def _show_past(study: Study, who: Visitor, work: _Work) -> None:
    """Draw past decisions: all for the lead, else the visitor's, which they may decide again."""
    st.header("Past decisions", anchor=False)
    past = cases.past_decisions(study, "" if who.role == "lead" else who.name)
    if past.empty:
        st.text(written("lead.no_decisions"))
        return
    decisions = zip(past["rubric"], past["label"], strict=True)
    past = past.assign(
        number=range(len(past), 0, -1),
        label=[_title_of(study, rubric, label) for rubric, label in decisions],
        title=past["rubric"].replace(parts.rubric_titles(study)),
    )
    columns = "number created_at title label reason done_by"
    headings = {"number": "No.", "title": "Rubric", "label": "Decision"}
    parts.show_table(past, "Decisions so far, the latest first", columns, headings=headings)
    rows = {
        f"No. {row['number']}: {row['label']} on {row['title']}": (row["unit_id"], row["rubric"])
        for row in past[past["done_by"] == who.name].to_dict("records")
    }
    label = "Revise a decision of yours"
    chosen = st.selectbox(label, rows, index=None, placeholder="Choose a decision")
    if st.button("Open it again", disabled=chosen is None) and chosen is not None:
        work.revised, work.last_label_id = rows[chosen], None
        st.rerun()


def _token(key: Key | DisagreementKey) -> str:
    """Return a hash that names an item or disagreement: unlike ids it never reveals the subject."""
    return hashlib.sha256("\x1f".join(key).encode()).hexdigest()[:16]


# ---- items --------------------------------------------------------------------------------------

_MOST_ITEMS = 50  # shown at a time
_show_table = partial(parts.show_table, html_columns=("item", "given", "graders"))
_FIRSTS = "items_first"  # key in the session of the first row that is shown, by filters
_DECIDED, _ORDERS = parts.WORDS["decided"], parts.WORDS["orders"]  # titles of the choices


def show_items(study: Study) -> None:
    """Draw the table of final labels with filters; an item's texts, if only one item is left."""
    require(study, "lead")
    titles = parts.rubric_titles(study)
    with st.container(horizontal=True, key="filters"):
        searched = st.text_input("Item id, or part of it", key="item", bind="query-params")
        all_titles = {"": "All rubrics"} | titles
        rubric = st.selectbox("Rubric", list(all_titles), format_func=all_titles.__getitem__)
        decided = st.selectbox("Decided by", list(_DECIDED), format_func=_DECIDED.__getitem__)
        order = st.selectbox("Order", list(_ORDERS), format_func=_ORDERS.__getitem__)
    pager = st.container(horizontal=True, vertical_alignment="center", key="pager")
    with_graders = pager.toggle("Show graders' labels")

    open_flags = (flag for flag in cases.raised_flags(study) if flag.is_open)
    flags = Counter((flag.unit_id, flag.rubric) for flag in open_flags)
    items_table = parts.latest(study, cases.final_labels)
    keys = list(zip(items_table["item_id"], items_table["rubric"], strict=True))
    items_table = items_table.assign(flags=[flags[key] for key in keys])
    if with_graders:
        graded = parts.latest(study, cases.grader_labels)
        items_table["graders"] = [_by_rater(graded.get(key, {})) for key in keys]

    ids = items_table["item_id"].str.casefold()
    matches = ids.str.contains(searched.strip().casefold(), regex=False)
    if rubric:
        matches &= items_table["rubric"] == rubric
    if decided != "all":  # "" in the table is "none" among the choices: no labels yet
        matches &= items_table["decided_by"] == decided.replace("none", "")
    items_table = items_table[matches]
    if order != "sample":  # the table's own order; the other choices are columns
        items_table = items_table.sort_values(order, ascending=order == "agreement", kind="stable")

    with pager:
        first = _draw_pager(len(items_table), (searched, rubric, decided, order))
    rows = items_table.iloc[first : first + _MOST_ITEMS]
    final = zip(rows["rubric"], rows["final_label"], strict=True)
    columns = "item given graders" if with_graders else "item given"
    columns += " final_label decided_by" if rubric else " final_label decided_by rubric"
    columns += " flags" if rows["flags"].any() else ""
    rows = _with_cells(study, rows).assign(
        decided_by=rows["decided_by"].replace("", "none").map(_DECIDED),
        final_label=[_title_of(study, name, label) for name, label in final],
        flags=rows["flags"].map("{} open".format).replace("0 open", ""),
    )
    with st.container(key="stacked-items"):
        _show_table(rows, written("lead.items"), columns, display_names=titles)
    if items_table["item_id"].nunique() == 1:
        for row in rows.to_dict("records"):
            _show_item(study, row["item_id"], row["rubric"], row["labels"])


def _draw_pager(count: int, filters: tuple[str, ...]) -> int:
    """Draw which of `count` rows are shown, and buttons to others; return the first's index."""
    firsts: dict[tuple[str, ...], int] = st.session_state.setdefault(_FIRSTS, {})
    first = firsts.get(filters, 0)

    def button(title: str, new_first: int) -> None:
        move, is_off = partial(firsts.__setitem__, filters, new_first), not 0 <= new_first < count
        st.button(title, on_click=move, disabled=is_off, type="tertiary")

    button("**Previous** ‹", first - _MOST_ITEMS)  # the word is for screen readers
    st.text(f"{min(first + 1, count):,}-{min(first + _MOST_ITEMS, count):,} of {count:,}")
    button("**Next** ›", first + _MOST_ITEMS)
    return first


def show_least_agreed(study: Study, *, folded: bool = False) -> None:
    """Draw the ten items with the least agreement; nothing if annotators agree on all."""
    table = parts.latest(study, cases.final_labels).query("agreement < 1")
    table = table.sort_values("agreement", kind="stable").head(10)
    if len(table):
        caption, titles = "Items with the least agreement", parts.rubric_titles(study)
        table = _with_cells(study, table)
        with st.container(key="stacked-items"):
            _show_table(table, caption, "item rubric given", folded=folded, display_names=titles)


def _title_of(study: Study, rubric: str, label: str) -> str:
    """Return a label with its option's name; unchanged if the study no longer has the rubric."""
    return study.rubrics[rubric].kind.title_of(label) if rubric in study.rubrics else label


def _with_cells(study: Study, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `final_labels` with two columns of HTML: `item`, its id as a link above the
    beginning of its text, and `given`, its labels.
    """
    cells = []
    for unit, rubric in zip(rows["item_id"], rows["rubric"], strict=True):
        address = html.escape(parts.page_of("Items", "item", unit))
        words = html.escape(parts.first_words(study, unit, rubric))
        link = f'<a href="{address}">{html.escape(unit)}</a>'
        cells.append(f'{link}<small dir="auto">{words}</small>')
    return rows.assign(item=cells, given=rows["labels"].map(_by_rater))


def _by_rater(labels: Mapping[str, str]) -> str:
    """Return labels by rater as HTML; raters' names are tooltips, and for screen readers."""
    texts = [(html.escape(rater), html.escape(label)) for rater, label in sorted(labels.items())]
    return " · ".join(
        f'<span title="{rater}"><span class="evenhand-unseen">{rater}: </span>{label}</span>'
        for rater, label in texts
    )


def _show_item(study: Study, unit: str, rubric: str, labels: Mapping[str, str]) -> None:
    """Draw an item's labels, its texts as annotators saw them, and the link to its adjudication."""
    title_of = study.rubrics[rubric].kind.title_of
    show(heading(study.rubrics[rubric].title))
    show(items((rater, [title_of(label)]) for rater, label in sorted(labels.items())))
    show(parts.unit_blocks(study, unit, rubric))
    if labels:  # a link, as `st.switch_page` keeps the fields in this page's address
        asked = {"unit": unit, "rubric": rubric}
        parts.PageLink("Adjudication", "Adjudicate this item →", asked).show()


# ---- disagreements between graders and annotators, one by one -----------------------------------


class DisagreementKey(NamedTuple):
    """The grader's label that differs: its rubric, item and grader."""

    rubric: str
    unit_id: str
    grader: str


_ALL, _OPEN = "*", ""  # choices of a filter: all, and those without a cause yet
_SHOWN = "disagreement_at"  # key in the session
_SORTED = "sorted"  # name of the acts (see `acts`)


@dataclass
class _Shown:
    """The disagreement on the page; mutable, as acts may not write to the session."""

    key: DisagreementKey


def show_disagreements(study: Study) -> None:
    """Draw how many labels of graders differ, filters, and one disagreement with its causes."""
    if (figures := parts.current_figures(study)) is None:
        _wait(study)
        return
    parts.latest_figures(study)  # draws when the figures were made, and requests newer ones
    disagreements = [case for case in _cases_in(figures.folder) if case.rubric in study.rubrics]
    decisions = {_key_of(decision): decision for decision in cases.sorted_cases(study)}
    if not disagreements:
        st.text(written("disagreement.none"))
        show_least_agreed(study)
        return
    n_left = sum(_key_of(case) not in decisions for case in disagreements)  # without a cause
    summary = st.empty()  # above the filters, which determine its last number
    chosen = _draw_filters(study, disagreements, decisions)
    counts = {"left": n_left, "found": len(disagreements), "chosen": len(chosen)}
    with summary:
        show(block(written("disagreement.left", **counts), "note"))
    if chosen:
        by_key = {_key_of(case): case for case in chosen}
        shown: _Shown = st.session_state.setdefault(_SHOWN, _Shown(_key_of(chosen[0])))
        shown.key = shown.key if shown.key in by_key else _key_of(chosen[0])
        _show_unit(study, shown, by_key, decisions.get(shown.key))


@st.fragment(run_every="3s")
def _wait(study: Study) -> None:
    """Draw the whole page again as soon as there are figures."""
    require(study, "lead")
    if parts.latest_figures(study) is not None:
        st.rerun()


@lru_cache(maxsize=4)
def _cases_in(folder: Path) -> list[GraderDisagreement]:
    """Return the disagreements in a folder of figures, the largest difference first; those of
    baselines, which nobody means to use, last.
    """
    rows = json.loads((folder / DISAGREEMENTS_FILE).read_text("utf-8"))
    disagreements = [GraderDisagreement(**row) for row in rows]
    return sorted(disagreements, key=lambda case: case.grader.startswith("baseline:"))


def _key_of(case: GraderDisagreement | cases.SortedDisagreement) -> DisagreementKey:
    return DisagreementKey(case.rubric, case.unit_id, case.grader)


def _draw_filters(
    study: Study,
    disagreements: Sequence[GraderDisagreement],
    decisions: dict[DisagreementKey, cases.SortedDisagreement],
) -> list[GraderDisagreement]:
    """Draw filters by rubric, grader and cause; return the disagreements that pass them, by the
    `decisions` on their causes so far.
    """
    row, names = st.container(horizontal=True, key="filters"), study.config.names

    def choose(label: str, titles: Mapping[str, str]) -> str:
        return row.selectbox(label, list(titles), format_func=titles.__getitem__)

    titles, by_grader = parts.rubric_titles(study), Counter(case.grader for case in disagreements)
    rubrics = {case.rubric: titles[case.rubric] for case in disagreements}
    graders = {name: f"{names.get(name, name)} ({n:,})" for name, n in by_grader.most_common()}
    rubric = choose("Rubric", {_ALL: "All"} | rubrics)
    grader = choose("Grader", {_ALL: "All"} | graders)
    kinds = {_OPEN: written("disagreement.not_sorted"), _ALL: "All"}
    cause = choose("Cause", kinds | {kind: kind_title(kind) for kind in cases.KINDS})
    causes = {key: decision.kind for key, decision in decisions.items()}
    return [
        case
        for case in disagreements
        if rubric in (_ALL, case.rubric)
        and grader in (_ALL, case.grader)
        and cause in (_ALL, causes.get(_key_of(case), _OPEN))
    ]


def _show_unit(
    study: Study,
    shown: _Shown,
    by_key: Mapping[DisagreementKey, GraderDisagreement],
    before: cases.SortedDisagreement | None,
) -> None:
    """Draw the disagreement that is `shown`: its texts; next to them buttons to others in `by_key`,
    its labels, and its causes, of which one may have been chosen `before`.
    """
    keys, case = list(by_key), by_key[shown.key]
    rubric, key = study.rubrics[case.rubric], (case.rubric, case.unit_id)
    people = parts.text_for_annotators(study, case.unit_id, case.rubric)
    options, title_of = rubric.kind.listed, rubric.kind.title_of
    reasons = quoted_remarks(study, [case]).get(key, {})

    def marked_by(raters: Sequence[str]) -> str:
        return written("evidence.marked_by", who=", ".join(raters))

    texts, decision = st.columns([3, 2])
    with texts:
        show(heading(f"{case.unit_id}, {rubric.title}"))
        marks = quoted_marks(study, [case]).get(key, [])
        show(parts.marked_blocks(study, people.blocks, marks, marked_by))
    with decision, st.container(key="decision"):
        _show_neighbours(shown, keys)
        show(block(people.question, "note"))
        name, given = study.config.names.get(case.grader, case.grader), sorted(case.people.items())
        by_label: dict[str, list[str]] = {title_of(label): [] for _, label in given}
        for rater, label in given:
            by_label[title_of(label)].append(": ".join(filter(None, (rater, reasons.get(rater)))))
        show(heading("Grader", 3), items([(title_of(case.label), [name])]))
        show(heading(f"Annotators ({len(given)})", 3), items(by_label.items()))
        for reply in quoted_replies(study, [case]).get(_key_of(case), ()):
            show(block(reply, "quote", written("disagreement.page_reply")))
        _show_causes(study, shown, keys, before)
        with st.expander("The rubric"):
            show(items((title_of(option.key), [option.description]) for option in options))
            if not options:
                st.text(f"Answer: {rubric.kind.permitted}")


def _show_causes(
    study: Study,
    shown: _Shown,
    chosen: Sequence[DisagreementKey],
    choice: cases.SortedDisagreement | None,
) -> None:
    """Draw the note's field and a button for each cause, which goes on to the next of `chosen`."""
    key, token = shown.key, _token(shown.key)  # as drawn: an act may move on
    if choice:
        st.text(written("disagreement.so_far", kind=kind_title(choice.kind), who=choice.done_by))

    # The name of the note's field is the token, so that each disagreement has another field.
    def store(study: Study, who: Visitor, kind: cases.Kind | Literal[""], **notes: str) -> None:
        if shown.key != key:  # an earlier act has moved on
            raise InputError(written("lead.unit_changed"))
        cases.sort_disagreement(study, who.name, kind=kind, note=notes[token], **key._asdict())
        shown.key = chosen[(chosen.index(key) + 1) % len(chosen)]

    storing = partial(lead_callback, study, _SORTED, store)  # takes the kind
    label, note = "Note, saved with your choice", choice.note if choice else ""  # for `store`
    st.text_input(label, note, key=f"{_SORTED}.{token}", autocomplete="off", placeholder=label)
    st.text("Why do they differ?")
    with st.container(horizontal=True, key="disagreement-keys"):
        for key_cap, kind in zip("123", cases.KINDS, strict=True):
            st.button(kind_title(kind), f"{kind}-{token}", on_click=storing(kind), shortcut=key_cap)
        if choice:
            st.button("Take it back", f"back-{token}", on_click=storing(""), shortcut="T")
    show_outcome(_SORTED)


def _show_neighbours(shown: _Shown, keys: Sequence[DisagreementKey]) -> None:
    """Draw buttons to the disagreements before and after, the number, and links to the sides."""
    number, is_off, token = keys.index(shown.key), len(keys) == 1, _token(shown.key)

    def button(title: str, shortcut: str, step: int) -> None:
        act = partial(setattr, shown, "key", keys[(number + step) % len(keys)])
        st.button(title, f"{title}-{token}", shortcut=shortcut, disabled=is_off, on_click=act)

    with st.container(horizontal=True, vertical_alignment="center", key="neighbours"):
        button("Previous", "P", -1)
        st.text(f"{number + 1:,} of {len(keys):,}")
        button("Next", "N", 1)
        show('<p class="to-sides"><a href="#side-a">To A</a><a href="#side-b">To B</a></p>')
