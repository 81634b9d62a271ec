"""Methods and provenance: the origin of the labels, each statistic explained, and a paragraph to
paste into a paper, on the methods used here, with its references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain, zip_longest

from evenhand.analysis.bias.audit import by_orders
from evenhand.analysis.labels.matrix import listed
from evenhand.analysis.raters.pace import COST
from evenhand.analysis.report import blocks
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.tables import FigureRow, make_table, tex
from evenhand.analysis.statistics import entry_for, statistics
from evenhand.rubrics.own_words import with_own_prompt
from evenhand.texts import written

_CITED = re.compile(r" \[([a-z]+\d{4}(?:, [a-z]+\d{4})*)\]")
_FIELD = re.compile(r"\b(author|year) = \{(.*?)\}(?:,|$)", re.MULTILINE)
_ENTRY = re.compile(r"@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)

_SAID = {
    "krippendorff_alpha_": "alpha",
    "icc_a1": "icc",
    "alt_test_winning_rate": "alt_test",
    "threshold_recommended": "thresholds",
    "reliability": "calibration",
    "bias_": "bias",
    "rate_rogan_gladen": "rogan_gladen",
    "rate_ppi": "ppi",
    "win_rate_ppi": "ppi",
    "strength": "bradley_terry",
}
"""Sentence for results that include a statistic whose name begins like this."""


def section(source: Source) -> blocks.ReportSection:
    """Provenance, conventions and the glossary of the statistics in use."""
    facts = [
        (name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in source.context.facts.items()
    ]
    for each in source.analysis.thresholds:
        title = source.context.title_of(each.rubric)
        whose = written("methods.threshold_of", grader=each.grader, rubric=title)
        facts.append((whose, f"{each.threshold:g} ({each.provenance})"))
    origin: blocks.Block = blocks.Paragraph(written("methods.unknown"))
    if facts:
        origin = blocks.Definitions(written("methods.provenance"), tuple(facts))
    parts: dict[str, list[blocks.Block]] = {
        written("methods.paragraph"): [methods_text(source)],
        written("methods.provenance"): [origin, *_usage(source)],
    }
    terms = blocks.Definitions(written("methods.statistics"), _statistics(source))
    holm = source.analysis.decision.across_rubrics == "holm"
    about = [
        written("methods.intervals"),
        written("methods.verdicts", rule=source.analysis.rule),
        written("methods.level_holm" if holm else "methods.level"),
        written("methods.chance"),
    ]
    return blocks.ReportSection(
        "methods",
        written("methods.title"),
        answers=(blocks.Answer((written("report.methods"),)),),
        parts=tuple(blocks.Part(title, "", folded=tuple(made)) for title, made in parts.items()),
        about=(*about, written("methods.files")),
        appendix=(blocks.Part(terms.title, "", folded=(terms,)),),
    )


def _usage(source: Source) -> list[blocks.Table]:
    """Tabulate what graders cost, with their attempts."""
    rows: list[FigureRow] = []
    for figures in source.rubrics:
        rows.append((figures.title, None))
        rows += [(figure.grader, [figure]) for figure in figures.select(COST)]
    what, attempts = written("methods.usage"), written("methods.attempts")
    return make_table(what, "Grader", [entry_for(COST).label], rows, count=attempts)


def _statistics(source: Source) -> tuple[tuple[str, str], ...]:
    """Explain the statistics in use: those of the table in its order, then their variants."""
    used = source.figures.statistics
    named = [name for name in statistics() if name in used]
    entries = map(entry_for, [*named, *(name for name in used if name not in named)])
    return tuple(
        (f"{each.name} ({each.label})", ". ".join(filter(None, (each.meaning, each.source))) + ".")
        for each in entries
        if each.meaning
    )


def methods_text(source: Source) -> blocks.Quotable:
    """The paragraph with authors and years, and the references in it as BibTeX."""
    text = " ".join(_sentences(source))
    keys = dict.fromkeys(key for found in _CITED.findall(text) for key in found.split(", "))
    entries = references()
    parts = _CITED.split(text)  # plain text and keys by turns
    cited = [rf" \citep{{{each.replace(', ', ',')}}}" for each in parts[1::2]]
    return blocks.Quotable(
        title=written("methods.paste"),
        text=_CITED.sub(
            lambda found: f" ({'; '.join(map(_by_author, found[1].split(', ')))})", text
        ),
        tex="".join(chain.from_iterable(zip_longest(map(tex, parts[::2]), cited, fillvalue=""))),
        bibtex="\n\n".join(entries[key] for key in keys) + "\n",
    )


@cache
def references() -> dict[str, str]:
    """Read all references as BibTeX, by key."""
    text = files("evenhand.analysis.report.sections").joinpath("references.bib").read_text("utf-8")
    return {found[1]: found[0] for found in _ENTRY.finditer(text)}


def _by_author(key: str) -> str:
    """Author and year as in the text.

    >>> _by_author("rogan1978"), _by_author("calderon2025")
    ('Rogan & Gladen 1978', 'Calderon, Reichart & Dror 2025')
    """
    fields = dict(_FIELD.findall(references()[key]))
    authors, year = fields["author"], fields["year"]
    names = [each.partition(",")[0] for each in authors.split(" and ")]
    return f"{' & '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} {year}"


def _sentences(source: Source) -> Iterator[str]:
    analysis, settings = source.analysis, source.analysis.settings
    statistics = source.figures.statistics
    if source.context.synthetic:
        yield written("methods_text.synthetic")
    for figures in source.rubrics:
        group = figures.between(figures.usual(), "humans")[:1]
        own = any(each.n_clusters != each.n_units for each in group)
        for each in group:
            yield written(
                "methods_text.who_in_clusters" if own else "methods_text.who",
                rubric=_uncited(figures.title),
                annotators=analysis.annotators.get(figures.rubric, 0),
                units=each.n_units, clusters=each.n_clusters, graders=len(figures.graders()),
            )  # fmt: skip
    for rubric, seen in analysis.orders.items():
        title = _uncited(source.context.title_of(rubric))
        for name, graders in by_orders(seen).items():
            key = "both_orders" if name == "both_orders" else "one_order"
            yield written(f"methods_text.{key}", rubric=title, graders=listed(graders))
    for figures in source.rubrics:
        if graders := with_own_prompt(figures.graders()):  # another text than the annotators'
            title = _uncited(figures.title)
            yield written("methods_text.own_prompt", rubric=title, graders=listed(graders))
    for grader, models in source.context.answered.items():
        said = written("methods_text.answered", grader=grader, models=listed([*models]))
        yield _uncited(said)
    weighted = any(figures.kappa() != "cohen_kappa" for figures in source.rubrics)
    yield written("methods_text.weighted_kappa" if weighted else "methods_text.kappa")
    if "human_ceiling_difference" in statistics:
        if share := analysis.decision.margin_share:
            yield written("methods_text.ceiling_share", share=share)
        else:
            yield written("methods_text.ceiling", margin=settings.margin)
    if analysis.verdicts:
        holm = analysis.decision.across_rubrics == "holm"
        yield written("methods_text.level_holm" if holm else "methods_text.level")
    if "chance_within_margin" in statistics:
        yield written("methods_text.chance")
    yield written(
        "methods_text.intervals",
        kind="BCa" if settings.interval == "bca" else "percentile",
        resamples=settings.resamples,
        resampled=_resampled(source),
    )
    begun = (begins for begins in _SAID if any(name.startswith(begins) for name in statistics))
    used = dict.fromkeys(_SAID[begins] for begins in begun)
    for said in used:
        without = said == "alpha" and "gwet_ac1" not in statistics
        key = "alpha_interval" if without else said
        yield written(f"methods_text.{key}", epsilon=settings.epsilon)
    if analysis.verification is not None:
        yield written("methods_text.verified")
    version = source.context.facts.get("evenhand")
    yield written(
        "methods_text.made_with_version" if version else "methods_text.made_with", version=version
    )


def _uncited(text: str) -> str:
    """A text that is taken for no citation."""
    return text.replace("[", "(").replace("]", ")")


def _resampled(source: Source) -> str:
    cluster = source.analysis.settings.cluster
    rows = source.analysis.rows
    if cluster == "unit" or all(row["n_clusters"] in (0, row["n_units"]) for row in rows):
        return written("methods_text.units")
    if cluster != "pair":
        return written("methods_text.clusters_by", column=cluster)
    of_study = "clusters" in source.context.facts
    return written("methods_text.pairs" if of_study else "methods_text.clusters_of_units")
