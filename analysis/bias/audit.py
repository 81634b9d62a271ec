"""The audit of one rubric, question by question: order, side, family, length, parts of the sample,
groups of humans.

A grader may favour a side of the pair more than humans do; shown the pair in the other order, it
may change its verdict or favour what it is shown first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.analysis.agreement.pairs import KappaMeans, deciding_kappa
from evenhand.analysis.bias.findings import FEW_CLUSTERS, AuditRows
from evenhand.analysis.bias.shift import (
    BesidePeople,
    Calls,
    Shift,
    Shifts,
    directed_calls,
    verdict_calls,
)
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import sign_flip
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, favour_signs
from evenhand.analysis.labels.units import MAX_VALUES, UnitColumn, UnitFacts
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.results import from_to
from evenhand.analysis.subjects.preference import is_comparison
from evenhand.analysis.types import Array, DataFrame, Mask
from evenhand.analysis.writer import RatedView, Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, BiasSettings
from evenhand.texts import table_of

FAMILIES: dict[str, list[str]] = table_of("evenhand.analysis.bias", "families.toml")
"""Parts of a model's name by which its family is known."""
SHOWN_BY = ("partisan",)
"""Units columns by whose values directions are shown separately."""
LENGTH_COLUMNS = ("response_words",)
PAIR_LENGTH_COLUMNS = ("response_a_words", "response_b_words")


def add_bias_rows(view: RatedView, retuned: Mapping[str, LabelMatrix] | None = None) -> None:
    """Add rows on whom raters favour and on how graders' calls shift with irrelevant properties.

    `retuned` are the labels with other verdicts of a grader, by thresholds tuned on other clusters:
    all questions that rest on verdicts are asked of these too, in rows NAME_held_out.
    """
    labels, directed = view.labels, directed_calls(view.labels)
    audit = AuditRows(view.rows, lambda: view.resamples)
    if is_comparison(labels, view.facts):  # which answer a file calls the first means nothing
        add_people_order_rows(view)
    elif directed is not None:
        add_direction_rows(view, directed)
        add_side_rows(audit, directed, view)
    add_order_rows(audit, view)
    _add_shifts(audit, verdict_calls(labels), directed, view)
    add_rater_group_rows(audit, labels.on_categories(), view.request.people)
    audit.add_tests()
    for grader, other in (retuned or {}).items():
        again = audit.retuned(grader)
        verdicts, directed = (
            calls and calls.without_graders_but(grader)
            for calls in (verdict_calls(other), directed_calls(other))
        )
        if labels.scale.favours:
            directed = None
        elif directed is not None:
            add_side_rows(again, directed, view)
        _add_shifts(again, verdicts, directed, view)
        again.add_tests()


def _add_shifts(
    audit: AuditRows, verdicts: Calls | None, directed: Calls | None, view: RatedView
) -> None:
    for calls, length in lengths(verdicts, directed, view.facts):
        add_shift_rows(audit, calls, [length])
    if verdicts is not None:
        add_family_rows(audit, verdicts, view.request.settings.families)
        for column in view.labels.columns(view.request.screened):
            add_shift_rows(audit, verdicts, slices_of(verdicts, column))


@dataclass(frozen=True)
class Property:
    """A property that calls should not depend on: `x` (units,), NaN where not known.

    `statistic`, `subset`, `at` and `note` are those of the row of each grader's shift with it, and
    `inside` (units,) the units that it is about, if not all. `noisy` is that of `Shifts`.
    """

    statistic: str
    x: Array
    subset: str
    at: str = ""
    note: str = ""
    inside: Mask | None = None
    noisy: bool = False


def add_shift_rows(
    audit: AuditRows,
    calls: Calls,
    properties: Sequence[Property],
    graders: Sequence[int] | None = None,
) -> None:
    """Add the shift of every grader's calls, or of these `graders`, with every property: beyond
    what humans' score of the same units explains (see `analysis.bias.shift`).
    """
    shifts = [Shifts(calls, each.x, audit.resamples, noisy=each.noisy) for each in properties]
    by_people = ~np.isnan(calls.people).all(axis=1)
    for grader in calls.graders if graders is None else graders:
        for each, of_graders in zip(properties, shifts, strict=True):
            shift = of_graders.of(grader)
            if shift is not None and each.inside is not None:
                units = each.inside & by_people & ~np.isnan(calls.values[:, grader])
                counts = audit.resamples.count(calls.clusters, units)
                shift = replace(shift, counts=counts) if units.any() else None
            if shift is not None:
                add = partial(audit.add, subset=each.subset, at=each.at, note=each.note)
                add(each.statistic, calls.raters[grader], shift)


def family_of(rater: str, families: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the family of a grader or subject by its model's name, "" where none is known.

    Only the model's name counts, not the provider before the colon: many servers speak another's
    protocol. The part that comes first decides, an own entry of `families` before all others.

    >>> family_of("anthropic:claude-opus-5"), family_of("openai:llama-3@http://gpt.example/v1")
    ('anthropic', 'meta')
    >>> family_of("deepseek-r1-distill-llama-8b"), family_of("baseline:lexical")
    ('deepseek', '')
    >>> family_of("our-tune-7b", {"anthropic": ["our-tune"]})
    'anthropic'
    """
    name = rater.partition("@")[0].rpartition(":")[2].casefold()
    for known in (families or {}, FAMILIES):
        found = [
            (place.start(), family)
            for family, parts in known.items()
            for part in parts
            if (place := re.search(rf"(?<![a-z0-9]){re.escape(part.casefold())}", name))
        ]
        if found:
            return min(found)[1]
    return ""


def add_family_rows(audit: AuditRows, calls: Calls, families: Mapping[str, Sequence[str]]) -> None:
    """Add `bias_self_preference` of graders whose family is among the subjects, with others.

    It is the affirmative calls on subjects of its own family minus those on the others. `at` is the
    family.
    """
    of_subject = [family_of(subject, families) for subject in calls.subjects]
    of_unit = np.array([*of_subject, ""])[calls.subject]
    for grader in calls.graders:
        family = family_of(calls.raters[grader], families)
        if family and family in of_subject and set(of_subject) != {family}:
            own = np.where(calls.subject >= 0, of_unit == family, np.nan)
            is_own = Property("bias_self_preference", own, calls.subset, family)
            add_shift_rows(audit, calls, [is_own], [grader])


def lengths(
    verdicts: Calls | None, directed: Calls | None, facts: UnitFacts
) -> Iterator[tuple[Calls, Property]]:
    """Yield the lengths of texts, of which `bias_length` is the rise of calls with every doubling.

    Verdicts are read twice, since labels of longer texts may be noisier for all raters. Which side
    of a pair is favoured does not depend on that: noise is the same for both.

    For responses it relates the verdict to the length (column `response_words`) and to that of each
    text shown beside it (`context_words` beside `context`); for pairs, the side favoured to how
    much longer side a is than b (`response_a_words`, `response_b_words`).
    """
    beside = [
        (verdicts, (f"{name}_words",), f"per doubling of the {name}")
        for name in facts.texts()
        if f"{name}_words" not in (*LENGTH_COLUMNS, *PAIR_LENGTH_COLUMNS)
    ]
    for calls, columns, unit in (
        (verdicts, LENGTH_COLUMNS, "per doubling of the response"),
        *beside,
        (directed, PAIR_LENGTH_COLUMNS, "towards a side, per doubling of its length"),
    ):
        words = [facts.numbers(name) for name in columns]
        logs = [np.log2(np.where(each > 0, each, np.nan)) for each in words]
        doublings = logs[0] - logs[1] if len(logs) > 1 else logs[0]
        if calls is not None and not np.isnan(doublings).all():
            x, noisy = doublings[calls.unit], calls is verdicts
            yield calls, Property("bias_length", x, calls.subset, columns[0], unit, noisy=noisy)


def slices_of(calls: Calls, column: UnitColumn) -> list[Property]:
    """Return whether units are in each slice by a column; none where all are in one.

    `bias_slice` is the affirmative calls in the slice minus those in the rest. Agreement with
    humans in the slice is another question: `slice_difference`.
    """
    codes, values = column.codes[calls.unit], column.values
    return [
        Property(
            "bias_slice",
            np.where(codes >= 0, codes == code, np.nan),
            calls.part(f"{column.name}={value}"),
            inside=codes == code,
        )
        for code, value in enumerate(values if len(values) > 1 else ())
    ]


def add_rater_group_rows(
    audit: AuditRows, coded: Coded, members: Mapping[str, frozenset[str]]
) -> None:
    """Add `bias_rater_group`: the grader's mean kappa with one group minus that with the others.

    Both are over humans of the same column, on units that humans of both groups labelled.

    `members` holds the humans of every `column=value`. Of two groups only the first by name has a
    row, since the second is its mirror image; `at` is the other group, or "others".
    """
    if not members:
        return
    columns: dict[str, dict[str, list[int]]] = {}
    for name, raters in members.items():
        column, _, value = name.partition("=")
        own = [at for at in coded.members("human") if coded.raters[at] in raters]
        if own:
            columns.setdefault(column, {})[value] = own
    kappa = deciding_kappa(coded)
    kappas = KappaMeans(coded, audit.resamples, [kappa])
    compared = [
        (f"{column}={value}", others[0] if len(others) == 1 else "others", own,
         [rater for other in others for rater in groups[other]])
        for column, groups in columns.items()
        for value, own in sorted(groups.items())[: 1 if len(groups) == 2 else None]
        if (others := [each for each in groups if each != value])
    ]  # fmt: skip
    for subset, against, own, rest in compared:
        by_both = coded.labelled_by_any(own) & coded.labelled_by_any(rest)
        for grader in coded.members("model"):
            within = by_both & coded.labelled[:, grader]
            if not within.any():
                continue
            first, second = (
                kappas.with_rater(group, grader, within)[kappa].values for group in (own, rest)
            )
            counts = audit.resamples.count(coded.clusters, within)
            shift = Shift(first - second, counts, f"{len(own)} against {len(rest)} people")
            audit.add("bias_rater_group", coded.raters[grader], shift, subset=subset, at=against)


@dataclass(frozen=True)
class _Part:
    """Some of the units and the direction in which they are read.

    `at` names the two sides, as in a row's key; `sign` (units,) is 1 where side a counts as the
    first of these, -1 where side b does, 0 where the unit takes no part.
    """

    subset: str
    at: str
    sign: Array


def add_direction_rows(view: RatedView, calls: Calls) -> None:
    """Add `direction_net` of humans together and of every grader.

    It is the share of units that favour the first side minus those that favour the second. On
    everything, by the columns `SHOWN_BY`, by subject and by group; each rater on all that it
    called.
    """
    people, sides = calls.people, []
    count = (~np.isnan(people)).sum(axis=1).astype(float)
    for side in (1.0, -1.0):  # how far the mean human and every grader favour side a, and side b
        mean = ratio(np.maximum(np.nan_to_num(people) * side, 0.0).sum(axis=1), count)
        own = np.maximum(calls.values[:, list(calls.graders)] * side, 0.0)
        sides.append(np.column_stack([mean, own]))
    parts = _parts(calls, view, by_subject=True)
    for part in (*parts, *_groups(calls, view.facts, view.resamples)):
        _add_directions(view, calls, (sides[0], sides[1]), part)


def add_side_rows(audit: AuditRows, calls: Calls, view: RatedView) -> None:
    """Add `bias_side` of every grader: its net direction minus that of humans, scaled (see
    `analysis.bias.shift`).
    """
    for part in _parts(calls, view):
        seen = calls.oriented(part.sign)
        for grader in calls.graders:
            beside = BesidePeople(seen, grader, audit.resamples)
            if beside.shared.any():
                level = Shift(beside.level(), beside.counts(), beside.note, beside.reason)
                who = calls.raters[grader]
                audit.add("bias_side", who, level, subset=part.subset, at=part.at)


def _add_directions(view: RatedView, calls: Calls, sides: tuple[Array, Array], part: _Part) -> None:
    """Add the row of every rater that called a unit of this part. `sides` are how far the mean
    human and every grader favour side a and side b, (units, 1 + graders), NaN for no call.
    """
    forward = part.sign[:, None] > 0
    used = part.sign != 0
    toward = np.where(forward, *sides)[used]
    away = np.where(forward, *sides[::-1])[used]
    held = ~np.isnan(toward)
    if not held.any():
        return
    kept, clusters = np.unique(calls.clusters[used], return_inverse=True)
    drawn = view.resamples
    if len(kept) < drawn.n_types:
        drawn = drawn.only(kept)  # a group costs its own clusters' time
    out = Writer(view.rows, lambda: drawn, clusters, part.subset)
    sums = out.sums(np.nan_to_num(toward), np.nan_to_num(away), held)
    to, off, n = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
    net = ratio(to - off, n)
    for column, rater in enumerate(["humans", *(calls.raters[g] for g in calls.graders)]):
        units = out.count(held[:, column])
        if units[0]:
            few = f"fewer than {FEW_CLUSTERS} clusters" if units[1] < FEW_CLUSTERS else ""
            out.add("direction_net", net[:, column], units, a=rater, at=part.at, note=few)


def orientation(facts: UnitFacts, settings: BiasSettings) -> Array:
    """Orientation of each unit (units,): 1 where side a is the first of `settings.sides`.

    It is -1 where side b is, 0 where it is not known. Raises InputError where leanings are set and
    no unit of the whole table has one.
    """
    if not settings.leanings:
        return np.ones(len(facts.ids))
    table = facts.table
    if table is None or not {*GROUP_COLUMNS} <= {*table.columns}:
        raise InputError(
            f"leanings need the units columns {' and '.join(GROUP_COLUMNS)}; add them or take the "
            "leanings out"
        )
    of_a, of_b = (table[name].map(settings.sign_of) for name in GROUP_COLUMNS)
    told = of_a.where(of_a == -of_b, 0)
    if not told.any():
        raise InputError(
            "no unit has a group of each leaning on its two sides; the leanings must name values "
            f"of {' and '.join(GROUP_COLUMNS)}"
        )
    return np.asarray(told.loc[facts.ids], dtype=float)


def _parts(calls: Calls, view: RatedView, *, by_subject: bool = False) -> Iterator[_Part]:
    """Yield the whole sample, and the values of the columns that directions are shown by."""
    facts, settings = view.facts, view.request.settings
    sign = orientation(facts, settings)[calls.unit]
    sides = from_to(*settings.sides)
    yield _Part(calls.subset, sides, sign)
    columns = [
        replace(column, codes=column.codes[calls.unit])
        for column in map(facts.column, SHOWN_BY)
        if 1 < len(column.values) <= MAX_VALUES
    ]
    if by_subject and len(calls.subjects) <= MAX_VALUES:
        columns.append(UnitColumn("subject", calls.subjects, calls.subject))
    for name, chosen in (part for column in columns for part in column.parts()):
        yield _Part(calls.part(name), sides, np.where(chosen, sign, 0.0))


def _groups(calls: Calls, facts: UnitFacts, resamples: Resamples) -> Iterator[_Part]:
    """Yield each group with enough clusters, on either side, against the groups it is paired with.

    Of two groups that are only paired with each other, the first by name is enough.
    """
    a, b = (np.array(facts.cells(name), dtype=object) for name in GROUP_COLUMNS)
    if not a.any() or not b.any():
        return
    a, b = a[calls.unit], b[calls.unit]
    done: set[tuple[str, ...]] = set()
    for group in sorted({*a, *b} - {""}):
        sign = np.where(a == b, 0.0, 1.0 * (a == group) - 1.0 * (b == group))
        others = tuple(sorted({*b[sign > 0], *a[sign < 0]}))
        enough = resamples.count(calls.clusters, sign != 0)[1] >= FEW_CLUSTERS
        mirrored = len(others) == 1 and (others[0], group) in done
        if not enough or mirrored:
            continue
        done.add((group, *others))
        yield _Part(calls.part(f"group={group}"), from_to(group, ", ".join(others)), sign)


_ORDERS = ("ab", "ba")


def orders_seen(ratings: DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the orders in which each grader read pairs; graders without known orders are left out.

    `ratings` is a validated table of one rubric.
    """
    seen = _by_order(ratings).groupby("rater_id", sort=True)["order"].unique()
    return {str(grader): tuple(sorted(orders)) for grader, orders in seen.items()}


def _by_order(ratings: DataFrame) -> DataFrame:
    return ratings[ratings["rater_kind"].eq("model") & ratings["order"].isin(_ORDERS)]


def by_orders(seen: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Group graders by "both_orders" and "one_order".

    >>> by_orders({"a": ("ab",), "b": ("ab", "ba"), "c": ("ab",)})
    {'one_order': ['a', 'c'], 'both_orders': ['b']}
    """
    found: dict[str, list[str]] = {}
    for grader, orders in seen.items():
        found.setdefault("both_orders" if len(orders) > 1 else "one_order", []).append(grader)
    return found


def add_order_rows(audit: AuditRows, view: RatedView) -> None:
    """Add `bias_order_flips` of every grader that read both orders.

    Where options favour a side, `bias_order_first` and `bias_order` are added too.

    Labels stay in the pair's own orientation, and a grader's draws within an order are combined.
    Flips are units labelled differently in the two orders. Of those that move from one side to
    another, or to neither, `bias_order_first` is the share that move to the side shown first;
    `bias_order` is the net gain of a side from being shown first, per unit. Its p is exact, by
    flipping the signs of the clusters' moves.
    """
    request, scale, ordered = view.request, view.labels.scale, _by_order(view.ratings)
    for grader, orders in orders_seen(view.ratings).items():
        if len(orders) < len(_ORDERS):
            continue
        own = ordered[ordered["rater_id"] == grader]
        readings = combine_readings(own.assign(rater_id=own["order"], order=""), scale)
        matrix = encode(readings, scale, request.units, request.settings.cluster)
        both = np.asarray((matrix.codes >= 0).all(axis=1))
        if both.any():
            once = np.ones(matrix.n_clusters, dtype=np.int64)
            _add_grader(audit, grader, matrix, both, request.resampled(once, matrix.weight))


def add_people_order_rows(view: RatedView) -> None:
    """Add `order_gain` of the humans together: what being shown first gains a side.

    It is half the difference between how far labels given in order ab favour side a and how far
    those given in order ba do, as `bias_order` would be if one human read both. Each human sees a
    unit once, so that the labels in the two orders are of different humans or units.
    """
    labels, ratings = view.labels, view.ratings
    own = ratings[
        ratings["rater_kind"].eq("human") & ratings["draw"].eq(0) & ratings["label"].ne("")
    ]
    own = own[own["order"].isin(_ORDERS)]
    if own["order"].nunique() < len(_ORDERS):
        return
    signs = favour_signs(labels.scale.categories, labels.scale.favours)
    code = {category: at for at, category in enumerate(labels.scale.categories)}
    sign = signs[own["label"].map(code).to_numpy(dtype=np.intp)]
    place = {unit: at for at, unit in enumerate(view.facts.ids)}
    unit = own["unit_id"].map(place).to_numpy(dtype=np.intp)
    features = []
    for order in _ORDERS:
        shown = own["order"].eq(order).to_numpy()
        for each in (sign, np.ones(len(sign))):
            features.append(np.bincount(unit[shown], each[shown], minlength=len(place)))
    ab, n_ab, ba, n_ba = view.sums(*features).T
    gain = (ratio(ab, n_ab) - ratio(ba, n_ba)) / 2.0
    note = f"{int(features[1].sum())} labels in order ab, {int(features[3].sum())} in order ba"
    view.add("order_gain", gain, features[1] + features[3] > 0, a="humans", note=note)


def _add_grader(
    audit: AuditRows, grader: str, matrix: LabelMatrix, both: Mask, drawn: Resamples
) -> None:
    codes, clusters = matrix.codes[both], matrix.clusters[both]
    counts = drawn.count(matrix.clusters, both)
    flipped = codes[:, 0] != codes[:, 1]
    signs = favour_signs(matrix.scale.categories, matrix.scale.favours)
    # With order ab side a comes first: a positive move is one to the side shown first.
    move = signs[codes[:, 0]] - signs[codes[:, 1]]
    features = np.ones(len(codes)), flipped, move / 2.0, move > 0, move != 0
    n, flips, net, first, moves = drawn.sums(clusters, *features).T
    add = partial(audit.add, grader=grader, subset="all", alone=True, drawn=drawn)
    add("bias_order_flips", shift=Shift(ratio(flips, n), counts, f"{flipped.sum()} flips"))
    if not matrix.scale.favours:
        return
    to_first, to_second = int((move > 0).sum()), int((move < 0).sum())
    weighted = drawn.weight is not None  # the exact p is for equally weighted pairs
    found = sign_flip(np.bincount(clusters, weights=np.sign(move)))
    note = join_notes(
        f"{to_first} to the side shown first, {to_second} to the second",
        f"exact p {found.exact:.4g}, mid-p {found.mid_p:.4g}",
        Remark("as_sampled") if weighted else "",
    )
    add("bias_order_first", shift=Shift(ratio(first, moves), counts, note))
    gain = Shift(ratio(net, n), counts, note)
    add("bias_order", shift=gain, exact_p=None if weighted else found.exact)
