"""A trial of another wording of a rubric among people: which units are asked under which.

The trial's pairs come in twos, and the study's seed deals one of each two to the new wording. So a
unit has one wording for all of its raters, and every rater meets both. The deal holds for good: a
trial ends, and its units keep their wordings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study import seeding
from evenhand.study.creation import extend_sample
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.questions import Key
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import note_act
from evenhand.study.store.schema import claims, labels, lead_events
from evenhand.study.tables.files import atomic_write
from evenhand.study.workspace import RUBRICS_FOLDER, Study, check_wordings
from evenhand.texts import written


@dataclass(frozen=True)
class Rewording:
    """The wordings by the trial's pairs: the `new` one, or the rubric of which it is another."""

    new: Rubric
    by_pair: Mapping[str, Rubric]
    ended: bool = False

    def asked(self, rubric: Rubric, unit_id: str) -> Rubric | None:
        """Return the wording that people see for a unit; None for one of a trial that has ended."""
        dealt = self._dealt(rubric.name, unit_id)
        if dealt is None:
            return rubric
        return None if self.ended else dealt

    def answered(self, held: Set[Key]) -> set[Key]:
        """Return the questions that are answered, as a unit of the trial is under either wording:
        one was given out while the trial was being declared.
        """
        found = set(held)
        for unit_id, name in held:
            if dealt := self._dealt(name, unit_id):
                found.add((unit_id, dealt.name))
        return found

    def _dealt(self, name: str, unit_id: str) -> Rubric | None:
        if name not in (self.new.name, self.new.variant_of):
            return None
        return self.by_pair.get(parse_unit_id(unit_id)[0])


def rewording_of(study: Study) -> Rewording | None:
    """Return the trial that study.toml declares; None where it declares none.

    Raises InputError where units of another trial were given out: the deal cannot be undone.
    """
    declared, sample = study.config.rewording, study.store.sample()
    begun = _declared_before(study)
    kept = declared.model_dump(exclude={"ended"}) if declared else {}
    if begun not in ({}, kept) and _given_out(study, sample) > begun["after"]:
        raise InputError(written("rewording.begun", **begun))
    if declared is None:
        return None
    new = study.rubrics[declared.rubric]
    old, seed = study.rubrics[new.variant_of], study.config.seed
    pairs = sample[declared.after :][: declared.pairs]
    by_pair = {}
    for at, pair in enumerate(pairs):
        first = at - at % 2
        is_new = seeding.drawn(seed, 2, "rewording", new.name, pairs[first]) == at % 2
        by_pair[pair] = new if is_new else old
    return Rewording(new, by_pair, declared.ended)


def units_dealt(study: Study, rewording: Rewording) -> tuple[list[str], list[str]]:
    """Return the trial's units that people label: those under the old wording, and the new one."""
    old: list[str] = []
    new: list[str] = []
    for unit, pair in study.labelled_units():
        is_asked = (parse_unit_id(unit)[2] == "") == rewording.new.has_sides
        if pair in rewording.by_pair and is_asked:
            (new if rewording.by_pair[pair] == rewording.new else old).append(unit)
    return old, new


def _declared_before(study: Study) -> dict[str, Any]:
    """Return the trial that was declared last, as it was noted; empty where there was none."""
    query = sa.select(lead_events.c.reason).where(lead_events.c.kind == "rewording")
    last = study.store.values(query.order_by(lead_events.c.event_id.desc()).limit(1))
    return json.loads(last[0]) if last else {}


def declare_rewording(study: Study, new: Rubric, text: str, pairs: int, done_by: str = "") -> int:
    """Declare a trial of another wording on `pairs` pairs that nobody was given yet, and return by
    how many pairs the sample grew for it; `text` is that of the rubric's file.

    Raises InputError, with nothing written, where the wording fits no rubric that people label, a
    trial is declared already, or too few pairs are left.
    """
    old = next((each for each in study.labelled_rubrics() if each.name == new.variant_of), None)
    if old is None:
        known = ", ".join(each.name for each in study.labelled_rubrics())
        raise InputError(written("rewording.no_variant", rubric=new.name, known=known))
    if study.config.rewording or new.name in study.config.annotation.rubrics:
        raise InputError(written("rewording.one_at_a_time"))
    if new.name in study.rubrics and study.rubrics[new.name].hash != new.hash:
        raise InputError(written("rewording.name_taken", rubric=new.name))
    check_wordings({**study.rubrics, new.name: new})
    if not new.kind.is_single:
        raise InputError(written("rewording.several", rubric=new.name))
    if new.hash == old.hash or new.variables != old.variables:
        raise InputError(written("rewording.same_texts", rubric=new.name, old=old.name))
    settings = study.config.annotation
    for code in {settings.language, *settings.languages} & set(old.versions):
        said = new.versions.get(code)
        if said is None or said.hash == old.versions[code].hash:
            raise InputError(written("rewording.untranslated", rubric=new.name, code=code))
        if said.title != old.versions[code].title:
            raise InputError(written("rewording.titled", rubric=new.name, code=code))
    if new.title != old.title:
        raise InputError(written("rewording.titled", rubric=new.name, code="en"))
    sample = study.store.sample()
    after = _given_out(study, sample)
    more, left = after + pairs - len(sample), len(study.store.pairs()) - len(sample)
    if more > left:
        room = len(sample) - after + left
        raise InputError(written("rewording.too_few", pairs=pairs, room=room))

    # The trial first: no rater is given a pair of it under a wording that it is not dealt to.
    atomic_write(study.folder / RUBRICS_FOLDER / f"{new.name}.toml", text.encode())
    trial = {"rubric": new.name, "after": after, "pairs": pairs}
    change_config(study.folder, {"rewording": trial})
    note_act(study.store, "rewording", new.name, json.dumps(trial), done_by)
    return extend_sample(study, more) - len(sample) if more > 0 else 0


def _given_out(study: Study, sample: list[str]) -> int:
    """Return how many pairs of the sample come up to the last one that anybody was given."""
    with study.store.read() as connection:
        given = {
            parse_unit_id(unit)[0]
            for table in (claims, labels)
            for (unit,) in connection.execute(sa.select(table.c.unit_id).distinct())
            if "|" in unit  # no check of attention
        }
    return max((at for at, pair in enumerate(sample, start=1) if pair in given), default=0)
