"""What the benchmarks simulate is what they say, and is judged as a whole analysis judges."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks import (
    bias,
    corrected_rates,
    coverage,
    deciding_bound,
    decisions,
    designs,
    differences,
    drift,
    improving,
    parts,
    peers,
    preference,
    rewording,
    routing,
    scales,
    slices,
)
from benchmarks.deciding_bound import CELLS, MARGIN, Cell
from benchmarks.simulated import any_passes, verdicts
from evenhand.analysis import Scale, analyse
from tests.analysis.make import analysed, passes
from tests.peers import metrics

BELOW = pytest.approx(-0.1, abs=0.01)


def _below(people: Sequence[np.ndarray], grader: np.ndarray, weights: str | None = None) -> float:
    """How far a grader's kappa with people lies above that of people, by scikit-learn."""
    with_grader = [metrics.cohen_kappa_score(each, grader, weights=weights) for each in people]
    among = [metrics.cohen_kappa_score(*pair, weights=weights) for pair in combinations(people, 2)]
    return float(np.mean(with_grader) - np.mean(among))


@pytest.mark.parametrize("law", ["normal", "skew", "heavy", "two values"])
def test_quality_has_the_gap_it_claims(law: str) -> None:
    """Without noise a share of .5 is affirmed, and own units by the law's share beyond the gap."""
    rng = np.random.default_rng(5)
    cell = bias.Cell("", law=law, gap=0.0, strict=0.0, pairs=5000, prevalence=0.3)
    people, _, own = bias.draw(cell, rng)
    assert people.mean() == pytest.approx(0.3, abs=0.02)
    assert people[own == 1].mean() - people[own == 0].mean() == pytest.approx(0.0, abs=0.02)
    better, _, own = bias.draw(bias.replace(cell, gap=1.0), rng)
    assert better[own == 1].mean() - better[own == 0].mean() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("prevalence", corrected_rates.PREVALENCES)
def test_corrected_rates_are_simulated_as_they_are_said_to_be(prevalence: float) -> None:
    """Annotators' rate and the grader's error rates, in 60 studies, or more of a rare label."""
    rng, runs = np.random.default_rng(5), 60 if prevalence > 0.05 else 400
    drawn = [corrected_rates.simulate(250, prevalence, rng) for _ in range(runs)]
    people, grader = (np.vstack(each).ravel() for each in zip(*drawn, strict=True))
    errors = (grader[people == 1].mean(), 1 - grader[people == 0].mean())
    assert people.mean() == pytest.approx(prevalence, abs=0.004)
    assert errors == pytest.approx(corrected_rates.error_rates(prevalence), abs=0.006)


@pytest.mark.parametrize("prevalence", coverage.SHARES)
def test_the_population_is_what_is_simulated(prevalence: float) -> None:
    """The exact joint distribution against 100 simulated studies."""
    rng = np.random.default_rng(3)
    codes = np.vstack([coverage.simulate(prevalence, rng) for _ in range(100)])
    for first, second, quality in ((0, 1, coverage.HUMAN), (2, 3, coverage.GRADER)):
        cells = codes[:, first].astype(int) * coverage.Q + codes[:, second]
        seen = np.bincount(cells, minlength=coverage.Q**2).reshape(coverage.Q, -1) / len(codes)
        exact = coverage.joint(prevalence, coverage.HUMAN, quality)
        assert exact.sum() == pytest.approx(1.0)
        assert exact.sum(axis=0) == pytest.approx(coverage.SHARES[prevalence])
        assert seen == pytest.approx(exact, abs=0.005)
    assert coverage.verdict_table(exact)[0].sum() == pytest.approx(prevalence)


def test_a_cell_passes_where_its_monte_carlo_interval_meets_the_bounds() -> None:
    near = coverage.Tally(runs=4000, below=100, above=196)
    far = coverage.Tally(runs=4000, below=160, above=180)
    assert near.coverage == pytest.approx(0.926)
    assert near.monte_carlo == pytest.approx((0.9175, 0.9337), abs=0.0002)
    assert near.holds
    assert not far.holds


@pytest.mark.slow
@pytest.mark.parametrize("cell", [CELLS[40], CELLS[-3]], ids=str)
def test_it_decides_as_the_product_does(cell: Cell) -> None:
    """On the same labels, but for what else a verdict looks at."""
    scale, agreed = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"})), 0
    for run, below in product(range(4), (0.0, MARGIN)):
        rng = np.random.default_rng([run, round(10 * below)])
        labels, clusters = deciding_bound.study(cell, below, rng)
        _, decided = deciding_bound.decided(labels, clusters)
        rules = {"looks": 1, "min_stability": -1}
        found = analysed(labels[:, :-1], labels[:, -1:], scale, clusters=clusters, **rules)
        judged = found.verdicts[0]["verdict"] in ("can_replace", "only_with_correction")
        agreed += judged == decided
    assert agreed >= 7  # what a verdict must also meet may stop one


@pytest.mark.parametrize("world", ["latent", "classes", "beta"])
def test_graders_lie_below_people_by_the_margin(world: deciding_bound.World) -> None:
    """In one large study, to within its error."""
    cell = Cell(world, 0.5, 0.7, 20_000)
    labels, _ = deciding_bound.study(cell, MARGIN, np.random.default_rng(1))
    agree = 2.0 * labels - 1.0
    people = np.mean([np.mean(agree[:, a] * agree[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))])
    grader = np.mean([np.mean(agree[:, a] * agree[:, 3]) for a in range(3)])
    assert people == pytest.approx(0.7, abs=0.02)
    assert people - grader == pytest.approx(MARGIN, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        decisions.Cell(0.5, 60, 1),
        decisions.Cell(0.1, 100, 4, graders=3),
        decisions.Cell(0.5, 100, 4, kind="drawn"),
        decisions.Cell(0.5, 100, 1, kind="tuned"),
        decisions.Cell(0.5, 100, 4, kind="declared"),
        decisions.Cell(0.5, 100, 4, people=0.22, poor=0.05),
    ],
)
@pytest.mark.parametrize("below", [0.0, 0.1])
def test_verdicts_of_the_decisions_benchmark_are_those_of_a_whole_analysis(cell, below):
    ratings = decisions.study(cell, cell.pairs, below, np.random.default_rng([1, cell.pairs]))
    by = {"g0": 0.2} if cell.kind == "declared" else {}
    _, found = decisions.analysed(cell, ratings, 1, 20, **by)
    units = ratings[["unit_id", "pair"]].drop_duplicates().rename(columns={"pair": "cluster_id"})
    whole = analyse(
        ratings.drop(columns="pair"),
        units.astype(str),
        [replace(decisions.SCALE, thresholds=by)],
        scope="like_these" if cell.kind == "drawn" else "these",
        resamples=20,
    )
    kept = ("verdict", "more_clusters", "chance", "threshold")
    assert [[each[name] for name in kept] for each in found] == [
        [each[name] for name in kept] for each in whole.verdicts
    ]


def test_graders_of_the_decisions_benchmark_lie_below_people_by_the_margin() -> None:
    person, grader = decisions.qualities(0.1, decisions.MARGIN)
    assert decisions.kappa(0.1, person, person) == pytest.approx(decisions.KAPPA)
    assert decisions.kappa(0.1, person, grader) == pytest.approx(decisions.KAPPA - 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        designs.Cell("", "third, spot checks", 200),
        designs.Cell("", "third", 200, is_timed=True),
        designs.Cell("", "crowd third", 200, 12, options="four unordered"),
        designs.Cell("", "second", 300, 2, (0.25, 0.45), clustered=True, options="five ordered"),
        designs.Cell("", "random second", 400, 2, (0.5, 0.5), is_declared=True, graders=3),
    ],
)
def test_verdicts_of_the_benchmark_are_those_of_a_whole_analysis(cell: designs.Cell) -> None:
    scale, about = designs.SCALES[cell.options], {}
    for is_good in (False, True):
        study = designs.study(cell, is_good, np.random.default_rng(int(is_good)))
        found, how = verdicts(study, scale, is_random=cell.is_declared)
        about = {"overlap": "random"} if cell.is_declared else {}
        labels = (study.annotators, study.graders, scale, study.times, study.clusters)
        whole = analysed(*labels, **about)
        assert any_passes(found) == any(passes(whole))
        assert (how == "unknown") == ("may differ from the" in whole.verdicts[0]["sentence"])


@pytest.mark.slow
@pytest.mark.parametrize("options", ["two", "four unordered", "five ordered"])
@pytest.mark.parametrize("alike", [False, True])
def test_graders_of_the_benchmark_lie_below_annotators_by_the_margin(options, alike):
    """By another implementation of kappa, in other items."""
    rng = np.random.default_rng(3)
    items = designs.Items.drawn(200_000, options, False, rng)
    strict = designs.strictness(2)
    people = [items.labels(designs.NOISE * items.errors(rng), each) for each in strict]
    grader = designs.grades(items, *designs.errs(options, 2, 0.1, alike), rng)
    assert _below(people, grader, "linear" if options == "five ordered" else None) == BELOW


@pytest.mark.parametrize("population", differences.POPULATIONS)
@pytest.mark.parametrize("rate", differences.RATES)
def test_the_true_rates_are_those_of_the_studies(population: str, rate: float) -> None:
    rng = np.random.default_rng(3)
    true, people, grader = differences.study(differences.Cell(population, 3, 20_000, rate), rng)
    assert people.mean(axis=0) == pytest.approx(true, abs=0.012)
    assert np.corrcoef(people[:, 0], people[:, 1])[0, 1] > 0.1  # prompts are shared
    assert np.corrcoef(people[:, 0], grader[:, 0])[0, 1] > 0.1


def test_a_grader_in_the_drift_benchmark_moves_as_far_as_it_says() -> None:
    """In a large sample: kappa with people falls by the margin, both ways of changing."""
    for kind in ("asked again", "keeps"):
        codes = drift.grades(drift.Cell(0.3, 60_000, kind=kind), 1.0, np.random.default_rng(3)).T
        before, after = (_below(codes[:3], codes[at]) for at in (3, 4))
        assert after - before == BELOW


def test_one_candidate_is_better_by_the_gain_and_the_others_are_as_the_old_one() -> None:
    codes = improving.codes(improving.Cell(60_000, 0.1), np.random.default_rng(3))
    kappas = [metrics.cohen_kappa_score(codes[:, 0], codes[:, n]) for n in (1, 3, 4, -1)]
    assert kappas == pytest.approx([0.7, 0.6, 0.5, 0.5], abs=0.015)


@pytest.mark.parametrize("design", parts.DESIGNS)
@pytest.mark.parametrize("rate", parts.RATES)
def test_the_true_rates_are_those_of_the_studies_of_parts(rate, design, monkeypatch):
    large = parts.DESIGNS[design]._replace(rest=20_000)
    monkeypatch.setitem(parts.DESIGNS, design, large)
    cell = parts.Cell(design, 3, rate)
    part_of, people, grader = parts.study(cell, np.random.default_rng(3))
    true = parts.true_rates(cell)
    for part, (hit, false_alarm) in enumerate(large.errors):
        here, graded = people[part_of == part], grader[part_of == part]
        assert len(here) == pytest.approx(20_000, rel=0.05)
        assert here.mean(axis=0) == pytest.approx(true[part], abs=0.015)
        assert graded[here == 1].mean() == pytest.approx(hit, abs=0.02)
        assert graded[here == 0].mean() == pytest.approx(false_alarm, abs=0.02)
    if large.one_sided:
        assert (true[:, -1, 0] - true[:, -1, 1] >= 0.9).all()
    first, second = people[part_of == 0, 0, 0], people[part_of == 0, 1, 0]
    assert np.corrcoef(first, second)[0, 1] > 0.15  # pairs are shared


def test_figures_of_another_tool_that_differ_are_named() -> None:
    ours = peers.Run("evenhand", 1.0, 1.0, 1.0, {"alpha": 0.5, "kappa": 0.3})
    theirs = peers.Run("irrCAC", 1.0, 1.0, 1.0, {"alpha": 0.5001, "kappa": 0.31, "gwet": 0.1})
    assert peers.differences(ours, theirs) == ["irrCAC: kappa is 0.31, ours 0.3"]


def test_studies_are_simulated_as_they_are_said_to_be() -> None:
    population = preference.Population("many", (0.8, -0.8), 3000, labelled=1.0, apart=1.0)
    truth = preference.truth_of(population)
    ratings, _ = preference.simulate(population, np.random.default_rng(1))
    worth = ratings["label"].map({"A": 1.0, "tie": 0.5, "B": 0.0})
    people = ratings["rater_kind"] == "human"
    assert worth[people].mean() == pytest.approx(truth["win_rate"][0], abs=0.02)
    assert truth["strength"][0] < 0.8  # qualities that vary, and ties, bring win rates together


@pytest.mark.parametrize("cell", [rewording.CELLS[0], rewording.CELLS[-1]])
def test_people_agree_as_the_cell_says(cell: rewording.Cell, monkeypatch) -> None:
    monkeypatch.setattr(rewording, "MANY", 20_000)
    share = rewording.share_for(rewording.plain(cell), 0.6)
    given = rewording.codes(cell, share, 8000, np.zeros(3), np.random.default_rng(3))
    assert rewording.alpha_of(given, cell) == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("prevalence", [0.5, 0.1])
def test_agreement_above_a_cut_is_what_is_simulated(prevalence: float) -> None:
    cell = routing.Cell(routing.BETTER, 0.9, prevalence, 50_000, 4)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    assert 1 - wrong.mean() == pytest.approx(0.85, abs=0.005)
    cut = float(np.quantile(confidence, 0.4))
    exact = routing.grader(0.85, prevalence).agreement(float(routing.ndtri((1 + cut) / 2)))
    assert 1 - wrong[confidence >= cut].mean() == pytest.approx(exact, abs=0.005)
    assert [routing.is_broken(cell, at) for at in (0.0, 0.99)] == [True, False]
    cell = routing.Cell(routing.DIPS, 0.9, 0.0, 50_000, 1)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    for cut, broken in ((0.7, False), (0.45, True), (0.0, False)):
        assert routing.is_broken(cell, cut) is broken
        assert (wrong[confidence >= cut].mean() > 0.1) is np.bool_(broken)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [scales.Cell("1-5, spread", 60), scales.Cell("0-100, scale not declared", 60),
     scales.Cell("1-7, unlike strictness", 100, "quadratic")],
)  # fmt: skip
@pytest.mark.parametrize("fault", ["low", "good"])
def test_verdicts_of_the_benchmark_are_those_of_a_whole_analysis_of_scales(cell, fault):
    world, of = scales.WORLDS[cell.world], scales.faults(cell.world, cell.ordered)[fault]
    drawn = scales.raters(world, cell.items, *of, np.random.default_rng(1))
    study, scale = world.study(drawn, cell.ordered)
    found, _ = verdicts(study, scale)
    whole = analysed(study.annotators, study.graders, scale, ordered=cell.ordered)
    assert any_passes(found) == any(passes(whole))


@pytest.mark.slow
@pytest.mark.parametrize("ordered", ["linear", "quadratic"])
def test_graders_of_the_scales_benchmark_lie_below_annotators_by_the_margin(ordered: str) -> None:
    """By another implementation of kappa, in other items."""
    world = scales.WORLDS["1-5, mostly 4 and 5"]
    for fault in scales.WRONG:
        of = scales.faults(world.text, ordered)[fault]
        said, grader = scales.raters(world, 60_000, *of, np.random.default_rng(3))
        assert _below(said.T, grader, ordered) == BELOW


@pytest.mark.slow
def test_agreement_is_what_a_cell_says() -> None:
    """Over many studies, in the worse slice and in the others."""
    for cell in (each for each in slices.CELLS if not each.rates and each.spread is None):
        agreed: dict[bool, list[float]] = {False: [], True: []}
        for run in range(30):
            study = slices.draw(cell, np.random.default_rng(run))
            codes, part = study.coded.codes, study.columns[0].codes
            same = (codes[:, :3] == codes[:, [3]]).mean(axis=1)
            worse = part == (cell.worse[0] if cell.worse else -1)
            for each in {*worse.tolist()}:
                agreed[each] += same[worse == each].tolist()
        assert np.mean(agreed[False]) == pytest.approx(cell.rate, abs=0.02), cell.title
        if cell.worse:
            assert np.mean(agreed[True]) == pytest.approx(cell.worse[1], abs=0.05), cell.title
