"""Preference: whose answers people and graders prefer, and whether they rank subjects alike."""

from __future__ import annotations

from evenhand.analysis.report.blocks import Block, ReportSection
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.sections.wording import sentences
from evenhand.analysis.report.source import Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_BY_RATER = ("win_rate", "strength")
_ALIKE = ["strength_spearman", "same_best"]
_CORRECTED = "win_rate_ppi"


def section(source: Source) -> ReportSection | None:
    """Win rates and strengths by annotators and by every grader; None where nothing compares two
    answers to one prompt.
    """

    def layers_of(rubric: str) -> Layers:
        graders = _graders(source, rubric)
        return Layers(
            answers=[each for each in _answers(source, rubric, graders) if each],
            folded=[
                *_by_rater(source, rubric, graders),
                *_alike(source, rubric, graders),
                *_corrected(source, rubric, graders),
            ],
        )

    about = [written("preference.about"), written("preference.strength")]
    return source.section("preference", written("preference.title"), layers_of, about=about)


def _graders(source: Source, rubric: str) -> list[str]:
    found = source.figures.select(rubric, "win_rate")
    names = dict.fromkeys(figure.raters[0] for figure in found)
    return source.by_agreement(rubric, [name for name in names if name != "humans"])


def _of(source: Source, rubric: str, statistic: str, first: str, second: str = "") -> list[Figure]:
    """Figures of one rater or of two, one for each subject."""
    found = source.figures.select(rubric, statistic)
    return [figure for figure in found if figure.raters == (first, second)]


def _answers(source: Source, rubric: str, graders: list[str]) -> list[list[object]]:
    """The subject that each rater prefers, how alike they rank, and what being first gains."""
    said = [_best(source, rubric, rater) for rater in ("humans", *graders)]
    for grader in graders:
        rho = source.figures.get(rubric, _ALIKE[0], "humans", grader)
        if rho and not rho.reason:
            said.append(in_pieces("report.preference_alike", grader=grader, rho=rho))
        elif rho:
            why = rho.reason.words if rho.reason else ""
            said.append(in_pieces("report.preference_not_alike", grader=grader, why=why))
    for gain in source.figures.select(rubric, "order_gain"):
        said.append(in_pieces("report.preference_order", gain=gain))
    return [sentences(each) for each in said]


def _best(source: Source, rubric: str, rater: str) -> list[object]:
    rates = [figure for figure in _of(source, rubric, "win_rate", rater) if not figure.reason]
    if not rates:
        return []
    best = max(rates, key=lambda figure: figure.bounds[1])
    if rater == "humans":
        return in_pieces("report.preference_people", subject=best.at, rate=best)
    return in_pieces("report.preference_grader", grader=rater, subject=best.at, rate=best)


def _by_rater(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    raters = ["humans", *graders]
    draft = TableDraft(
        source.caption(rubric, written("preference.caption")),
        "Subject",
        [rater_title(rater) for rater in raters],
        count="",
    )
    for statistic in _BY_RATER:
        columns = [
            {figure.at: figure for figure in _of(source, rubric, statistic, rater)}
            for rater in raters
        ]
        draft.group(entry_for(statistic).name)
        for subject in sorted({at for column in columns for at in column}):
            draft.add(subject, [column.get(subject) for column in columns])
    return [*draft.finish()]


def _alike(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("preference.alike")),
        "Grader",
        [entry_for(name).label for name in _ALIKE],
        asides=True,
    )
    for grader in graders:
        draft.add(grader, [source.figures.get(rubric, n, "humans", grader) for n in _ALIKE])
    return [*draft.finish()]


def _corrected(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("preference.corrected")),
        "Subject",
        [
            written("preference.by_grader"),
            written("preference.by_people"),
            entry_for(_CORRECTED).label,
        ],
    )
    people = {figure.at: figure for figure in _of(source, rubric, "win_rate", "humans")}
    for grader in graders:
        found = _of(source, rubric, _CORRECTED, "humans", grader)
        corrected = {figure.at: figure for figure in found}
        if all(figure.reason for figure in corrected.values()):
            continue  # nothing was compared by the grader alone
        draft.group(grader)
        for own in _of(source, rubric, "win_rate", grader):
            draft.add(own.at, [own, people.get(own.at), corrected.get(own.at)])
    return [*draft.finish()]
