"""Trial of a new text of a rubric: does it bring a grader closer to people than the present one?

Both are compared on the same held-out units, with the same people, in the same resamples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.rubrics import Rubric
from evenhand.study.store.grades import TRIED
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.dataset import Dataset
    from evenhand.analysis.results import ResultRow
    from evenhand.study import Study

_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("slices", "rater_slices", "groups", "variants"), ()),
    "sensitivity_cluster": "",
    "reference": "",
}
"""Settings of the analysis that are about something else."""


@dataclass(frozen=True)
class TextTrial:
    """A grader under two texts: the rows of its kappa with people under the `old` and the `new`,
    and of the `difference`, old minus new; None where there are too few units, `n_units` in all.
    """

    grader: str
    rubric: str
    n_units: int
    old: ResultRow | None = None
    new: ResultRow | None = None
    difference: ResultRow | None = None

    @property
    def gain(self) -> tuple[float, float, float]:
        """New minus old: estimate, low, high; NaN where it is undefined."""
        row = self.difference
        nan = float("nan")
        return (-row["estimate"], -row["high"], -row["low"]) if row else (nan, nan, nan)

    @property
    def sentences(self) -> list[str]:
        """Sentences on which text is better, with the figures."""
        estimate, low, high = self.gain
        row, old, new = self.difference, self.old, self.new
        if row is None or old is None or new is None or not low <= high:
            about = {"grader": self.grader, "units": self.n_units}
            return [written("trial.few", **about)]
        from evenhand.analysis.verdicts.wording import interval_of

        verdict = "better" if low > 0 else "worse" if high < 0 else "open"
        figures = written(
            "trial.figures",
            rubric=self.rubric,
            new=new["estimate"],
            old=old["estimate"],
            difference=estimate,
            interval=interval_of(low, high, 0.0, sign="+"),
            units=row["n_units"],
            pairs=row["n_clusters"],
        )
        return [f"{written(f'trial.verdict_{verdict}', grader=self.grader)} {figures}"]


def compare_texts(study: Study, text: Rubric, tried: str) -> TextTrial:
    """Compare a grader's grades under another text of a rubric, as the rater `tried`, with those
    under the present one, on the held-out units that it labelled under both.
    """
    from evenhand.analysis.results import key_of

    grader = tried.rpartition(TRIED)[0]
    dataset = _both(study, text, grader, tried)
    units = dataset.ratings["unit_id"].nunique()
    if dataset.ratings["rater_id"].nunique() < 3:
        return TextTrial(grader, text.name, units)
    rows = {key_of(row): row for row in dataset.changed(**_PLAIN).analyse().rows}
    kappa = dataset.scales[text.name].deciding_kappa

    def row(statistic: str, first: str, second: str) -> ResultRow | None:
        return rows.get((text.name, statistic, first, second, "all", ""))

    return TextTrial(
        grader=grader,
        rubric=text.name,
        n_units=units,
        old=row(kappa, "humans", grader),
        new=row(kappa, "humans", tried),
        difference=row("kappa_difference", grader, tried),
    )


def _both(study: Study, text: Rubric, grader: str, tried: str) -> Dataset:
    """Return the dataset of people and the grader on the held-out units that it labelled under both
    texts.
    """
    from evenhand.analysis import StudyFacts
    from evenhand.reporting.load import from_study
    from evenhand.study.lead.disagreements import held_out_units

    dataset = from_study(study, tried=tried)
    ratings = dataset.ratings
    ratings = ratings[ratings["rubric"] == text.name]
    present = ratings["rubric_hash"].isin(["", *study.accepted_hashes()[text.name]])
    people = (ratings["rater_kind"] == "human") & present
    old = (ratings["rater_id"] == grader) & present
    new = (ratings["rater_id"] == tried) & (ratings["rubric_hash"] == text.hash)
    labelled = ratings["label"] != ""
    units = set(held_out_units(study, text.name))
    for each in (people, old, new):
        units &= set(ratings.loc[each & labelled, "unit_id"])
    kept = (people | old | new) & ratings["unit_id"].isin(units)
    ratings = ratings[kept].assign(rubric_hash="")
    scales = {text.name: dataset.scales[text.name]}
    # No verdict is asked for, and the two texts count as one.
    facts = StudyFacts(excluded=dataset.facts.excluded, looks={text.name: 0})
    return replace(dataset, ratings=ratings, scales=scales, facts=facts)
