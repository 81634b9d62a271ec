"""What the report says of corrected rates and of ensembles, in sentences off the rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evenhand.analysis import Analysis, analyse
from tests.analysis.graded_studies import YES, study


def text_of(written: Callable[..., Path], analysis: Analysis) -> str:
    text = (written(analysis) / "report.md").read_text("utf-8")
    return text.replace("\\[", "[").replace("\\]", "]")


def part_of(text: str, section: str) -> str:
    return text.split(f"## {section}\n")[1].split("\n## ")[0]


@pytest.mark.slow
def test_corrected_rates_in_sentences(written: Callable[..., Path]) -> None:
    """A fair grader, one that flatters a subject, and one that only guesses."""
    graders = {
        "fair": [(0.9, 0.9)] * 2,
        "kin": [(0.8, 0.95), (0.99, 0.3)],
        "dice": [(0.5, 0.5)] * 2,
    }
    rng = np.random.default_rng(4)
    ratings, units = study(rng, graders, rates=(0.7, 0.5), pairs=1500, labelled=300)
    units["topic"] = np.where(np.arange(len(units)) // 2 % 2, "tax", "war")
    found = analyse(ratings, units, [YES], resamples=300, slices=["topic"])
    said = part_of(text_of(written, found), "Corrected rates")
    rows = found.results.set_index(["statistic", "rater_b", "at"])

    assert "| **fair** |" in said
    assert "fair errs differently" not in said
    assert "fair: PPI++ leaves the subjects in the order of the raw rates" in said
    bias = rows.loc[("rogan_gladen_bias", "kin", "s1")]
    assert (
        f"kin errs differently on s1: with error rates of all subjects, Rogan-Gladen misses "
        f"annotators' own rate there by {bias['estimate']:+.2f} [{bias['low']:+.2f}" in said
    )
    flip = rows.loc[("rate_order_flip", "kin", "s1>s0"), "estimate"]
    swapped = f"s1 and s0 (swapped in {flip:.0%} of the resamples, results.csv row"
    assert flip >= 0.975
    assert f"kin: PPI++ changes the order of {swapped}" in said
    parts = said.split("in parts of the sample")[1].split("| **fair** |")[1]
    own = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    rate = own.loc[("rate_ppi", "fair", "topic=tax|binary", "s1")]
    cell = f"{rate['estimate']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}]"
    assert cell in parts[parts.index("| topic=tax |") :].splitlines()[0]
    assert "fair, corrected, tells 1 of 1 pairs of subjects apart: s0 is above s1." in said
    j = rows.loc[("youden_j", "dice", ""), "estimate"]
    assert (
        f"dice cannot be corrected by Rogan-Gladen: its sensitivity + specificity - 1 is {j:z.2f}"
        in said
    )


@pytest.mark.slow
def test_who_graded_nothing_else_is_told_how_to(
    analysis: Analysis, written: Callable[..., Path]
) -> None:
    said = part_of(text_of(written, analysis), "Corrected rates")
    assert "provider:sure graded only what annotators labelled" in said
    assert "--scope all" in said


def test_ensembles_in_sentences(analysis: Analysis, written: Callable[..., Path]) -> None:
    text = text_of(written, analysis)
    said = part_of(text, "Per-sample agreement").split(
        "What ensembles bring, on the binary verdict"
    )[1]
    rows = analysis.results.set_index(["statistic", "rater_b", "subset", "at"])
    for name, title in (("majority", "majority"), ("mean_probability", "mean probability")):
        row = rows.loc[("ensemble_kappa", f"ensemble:{name}", "all|binary", "ensemble-best_single")]
        sentence = re.search(rf"Ensemble: {title} (.*) \(kappa minus .*: (\S+) \[", said)
        assert sentence is not None
        assert float(sentence.group(2)) == round(row["estimate"], 2)
        better = "agrees with annotators' majority better than the best single grader"
        assert (sentence.group(1) == better) is bool(row["low"] > 0)
    assert "| Ensemble: majority |" in part_of(text, "Human ceiling")
    assert "Ensemble" not in part_of(text, "The answer")
