"""An open study: its settings, rubrics and store, and the tables read from them.

`open_study` checks a study's folder and returns its `Study`. After it come the parts of opening
(rubrics, files), the state of the store, and the study's secret. A unit is what gets a label: a
pair's two responses by one subject (a rated model), or one response.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from evenhand.errors import InputError, StoreAway
from evenhand.lazy import pd
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study.prompts.pairs import with_words
from evenhand.study.prompts.units import Question, parse_unit_id, presented_values, units_table
from evenhand.study.settings.study_toml import FILE_NAME, StudyConfig, read_config
from evenhand.study.store.database import PATIENCE, Database, add_secret, conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.decisions import current_inclusion
from evenhand.study.store.schema import meta
from evenhand.study.store.store import Store, grade_totals
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.tables.files import atomic_write, new_folder, tighten
from evenhand.study.trust import inside
from evenhand.texts import written

_log = logging.getLogger(__name__)
RUBRICS_FOLDER, PROMPTS_FOLDER = "rubrics", "prompts"


class Study:
    """An open study folder. Close it, or use it as a context manager."""

    def __init__(self, folder: Path, config: StudyConfig, rubrics: dict[str, Rubric], store: Store):
        self.folder = folder
        self.config = config
        self.rubrics = rubrics
        self.store = store

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    @cached_property
    def blinding_key(self) -> bytes:
        """Return the key that fixes what annotators must not foresee: when attention checks and
        repeats come, the order of units and sides, ids of tasks. The seed is public, this is not.
        """
        return hmac.new(study_secret(self.store), b"blinding", hashlib.sha256).digest()

    def units(self, scope: str = "sample") -> pd.DataFrame:
        """Return the `units` table of the sampled pairs ("sample"), in their order of labelling, or
        of all pairs ("all"). If pairs had different probabilities of being picked, the column
        `inclusion_probability` has them (see `store.logs.decisions`).
        """
        pairs = self.store.pairs()
        if scope == "sample":
            pairs = pairs[pairs["sample_position"].notna()].sort_values("sample_position")
        units = units_table(pairs, self.store.answered().drop_duplicates(["pair_id", "subject"]))
        if probabilities := current_inclusion(self.store):
            units[INCLUSION] = units["cluster_id"].map(probabilities)
        return units

    def units_with_lengths(self, scope: str = "sample") -> pd.DataFrame:
        """Return `units(scope)` with the word counts of responses and of texts shown with them."""
        text_columns = (
            block.column
            for rubric in self.rubrics.values()
            for block in rubric.blocks
            if rubric.unit == "response" and block.column != "response" and block.kind != "image"
        )
        return with_words(self.units(scope), self.store.responses(), dict.fromkeys(text_columns))

    def check_labelled_subjects(self) -> None:
        """Raise InputError if study.toml lets people label a subject without responses."""
        subjects = self.store.subjects()
        for subject in self.config.annotation.subjects:
            if subjects and subject not in subjects:
                raise InputError(
                    f"study.toml: annotation.subjects names {subject!r}, but the study has "
                    f"responses of {', '.join(subjects)}"
                )

    def rubric_units(self, rubric: Rubric, scope: str = "sample") -> list[str]:
        """Return the ids of the units of this rubric's kind that have responses."""
        return self.units_by_kind(scope)[rubric.unit]

    def labelled_units(self, sampled: pd.DataFrame | None = None) -> list[tuple[str, str]]:
        """Return (unit id, pair id) of the `sampled` units whose subject people label."""
        units = self.units("sample") if sampled is None else sampled
        named = set(self.config.annotation.subjects)  # none named: all are labelled
        columns = (units["unit_id"], units["cluster_id"], units["subject"])
        return [
            (unit, pair)
            for unit, pair, subject in zip(*columns, strict=True)
            if subject and (not named or subject in named)
        ]

    def unanswered(self, subjects: Iterable[str], scope: str) -> dict[str, list[str]]:
        """Return for each of these subjects the pairs of a scope without a response of theirs."""
        answered = self.store.answered().groupby("subject")["pair_id"].agg(set).to_dict()
        pairs = self.store.sample() if scope == "sample" else self.store.pairs()["pair_id"].tolist()
        return {
            subject: [pair for pair in pairs if pair not in answered.get(subject, ())]
            for subject in subjects
        }

    def units_by_kind(self, scope: str = "sample") -> dict[str, list[str]]:
        """Return the ids of the units that have responses, by kind: the `unit` of a rubric."""
        units = self.units(scope)
        units = units[units["subject"] != ""]  # "": a pair to which no response has come yet
        is_pair = units["side"] == ""  # or a comparison: both sides together are one unit
        pairs = units.loc[is_pair, "unit_id"].tolist()
        responses = units.loc[~is_pair, "unit_id"].tolist()
        return {"pair": pairs, "comparison": pairs, "response": responses}

    def values(self, rubric: Rubric, unit_id: str, order: str = "ab") -> dict[str, str]:
        """Return the template variables of one unit as shown in this order."""
        return self.values_of([Question(unit_id, rubric, order)])[0]

    def values_of(self, questions: Sequence[Question]) -> list[dict[str, str]]:
        """Return the template variables of hundreds of questions at once."""
        units = [parse_unit_id(question.unit_id) for question in questions]
        keys = dict.fromkeys((unit.pair_id, unit.subject) for unit in units)
        texts_by_key = self.store.texts_of(list(keys))
        values = []
        for unit, question in zip(units, questions, strict=True):
            cells, responses = texts_by_key[unit.pair_id, unit.subject]
            shown = presented_values(question.rubric, unit, question.order, cells, responses)
            values.append(question.presented(shown))
        return values

    def ratings(self) -> pd.DataFrame:
        """Return the `ratings` table: current labels and grades of every rater."""
        return self.store.ratings(self.accepted_hashes())

    def grade_totals(self) -> pd.DataFrame:
        """Return the totals of each grader's requests and costs; see `store.store.grade_totals`."""
        return grade_totals(self.store, self.accepted_hashes())

    def accepted_hashes(self) -> dict[str, tuple[str, ...]]:
        """Return the hashes of each rubric under which labels count: that of the present text, and
        of older texts that study.toml declares to mean the same.
        """
        older = self.config.same_text
        return {name: (rubric.hash, *older.get(name, ())) for name, rubric in self.rubrics.items()}

    def edited_rubrics(self) -> list[str]:
        """Return a sentence for every rubric that was edited after ratings under it."""
        accepted = self.accepted_hashes()
        return [
            written("terminal.edited_rubric", rubric=name, count=count, version=digest)
            for (name, digest), count in sorted(self.store.text_versions().items())
            if name in accepted and digest not in accepted[name]  # the study may have dropped it
        ]

    def keep_prompt(self, digest: str, source: bytes) -> None:
        """Copy the file of a user's judge prompt into the study, under its hash."""
        path = self.folder / PROMPTS_FOLDER / f"{digest}.toml"
        if not path.exists():
            new_folder(path.parent)
            atomic_write(path, source)

    def labelled_rubrics(self) -> list[Rubric]:
        """Return the rubrics that people label: those named, or all but other wordings of one."""
        default_names = [name for name, rubric in self.rubrics.items() if not rubric.variant_of]
        return [self.rubrics[name] for name in self.config.annotation.rubrics or default_names]

    def asked_rubrics(self) -> list[Rubric]:
        """Return the rubrics that people label, with both wordings if one is on trial."""
        names = [rubric.name for rubric in self.labelled_rubrics()]
        if trial := self.config.rewording:
            names += [trial.rubric, self.rubrics[trial.rubric].variant_of]
        return [self.rubrics[name] for name in dict.fromkeys(names)]


def open_study(folder: str | Path, *, patience: float = PATIENCE) -> Study:
    """Open a study folder. If others could read it (an older study, a copy), they no longer can,
    and a warning says so. Raises InputError where it is not a study, or its settings or rubrics are
    not valid; StoreAway where its store is missing or has not answered after `patience` seconds.
    """
    folder = Path(folder)
    config = read_config(folder)
    if tighten(folder):
        _log.warning("Note: others could read %s; only you can from now on", folder)
    rubrics = checked_rubrics(folder, config)
    store = Store.open(config.store, folder, patience=patience)
    if read_config(folder).store != config.store:  # moved while this process waited for the store
        store.close()
        raise InputError("the study was moved to another store meanwhile; run this again")
    return Study(folder, config, rubrics, store)


def checked_rubrics(folder: Path, config: StudyConfig) -> dict[str, Rubric]:
    """Return the study's rubrics. Raises InputError where the settings do not fit them."""
    rubrics = study_rubrics(folder)
    for section, names in (
        ("annotation.rubrics", config.annotation.rubrics),
        ("rewording.rubric", [config.rewording.rubric] if config.rewording else []),
        ("thresholds", config.thresholds),
        ("same_text", config.same_text),
    ):
        for name in names:
            if name not in rubrics:
                raise InputError(
                    f"study.toml: {section} names the rubric {name!r}, but the study has "
                    + ", ".join(rubrics)
                )
    if config.rewording:
        new = config.rewording.rubric
        if not (old := rubrics[new].variant_of):
            raise InputError(
                f"study.toml: rewording.rubric names {new!r}, which is no other wording of a "
                "rubric; give it `variant_of`"
            )
        if {new, old} <= set(config.annotation.rubrics):
            both = " and ".join(sorted((new, old)))
            raise InputError(
                f"study.toml: annotation.rubrics names {both}, two wordings of one rubric that are "
                "tried against each other; name one of them"
            )
    return rubrics


def files_of(folder: Path, config: StudyConfig) -> list[str]:
    """Return the paths of the files that define a study, relative to its folder: settings, rubrics,
    units with a known answer, texts in other languages.
    """
    known_unit_files = [section.file for section in (config.training, config.attention) if section]
    rubrics = (f"{RUBRICS_FOLDER}/{path.name}" for path in (folder / RUBRICS_FOLDER).glob("*.toml"))
    texts = (path.name for path in folder.glob("*.md"))
    return [FILE_NAME, *sorted(rubrics), *filter(None, known_unit_files), *sorted(texts)]


@dataclass(frozen=True)
class StoreState:
    """State of a study's store: whether it can be read and written, and the age of its last good
    backup in hours; None where there is none, or it cannot be read.
    """

    can_read: bool
    can_write: bool
    hours_since_backup: float | None = None


def store_state(study: Study) -> StoreState:
    """Return the state of an open study's store, by reading and writing it."""
    can_read, can_write, hours = False, False, None
    try:
        study.store.schema_version()
        hours = hours_since_backup(study.store)
        can_read = True
        note_event_time(study.store, "asked")
        can_write = True
    except (InputError, StoreAway) as error:
        _log.warning("the store was asked whether it is there: %s", error)
    return StoreState(can_read, can_write, hours)


def check_wordings(rubrics: Mapping[str, Rubric]) -> None:
    """Raise InputError for a variant whose rubric is missing, or has other items or options."""
    for rubric in rubrics.values():
        if not rubric.variant_of:
            continue
        base = rubrics.get(rubric.variant_of)
        if base is None or base.variant_of:
            raise InputError(
                f"rubric {rubric.name!r} is a variant of {rubric.variant_of!r}, which is no rubric "
                "of the study; add that one or take variant_of out"
            )
        if base.categories != rubric.categories or base.unit != rubric.unit:
            raise InputError(
                f"rubric {rubric.name!r} is a variant of {base.name!r} but asks for other items or "
                "options; give both the same item and option keys"
            )


def study_rubrics(folder: Path) -> dict[str, Rubric]:
    """Return the study's rubrics by name. Raises InputError where one is bad or none exists."""
    rubrics = {}
    for file in sorted((folder / RUBRICS_FOLDER).glob("*.toml")):
        rubric = load_rubric(inside(folder, f"{RUBRICS_FOLDER}/{file.name}", "rubrics"))
        if rubric.name != file.stem:
            raise InputError(
                f"{file.name} holds the rubric {rubric.name!r}; file and rubric must bear one name"
            )
        rubrics[rubric.name] = rubric
    if not rubrics:
        raise InputError(f"the study has no rubric files in {folder / RUBRICS_FOLDER}")
    check_wordings(rubrics)
    return rubrics


StoreEvent = Literal["asked", "backup"]  # the store was found writable; a good backup was made


def note_event_time(store: Database, event: StoreEvent) -> None:
    """Record that this event happened now."""
    key, now = f"last_{event}", utc_now()
    with store.write() as connection:
        insert = conflict_free_insert(connection, meta).values(key=key, value=now)
        upsert = insert.on_conflict_do_update(index_elements=["key"], set_={"value": now})
        connection.execute(upsert)


def hours_since_backup(store: Database) -> float | None:
    """Return the hours since the last good backup; None if there was none."""
    if not (stored := store.values(sa.select(meta.c.value).where(meta.c.key == "last_backup"))):
        return None
    return round((datetime.now(UTC) - datetime.fromisoformat(stored[0])).total_seconds() / 3600, 2)


def study_secret(store: Database) -> bytes:
    """Return the study's secret: random bytes in the store alone, never shown. It signs tokens, and
    draws what annotators must not foresee. Backups include it, exports do not. A store of a version
    that did not create it at once gets one now.
    """
    query = sa.select(meta.c.value).where(meta.c.key == "secret")
    if not (stored := store.values(query)):
        with store.write() as connection:
            add_secret(connection)
            stored = store.values(query)
    return bytes.fromhex(stored[0])
