"""A sample enlarged where graders differ: what is picked, kept and told (synthetic grades)."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.creation import uncertainty
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import WAVES, inclusion_so_far
from evenhand.study.store.schema import sample_waves
from harness.studies import upgraded_without, with_labels

RUBRIC = "refusal"


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    """40 pairs, 8 of them sampled, one rubric on responses."""
    return make_study(
        pairs=40, subjects=("s1",), sample=8, rubrics=[load_rubric(RUBRIC)], stratify=()
    )


def rate(
    study: Study, rater: str, label: Callable[[int], str], *, scope: str = "all", **more: object
) -> None:
    """Take in a rater's labels, by the number of the pair, of all units in scope."""
    graders = [rater] if more.pop("kind", "model") == "model" else []
    rubric = study.rubrics[RUBRIC]
    units = study.rubric_units(rubric, scope)
    given = {rater: [label(number(unit)) for unit in units]}
    with_labels(study, given, RUBRIC, units=units, graders=graders, rubric_hash=rubric.hash, **more)


def number(unit: str) -> int:
    return int(parse_unit_id(unit)[0].removeprefix("p"))


def odd(n: int) -> str:
    return "5" if n % 2 else "1"


def again(study: Study) -> Study:
    """The study as it is now."""
    return open_study(study.folder)


@pytest.mark.slow
def test_graders_who_differ_or_are_unsure_score_a_pair(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    scores = uncertainty(study)
    # Two labels at the ends of the scale, one each: as far apart as can be.
    assert scores["p0001"] == pytest.approx(1.0)
    assert scores["p0002"] == 0.0
    unsure = json.dumps({"1": 0.9, "2": 0.1})
    rate(study, "three", lambda n: "1", probabilities=unsure, prob_method="logprobs")
    # Shares of 1, 2 and 5 are (2.9, .1, 0) / 3: twice .0322 x (1/4)^2 over the largest, 1/2.
    assert uncertainty(study)["p0002"] == pytest.approx(4 * (2.9 / 3) * (0.1 / 3) / 16)


@pytest.mark.slow
def test_only_graders_of_every_pair_count(study: Study) -> None:
    with pytest.raises(InputError, match=r"no grader has graded all pairs .* --scope all"):
        extend_sample(study, 4, "uncertainty")
    rate(study, "part", odd, scope="sample")
    with pytest.raises(InputError, match=r"no grader has graded all pairs"):
        extend_sample(study, 4, "uncertainty")
    rate(study, "one", lambda n: "1")
    with pytest.raises(InputError, match="all grades are alike and sure"):
        extend_sample(study, 4, "uncertainty")
    assert len(study.store.sample()) == 8
    assert WAVES.all(study.store) == []


@pytest.mark.slow
def test_people_s_labels_do_not_move_what_is_picked(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    before = uncertainty(study)
    rate(study, "ann", lambda n: "3", scope="sample", kind="human")
    assert uncertainty(study) == before


def test_unsure_pairs_are_likelier_and_all_probabilities_are_kept(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    first = study.store.sample()
    size = extend_sample(study, 10, "uncertainty")
    with again(study) as now:
        sample = now.store.sample()
        assert sample[:8] == first
        assert len(sample) == size == now.config.sample.pairs
        assert abs(size - 18) <= 2
        likely = inclusion_so_far(now.store)
        assert list(likely) == study.store.pairs()["pair_id"].tolist()
        assert likely["p0001"] == pytest.approx(2 * likely["p0002"])
        # 8 of 40 at first, 10 more: 20 x 2 p + 20 x p = 18.
        assert sum(likely.values()) == pytest.approx(18.0)
        units = now.units("all").set_index("cluster_id")["inclusion_probability"]
        assert units["p0001"].unique() == pytest.approx([likely["p0001"]])


@pytest.mark.slow
def test_until_they_are_labelled_new_pairs_change_nothing(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    rate(study, "ann", lambda n: "3", scope="sample", kind="human")
    extend_sample(study, 10, "uncertainty")
    with again(study) as now:
        assert inclusion_so_far(now.store) == pytest.approx({f"p{n:04}": 0.2 for n in range(1, 41)})
        rate(now, "ann", lambda n: "3", scope="sample", kind="human")
        likely = inclusion_so_far(now.store)
        assert likely["p0001"] == pytest.approx(2 * likely["p0002"])


def test_a_draw_by_chance_afterwards_is_one_more_wave(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    extend_sample(study, 6, "uncertainty")
    with again(study) as now:
        before, size = inclusion_so_far(now.store), len(now.store.sample())
        assert extend_sample(now, 5) == size + 5
    with again(study) as now:
        assert len(set(now.store.sample())) == size + 5
        chance = 5 / (40 - size)
        for pair, likely in inclusion_so_far(now.store).items():
            assert likely == pytest.approx(1 - (1 - before[pair]) * (1 - chance))


def test_drawn_by_chance_alone_a_study_has_no_waves_and_no_column(study: Study) -> None:
    extend_sample(study, 5)
    assert WAVES.all(study.store) == []
    assert "inclusion_probability" not in study.units("all")


def test_clusters_of_several_pairs_are_refused(study: Study) -> None:
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)
    change_config(study.folder, {"analysis": {"cluster": "topic_name"}})
    with (
        again(study) as now,
        pytest.raises(
            InputError, match=r"needs pairs as clusters.*analysis.cluster = 'topic_name'"
        ),
    ):
        extend_sample(now, 4, "uncertainty")


@pytest.mark.slow
@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)]
)
def test_a_store_of_before_learns_of_waves(
    make_study: Callable[..., Study], request: pytest.FixtureRequest, database: str
) -> None:
    options = {}
    if database == "postgresql":
        options["store"] = request.getfixturevalue("new_postgresql")()
    study = make_study(
        pairs=12, subjects=("s1",), sample=3, rubrics=[load_rubric(RUBRIC)], stratify=(), **options
    )
    with upgraded_without(study, sample_waves) as now:
        assert "inclusion_probability" not in now.units("all")
        rate(now, "one", lambda n: "1")
        rate(now, "two", odd)
        extend_sample(now, 3, "uncertainty")
        first, second = WAVES.all(now.store)
    assert (first.by, set(first.chances.values())) == ("chance", {0.25})
    assert (second.by, list(second.chances)) == ("uncertainty", list(first.chances))
    assert np.isfinite(list(second.chances.values())).all()
