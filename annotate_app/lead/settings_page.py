"""The pages that change the study: its settings, each with its explanation, its value and, where it
may be changed now, a control; its texts, rubrics, practice units and questions.

A change is entered in controls, shown with what it does, then saved.
"""

from __future__ import annotations

import hashlib
import html
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args, get_origin
from zoneinfo import available_timezones

import streamlit as st
from pydantic.fields import FieldInfo
from streamlit.delta_generator import DeltaGenerator

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.html_texts import (
    block,
    drawn_blocks,
    drawn_rubric,
    drawn_text,
    heading,
    plain,
    show,
    show_complaint,
)
from evenhand.annotate_app.languages import ENGLISH, codes_english_first, language
from evenhand.annotate_app.lead.parts import WORDS, as_raters_see, listed, show_table
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES, TextBlock
from evenhand.study import Study
from evenhand.study.access import Visitor
from evenhand.study.changing import (
    Contents,
    Difference,
    changed_since,
    contents_of,
    differences,
    effects,
    fixed_because,
    has_begun,
    labels_under,
    read_files,
    save,
)
from evenhand.study.settings.sections import keys_of, section_of
from evenhand.study.settings.study_toml import (
    FILE_NAME,
    Changes,
    StudyConfig,
    in_words,
    with_entry,
    with_values,
)
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import named, written

_EDITING, _OFFER, _SAVE, _COMPLAINT = "editing", "offer", "save", "not_saved"
_LONGEST = 300
"""Characters of a text that the table of changes shows."""


@dataclass(frozen=True)
class Editing:
    """The part of the pages that is edited, and the study's files as they were at the start."""

    place: str
    present: Contents

    def text(self, name: str = FILE_NAME) -> str:
        """The text of one of the files; empty where it is not there."""
        return (self.present.files.get(name) or b"").decode("utf-8-sig")

    def key(self, name: str) -> str:
        """The key of a widget: it holds what was entered, until the files are read again."""
        contents = sorted((name, content or b"") for name, content in self.present.files.items())
        return f"{self.place}.{hashlib.sha256(repr(contents).encode()).hexdigest()[:12]}.{name}"


@dataclass(frozen=True)
class _Offer:
    place: str
    after: Contents
    differences: list[Difference]
    effects: list[str]


def begin(study: Study, place: str) -> Editing:
    """Return what is edited at this place of the pages, and say what came of the last change.

    Raises InputError where the study's files do not hold together as they are.
    """
    show_outcome(_SAVE)
    before = st.session_state.get(_EDITING)
    if isinstance(before, Editing) and before.place == place:
        begins = before.key("")  # while its widgets are on the page something may be entered
        if any(str(key).startswith(begins) for key in st.session_state):
            return before
    editing = Editing(place, contents_of(study, read_files(study)))
    st.session_state[_EDITING] = editing
    st.session_state.pop(_OFFER, None)
    return editing


def offer(study: Study, editing: Editing, make: Callable[[], dict[str, str]]) -> None:
    """Determine the effects of a change, to be shown and saved. `make` returns the new texts of the
    files that it changes, in the order in which they are to be written.
    """
    st.session_state.pop(_OFFER, None)
    st.session_state.pop(_COMPLAINT, None)
    try:
        texts = {name: text.encode() for name, text in make().items()}
        # What is written first comes first.
        after = contents_of(study, {**texts, **editing.present.files, **texts})
        changes = list(differences(editing.present, after))
        if not changes:
            raise InputError(written("change.nothing"))
        consequences = effects(study, editing.present, after)
        st.session_state[_OFFER] = _Offer(editing.place, after, changes, consequences)
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)


def show_offer(study: Study, editing: Editing) -> Contents:
    """Show the change that was entered: what is new, what that does, and the choice. Return the
    study's contents with it; without an offer, as they are.
    """
    if complaint := st.session_state.get(_COMPLAINT, ""):
        show_complaint(complaint)
    if late := changed_since(study, editing.present.files):
        if not complaint:
            show_complaint(written("change.meanwhile", files=" and ".join(late)))
        with st.container(border=True, key="newer"):
            now = contents_of(study, read_files(study))
            st.text(written("change.newer"))
            _show_differences(differences(editing.present, now), "What is new")
            st.text(written("change.again"))
            st.button("Begin again from the newer text", on_click=_begin_again)
        return editing.present
    offered = st.session_state.get(_OFFER)
    if not isinstance(offered, _Offer) or offered.place != editing.place:
        return editing.present
    with st.container(border=True, key="offer"):
        st.header(written("change.title"), anchor=False)
        _show_differences(offered.differences, "What changes")
        for sentence in offered.effects:
            st.text(sentence)
        yes, no, _ = st.columns([1, 1, 2])
        saving = lead_callback(study, _SAVE, _save, editing, offered)
        yes.button("Save", type="primary", on_click=saving, width="stretch")
        no.button("Do not save", on_click=_begin_again, width="stretch")
    return offered.after


def _show_differences(changes: Iterable[Difference], caption: str) -> None:
    rows = [(change.place, _cut(change.before), _cut(change.after)) for change in changes]
    columns = {"place": "What", "now": "Before", "then": "After"}
    show_table(pd.DataFrame(rows, columns=list(columns)), caption, columns)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _begin_again() -> None:
    for name in (_EDITING, _OFFER, _COMPLAINT):
        st.session_state.pop(name, None)


def _save(study: Study, who: Visitor, editing: Editing, offered: _Offer) -> Callable[[], None]:
    try:
        saved = save(study, editing.present.files, offered.after.files, who.name)
    except InputError as error:
        return partial(_refuse, str(error))
    return partial(_show_saved, ", ".join(dict.fromkeys(change.place for change in saved)))


def _show_saved(places: str) -> None:
    _begin_again()
    st.success(plain(written("change.saved", places=places)))


def _refuse(complaint: str) -> None:
    st.session_state[_COMPLAINT] = complaint
    st.session_state.pop(_OFFER, None)


# A control for each setting, by its class: a switch, a number, a choice, a text, a list.

_INTEGERS = 2**31 - 1


def titled(place: str) -> str:
    """The title of the setting at a place of study.toml."""
    return WORDS["settings"].get(place) or named(place.rpartition(".")[2])


def explained(text: str, place: str) -> str:
    """The explanation of a setting as HTML, with its place in study.toml on hover; `code` in
    backticks is drawn as such. Empty where the setting's title says it all.
    """
    plain_text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.removeprefix("true "))
    if re.split(": `| `", plain_text)[0].casefold() == titled(place).casefold():
        return ""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(plain_text, quote=False))
    return f'<p class="evenhand-explained" title="{place}">{marked[:1].upper()}{marked[1:]}.</p>'


def control(key: str, field: FieldInfo, place: str, present: Any, study: Study) -> Any:
    """Draw a setting's control with its present value, under this key; return what is entered."""
    name = place.rpartition(".")[2]
    kind, label = field.annotation, titled(place)
    choices: Sequence[str] = get_args(kind) if get_origin(kind) is Literal else ()
    shown_as: Callable[[str], str] = str
    if name in ("language", "languages"):
        choices, shown_as = codes_english_first(), _language_name
    elif name == "time_zone":
        choices = sorted(available_timezones())
    elif name == "rubrics":
        choices = list(study.rubrics)
    if kind is bool:
        return st.toggle(label, present, key=key)
    if kind in (int, float):
        return _number(key, field, label, present)
    if get_origin(kind) is dict:  # lists in lines, `NAME: one, another`
        text = "\n".join(f"{part}: {', '.join(values)}" for part, values in present.items())
        label += " (one a line, as NAME: first, second)"
        lines = listed(st.text_area(label, text, height=96, key=key), "\n")
        parts = (line.partition(":") for line in lines)
        return {part.strip(): listed(values) for part, _, values in parts}
    if get_origin(kind) is tuple:
        of = get_args(kind)[0]
        closed = get_args(of) if get_origin(of) is Literal else choices
        return st.multiselect(
            label,
            list(dict.fromkeys([*closed, *present])),
            list(present),
            key=key,
            format_func=shown_as,
            accept_new_options=not closed,
            placeholder="None chosen" if closed else "Type one, then Enter",
        )
    if choices:
        choices = list(dict.fromkeys([*choices, present]))
        return st.selectbox(label, choices, choices.index(present), key=key, format_func=shown_as)
    return st.text_input(label, present or "", autocomplete="off", key=key).strip()


def _number(key: str, field: FieldInfo, label: str, present: Any) -> int | float | None:
    limits = [(limit, name) for limit in field.metadata for name in ("ge", "gt", "le")]
    bounds = {name: getattr(limit, name) for limit, name in limits if hasattr(limit, name)}
    if field.annotation is int:
        least = bounds["gt"] + 1 if "gt" in bounds else bounds.get("ge", -_INTEGERS)
        entered = st.number_input(
            label, int(least), int(bounds.get("le", _INTEGERS)), present, 1, key=key
        )
        return None if entered is None else int(entered)
    low, high, value = (
        None if number is None else float(number)
        for number in (bounds.get("ge"), bounds.get("le"), present)
    )
    step = 0.05 if high is not None and high <= 1 else 1.0
    return st.number_input(label, low, high, value, step, "%g", key=key)


# The pages

_SEE = "Review changes"
_PARTS = WORDS["parts"]
_BESIDE = {"sample": ("name", "seed", "store", "synthetic")}
"""Settings outside any section -> the part that they are shown with."""
_ELSEWHERE = {
    "session.content_warning": "texts",
    "session.instructions": "texts",
    "training.file": "training",
    "attention.file": "training",
}
"""Settings that have a page of their own -> the sentence that names it."""


def show_settings(study: Study) -> None:
    st.text(written("lead.settings"))
    part = _choose_part("Section", _PARTS, "settings_part")
    editing = begin(study, f"settings-{part}")
    config = editing.present.config
    fields = _settings_of(config, part)
    begun = has_begun(study)
    fixed = {
        place: written(f"change.elsewhere_{_ELSEWHERE[place]}")
        if place in _ELSEWHERE
        else fixed_because(place, begun)
        for place in fields
    }
    with st.container(key="settings"), st.form(editing.key("form"), border=False):
        wanted = True
        if part != "sample" and StudyConfig.model_fields[part].default is None:
            is_used, key = getattr(config, part) is not None, editing.key("used")
            wanted = st.toggle("Use this part in the study", is_used, key=key)
        entered: dict[str, Any] = {}
        columns = st.columns(2, gap="large")
        for place, (field, present) in fields.items():
            if fixed[place]:
                continue
            with columns[len(entered) % 2]:
                entered[place] = control(editing.key(place), field, place, present, study)
                if explanation := explained(field.description or "", place):
                    show(explanation)
        with st.container(key="in-view"):
            sent = st.form_submit_button(_SEE, type="primary")
    if sent:
        offer(study, editing, lambda: _changed_settings(editing, part, wanted, entered))
    show_offer(study, editing)
    rows = [
        (titled(place), in_words(fields[place][1]), reason.replace("`", ""))
        for place, reason in fixed.items()
        if reason
    ]
    if rows:
        titles = {"name": "Setting", "value": "Set to", "why": "Why it is locked"}
        show_table(pd.DataFrame(rows, columns=list(titles)), written("change.fixed"), titles)


def _choose_part(label: str, titles: Mapping[str, str], key: str) -> str:
    """Let the lead choose a part of the page, which begins with the first."""
    first, shown_as = next(iter(titles)), titles.__getitem__
    chosen = st.segmented_control(
        label, list(titles), default=first, format_func=shown_as, required=True, key=key
    )
    return chosen or first


def _settings_of(config: StudyConfig, part: str) -> dict[str, tuple[FieldInfo, Any]]:
    """The settings of a part by their keys, each with its value, or its default where the study
    leaves the section out. Of the store's address, which may hold a password, only the kind.
    """
    fields = StudyConfig.model_fields
    section, of = section_of(fields[part]), getattr(config, part)
    settings = {name: (fields[name], getattr(config, name)) for name in _BESIDE.get(part, ())}
    if "store" in settings:
        settings["store"] = (fields["store"], config.store.partition("://")[0])
    for name, field in keys_of(section).items() if section else ():
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        settings[f"{part}.{name}"] = (field, usual if of is None else getattr(of, name))
    return settings


def _changed_settings(
    editing: Editing, part: str, wanted: bool, entered: Mapping[str, Any]
) -> dict[str, str]:
    """study.toml with what was entered; what is as it was stays as it is written."""
    config = editing.present.config
    if not wanted:
        if getattr(config, part) is None:
            raise InputError(written("change.not_used"))
        return {FILE_NAME: with_values(editing.text(), {part: None})}
    changes: dict[str, dict[str, Any]] = {}
    for place, value in entered.items():
        above, _, name = place.rpartition(".")
        of = getattr(config, above) if above else config
        if value is not None and (of is None or value != _plain(getattr(of, name))):
            changes.setdefault(above, {})[name] = value
    return {FILE_NAME: with_values(editing.text(), changes)}


def _plain(value: Any) -> Any:
    """A value as a control gives it: tuples are lists."""
    if isinstance(value, dict):
        return {key: _plain(content) for key, content in value.items()}
    return [_plain(content) for content in value] if isinstance(value, tuple) else value


# The study's own texts for its raters, with a preview drawn as raters see it.

_TEXTS = WORDS["texts"]


def show_texts(study: Study) -> None:
    st.text(written("lead.texts"))
    languages = [study.config.annotation.language, *study.config.annotation.languages]
    left, right = st.columns(2)
    name = left.selectbox("Text", list(_TEXTS), format_func=_TEXTS.__getitem__, key="text")
    code = _choose_language(right, languages, "text_in")
    is_usual, reader = code == languages[0], language(code)
    editing = begin(study, f"text-{name}-{code}")
    config, file = editing.present.config, f"{name}.{code}.md"
    if not is_usual:
        present = editing.text(file).strip()
    elif name == "consent":
        present = config.consent.text if config.consent else ""
    else:
        present = str(getattr(config.session, name))
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        label, key = f"{_TEXTS[name]} (Markdown)", editing.key("text")
        text = st.text_area(label, present, height=360, key=key)
        sent = st.form_submit_button(_SEE, type="primary")
    with right:
        is_warning = name == "content_warning"
        page = "consent" if name == "consent" else "welcome"
        kind, label = ("warning", reader.say("session.warning")) if is_warning else ("text", "")
        empty = block(written("lead.texts_none"))
        drawn = drawn_text(text, kind, label, reader.code) if text.strip() else empty
        as_raters_see(heading(reader.say(f"session.{page}_title"), 1) + drawn)

    def changed() -> dict[str, str]:
        entered = text.strip()
        if not is_usual:
            return {file: f"{entered}\n"}
        new: Changes = {"session": {name: entered}}
        if name == "consent":  # without a text a study does not ask for it
            new = {"consent": {"text": entered} if entered else None}
        return {FILE_NAME: with_values(editing.text(), new)}

    if sent:
        offer(study, editing, changed)
    show_offer(study, editing)


def _choose_language(column: DeltaGenerator, codes: Sequence[str], key: str) -> str:
    """Let the lead choose one of the languages; the usual one where there is no other."""
    if len(codes) == 1:
        return codes[0]
    return column.selectbox("Language", codes, format_func=_language_name, key=key)


def _language_name(code: str) -> str:
    return language(code).name if code in codes_english_first() else code


# The words of the study's own rubrics, and what a change of them does to labels given so far.


def show_rubrics(study: Study) -> None:
    st.text(written("lead.rubrics"))
    left, right = st.columns(2)
    name = left.selectbox("Rubric", list(study.rubrics), key="rubric_name")
    versions = list(study.rubrics[name].versions)
    code = _choose_language(right, versions, "rubric_in")
    editing = begin(study, f"rubric-{name}-{code}")
    rubric = editing.present.rubrics[name].in_language(code)
    is_usual, meaning = code == versions[0], "differs"
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        words, options = _ask_for_words(editing, rubric)
        if is_usual and labels_under(study, editing.present.rubrics[name]):
            label, kinds = "What kind of change is this?", ("differs", "same")
            words_of, key = (lambda kind: written(f"change.{kind}")), editing.key("meaning")
            meaning = st.radio(label, kinds, format_func=words_of, key=key)
        sent = st.form_submit_button(_SEE, type="primary")
    if sent:
        at = "" if is_usual else f"translations.{code}"
        same = meaning == "same"
        offer(study, editing, lambda: _changed_rubric(editing, rubric, at, words, options, same))
    after = show_offer(study, editing).rubrics[name].in_language(code)
    with right:
        reader = language(code) if code in codes_english_first() else ENGLISH
        as_raters_see(drawn_rubric(after, reader))


def _ask_for_words(editing: Editing, rubric: Rubric) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Draw the fields of a rubric's words; return what is entered, and that of each option."""
    key, guidelines = editing.key, "Guidelines (Markdown)"
    words = {
        "title": _line("Title", rubric.title, key("title")),
        "question": _line("Question", rubric.question, key("question")),
        "instructions": st.text_area(
            guidelines, rubric.instructions, height=220, key=key("instructions")
        ).strip(),
    }
    options = []
    for option in rubric.kind.listed:
        of, at = f"Option {option.key}", option.key
        with st.expander(f"{of}: {plain(option.name)}"):
            name = st.text_input(f"{of}, name", option.name, key=key(f"{at}.name"))
            description = st.text_area(
                f"{of}, description", option.description, key=key(f"{at}.said"), height=96
            )
            label, examples = f"{of}, examples, one a line", "\n".join(option.examples)
            examples = st.text_area(label, examples, key=key(f"{at}.examples"), height=96)
        entered = {"name": name.strip(), "description": description.strip()}
        options.append({**entered, "examples": listed(examples, "\n")})
    return words, options


def _line(label: str, present: str, key: str) -> str:
    return st.text_input(label, present, key=key, autocomplete="off").strip()


def _changed_rubric(
    editing: Editing,
    rubric: Rubric,
    at: str,
    words: dict[str, str],
    options: list[dict[str, Any]],
    same: bool,
) -> dict[str, str]:
    """The rubric's file with the new words of one language, and with `same` the settings, in which
    its older text means the same.
    """
    file = f"{RUBRICS_FOLDER}/{rubric.name}.toml"
    text = editing.text(file)
    new = {name: word for name, word in words.items() if word != getattr(rubric, name)}
    text = with_values(text, {at: new})
    place = f"{at}.options" if at else "options"
    written_options = _entries(text, place)
    for number, (option, entered) in enumerate(zip(rubric.options, options, strict=False)):
        present = {**option.model_dump(include=set(entered)), "examples": list(option.examples)}
        changed = {name: value for name, value in entered.items() if value != present[name]}
        if changed:
            text = with_entry(text, place, number, {**written_options[number], **changed})
    before = editing.present.rubrics[rubric.name]
    older = editing.present.config.same_text.get(rubric.name, ())
    if not same and (at or not older):
        return {file: text}
    # What meant the same as the text before does not mean the same as one that differs. The
    # settings first: as long as the old text is there, they change nothing.
    equal = list(dict.fromkeys([*older, before.hash])) if same else None
    settings = with_values(editing.text(), {"same_text": {rubric.name: equal}})
    return {FILE_NAME: settings, file: text}


# Practice units, attention checks, and the questions before the work: one after the other.


@dataclass(frozen=True)
class _List:
    """A list of the study that is edited entry by entry: the section whose file it is in ("" for
    study.toml), its place there, and the key that tells entries apart.
    """

    title: str
    one: str
    section: str
    place: str
    name: str


_LISTS = {
    "practice": _List("Practice items", "practice item", "training", "unit", "name"),
    "checks": _List("Attention checks", "attention check", "attention", "unit", "name"),
    "comprehension": _List("Comprehension questions", "question", "", "comprehension", "question"),
    "background": _List("Background questions", "question", "", "background.questions", "key"),
}


def show_training(study: Study) -> None:
    st.text(written("lead.training"))
    titles = {name: entries.title for name, entries in _LISTS.items()}
    kind = _choose_part("Kind", titles, "training_kind")
    edited = _LISTS[kind]
    editing = begin(study, f"training-{kind}")
    section = getattr(editing.present.config, edited.section) if edited.section else None
    in_use = section.file if section else ""  # the file may be there while its part is off
    file = (in_use or f"{edited.section}.toml") if edited.section else FILE_NAME
    entries = _entries(editing.text(file), edited.place)  # none: a study takes the usual questions
    if entries:
        state = "entries" if in_use or not edited.section else "entries_off"
        st.text(written(f"lead.{state}", count=len(entries), file=file))
    else:
        st.text(written("lead.no_entries"))
    names = [*(str(entry.get(edited.name, "")) for entry in entries), f"New {edited.one}"]
    label, places, key_at = f"Edit {edited.one}", range(len(names)), editing.key("at")
    at = st.selectbox(label, places, format_func=names.__getitem__, key=key_at)
    entry = entries[at] if at < len(entries) else {}
    of_units = edited.place == "unit"
    form, shown = st.columns(2, gap="large")
    with form, st.form(editing.key(f"form.{at}"), border=False):
        key = lambda name: editing.key(f"{at}.{name}")  # noqa: E731
        entered = (
            _unit(study, entry, key, explains=edited.section == "training")
            if of_units
            else _question(edited, entry, key)
        )
        keep, take_out, _ = st.columns([1, 1, 1])
        sent = keep.form_submit_button(_SEE, type="primary", width="stretch")
        removes = bool(entry) and take_out.form_submit_button("Delete", width="stretch")
    if sent or removes:
        new = None if removes else entered
        offer(study, editing, lambda: _changed_entries(editing, edited, file, at, new))
    show_offer(study, editing)
    if of_units:
        with shown:
            as_raters_see(_drawn_unit(study, entered))


def _entries(text: str, place: str) -> list[dict[str, Any]]:
    content: Any = tomllib.loads(text)
    for part in place.split("."):
        content = content.get(part, {})
    return list(content)


def _unit(
    study: Study, entry: dict[str, Any], key: Callable[[str], str], *, explains: bool
) -> dict[str, Any]:
    """Draw the fields of a unit with a known answer; return what is entered."""
    rubrics = study.labelled_rubrics()
    unit: dict[str, Any] = {"name": _line("Name", entry.get("name", ""), key("name"))}
    values = {}
    order = [*TEXT_VARIABLES]  # as annotators read them; what a rubric adds comes first
    variables = dict.fromkeys(name for rubric in rubrics for name in rubric.variables)
    sides = st.columns(2) if any(name.endswith(("_a", "_b")) for name in variables) else ()
    columns = dict(zip(("_a", "_b"), sides, strict=False))
    for variable in sorted(variables, key=lambda name: name in order and order.index(name) + 1):
        present = entry.get("values", {}).get(variable, "")
        label = TEXT_VARIABLES.get(variable, named(variable))
        column = columns.get(variable[-2:], st)
        values[variable] = column.text_area(
            label, present, key=key(f"values.{variable}"), height=80
        )
    unit["values"] = {variable: text for variable, text in values.items() if text}
    expected = {
        rubric.name: _right_answers(rubric, entry.get("expected", {}).get(rubric.name, []), key)
        for rubric in rubrics
    }
    unit["expected"] = {name: keys for name, keys in expected.items() if keys}
    if explains:
        label = "Explanation, shown with the correct answer (Markdown)"
        present, at = entry.get("explanation", ""), key("explanation")
        unit["explanation"] = st.text_area(label, present, key=at, height=110).strip() or None
    elif "explanation" in entry:
        unit["explanation"] = entry["explanation"]
    return unit


def _right_answers(
    rubric: Rubric, present: str | list[str], key: Callable[[str], str]
) -> list[str]:
    """Draw the right answers on a rubric; return those chosen."""
    keys = [present] if isinstance(present, str) else list(present)
    label, at = f"Correct answer: {plain(rubric.title)}", key(f"expected.{rubric.name}")
    if not rubric.kind.listed:
        return listed(_line(label, ", ".join(keys), at))
    return st.multiselect(
        label, list(dict.fromkeys([*rubric.kind.keys, *keys])), keys, key=at,
        format_func=rubric.kind.title_of,
        placeholder="Any answer",
    )  # fmt: skip


def _question(edited: _List, entry: dict[str, Any], key: Callable[[str], str]) -> dict[str, Any]:
    """Draw the fields of a question before the work; return what is entered."""
    question: dict[str, Any] = {}
    if edited.name == "key":
        column = "Column in the table of annotators"
        question["key"] = st.text_input(column, entry.get("key", ""), key=key("key")).strip()
        label, present = "Most people for each answer, in their order", entry.get("quotas", ())
        quotas = listed(_line(label, ", ".join(map(str, present)), key("quotas")))
        question["quotas"] = [int(text) if text.isdecimal() else text for text in quotas] or None
    question["question"] = st.text_input("Question", entry.get("question", ""), key=key("question"))
    options = "\n".join(entry.get("options", ()))
    options = st.text_area("Answers, one per line", options, key=key("options"), height=130)
    question["options"] = listed(options, "\n")
    if edited.name == "question":
        question["answer"] = _line("Correct answer", entry.get("answer", ""), key("answer"))
        label, present = "Explanation, shown after a wrong answer", entry.get("explanation", "")
        explanation = st.text_area(label, present, key=key("explanation"), height=96)
        question["explanation"] = explanation.strip() or None
    return question


def _drawn_unit(study: Study, unit: dict[str, Any]) -> str:
    """The texts of a unit as raters see them, and what they are told."""
    blocks: dict[str, TextBlock] = {}
    for rubric in study.labelled_rubrics():
        values = {name: unit["values"].get(name, "") for name in rubric.variables}
        blocks |= {text.variable: text for text in rubric.for_people(values).blocks}
    shown = [text for text in blocks.values() if text.text]
    explanation = unit.get("explanation") or ""
    if not (shown or explanation):
        return block(written("lead.no_preview"))
    drawn = drawn_text(explanation) if explanation else ""
    return drawn + drawn_blocks(shown, ENGLISH, study.config.annotation.display)


def _changed_entries(
    editing: Editing, edited: _List, file: str, at: int, entry: dict[str, Any] | None
) -> dict[str, str]:
    """The file with the entry; the first one turns its part on, and the last one turns it off."""
    text, place, section = editing.text(file), edited.place, edited.section
    if place == "unit" and entry is not None and not entry["expected"]:
        raise InputError(written("lead.no_right_answer"))
    if place == "background.questions" and editing.present.config.background is None:
        text = with_values(text, {"background": {}})
    text = with_entry(text, place, at, entry)
    is_empty = not _entries(text, place)
    if place == "background.questions" and is_empty:
        text = with_values(text, {"background": None})  # without a list the usual ones are asked
    if not section:
        return {file: text}
    if not is_empty:
        # The units first: as long as no setting names their file, they change nothing.
        return {file: text, FILE_NAME: with_values(editing.text(), {section: {"file": file}})}
    without = None if section == "attention" else {"file": None}
    return {FILE_NAME: with_values(editing.text(), {section: without}), file: text}
