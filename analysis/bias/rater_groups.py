"""Groups of humans: does a grader side with one group of annotators?"""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.analysis.agreement.pairs import (
    KappaMeans,
    deciding_kappa,
    eligible_pairs,
    shared_units,
)
from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import join_notes


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
    kappas = KappaMeans(coded, audit.resamples, [deciding_kappa(coded)])
    for column, groups in columns.items():
        for value, own in sorted(groups.items())[: 1 if len(groups) == 2 else None]:
            others = [value_ for value_ in groups if value_ != value]
            if others:
                rest = [rater for other in others for rater in groups[other]]
                against = others[0] if len(others) == 1 else "others"
                _add_group(audit, kappas, (own, rest), f"{column}={value}", against)


def _add_group(
    audit: AuditRows,
    kappas: KappaMeans,
    groups: tuple[list[int], list[int]],
    subset: str,
    against: str,
) -> None:
    coded = kappas.coded
    by_both = coded.labelled_by_any(groups[0]) & coded.labelled_by_any(groups[1])
    for grader in coded.members("model"):
        within = by_both & coded.labelled[:, grader]
        if not within.any():
            continue
        shared = shared_units(coded, audit.resamples, within)
        pairs = [eligible_pairs([(h, grader) for h in group], shared) for group in groups]
        first, second = (kappas.over(each, within)[deciding_kappa(coded)] for each, _ in pairs)
        audit.add(
            "bias_rater_group",
            coded.raters[grader],
            first.values - second.values,
            audit.resamples.count(coded.clusters, within),
            subset=subset,
            at=against,
            note=join_notes(
                f"{len(groups[0])} against {len(groups[1])} people", *(note for _, note in pairs)
            ),
        )
