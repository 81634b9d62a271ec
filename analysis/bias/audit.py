"""The audit of one rubric, question by question: order, side, family, length, parts of the sample,
groups of humans; and its findings, in sentences that claim no more than the rows.

A grader may favour a side of the pair more than humans do; shown the pair in the other order, it
may change its verdict or favour what it is shown first. `expected` compares the grader with what is
expected at the same score by humans.

A shift is *found* where its corrected p lies below .05 and its interval leaves out 0. Where nothing
is found the sentence gives the largest bias possible, the outer end of the interval.
Where a shift may come from noise that changes with the property, the sentence names that instead.

The planned questions (side, order, length, family, groups of humans) are few: Holm's correction
covers those of one grader and rubric. Parts of the sample are a screening: Benjamini-Hochberg over
all of a rubric's. A row NAME of a question comes with another one, NAME_p.

Where raters' noise may change with the property, a shift is read in two ways. A bias must show in
both: the interval spans the two, p is the larger (intersection-union test: Berger 1982).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar

import numpy as np

from evenhand.analysis.agreement.pairs import KappaMeans, deciding_kappa
from evenhand.analysis.bias.expected import (
    CalledUnits,
    Calls,
    Shift,
    Shifts,
    directed_calls,
    side_shift,
    verdict_calls,
)
from evenhand.analysis.bootstrap import significance
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import (
    BINARY,
    BINARY_ALL,
    MAX_VALUES,
    Coded,
    LabelMatrix,
    UnitColumn,
    UnitFacts,
    favour_signs,
    sides_of,
)
from evenhand.analysis.results import ResultRow, ResultRows, TableRow, from_to, key_of, sample_of
from evenhand.analysis.statistics import Note, Remark, join_notes, reason_in_words, says
from evenhand.analysis.subjects.preference import is_comparison
from evenhand.analysis.types import Array, DataFrame, Mask
from evenhand.analysis.writer import RatedView, Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, BiasSettings
from evenhand.texts import table_of, written

PLANNED = ("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_rater_group")
SCREENED = ("bias_slice",)
FEW_CLUSTERS = 10
LEAST_KAPPA = 0.05
"""A group of humans who agree less says nothing of its reliability."""
LEVEL = 0.05
"""A shift is found where its corrected p lies below `LEVEL`."""
HELD_OUT = "_held_out"
"""Suffix of statistics on verdicts by thresholds tuned on other clusters."""


@dataclass(frozen=True)
class _Test:
    """A test to correct; a planned one is of a question on all of the grader's calls."""

    name: str
    grader: str
    key: dict[str, str]
    counts: tuple[int, int]
    p: float
    is_planned: bool


@dataclass
class AuditRows:
    """Adds rows and remembers their p values, so that all are corrected together at the end."""

    out: Writer
    suffix: str = ""
    _tests: list[_Test] = field(default_factory=list)
    called: dict[tuple[bytes | bool, ...], CalledUnits] = field(default_factory=dict)
    """What annotators said of the units that a grader called: the same in all its audits."""

    def add(
        self,
        statistic: str,
        grader: str,
        shift: Shift,
        *,
        subset: str,
        at: str = "",
        note: Note = "",
        alone: bool = False,
        exact_p: float | None = None,
        drawn: Resamples | None = None,
    ) -> None:
        """Add a row on a grader's calls against those of humans, or on its calls `alone`. `exact_p`
        replaces the p of the bootstrap, and `drawn` are resamples of other clusters.
        """
        counts, resamples = shift.counts, self.out.resamples if drawn is None else drawn
        a, b = (grader, "") if alone else ("humans", grader)
        few = f"fewer than {FEW_CLUSTERS} clusters" if counts[1] < FEW_CLUSTERS else ""
        readings = [shift.values] if shift.if_noisy is None else [shift.values, shift.if_noisy]
        interval, *noisy = [resamples.interval(v, counts[1], reason=shift.reason) for v in readings]
        if noisy:
            interval = _of_both(interval, noisy[0])
        key = {"rater_a": a, "rater_b": b, "subset": subset, "at": at}
        name, about = statistic + self.suffix, join_notes(few, note, shift.note)
        stored = self.out.rows.add(name, interval, counts, **key, note=about)
        if statistic in (*PLANNED, *SCREENED):
            p = max(map(significance.bootstrap_p, readings)) if exact_p is None else exact_p
            whole = subset in ("all", BINARY_ALL) or statistic == "bias_rater_group"
            if not np.isnan(p) and not np.isnan(stored.low):
                is_planned = whole and statistic in PLANNED
                self._tests.append(_Test(f"{name}_p", grader, key, counts, p, is_planned))

    def retuned(self, grader: str) -> AuditRows:
        """Return an audit of a grader's other verdicts, with the tests that do not rest on the
        grader's verdicts.
        """
        tests = [e for e in self._tests if e.grader == grader and e.key["subset"].endswith(BINARY)]
        kept = [test for test in self._tests if test not in tests]
        return AuditRows(self.out, HELD_OUT, kept, self.called)

    def add_tests(self) -> None:
        """Add the corrected p of every tested row that has none yet."""
        screened = [test for test in self._tests if not test.is_planned]
        how = f"Benjamini-Hochberg over {len(screened)} parts of the sample"
        corrected = [(screened, significance.benjamini_hochberg, how)]
        for grader in dict.fromkeys(test.grader for test in self._tests):
            planned = [t for t in self._tests if t.grader == grader and t.is_planned]
            how = f"Holm over this grader's questions, {len(planned)} in all"
            corrected.append((planned, significance.holm, how))
        for tests, correct, how in corrected:
            for test, p in zip(tests, correct([test.p for test in tests]), strict=True):
                if test.name.endswith(f"{HELD_OUT}_p") == (self.suffix == HELD_OUT):
                    note = join_notes(Remark("uncorrected_p", (test.p,)), how)
                    p_value = Interval.point(float(p))
                    self.out.rows.add(test.name, p_value, test.counts, **test.key, note=note)


def _of_both(first: Interval, if_noisy: Interval) -> Interval:
    """Return the first reading with an interval that spans both, if both have one, and a remark if
    only the first shows a bias.
    """
    low = float(np.minimum(first.low, if_noisy.low))
    high = float(np.maximum(first.high, if_noisy.high))
    remarks = first.remarks or if_noisy.remarks
    if (first.low > 0 or first.high < 0) and low <= 0 <= high:
        remarks = join_notes(remarks, Remark("noise_may_explain", (if_noisy.estimate,)))
    return replace(first, low=low, high=high, remarks=remarks)


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
    labels, directed, audit = view.labels, directed_calls(view.labels), AuditRows(view)
    # Of a comparison, which answer a file calls the first means nothing.
    if directed is not None and not is_comparison(labels, view.facts):
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
    """Shifts with lengths and, of verdicts, with families and slices: `bias_slice` is the
    affirmative calls in the slice minus those in the rest. Agreement with humans in the slice is
    another question: `slice_difference`.
    """
    for calls, length in lengths(verdicts, directed, view.facts):
        add_shift_rows(audit, calls, [length])
    if verdicts is not None:
        request = view.request
        add_family_rows(audit, verdicts, request.settings.families, request.facts.ids)
        for column in view.labels.columns(view.request.screened):
            codes, slices = column.codes[verdicts.unit], []
            for code, value in enumerate(column.values if len(column.values) > 1 else ()):
                x, part = np.where(codes >= 0, codes == code, np.nan), f"{column.name}={value}"
                inside = codes == code
                slices.append(Property("bias_slice", x, verdicts.part(part), inside=inside))
            add_shift_rows(audit, verdicts, slices)


@dataclass(frozen=True)
class Property:
    """A property that calls should not depend on: `x` (units,), NaN where not known. `statistic`,
    `subset`, `at` and `note` are those of the row of each grader's shift with it, and `inside`
    (units,) the units that it is about, if not all. `noisy` is that of `Shifts`.
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
    """Add the shift of every grader's calls, or of these `graders`, with every property, beyond
    what humans' score of the same units explains (see `analysis.bias.expected`).
    """
    drawn, called = audit.out.resamples, audit.called
    shifts = [Shifts(calls, prop.x, drawn, noisy=prop.noisy, called=called) for prop in properties]
    by_people = ~np.isnan(calls.people).all(axis=1)
    for grader in calls.graders if graders is None else graders:
        for trait, of_graders in zip(properties, shifts, strict=True):
            shift = of_graders.of(grader)
            if shift is not None and trait.inside is not None:
                units = trait.inside & by_people & ~np.isnan(calls.values[:, grader])
                counts = audit.out.resamples.count(calls.clusters, units)
                shift = replace(shift, counts=counts) if units.any() else None
            if shift is not None:
                add = partial(audit.add, subset=trait.subset, at=trait.at, note=trait.note)
                add(trait.statistic, calls.raters[grader], shift)


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
    for names in (families or {}, FAMILIES):
        places = [
            (place.start(), family)
            for family, parts in names.items()
            for part in parts
            if (place := re.search(rf"(?<![a-z0-9]){re.escape(part.casefold())}", name))
        ]
        if places:
            return min(places)[1]
    return ""


def add_family_rows(
    audit: AuditRows,
    calls: Calls,
    families: Mapping[str, Sequence[str]],
    ids: Mapping[str, str] | None = None,
) -> None:
    """Add `bias_self_preference` of graders whose family is among the subjects, with others. It is
    the affirmative calls on subjects of its own family minus those on the others. `at` is the
    family. A grader's family is known by its id, which `ids` has where it goes by another name.
    """
    of_subject = [family_of(subject, families) for subject in calls.subjects]
    of_unit = np.array([*of_subject, ""])[calls.subject]
    for grader in calls.graders:
        name = calls.raters[grader]
        family = family_of((ids or {}).get(name, name), families)
        if family and family in of_subject and set(of_subject) != {family}:
            is_family = np.where(calls.subject >= 0, of_unit == family, np.nan)
            is_own = Property("bias_self_preference", is_family, calls.subset, family)
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
    contexts = [
        (verdicts, (f"{name}_words",), f"per doubling of the {name}")
        for name in facts.texts()
        if f"{name}_words" not in (*LENGTH_COLUMNS, *PAIR_LENGTH_COLUMNS)
    ]
    for calls, columns, unit in (
        (verdicts, LENGTH_COLUMNS, "per doubling of the response"),
        *contexts,
        (directed, PAIR_LENGTH_COLUMNS, "towards a side, per doubling of its length"),
    ):
        words = [facts.numbers(name) for name in columns]
        logs = [np.log2(np.where(counts > 0, counts, np.nan)) for counts in words]
        doublings = logs[0] - logs[1] if len(logs) > 1 else logs[0]
        if calls is not None and not np.isnan(doublings).all():
            x, noisy = doublings[calls.unit], calls is verdicts
            yield calls, Property("bias_length", x, calls.subset, columns[0], unit, noisy=noisy)


def add_rater_group_rows(
    audit: AuditRows, coded: Coded, members: Mapping[str, frozenset[str]]
) -> None:
    """Add `bias_rater_group`: the grader's mean kappa with one group minus that with the others.

    Both are over humans of the same column, on units that humans of both groups labelled. A group
    whose labels are noisier has a lower kappa with everybody, so that a second reading takes both
    groups for as reliable as one another.

    `members` holds the humans of every `column=value`. Of two groups only the first by name has a
    row, since the second is its mirror image; `at` is the other group, or "others".
    """
    kappa, resamples = deciding_kappa(coded), audit.out.resamples
    kappas, columns = KappaMeans(coded, resamples, [kappa]), sides_of(members, coded, at_least=1)
    compared = [
        (f"{column}={value}", others[0] if len(others) == 1 else "others", with_own_group,
         [rater for other in others for rater in groups[other]])
        for column, groups in columns.items()
        for value, with_own_group in sorted(groups.items())[: 1 if len(groups) == 2 else None]
        if (others := [grouping for grouping in groups if grouping != value])
    ]  # fmt: skip
    for subset, against, with_own_group, rest in compared:
        by_both = coded.labelled_by_any(with_own_group) & coded.labelled_by_any(rest)
        for grader in coded.members("model"):
            units = by_both & coded.labelled[:, grader]
            if units.any():
                both = (with_own_group, rest)
                sides = [kappas.with_rater(group, grader, units)[kappa].values for group in both]
                alike = [kappas.among(group, units)[kappa].values for group in both]
                counts = resamples.count(coded.clusters, units)
                note = f"{len(with_own_group)} against {len(rest)} annotators"
                shift = Shift(
                    sides[0] - sides[1], counts, note, if_noisy=_as_reliable(sides, alike)
                )
                who = coded.raters[grader]
                audit.add("bias_rater_group", who, shift, subset=subset, at=against)


def _as_reliable(sides: Sequence[Array], alike: Sequence[Array]) -> Array | None:
    """Return the difference of a grader's kappas with two groups, were both as reliable: each over
    the root of the group's kappa with itself (Spearman 1904), times the root of their mean. None
    where a group is one person, or hardly agrees.
    """
    least = [float(np.nan_to_num(kappa[0])) for kappa in alike]
    if min(least) < LEAST_KAPPA:
        return None
    first, second = (np.maximum(kappa, LEAST_KAPPA) for kappa in alike)
    usual = np.sqrt((first + second) / 2.0)
    return np.asarray(usual * (sides[0] / np.sqrt(first) - sides[1] / np.sqrt(second)))


@dataclass(frozen=True)
class _Part:
    """Units read in one direction: `at` names the two sides; `sign` (units,) is 1 where side a
    counts as the first, -1 where side b does, 0 where the unit takes no part.
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
        of_graders = np.maximum(calls.values[:, list(calls.graders)] * side, 0.0)
        sides.append(np.column_stack([mean, of_graders]))
    raters = ["humans", *(calls.raters[grader] for grader in calls.graders)]
    parts = _parts(calls, view, by_subject=True)
    for part in (*parts, *_groups(calls, view.facts, view.resamples)):
        used, forward = part.sign != 0, part.sign[:, None] > 0
        # NaN for no call.
        toward, away = np.where(forward, *sides)[used], np.where(forward, *sides[::-1])[used]
        if not (held := ~np.isnan(toward)).any():
            continue
        kept, clusters = np.unique(calls.clusters[used], return_inverse=True)
        drawn = view.resamples
        if len(kept) < drawn.n_types:
            drawn = drawn.only(kept)  # a group costs its own clusters' time
        out = Writer(view.rows, drawn, clusters, part.subset)
        sums = out.sums(np.nan_to_num(toward), np.nan_to_num(away), held)
        to, off, n = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
        for rater, net, by_rater in zip(raters, ratio(to - off, n).T, held.T, strict=True):
            if (units := out.count(by_rater))[0]:
                few = f"fewer than {FEW_CLUSTERS} clusters" if units[1] < FEW_CLUSTERS else ""
                out.add("direction_net", net, units, a=rater, at=part.at, note=few)


def add_side_rows(audit: AuditRows, calls: Calls, view: RatedView) -> None:
    """Add `bias_side` of every grader: its net direction minus that of humans, scaled (see
    `analysis.bias.expected`).
    """
    for part in _parts(calls, view):
        oriented = calls.oriented(part.sign)
        for grader in calls.graders:
            if shift := side_shift(oriented, grader, audit.out.resamples):
                audit.add("bias_side", calls.raters[grader], shift, subset=part.subset, at=part.at)


def orientation(facts: UnitFacts, settings: BiasSettings) -> Array:
    """Orientation of each unit (units,): 1 where side a is the first of `settings.sides`. It is -1
    where side b is, 0 where it is not known. Raises InputError where leanings are set and no unit
    of the whole table has one.
    """
    if not settings.leanings:
        return np.ones(len(facts.ids))
    table = facts.table
    if table is None or not {*GROUP_COLUMNS} <= {*table.columns}:
        raise InputError(
            f"leanings need the units columns {' and '.join(GROUP_COLUMNS)}; add them or take the "
            "leanings out"
        )
    signs = settings.orientation(table)
    if not signs.any():
        raise InputError(
            "no item has a group of each leaning on its two sides; the leanings must name values "
            f"of {' and '.join(GROUP_COLUMNS)}"
        )
    return np.asarray(signs.loc[facts.ids], dtype=float)


def _parts(calls: Calls, view: RatedView, *, by_subject: bool = False) -> Iterator[_Part]:
    """Yield the whole sample, and the values of the columns that directions are shown by."""
    facts, settings = view.facts, view.request.settings
    sign = orientation(facts, settings)[calls.unit]
    sides = from_to(*settings.sides)
    yield _Part(calls.subset, sides, sign)
    shown = [part for part in map(facts.column, SHOWN_BY) if 1 < len(part.values) <= MAX_VALUES]
    columns = [replace(part, codes=part.codes[calls.unit]) for part in shown]
    if by_subject and len(calls.subjects) <= MAX_VALUES:
        columns.append(UnitColumn("subject", calls.subjects, calls.subject))
    for name, chosen in (part for column in columns for part in column.parts()):
        yield _Part(calls.part(name), sides, np.where(chosen, sign, 0.0))


def _groups(calls: Calls, facts: UnitFacts, resamples: Resamples) -> Iterator[_Part]:
    """Yield each group with enough clusters against the groups it is paired with; of two groups
    that are only paired with each other, the first by name.
    """
    a, b = (np.array(facts.cells(name), dtype=object) for name in GROUP_COLUMNS)
    if not a.any() or not b.any():
        return
    a, b = a[calls.unit], b[calls.unit]
    done: set[tuple[str, ...]] = set()
    for group in sorted({*a, *b} - {""}):
        sign = np.where(a == b, 0.0, 1.0 * (a == group) - 1.0 * (b == group))
        others = tuple(sorted({*b[sign > 0], *a[sign < 0]}))
        mirrored = len(others) == 1 and (others[0], group) in done
        if resamples.count(calls.clusters, sign != 0)[1] < FEW_CLUSTERS or mirrored:
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
    graders: dict[str, list[str]] = {}
    for grader, orders in seen.items():
        graders.setdefault("both_orders" if len(orders) > 1 else "one_order", []).append(grader)
    return graders


def add_order_rows(audit: AuditRows, view: RatedView) -> None:
    """Add `bias_order_flips` of every grader that read both orders.

    Where options favour a side, `bias_order_first` and `bias_order` are added too.

    Labels stay in the pair's own orientation, and a grader's draws within an order are combined.
    Flips are units labelled differently in the two orders. Of those that move from one side to
    another, or to neither, `bias_order_first` is the share that move to the side shown first;
    `bias_order` is the net gain of a side from being shown first, per unit. Its p is exact, by
    flipping the signs of the clusters' moves.
    """
    request, scale = view.request, view.labels.scale
    for grader, graded in _by_order(view.ratings).groupby("rater_id", sort=True):
        if graded["order"].nunique() < len(_ORDERS):
            continue
        readings = combine_readings(graded.assign(rater_id=graded["order"], order=""), scale)
        matrix = encode(readings, scale, request.units, request.settings.cluster)
        if (both := np.asarray((matrix.codes >= 0).all(axis=1))).any():
            once = np.ones(matrix.n_clusters, dtype=np.int64)
            _add_grader(audit, str(grader), matrix, both, request.resampled(once, matrix.weight))


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
    exact = significance.sign_flip(np.bincount(clusters, weights=np.sign(move)))
    note = join_notes(
        f"{to_first} to the side shown first, {to_second} to the second",
        f"exact p {exact:.4g}",
        Remark("as_sampled") if weighted else "",
    )
    add("bias_order_first", shift=Shift(ratio(first, moves), counts, note))
    gain = Shift(ratio(net, n), counts, note)
    add("bias_order", shift=gain, exact_p=None if weighted else exact)


# Findings

BOUND = 0.1
"""The largest shift, in share of calls, that is tolerated unless another bound is given."""
Status = Literal["found", "nothing_found", "inconclusive"]
AnyRow = TypeVar("AnyRow", bound=TableRow)


@dataclass(frozen=True)
class Finding:
    """A row of the audit, with the row of its corrected p if it was tested."""

    row: ResultRow
    p: ResultRow | None

    @property
    def grader(self) -> str:
        """The grader that the finding is about."""
        return audited_grader(self.row)

    @property
    def status(self) -> Status:
        """Status of the finding: found, nothing found, or inconclusive."""
        return status_of(self.row, self.p)

    def beyond(self, bound: float) -> bool:
        """Return True if a shift was found and its whole interval is beyond +/- `bound`."""
        outside = self.row["low"] > bound or self.row["high"] < -bound
        return self.status == "found" and outside

    @property
    def sentence(self) -> str:
        """The finding as a sentence."""
        about = {"grader": self.grader, "question": _words(self.row)[0]}
        if self.p is None:
            return written("bias.undefined", why=reason_in_words(self.row["remarks"]), **about)
        if self.status == "found":
            return written("bias.found", fault=self.fault, **about)
        about |= {"sample": sample_of(self.row)}
        noisy = next((r for r in self.row["remarks"] if r.code == "noise_may_explain"), None)
        if noisy is not None:
            ends = {end: self.row[end] for end in ("estimate", "low", "high")}
            shifts = {"shift": self._shift, "if_noisy": noisy.detail[0]}
            return written("bias.noise", **about, **shifts, **ends)
        name = "nothing_weak" if self.largest > BOUND else "nothing"
        return written(f"bias.{name}", bound=BOUND, most=self.largest, **about)

    @property
    def largest(self) -> float:
        """The largest bias that is not excluded."""
        return max(abs(self.row["low"]), abs(self.row["high"]))

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """The rows that the sentence is based on."""
        return (self.row,) if self.p is None else (self.row, self.p)

    @property
    def _shift(self) -> str:
        _, up, down = _words(self.row)
        return up if self.row["estimate"] > 0 else down

    @property
    def fault(self) -> str:
        """The shift in words, with its interval."""
        shift = self._shift
        if says(self.row["remarks"], "sharpness_assumed"):
            shift = written("bias.sharpness", shift=shift)
        about = {"shift": shift, "size": abs(self.row["estimate"]), "sample": sample_of(self.row)}
        about |= {"low": self.row["low"], "high": self.row["high"]}
        if self.p:
            return written("bias.fault_tested", p=self.p["estimate"], **about)
        return written("bias.fault", **about)

    @property
    def short(self) -> str:
        """The shift in a few words."""
        return written("bias.short", question=_words(self.row)[0], shift=self.row["estimate"])


def audited_grader(row: TableRow) -> str:
    """Return the grader that a row of the audit is about."""
    return row["rater_b"] or row["rater_a"]


def status_of(row: TableRow, p: TableRow | None) -> Status:
    """Return the status of a row of the audit, given the row of its corrected p."""
    if p is None:
        return "inconclusive"
    apart = row["low"] > 0 or row["high"] < 0
    return "found" if apart and p["estimate"] < LEVEL else "nothing_found"


def audited(rows: Iterable[AnyRow], suffix: str = "") -> Iterator[tuple[AnyRow, AnyRow | None]]:
    """Yield the audit's rows, in the order of its questions, with their p."""
    by_key = {key_of(row): row for row in rows if row["statistic"].startswith("bias_")}
    asked = {question + suffix: at for at, question in enumerate((*PLANNED, *SCREENED))}
    rows_asked = [(key, row) for key, row in by_key.items() if key[1] in asked]
    for key, row in sorted(rows_asked, key=lambda keyed: asked[keyed[0][1]]):
        yield row, by_key.get((key[0], f"{key[1]}_p", *key[2:]))


def findings(rows: Iterable[ResultRow], suffix: str = "") -> list[Finding]:
    """Return the findings of the audit, in the order of its questions. With `suffix` HELD_OUT they
    are on verdicts by thresholds tuned on other clusters.
    """
    return [Finding(row, p) for row, p in audited(rows, suffix)]


def flagged(
    rows: ResultRows, grader: str, bound: float = BOUND, *, held_out: bool = False
) -> list[Finding]:
    """Return the findings on this grader that remain after correction and exceed `bound`.

    Their intervals lie wholly beyond plus or minus `bound`. `held_out` takes the grader's verdicts
    by thresholds tuned on other clusters, where these were audited; what does not rest on verdicts
    is the same.
    """
    usual, other = (findings(rows.rows.values(), suffix) for suffix in ("", HELD_OUT))
    other = [one for one in other if one.grader == grader]
    if held_out and other:
        usual = [one for one in usual if not one.row["subset"].endswith(BINARY)] + other
    return [one for one in usual if one.grader == grader and one.beyond(bound)]


def screening_sentence(screened: list[Finding]) -> str:
    """Summarise in one sentence all of a grader's slices in which nothing was found."""
    quiet = [bias for bias in screened if bias.status == "nothing_found"]
    untold = sum(bias.status == "inconclusive" for bias in screened)
    parts = []
    if quiet:
        widest = max(quiet, key=lambda bias: bias.largest)
        most = {"most": widest.largest, "part": _part(widest.row)}
        parts.append(written("bias.slices_nothing", quiet=len(quiet), all=len(screened), **most))
    if untold:
        parts.append(written("bias.slices_untold", untold=untold, all=len(screened)))
    if not parts:
        return ""
    return written("bias.slices", grader=screened[0].grader, found="; ".join(parts))


def _part(row: ResultRow) -> str:
    return row["subset"].removesuffix(BINARY)


def _words(row: ResultRow) -> tuple[str, str, str]:
    """State the question of a row of the audit, and its shift if upward and if downward."""
    part, at, affirms = _part(row), row["at"], row["subset"].endswith(BINARY)
    first, _, second = at.partition(">")
    text = at.removesuffix("_words")
    question, *shifts = {
        "bias_side": (
            "side" if part == "all" else "side_in_part",
            "side_affirms" if affirms else "side_leans",
        ),
        "bias_order": ("order", "order_first", "order_second"),
        "bias_length": ("length", "length_affirms" if affirms else "length_leans")
        if text.startswith("response")
        else ("length_of", "length_of_affirms"),
        "bias_self_preference": ("family", "family_affirms"),
        "bias_rater_group": ("group", "group_sides"),
        "bias_slice": ("slice", "slice_affirms"),
    }[row["statistic"].removesuffix(HELD_OUT)]
    about = {"part": part, "group": part, "text": text, "family": at, "others": at}
    up = {"more": "more", "longer": "longer", "first": first, "second": second, **about}
    down = {"more": "less", "longer": "shorter", "first": second, "second": first, **about}
    upward, downward = written(f"bias.{shifts[0]}", **up), written(f"bias.{shifts[-1]}", **down)
    return written(f"bias.{question}", **about), upward, downward
