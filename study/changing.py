"""Changes of a running study: its settings, rubrics and texts, and the units (things to label) with
a known answer, which are for practice and for attention checks. A change is new contents for some
of the study's files. `save` checks the resulting study as a whole before it writes anything;
`differences` and `effects` compare the study before and after.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study.desk.claims import AttentionChecks, KnownUnit
from evenhand.study.session.sessions import LeadTexts, PracticeDesk
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import FILE_NAME, StudyConfig, in_words, read_config
from evenhand.study.store.logs.decisions import note_files
from evenhand.study.store.schema import claims, labels
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.files import atomic_write
from evenhand.study.trust import inside
from evenhand.study.workspace import RUBRICS_FOLDER, Study, checked_rubrics, files_of
from evenhand.texts import table_of, written

Files = Mapping[str, bytes | None]  # contents by path in the study's folder; None: missing

KNOWN_UNIT_FILES = ("training.toml", "attention.toml")  # default files of units with an answer

_RULES: dict[str, dict[str, str]] = table_of("evenhand.study", "changes.toml")
"""Names of sentences by a setting's key or section: why it is fixed, and what a change does."""
_MAX_VALUE_CHARACTERS = 60  # of an old or new value in the log
_MAX_SUMMARY_CHARACTERS = 600  # of the changes of one file in the log


def fixed_because(key: str, begun: bool) -> str:
    """Return why a setting such as "sample.pairs" cannot be changed; "" if it can."""
    reasons = (_RULES["fixed_once_begun"] if begun else {}) | _RULES["fixed"]
    reason = reasons.get(key) or reasons.get(key.partition(".")[0])  # of its section
    return written(f"change.fixed_{reason}") if reason else ""


def has_begun(study: Study) -> bool:
    """Return True once a unit has been given to an annotator, or has a label made elsewhere."""
    conditions = (sa.exists(sa.select(claims.c.task_id)), sa.exists(sa.select(labels.c.event_id)))
    return any(study.store.rows(sa.select(*conditions))[0])  # one row, with a cell for each


@dataclass(frozen=True)
class Contents:
    """A study's files, parsed; `practice` and `checks` are units with a known answer, by id."""

    files: Files
    config: StudyConfig
    rubrics: Mapping[str, Rubric]
    practice: Mapping[str, KnownUnit]
    checks: Mapping[str, KnownUnit]


def read_files(study: Study) -> dict[str, bytes | None]:
    """Return the study's files now. Raises InputError for bad settings or a file outside of it."""
    names = files_of(study.folder, read_config(study.folder))
    return {name: _content(study.folder, name) for name in (*names, *KNOWN_UNIT_FILES)}


def contents_of(study: Study, files: Files) -> Contents:
    """Parse a study with these files. Raises InputError where it is not valid."""
    with tempfile.TemporaryDirectory(prefix="evenhand-change-") as temporary:
        folder = Path(temporary)
        for name, content in files.items():
            if content is not None:
                path = inside(folder, name, "file")
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(content)
        config = read_config(folder)
        for name in files_of(folder, config):
            inside(folder, name, "file")
        changed_study = Study(folder, config, checked_rubrics(folder, config), study.store)
        changed_study.check_labelled_subjects()
        LeadTexts(changed_study)  # raises InputError for a text that is not UTF-8
        practice = PracticeDesk(changed_study).units.units
        checks = AttentionChecks(changed_study).units
        return Contents(files, config, changed_study.rubrics, practice, checks)


def changed_since(study: Study, files: Files) -> list[str]:
    """Return the names of the files whose contents on disk are no longer these."""
    return [name for name in files if _content(study.folder, name) != files[name]]


def save(study: Study, before: Files, after: Files, done_by: str) -> list[Difference]:
    """Write the files with new contents, in the order of `after`, each whole or not at all; log the
    changes and their author, and return them. Raises InputError, with nothing written, where the
    study would not be valid, a setting cannot be changed, or a file has changed since `before`.
    """
    old, new = contents_of(study, before), contents_of(study, after)
    changes = list(differences(old, new))
    begun = has_begun(study)
    for change in changes:
        if reason := fixed_because(change.key, begun):
            raise InputError(f"{change.key} cannot be changed here: {reason}")
    with study.store.write() as connection:  # one lead at a time
        if changed_meanwhile := changed_since(study, before):
            raise InputError(written("change.meanwhile", files=" and ".join(changed_meanwhile)))
        existing = {name: content for name, content in after.items() if content is not None}
        changed = {name: text for name, text in existing.items() if text != before.get(name)}
        log_entries = {}
        for name, content in changed.items():
            edits = (change for change in changes if change.file == name)
            lines = (f"{it.key}: {_one_line(it.before)} -> {_one_line(it.after)}" for it in edits)
            summary = _one_line("; ".join(lines), _MAX_SUMMARY_CHARACTERS)
            log_entries[name] = (content.decode("utf-8-sig").replace("\r\n", "\n"), summary)
        note_files(connection, done_by, log_entries)
        for name, content in changed.items():
            try:
                atomic_write(inside(study.folder, name, "file"), content)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InputError(f"{name} cannot be written: {reason}") from None
    return changes


def _one_line(text: str, most: int = _MAX_VALUE_CHARACTERS) -> str:
    """Return a text on one line, shortened to `most` characters."""
    return shortened(" ".join(text.split()), most)


def _content(folder: Path, name: str) -> bytes | None:
    """Return the contents of a file of the study as it is on disk; None if it is missing."""
    path = inside(folder, name, "file")
    return path.read_bytes() if path.is_file() else None


@dataclass(frozen=True)
class Difference:
    """A changed setting, rubric field, unit or text, and its file, with both values in words."""

    key: str
    file: str
    before: str
    after: str


def differences(before: Contents, after: Contents) -> Iterator[Difference]:
    """Yield all differences between two states of a study, in the order of its files."""
    old, new = settings_by_key(before.config), settings_by_key(after.config)
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield Difference(key, FILE_NAME, in_words(old.get(key)), in_words(new.get(key)))
    for name in dict.fromkeys([*before.rubrics, *after.rubrics]):
        file = f"{RUBRICS_FOLDER}/{name}.toml"
        for field in Rubric.model_fields:
            values = [getattr(state.rubrics.get(name), field, None) for state in (before, after)]
            if values[0] != values[1]:  # None: the rubric was added or removed
                yield Difference(f"rubric.{name}.{field}", file, *map(_field_text, values))
    for section, old_units, new_units in (
        ("training", before.practice, after.practice),
        ("attention", before.checks, after.checks),
    ):
        settings = getattr(after.config, section) or getattr(before.config, section)
        for unit_id in dict.fromkeys([*old_units, *new_units]):
            old_unit, new_unit = old_units.get(unit_id), new_units.get(unit_id)
            if old_unit != new_unit:
                key = f"{section}.{unit_id.partition(':')[2]}"
                yield Difference(key, settings.file, _unit_text(old_unit), _unit_text(new_unit))
    for name in dict.fromkeys([*before.files, *after.files]):
        contents = [state.files.get(name) or b"" for state in (before, after)]
        if name.endswith(".md") and contents[0] != contents[1]:
            texts = (content.decode("utf-8-sig").strip() or "none" for content in contents)
            yield Difference(name, name, *texts)


def settings_by_key(config: StudyConfig) -> dict[str, object]:
    """Return every setting by its key ("annotation.screen"), without absent sections."""
    settings: dict[str, object] = {}
    for name, value in config:
        if isinstance(value, Section):
            settings |= {f"{name}.{key}": setting for key, setting in value}
        elif value is not None:
            settings[name] = value
    return settings


def _field_text(value: object) -> str:
    """Return a field of a rubric as text."""
    if isinstance(value, tuple):
        return "\n".join(_field_text(part) for part in value)
    if name := getattr(value, "name", ""):  # an option of the rubric
        texts = (name, getattr(value, "description", ""), *getattr(value, "examples", ()))
        return " / ".join(filter(None, texts))
    return str(value)


def _unit_text(unit: KnownUnit | None) -> str:
    """Return a unit with a known answer as text."""
    if unit is None:
        return "none"
    answers = (f"{rubric}: {' or '.join(keys)}" for rubric, keys in unit.expected.items())
    return "; ".join([*unit.values.values(), *answers, unit.explanation])


def effects(study: Study, before: Contents, after: Contents) -> list[str]:
    """Return sentences on the effects of a change on open work, labels and raters."""
    sentences: list[str] = []
    for key in (difference.key for difference in differences(before, after)):
        if key.startswith("rubric."):
            sentences.append(_rubric_effect(study, key.split(".")[1], before, after))
        elif key != "same_text":  # changed along with a rubric, whose sentence covers it
            sentences.append(_effect(key, before.config, after.config))
            if codes := _outdated_translations(key, before.files, after.files):
                sentences.append(written("change.untranslated", codes=", ".join(codes)))
    return list(dict.fromkeys(sentences))  # each sentence once


def _outdated_translations(key: str, before: Files, after: Files) -> list[str]:
    """Return the languages in which a changed text still has its former translation."""
    if (stem := _RULES["translated"].get(key)) is None:
        return []
    files = [name for name in after if name.startswith(f"{stem}.")]  # such as consent.de.md
    return [name.split(".")[1] for name in files if after[name] and before.get(name) == after[name]]


def _effect(key: str, old: StudyConfig, new: StudyConfig) -> str:
    """Return a sentence on the effect of a change of one setting or text."""
    if key.endswith(".md"):
        return written("change.translation")
    section = key.partition(".")[0]
    effects_by_key = _RULES["effects"]  # by key or by section
    effect = effects_by_key.get(key) or effects_by_key.get(section, section)
    old_value, new_value = settings_by_key(old).get(key), settings_by_key(new).get(key)
    if section in _RULES["off"] and not getattr(new, section):  # the section was taken out
        effect = _RULES["off"][section]
    elif effect == "read_again" and not new_value:  # the text was taken out
        effect = "left_out"
    elif effect == "raters_per_unit" and isinstance(old_value, int) and isinstance(new_value, int):
        effect = "more_raters" if new_value > old_value else "fewer_raters"
    return written(f"change.{effect}", now=new_value)


def _rubric_effect(study: Study, name: str, before: Contents, after: Contents) -> str:
    """Return a sentence on the effect of a change of a rubric."""
    old, new = before.rubrics.get(name), after.rubrics.get(name)
    if old is None or new is None:
        return written("change.rubrics")
    if old.hash == new.hash:  # all that it omits, of what the lead can edit, is translations
        return written("change.translation")
    count = labels_under(study, old)
    means_same = old.hash in after.config.same_text.get(name, ())
    effect = "rubric_same" if means_same else "rubric_new" if count else "rubric_first"
    return written(f"change.{effect}", count=count, title=new.title)


def labels_under(study: Study, rubric: Rubric) -> int:
    """Return the number of ratings under a rubric's text, or one declared to mean the same."""
    hashes = {rubric.hash, *study.config.same_text.get(rubric.name, ())}
    counts = study.store.text_versions()  # numbers of ratings, by rubric and hash
    return sum(counts.get((rubric.name, digest), 0) for digest in hashes)
