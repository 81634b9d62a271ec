"""The pages that change the study: settings, texts, rubrics, practice items, checks and questions.

Every change is entered in fields, reviewed with its effects, and then saved to the study's files.
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

from evenhand.annotate_app import html_texts
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.languages import ENGLISH, codes_english_first, language
from evenhand.annotate_app.lead.parts import WORDS, show_annotator_view, show_table, split_list
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES, TextBlock
from evenhand.study import Study, changing
from evenhand.study.access import Visitor
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
from evenhand.texts import readable_name, written

_EDITING, _OFFER, _SAVE, _COMPLAINT = "editing", "offer", "save", "not_saved"
_LONGEST = 300
"""Characters of a text that the table of changes shows."""


@dataclass(frozen=True)
class Editing:
    """An edited part: its place on the pages, and the study's files when editing began."""

    place: str
    present: changing.Contents

    def text(self, name: str = FILE_NAME) -> str:
        """Return the text of one of the files; empty if there is no such file."""
        return (self.present.files.get(name) or b"").decode("utf-8-sig")

    def key(self, name: str) -> str:
        """Return the key of a widget, whose value is thus kept until the files are read again."""
        contents = sorted((name, content or b"") for name, content in self.present.files.items())
        return f"{self.place}.{hashlib.sha256(repr(contents).encode()).hexdigest()[:12]}.{name}"


@dataclass(frozen=True)
class _Offer:
    """A change that was entered and is not saved yet, with what it changes and its effects."""

    place: str
    after: changing.Contents
    differences: list[changing.Difference]
    effects: list[str]


def begin(study: Study, place: str) -> Editing:
    """Return what is edited at this place of the pages, and draw the outcome of the last change.
    Raises InputError if the study's present files contradict each other.
    """
    show_outcome(_SAVE)
    before = st.session_state.get(_EDITING)
    if isinstance(before, Editing) and before.place == place:
        prefix = before.key("")  # its widgets are on the page, and may hold a change
        if any(str(key).startswith(prefix) for key in st.session_state):
            return before
    editing = Editing(place, changing.contents_of(study, changing.read_files(study)))
    st.session_state[_EDITING] = editing
    st.session_state.pop(_OFFER, None)
    return editing


def offer(study: Study, editing: Editing, make: Callable[[], dict[str, str]]) -> None:
    """Determine a change and its effects, for `show_offer`. `make` returns the new texts of files
    by name, in the order in which they are written.
    """
    st.session_state.pop(_OFFER, None)
    st.session_state.pop(_COMPLAINT, None)
    try:
        texts = {name: text.encode() for name, text in make().items()}
        # The changed files first, in the order of writing.
        after = changing.contents_of(study, {**texts, **editing.present.files, **texts})
        changes = list(changing.differences(editing.present, after))
        if not changes:
            raise InputError(written("change.nothing"))
        consequences = changing.effects(study, editing.present, after)
        st.session_state[_OFFER] = _Offer(editing.place, after, changes, consequences)
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)


def show_offer(study: Study, editing: Editing) -> changing.Contents:
    """Draw the change that was entered, its effects, and the buttons to save it or not. Return the
    study's contents with the change, or the present ones if there is none.
    """
    if complaint := st.session_state.get(_COMPLAINT, ""):
        html_texts.show_complaint(complaint)
    if changed_files := changing.changed_since(study, editing.present.files):
        if not complaint:
            html_texts.show_complaint(
                written("change.meanwhile", files=" and ".join(changed_files))
            )
        with st.container(border=True, key="newer"):
            newer = changing.contents_of(study, changing.read_files(study))
            st.text(written("change.newer"))
            _show_differences(changing.differences(editing.present, newer), "What is new")
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
        left, middle, _ = st.columns([1, 1, 2])
        save_changes = lead_callback(study, _SAVE, _save, editing, offered)
        left.button("Save", type="primary", on_click=save_changes, width="stretch")
        middle.button("Do not save", on_click=_begin_again, width="stretch")
    return offered.after


def _show_differences(changes: Iterable[changing.Difference], caption: str) -> None:
    rows = [(change.key, _cut(change.before), _cut(change.after)) for change in changes]
    columns = {"place": "What", "now": "Before", "then": "After"}
    show_table(pd.DataFrame(rows, columns=list(columns)), caption, columns)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _begin_again() -> None:
    for name in (_EDITING, _OFFER, _COMPLAINT):
        st.session_state.pop(name, None)


def _save(study: Study, who: Visitor, editing: Editing, offered: _Offer) -> Callable[[], None]:
    try:
        saved = changing.save(study, editing.present.files, offered.after.files, who.name)
    except InputError as error:
        return partial(_refuse, str(error))
    return partial(_show_saved, ", ".join(dict.fromkeys(change.key for change in saved)))


def _show_saved(places: str) -> None:
    _begin_again()
    st.success(html_texts.plain(written("change.saved", places=places)))


def _refuse(complaint: str) -> None:
    st.session_state[_COMPLAINT] = complaint
    st.session_state.pop(_OFFER, None)


# ---- the control of a setting, by its type: switch, number, choice, text, list ------------------

_INTEGERS = 2**31 - 1


def titled(place: str) -> str:
    """Return the title of the setting at a place of study.toml, such as "session.entry"."""
    return WORDS["settings"].get(place) or readable_name(place.rpartition(".")[2])


def explained(text: str, place: str) -> str:
    """Return a setting's explanation as HTML, with its place in study.toml on hover and text in
    backticks as code; empty if it only repeats the setting's title.
    """
    plain_text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.removeprefix("true "))
    beginning, title = re.split(": `| `", plain_text)[0].casefold(), titled(place).casefold()
    if title in (beginning, re.sub(r"^(\w+)s\b", r"\1", beginning)):  # "shows", title "Show"
        return ""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(plain_text, quote=False))
    return f'<p class="evenhand-explained" title="{place}">{marked[:1].upper()}{marked[1:]}.</p>'


def control(key: str, field: FieldInfo, place: str, present: Any, study: Study) -> Any:
    """Draw a setting's control under this key, with its present value; return what is entered."""
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
    if get_origin(kind) is dict:  # of lists, one per line: `NAME: first, second`
        text = "\n".join(f"{part}: {', '.join(values)}" for part, values in present.items())
        label += " (one per line, as NAME: first, second)"
        lines = split_list(st.text_area(label, text, height=96, key=key), "\n")
        parts = (line.partition(":") for line in lines)
        return {part.strip(): split_list(values) for part, _, values in parts}
    if get_origin(kind) is tuple:
        member = get_args(kind)[0]
        closed = get_args(member) if get_origin(member) is Literal else choices
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
    """Draw a number field within the limits of the setting; return what is entered."""
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


# ---- the page Settings --------------------------------------------------------------------------

_REVIEW = "Review changes"
_WITHOUT_SECTION = {"sample": ("name", "seed", "store", "synthetic")}
"""Settings outside any section of study.toml, by the part of the page that shows them."""
_ELSEWHERE = {
    "session.content_warning": "texts",
    "session.instructions": "texts",
    "training.file": "training",
    "attention.file": "training",
}
"""Settings that another page changes, and the end of the text key that names the page."""


def show_settings(study: Study) -> None:
    """Draw a part of the settings: fields for what may change now, and a table of the rest."""
    st.text(written("lead.settings"))
    part = _choose_part("Section", WORDS["parts"], "settings_part")
    editing = begin(study, f"settings-{part}")
    config = editing.present.config
    fields = _settings_of(config, part)
    begun = changing.has_begun(study)
    fixed = {
        place: written(f"change.elsewhere_{_ELSEWHERE[place]}")
        if place in _ELSEWHERE
        else changing.fixed_because(place, begun)
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
                    html_texts.show(explanation)
        with st.container(key="in-view"):
            sent = st.form_submit_button(_REVIEW, type="primary")
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
    """Draw the choice of a part of the page; return its key in `titles`, at first the first."""
    names, title_of = list(titles), titles.__getitem__
    chosen = st.pills(label, names, default=names[0], format_func=title_of, required=True, key=key)
    return chosen or names[0]


def _settings_of(config: StudyConfig, part: str) -> dict[str, tuple[FieldInfo, Any]]:
    """Return the settings of a part by their places in study.toml, each with its value, or its
    default if the study has no such section. The store's address, which may hold a password, is cut
    down to its kind.
    """
    fields = StudyConfig.model_fields
    section, values = section_of(fields[part]), getattr(config, part)
    settings = {
        name: (fields[name], getattr(config, name)) for name in _WITHOUT_SECTION.get(part, ())
    }
    if "store" in settings:
        settings["store"] = (fields["store"], config.store.partition("://")[0])
    for name, field in keys_of(section).items() if section else ():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        settings[f"{part}.{name}"] = (field, default if values is None else getattr(values, name))
    return settings


def _changed_settings(
    editing: Editing, part: str, wanted: bool, entered: Mapping[str, Any]
) -> dict[str, str]:
    """Return study.toml with the values that differ from the present ones."""
    config = editing.present.config
    if not wanted:
        if getattr(config, part) is None:
            raise InputError(written("change.not_used"))
        return {FILE_NAME: with_values(editing.text(), {part: None})}
    changes: dict[str, dict[str, Any]] = {}
    for place, value in entered.items():
        section, _, name = place.rpartition(".")
        present = getattr(config, section) if section else config
        if value is not None and (present is None or value != _plain(getattr(present, name))):
            changes.setdefault(section, {})[name] = value
    return {FILE_NAME: with_values(editing.text(), changes)}


def _plain(value: Any) -> Any:
    """Return a value in the types that controls return: lists in place of tuples."""
    if isinstance(value, dict):
        return {key: _plain(content) for key, content in value.items()}
    return [_plain(content) for content in value] if isinstance(value, tuple) else value


# ---- the page Texts -----------------------------------------------------------------------------


def show_texts(study: Study) -> None:
    """Draw the field of one of the study's texts for annotators, in a language, with a preview."""
    st.text(written("lead.texts"))
    titles = WORDS["texts"]
    languages = [study.config.annotation.language, *study.config.annotation.languages]
    left, right = st.columns(2)
    name = left.selectbox("Text", list(titles), format_func=titles.__getitem__, key="text")
    code = _choose_language(right, languages, "text_in")
    is_default, reader = code == languages[0], language(code)
    editing = begin(study, f"text-{name}-{code}")
    config, file = editing.present.config, f"{name}.{code}.md"
    if not is_default:
        present = editing.text(file).strip()
    elif name == "consent":
        present = config.consent.text if config.consent else ""
    else:
        present = str(getattr(config.session, name))
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        label, key = f"{titles[name]} (Markdown)", editing.key("text")
        text = st.text_area(label, present, height=360, key=key)
        sent = st.form_submit_button(_REVIEW, type="primary")
    with right:
        is_warning = name == "content_warning"
        page = "consent" if name == "consent" else "welcome"
        kind, label = ("warning", reader.say("session.warning")) if is_warning else ("text", "")
        no_text = html_texts.block(written("lead.texts_none"))
        content = html_texts.drawn_text(text, kind, label, reader.code) if text.strip() else no_text
        show_annotator_view(html_texts.heading(reader.say(f"session.{page}_title"), 1) + content)

    def changed() -> dict[str, str]:
        entered = text.strip()
        if not is_default:
            return {file: f"{entered}\n"}
        new: Changes = {"session": {name: entered}}
        if name == "consent":  # a study without a text does not ask for consent
            new = {"consent": {"text": entered} if entered else None}
        return {FILE_NAME: with_values(editing.text(), new)}

    if sent:
        offer(study, editing, changed)
    show_offer(study, editing)


def _choose_language(column: DeltaGenerator, codes: Sequence[str], key: str) -> str:
    """Draw the choice of a language if there are several; return its code, at first the first."""
    if len(codes) == 1:
        return codes[0]
    return column.selectbox("Language", codes, format_func=_language_name, key=key)


def _language_name(code: str) -> str:
    return language(code).name if code in codes_english_first() else code


# ---- the page Rubrics ---------------------------------------------------------------------------


def show_rubrics(study: Study) -> None:
    """Draw the fields of a rubric's words in a language, with a preview."""
    st.text(written("lead.rubrics"))
    left, right = st.columns(2)
    name = left.selectbox("Rubric", list(study.rubrics), key="rubric_name")
    versions = list(study.rubrics[name].versions)
    code = _choose_language(right, versions, "rubric_in")
    editing = begin(study, f"rubric-{name}-{code}")
    rubric = editing.present.rubrics[name].in_language(code)
    is_default, meaning = code == versions[0], "differs"
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        words, options = _ask_for_words(editing, rubric)
        if is_default and changing.labels_under(study, editing.present.rubrics[name]):
            label, kinds = "What kind of change is this?", ("differs", "same")
            title_of, key = (lambda kind: written(f"change.{kind}")), editing.key("meaning")
            meaning = st.radio(label, kinds, format_func=title_of, key=key)
        sent = st.form_submit_button(_REVIEW, type="primary")
    if sent:
        place = "" if is_default else f"translations.{code}"
        same = meaning == "same"
        offer(study, editing, lambda: _changed_rubric(editing, rubric, place, words, options, same))
    after = show_offer(study, editing).rubrics[name].in_language(code)
    with right:
        reader = language(code) if code in codes_english_first() else ENGLISH
        show_annotator_view(html_texts.drawn_rubric(after, reader))


def _ask_for_words(editing: Editing, rubric: Rubric) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Draw the fields of a rubric's words; return the rubric's new words, and each option's."""
    key, guidelines = editing.key, "Guidelines (Markdown)"
    words = {
        "title": _line("Title", rubric.title, key("title")),
        "question": _line("Question", rubric.question, key("question")),
        "instructions": st.text_area(
            guidelines, rubric.instructions, height=360, key=key("instructions")
        ).strip(),
    }
    options = []
    for option in rubric.kind.listed:
        title, place = f"Option {option.key}", option.key
        with st.expander(f"{title}: {html_texts.plain(option.name)}"):
            name = st.text_input(f"{title}, name", option.name, key=key(f"{place}.name"))
            label, present = f"{title}, description", option.description
            description = st.text_area(label, present, key=key(f"{place}.description"), height=96)
            label, present = f"{title}, examples, one per line", "\n".join(option.examples)
            examples = st.text_area(label, present, key=key(f"{place}.examples"), height=96)
        entered = {"name": name.strip(), "description": description.strip()}
        options.append({**entered, "examples": split_list(examples, "\n")})
    return words, options


def _line(label: str, present: str, key: str) -> str:
    return st.text_input(label, present, key=key, autocomplete="off").strip()


def _changed_rubric(
    editing: Editing,
    rubric: Rubric,
    place: str,
    words: dict[str, str],
    options: list[dict[str, Any]],
    same: bool,
) -> dict[str, str]:
    """Return the rubric's file with the words of the language at `place` ("" for the default one).
    With `same`, also study.toml, which then says that the older text means the same.
    """
    file = f"{RUBRICS_FOLDER}/{rubric.name}.toml"
    text = editing.text(file)
    new = {name: word for name, word in words.items() if word != getattr(rubric, name)}
    text = with_values(text, {place: new})
    options_place = f"{place}.options" if place else "options"
    options_in_file = _entries(text, options_place)
    for number, (option, entered) in enumerate(zip(rubric.options, options, strict=False)):
        present = {**option.model_dump(include=set(entered)), "examples": list(option.examples)}
        changed = {name: value for name, value in entered.items() if value != present[name]}
        if changed:
            text = with_entry(text, options_place, number, options_in_file[number] | changed)
    before = editing.present.rubrics[rubric.name]
    older = editing.present.config.same_text.get(rubric.name, ())
    if not same and (place or not older):
        return {file: text}
    # A text that differs in meaning ends the equality with older ones. The settings are written
    # first: as long as the old text is there, they change nothing.
    equal = list(dict.fromkeys([*older, before.hash])) if same else None
    settings = with_values(editing.text(), {"same_text": {rubric.name: equal}})
    return {FILE_NAME: settings, file: text}


# ---- the page Training and checks ---------------------------------------------------------------


@dataclass(frozen=True)
class _List:
    """A list that is edited entry by entry: its titles, the section of study.toml that names its
    file ("" if it is in study.toml), its place in the file, and the key that identifies an entry.
    """

    title: str
    entry_title: str
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
    """Draw the fields of an entry of a list: practice items, attention checks or questions."""
    st.text(written("lead.training"))
    titles = {name: entries.title for name, entries in _LISTS.items()}
    kind = _choose_part("Kind", titles, "training_kind")
    edited = _LISTS[kind]
    editing = begin(study, f"training-{kind}")
    section = getattr(editing.present.config, edited.section) if edited.section else None
    file_in_use = section.file if section else ""  # there may be a file although the part is off
    file = (file_in_use or f"{edited.section}.toml") if edited.section else FILE_NAME
    entries = _entries(editing.text(file), edited.place)
    if entries:
        state = "entries" if file_in_use or not edited.section else "entries_off"
        st.text(written(f"lead.{state}", count=len(entries), file=file))
    else:
        st.text(written("lead.no_entries"))
    names = [*(str(entry.get(edited.name, "")) for entry in entries), f"New {edited.entry_title}"]
    label, numbers, key = f"Edit {edited.entry_title}", range(len(names)), editing.key("at")
    number = st.selectbox(label, numbers, format_func=names.__getitem__, key=key)
    entry = entries[number] if number < len(entries) else {}
    holds_items = edited.place == "unit"
    key_of = lambda name: editing.key(f"{number}.{name}")  # noqa: E731
    rubrics = _rubrics_of_one_unit(study, entry, key_of) if holds_items else []
    form, preview = st.columns(2, gap="large")
    with form, st.form(editing.key(f"form.{number}"), border=False):
        entered = (
            _unit(rubrics, entry, key_of, explains=edited.section == "training")
            if holds_items
            else _question(edited, entry, key_of)
        )
        left, middle, _ = st.columns([1, 1, 1])
        sent = left.form_submit_button(_REVIEW, type="primary", width="stretch")
        deletes = bool(entry) and middle.form_submit_button("Delete", width="stretch")
    if sent or deletes:
        new = None if deletes else entered
        offer(study, editing, lambda: _changed_entries(editing, edited, file, number, new))
    show_offer(study, editing)
    if holds_items:
        with preview:
            show_annotator_view(_drawn_unit(study, entered))


def _entries(text: str, place: str) -> list[dict[str, Any]]:
    """Return the tables of a TOML text at a place such as "background.questions"."""
    content: Any = tomllib.loads(text)
    for part in place.split("."):
        content = content.get(part, {})
    return list(content)


def _rubrics_of_one_unit(
    study: Study, entry: dict[str, Any], key: Callable[[str], str]
) -> list[Rubric]:
    """Return the rubrics that an item is for; draw the choice where some are on other texts."""
    by_unit: dict[str, list[Rubric]] = {}
    for rubric in study.labelled_rubrics():
        by_unit.setdefault(rubric.unit, []).append(rubric)
    titles = {unit: ", ".join(r.title for r in rubrics) for unit, rubrics in by_unit.items()}
    expected, units = entry.get("expected", {}), list(by_unit)
    answered = (unit for unit in units if any(r.name in expected for r in by_unit[unit]))
    first = units.index(next(answered, units[0]))
    if len(units) == 1:
        return by_unit[units[0]]
    unit = st.radio(
        "The item is for", units, first, titles.__getitem__, key("unit"), horizontal=True
    )
    return by_unit[unit]


def _unit(
    rubrics: Sequence[Rubric], entry: dict[str, Any], key: Callable[[str], str], *, explains: bool
) -> dict[str, Any]:
    """Draw the fields of an item with a known answer on these rubrics; return what is entered, with
    what the item has for other rubrics.
    """
    unit: dict[str, Any] = {"name": _line("Name", entry.get("name", ""), key("name"))}
    values = dict(entry.get("values", {}))
    order = [*TEXT_VARIABLES]  # as annotators read them, after other variables of a rubric
    variables = dict.fromkeys(name for rubric in rubrics for name in rubric.variables)
    shared, left, right = st.container(), *st.columns(2)
    places = {"a": left, "b": right}
    for variable in sorted(variables, key=lambda name: name in order and order.index(name) + 1):
        present, name = entry.get("values", {}).get(variable, ""), key(f"values.{variable}")
        label = TEXT_VARIABLES.get(variable, readable_name(variable))
        place = places.get(variable.rpartition("_")[2], shared)
        values[variable] = place.text_area(label, present, key=name, height=80)
    unit["values"] = {variable: text for variable, text in values.items() if text}
    expected = dict(entry.get("expected", {})) | {
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
    """Draw the choice of the correct answers on a rubric; return their keys."""
    keys = [present] if isinstance(present, str) else list(present)
    label, at = f"Correct answer: {html_texts.plain(rubric.title)}", key(f"expected.{rubric.name}")
    if not rubric.kind.listed:
        return split_list(_line(label, ", ".join(keys), at))
    return st.multiselect(
        label, list(dict.fromkeys([*rubric.kind.keys, *keys])), keys, key=at,
        format_func=rubric.kind.title_of,
        placeholder="Any answer",
    )  # fmt: skip


def _question(edited: _List, entry: dict[str, Any], key: Callable[[str], str]) -> dict[str, Any]:
    """Draw the fields of a comprehension or background question; return what is entered."""
    question: dict[str, Any] = {}
    if edited.name == "key":
        column = "Column in the table of annotators"
        question["key"] = st.text_input(column, entry.get("key", ""), key=key("key")).strip()
        label, present = "Most people for each answer, in their order", entry.get("quotas", ())
        quotas = split_list(_line(label, ", ".join(map(str, present)), key("quotas")))
        question["quotas"] = [int(text) if text.isdecimal() else text for text in quotas] or None
    question["question"] = st.text_input("Question", entry.get("question", ""), key=key("question"))
    options = "\n".join(entry.get("options", ()))
    options = st.text_area("Answers, one per line", options, key=key("options"), height=130)
    question["options"] = split_list(options, "\n")
    if edited.name == "question":
        question["answer"] = _line("Correct answer", entry.get("answer", ""), key("answer"))
        label, present = "Explanation, shown after a wrong answer", entry.get("explanation", "")
        explanation = st.text_area(label, present, key=key("explanation"), height=96)
        question["explanation"] = explanation.strip() or None
    return question


def _drawn_unit(study: Study, unit: dict[str, Any]) -> str:
    """Return HTML: the explanation and the texts of an item as annotators see them."""
    blocks: dict[str, TextBlock] = {}
    for rubric in study.labelled_rubrics():
        values = {name: unit["values"].get(name, "") for name in rubric.variables}
        blocks |= {text.variable: text for text in rubric.for_people(values).blocks}
    texts = [text for text in blocks.values() if text.text]
    explanation = unit.get("explanation") or ""
    if not (texts or explanation):
        return html_texts.block(written("lead.no_preview"))
    above = html_texts.drawn_text(explanation) if explanation else ""
    return above + html_texts.drawn_blocks(texts, ENGLISH, study.config.annotation.display)


def _changed_entries(
    editing: Editing, edited: _List, file: str, number: int, entry: dict[str, Any] | None
) -> dict[str, str]:
    """Return the list's file with an entry, or without it if `entry` is None, and study.toml: the
    first entry turns the list's section on, and deleting the last one turns it off.
    """
    text, place, section = editing.text(file), edited.place, edited.section
    if place == "unit" and entry is not None and not entry["expected"]:
        raise InputError(written("lead.no_right_answer"))
    if place == "background.questions" and editing.present.config.background is None:
        text = with_values(text, {"background": {}})
    text = with_entry(text, place, number, entry)
    is_empty = not _entries(text, place)
    if place == "background.questions" and is_empty:
        text = with_values(text, {"background": None})  # else the default questions are asked
    if not section:
        return {file: text}
    if not is_empty:
        # The items first: as long as no setting names their file, they change nothing.
        return {file: text, FILE_NAME: with_values(editing.text(), {section: {"file": file}})}
    without = None if section == "attention" else {"file": None}
    return {FILE_NAME: with_values(editing.text(), {section: without}), file: text}
