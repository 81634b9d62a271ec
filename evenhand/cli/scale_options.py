"""The scale options that `check` and its kin share: what a ratings file's labels mean."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Scale
    from evenhand.rubrics import Rubric

__all__ = ["add_scale_options", "declared_scales", "keys_in", "with_units"]


def add_scale_options(parser: argparse.ArgumentParser) -> None:
    """`--rubric`, `--units`, `--level`, `--categories`, `--affirmative`."""
    parser.add_argument("--rubric", metavar="NAME|FILE", help="only this rubric, on its scale")
    parser.add_argument("--units", type=Path, metavar="FILE", help="columns of the units")
    parser.add_argument("--level", choices=["nominal", "ordinal", "interval"])
    parser.add_argument("--categories", metavar="KEY,...", help="all permitted labels, in order")
    parser.add_argument("--affirmative", metavar="KEY,...", help="labels that count as yes")


def with_units(beside: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The units file, plus what the ratings file itself says of its units."""
    from evenhand.errors import InputError
    from evenhand.study.tables.ratings import read_table, row_number

    units = read_table(path)
    if "unit_id" not in units:
        units = units.rename(columns={"item_id": "unit_id"})
    if "unit_id" not in units:
        raise InputError(f"{path.name}: the column 'unit_id' is missing")
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{path.name}, row {row_number(units, at)}: unit {units['unit_id'].iloc[at]!r} stands "
            "further up already; keep one row for each unit"
        )
    unknown = ~beside["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = beside.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{path.name} has no row for unit {unit!r}, which was rated; add it")
    own = [column for column in beside if column == "unit_id" or column not in units]
    return units.merge(beside[own], on="unit_id", how="left").fillna("")


def declared_scales(
    arguments: argparse.Namespace, ratings: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Scale], list[str]]:
    """The rows asked for, their scales, and what was assumed."""
    if arguments.rubric is not None:
        ratings = _rows_of(ratings, arguments.rubric, declared=bool(arguments.categories))
    scales = {}
    remarks = []
    for name, labels in ratings.groupby("rubric", sort=True)["label"]:
        scale, remark = _scale(arguments, str(name), set(labels) - {""})
        scales[str(name)] = scale
        remarks += [remark] if remark else []
    return ratings, scales, remarks


def _known_rubric(name: str) -> Rubric | None:
    """A shipped rubric, or one from a file; None where the name is neither."""
    from evenhand.rubrics import load_rubric, shipped_rubrics

    if name.replace("_", "-") in shipped_rubrics() or name.endswith(".toml"):
        return load_rubric(name)
    return None


def _rows_of(ratings: pd.DataFrame, wanted: str, *, declared: bool) -> pd.DataFrame:
    """The rows of one rubric; a file without rubrics is all of the one that is named."""
    from evenhand.errors import InputError
    from evenhand.rubrics import load_rubric

    rubric = _known_rubric(wanted)
    name = wanted if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not declared:
            load_rubric(wanted)  # says that there is no such rubric, and which there are
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    found = ratings[names == name]
    if found.empty:
        listed = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {listed}")
    return found


def _scale(arguments: argparse.Namespace, name: str, labels: Collection[str]) -> tuple[Scale, str]:
    """The scale as declared on the command line, else by the rubric, else the labels seen."""
    from dataclasses import replace

    from evenhand.analysis import Scale
    from evenhand.errors import InputError

    rubric = _known_rubric(arguments.rubric or name)
    categories = tuple(keys_in(arguments.categories))
    remark = ""
    if rubric is not None and not categories:
        scale = replace(Scale.from_rubric(rubric), name=name)
    elif categories:
        scale = Scale(name, categories)
    elif arguments.level in ("ordinal", "interval"):
        raise InputError(
            f"an {arguments.level} scale must be declared, not read off the labels: give all "
            "permitted labels in order, for example --categories 1,2,3,4,5"
        )
    elif not labels:
        raise InputError("no rating has a label; give labels, or declare a scale with --categories")
    else:
        scale = Scale(name, tuple(sorted(labels)))
        what = f"rubric {name!r}" if name else "the labels"
        remark = f"{what}: taken as nominal with the labels seen ({', '.join(scale.categories)}); "
        remark += "declare a scale with --level and --categories"
    if arguments.level:
        scale = replace(scale, level=arguments.level)
    if arguments.sides is not None:
        scale = replace(scale, favours=_sides(arguments.sides))
    if arguments.affirmative is not None:
        scale = replace(scale, affirmative=frozenset(keys_in(arguments.affirmative)))
    return scale, remark


def _sides(text: str) -> dict[str, str]:
    from evenhand.errors import InputError

    keys = keys_in(text)
    if len(set(keys)) != 2:
        raise InputError(
            f"--sides is {text!r}; name two labels, the one that favours side a, then side b"
        )
    return dict(zip(keys, ("a", "b"), strict=True))


def keys_in(text: str | None) -> list[str]:
    """What an option names, separated by commas."""
    return [key.strip() for key in (text or "").split(",") if key.strip()]
