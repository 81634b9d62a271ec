"""A trial of another wording of a rubric among people: which units are asked under which.

The trial's pairs come in twos, and the study's seed deals one of each two to the new wording. So a
unit has one wording for all of its raters, and every rater meets both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study import seeding
from evenhand.study.extension import extend_sample
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import claims, labels
from evenhand.study.tables.atomic import atomic_write
from evenhand.study.workspace import RUBRICS_FOLDER, Study, check_wordings
from evenhand.texts import written


@dataclass(frozen=True)
class Rewording:
    """The wordings by the trial's pairs: the `new` one, or the rubric of which it is another."""

    new: Rubric
    by_pair: Mapping[str, Rubric]

    def asked(self, rubric: Rubric, unit_id: str) -> Rubric:
        """Return the wording under which people are asked about a unit."""
        if rubric.name != self.new.variant_of:
            return rubric
        return self.by_pair.get(parse_unit_id(unit_id)[0], rubric)


def rewording_of(study: Study) -> Rewording | None:
    """Return the trial that study.toml declares; None where it declares none."""
    declared = study.config.rewording
    if declared is None:
        return None
    new = study.rubrics[declared.rubric]
    old, seed = study.rubrics[new.variant_of], study.config.seed
    pairs = study.store.sample()[declared.after :][: declared.pairs]
    by_pair = {}
    for at, pair in enumerate(pairs):
        first = at - at % 2
        is_new = seeding.drawn(seed, 2, "rewording", new.name, pairs[first]) == at % 2
        by_pair[pair] = new if is_new else old
    return Rewording(new, by_pair)


def declare_rewording(study: Study, new: Rubric, text: str, pairs: int) -> int:
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
    if new.hash == old.hash or new.variables != old.variables:
        raise InputError(written("rewording.same_texts", rubric=new.name, old=old.name))
    settings = study.config.annotation
    for code in {settings.language, *settings.languages} & set(old.versions):
        said = new.versions.get(code)
        if said is None or said.hash == old.versions[code].hash:
            raise InputError(written("rewording.untranslated", rubric=new.name, code=code))
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
