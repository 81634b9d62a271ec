"""The audit of one rubric, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.calls import Calls, directed_calls, verdict_calls
from evenhand.analysis.bias.family import add_family_rows
from evenhand.analysis.bias.length import add_length_rows
from evenhand.analysis.bias.order import add_order_rows, both_orders_of
from evenhand.analysis.bias.rater_groups import add_rater_group_rows
from evenhand.analysis.bias.side import add_direction_rows, add_side_rows
from evenhand.analysis.bias.slices import add_slice_bias_rows
from evenhand.analysis.bootstrap.resamples import Resampling
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.units import UnitColumn, UnitFacts
from evenhand.analysis.results import ResultRows
from evenhand.study.settings.analysis import BiasSettings

if TYPE_CHECKING:
    import pandas as pd


def add_bias_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    ratings: pd.DataFrame,
    facts: UnitFacts,
    *,
    units: pd.DataFrame | None,
    cluster: str,
    settings: BiasSettings,
    slices: Sequence[UnitColumn],
    members: Mapping[str, frozenset[str]],
    resampled: Resampling,
    retuned: Mapping[str, LabelMatrix] | None = None,
) -> None:
    """Add rows on whom raters favour and on how graders' calls shift with irrelevant properties.

    `labels` are not folded: `facts` describe their units in the same order. `ratings` are the
    rubric's rows before orders are combined; `slices` are the columns to screen, `members` the
    humans of every `column=value`; `resampled` makes resamples of clusters from how often each
    occurs in the data. `retuned` are the labels with other verdicts of a grader, by thresholds
    tuned on other clusters: all questions that rest on verdicts are asked of these too, in rows
    NAME_held_out.
    """
    each_once = np.ones(labels.n_clusters, dtype=np.int64)
    audit = AuditRows(rows, lambda: resampled(each_once, labels.weight))
    directed = directed_calls(labels)
    if directed is not None:
        add_direction_rows(rows, directed, facts, settings, audit.resamples)
        add_side_rows(audit, directed, facts, settings)
    add_order_rows(audit, both_orders_of(ratings, labels.scale, units, cluster), resampled)
    _add_shifts(audit, verdict_calls(labels), directed, facts, settings, slices)
    add_rater_group_rows(audit, labels.on_categories(), members)
    audit.add_tests()
    for grader, other in (retuned or {}).items():
        again = audit.retuned(grader)
        verdicts, directed = (_by(grader, of(other)) for of in (verdict_calls, directed_calls))
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


def _by(grader: str, calls: Calls | None) -> Calls | None:
    """Return the calls of humans and one grader."""
    return None if calls is None else calls.without_graders_but(grader)
