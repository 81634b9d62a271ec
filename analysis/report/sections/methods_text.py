"""A methods paragraph to paste into a paper, made of what was done here, with its references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain, zip_longest

from evenhand.analysis.report.blocks import Quotable
from evenhand.analysis.report.figures import ALL
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_files import tex

_CITED = re.compile(r" \[([a-z]+\d{4}(?:, [a-z]+\d{4})*)\]")
_ENTRY = re.compile(r"@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)

_SAID = (
    (
        "krippendorff_alpha_",
        "Agreement of the human raters as a group was also measured by Krippendorff's alpha "
        "[krippendorff2011] and Gwet's AC1 [gwet2008].",
    ),
    (
        "alt_test_winning_rate",
        "The alternative annotator test [calderon2025] was applied with epsilon = {epsilon:g}.",
    ),
    (
        "dawid_skene_",
        "A consensus of the human raters was estimated by the Dawid-Skene model [dawid1979].",
    ),
    (
        "threshold_recommended",
        "Decision thresholds for graders' probabilities were tuned to agreement with the human "
        "majority and judged on prompt clusters that they had not been tuned on.",
    ),
    (
        "reliability",
        "Calibration of the probabilities was assessed by isotonic reliability curves "
        "[dimitriadis2021] and the debiased calibration error [kumar2019].",
    ),
    (
        "bias_",
        "Graders were audited for bias conditionally on the human raters' labels of the same "
        "units, that is, for differential item functioning [holland1988].",
    ),
    (
        "rate_rogan_gladen",
        "Rates on all graded units were corrected for the graders' errors by the Rogan-Gladen "
        "estimator [rogan1978].",
    ),
    (
        "rate_ppi",
        "Rates on all graded units were also estimated by prediction-powered inference "
        "[angelopoulos2023].",
    ),
)
"""What is said where a statistic whose name begins so is among the results."""


def methods_text(source: Source) -> Quotable:
    """The paragraph with authors and years, and the references in it as BibTeX."""
    text = " ".join(_sentences(source))
    keys = dict.fromkeys(key for found in _CITED.findall(text) for key in found.split(", "))
    entries = references()
    return Quotable(
        title="Methods, to paste",
        text=_CITED.sub(lambda found: f" ({'; '.join(map(_by_author, _keys(found)))})", text),
        tex=_in_tex(text),
        bibtex="\n\n".join(entries[key] for key in keys) + "\n",
    )


@cache
def references() -> dict[str, str]:
    """Every reference as BibTeX, by key."""
    text = files("evenhand.analysis.report.sections").joinpath("references.bib").read_text("utf-8")
    return {found[1]: found[0] for found in _ENTRY.finditer(text)}


def _in_tex(text: str) -> str:
    parts = _CITED.split(text)  # plain text and keys by turns
    plain, keys = map(tex, parts[::2]), [each.replace(", ", ",") for each in parts[1::2]]
    cited = [rf" \citep{{{each}}}" for each in keys]
    return "".join(chain.from_iterable(zip_longest(plain, cited, fillvalue="")))


def _keys(found: re.Match[str]) -> list[str]:
    return found[1].split(", ")


def _by_author(key: str) -> str:
    """Author and year as in the text.

    >>> _by_author("rogan1978"), _by_author("calderon2025")
    ('Rogan & Gladen 1978', 'Calderon, Reichart & Dror 2025')
    """
    authors, year = (_field(references()[key], name) for name in ("author", "year"))
    names = [each.partition(",")[0] for each in authors.split(" and ")]
    return f"{' & '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} {year}"


def _field(entry: str, name: str) -> str:
    found = re.search(rf"\b{name} = \{{(.*?)\}}(,|$)", entry, re.MULTILINE)
    return found[1] if found else ""


def _sentences(source: Source) -> Iterator[str]:
    analysis, settings = source.analysis, source.analysis.settings
    statistics = source.figures.statistics
    if source.context.synthetic:
        yield "All labels are synthetic."
    yield from _who(source)
    weighted = any(source.kappa(rubric, ALL) != "cohen_kappa" for rubric in source.figures.rubrics)
    yield (
        "Agreement was measured by Cohen's kappa [cohen1960]"
        + (", with quadratic weights on ordered categories [cohen1968]." if weighted else ".")
    )
    if "human_ceiling_difference" in statistics:
        yield (
            "Each grader's mean kappa with the human raters was compared with the human raters' "
            "mean kappa with one another on the same units, with a non-inferiority margin of "
            f"{settings.margin:g}; a baseline that always gives the most frequent label and one "
            "that draws labels at random had to be beaten."
        )
    kind = "BCa" if settings.interval == "bca" else "percentile"
    yield (
        f"Intervals are 95% {kind} intervals from {settings.resamples:,} bootstrap resamples of "
        f"{_resampled(source)} [field2007], widened where clusters are few [hesterberg2015]."
    )
    for begins, said in _SAID:
        if any(name.startswith(begins) for name in statistics):
            yield said.format(epsilon=settings.epsilon)
    if analysis.verification is not None:
        yield "Estimates were verified against scikit-learn, krippendorff and statsmodels."
    version = source.context.facts.get("evenhand")
    yield f"The analysis was made with evenhand{f' {version}' if version else ''}."


def _who(source: Source) -> Iterator[str]:
    """Who labelled how much, by rubric."""
    for rubric in source.figures.rubrics:
        agreed = source.figures.select(rubric, "observed_agreement")
        people = {figure.raters[0] for figure in source.figures.select(rubric, "rater_agreement")}
        graders = source.graders(rubric, ALL)
        group = next((figure for figure in agreed if figure.raters == ("humans", "")), None)
        if group is None:
            continue
        clusters = f" in {group.n_clusters:,} clusters" if group.n_clusters != group.n_units else ""
        title = source.context.title_of(rubric).replace("[", "(").replace("]", ")")
        yield (
            f"For {title}, {len(people)} human raters labelled "
            f"{group.n_units:,} units{clusters}, and {len(graders)} model graders were compared "
            "with them."
        )


def _resampled(source: Source) -> str:
    cluster = source.analysis.settings.cluster
    rows = source.analysis.rows
    if cluster == "unit" or all(row["n_clusters"] in (0, row["n_units"]) for row in rows):
        return "units"
    if cluster != "pair":
        return f"clusters by {cluster}"
    return "prompt pairs" if "clusters" in source.context.facts else "clusters of units"
