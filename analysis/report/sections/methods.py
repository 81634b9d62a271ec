"""Section on methods: provenance, the statistics in use, and the paragraphs on methods and results
to paste into a paper, with their references (`references.bib`).

`paragraphs` puts the text together from sentences of texts.toml: `_methods` and `_results` yield
those that apply to the analysis, with its numbers.
"""

import math
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from evenhand.analysis.bias.audit import PLANNED, SCREENED, by_orders
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.labels.matrix import listed
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.raters import COST
from evenhand.analysis.report import blocks
from evenhand.analysis.report import source as src
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for, statistics
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.rubrics.loading import own_prompt_raters
from evenhand.texts import number_of, written


def section(source: src.Source) -> blocks.ReportSection:
    """Make the section: provenance, conventions and a glossary of the statistics in use."""
    facts = []
    for name, fact in source.context.facts.items():
        facts.append((name, f"{fact:g}" if isinstance(fact, float) else str(fact)))
    for threshold in source.analysis.thresholds:
        title = source.context.title_of(threshold.rubric)
        name = written("methods.threshold_of", grader=threshold.grader, rubric=title)
        facts.append((name, f"{threshold.threshold:g} ({threshold.provenance})"))
    provenance: blocks.Block = blocks.Paragraph(written("methods.unknown"))
    if facts:
        provenance = blocks.Definitions(written("methods.provenance"), tuple(facts))
    parts = (
        blocks.Part(title=written("methods.paragraph"), folded=(paragraphs(source),)),
        blocks.Part(title=written("methods.provenance"), folded=(provenance, *_usage(source))),
    )
    terms = blocks.Definitions(written("methods.statistics"), _statistics(source))
    uses_holm = source.analysis.decision.across_rubrics == "holm"
    keys = ("intervals", "verdicts", "level_holm" if uses_holm else "level", "chance", "files")
    about = tuple(written(f"methods.{key}", rule=source.analysis.rule) for key in keys)
    answers = (blocks.Answer((written("report.methods"),)),)
    appendix = (blocks.Part(title=terms.title, folded=(terms,)),)
    title = written("methods.title")
    return blocks.ReportSection("methods", title, (), answers, parts, about, appendix)


def _usage(source: src.Source) -> list[blocks.Table]:
    """Tabulate the cost of graders, with the number of their attempts."""
    rows: list[src.FigureRow] = []
    for figures in source.rubrics:
        rows.append((figures.title, None))
        rows += [(figure.grader, [figure]) for figure in figures.select(COST)]
    spec = src.TableSpec(count=written("methods.attempts"))
    return src.make_table(written("methods.usage"), "Grader", [entry_for(COST).label], rows, spec)


def _statistics(source: src.Source) -> tuple[tuple[str, str], ...]:
    """Explain the statistics in use: in the order of statistics.toml, then their variants."""
    used = dict.fromkeys(figure.statistic for figure in source.figures.values())
    in_order = dict.fromkeys(name for name in statistics() if name in used) | used
    entries = [entry for entry in map(entry_for, in_order) if entry.meaning]
    texts = (". ".join(filter(None, (entry.meaning, entry.source))) + "." for entry in entries)
    return tuple(zip((f"{entry.name} ({entry.label})" for entry in entries), texts, strict=True))


# The paragraphs to paste

_CITED = re.compile(r" \[([a-z]+\d{4}(?:, [a-z]+\d{4})*)\]")  # " [rogan1978, cohen1960]"
# In BibTeX: fields with their values, and entries with their keys.
_FIELD = re.compile(r"\b(author|year) = \{(.*?)\}(?:,|$)", re.MULTILINE)
_ENTRY = re.compile(r"@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)

_SENTENCES = {
    "krippendorff_alpha_": "alpha", "icc_a1": "icc", "alt_test_winning_rate": "alt_test",
    "threshold_recommended": "tuned", "reliability": "calibration",
    **dict.fromkeys((*PLANNED, *SCREENED), "bias"), "rate_rogan_gladen": "rogan_gladen",
    **dict.fromkeys(("rate_ppi", "win_rate_ppi", "mean_ppi", "prevalence_ppi"), "ppi"),
    "strength": "bradley_terry",
}  # fmt: skip
"""Key of the sentence on a statistic, by how its name begins; for statistics with an estimate."""


def paragraphs(source: src.Source) -> blocks.Quotable:
    """Return the paragraphs on methods and results, with authors, years and references."""

    def with_authors(citation: re.Match[str]) -> str:
        return f" ({'; '.join(map(_author_and_year, citation[1].split(', ')))})"

    texts = list(filter(None, (" ".join(_methods(source)), " ".join(_results(source)))))
    text = "\n\n".join(texts)
    keys = dict.fromkeys(key for citation in _CITED.findall(text) for key in citation.split(", "))
    latex = ""
    for n, piece in enumerate(_CITED.split(text)):  # even n: plain text; odd n: cited keys
        latex += blocks.tex(piece) if n % 2 == 0 else rf" \citep{{{piece.replace(', ', ',')}}}"
    return blocks.Quotable(
        title=written("methods.paste"),
        texts=tuple(_CITED.sub(with_authors, text) for text in texts),
        tex=latex,
        bibtex="\n\n".join(references()[key] for key in keys) + "\n",
    )


@cache
def references() -> dict[str, str]:
    """Read the references as BibTeX, by key."""
    text = files("evenhand.analysis.report.sections").joinpath("references.bib").read_text("utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


def _author_and_year(key: str) -> str:
    """Return the authors and the year of a reference.

    >>> _author_and_year("rogan1978"), _author_and_year("calderon2025")
    ('Rogan & Gladen 1978', 'Calderon, Reichart & Dror 2025')
    """
    fields = dict(_FIELD.findall(references()[key]))
    names = [author.partition(",")[0] for author in fields["author"].split(" and ")]
    authors = " & ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{authors} {fields['year']}"


def _uncited(text: str) -> str:
    """Replace square brackets, as `_CITED` would take those in users' names for citations."""
    return text.replace("[", "(").replace("]", ")")


def _methods(source: src.Source) -> Iterator[str]:
    """Yield the sentences on methods."""
    if source.context.synthetic:
        yield written("methods_text.synthetic")
    for sentences_of in (_labels, _grading, _agreement, _decisions, _computed):
        yield from sentences_of(source)
    version = source.context.facts.get("evenhand")
    key = "made_with_version" if version else "made_with"
    yield written(f"methods_text.{key}", version=version)


def _on_rubric(source: src.Source, rubric: str, text: str) -> str:
    """Return a sentence on one rubric, with the rubric's title if the rubric has a name."""
    if not rubric:
        return _uncited(text[0].upper() + text[1:])
    title = source.context.title_of(rubric)
    return _uncited(written("methods_text.on", rubric=title, sentence=text))


def _labels(source: src.Source) -> Iterator[str]:
    """Yield the numbers of annotators and of items that they labelled, rubric by rubric."""
    for rubric, counts in source.analysis.counts.items():
        if not counts.annotators:
            continue
        noun = source.analysis.cluster_nouns.get(rubric, "cluster")
        fields = {"annotators": number_of(counts.annotators, "annotator")}
        fields |= {"items": number_of(counts.items, "item")}
        fields |= {"clusters": number_of(counts.clusters, noun)}
        key = "who" if counts.clusters == counts.items else "who_in_clusters"
        yield _on_rubric(source, rubric, written(f"methods_text.{key}", **fields))
        if counts.annotators > 1:
            key = "all_shared" if counts.shared == counts.items else "shared"
            yield written(f"methods_text.{key}", items=number_of(counts.shared, "item"))
        if counts.missing:
            yield written("methods_text.missing", labels=number_of(counts.missing, "label"))
        if counts.excluded:
            yield written("methods_text.excluded", raters=number_of(counts.excluded, "rater"))
        if counts.selection:
            yield _uncited(counts.selection)


def _grading(source: src.Source) -> Iterator[str]:
    """Yield the graders, with their orders, prompts and thresholds."""
    for rubric, counts in source.analysis.counts.items():
        if names := counts.graders:
            key = "graders" if len(names) > 1 else "one_grader"
            fields = {"graders": number_of(len(names), "LLM grader"), "names": listed(names)}
            yield _on_rubric(source, rubric, written(f"methods_text.{key}", **fields))
    for rubric, orders in source.analysis.orders.items():
        for order, graders in by_orders(orders).items():
            key = "both_orders" if order == "both_orders" else "one_order"
            text = written(f"methods_text.{key}", graders=listed(graders))
            yield _on_rubric(source, rubric, text)
    for figures in source.rubrics:
        # Graders that were asked by a prompt of their own read another text than the annotators.
        if graders := own_prompt_raters(figures.graders(), source.analysis.ids):
            sentence = written("methods_text.own_prompt", graders=listed(graders))
            yield _on_rubric(source, figures.rubric, sentence)
    for grader, models in source.context.answered.items():
        yield _uncited(written("methods_text.answered", grader=grader, models=listed([*models])))
    for used in source.analysis.thresholds:
        key = "tuned" if used.tuning else "declared" if used.origin == "declared" else "default"
        about = {"grader": used.grader, "threshold": used.threshold, "tuned": used.provenance}
        yield _on_rubric(source, used.rubric, written(f"methods_text.threshold_{key}", **about))


def _agreement(source: src.Source) -> Iterator[str]:
    """Yield the measure of agreement, and what graders are compared with."""
    estimated = _estimated(source)
    if kappas := estimated & {figures.kappa() for figures in source.rubrics}:
        weighted = next((name for name in sorted(kappas) if name != "cohen_kappa"), "")
        key = "weighted_kappa" if weighted else "kappa"
        yield written(f"methods_text.{key}", weights=weighted.removeprefix("weighted_kappa_"))
    decision = source.analysis.decision
    if decision.reference:
        yield _uncited(written("methods_text.reference", reference=decision.reference))
    elif CEILING in estimated:
        share, margin = decision.margin_share, source.analysis.settings.margin
        key = "ceiling_share" if share else "ceiling"
        yield written(f"methods_text.{key}", share=share, margin=margin)


def _decisions(source: src.Source) -> Iterator[str]:
    """Yield the levels at which verdicts were given."""
    bounds_by_rubric: dict[str, Deciding] = {}
    for row in source.analysis.rows:
        if (bounds := row["deciding"]) and bounds.alpha > 0:  # 0 or NaN: no bounds at a level
            bounds_by_rubric.setdefault(row["rubric"], bounds)  # the first are on all items
    if bounds_by_rubric:
        uses_holm = source.analysis.decision.across_rubrics == "holm"
        yield written("methods_text.level_holm" if uses_holm else "methods_text.level")
    for rubric, bounds in bounds_by_rubric.items():
        comparisons = number_of(bounds.comparisons, "comparison")
        fields = {"level": 1.0 - bounds.alpha, "graders": comparisons, "look": bounds.look}
        yield _on_rubric(source, rubric, written("methods_text.bounds", **fields))
    if any(verdict["chance"] is not None for verdict in source.analysis.verdicts):
        yield written("methods_text.chance")


def _computed(source: src.Source) -> Iterator[str]:
    """Yield the method of intervals, and further statistics."""
    analysis, settings = source.analysis, source.analysis.settings
    estimated = _estimated(source)
    if not all(math.isnan(row["low"]) for row in analysis.rows):
        fields = {"resamples": settings.resamples, "resampled": _resampled(source)}
        yield written("methods_text.intervals", **fields)
    used = (prefix for prefix in _SENTENCES if any(name.startswith(prefix) for name in estimated))
    is_numeric = "gwet_ac1" not in estimated  # AC1 needs categories
    for name in dict.fromkeys(_SENTENCES[prefix] for prefix in used):
        key = "alpha_interval" if name == "alpha" and is_numeric else name
        yield written(f"methods_text.{key}", epsilon=settings.epsilon)
    if analysis.verification is not None and analysis.verification.compared:
        yield written("methods_text.verified")


def _resampled(source: src.Source) -> str:
    """Name the clusters that are resampled."""
    cluster, rows = source.analysis.settings.cluster, source.analysis.rows
    if cluster == "unit" or all(row["n_clusters"] in (0, row["n_units"]) for row in rows):
        return written("methods_text.items")
    if cluster != "pair":
        return written("methods_text.clusters_by", column=cluster)
    is_study = "study" in source.context.facts
    return written("methods_text.pairs" if is_study else "methods_text.clusters_of_items")


def _results(source: src.Source) -> Iterator[str]:
    """Yield the sentences on results: on each rubric human agreement, then each grader."""
    for figures in source.rubrics:
        people = figures.get(figures.kappa(), "humans")
        if people is not None and not people.reason:
            fields = {"kappa": _interval(people), "items": number_of(people.n_units, "item")}
            yield _on_rubric(source, figures.rubric, written("results_text.people", **fields))
        for verdict in source.analysis.verdicts:
            if verdict["rubric"] == figures.rubric:
                yield _result(figures, verdict)


def _result(figures: src.RubricFigures, verdict: Verdict) -> str:
    """State a grader's kappa, human agreement on the same items, and the verdict."""
    source, reference = figures.source, figures.analysis.decision.reference
    kappas = [figures.by_key(tuple(key)) for key in verdict["kappas"]]  # the grader's, people's
    if reference:  # the verdict's row has one-sided bounds; the plain one the 95% interval
        subset = kappas[0].subset if kappas and kappas[0] else src.ALL
        kappas = [figures.get(figures.kappa(subset), reference, verdict["grader"], subset)]
    estimated = [kappa for kappa in kappas if kappa and not kappa.reason]
    title = TITLES[verdict["verdict"]].words.lower()
    if verdict["threshold"] is not None:
        title = f"{title} ({verdict['threshold']:.3g})"
    fields = {"grader": verdict["grader"], "verdict": title}
    has_all_kappas = bool(kappas) and len(estimated) == len(kappas)
    if not has_all_kappas:
        text = written("results_text.no_comparison", reason=verdict["reason"], **fields)
    else:
        grader, people = estimated[0], estimated[-1]  # the same one with a reference
        binary = f"{written('results_text.binary')} " if grader.subset == src.ALL_BINARY else ""
        fields |= {"kappa": _interval(grader), "items": number_of(grader.n_units, "item")}
        fields |= {"people": people.estimate, "reference": reference, "binary": binary}
        text = written(f"results_text.{'reference' if reference else 'grader'}", **fields)
    return _on_rubric(source, figures.rubric, text)


def _interval(figure: src.Figure) -> str:
    """Return an estimate with its 95% interval in round brackets, as in papers."""
    if not figure.interval:
        return figure.estimate
    low, high = figure.interval.strip("[]").split(", ")
    return f"{figure.estimate} (95% CI {low} to {high})"


def _estimated(source: src.Source) -> set[str]:
    """Return the statistics with an estimate, not counting baselines' and people's own rates."""
    figures = (figure for figure in source.figures.values() if not figure.reason)
    rater_figures = (figure for figure in figures if set(BASELINES).isdisjoint(figure.raters))
    return {figure.statistic for figure in rater_figures if not figure.has_remark("peoples_own")}
