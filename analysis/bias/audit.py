"""Bias audit of the graders of one rubric, and its findings in sentences.

`add_bias_rows` adds the rows of every question; `findings` reads them. A *call* is a label as a
number. A *verdict call* is 1 for an affirmative label, else 0; rows on verdicts have a `subset`
ending in `matrix.BINARY`. A *directed call* is 1 if side a of a pair is favoured, -1 if side b is,
else 0 (see `analysis.bias.expected`). A grader's *shift* is the change of its calls with a property
beyond what humans' scores of the units explain.

A shift is *found* if its corrected p is below .05 and its interval excludes 0. Otherwise the
sentence gives the largest bias that is not excluded, the outer end of the interval, or says that
noise which changes with the property may explain the shift.

The planned questions (side, order, length, family, groups of humans) are few: Holm's correction is
over those of one grader and rubric. Parts of the sample are screened: Benjamini & Hochberg's
correction is over all parts of a rubric. The corrected p of a row NAME is in a row NAME_p.

If raters' noise may change with the property, a shift is estimated under two assumptions. A bias
must show in both: the interval spans both, p is the larger (intersection-union: Berger 1982).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from evenhand.analysis import results
from evenhand.analysis.agreement.pairs import KappaMeans, deciding_kappa
from evenhand.analysis.bias import expected
from evenhand.analysis.bootstrap import significance
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels import matrix
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.statistics import Note, Remark, join_notes, reason_in_words, says
from evenhand.analysis.subjects.preference import is_comparison
from evenhand.analysis.types import Array, DataFrame, Mask
from evenhand.analysis.writer import Counts, RatedView, Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, BiasSettings
from evenhand.texts import table_of, written

PLANNED = ("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_rater_group")
SCREENED = ("bias_slice",)
"""Statistics of the planned questions, and of the screened parts of the sample."""
FEW_CLUSTERS = 10  # with fewer clusters a row has a note
MIN_KAPPA = 0.05  # human-human kappa below which the reliability of a group is unknown
LEVEL = 0.05  # a shift is found if its corrected p is below this
HELD_OUT = "_held_out"
"""Suffix of statistics on verdicts by thresholds tuned on other clusters."""


class _Test(NamedTuple):
    """Test of a row whose `p` is to be corrected; `key` has the row's raters, subset and `at` (two
    sides, a text, or a family). `is_planned` marks a planned question on all of the grader's calls.
    """

    statistic: str
    suffix: str
    grader: str
    key: dict[str, str]
    counts: Counts
    p: float
    is_planned: bool


@dataclass
class AuditRows:
    """Writer of rows that keeps their p values, so that all are corrected together at the end."""

    out: Writer
    suffix: str = ""  # of the rows' statistics: "", or HELD_OUT
    _tests: list[_Test] = field(default_factory=list)
    people_cache: dict[tuple[bytes | bool, ...], expected.HumanCalls] = field(default_factory=dict)
    """People's calls on the units that a grader called, by the keys of `Shifts`."""

    def add(
        self,
        statistic: str,
        grader: str,
        shift: expected.Shift,
        *,
        subset: str,
        at: str = "",
        note: Note = "",
        alone: bool = False,
        exact_p: float | None = None,
        resamples: Resamples | None = None,
    ) -> None:
        """Add a row on a grader's calls compared with those of humans, or on its calls `alone`.
        `exact_p` replaces the p of the bootstrap; `resamples` replace those of the audit.
        """
        resamples, n_clusters = resamples or self.out.resamples, shift.counts[1]
        rater_a, rater_b = (grader, "") if alone else ("humans", grader)
        few_note = f"fewer than {FEW_CLUSTERS} clusters" if n_clusters < FEW_CLUSTERS else ""
        interval_of = partial(resamples.interval, n_clusters=n_clusters, reason=shift.reason)
        replicates, interval = [shift.values], interval_of(shift.values)
        if shift.if_noisy is not None:
            replicates.append(shift.if_noisy)
            interval = _spanning(interval, interval_of(shift.if_noisy))
        key = {"rater_a": rater_a, "rater_b": rater_b, "subset": subset, "at": at}
        name, full_note = statistic + self.suffix, join_notes(few_note, note, shift.note)
        stored = self.out.rows.add(name, interval, shift.counts, **key, note=full_note)
        if statistic in (*PLANNED, *SCREENED):
            p = max(map(significance.bootstrap_p, replicates)) if exact_p is None else exact_p
            # The subset of `bias_rater_group` is a group of humans, compared on the whole sample.
            is_on_all = subset in ("all", matrix.BINARY_ALL) or statistic == "bias_rater_group"
            is_planned = is_on_all and statistic in PLANNED
            if not np.isnan(p) and not np.isnan(stored.low):
                test = _Test(statistic, self.suffix, grader, key, shift.counts, p, is_planned)
                self._tests.append(test)

    def held_out(self, grader: str) -> AuditRows:
        """Return an audit of a grader's held-out verdicts, which replace its tests on verdicts."""
        of_grader = [test for test in self._tests if test.grader == grader]
        replaced = [test for test in of_grader if test.key["subset"].endswith(matrix.BINARY)]
        others = [test for test in self._tests if test not in replaced]  # count in the corrections
        return AuditRows(self.out, HELD_OUT, others, self.people_cache)

    def add_tests(self) -> None:
        """Add the corrected p of this audit's rows. Tests of other rows count in the correction."""
        screened = [test for test in self._tests if not test.is_planned]
        method = f"Benjamini-Hochberg over {len(screened)} parts of the sample"
        corrections = [(screened, significance.benjamini_hochberg, method)]
        for grader in dict.fromkeys(test.grader for test in self._tests):
            planned = [test for test in self._tests if test.grader == grader and test.is_planned]
            method = f"Holm over this grader's questions, {len(planned)} in all"
            corrections.append((planned, significance.holm, method))
        for tests, correct, method in corrections:
            for test, p in zip(tests, correct([test.p for test in tests]), strict=True):
                if test.suffix == self.suffix:  # other tests have their rows already
                    note = join_notes(Remark("uncorrected_p", (test.p,)), method)
                    name, p_value = f"{test.statistic}{test.suffix}_p", Interval.point(float(p))
                    self.out.rows.add(name, p_value, test.counts, **test.key, note=note)


def _spanning(first: Interval, if_noisy: Interval) -> Interval:
    """Return `first` widened to span both intervals, with a remark if it alone excludes 0."""
    low = float(np.minimum(first.low, if_noisy.low))
    high = float(np.maximum(first.high, if_noisy.high))
    remarks = (() if np.isnan(if_noisy.low) else first.remarks) or if_noisy.remarks
    if (first.low > 0 or first.high < 0) and low <= 0 <= high:
        remarks = join_notes(remarks, Remark("noise_may_explain", (if_noisy.estimate,)))
    return replace(first, low=low, high=high, remarks=remarks)


FAMILIES: dict[str, list[str]] = table_of("evenhand.analysis.bias", "families.toml")
"""Parts of models' names by family."""
DIRECTION_COLUMNS = ("partisan",)
"""Units columns by whose values directions are shown separately."""
LENGTH_COLUMNS = ("response_words",)
PAIR_LENGTH_COLUMNS = ("response_a_words", "response_b_words")
"""Units columns with the lengths of single responses, and of both responses of a pair."""


def add_bias_rows(view: RatedView, retuned: Mapping[str, matrix.LabelMatrix] | None = None) -> None:
    """Add rows on the sides that raters favour, and on shifts of graders' calls with properties
    that should not matter. `retuned` has, by grader, the labels with its verdicts by thresholds
    tuned on other clusters: its held-out verdicts, whose rows are added as NAME_held_out.
    """
    labels, directed, audit = view.labels, expected.directed_calls(view.labels), AuditRows(view)
    # In a comparison, the order of the two answers in a file has no meaning.
    if directed is not None and not is_comparison(labels, view.facts):
        add_direction_rows(view, directed)
        add_side_rows(audit, directed, view)
    add_order_rows(audit, view)
    _add_shifts(audit, expected.verdict_calls(labels), directed, view)
    add_rater_group_rows(audit, labels.on_categories(), view.request.people)
    audit.add_tests()
    for grader, held_out in (retuned or {}).items():
        held_out_audit = audit.held_out(grader)
        verdicts, directed = (
            None if calls is None else calls.with_one_grader(grader)
            for calls in (expected.verdict_calls(held_out), expected.directed_calls(held_out))
        )
        if labels.scale.favours:  # directed calls are then by options, on which no threshold acts
            directed = None
        elif directed is not None:
            add_side_rows(held_out_audit, directed, view)
        _add_shifts(held_out_audit, verdicts, directed, view)
        held_out_audit.add_tests()


def _add_shifts(
    audit: AuditRows,
    verdicts: expected.Calls | None,
    directed: expected.Calls | None,
    view: RatedView,
) -> None:
    """Add shifts of calls with lengths, and shifts of verdicts with families and with parts of the
    sample: `bias_slice` is the share of affirmative calls in a part minus that in the other parts.
    """
    for calls, length in calls_with_lengths(verdicts, directed, view.facts):
        add_shift_rows(audit, calls, [length])
    if verdicts is None:
        return
    request = view.request
    add_family_rows(audit, verdicts, request.settings.families, request.facts.ids)
    for column in view.labels.columns(request.screened):
        if len(column.values) < 2:  # no other part to compare with
            continue
        codes, properties = column.codes[verdicts.unit], []
        for code, value in enumerate(column.values):
            inside, subset = codes == code, verdicts.part(f"{column.name}={value}")
            is_in_part = np.where(codes >= 0, inside, np.nan)
            properties.append(Property("bias_slice", is_in_part, subset, inside=inside))
        add_shift_rows(audit, verdicts, properties)


class Property(NamedTuple):
    """A property that calls should not depend on: `x` (units,), NaN where unknown.

    `statistic`, `subset`, `at` and `note` are those of the row of a grader's shift with the
    property. `inside` (units,) marks the units that the row reports as its sample, None for all.
    `noisy` is True if raters' noise may change with the property.
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
    calls: expected.Calls,
    properties: Sequence[Property],
    graders: Sequence[int] | None = None,
) -> None:
    """Add the shift of every grader's calls, or of these `graders`, with every property, beyond
    what humans' score of the same units explains (see `analysis.bias.expected`).
    """
    resamples, cache = audit.out.resamples, audit.people_cache
    shifts = [
        expected.Shifts(calls, item.x, resamples, noisy=item.noisy, cache=cache)
        for item in properties
    ]
    called_by_people = ~np.isnan(calls.humans).all(axis=1)
    for grader in calls.graders if graders is None else graders:
        for item, shifts_with in zip(properties, shifts, strict=True):
            shift = shifts_with.of(grader)
            if shift is not None and item.inside is not None:
                units = item.inside & called_by_people & ~np.isnan(calls.values[:, grader])
                counts = resamples.count(calls.clusters, units)
                shift = shift._replace(counts=counts) if units.any() else None
            if shift is not None:
                add = partial(audit.add, subset=item.subset, at=item.at, note=item.note)
                add(item.statistic, calls.raters[grader], shift)


def family_of(rater: str, families: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the family of a grader or subject by its model's name, "" if it is unknown.

    The provider before the colon is ignored, because many servers use another provider's protocol.
    The first match in the name decides; `families` have priority over `FAMILIES`.

    >>> family_of("anthropic:claude-opus-5"), family_of("openai:llama-3@http://gpt.example/v1")
    ('anthropic', 'meta')
    >>> family_of("deepseek-r1-distill-llama-8b"), family_of("baseline:lexical")
    ('deepseek', '')
    >>> family_of("our-tune-7b", {"anthropic": ["our-tune"]})
    'anthropic'
    """
    name = rater.partition("@")[0].rpartition(":")[2].casefold()  # of "provider:name@address"
    for parts_by_family in (families or {}, FAMILIES):
        matches = [
            (match.start(), family)
            for family, parts in parts_by_family.items()
            for part in parts
            if (match := re.search(rf"(?<![a-z0-9]){re.escape(part.casefold())}", name))
        ]
        if matches:
            return min(matches)[1]  # the family of the first match
    return ""


def add_family_rows(
    audit: AuditRows,
    calls: expected.Calls,
    families: Mapping[str, Sequence[str]],
    ids: Mapping[str, str] | None = None,
) -> None:
    """Add `bias_self_preference` of graders whose family is among the subjects' families: the share
    of affirmative calls on subjects of its own family minus that on the others. `at` is the family.
    `ids` are the ids of graders that have a display name.
    """
    subject_families = [family_of(subject, families) for subject in calls.subjects]
    unit_families = np.array([*subject_families, ""])[calls.subject]  # "" for code -1
    for grader in calls.graders:
        name = calls.raters[grader]
        family = family_of((ids or {}).get(name, name), families)
        if family and family in subject_families and set(subject_families) != {family}:
            is_in_family = np.where(calls.subject >= 0, unit_families == family, np.nan)
            in_family = Property("bias_self_preference", is_in_family, calls.subset, family)
            add_shift_rows(audit, calls, [in_family], [grader])


def calls_with_lengths(
    verdicts: expected.Calls | None, directed: expected.Calls | None, facts: matrix.UnitFacts
) -> Iterator[tuple[expected.Calls, Property]]:
    """Yield calls, and the length of a text as their property: `bias_length` is the change of calls
    with each doubling of the length.

    Verdicts on single responses are related to the length of the response (column `response_words`)
    and of every other text of the unit (such as `context_words` of `context`). Directed calls on
    pairs are related to the ratio of both lengths (`response_a_words`, `response_b_words`). For
    verdicts the shift is also estimated with noise, as labels of longer texts may be noisier.
    """
    contexts = [
        (verdicts, (f"{name}_words",), f"per doubling of the {name}")
        for name in facts.texts()
        if f"{name}_words" not in (*LENGTH_COLUMNS, *PAIR_LENGTH_COLUMNS)
    ]
    for calls, columns, note in (
        (verdicts, LENGTH_COLUMNS, "per doubling of the response"),
        *contexts,
        (directed, PAIR_LENGTH_COLUMNS, "towards a side, per doubling of its length"),
    ):
        words = [facts.numbers(name) for name in columns]
        logs = [np.log2(np.where(counts > 0, counts, np.nan)) for counts in words]
        doublings = logs[0] - logs[1] if len(logs) > 1 else logs[0]  # of a pair: a against b
        if calls is not None and not np.isnan(doublings).all():
            x, noisy = doublings[calls.unit], calls is verdicts
            yield calls, Property("bias_length", x, calls.subset, columns[0], note, noisy=noisy)


def add_rater_group_rows(
    audit: AuditRows, coded: matrix.Coded, members: Mapping[str, frozenset[str]]
) -> None:
    """Add `bias_rater_group`: the grader's mean kappa with one group of humans minus that with the
    other groups of the same column, on units that humans of both labelled.

    A group with noisier labels has a lower kappa with all raters, so a second estimate assumes
    equal reliability. `members` are the humans of every `column=value`. Of two groups only the
    first by name has a row, as the second's would be its negative; `at` is the other, or "others".
    """
    kappa, resamples = deciding_kappa(coded), audit.out.resamples
    kappas = KappaMeans(coded, resamples, [kappa])
    for column, groups in matrix.sides_of(members, coded, at_least=1).items():
        values = sorted(groups)
        for value in values[:1] if len(values) == 2 else values:
            group, others = groups[value], [other for other in groups if other != value]
            other_raters = [rater for other in others for rater in groups[other]]
            against = others[0] if len(others) == 1 else "others"
            add = partial(audit.add, "bias_rater_group", subset=f"{column}={value}", at=against)
            note = f"{len(group)} against {len(other_raters)} annotators"
            shared = coded.labelled_by_any(group) & coded.labelled_by_any(other_raters)
            for grader in coded.members("model"):
                units = shared & coded.labelled[:, grader]
                if not units.any():
                    continue
                with_grader, within = [], []
                for panel in (group, other_raters):
                    with_grader.append(kappas.with_rater(panel, grader, units)[kappa].values)
                    within.append(kappas.among(panel, units)[kappa].values)
                counts = resamples.count(coded.clusters, units)
                difference = with_grader[0] - with_grader[1]
                if_noisy = _if_as_reliable(with_grader, within)
                shift = expected.Shift(difference, counts, note, if_noisy=if_noisy)
                add(coded.raters[grader], shift)


def _if_as_reliable(with_grader: Sequence[Array], within: Sequence[Array]) -> Array | None:
    """Return the difference of a grader's kappas with two groups if both were equally reliable:
    each kappa divided by the root of the kappa within the group (Spearman 1904), times the root of
    the mean within groups. None if in the data (row 0) a group hardly agrees, or is one person.
    """
    if min(float(np.nan_to_num(kappa[0])) for kappa in within) < MIN_KAPPA:
        return None
    first, second = (np.maximum(kappa, MIN_KAPPA) for kappa in within)
    scale = np.sqrt((first + second) / 2.0)
    return np.asarray(scale * (with_grader[0] / np.sqrt(first) - with_grader[1] / np.sqrt(second)))


class _Part(NamedTuple):
    """Part of the units: `at` has the names of the two sides that are compared; `sign` (units,) is
    1 where side a is the first of these, -1 where side b is, 0 where the unit is left out.
    """

    subset: str
    at: str
    sign: Array


def add_direction_rows(view: RatedView, calls: expected.Calls) -> None:
    """Add `direction_net` of humans together and of every grader: the share of the rater's calls
    that favour the first side minus the share that favour the second; on all units, by the columns
    `DIRECTION_COLUMNS` and by subject.
    """
    people, favours = calls.humans, []
    n_people = (~np.isnan(people)).sum(axis=1).astype(float)
    for sign in (1.0, -1.0):  # calls for side a are 1, for side b -1
        mean_human = ratio(np.maximum(np.nan_to_num(people) * sign, 0.0).sum(axis=1), n_people)
        by_graders = np.maximum(calls.values[:, list(calls.graders)] * sign, 0.0)
        favours.append(np.column_stack([mean_human, by_graders]))
    favours_a, favours_b = favours  # how far each of `raters` favours a side, (units, raters)
    raters = ["humans", *(calls.raters[grader] for grader in calls.graders)]
    for part in _parts(calls, view, by_subject=True):
        is_in_part, a_is_first = part.sign != 0, part.sign[:, None] > 0
        first = np.where(a_is_first, favours_a, favours_b)[is_in_part]  # NaN for a missing call
        second = np.where(a_is_first, favours_b, favours_a)[is_in_part]
        has_call = ~np.isnan(first)
        if not has_call.any():
            continue
        part_clusters, clusters = np.unique(calls.clusters[is_in_part], return_inverse=True)
        has_all = len(part_clusters) == view.resamples.n_types  # the distinct clusters
        resamples = view.resamples if has_all else view.resamples.only(part_clusters)  # is faster
        out = Writer(view.rows, resamples, clusters, part.subset)
        sums = out.sums(np.nan_to_num(first), np.nan_to_num(second), has_call)
        to_first, to_second, n = np.split(sums, 3, axis=1)  # (rows, raters) each
        net = ratio(to_first - to_second, n)
        for rater, values, rater_has_call in zip(raters, net.T, has_call.T, strict=True):
            size = out.count(rater_has_call)
            if size.units:
                note = f"fewer than {FEW_CLUSTERS} clusters" if size.clusters < FEW_CLUSTERS else ""
                out.add("direction_net", values, size, a=rater, at=part.at, note=note)


def add_side_rows(audit: AuditRows, calls: expected.Calls, view: RatedView) -> None:
    """Add `bias_side` of every grader: its net direction minus that of humans (`side_shift`)."""
    for part in _parts(calls, view):
        oriented = calls.oriented(part.sign)
        for grader in calls.graders:
            if shift := expected.side_shift(oriented, grader, audit.out.resamples):
                audit.add("bias_side", calls.raters[grader], shift, subset=part.subset, at=part.at)


def orientation(facts: matrix.UnitFacts, settings: BiasSettings) -> Array:
    """Return the orientation of each unit (units,): 1 where side a is the first of
    `settings.sides` ("side a", or a leaning such as "left"), -1 where side b is, 0 if unknown.
    Raises InputError if leanings are set and no unit of the whole table has one.
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


def _parts(calls: expected.Calls, view: RatedView, *, by_subject: bool = False) -> Iterator[_Part]:
    """Yield the whole sample, and its parts by `DIRECTION_COLUMNS`; `by_subject` adds subjects."""
    facts, settings = view.facts, view.request.settings
    sign = orientation(facts, settings)[calls.unit]
    sides = results.from_to(*settings.sides)
    yield _Part(calls.subset, sides, sign)
    columns = [
        replace(column, codes=column.codes[calls.unit])
        for column in map(facts.column, DIRECTION_COLUMNS)
        if 1 < len(column.values) <= matrix.MAX_VALUES
    ]
    if by_subject and len(calls.subjects) <= matrix.MAX_VALUES:
        columns.append(matrix.UnitColumn("subject", calls.subjects, calls.subject))
    for name, inside in (part for column in columns for part in column.parts()):
        yield _Part(calls.part(name), sides, np.where(inside, sign, 0.0))


_ORDERS = ("ab", "ba")
"""Orders in which a grader reads the two sides of a pair."""


def orders_seen(ratings: DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the known orders in which graders read pairs, from one rubric's validated ratings."""
    by_grader = _with_order(ratings).groupby("rater_id", sort=True)["order"].unique()
    return {str(grader): tuple(sorted(orders)) for grader, orders in by_grader.items()}


def _with_order(ratings: DataFrame) -> DataFrame:
    """Return the grades of pairs in a known order."""
    return ratings[ratings["rater_kind"].eq("model") & ratings["order"].isin(_ORDERS)]


def by_orders(orders_of: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Group graders by "both_orders" and "one_order".

    >>> by_orders({"a": ("ab",), "b": ("ab", "ba"), "c": ("ab",)})
    {'one_order': ['a', 'c'], 'both_orders': ['b']}
    """
    graders: dict[str, list[str]] = {}
    for grader, orders in orders_of.items():
        graders.setdefault("both_orders" if len(orders) > 1 else "one_order", []).append(grader)
    return graders


def add_order_rows(audit: AuditRows, view: RatedView) -> None:
    """Add `bias_order_flips` of every grader that read pairs in both orders: the share of units
    whose label differs. If options favour a side, also add `bias_order_first` and `bias_order`.

    A unit *moves* if the favoured side differs between the orders. `bias_order_first` is the share
    of the moves that are to the side shown first. `bias_order` is the net gain of a side from being
    shown first, per unit; its p is exact, by flipping the signs of the clusters' moves. Labels name
    sides as in the units table, whatever the order, and a grader's draws in an order are combined.
    """
    request, scale = view.request, view.labels.scale
    for grader, grades in _with_order(view.ratings).groupby("rater_id", sort=True):
        if grades["order"].nunique() < len(_ORDERS):
            continue
        # The orders take the raters' place: columns 0 and 1 of the codes are the labels in each.
        readings = combine_readings(grades.assign(rater_id=grades["order"], order=""), scale)
        by_order = encode(readings, scale, request.units, request.settings.cluster)
        in_both_orders = np.asarray((by_order.codes >= 0).all(axis=1))
        if in_both_orders.any():
            frequency = np.ones(by_order.n_clusters, dtype=np.int64)
            resamples = request.resampled(frequency, by_order.weight)
            _add_grader_orders(audit, str(grader), by_order, in_both_orders, resamples)


def _add_grader_orders(
    audit: AuditRows, grader: str, by_order: matrix.LabelMatrix, units: Mask, resamples: Resamples
) -> None:
    """Add the rows on order of one grader, whose orders are the raters of `by_order`, from the
    `units` (a mask) that it labelled in both orders.
    """
    codes, clusters = by_order.codes[units], by_order.clusters[units]
    counts = resamples.count(by_order.clusters, units)
    flipped = codes[:, 0] != codes[:, 1]
    signs = matrix.favour_signs(by_order.scale.categories, by_order.scale.favours)
    # With order ab side a comes first: a positive move is one to the side shown first. A move from
    # one side to the other is 2, so half of it is counted.
    move = signs[codes[:, 0]] - signs[codes[:, 1]]
    features = np.ones(len(codes)), flipped, move / 2.0, move > 0, move != 0
    n, flips, net, moves_to_first, moves = resamples.sums(clusters, *features).T
    add = partial(audit.add, grader=grader, subset="all", alone=True, resamples=resamples)
    add("bias_order_flips", shift=expected.Shift(ratio(flips, n), counts, f"{flipped.sum()} flips"))
    if not by_order.scale.favours:
        return
    is_weighted = resamples.weight is not None  # the exact p is for equally weighted pairs
    exact_p = significance.sign_flip(np.bincount(clusters, weights=np.sign(move)))
    note = join_notes(
        f"{(move > 0).sum()} to the side shown first, {(move < 0).sum()} to the second",
        f"exact p {exact_p:.4g}",
        Remark("as_sampled") if is_weighted else "",
    )
    add("bias_order_first", shift=expected.Shift(ratio(moves_to_first, moves), counts, note))
    gain = expected.Shift(ratio(net, n), counts, note)
    add("bias_order", shift=gain, exact_p=None if is_weighted else exact_p)


# ---- Findings ------------------------------------------------------------------------------------
BOUND = 0.1
"""Default bound: the largest shift, in share of calls, that is tolerated."""
Status = Literal["found", "nothing_found", "inconclusive"]
AnyRow = TypeVar("AnyRow", bound=results.TableRow)


@dataclass(frozen=True)
class Finding:
    """A row of the audit, with the row of its corrected p if it was tested."""

    row: results.ResultRow
    p: results.ResultRow | None

    @property
    def grader(self) -> str:
        """Name of the grader that the finding is about."""
        return audited_grader(self.row)

    @property
    def status(self) -> Status:
        """Status of the finding: found, nothing found, or inconclusive."""
        return status_of(self.row, self.p)

    def beyond(self, bound: float) -> bool:
        """Return True if a shift was found and its whole interval is beyond +/- `bound`."""
        return self.status == "found" and (self.row["low"] > bound or self.row["high"] < -bound)

    @property
    def sentence(self) -> str:
        """The finding as a sentence."""
        question = _words_for(self.row).question
        fields: dict[str, object] = {"grader": self.grader, "question": question}
        if self.p is None:
            return written("bias.undefined", why=reason_in_words(self.row["remarks"]), **fields)
        if self.status == "found":
            return written("bias.found", fault=self.fault, **fields)
        fields |= {"sample": results.sample_of(self.row)}
        for remark in self.row["remarks"]:
            if remark.code == "noise_may_explain":
                fields |= {"shift": self._shift, "if_noisy": remark.detail[0]}
                ends = {end: self.row[end] for end in ("estimate", "low", "high")}
                return written("bias.noise", **fields, **ends)
        name = "nothing_weak" if self.largest > BOUND else "nothing"
        return written(f"bias.{name}", bound=BOUND, most=self.largest, **fields)

    @property
    def largest(self) -> float:
        """Largest bias that is not excluded."""
        return max(abs(self.row["low"]), abs(self.row["high"]))

    @property
    def rows(self) -> tuple[results.ResultRow, ...]:
        """Rows that the sentence is based on."""
        return (self.row,) if self.p is None else (self.row, self.p)

    @property
    def _shift(self) -> str:
        """The shift in words, without figures."""
        words = _words_for(self.row)
        return words.upward if self.row["estimate"] > 0 else words.downward

    @property
    def fault(self) -> str:
        """The shift in words, with its interval."""
        row, shift = self.row, self._shift
        if says(row["remarks"], "sharpness_assumed"):  # few units have two labels
            shift = written("bias.sharpness", shift=shift)
        about = {"shift": shift, "size": abs(row["estimate"]), "sample": results.sample_of(row)}
        about |= {"low": row["low"], "high": row["high"]}
        if self.p:
            return written("bias.fault_tested", p=self.p["estimate"], **about)
        return written("bias.fault", **about)

    @property
    def short(self) -> str:
        """The shift in a few words."""
        question = _words_for(self.row).question
        return written("bias.short", question=question, shift=self.row["estimate"])


def audited_grader(row: results.TableRow) -> str:
    """Return the grader that a row of the audit is about."""
    return row["rater_b"] or row["rater_a"]


def status_of(row: results.TableRow, p: results.TableRow | None) -> Status:
    """Return the status of a row of the audit, given the row of its corrected p."""
    if p is None:
        return "inconclusive"
    excludes_zero = row["low"] > 0 or row["high"] < 0
    return "found" if excludes_zero and p["estimate"] < LEVEL else "nothing_found"


def audited(rows: Iterable[AnyRow], suffix: str = "") -> Iterator[tuple[AnyRow, AnyRow | None]]:
    """Yield the audit's rows, in the order of its questions, with their p."""
    by_key = {results.key_of(row): row for row in rows if row["statistic"].startswith("bias_")}
    for question in (*PLANNED, *SCREENED):
        for key, row in by_key.items():
            if row["statistic"] == question + suffix:
                yield row, by_key.get((key[0], f"{key[1]}_p", *key[2:]))  # [1]: the statistic


def findings(rows: Iterable[results.ResultRow], suffix: str = "") -> list[Finding]:
    """Return the findings of the rows with a suffix ("" or HELD_OUT), in the order of questions."""
    return [Finding(row, p) for row, p in audited(rows, suffix)]


def flagged(
    rows: results.ResultRows, grader: str, bound: float = BOUND, *, held_out: bool = False
) -> list[Finding]:
    """Return the shifts found for this grader whose whole interval is beyond +/- `bound`. With
    `held_out` they are of its verdicts by thresholds tuned on other clusters, where these were
    audited; findings that do not rest on verdicts stay the same.
    """
    audit, held_out_audit = (
        [finding for finding in findings(rows.rows.values(), suffix) if finding.grader == grader]
        for suffix in ("", HELD_OUT)
    )
    if held_out and held_out_audit:
        audit = [finding for finding in audit if not finding.row["subset"].endswith(matrix.BINARY)]
        audit += held_out_audit
    return [finding for finding in audit if finding.beyond(bound)]


def screening_sentence(screened: list[Finding]) -> str:
    """Return a sentence on the parts of the sample in which no bias of a grader was found."""
    unbiased = [finding for finding in screened if finding.status == "nothing_found"]
    n_inconclusive = sum(finding.status == "inconclusive" for finding in screened)
    clauses, n = [], len(screened)
    if unbiased:
        widest = max(unbiased, key=lambda finding: finding.largest)
        fields = {"most": widest.largest, "part": _part_name(widest.row), "all": n}
        clauses.append(written("bias.slices_nothing", quiet=len(unbiased), **fields))
    if n_inconclusive:
        clauses.append(written("bias.slices_untold", untold=n_inconclusive, all=n))
    if not clauses:
        return ""
    return written("bias.slices", grader=screened[0].grader, found="; ".join(clauses))


def _part_name(row: results.ResultRow) -> str:
    """Return the part of the sample that a row is about."""
    return row["subset"].removesuffix(matrix.BINARY)


class _Words(NamedTuple):
    """Words for the `question` of a row, and for an `upward` and a `downward` shift."""

    question: str
    upward: str
    downward: str


def _words_for(row: results.ResultRow) -> _Words:
    """Return the words for a row of the audit."""
    part, at, affirms = _part_name(row), row["at"], row["subset"].endswith(matrix.BINARY)
    # By statistic, `at` is two sides, the column of a text's length, a family, or another group.
    (first, second), text = results.names_in(at), at.removesuffix("_words")
    side = "side" if part == "all" else "side_in_part"
    length = ("length", "length_affirms" if affirms else "length_leans")
    if not text.startswith("response"):  # the length of another text of the unit
        length = ("length_of", "length_of_affirms")
    # Names in texts.toml: of the question, the upward shift, and the downward one if it differs.
    question, *shifts = {
        "bias_side": (side, "side_affirms" if affirms else "side_leans"),
        "bias_order": ("order", "order_first", "order_second"),
        "bias_length": length,
        "bias_self_preference": ("family", "family_affirms"),
        "bias_rater_group": ("group", "group_sides"),
        "bias_slice": ("slice", "slice_affirms"),
    }[row["statistic"].removesuffix(HELD_OUT)]
    about = {"part": part, "group": part, "text": text, "family": at, "others": at}
    up = {"more": "more", "longer": "longer", "first": first, "second": second, **about}
    down = {"more": "less", "longer": "shorter", "first": second, "second": first, **about}
    upward, downward = written(f"bias.{shifts[0]}", **up), written(f"bias.{shifts[-1]}", **down)
    return _Words(written(f"bias.{question}", **about), upward, downward)
