"""Methods and provenance: the origin of the labels, each statistic explained, and the paragraphs to
paste into a paper, Methods and Results, with the references that they cite.

A clause stands there only where what it says was done in this analysis, with its numbers; a result
is the row of results.csv that its verdict rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain, zip_longest

from evenhand.analysis.bias.audit import PLANNED, SCREENED, by_orders
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.labels.matrix import listed
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.raters import COST
from evenhand.analysis.report import blocks
from evenhand.analysis.report.blocks import tex
from evenhand.analysis.report.source import (
    ALL,
    ALL_BINARY,
    Figure,
    FigureRow,
    RubricFigures,
    Source,
    TableSpec,
    make_table,
)
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for, statistics
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.rubrics.loading import own_prompt_raters
from evenhand.texts import number_of, written


def section(source: Source) -> blocks.ReportSection:
    """Provenance, conventions and the glossary of the statistics in use."""
    facts = [
        (name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in source.context.facts.items()
    ]
    for threshold in source.analysis.thresholds:
        title = source.context.title_of(threshold.rubric)
        whose = written("methods.threshold_of", grader=threshold.grader, rubric=title)
        facts.append((whose, f"{threshold.threshold:g} ({threshold.provenance})"))
    origin: blocks.Block = blocks.Paragraph(written("methods.unknown"))
    if facts:
        origin = blocks.Definitions(written("methods.provenance"), tuple(facts))
    parts = (
        blocks.Part(title=written("methods.paragraph"), folded=(paragraphs(source),)),
        blocks.Part(title=written("methods.provenance"), folded=(origin, *_usage(source))),
    )
    terms = blocks.Definitions(written("methods.statistics"), _statistics(source))
    holm = source.analysis.decision.across_rubrics == "holm"
    about = (
        written("methods.intervals"),
        written("methods.verdicts", rule=source.analysis.rule),
        written("methods.level_holm" if holm else "methods.level"),
        written("methods.chance"),
        written("methods.files"),
    )
    answers = (blocks.Answer((written("report.methods"),)),)
    appendix = (blocks.Part(title=terms.title, folded=(terms,)),)
    title = written("methods.title")
    return blocks.ReportSection("methods", title, (), answers, parts, about, appendix)


def _usage(source: Source) -> list[blocks.Table]:
    """Tabulate what graders cost, with their attempts."""
    rows: list[FigureRow] = []
    for figures in source.rubrics:
        rows.append((figures.title, None))
        rows += [(figure.grader, [figure]) for figure in figures.select(COST)]
    spec = TableSpec(count=written("methods.attempts"))
    return make_table(written("methods.usage"), "Grader", [entry_for(COST).label], rows, spec)


def _statistics(source: Source) -> tuple[tuple[str, str], ...]:
    """Explain the statistics in use: those of the table in its order, then their variants."""
    used = dict.fromkeys(figure.statistic for figure in source.figures.values())
    in_order = dict.fromkeys(name for name in statistics() if name in used) | used
    entries = (entry for entry in map(entry_for, in_order) if entry.meaning)
    return tuple(
        (f"{stat.name} ({stat.label})", ". ".join(filter(None, (stat.meaning, stat.source))) + ".")
        for stat in entries
    )


# The paragraphs to paste

_CITED = re.compile(r" \[([a-z]+\d{4}(?:, [a-z]+\d{4})*)\]")
_FIELD = re.compile(r"\b(author|year) = \{(.*?)\}(?:,|$)", re.MULTILINE)
_ENTRY = re.compile(r"@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)

_SENTENCES = {
    "krippendorff_alpha_": "alpha",
    "icc_a1": "icc",
    "alt_test_winning_rate": "alt_test",
    "threshold_recommended": "tuned",
    "reliability": "calibration",
    **dict.fromkeys((*PLANNED, *SCREENED), "bias"),
    "rate_rogan_gladen": "rogan_gladen",
    "rate_ppi": "ppi",
    "win_rate_ppi": "ppi",
    "mean_ppi": "ppi",
    "prevalence_ppi": "ppi",
    "strength": "bradley_terry",
}
"""Sentence for results of raters with an estimate of a statistic whose name begins like this."""


def paragraphs(source: Source) -> blocks.Quotable:
    """Return the Methods paragraph with authors and years, the Results paragraph below it where
    there are results, and the references in them as BibTeX.
    """
    texts = [" ".join(made) for make in (_methods, _results) if (made := list(make(source)))]
    text = "\n\n".join(texts)
    keys = dict.fromkeys(key for citation in _CITED.findall(text) for key in citation.split(", "))
    parts = _CITED.split(text)  # plain text and keys by turns
    cited = [rf" \citep{{{part.replace(', ', ',')}}}" for part in parts[1::2]]
    return blocks.Quotable(
        title=written("methods.paste"),
        texts=tuple(_CITED.sub(_authors_and_years, text) for text in texts),
        tex="".join(chain.from_iterable(zip_longest(map(tex, parts[::2]), cited, fillvalue=""))),
        bibtex="\n\n".join(references()[key] for key in keys) + "\n",
    )


@cache
def references() -> dict[str, str]:
    """Read all references as BibTeX, by key."""
    text = files("evenhand.analysis.report.sections").joinpath("references.bib").read_text("utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


def _authors_and_years(cited: re.Match[str]) -> str:
    return f" ({'; '.join(map(_by_author, cited[1].split(', ')))})"


def _by_author(key: str) -> str:
    """Author and year as in the text.

    >>> _by_author("rogan1978"), _by_author("calderon2025")
    ('Rogan & Gladen 1978', 'Calderon, Reichart & Dror 2025')
    """
    fields = dict(_FIELD.findall(references()[key]))
    authors, year = fields["author"], fields["year"]
    names = [author.partition(",")[0] for author in authors.split(" and ")]
    return f"{' & '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} {year}"


def _uncited(text: str) -> str:
    """Replace the brackets of a text, which would be taken for a citation."""
    return text.replace("[", "(").replace("]", ")")


def _methods(source: Source) -> Iterator[str]:
    if source.context.synthetic:
        yield written("methods_text.synthetic")
    for clauses in (_labels, _grading, _agreement, _decisions, _computed):
        yield from clauses(source)
    version = source.context.facts.get("evenhand")
    key = "made_with_version" if version else "made_with"
    yield written(f"methods_text.{key}", version=version)


def _on(source: Source, rubric: str, text: str) -> str:
    """Return a sentence on one rubric, which names it where it has a name."""
    if not rubric:
        return _uncited(text[0].upper() + text[1:])
    title = source.context.title_of(rubric)
    return _uncited(written("methods_text.on", rubric=title, sentence=text))


def _labels(source: Source) -> Iterator[str]:
    """Yield the numbers of annotators and of items that they labelled, rubric by rubric."""
    for rubric, counts in source.analysis.counts.items():
        if not counts.annotators:
            continue
        noun = source.analysis.cluster_nouns.get(rubric, "cluster")
        about = {"annotators": number_of(counts.annotators, "annotator")}
        about |= {"items": number_of(counts.items, "item")}
        about |= {"clusters": number_of(counts.clusters, noun)}
        key = "who" if counts.clusters == counts.items else "who_in_clusters"
        yield _on(source, rubric, written(f"methods_text.{key}", **about))
        if counts.annotators > 1:
            key = "all_shared" if counts.shared == counts.items else "shared"
            yield written(f"methods_text.{key}", items=number_of(counts.shared, "item"))
        if counts.missing:
            yield written("methods_text.missing", labels=number_of(counts.missing, "label"))
        if counts.excluded:
            yield written("methods_text.excluded", raters=number_of(counts.excluded, "rater"))
        if counts.selection:
            yield _uncited(counts.selection)


def _grading(source: Source) -> Iterator[str]:
    """Yield the graders, with their orders, prompts and thresholds."""
    for rubric, counts in source.analysis.counts.items():
        if names := counts.graders:
            key = "graders" if len(names) > 1 else "one_grader"
            about = {"graders": number_of(len(names), "LLM grader"), "names": listed(names)}
            yield _on(source, rubric, written(f"methods_text.{key}", **about))
    for rubric, seen in source.analysis.orders.items():
        for name, ordered in by_orders(seen).items():
            key = "both_orders" if name == "both_orders" else "one_order"
            yield _on(source, rubric, written(f"methods_text.{key}", graders=listed(ordered)))
    for figures in source.rubrics:
        # Another text than the annotators'.
        if prompted := own_prompt_raters(figures.graders(), source.analysis.ids):
            read = written("methods_text.own_prompt", graders=listed(prompted))
            yield _on(source, figures.rubric, read)
    for grader, models in source.context.answered.items():
        yield _uncited(written("methods_text.answered", grader=grader, models=listed([*models])))
    for cut in source.analysis.thresholds:
        key = "declared" if cut.origin == "declared" else "default"
        key = "tuned" if cut.tuning else key
        fields = {"grader": cut.grader, "threshold": cut.threshold, "tuned": cut.provenance}
        yield _on(source, cut.rubric, written(f"methods_text.threshold_{key}", **fields))


def _agreement(source: Source) -> Iterator[str]:
    """Yield the measure of agreement, and the comparison."""
    estimated = _estimated(source)
    if kappas := estimated & {figures.kappa() for figures in source.rubrics}:
        weighted = next((name for name in sorted(kappas) if name != "cohen_kappa"), "")
        key = "weighted_kappa" if weighted else "kappa"
        yield written(f"methods_text.{key}", weights=weighted.rpartition("_")[2])
    decision = source.analysis.decision
    if decision.reference:
        yield _uncited(written("methods_text.reference", reference=decision.reference))
    elif CEILING in estimated:
        share, margin = decision.margin_share, source.analysis.settings.margin
        key = "ceiling_share" if share else "ceiling"
        yield written(f"methods_text.{key}", share=share, margin=margin)


def _decisions(source: Source) -> Iterator[str]:
    """Yield the levels at which verdicts were given."""
    levels: dict[str, Deciding] = {}
    for row in source.analysis.rows:
        if (bounds := row["deciding"]) and bounds.alpha > 0:
            levels.setdefault(row["rubric"], bounds)  # that on all items comes first
    if levels:
        holm = source.analysis.decision.across_rubrics == "holm"
        yield written("methods_text.level_holm" if holm else "methods_text.level")
    for rubric, bounds in levels.items():
        graders = number_of(bounds.comparisons, "comparison")
        about = {"level": 1.0 - bounds.alpha, "graders": graders, "look": bounds.look}
        yield _on(source, rubric, written("methods_text.bounds", **about))
    if any(verdict["chance"] is not None for verdict in source.analysis.verdicts):
        yield written("methods_text.chance")


def _computed(source: Source) -> Iterator[str]:
    """Yield the method of intervals, and further statistics."""
    analysis, settings = source.analysis, source.analysis.settings
    estimated = _estimated(source)
    if any(row["low"] == row["low"] for row in analysis.rows):
        about = {"resamples": settings.resamples, "resampled": _resampled(source)}
        yield written("methods_text.intervals", **about)
    used = (begins for begins in _SENTENCES if any(name.startswith(begins) for name in estimated))
    for name in dict.fromkeys(_SENTENCES[begins] for begins in used):
        without = name == "alpha" and "gwet_ac1" not in estimated
        key = "alpha_interval" if without else name
        yield written(f"methods_text.{key}", epsilon=settings.epsilon)
    if analysis.verification is not None and analysis.verification.compared:
        yield written("methods_text.verified")


def _resampled(source: Source) -> str:
    """Name the units that a resample is drawn from."""
    cluster = source.analysis.settings.cluster
    rows = source.analysis.rows
    if cluster == "unit" or all(row["n_clusters"] in (0, row["n_units"]) for row in rows):
        return written("methods_text.items")
    if cluster != "pair":
        return written("methods_text.clusters_by", column=cluster)
    of_study = "study" in source.context.facts
    return written("methods_text.pairs" if of_study else "methods_text.clusters_of_items")


def _results(source: Source) -> Iterator[str]:
    for figures in source.rubrics:
        people = figures.get(figures.kappa(), "humans")
        if people is not None and not people.reason:
            about = {"kappa": _interval(people), "items": number_of(people.n_units, "item")}
            yield _on(source, figures.rubric, written("results_text.people", **about))
        for verdict in source.analysis.verdicts:
            if verdict["rubric"] == figures.rubric:
                yield _result(figures, verdict)


def _result(figures: RubricFigures, verdict: Verdict) -> str:
    """State a grader's kappa, human agreement on the same items, and the verdict."""
    source, reference = figures.source, figures.analysis.decision.reference
    kappas = [figures.by_key(tuple(key)) for key in verdict["kappas"]]
    if reference:  # whose rows have one-sided bounds; the plain row has the 95% interval
        on = kappas[0].subset if kappas and kappas[0] else ALL
        kappas = [figures.get(figures.kappa(on), reference, verdict["grader"], on)]
    compared = [figure for figure in kappas if figure and not figure.reason]
    judged = TITLES[verdict["verdict"]].words.lower()
    if verdict["threshold"] is not None:
        judged = f"{judged} ({verdict['threshold']:.3g})"
    about = {"grader": verdict["grader"], "verdict": judged}
    if len(compared) < len(kappas) or not compared:
        text = written("results_text.no_comparison", reason=verdict["reason"], **about)
    else:
        grader, key = compared[0], "reference" if reference else "grader"
        binary = f"{written('results_text.binary')} " if grader.subset == ALL_BINARY else ""
        about |= {"kappa": _interval(grader), "items": number_of(grader.n_units, "item")}
        about |= {"people": compared[-1].estimate, "reference": reference, "binary": binary}
        text = written(f"results_text.{key}", **about)
    return _on(source, figures.rubric, text)


def _interval(figure: Figure) -> str:
    """An estimate with its 95% interval, in round brackets as papers have it."""
    if not figure.interval:
        return figure.estimate
    low, high = figure.interval.strip("[]").split(", ")
    return f"{figure.estimate} (95% CI {low} to {high})"


def _estimated(source: Source) -> set[str]:
    """Return the statistics with an estimate; baselines' and annotators' own figures left out."""
    return {
        figure.statistic
        for figure in source.figures.values()
        if not (figure.reason or figure.says("peoples_own") or {*BASELINES} & {*figure.raters})
    }
