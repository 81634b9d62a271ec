"""The pages that change the study: its settings, each with its explanation, its value and, where it
may be changed now, a control; its texts, rubrics, practice units and questions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from pydantic.fields import FieldInfo

from evenhand.annotate_app.drawn import drawn_blocks, drawn_rubric, drawn_text, heading, plain, show
from evenhand.annotate_app.languages import ENGLISH, Language, codes_english_first, language
from evenhand.annotate_app.lead.parts.drawing import named, show_table
from evenhand.annotate_app.lead.parts.editing import (
    Editing,
    as_raters_see,
    begin,
    control,
    explained,
    listed,
    offer,
    show_offer,
)
from evenhand.annotate_app.logins.lead_login import require
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES
from evenhand.study import Study
from evenhand.study.changing import fixed_because, has_begun, labels_under
from evenhand.study.settings.sections import keys_of, section_of
from evenhand.study.settings.study_toml import (
    FILE_NAME,
    Changes,
    StudyConfig,
    in_words,
    settings_in_force,
    with_entry,
    with_values,
)
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

_ALL = "all"
_PARTS = {
    "annotation": "Labelling",
    "session": "Entry and pace",
    "training": "Training",
    "attention": "Attention checks",
    "prolific": "Prolific",
    "pay": "Pay",
    "analysis": "Analysis",
    "decision": "Verdict",
    "quality": "Flags on annotators",
    "sample": "Study and sample",
    _ALL: "All settings",
}
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
    require(study, "lead")
    st.text(written("lead.settings"))
    part = st.segmented_control(
        "Part of the settings",
        list(_PARTS),
        default="annotation",
        format_func=_PARTS.__getitem__,
        required=True,
        key="settings_part",
    )
    if part is None or part == _ALL:
        table = pd.DataFrame(settings_in_force(study.config), columns=["key", "value", "says"])
        columns = {"key": "Key", "value": "Set to", "says": "What it says"}
        show_table(table, "Settings", columns)
        return
    editing = begin(study, f"settings-{part}")
    fields = _settings_of(editing.present.config, part)
    begun = has_begun(study)
    stays = {place: reason for place in fields if (reason := _why_it_stays(place, begun))}
    with st.form(editing.key("form"), border=False):
        wanted = _switch(editing, part)
        entered = {
            place: _row(study, editing, place, *of)
            for place, of in fields.items()
            if place not in stays
        }
        sent = st.form_submit_button("See what it does")
    if sent:
        offer(study, editing, lambda: _changed_settings(editing, part, wanted, entered))
    show_offer(study, editing)
    _show_fixed(fields, stays)


def _settings_of(config: StudyConfig, part: str) -> dict[str, tuple[FieldInfo, Any]]:
    """The settings of a part by their keys, each with its value: that in force, or the usual one
    where the study leaves the section out.
    """
    fields = StudyConfig.model_fields
    section, of = section_of(fields[part]), getattr(config, part)
    own = {name: (fields[name], getattr(config, name)) for name in _BESIDE.get(part, ())}
    for name, field in keys_of(section).items() if section else ():
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        own[f"{part}.{name}"] = (field, usual if of is None else getattr(of, name))
    return own


def _why_it_stays(place: str, begun: bool) -> str:
    """Why there is no control for a setting; "" where there is one."""
    if place in _ELSEWHERE:
        return written(f"change.elsewhere_{_ELSEWHERE[place]}")
    return fixed_because(place, begun)


def _show_fixed(fields: Mapping[str, tuple[FieldInfo, Any]], stays: Mapping[str, str]) -> None:
    """The settings without a control, with the reasons."""
    if not stays:
        return
    rows = [
        {
            "name": named(place.rpartition(".")[2]),
            "value": in_words(_without_address(place, fields[place][1])),
            "why": reason.replace("`", ""),
        }
        for place, reason in stays.items()
    ]
    titles = {"name": "Setting", "value": "Set to", "why": "Why it stays"}
    show_table(pd.DataFrame(rows), written("change.fixed"), titles)


def _without_address(place: str, value: Any) -> Any:
    """A setting's value; of the store's address, which may hold a password, its kind alone."""
    return str(value).partition("://")[0] if place == "store" else value


def _switch(editing: Editing, part: str) -> bool:
    """Draw the switch of a section that may be left out; return whether it is wanted."""
    if StudyConfig.model_fields[part].default is not None or part == "sample":
        return True
    used = getattr(editing.present.config, part) is not None
    return st.toggle("Use this part in the study", used, key=editing.key("used"))


def _row(study: Study, editing: Editing, place: str, field: FieldInfo, present: Any) -> Any:
    """Draw a setting's control beside its explanation; return what is entered."""
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with left:
        name = place.rpartition(".")[2]
        entered = control(editing.key(place), field, name, present, study)
    with right:
        show(explained(field.description or "", place))
    return entered


def _changed_settings(
    editing: Editing, part: str, wanted: bool, entered: Mapping[str, Any]
) -> dict[str, str]:
    """study.toml with what was entered; what is as it was stays as it is written."""
    config = editing.present.config
    section = getattr(config, part)
    if not wanted:
        if section is None:
            raise InputError(written("change.not_used"))
        return {FILE_NAME: with_values(editing.settings, {part: None})}
    changes: dict[str, dict[str, Any]] = {}
    for place, value in entered.items():
        above, _, name = place.rpartition(".")
        of = getattr(config, above) if above else config
        if value is not None and (of is None or value != _plain(getattr(of, name))):
            changes.setdefault(above, {})[name] = value
    return {FILE_NAME: with_values(editing.settings, changes)}


def _plain(value: Any) -> Any:
    """A value as a control gives it: tuples are lists."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


# The study's own texts for its raters, with a preview drawn as raters see it.

_TEXTS = {
    "consent": "Consent",
    "instructions": "Instructions on the first page",
    "content_warning": "Content warning on the first page",
}


def show_texts(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.texts"))
    languages = [study.config.annotation.language, *study.config.annotation.languages]
    which, of_language = st.columns(2)
    name = which.selectbox("Text", list(_TEXTS), format_func=_TEXTS.__getitem__, key="text")
    code = languages[0]
    if len(languages) > 1:
        code = of_language.selectbox(
            "Language", languages, format_func=lambda each: language(each).name, key="text_in"
        )
    own = code == languages[0]
    editing = begin(study, f"text-{name}-{code}")
    present = _present_text(editing, name) if own else editing.text(f"{name}.{code}.md").strip()
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        text = st.text_area(
            f"{_TEXTS[name]} ({written('lead.texts_form')})",
            present,
            height=360,
            key=editing.key("text"),
        )
        sent = st.form_submit_button("See what it does")
    with right:
        as_raters_see(_drawn_text(name, text, language(code)))
    if sent:
        of = "" if own else code
        offer(study, editing, lambda: _changed_text(editing, name, of, text.strip()))
    show_offer(study, editing)


def _present_text(editing: Editing, name: str) -> str:
    config = editing.present.config
    if name == "consent":
        return config.consent.text if config.consent else ""
    return str(getattr(config.session, name))


def _drawn_text(name: str, text: str, reader: Language) -> str:
    """The text as on the raters' page."""
    if name == "consent":
        return heading(reader.say("session.consent_title"), 1) + drawn_text(text, lang=reader.code)
    title = heading(reader.say("session.welcome_title"), 1)
    if name == "content_warning":
        return title + drawn_text(text, "warning", reader.say("session.warning"), reader.code)
    return title + drawn_text(text, lang=reader.code)


def _changed_text(editing: Editing, name: str, code: str, text: str) -> dict[str, str]:
    """The file with the new text: study.toml, or of another language one of its own. Without a
    text a study does not ask for consent.
    """
    if code:
        return {f"{name}.{code}.md": f"{text}\n"}
    new: Changes = {"session": {name: text}}
    if name == "consent":
        new = {"consent": {"text": text} if text else None}
    return {FILE_NAME: with_values(editing.settings, new)}


# The words of the study's own rubrics, and what a change of them does to labels given so far.

_MEANINGS = ("differs", "same")


def show_rubrics(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.rubrics"))
    which, of_language = st.columns(2)
    name = which.selectbox("Rubric", list(study.rubrics), key="rubric_name")
    versions = list(study.rubrics[name].versions)
    code = versions[0]
    if len(versions) > 1:
        code = of_language.selectbox(
            "Language", versions, format_func=_language_name, key="rubric_in"
        )
    editing = begin(study, f"rubric-{name}-{code}")
    rubric = editing.present.rubrics[name].in_language(code)
    own = code == versions[0]
    told = labels_under(study, editing.present.rubrics[name])
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        words, options = _ask_for_words(editing, rubric)
        meaning = "differs"
        if own and told:
            meaning = st.radio(
                "What is new about it",
                _MEANINGS,
                format_func=lambda each: written(f"change.{each}"),
                key=editing.key("meaning"),
            )
        sent = st.form_submit_button("See what it does")
    if sent:
        at = "" if own else f"translations.{code}"
        same = meaning == "same"
        offer(study, editing, lambda: _changed_rubric(editing, rubric, at, words, options, same))
    after = show_offer(study, editing).rubrics[name].in_language(code)
    with right:
        reader = language(code) if code in codes_english_first() else ENGLISH
        as_raters_see(drawn_rubric(after, reader))


def _language_name(code: str) -> str:
    return language(code).name if code in codes_english_first() else code


def _ask_for_words(editing: Editing, rubric: Rubric) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Draw the fields of a rubric's words; return what is entered, and that of each option."""
    key = editing.key
    words = {
        "title": st.text_input("Title", rubric.title, key=key("title"), autocomplete="off"),
        "question": st.text_input(
            "Question", rubric.question, key=key("question"), autocomplete="off"
        ),
        "instructions": st.text_area(
            f"Guidelines ({written('lead.texts_form')})",
            rubric.instructions,
            height=220,
            key=key("instructions"),
        ),
    }
    options = []
    for option in rubric.kind.listed:
        with st.expander(f"Option {option.key}: {plain(option.name)}"):
            of = f"Option {option.key}"
            name = st.text_input(f"{of}, name", option.name, key=key(f"{option.key}.name"))
            said = st.text_area(
                f"{of}, description", option.description, key=key(f"{option.key}.said"), height=96
            )
            examples = st.text_area(
                f"{of}, examples, one a line",
                "\n".join(option.examples),
                key=key(f"{option.key}.examples"),
                height=96,
            )
        lines = [line.strip() for line in examples.splitlines() if line.strip()]
        options.append({"name": name.strip(), "description": said.strip(), "examples": lines})
    return {name: text.strip() for name, text in words.items()}, options


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
    new = {name: each for name, each in words.items() if each != getattr(rubric, name)}
    text = with_values(text, {at: new})
    content: Any = tomllib.loads(text)
    for part in filter(None, at.split(".")):
        content = content[part]
    place = f"{at}.options" if at else "options"
    for number, (option, entered) in enumerate(zip(rubric.options, options, strict=False)):
        present = {**option.model_dump(include=set(entered)), "examples": list(option.examples)}
        changed = {name: each for name, each in entered.items() if each != present[name]}
        if changed:
            text = with_entry(text, place, number, {**content["options"][number], **changed})
    before = editing.present.rubrics[rubric.name]
    known = editing.present.config.same_text.get(rubric.name, ())
    if not same and known and not at:
        # What meant the same as the text before does not mean the same as this one.
        settings = with_values(editing.settings, {"same_text": {rubric.name: None}})
        return {FILE_NAME: settings, file: text}
    if not same:
        return {file: text}
    older = list(dict.fromkeys([*known, before.hash]))
    # The settings first: as long as the old text is there, they change nothing.
    return {
        FILE_NAME: with_values(editing.settings, {"same_text": {rubric.name: older}}),
        file: text,
    }


# Practice units, attention checks, and the questions before the work: one after the other.

_NEW = "A new one"


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
    require(study, "lead")
    st.text(written("lead.training"))
    kind = st.segmented_control(
        "Kind",
        list(_LISTS),
        default="practice",
        format_func=lambda each: _LISTS[each].title,
        required=True,
        key="training_kind",
    )
    own = _LISTS[kind or "practice"]
    editing = begin(study, f"training-{kind}")
    file = _file(editing, own)
    entries = _listed(editing.text(file), own.place)  # none: a study takes the usual questions
    if entries:
        said = "entries" if _is_on(editing, own) else "entries_off"
        st.text(written(f"lead.{said}", count=len(entries), file=file))
    else:
        st.text(written("lead.no_entries"))
    names = [str(entry.get(own.name, "")) for entry in entries]
    at = st.selectbox(
        f"Which {own.one}",
        range(len(names) + 1),
        format_func=lambda place: names[place] if place < len(names) else _NEW,
        key=editing.key("at"),
    )
    entry = entries[at] if at < len(entries) else {}
    of_units = own.place == "unit"
    form, shown = st.columns(2, gap="large")
    with form, st.form(editing.key(f"form.{at}"), border=False):
        key = lambda name: editing.key(f"{at}.{name}")  # noqa: E731
        entered = (
            _unit(study, entry, key, explains=own.section == "training")
            if of_units
            else _question(own, entry, key)
        )
        keep, take_out, _ = st.columns([1, 1, 1])
        sent = keep.form_submit_button("See what it does", width="stretch")
        removes = bool(entry) and take_out.form_submit_button("Take it out", width="stretch")
    if sent or removes:
        new = None if removes else entered
        offer(study, editing, lambda: _changed_entries(editing, own, file, at, new))
    show_offer(study, editing)
    if of_units:
        with shown:
            as_raters_see(_drawn_unit(study, entered))


def _file(editing: Editing, own: _List) -> str:
    if not own.section:
        return FILE_NAME
    section = getattr(editing.present.config, own.section)
    return (section.file if section else "") or f"{own.section}.toml"


def _is_on(editing: Editing, own: _List) -> bool:
    """Return True if raters meet what the file holds; it may lie there while its part is off."""
    section = own.section and getattr(editing.present.config, own.section)
    return not own.section or bool(section and section.file)


def _listed(text: str, place: str) -> list[dict[str, Any]]:
    content: Any = tomllib.loads(text)
    for part in place.split("."):
        content = content.get(part, {})
    return list(content)


def _unit(
    study: Study, entry: dict[str, Any], key: Callable[[str], str], *, explains: bool
) -> dict[str, Any]:
    """Draw the fields of a unit with a known answer; return what is entered."""
    rubrics = study.labelled_rubrics()
    name = st.text_input("Name", entry.get("name", ""), key=key("name"), autocomplete="off")
    found: dict[str, Any] = {"name": name.strip()}
    values = {}
    for variable in dict.fromkeys(name for rubric in rubrics for name in rubric.variables):
        present = entry.get("values", {}).get(variable, "")
        label = TEXT_VARIABLES.get(variable, named(variable))
        values[variable] = st.text_area(label, present, key=key(f"values.{variable}"), height=110)
    found["values"] = {variable: text for variable, text in values.items() if text}
    expected = {
        rubric.name: _right(rubric, entry.get("expected", {}).get(rubric.name, []), key)
        for rubric in rubrics
    }
    found["expected"] = {name: keys for name, keys in expected.items() if keys}
    if explains:
        text = st.text_area(
            f"Explanation, shown with the right answer ({written('lead.texts_form')})",
            entry.get("explanation", ""),
            key=key("explanation"),
            height=110,
        )
        found["explanation"] = text.strip() or None
    elif "explanation" in entry:
        found["explanation"] = entry["explanation"]
    return found


def _right(rubric: Rubric, present: str | list[str], key: Callable[[str], str]) -> list[str]:
    """Draw the right answers on a rubric; return those chosen."""
    keys = [present] if isinstance(present, str) else list(present)
    label, at = f"Right on {plain(rubric.title)}", key(f"expected.{rubric.name}")
    if not rubric.kind.listed:
        return listed(st.text_input(label, ", ".join(keys), key=at, autocomplete="off"))
    names = {option.key: f"{option.key}: {option.name}" for option in rubric.options}
    known = list(dict.fromkeys([*names, *keys]))
    return st.multiselect(
        label, known, keys, format_func=lambda each: names.get(each, each), key=at,
        placeholder="Not asked, or any answer will do",
    )  # fmt: skip


def _question(own: _List, entry: dict[str, Any], key: Callable[[str], str]) -> dict[str, Any]:
    """Draw the fields of a question before the work; return what is entered."""
    found: dict[str, Any] = {}
    if own.name == "key":
        column = st.text_input(
            "Column in the table of raters", entry.get("key", ""), key=key("key")
        )
        found["key"] = column.strip()
    found["question"] = st.text_input("Question", entry.get("question", ""), key=key("question"))
    options = st.text_area(
        "Answers, one a line", "\n".join(entry.get("options", ())), key=key("options"), height=130
    )
    found["options"] = [line.strip() for line in options.splitlines() if line.strip()]
    if own.name == "question":
        found["answer"] = st.text_input(
            "The right answer", entry.get("answer", ""), key=key("answer"), autocomplete="off"
        ).strip()
        explanation = st.text_area(
            "Explanation, shown after a wrong answer",
            entry.get("explanation", ""),
            key=key("explanation"),
            height=96,
        )
        found["explanation"] = explanation.strip() or None
    return found


def _drawn_unit(study: Study, unit: dict[str, Any]) -> str:
    """The texts of a unit as raters see them, and what they are told."""
    blocks: dict[str, Any] = {}
    for rubric in study.labelled_rubrics():
        values = {name: unit["values"].get(name, "") for name in rubric.variables}
        blocks |= {block.variable: block for block in rubric.for_people(values).blocks}
    shown: Sequence[Any] = [block for block in blocks.values() if block.text]
    explanation = unit.get("explanation") or ""
    said = drawn_text(explanation) if explanation else ""
    return said + drawn_blocks(shown, ENGLISH, study.config.annotation.display)


def _changed_entries(
    editing: Editing, own: _List, file: str, at: int, entry: dict[str, Any] | None
) -> dict[str, str]:
    """The file with the entry; the first one turns its part on, and the last one turns it off."""
    text = editing.text(file)
    if own.place == "unit" and entry is not None and not entry["expected"]:
        raise InputError(written("lead.no_right_answer"))
    if own.place == "background.questions" and editing.present.config.background is None:
        text = with_values(text, {"background": {}})
    text = with_entry(text, own.place, at, entry)
    if own.place == "background.questions" and not _listed(text, own.place):
        text = with_values(text, {"background": None})  # without a list the usual ones are asked
    if not own.section:
        return {file: text}
    settings = editing.settings
    if tomllib.loads(text).get(own.place):
        # The units first: as long as no setting names their file, they change nothing.
        return {file: text, FILE_NAME: with_values(settings, {own.section: {"file": file}})}
    without = None if own.section == "attention" else {"file": None}
    return {FILE_NAME: with_values(settings, {own.section: without}), file: text}
