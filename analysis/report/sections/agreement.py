"""Agreement on single units: against the human ceiling, and for every pair of raters."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import Block, Paragraph, ReportSection, Table
from evenhand.analysis.report.charts.forest import forest
from evenhand.analysis.report.charts.grids import confusions, heat_map
from evenhand.analysis.report.charts.prices import price_front
from evenhand.analysis.report.charts.slices import slice_plot
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure
from evenhand.analysis.report.rates_table import rates_table
from evenhand.analysis.report.sections.wording import defined, listed, sentences
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    Layers,
    Source,
    pair_title,
    rater_title,
)
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.evidence import PART
from evenhand.texts import in_pieces, written

_PAIR_PANEL = (
    "observed_agreement",
    "cohen_kappa",
    "weighted_kappa_linear",
    "weighted_kappa_quadratic",
    "gwet_ac1",
    "gwet_ac2",
    "brennan_prediger",
)
_INDICES = ("prevalence_index", "bias_index")
_GROUP_PANEL = ("observed_agreement", "fleiss_kappa", *_PAIR_PANEL[1:])
_OF_NUMBERS = ("icc_a1", "icc_c1", "rms_difference", "mean_difference")
_CEILING_PANEL = (
    "observed_agreement",
    "cohen_kappa",
    "weighted_kappa_linear",
    "weighted_kappa_quadratic",
    "gwet_ac1",
    "brennan_prediger",
)


def ceiling_section(source: Source) -> ReportSection | None:
    """Graders and baselines compared with annotators."""

    def layers_of(rubric: str) -> Layers:
        tables = [table for subset in READINGS for table in _ceiling_table(source, rubric, subset)]
        rates = rates_table(source, rubric)
        drawn = forest(source, rubric, tuple(tables))
        prices = price_front(source, rubric)
        return Layers(
            answers=_ceiling_answer(source, rubric) if tables else [],
            open=[*drawn, *rates],
            folded=prices if drawn else [*tables, *prices],
        )

    return source.section(
        "human-ceiling",
        written("ceiling.title"),
        layers_of,
        about=[written("ceiling.about")],
        otherwise=written("ceiling.none"),
    )


def _ceiling_answer(source: Source, rubric: str) -> list[list[object]]:
    """People's kappa with each other, and the two graders that are closest to it and furthest."""
    # Graders that give probabilities alone are compared on the binary verdict.
    subset = ALL if source.graders(rubric, ALL) else ALL_BINARY
    kappa = source.kappa(rubric, subset)

    def with_people(grader: str) -> Figure | None:
        return source.figures.get(rubric, kappa, "humans", grader, subset)

    people, said = with_people(""), []
    if people:
        reason = people.reason.words if people.reason else ""
        said = in_pieces("report.ceiling_unknown", reason=reason)
        if not reason:
            said = in_pieces("report.ceiling", people=people)
    return [sentences(said, _of_graders(defined(map(with_people, source.graders(rubric, subset)))))]


def _of_graders(graders: list[Figure]) -> list[object]:
    if not graders:
        return in_pieces("report.ceiling_no_grader")
    best, worst = graders[0], graders[-1]
    if best is worst:
        return in_pieces("report.ceiling_grader", name=best.raters[1], best=best)
    return in_pieces(
        "report.ceiling_graders",
        best=best, first=best.raters[1], worst=worst, last=worst.raters[1],
    )  # fmt: skip


def _ceiling_table(source: Source, rubric: str, subset: str) -> list[Table]:
    """Annotators with one another, each grader with them, and the baselines."""
    graders = source.graders(rubric, subset)
    people = source.figures.select(rubric, source.usual(rubric, subset), subset)
    if not any(figure.raters[0] == "humans" for figure in people):
        return []
    alpha = source.alphas(rubric, subset)[0]
    statistics = [*_CEILING_PANEL, alpha, *_OF_NUMBERS, CEILING]
    draft = TableDraft(
        source.caption(rubric, written("ceiling.caption", reading=READINGS[subset])),
        "Rater",
        _labels(statistics),
    )
    draft.add(GROUPS["humans"], source.row(rubric, statistics, ("humans", ""), subset))
    for grader in graders:
        draft.add(grader, source.row(rubric, statistics, ("humans", grader), subset))
    for name in BASELINES:
        figures = source.row(rubric, statistics, ("humans", name), subset)
        draft.add(rater_title(name), figures)
    return draft.finish()


def pairs_section(source: Source) -> ReportSection | None:
    """Build the section on every two raters, groups of raters, and parts of the sample."""

    def layers_of(rubric: str) -> Layers:
        pairs, groups, missing = [], [], []
        for subset in READINGS:
            pairs += _pairs_table(source, rubric, subset)
            of_groups = _groups_table(source, rubric, subset)
            if of_groups and not source.pairs(rubric, source.usual(rubric, subset), subset):
                missing.append(Paragraph(_why_no_pairs(source, rubric, subset)))
            groups += of_groups
        matrix = heat_map(source, rubric, tuple(pairs)) or pairs
        labelled = [*matrix, *groups]
        return Layers(
            answers=_pairs_answer(source, rubric) if labelled else [],
            folded=confusions(source, rubric),
            appendix=[
                *matrix,
                *missing,
                *groups,
                *_on_pairs_of_responses(source, rubric),
                *_slices(source, rubric),
            ],
        )

    return source.section(
        "per-sample-agreement",
        written("pairs.title"),
        layers_of,
        otherwise=written("pairs.none"),
    )


def _pairs_answer(source: Source, rubric: str) -> list[list[object]]:
    """The two people who agree least and most, and the parts of the sample where graders fail."""
    graders, kappa = source.graders(rubric, ALL), source.kappa(rubric, ALL)
    own = [pair for pair in source.pairs(rubric, kappa, ALL) if not {*pair} & {*graders}]
    found = [source.figures.get(rubric, kappa, *pair, ALL) for pair in own]
    people = defined(found)
    said = in_pieces("report.pair_none")
    if found and not people:
        reasons = [figure.reason.words for figure in found if figure and figure.reason]
        said = in_pieces("report.ceiling_unknown", reason=reasons[0])
    elif len(people) == 1:
        said = in_pieces("report.pair", kappa=people[0])
    elif people:
        high, low = people[0], people[-1]
        said = in_pieces(
            "report.pairs",
            low=low,
            first=pair_title(low.raters),
            high=high,
            last=pair_title(high.raters),
        )
    return [sentences(said, *_short_in_parts(source, rubric))]


def _short_in_parts(source: Source, rubric: str) -> Iterator[list[object]]:
    """Yield a sentence for each grader that a verdict finds clearly below people in some part; or
    one that there is none.
    """
    verdicts = [each for each in source.analysis.verdicts if each["rubric"] == rubric]
    found = source.figures.everywhere(rubric, PART)
    for verdict in verdicts:
        failing = verdict["failing_parts"]
        parts = [
            [f"{figure.subset.removesuffix(BINARY)} (", figure, ")"]
            for figure in found
            if figure.raters[1] == verdict["grader"]
            and figure.subset.removesuffix(BINARY) in failing
            and figure.bounds[2] < 0
        ]
        if parts:
            yield in_pieces("report.parts", grader=verdict["grader"], parts=listed(parts))
    if found and not any(verdict["failing_parts"] for verdict in verdicts):
        yield in_pieces("report.parts_none")


def _pairs_table(source: Source, rubric: str, subset: str) -> list[Table]:
    """Tabulate agreement of every pair of raters that share units."""
    statistics = [*_PAIR_PANEL, *source.alphas(rubric, subset), *_OF_NUMBERS, *_INDICES]
    draft = TableDraft(
        source.caption(rubric, written("pairs.caption", reading=READINGS[subset])),
        "Raters",
        _labels(statistics),
    )
    for pair in source.pairs(rubric, source.usual(rubric, subset), subset):
        draft.add(pair_title(pair), source.row(rubric, statistics, pair, subset))
    return draft.finish()


def _groups_table(source: Source, rubric: str, subset: str) -> list[Table]:
    statistics = [*_GROUP_PANEL, *source.alphas(rubric, subset), *_OF_NUMBERS[:2], _INDICES[0]]
    draft = TableDraft(
        source.caption(rubric, written("pairs.groups", reading=READINGS[subset])),
        "Group",
        _labels(statistics),
    )
    for name in source.groups(rubric, subset):
        draft.add(GROUPS[name], source.row(rubric, statistics, (name, ""), subset))
    return draft.finish()


def _on_pairs_of_responses(source: Source, rubric: str) -> list[Table]:
    """The verdict on a pair, where raters labelled its two responses."""
    statistics = ["pair_observed_agreement", "pair_cohen_kappa"]
    draft = TableDraft(
        source.caption(rubric, written("pairs.on_pairs")),
        "Raters",
        _labels(statistics),
    )
    draft.group(written("pairs.of_raters"))
    for pair in source.pairs(rubric, statistics[0], ALL_BINARY):
        draft.add(pair_title(pair), source.row(rubric, statistics, pair, ALL_BINARY))
    draft.group(written("pairs.with_annotators"))
    for figure in source.figures.select(rubric, statistics[0], ALL_BINARY):
        if figure.raters[0] == "humans":
            row: list[Figure | None] = source.row(rubric, statistics, figure.raters, ALL_BINARY)
            draft.add(figure.raters[1], row)
    return draft.finish()


def _slices(source: Source, rubric: str) -> list[Block]:
    """Chart or tabulate graders' agreement with people by the columns asked for, compared with the
    rest of the units.
    """
    statistics = ["observed_agreement", source.kappa(rubric, ALL), CEILING, "slice_difference"]
    out: list[Block] = []
    for column, figures in source.figures.slices(rubric, "slice_difference").items():
        draft = TableDraft(
            source.caption(rubric, written("pairs.parts", column=column)),
            column,
            _labels(statistics),
        )
        for grader in dict.fromkeys(figure.raters[1] for figure in figures):
            draft.group(pair_title(("humans", grader)))
            for figure in figures:
                if figure.raters[1] == grader:
                    row = source.row(rubric, statistics, figure.raters, figure.subset)
                    draft.add(figure.subset.removeprefix(f"{column}="), row)
        tables = draft.finish()
        out += slice_plot(source, rubric, column, tuple(tables)) or tables
    if out:
        out.append(Paragraph(written("pairs.about_parts")))
    return out


def _why_no_pairs(source: Source, rubric: str, subset: str) -> str:
    title = source.context.title_of(rubric)
    return written("pairs.not_listed", rubric=title, reading=READINGS[subset])


def _labels(statistics: list[str]) -> list[str]:
    return [entry_for(name).label for name in statistics]
