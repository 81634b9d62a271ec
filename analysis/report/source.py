"""The source that every section is written from: figures, context and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import SYNTHETIC, Answer, Block, Cell, Part, ReportSection
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure, ResultsIndex
from evenhand.analysis.results import BASELINES
from evenhand.analysis.verdicts.ranking import Candidate, rank_graders
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

READINGS = {ALL: written("naming.categories"), ALL_BINARY: written("naming.binary")}
"""Name of a subset in a caption."""
GROUPS = {
    "humans": written("naming.annotators_together"),
    "models": written("naming.graders_together"),
    "all": written("naming.everyone"),
}
_NAMES = {
    "humans": written("naming.annotators"),
    "models": written("naming.graders"),
    "all": written("naming.everyone"),
    BASELINES[0]: written("naming.constant"),
    BASELINES[1]: written("naming.random"),
}


def rater_title(rater: str) -> str:
    """Return the display name of a rater, a group or a baseline.

    >>> rater_title("humans"), rater_title("baseline:constant"), rater_title("r07")
    ('Annotators', 'Baseline: constant', 'r07')
    """
    return _NAMES.get(rater, rater)


def pair_title(raters: tuple[str, str]) -> str:
    """Return the display name of a pair of raters.

    >>> pair_title(("humans", "g"))
    'Annotators · g'
    """
    return " · ".join(map(rater_title, raters))


def reference_title(rater: str) -> str:
    """Return the name of the raters that a grader is compared with, for use within a sentence.

    >>> reference_title("humans"), reference_title("r07")
    ('annotators', 'r07')
    """
    return written("naming.reference") if rater == "humans" else rater


@dataclass(frozen=True)
class Layers:
    """Content of a section on one rubric, by depth.

    `answers` are sentences in pieces (`in_pieces`), with figures among the text; `open` is the
    figure that decides something, `folded` is what the answers rest on, and the `appendix` holds
    what no decision needs.
    """

    answers: Sequence[Sequence[object]] = ()
    open: Sequence[Block] = ()
    folded: Sequence[Block] = ()
    appendix: Sequence[Block] = ()


def _with_cells(said: Sequence[object]) -> tuple[str | Cell, ...]:
    return tuple(each.cell if isinstance(each, Figure) else str(each) for each in said)


@dataclass(frozen=True)
class Source:
    """An analysis, its results by key, and the facts known of the study."""

    analysis: Analysis
    figures: ResultsIndex
    context: ReportContext

    @classmethod
    def of(cls, analysis: Analysis, context: ReportContext) -> Source:
        """Index the results."""
        return cls(analysis, ResultsIndex(analysis.rows), context)

    def section(
        self,
        anchor: str,
        title: str,
        layers_of: Callable[[str], Layers],
        *,
        about: Sequence[str] = (),
        otherwise: str = "",
    ) -> ReportSection | None:
        """Build a section from the content on every rubric, by depth; `about` explains how to read
        it.

        An answer that is the same on all rubrics is given once. If there is no content, `otherwise`
        is shown as the reason; without it the section is left out.
        """
        answers: list[Answer] = []
        parts, appendix = [], []
        for rubric in self.figures.rubrics:
            found, name = layers_of(rubric), self.context.title_of(rubric)
            answers += [Answer(_with_cells(each), name) for each in found.answers]
            if found.open or found.folded:
                folded = written("report.folded", rubric=name)
                parts.append(Part(folded, name, tuple(found.open), tuple(found.folded)))
            if found.appendix:
                later = written("naming.about", whom=title, what=name)
                appendix.append(Part(later, name, folded=tuple(found.appendix)))
        if not (answers or parts):
            said = (Answer((otherwise,)),)
            return ReportSection(anchor, title, answers=said) if otherwise else None
        if len(answers) > 1 and len({each.pieces for each in answers}) == 1:
            answers = [Answer(answers[0].pieces)]
        return ReportSection(
            anchor, title, (), tuple(answers), tuple(parts), tuple(about), tuple(appendix)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the study and of the analysis."""
        return tuple(dict.fromkeys([*self.context.notes, *self.analysis.notes]))

    def by_agreement(self, rubric: str, graders: Iterable[str], subset: str = ALL) -> list[str]:
        """Graders by their kappa with people, the largest first; those without one come last."""
        kappa = self.kappa(rubric, subset)

        def place(grader: str) -> float:
            found = self.figures.get(rubric, kappa, "humans", grader, subset)
            return -found.bounds[1] if found and not found.reason else math.inf

        return sorted(graders, key=place)

    def in_order(self, rubric: str, figures: Iterable[Figure]) -> list[tuple[str, str]]:
        """The raters of figures on graders' probabilities, (reference, grader), by the grader's
        agreement with people.
        """
        found = {figure.raters[1]: figure.raters for figure in figures}
        return [found[grader] for grader in self.by_agreement(rubric, found, ALL_BINARY)]

    @cached_property
    def ranking(self) -> Mapping[str, Sequence[Candidate]]:
        """All graders by rubric, the best choice first."""
        return rank_graders(self.analysis.results, self.analysis.verdicts)

    def graders(self, rubric: str, subset: str) -> list[str]:
        """The graders that were compared with people, by their agreement with people."""
        seen: dict[str, None] = {}
        for statistic in (self.usual(rubric, subset), CEILING):
            for figure in self.figures.select(rubric, statistic, subset):
                first, second = figure.raters
                if first == "humans" and second and second not in BASELINES:
                    seen[second] = None
        return self.by_agreement(rubric, seen, subset)

    def pairs(self, rubric: str, statistic: str, subset: str) -> list[tuple[str, str]]:
        """The pairs of single raters that a statistic is given for."""
        found = (figure.raters for figure in self.figures.select(rubric, statistic, subset))
        return [(first, second) for first, second in found if second and first != "humans"]

    def raters(self, rubric: str) -> list[str]:
        """The single raters of the listed pairs: people, then graders by agreement with them."""
        pairs = self.pairs(rubric, self.usual(rubric, ALL), ALL)
        found = dict.fromkeys(rater for pair in pairs for rater in pair)
        graders = self.graders(rubric, ALL)
        return [rater for rater in found if rater not in graders] + [
            grader for grader in graders if grader in found
        ]

    def groups(self, rubric: str, subset: str) -> list[str]:
        """The groups worth a row: those that have two raters and repeat no other group."""
        found = self.figures.select(rubric, self.usual(rubric, subset), subset)
        given = {figure.raters[0] for figure in found if not figure.raters[1]}
        if {"humans", "models"} - given:
            given.discard("all")
        if len(self.graders(rubric, subset)) == 1:
            given.discard("models")
        return [name for name in GROUPS if name in given]

    def alphas(self, rubric: str, subset: str) -> list[str]:
        """The alphas worth a column: the nominal one only if it is the only one."""
        metric = ("ordinal", "interval", "masi")
        names = [f"krippendorff_alpha_{each}" for each in metric]
        given = [name for name in names if self.figures.select(rubric, name, subset)]
        return given or ["krippendorff_alpha_nominal"]

    def kappa(self, rubric: str, subset: str) -> str:
        """The kappa that decides: weighted where the categories are ordered."""
        weighted = f"weighted_kappa_{self.analysis.settings.ordered}"
        return weighted if self.figures.select(rubric, weighted, subset) else "cohen_kappa"

    def usual(self, rubric: str, subset: str) -> str:
        """The statistic that all raters have who share units: of numbers there is no observed
        agreement.
        """
        of_numbers = self.figures.select(rubric, "mean_number", subset)
        return self.kappa(rubric, subset) if of_numbers else "observed_agreement"

    def default_threshold(self, rubric: str, raters: tuple[str, str]) -> str:
        """Return the threshold that tuning is compared with, as the rows write it; empty where
        nothing could be tuned.

        It is the rubric's threshold, or the one that was declared.
        """
        for figure in self.figures.select(rubric, "cohen_kappa_at_threshold", ALL_BINARY):
            usual = figure.says("default_threshold") or figure.says("declared_threshold")
            if figure.raters == raters and usual:
                return figure.at
        return ""

    def row(
        self,
        rubric: str,
        statistics: list[str],
        raters: tuple[str, str],
        subset: str,
        at: str = "",
    ) -> list[Figure | None]:
        """The figures of two raters (or of a group), one for each statistic."""
        return [self.figures.get(rubric, name, *raters, subset, at) for name in statistics]

    def caption(self, rubric: str, what: str) -> str:
        """The caption of a table or figure on one rubric."""
        return written("naming.about", whom=self.context.title_of(rubric), what=what)

    def marked(self, caption: str) -> str:
        """The caption of a table shown outside its page, which would state once that it is
        synthetic.
        """
        return f"{caption}{SYNTHETIC}" if self.context.synthetic else caption
