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
    "interval": (["--set", "interval=bca"], "bca"),
    "epsilon": (["--epsilon", "0.1"], 0.1),
    "slices": (["--slice", "topic", "--slice", "side"], ("topic", "side")),
    "variants": (["--set", "variants=wording"], ("wording",)),
    "groups": (["--set", "groups=region"], ("region",)),
    "rater_slices": (["--set", "rater_slices=leaning"], ("leaning",)),
    "confidence_cut": (["--set", "confidence_cut=0.8"], 0.8),
    "confidence_target": (["--set", "confidence_target=1"], 1.0),
    "ordered": (["--set", "ordered=quadratic"], "quadratic"),
    "overlap": (["--set", "overlap=random"], "random"),
    "sensitivity_cluster": (["--set", "sensitivity_cluster=topic"], "topic"),
    "leanings": (
        ["--set", "leanings.l=x,y", "--set", "leanings.r=z"],
        {"l": ("x", "y"), "r": ("z",)},
    ),
    "missing": (["--missing", "99,skip"], ("99", "skip")),
    "families": (["--set", "families.acme=our-tune"], {"acme": ("our-tune",)}),
    "min_coverage": (["--set", "min_coverage=0.5"], 0.5),
    "min_clusters": (["--set", "min_clusters=50"], 50),
    "bias_bound": (["--set", "bias_bound=0.2"], 0.2),
    "max_injection": (["--set", "max_injection=0.3"], 0.3),
    "max_knocked_off": (["--set", "max_knocked_off=0.3"], 0.3),
    "max_silenced": (["--set", "max_silenced=0.3"], 0.3),
    "max_gross": (["--set", "max_gross=0.05"], 0.05),
    "min_stability": (["--set", "min_stability=-1"], -1.0),
    "min_information": (["--set", "min_information=0.3"], 0.3),
    "scope": (["--set", "scope=like_these"], "like_these"),
    "looks": (["--set", "looks=3"], 3),
    "across_rubrics": (["--set", "across_rubrics=holm"], "holm"),
    "margin_share": (["--set", "margin_share=0.2"], 0.2),
    "drift_margin": (["--set", "drift_margin=0.05"], 0.05),
    "min_people_kappa": (["--set", "min_people_kappa=0.1"], 0.1),
    "min_rarer": (["--set", "min_rarer=5"], 5),
    "reference": (["--reference", "ann"], "ann"),
    "reference_kappa": (["--set", "reference_kappa=0.7"], 0.7),
    "reference_sensitivity": (["--set", "reference_sensitivity=0.9"], 0.9),
    "reference_specificity": (["--set", "reference_specificity=0.9"], 0.9),
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
        (["--set", "leanings=left"], "--set takes an entry of leanings: write leanings.NAME=KEY"),
        (["--set", "leanings.left=x"], "leanings names left; name the two"),
        (["--set", "interval=wide"], "--set interval is 'wide'; it must be"),
        (["--set", "max_gros=0.1"], "--set is 'max_gros=0.1'; write NAME=VALUE with a setting"),
        (["--set", "looks"], "--set is 'looks'; write NAME=VALUE"),
        (["--seed", "-1"], "--seed is '-1'; it must be greater than or equal to 0"),
    ],
)
def test_what_is_out_of_range_is_named_by_its_option(words: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read(words)
    assert str(raised.value).startswith(sentence)


def test_a_verb_may_do_without() -> None:
    parser = Parser()
    add_analysis_options(parser, without=("--sides", "epsilon", "looks"))
    assert "--sides" not in parser.format_help()
    assert "--epsilon" not in parser.format_help()
    assert given_settings(parser.parse_args(["--margin", "0.3"])) == {"margin": 0.3}
    with pytest.raises(InputError, match="--set looks changes nothing here"):
        given_settings(parser.parse_args(["--set", "looks=2"]))


@pytest.mark.parametrize("option", ["--max-gross", "--leaning", "--looks=3"])
def test_an_option_that_became_a_setting_says_what_to_write(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser()
    add_analysis_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([option, "0.1"])
    assert "is a setting: write --set " in capsys.readouterr().err
