"""The pages on which the lead, who runs the study, changes it: settings, texts, rubrics, practice
items, attention checks, questions. All are drawn in the same steps:

1. `begin` returns the `Editing`: the study's contents when editing began, here called *present*.
2. The page draws fields with the present values; what the lead *entered* is in their return values.
3. The page's `_changed_...` function turns these into the new texts of the files that change.
4. `show_review` draws the change and its effects before it is saved, and the buttons.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple, get_args, get_origin
from zlib import crc32
from zoneinfo import available_timezones

import streamlit as st
from pydantic.fields import FieldInfo

from evenhand.annotate_app import html_texts
from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.languages import ENGLISH, codes_english_first, language
from evenhand.annotate_app.lead import parts
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES, TextBlock
from evenhand.study import Study, changing
from evenhand.study.access import Visitor
from evenhand.study.settings.sections import keys_of, section_of
from evenhand.study.settings.study_toml import (
    FILE_NAME,
    StudyConfig,
    in_words,
    with_entry,
    with_values,
)
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import readable_name, written

_EDITING = "editing"  # key of the `Editing` in the session's state
_NUMBERS = count(1)  # for `Editing.number`
_KeyOf = Callable[[str], str]  # the key of a widget in Streamlit's session state, for its name
_FILE_AND_KEY = re.compile(r"^study\.toml: (\w+(?:\.\w+)*)")
"""Beginning of a complaint about a setting, for which the pages show the setting's title."""


@dataclass(frozen=True)
class Editing:
    """The editing of one target from its beginning until the change is saved or discarded."""

    target: str  # such as "texts-de"
    present: changing.Contents  # of the study, when editing began
    number: int  # a new one whenever editing begins, so that the fields are drawn afresh

    def text(self, name: str = FILE_NAME) -> str:
        """Return the present text of one of the study's files; empty if there is no such file."""
        return (self.present.files.get(name) or b"").decode("utf-8-sig")

    def key(self, name: str) -> str:
        """Return the key under which a widget keeps its value until editing begins again."""
        return f"{self.target}.{self.number}.{name}"

    def field_values(self) -> dict[str, Any]:
        """Return the values in this editing's fields now, by their keys without the target."""
        prefix, values = self.key(""), st.session_state.to_dict()
        keys = (str(key) for key in values if str(key).startswith(prefix))
        return {key.removeprefix(f"{self.target}."): values[key] for key in keys}


def begin(study: Study, target: str) -> Editing:
    """Begin to edit a target, or continue, and draw the outcome of the last change. Raises
    InputError if the study's present files contradict each other.
    """
    show_outcome(target)
    ongoing = st.session_state.get(_EDITING)
    if isinstance(ongoing, Editing) and ongoing.target == target and ongoing.field_values():
        return ongoing  # its fields are on the page, and may hold a change
    present = changing.contents_of(study, changing.read_files(study))
    editing = Editing(target, present, next(_NUMBERS))
    st.session_state[_EDITING] = editing
    return editing


def show_review(
    study: Study, editing: Editing, changed_texts: Callable[[], dict[str, str]]
) -> changing.Contents:
    """Draw the change that the fields hold, its effects, and the buttons to save or discard it.
    Return the study's contents with the change, or the present ones if there is none.

    `changed_texts` returns the texts of changed files by name, in the order in which they are
    written. It is called where the change is drawn, as it may add a question about the change. It
    raises InputError if what is entered cannot be saved, which is then shown as a complaint.
    """
    present, after = editing.present, editing.present
    changes, complaint, newer_files = list[changing.Difference](), "", list[str]()
    bar = st.container(key="in-view")
    with bar, st.container(key="offer"):
        try:
            if newer_files := changing.changed_since(study, present.files):
                newer = changing.contents_of(study, changing.read_files(study))
                complaint = written("change.meanwhile", files=" and ".join(newer_files))
                _show_differences(study, changing.differences(present, newer), "What is new")
            texts = {name: text.encode() for name, text in changed_texts().items()}
            if any(text != present.files.get(name) for name, text in texts.items()):
                others = {name: file for name, file in present.files.items() if name not in texts}
                changed = changing.contents_of(study, texts | others)  # in the order of writing
                changes, after = list(changing.differences(present, changed)), changed
        except InputError as error:
            in_titles = _FILE_AND_KEY.sub(lambda match: setting_title(match[1]), str(error))
            complaint = complaint or in_titles
        if complaint:
            html_texts.show_complaint(complaint)
        elif changes:
            for sentence in changing.effects(study, present, after):
                st.text(sentence)
            _show_differences(study, changes, "What changes")
    with bar, st.container(horizontal=True, vertical_alignment="center"):
        shown = editing.field_values()
        save_changes = lead_callback(study, editing.target, _save, editing, after, shown)
        cannot_save = bool(complaint) or not changes
        st.button("Save", key="save", type="primary", disabled=cannot_save, on_click=save_changes)
        if not complaint and not changes:
            st.text(written("change.nothing"))
        else:
            label = "Begin again from the newer text" if newer_files else "Discard changes"
            st.button(label, on_click=_begin_again)
    return after


def _show_differences(study: Study, changes: Iterable[changing.Difference], caption: str) -> None:
    rows = [(_title_of(study, d.key), choice_text(d.before), choice_text(d.after)) for d in changes]
    columns = {"what": "What", "before": "Before", "after": "After"}
    parts.show_table(pd.DataFrame(rows, columns=list(columns)), caption, columns)


def _title_of(study: Study, key: str) -> str:
    """Return a setting's title, or "Refusal: question" for "rubric.NAME.question"."""
    kind, _, rubric_and_field = key.partition(".")
    rubric, _, field = rubric_and_field.partition(".")
    title = parts.rubric_titles(study).get(rubric, rubric)
    return f"{title}: {field}" if kind == "rubric" else setting_title(key)


def _begin_again() -> None:
    st.session_state.pop(_EDITING, None)


def _save(
    study: Study, who: Visitor, editing: Editing, after: changing.Contents, shown: Any, **now: Any
) -> Callable[[], None] | None:
    """Save the change and return what draws the outcome; or save nothing and return None if the
    files have changed, or the fields' values `now`, at the click (`acts.storing_callback`), are not
    those `shown` when the button was drawn. The page is drawn again, and says so.
    """
    # A change may have removed fields in `shown` from the page: these count as equal.
    is_as_shown = all(now.get(name, value) == value for name, value in shown.items())
    if not is_as_shown or changing.changed_since(study, editing.present.files):
        return None
    saved = changing.save(study, editing.present.files, after.files, who.name)
    titles = dict.fromkeys(_title_of(study, change.key) for change in saved)
    return partial(_show_saved, ", ".join(titles))


def _show_saved(titles: str) -> None:
    _begin_again()
    st.success(html_texts.plain(written("change.saved", places=titles)))


# ---- the control of a setting, by its type: switch, number, choice, text, list ------------------


def setting_title(setting: str) -> str:
    """Return the title of a setting, which is named as in study.toml, such as "session.entry"."""
    return parts.WORDS["settings"].get(setting) or readable_name(setting.rpartition(".")[2])


def choice_text(value: str) -> str:
    """Return one of a setting's permitted values in words, or another value as it is."""
    return parts.WORDS["choices"].get(value, value)


def setting_explanation(setting: str) -> str:
    """Return a setting's explanation as HTML, with its name in study.toml on hover and text in
    backticks as code; empty if its title says it all.
    """
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", parts.WORDS["helps"].get(setting, ""))
    return f'<p class="evenhand-explained" title="{setting}">{text}.</p>' if text else ""


def control(key: str, field: FieldInfo, setting: str, present: Any, study: Study) -> Any:
    """Draw a setting's control under this key, with its present value; return what is entered."""
    name = setting.rpartition(".")[2]
    kind, label = field.annotation, setting_title(setting)
    choices: Sequence[str] = get_args(kind) if get_origin(kind) is Literal else ()
    shown_as: Callable[[str], str] = choice_text
    if name in ("language", "languages"):
        choices, shown_as = codes_english_first(), _language_name
    elif name == "time_zone":
        choices = sorted(available_timezones())
    elif name == "rubrics":
        choices, shown_as = list(study.rubrics), parts.rubric_titles(study).__getitem__
    if kind is bool:
        return st.toggle(label, present, key=key)
    if kind in (int, float):
        return _number(key, field, label, present)
    if get_origin(kind) is dict:  # whose values are lists
        text = "\n".join(f"{part}: {', '.join(values)}" for part, values in present.items())
        label += " (one per line, as NAME: first, second)"
        lines = parts.split_list(st.text_area(label, text, height=96, key=key), "\n")
        entries = (line.partition(":") for line in lines)
        return {part.strip(): tuple(parts.split_list(values)) for part, _, values in entries}
    if get_origin(kind) is tuple:
        member = get_args(kind)[0]
        permitted = get_args(member) if get_origin(member) is Literal else choices  # (): any text
        options = list(dict.fromkeys([*permitted, *present]))
        hint = "None chosen" if permitted else "Type one, then Enter"
        extra: dict[str, Any] = {"placeholder": hint, "accept_new_options": not permitted}
        return tuple(st.multiselect(label, options, list(present), shown_as, key=key, **extra))
    if choices:
        choices = list(dict.fromkeys([*choices, present]))
        return st.selectbox(label, choices, choices.index(present), key=key, format_func=shown_as)
    return st.text_input(label, present or "", autocomplete="off", key=key).strip()


def _number(key: str, field: FieldInfo, label: str, present: Any) -> int | float | None:
    """Draw a number field within the limits of the setting; return what is entered."""
    kind: Any = field.annotation
    # Pydantic keeps each limit as an object with one attribute, such as `Ge(ge=0)`.
    limits = [(limit, name) for limit in field.metadata for name in ("ge", "gt", "le")]
    bounds = {name: getattr(limit, name) for limit, name in limits if hasattr(limit, name)}
    if kind is int and "gt" in bounds:
        bounds["ge"] = bounds["gt"] + 1
    numbers = (bounds.get("ge"), bounds.get("le"), present)
    low, high, value = (None if number is None else kind(number) for number in numbers)
    step = 0.05 if kind is float and high is not None and high <= 1 else kind(1)
    style = None if kind is int else "%g"  # as printf
    return st.number_input(label, low, high, value, step, style, key=key)


# ---- the page Settings --------------------------------------------------------------------------

_WITHOUT_SECTION = {"sample": ("name", "seed", "store", "synthetic")}
"""Settings outside any section of study.toml, by the part of the page that shows them."""
_ELSEWHERE = ("session.content_warning", "session.instructions", "training.file", "attention.file")
"""Settings that another page changes."""


class _SettingsForm(NamedTuple):
    """What is read from the fields of the page's parts, and the settings that have no field."""

    entered: dict[str, Any]  # by setting
    used: dict[str, bool]  # by part that may be left out: is it used?
    locked: dict[str, dict[str, list[str]]]  # by the reason: values, in a list, by settings' titles


def show_settings(study: Study) -> None:
    """Draw the fields of all settings by part, mostly a section of study.toml; then locked ones."""
    st.text(written("lead.settings"))
    editing, form = begin(study, "settings"), _SettingsForm({}, {}, {})
    titles, begun = dict(parts.WORDS["parts"]), changing.has_begun(study)
    if editing.present.config.attention is None:
        del titles["attention"]  # until there are checks, which another page makes
    contents, fields = st.columns([1, 4])
    for part, title in titles.items():
        with fields, st.container(key=f"part-{part}"):
            st.header(title, anchor=part)
            _show_part(study, editing, part, form, begun)
    with fields, st.container(key="part-locked"):
        st.header(written("change.fixed"), anchor="locked")
        for reason, settings in form.locked.items():
            html_texts.show(html_texts.block(reason, "note") + html_texts.items(settings.items()))
    with contents:
        titles["locked"] = written("change.fixed")
        links = (f'<li><a href="#{part}">{title}</a></li>' for part, title in titles.items())
        html_texts.show(f'<nav class="evenhand-parts"><ul>{"".join(links)}</ul></nav>')
    show_review(study, editing, lambda: _changed_settings(editing, form))


def _show_part(study: Study, editing: Editing, part: str, form: _SettingsForm, begun: bool) -> None:
    """Draw a part's fields if used and open; add to `form` their values, and what is locked."""
    config = editing.present.config
    if StudyConfig.model_fields[part].default is None:  # a section that may be left out
        label, is_used = "Use this part in the study", getattr(config, part) is not None
        form.used[part] = st.toggle(label, is_used, key=editing.key(f"{part} is used"))
    body: Any = st
    if is_foldable := part in parts.WORDS["folded"]:
        key = editing.key(f"{part} is open")
        body = st.expander(parts.WORDS["folded"][part], key=key, on_change="rerun")
    if not form.used.get(part, True):
        return
    for setting, (field, present) in _settings_of(config, part).items():
        if setting in _ELSEWHERE:
            continue
        if reason := changing.fixed_because(setting, begun).replace("`", ""):
            values = form.locked.setdefault(reason, {})
            values[setting_title(setting)] = [choice_text(in_words(present))]
        elif not is_foldable or body.open:
            with body.container():
                key = editing.key(setting)
                form.entered[setting] = control(key, field, setting, present, study)
                if explanation := setting_explanation(setting):
                    html_texts.show(explanation)


def _settings_of(config: StudyConfig, part: str) -> dict[str, tuple[FieldInfo, Any]]:
    """Return a part's settings by their names in study.toml, such as "session.entry", each with its
    field and its value, or its default if the study has no such section. The store's address, which
    may hold a password, is cut down to its kind.
    """
    fields = StudyConfig.model_fields
    section, values = section_of(fields[part]), getattr(config, part)
    names = _WITHOUT_SECTION.get(part, ())
    settings = {name: (fields[name], getattr(config, name)) for name in names}
    if "store" in settings:
        settings["store"] = (fields["store"], config.store.partition("://")[0])
    for name, field in keys_of(section).items() if section else ():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        settings[f"{part}.{name}"] = (field, default if values is None else getattr(values, name))
    return settings


def _changed_settings(editing: Editing, form: _SettingsForm) -> dict[str, str]:
    """Return study.toml with the values that differ from the present ones, and without the parts
    that are not used any more, which the value None removes.
    """
    config, changes = editing.present.config, dict[str, dict[str, Any]]()
    for setting, value in form.entered.items():
        section, _, name = setting.rpartition(".")
        present = getattr(config, section) if section else config
        if value is not None and (present is None or value != getattr(present, name)):
            changes.setdefault(section, {})[name] = value
    ended = (part for part, is_used in form.used.items() if not is_used and getattr(config, part))
    return {FILE_NAME: with_values(editing.text(), {**changes, **dict.fromkeys(ended)})}


# ---- the page Texts -----------------------------------------------------------------------------


def show_texts(study: Study) -> None:
    """Draw the fields of the study's texts for annotators, in a language, with a preview."""
    st.text(written("lead.texts"))
    languages = [study.config.annotation.language, *study.config.annotation.languages]
    code = _choose_language(st, languages, "text_in")
    editing, spoken = begin(study, f"texts-{code}"), language(code)
    is_default = code == languages[0]
    config = editing.present.config
    in_config = {**dict(config.session), "consent": config.consent.text if config.consent else ""}
    left, right = st.columns(2, gap="large")
    changes, files = dict[str, Any](), dict[str, str]()  # in study.toml; in translations' files
    pages = {"welcome": "", "consent": ""}  # the preview, as HTML
    for name, title in parts.WORDS["texts"].items():  # in the order in which annotators read them
        present = in_config[name] if is_default else editing.text(f"{name}.{code}.md")
        hint, key = parts.WORDS["hints"][name], editing.key(name)
        text = left.text_area(title, present.strip(), height=150, key=key, placeholder=hint).strip()
        is_changed, is_consent = text != present.strip(), name == "consent"
        if is_changed and not is_default:
            files[f"{name}.{code}.md"] = f"{text}\n"
        elif is_changed and is_consent:  # a study without a text does not ask for consent
            changes[name] = {"text": text} if text else None
        elif is_changed:
            changes.setdefault("session", {})[name] = text
        is_warning = name == "content_warning"
        kind, label = ("warning", spoken.say("session.warning")) if is_warning else ("text", "")
        drawn = html_texts.drawn_text(text, kind, label, spoken.code)
        pages["consent" if is_consent else "welcome"] += drawn
    show_review(study, editing, lambda: files or {FILE_NAME: with_values(editing.text(), changes)})
    with right:
        no_text, content = html_texts.block(written("lead.texts_none")), ""
        for page, drawn in pages.items():
            content += html_texts.heading(spoken.say(f"session.{page}_title"), 1)
            content += drawn or no_text
        parts.show_annotator_view(content)


def _choose_language(column: Any, codes: Sequence[str], key: str) -> str:
    """Draw the choice of a language if there are several; return its code, by default the first."""
    if len(codes) == 1:
        return codes[0]
    return str(column.selectbox("Language", codes, format_func=_language_name, key=key))


def _language_name(code: str) -> str:
    return language(code).name if code in codes_english_first() else code


# ---- the page Rubrics ---------------------------------------------------------------------------


def show_rubrics(study: Study) -> None:
    """Draw the fields of a rubric's words in a language, with a preview."""
    st.text(written("lead.rubrics"))
    left, right = st.columns(2, gap="large")
    titles = parts.rubric_titles(study)
    name = left.selectbox("Rubric", titles, format_func=titles.__getitem__, key="rubric_name")
    codes = list(study.rubrics[name].versions)
    code = _choose_language(right, codes, "rubric_in")
    editing = begin(study, f"rubric-{name}-{code}")
    present = editing.present.rubrics[name]
    n_labels = changing.labels_under(study, present)
    state = "labels" if n_labels else "no_labels"
    st.text(written(f"lead.rubric_{state}", count=n_labels, version=present.hash[:8]))
    rubric, table = present.in_language(code), "" if code == codes[0] else f"translations.{code}"
    left, right = st.columns(2, gap="large")
    with left:
        entered = _ask_for_words(editing, rubric)

    def changed_texts() -> dict[str, str]:
        texts = _changed_rubric(editing, rubric, table, entered, is_same=False)
        # Labels are stored with the text in the default language, which no translation changes.
        if texts and n_labels and not table:
            kinds = {kind: written(f"change.{kind}") for kind in ("differs", "same")}
            label, key = "What kind of change is this?", editing.key("meaning")
            is_same = st.radio(label, kinds, format_func=kinds.__getitem__, key=key) == "same"
            texts = _changed_rubric(editing, rubric, table, entered, is_same=is_same)
        return texts

    after = show_review(study, editing, changed_texts)
    with right:
        spoken = language(code) if code in codes_english_first() else ENGLISH
        drawn = html_texts.drawn_rubric(after.rubrics[name].in_language(code), spoken)
        parts.show_annotator_view(drawn, "As annotators read it before they start")


class _Words(NamedTuple):
    """Words of a rubric in a language, and the words of each option, by their TOML keys."""

    rubric: dict[str, str]
    options: list[dict[str, Any]]


def _ask_for_words(editing: Editing, rubric: Rubric) -> _Words:
    """Draw the fields of a rubric's words; return what is entered."""
    words = {
        "title": _line("Title", rubric.title, editing.key("title")),
        "question": _line("Question", rubric.question, editing.key("question")),
        "instructions": _area("Guidelines", rubric.instructions, editing.key("instructions"), 360),
    }
    options = []
    for option in rubric.kind.listed:
        title, prefix = f"Option {option.key}", option.key
        with st.expander(f"{title}: {html_texts.plain(option.name)}"):
            name = _line(f"{title}, name", option.name, editing.key(f"{prefix}.name"))
            label, field = f"{title}, description", editing.key(f"{prefix}.description")
            description = _area(label, option.description, field, 96)
            label, present = f"{title}, examples, one per line", "\n".join(option.examples)
            entered = _area(label, present, editing.key(f"{prefix}.examples"), 96)
            examples = parts.split_list(entered, "\n")
        options.append({"name": name, "description": description, "examples": examples})
    return _Words(words, options)


def _line(label: str, present: str, key: str) -> str:
    return st.text_input(label, present, key=key, autocomplete="off").strip()


def _area(label: str, present: str, key: str, height: int) -> str:
    return st.text_area(label, present, height=height, key=key).strip()


def _changed_rubric(
    editing: Editing, rubric: Rubric, table: str, entered: _Words, *, is_same: bool
) -> dict[str, str]:
    """Return the rubric's file with the words `entered` in a TOML table, such as "translations.de"
    ("" for the default language), or {} if they are unchanged. Return also study.toml if its
    `same_text` changes, the hashes of older texts whose labels still count. If the new text means
    the same, the present one joins them; if not, the list is removed, except for a translation.
    """
    file = f"{RUBRICS_FOLDER}/{rubric.name}.toml"
    words = entered.rubric.items()
    changed_words = {name: word for name, word in words if word != getattr(rubric, name).strip()}
    text = with_values(editing.text(file), {table: changed_words} if changed_words else {})
    options_array = f"{table}.options" if table else "options"
    options_in_file = _entries(text, options_array)
    for number, (option, new) in enumerate(zip(rubric.options, entered.options, strict=False)):
        present: dict[str, Any] = {"examples": list(option.examples)}
        present |= {"name": option.name.strip(), "description": option.description.strip()}
        if changed := {name: value for name, value in new.items() if value != present[name]}:
            text = with_entry(text, options_array, number, options_in_file[number] | changed)
    if text == editing.text(file):
        return {}
    same_text = editing.present.config.same_text.get(rubric.name, ())
    if not is_same and (table or not same_text):
        return {file: text}
    hashes = dict.fromkeys([*same_text, editing.present.rubrics[rubric.name].hash])
    changes = {"same_text": {rubric.name: list(hashes) if is_same else None}}  # None: removed
    # The settings are written first: as long as the old text is there, they change nothing.
    return {FILE_NAME: with_values(editing.text(), changes), file: text}


# ---- the page Training and checks ---------------------------------------------------------------


class _List(NamedTuple):
    """A list of items or questions that is edited entry by entry. One with a section is in the file
    that the section's key `file` names, and off while none does; others are in study.toml.
    """

    title: str
    entry_title: str
    section: str  # of study.toml; "" if the list itself is in study.toml
    array: str  # of the tables that are the entries; "unit" for items with a known answer
    identifier: str  # the key of an entry that identifies it


_MOST_TO_COPY = 1_000  # items offered, whose texts can be copied to a practice item or a check
_LISTS = {
    "practice": _List("Practice items", "practice item", "training", "unit", "name"),
    "checks": _List("Attention checks", "attention check", "attention", "unit", "name"),
    "comprehension": _List("Comprehension questions", "question", "", "comprehension", "question"),
    "background": _List("Background questions", "question", "", "background.questions", "key"),
}


def show_training(study: Study) -> None:
    """Draw the fields of an entry of a list: practice items, attention checks or questions."""
    st.text(written("lead.training"))
    key, title_of = "training_kind", (lambda name: _LISTS[name].title)
    kind: str = st.segmented_control(
        "Kind", _LISTS, default="practice", format_func=title_of, required=True, key=key
    )
    edited = _LISTS[kind]
    editing = begin(study, f"training-{kind}")
    section = getattr(editing.present.config, edited.section) if edited.section else None
    file_in_use = section.file if section else ""  # else there may be one that was in use before
    file = (file_in_use or f"{edited.section}.toml") if edited.section else FILE_NAME
    entries = _entries(editing.text(file), edited.array)
    holds_items = edited.array == "unit"
    is_off = bool(entries and edited.section and not file_in_use)
    state = ("entries_off" if is_off else "entries") if entries else "no_entries"
    st.text(written(f"lead.{state}", count=len(entries), file=file))
    names = [str(entry.get(edited.identifier, "")) for entry in entries]
    names.append(f"New {edited.entry_title}")
    label, key, position = f"Edit {edited.entry_title}", editing.key("at"), 0
    if entries:
        position = st.selectbox(label, range(len(names)), format_func=names.__getitem__, key=key)
    key_of: _KeyOf = lambda name: editing.key(f"{position}.{name}")  # noqa: E731
    entry = entries[position] if position < len(entries) else {}  # {} for a new one
    rubrics = _rubrics_of_item(study, entry, key_of) if holds_items else []
    form, preview = st.columns(2, gap="large")
    with form:
        if holds_items:
            values = entry.get("values") or _ask_for_values(study, rubrics, key_of)
            item = {"name": f"{kind}-{position + 1}"} | entry | {"values": values}
            entered = _ask_for_item(rubrics, item, key_of, explains=edited.section == "training")
        else:
            entered = _ask_for_question(edited, entry, key_of)
        turns_on = is_off and st.toggle(f"Use the {edited.title.lower()}", key=editing.key("on"))
        deletes = bool(entry) and st.toggle(f"Delete this {edited.entry_title}", key=key_of("-"))

    def changed_texts() -> dict[str, str]:
        if not entry and not (entered.get("values") or entered.get("question")):
            return {}  # a new entry, and nothing is entered yet
        texts = _changed_entries(editing, edited, file, position, None if deletes else entered)
        # With study.toml, which turns the list on. One that is off stays so if no entry changes.
        return {} if is_off and not turns_on and texts[file] == editing.text(file) else texts

    show_review(study, editing, changed_texts)
    if holds_items:
        with preview:
            parts.show_annotator_view(_drawn_unit(study, entered))


def _entries(text: str, array: str) -> list[dict[str, Any]]:
    """Return the tables of an array, such as "background.questions", in a TOML text."""
    content: Any = tomllib.loads(text)
    for part in array.split("."):
        content = content.get(part, {})
    return list(content)


def _rubrics_of_item(study: Study, entry: dict[str, Any], key_of: _KeyOf) -> list[Rubric]:
    """Return the rubrics for the entry's kind of item (`Rubric.unit`: a pair, two responses, or
    one). Draws the choice of a kind if the study's rubrics are for several.
    """
    by_unit: dict[str, list[Rubric]] = {}
    for rubric in study.labelled_rubrics():
        by_unit.setdefault(rubric.unit, []).append(rubric)
    names = parts.rubric_titles(study)
    kinds = {"pair": "A pair", "comparison": "Two responses", "response": "One response"}
    titles = {
        unit: f"{kinds[unit]} ({', '.join(names[rubric.name] for rubric in rubrics)})"
        for unit, rubrics in by_unit.items()
    }
    expected, units = entry.get("expected", {}), list(by_unit)
    if len(units) == 1:
        return by_unit[units[0]]
    answered = (unit for unit in units if any(r.name in expected for r in by_unit[unit]))
    default = units.index(next(answered, units[0]))  # a kind to which the entry has answers
    label, title_of = "What the item is", titles.__getitem__
    return by_unit[st.radio(label, units, default, title_of, key_of("unit"), horizontal=True)]


def _ask_for_values(study: Study, rubrics: Sequence[Rubric], key_of: _KeyOf) -> dict[str, str]:
    """Draw the choice of an item of the study; return its texts, to be copied."""
    sampled = set(parts.latest(study, Study.units_by_kind)[rubrics[0].unit])
    units = parts.latest(study, Study.units_by_kind, "all")[rubrics[0].unit]
    units = sorted(units, key=sampled.__contains__)[:_MOST_TO_COPY]  # outside the sample first
    label, none = "Copy the texts of an item", "Pick an item of the study"
    names = {unit: f"{unit} (in the sample)" if unit in sampled else unit for unit in units}
    if (unit := parts.choose_any(label, names, none, key_of("copied"))) is None:
        return {}
    texts = [(rubric.variables, study.values(rubric, unit)) for rubric in rubrics]
    return {name: values[name] for variables, values in texts for name in variables}


def _ask_for_item(
    rubrics: Sequence[Rubric], entry: dict[str, Any], key_of: _KeyOf, *, explains: bool
) -> dict[str, Any]:
    """Draw the fields of an item with known answers on these rubrics; return what is entered, with
    the entry's texts and answers for other rubrics. `explains` adds the field for an explanation.
    """
    item: dict[str, Any] = {"name": _line("Name", entry["name"], key_of("name"))}
    values, expected = dict(entry["values"]), dict(entry.get("expected", {}))
    order = [*TEXT_VARIABLES]  # as annotators read them; a rubric's other variables (-1) come first
    variables = dict.fromkeys(name for rubric in rubrics for name in rubric.variables)
    shared, left, right = st.container(), *st.columns(2)
    column_by_side = {"a": left, "b": right}
    for variable in sorted(variables, key=lambda name: order.index(name) if name in order else -1):
        label = TEXT_VARIABLES.get(variable, readable_name(variable))
        column = column_by_side.get(variable.rpartition("_")[2], shared)
        present = values.get(variable, "")
        name = key_of(f"values.{variable}.{crc32(present.encode())}")  # a field per item's text
        values[variable] = column.text_area(label, present, key=name, height=120)
    item["values"] = {variable: text for variable, text in values.items() if text}
    for rubric in rubrics:
        expected[rubric.name] = _ask_for_answers(rubric, expected.get(rubric.name, []), key_of)
    item["expected"] = {name: keys for name, keys in expected.items() if keys}
    item["explanation"] = entry.get("explanation")
    if explains:
        label, present = "Explanation, shown with the correct answer", item["explanation"] or ""
        item["explanation"] = _area(label, present, key_of("explanation"), 110) or None
    return item


def _ask_for_answers(rubric: Rubric, present: str | list[str], key_of: _KeyOf) -> list[str]:
    """Draw the choice of the correct answers on a rubric; return their keys."""
    keys = [present] if isinstance(present, str) else list(present)
    label, name = f"Correct answer: {html_texts.plain(rubric.title)}", f"expected.{rubric.name}"
    if not rubric.kind.listed:
        return parts.split_list(_line(label, ", ".join(keys), key_of(name)))
    return st.multiselect(
        label, list(dict.fromkeys([*rubric.kind.keys, *keys])), keys, key=key_of(name),
        format_func=rubric.kind.title_of,
        placeholder="Any answer is right",
    )  # fmt: skip


def _ask_for_question(edited: _List, entry: dict[str, Any], key_of: _KeyOf) -> dict[str, Any]:
    """Draw the fields of a comprehension or background question; return what is entered."""
    text = _line("Question", entry.get("question", ""), key_of("question"))
    label, present = "Answers, one per line", "\n".join(entry.get("options", ()))
    options = parts.split_list(_area(label, present, key_of("options"), 130), "\n")
    question: dict[str, Any] = {"question": text, "options": options}
    if edited.identifier == "key":
        column = "Column of the answers, such as age_group"
        question["key"] = _line(column, entry.get("key", ""), key_of("key"))
        label, present = "Quotas, if any: most people for each answer", entry.get("quotas", ())
        quotas = parts.split_list(_line(label, ", ".join(map(str, present)), key_of("quotas")))
        question["quotas"] = [int(text) if text.isdecimal() else text for text in quotas] or None
    if edited.identifier == "question":
        question["answer"] = _line("Correct answer", entry.get("answer", ""), key_of("answer"))
        label, present = "Explanation, shown after a wrong answer", entry.get("explanation", "")
        question["explanation"] = _area(label, present, key_of("explanation"), 96) or None
    return question


def _drawn_unit(study: Study, unit: dict[str, Any]) -> str:
    """Return HTML: the explanation and the texts of an item as annotators see them."""
    blocks: dict[str, TextBlock] = {}
    for rubric in study.labelled_rubrics():
        values = {name: unit["values"].get(name, "") for name in rubric.variables}
        blocks |= {text.variable: text for text in rubric.for_people(values).blocks}
    texts = [text for text in blocks.values() if text.text]
    if not (texts or unit["explanation"]):
        return html_texts.block(written("lead.no_preview"))
    drawn = html_texts.drawn_blocks(texts, ENGLISH, study.config.annotation.display)
    return html_texts.drawn_text(unit["explanation"]) + drawn


def _changed_entries(
    editing: Editing, edited: _List, file: str, position: int, entry: dict[str, Any] | None
) -> dict[str, str]:
    """Return the list's file with an entry, or without it if `entry` is None, and study.toml: the
    first entry turns the list's section on, and deleting the last one turns it off.
    """
    text, array, section = editing.text(file), edited.array, edited.section
    if array == "unit" and entry is not None and not entry["expected"]:
        raise InputError(written("lead.no_right_answer"))
    if array == "background.questions" and editing.present.config.background is None:
        text = with_values(text, {"background": {}})
    text = with_entry(text, array, position, entry)
    is_empty = not _entries(text, array)
    if array == "background.questions" and is_empty:
        text = with_values(text, {"background": None})  # else the default questions are asked
    if not section:
        return {file: text}
    if not is_empty:
        # The items first: as long as no setting names their file, they change nothing.
        return {file: text, FILE_NAME: with_values(editing.text(), {section: {"file": file}})}
    without_file = None if section == "attention" else {"file": None}  # training can be without
    return {FILE_NAME: with_values(editing.text(), {section: without_file}), file: text}
