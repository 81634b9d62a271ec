"""The options that are made from the settings of study.toml."""

from __future__ import annotations

import pytest

from evenhand.cli.options import add_analysis_options, given_settings
from evenhand.cli.verbs import Parser
from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings

GIVEN = {
    "margin": (["--margin", ".05"], 0.05),
    "resamples": (["--resamples", "300"], 300),
    "cluster": (["--cluster", "unit"], "unit"),
    "interval": (["--interval", "bca"], "bca"),
    "epsilon": (["--epsilon", "0.1"], 0.1),
    "slices": (["--slice", "topic", "--slice", "side"], ("topic", "side")),
    "variants": (["--variant", "wording"], ("wording",)),
    "groups": (["--group", "region"], ("region",)),
    "rater_slices": (["--rater-slice", "leaning"], ("leaning",)),
    "confidence_cut": (["--confidence-cut", "0.8"], 0.8),
    "confidence_target": (["--confidence-target", "1"], 1.0),
    "ordered": (["--ordered", "quadratic"], "quadratic"),
    "overlap": (["--overlap", "random"], "random"),
    "sensitivity_cluster": (["--sensitivity-cluster", "topic"], "topic"),
    "leanings": (["--leaning", "l=x,y", "--leaning", "r=z"], {"l": ("x", "y"), "r": ("z",)}),
    "missing": (["--missing", "99,skip"], ("99", "skip")),
    "families": (["--family", "acme=our-tune"], {"acme": ("our-tune",)}),
    "min_coverage": (["--min-coverage", "0.5"], 0.5),
    "min_clusters": (["--min-clusters", "50"], 50),
    "bias_bound": (["--bias-bound", "0.2"], 0.2),
    "max_injection": (["--max-injection", "0.3"], 0.3),
    "max_knocked_off": (["--max-knocked-off", "0.3"], 0.3),
    "max_silenced": (["--max-silenced", "0.3"], 0.3),
    "max_gross": (["--max-gross", "0.05"], 0.05),
    "min_stability": (["--min-stability", "-1"], -1.0),
    "min_information": (["--min-information", "0.3"], 0.3),
    "scope": (["--scope", "like_these"], "like_these"),
    "looks": (["--looks", "3"], 3),
    "across_rubrics": (["--across-rubrics", "holm"], "holm"),
    "margin_share": (["--margin-share", "0.2"], 0.2),
    "drift_margin": (["--drift-margin", "0.05"], 0.05),
    "min_people_kappa": (["--min-people-kappa", "0.1"], 0.1),
    "min_rarer": (["--min-rarer", "5"], 5),
    "reference": (["--reference", "ann"], "ann"),
    "reference_kappa": (["--reference-kappa", "0.7"], 0.7),
    "reference_sensitivity": (["--reference-sensitivity", "0.9"], 0.9),
    "reference_specificity": (["--reference-specificity", "0.9"], 0.9),
    "seed": (["--seed", "7"], 7),
}


def read(words: list[str]) -> dict[str, object]:
    parser = Parser()
    add_analysis_options(parser)
    return given_settings(parser.parse_args(words))


@pytest.mark.parametrize(
    "setting", [*AnalysisSettings.model_fields, *DecisionSettings.model_fields, "seed"]
)
def test_what_study_toml_accepts_is_an_option(setting: str) -> None:
    words, value = GIVEN[setting]
    assert read(words) == {setting: value}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--margin", "0"], "--margin is '0'; it must be greater than 0"),
        (["--resamples", "few"], "--resamples is 'few'; it must be a valid integer"),
        (["--leaning", "left"], "--leaning is 'left'; write NAME=KEY,..."),
        (["--leaning", "left=x"], "leanings names left; name the two"),
        (["--seed", "-1"], "--seed is '-1'; it must be greater than or equal to 0"),
    ],
)
def test_what_is_out_of_range_is_named_by_its_option(words: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read(words)
    assert str(raised.value).startswith(sentence)


def test_a_verb_may_do_without() -> None:
    parser = Parser()
    add_analysis_options(parser, without=("--sides", "--epsilon"))
    assert "--sides" not in parser.format_help()
    assert "--epsilon" not in parser.format_help()
    assert given_settings(parser.parse_args(["--margin", "0.3"])) == {"margin": 0.3}
