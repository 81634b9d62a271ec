"""What a ratings file's labels mean: declared by whoever asks, by a known rubric, or as seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Scale
    from evenhand.analysis.labels.scale import Level
    from evenhand.rubrics import Rubric


@dataclass(frozen=True)
class ScaleOptions:
    """What was declared of the labels in a ratings file; all of it may be left out.

    `rubric` is the only one asked for: a name in the file, a shipped rubric, or a rubric's file.
    `categories` are all permitted labels in order, `affirmative` those that count as yes, `sides`
    the one that favours side a and the one that favours side b; `thresholds` are by grader.
    Messages name these as options of the command line, or as they are called `in_python`.
    """

    rubric: str | None = None
    level: Level | None = None
    categories: tuple[str, ...] = ()
    affirmative: tuple[str, ...] | None = None
    sides: tuple[str, ...] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    in_python: bool = False

    def spelled(self, name: str, *keys: str) -> str:
        """How whoever declares the scale writes one of these.

        >>> ScaleOptions().spelled("categories", "1", "2")
        '--categories 1,2'
        >>> ScaleOptions(in_python=True).spelled("categories", "1", "2")
        "categories=['1', '2']"
        """
        if self.in_python:
            return f"{name}={list(keys) or ''}"
        return f"--{name} {','.join(keys)}".rstrip()


def with_units(beside: pd.DataFrame, units: pd.DataFrame, source: str) -> pd.DataFrame:
    """A table of units, which messages call `source`, plus what the ratings say of their units."""
    from evenhand.study.tables.formats import row_number
    from evenhand.study.tables.ratings import with_unit_id

    units = with_unit_id(units)
    if "unit_id" not in units:
        raise InputError(f"{source}: the column 'unit_id' is missing")
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{source}, row {row_number(units, at)}: unit {units['unit_id'].iloc[at]!r} has more "
            "than one row; keep one for each unit"
        )
    unknown = ~beside["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = beside.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{source} has no row for unit {unit!r}, which was rated; add it")
    own = [column for column in beside if column == "unit_id" or column not in units]
    return units.merge(beside[own], on="unit_id", how="left").fillna("")


def declared_scales(
    options: ScaleOptions, ratings: pd.DataFrame, known: Mapping[str, Scale] | None = None
) -> tuple[pd.DataFrame, dict[str, Scale], list[str]]:
    """The rows asked for, their scales, and what was assumed.

    `known` are the scales that stand beside the ratings, by rubric; what is declared wins.
    """
    from_file = (options.rubric or "").endswith(".toml")
    known = {} if known is None or from_file else known
    if options.rubric is not None:
        ratings = _rows_of(ratings, options, known)
        wanted = set(ratings["rubric"])
        known = {name: scale for name, scale in known.items() if name in wanted}
    elif len(known) == 1 and (ratings["rubric"] == "").all():
        ratings = ratings.assign(rubric=next(iter(known)))
    seen = {str(name): set(own) - {""} for name, own in ratings.groupby("rubric")["label"]}
    scales = {}
    remarks = []
    for name in sorted({*seen, *known}):
        scales[name], remark = _scale(options, name, seen.get(name, set()), known.get(name))
        remarks += [remark] if remark else []
    return ratings, scales, remarks


def _known_rubric(name: str) -> Rubric | None:
    """A shipped rubric, or one from a file; None where the name is neither."""
    from evenhand.rubrics import load_rubric, shipped_rubrics

    if name.replace("_", "-") in shipped_rubrics() or name.endswith(".toml"):
        return load_rubric(name)
    return None


def _rows_of(
    ratings: pd.DataFrame, options: ScaleOptions, known: Mapping[str, Scale]
) -> pd.DataFrame:
    """The rows of one rubric and of its known wordings; a file without rubrics is all of the one
    that is named.
    """
    from evenhand.rubrics import load_rubric

    wanted = str(options.rubric)
    rubric = _known_rubric(wanted)
    name = wanted if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not options.categories and name not in known:
            load_rubric(wanted)  # says that there is no such rubric, and which there are
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    family = {name, *(each.name for each in known.values() if each.variant_of == name)}
    if not (names == name).any():
        listed = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {listed}")
    return ratings[names.isin(family)]


def _scale(
    options: ScaleOptions, name: str, labels: Collection[str], known: Scale | None
) -> tuple[Scale, str]:
    """The scale as declared, else the known one, else by the rubric, else the labels seen; and what
    was assumed.
    """
    from evenhand.analysis import Scale

    rubric = _known_rubric(options.rubric or name)
    remark = ""
    if known is not None and not options.categories:
        scale = known
    elif rubric is not None and not options.categories:
        scale = replace(Scale.from_rubric(rubric), name=name)
    elif options.categories:
        scale = Scale(name, options.categories)
    elif options.level in ("ordinal", "interval"):
        raise InputError(
            f"an {options.level} scale must be declared, not read off the labels: give all "
            f"permitted labels in order, for example {options.spelled('categories', *'12345')}"
        )
    elif not labels:
        raise InputError(
            "no rating has a label; give labels, or declare a scale with "
            f"{options.spelled('categories')}"
        )
    else:
        scale = Scale(name, tuple(sorted(labels)))
        what = f"rubric {name!r}" if name else "the labels"
        remark = f"{what}: taken as nominal with the labels seen ({', '.join(scale.categories)}); "
        remark += f"declare a scale with {options.spelled('level')} and "
        remark += options.spelled("categories")
    if options.level:
        scale = replace(scale, level=options.level)
    if options.sides is not None:
        scale = replace(scale, favours=_favours(options, options.sides))
    if options.affirmative is not None:
        scale = replace(scale, affirmative=frozenset(options.affirmative))
    return _with_thresholds(scale, options.thresholds), remark


def _with_thresholds(scale: Scale, declared: Mapping[str, float]) -> Scale:
    """The scale with other thresholds for some graders; what is declared was not tuned."""
    tunings = {grader: each for grader, each in scale.tunings.items() if grader not in declared}
    return replace(scale, thresholds={**scale.thresholds, **declared}, tunings=tunings)


def _favours(options: ScaleOptions, sides: tuple[str, ...]) -> dict[str, str]:
    if len(set(sides)) != 2:
        raise InputError(
            f"{options.spelled('sides')} is {','.join(sides)!r}; name two labels, the one that "
            "favours side a, then side b"
        )
    return dict(zip(sides, ("a", "b"), strict=True))
