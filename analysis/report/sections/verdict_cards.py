"""The first page: advice on each rubric, every verdict with its reason, and the limits."""

from __future__ import annotations

from evenhand.analysis.raters.pace import PRICE
from evenhand.analysis.report import blocks
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure
from evenhand.analysis.report.source import Source, rater_title
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import Verdict, limits_of
from evenhand.analysis.verdicts.ranking import recommendations
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.texts import written


def section(source: Source) -> blocks.ReportSection:
    """The answer for each rubric, a cell for each rubric and grader, and all verdicts in full."""
    verdicts = source.analysis.verdicts
    made: list[blocks.Block] = [blocks.Paragraph(written("first.no_verdict"))]
    if verdicts:
        cards = tuple(_card(source, each) for each in verdicts)
        in_full = blocks.Cards(written("first.in_full"), cards)
        made = [_first(source), _overview(source, cards), in_full]
    before = blocks.items(written("first.before"), (*limits_of(verdicts), *source.notes))
    return blocks.ReportSection("verdicts", written("first.title"), (*made, *before))


def _first(source: Source) -> blocks.FirstPage:
    """Advice with people's agreement with one another; how many people labelled, and when."""
    advice = []
    for found in recommendations(source.ranking):
        figures = source.on(found.rubric)
        agreed = (figures.get(figures.kappa(on), "humans", "", on) for on in (ALL, ALL_BINARY))
        people, sample = next((each for each in agreed if each and not each.reason), None), ""
        if people:
            noun = source.analysis.cluster_nouns.get(found.rubric, "cluster")
            sample = written(
                "first.units" if noun == "unit" else "first.sample",
                units=people.n_units, clusters=people.n_clusters, noun=noun,
            )  # fmt: skip
        cell = people.cell if people else None
        advice.append(blocks.Advice(figures.title, found.sentence, cell, sample))
    facts = source.context.facts
    said = []
    if number := facts.get("human raters"):
        said.append(written("first.one_person" if number == 1 else "first.people", people=number))
    if when := facts.get("ratings given"):
        said.append(written("first.dates", when=when))
    return blocks.FirstPage(tuple(advice), tuple(said))


def _overview(source: Source, cards: tuple[blocks.Card, ...]) -> blocks.Overview:
    rubrics = dict.fromkeys(card.rubric for card in cards)
    graders = dict.fromkeys(card.grader for card in cards)
    by_place = {(card.grader, card.rubric): card for card in cards}
    return blocks.Overview(
        written("first.legend_reference" if source.analysis.decision.reference else "first.legend"),
        tuple(rubrics),
        tuple((name, tuple(by_place.get((name, each)) for each in rubrics)) for name in graders),
    )


def _card(source: Source, verdict: Verdict) -> blocks.Card:
    title = TITLES[verdict["verdict"]]
    figures = [source.figures.by_key(tuple(key)) for key in verdict["evidence"]]
    kappas = [source.figures.by_key(tuple(key)) for key in verdict["kappas"]]
    own, people = [*(each.cell if each else None for each in kappas), None, None][:2]
    price = source.on(verdict["rubric"]).get(PRICE, "", verdict["grader"])
    return blocks.Card(
        verdict=verdict["verdict"],
        word=title.words,
        icon=title.icon,
        rubric=source.context.title_of(verdict["rubric"]),
        grader=verdict["grader"],
        sentence=verdict["sentence"],
        reason=verdict["reason"],
        kappas=(own, people),
        price=price.cell if price and not price.reason else None,
        evidence=tuple(_evidence(figure) for figure in figures if figure is not None),
    )


def _evidence(figure: Figure) -> tuple[str, blocks.Cell]:
    other = rater_title(figure.grader)
    parts = [other] if other.startswith("Baseline") else []
    parts.append(entry_for(figure.statistic).label)
    if figure.subset == ALL_BINARY:
        parts.append(written("naming.binary_verdict"))
    return ", ".join(parts), figure.cell
