"""Changes of a study while it runs: its settings, rubrics, texts and units with a known answer.

The files stay the one truth. A change is new contents for some of them: the study that they make is
checked as a whole before anything is written, and what is new in it, and what that does to the
work, is worked out from the study before and after.
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
from evenhand.study.session.sessions import OwnTexts, PracticeDesk
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import FILE_NAME, StudyConfig, in_words, read_config
from evenhand.study.store.logs.decisions import note_files
from evenhand.study.store.schema import claims, labels
from evenhand.study.tables.files import atomic_write
from evenhand.study.trust import inside
from evenhand.study.workspace import RUBRICS_FOLDER, Study, files_of, rubrics_in_step
from evenhand.texts import table_of, written

Files = Mapping[str, bytes | None]
"""Contents by path in the study's folder; None for a file that is not there."""

USUAL_FILES = ("training.toml", "attention.toml")
"""Default files for units with a known answer, of training and of attention checks."""

_MEANING: dict[str, dict[str, str]] = table_of("evenhand.study", "changes.toml")
_LONGEST, _LONGEST_DETAIL = 60, 600


def fixed_because(key: str, begun: bool) -> str:
    """Return why a setting such as "sample.pairs" is not changed; "" where it may be."""
    for at in (key, key.partition(".")[0]):
        if reason := _MEANING["fixed"].get(at) or (begun and _MEANING["fixed_once_begun"].get(at)):
            return written(f"change.fixed_{reason}")
    return ""


def has_begun(study: Study) -> bool:
    """Return True once a unit has been given out, or labelled elsewhere."""
    given = (sa.exists(sa.select(claims.c.task_id)), sa.exists(sa.select(labels.c.event_id)))
    return any(study.store.rows(sa.select(*given))[0])


@dataclass(frozen=True)
class Contents:
    """The contents of a study's files, parsed."""

    files: Files
    config: StudyConfig
    rubrics: Mapping[str, Rubric]
    practice: Mapping[str, KnownUnit]
    checks: Mapping[str, KnownUnit]


def read_files(study: Study) -> dict[str, bytes | None]:
    """The study's files now. Raises InputError for invalid settings, or a file elsewhere."""
    names = files_of(study.folder, read_config(study.folder))
    return {name: _content(study.folder, name) for name in (*names, *USUAL_FILES)}


def contents_of(study: Study, files: Files) -> Contents:
    """The study with these files. Raises InputError where it would not hold together."""
    with tempfile.TemporaryDirectory(prefix="evenhand-change-") as home:
        folder = Path(home)
        for name, content in files.items():
            if content is not None:
                path = inside(folder, name, "file")
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(content)
        config = read_config(folder)
        for name in files_of(folder, config):
            inside(folder, name, "file")
        made = Study(folder, config, rubrics_in_step(folder, config), study.store)
        made.check_labelled_subjects()
        OwnTexts(made)
        practice, checks = PracticeDesk(made).units.units, AttentionChecks(made).units
        return Contents(files, config, made.rubrics, practice, checks)


def changed_since(study: Study, files: Files) -> list[str]:
    """Return the files that are not what they were when they were read."""
    return [name for name in files if _content(study.folder, name) != files[name]]


def save(study: Study, before: Files, after: Files, done_by: str) -> list[Difference]:
    """Write the files whose contents are new, in the order of `after`, each whole or not at all,
    and note in the log who changed what; return it.

    Raises InputError, with nothing written, where the study would not hold together, a setting is
    not to be changed, or anyone has changed a file since `before` was read.
    """
    old, new = contents_of(study, before), contents_of(study, after)
    changes = list(differences(old, new))
    begun = has_begun(study)
    for change in changes:
        if reason := fixed_because(change.place, begun):
            raise InputError(f"{change.place} cannot be changed here: {reason}")
    with study.store.write() as connection:  # which one lead at a time can have
        if late := changed_since(study, before):
            raise InputError(written("change.meanwhile", files=" and ".join(late)))
        wanted = {name: text for name, text in after.items() if text is not None}
        wanted = {name: text for name, text in wanted.items() if text != before.get(name)}
        noted = {}
        for name, text in wanted.items():
            edits = (change for change in changes if change.file == name)
            lines = (
                f"{edit.place}: {_short(edit.before)} -> {_short(edit.after)}" for edit in edits
            )
            line = _short("; ".join(lines), _LONGEST_DETAIL)
            noted[name] = (text.decode("utf-8-sig").replace("\r\n", "\n"), line)
        note_files(connection, done_by, noted)
        for name, text in wanted.items():
            try:
                atomic_write(inside(study.folder, name, "file"), text)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InputError(f"{name} cannot be written: {reason}") from None
    return changes


def _content(folder: Path, name: str) -> bytes | None:
    path = inside(folder, name, "file")
    return path.read_bytes() if path.is_file() else None


@dataclass(frozen=True)
class Difference:
    """Something that is new in a study: where, in which file, what it was and what it is."""

    place: str
    file: str
    before: str
    after: str


def differences(before: Contents, after: Contents) -> Iterator[Difference]:
    """Everything that differs between two states of a study, in the order of its files."""
    old, new = settings_by_key(before.config), settings_by_key(after.config)
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield Difference(key, FILE_NAME, in_words(old.get(key)), in_words(new.get(key)))
    for name in dict.fromkeys([*before.rubrics, *after.rubrics]):
        for field in Rubric.model_fields:
            was, now = (getattr(of.rubrics.get(name), field, None) for of in (before, after))
            if was != now:
                file = f"{RUBRICS_FOLDER}/{name}.toml"
                yield Difference(f"rubric.{name}.{field}", file, _words(was), _words(now))
    for known, was, now in (
        ("training", before.practice, after.practice),
        ("attention", before.checks, after.checks),
    ):
        section = getattr(after.config, known) or getattr(before.config, known)
        for unit in dict.fromkeys([*was, *now]):
            if was.get(unit) != now.get(unit):
                place = f"{known}.{unit.partition(':')[2]}"
                yield Difference(place, section.file, _unit(was.get(unit)), _unit(now.get(unit)))
    for name in dict.fromkeys([*before.files, *after.files]):
        contents = [of.files.get(name) or b"" for of in (before, after)]
        if name.endswith(".md") and contents[0] != contents[1]:
            was, now = (content.decode("utf-8-sig").strip() or "none" for content in contents)
            yield Difference(name, name, was, now)


def settings_by_key(config: StudyConfig) -> dict[str, object]:
    """Return every setting by its key ("annotation.screen"); an absent section has none."""
    settings: dict[str, object] = {}
    for name, value in config:
        if isinstance(value, Section):
            settings |= {f"{name}.{key}": setting for key, setting in value}
        elif value is not None:
            settings[name] = value
    return settings


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return "\n".join(_words(part) for part in value)
    if option := getattr(value, "name", ""):
        parts = (option, getattr(value, "description", ""), *getattr(value, "examples", ()))
        return " / ".join(filter(None, parts))
    return str(value)


def _unit(unit: KnownUnit | None) -> str:
    if unit is None:
        return "none"
    right = (f"{rubric}: {' or '.join(keys)}" for rubric, keys in unit.expected.items())
    return "; ".join([*unit.values.values(), *right, unit.explanation])


def _short(text: str, most: int = _LONGEST) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def effects(study: Study, before: Contents, after: Contents) -> list[str]:
    """Return what a change does to open work, labels given so far and raters at their pages, a
    sentence or two for each kind of change.
    """
    sentences: dict[str, None] = {}
    for place in (difference.place for difference in differences(before, after)):
        if place.startswith("rubric."):
            sentences[_rubric_effect(study, place.split(".")[1], before, after)] = None
        elif place != "same_text":
            sentences[_effect(place, before.config, after.config)] = None
            text = _MEANING["translated"].get(place)
            unchanged = [  # in these languages, whose readers see nothing new
                name.split(".")[1]
                for name, content in after.files.items()
                if text and name.startswith(f"{text}.")
                if content and before.files.get(name) == content
            ]
            if unchanged:
                sentences[written("change.untranslated", codes=", ".join(unchanged))] = None
    return list(sentences)


def _effect(place: str, old: StudyConfig, new: StudyConfig) -> str:
    """Return the effect of a change of one setting or text."""
    if place.endswith(".md"):
        return written("change.translation")
    section = place.partition(".")[0]
    name = _MEANING["effects"].get(place) or _MEANING["effects"].get(section, section)
    was, now = settings_by_key(old).get(place), settings_by_key(new).get(place)
    if name == "raters_per_unit" and isinstance(was, int) and isinstance(now, int):
        name = "more_raters" if now > was else "fewer_raters"
    if section in _MEANING["off"] and not getattr(new, section):
        name = _MEANING["off"][section]
    elif name == "read_again" and not now:
        name = "left_out"
    return written(f"change.{name}", now=now)


def _rubric_effect(study: Study, name: str, before: Contents, after: Contents) -> str:
    """Return the effect of a change of a rubric."""
    old, new = before.rubrics.get(name), after.rubrics.get(name)
    if old is None or new is None:
        return written("change.rubrics")
    if old.hash == new.hash:
        return written("change.translation")
    count = labels_under(study, old)
    same = old.hash in after.config.same_text.get(name, ())
    key = "rubric_same" if same else "rubric_new" if count else "rubric_first"
    return written(f"change.{key}", count=count, title=new.title)


def labels_under(study: Study, rubric: Rubric) -> int:
    """Return how many labels of people and graders count for a rubric as its text is now."""
    hashes = {rubric.hash, *study.config.same_text.get(rubric.name, ())}
    versions = study.store.text_versions()
    return sum(versions.get((rubric.name, digest), 0) for digest in hashes)
