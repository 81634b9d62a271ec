"""The audit of one rubric, question by question: order, side, family, length, parts of the sample,
groups of humans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import deciding_kappa
from evenhand.analysis.bias.findings import AuditRows
from evenhand.analysis.bias.position import (
    add_direction_rows,
    add_order_rows,
    add_people_order_rows,
    add_side_rows,
    both_orders_of,
)
from evenhand.analysis.bias.shift import (
    Calls,
    Shift,
    Shifts,
    directed_calls,
    verdict_calls,
)
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn, UnitFacts
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.preference import is_comparison
from evenhand.analysis.types import DataFrame
from evenhand.study.settings.analysis import BiasSettings

FAMILIES: dict[str, tuple[str, ...]] = {
    "anthropic": ("claude",),
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "davinci"),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama",),
    "mistral": ("mistral", "mixtral", "ministral", "magistral"),
    "qwen": ("qwen", "qwq"),
    "deepseek": ("deepseek",),
    "xai": ("grok",),
    "cohere": ("command",),
    "microsoft": ("phi",),
}
"""Parts of a model's name by which its family is known."""
LENGTH_COLUMNS = ("response_words",)
PAIR_LENGTH_COLUMNS = ("response_a_words", "response_b_words")


def add_bias_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    ratings: DataFrame,
    facts: UnitFacts,
    request: Request,
    retuned: Mapping[str, LabelMatrix] | None = None,
) -> None:
    """Add rows on whom raters favour and on how graders' calls shift with irrelevant properties.

    `labels` are not folded: `facts` describe their units in the same order. `ratings` are the
    rubric's rows before orders are combined. `retuned` are the labels with other verdicts of a
    grader, by thresholds tuned on other clusters: all questions that rest on verdicts are asked of
    these too, in rows NAME_held_out.
    """
    settings, slices = request.settings, labels.columns(request.screened)
    each_once = np.ones(labels.n_clusters, dtype=np.int64)
    audit = AuditRows(rows, lambda: request.resampled(each_once, labels.weight))
    directed = directed_calls(labels)
    if is_comparison(labels, facts):  # which answer a file calls the first means nothing
        add_people_order_rows(rows, labels, ratings, facts, audit.resamples)
    elif directed is not None:
        add_direction_rows(rows, directed, facts, settings, audit.resamples)
        add_side_rows(audit, directed, facts, settings)
    both_orders = both_orders_of(ratings, labels.scale, request.units, settings.cluster)
    add_order_rows(audit, both_orders, request.resampled)
    _add_shifts(audit, verdict_calls(labels), directed, facts, settings, slices)
    add_rater_group_rows(audit, labels.on_categories(), request.people)
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
            add_side_rows(again, directed, facts, settings)
        _add_shifts(again, verdicts, directed, facts, settings, slices)
        again.add_tests()


def _add_shifts(
    audit: AuditRows,
    verdicts: Calls | None,
    directed: Calls | None,
    facts: UnitFacts,
    settings: BiasSettings,
    slices: Sequence[UnitColumn],
) -> None:
    add_length_rows(audit, verdicts, directed, facts)
    add_family_rows(audit, verdicts, settings.families)
    add_slice_bias_rows(audit, verdicts, slices)


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


def add_family_rows(
    audit: AuditRows, calls: Calls | None, families: Mapping[str, Sequence[str]]
) -> None:
    """Add `bias_self_preference` of graders whose family is among the subjects, with others.

    It is the affirmative calls on subjects of its own family minus those on the others, beyond what
    humans' score of the same units explains (see `analysis.bias.shift`). `at` is the family.
    """
    if calls is None:
        return
    of_subject = [family_of(subject, families) for subject in calls.subjects]
    of_unit = np.array([*of_subject, ""])[calls.subject]
    for grader in calls.graders:
        family = family_of(calls.raters[grader], families)
        if not family or family not in of_subject or set(of_subject) == {family}:
            continue
        own = np.where(calls.subject >= 0, of_unit == family, np.nan)
        shift, name = Shifts(calls, own, audit.resamples).of(grader), calls.raters[grader]
        if shift is not None:
            audit.add("bias_self_preference", name, shift, subset=calls.subset, at=family)


def add_length_rows(
    audit: AuditRows, verdicts: Calls | None, directed: Calls | None, facts: UnitFacts
) -> None:
    """Add `bias_length` of every grader: the rise of its calls with every doubling of the length.

    The rise is beyond what humans' score of the same units explains (see `analysis.bias.shift`).
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
        if calls is None or np.isnan(doublings).all():
            continue
        noisy = calls is verdicts
        shifts = Shifts(calls, doublings[calls.unit], audit.resamples, noisy=noisy)
        for grader in calls.graders:
            if (shift := shifts.of(grader)) is not None:
                who, at = calls.raters[grader], columns[0]
                audit.add("bias_length", who, shift, subset=calls.subset, at=at, note=unit)


def add_slice_bias_rows(
    audit: AuditRows, calls: Calls | None, columns: Sequence[UnitColumn]
) -> None:
    """Add `bias_slice` of every grader and every value of the columns.

    It is the affirmative calls in the slice minus those in the rest, beyond what humans' score of
    the same units explains.

    Agreement with humans in the slice is another question: `slice_difference`.
    """
    if calls is None:
        return
    by_people = ~np.isnan(calls.people).all(axis=1)
    for column in columns:
        if len(column.values) < 2:
            continue
        codes = column.codes[calls.unit]
        shifts = [
            Shifts(calls, np.where(codes >= 0, codes == code, np.nan), audit.resamples)
            for code in range(len(column.values))
        ]
        for grader in calls.graders:
            for code, value in enumerate(column.values):
                shift = shifts[code].of(grader)
                units = (codes == code) & by_people & ~np.isnan(calls.values[:, grader])
                if shift is not None and units.any():
                    shift = replace(shift, counts=audit.resamples.count(calls.clusters, units))
                    part = calls.part(f"{column.name}={value}")
                    audit.add("bias_slice", calls.raters[grader], shift, subset=part)


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
