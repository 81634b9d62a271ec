"""The sections of study.toml, and the page that lists them."""

import json

import pytest
from pydantic import ValidationError

from docs.settings import PAGE, renewed
from evenhand.errors import InputError
from evenhand.study.desk.claims import KnownUnit
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.settings.sections import _FORMS, Section, fault_of
from evenhand.study.settings.study_toml import OidcSettings, StudyConfig
from tests.commands import python


def test_the_page_and_the_words_for_patterns_are_those_of_the_settings():
    schemas = [json.dumps(each.model_json_schema()) for each in (StudyConfig, KnownUnit)]
    for pattern in _FORMS:
        assert any(json.dumps(pattern) in schema for schema in schemas), pattern
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python -m docs.settings"
    assert "| `analysis.margin` | how far below" in page


# [analysis] and [decision]


def test_a_wrong_setting_is_one_sentence():
    for changes, sentence in (
        ({"margin": 0}, "margin is 0; it must be greater than 0"),
        ({"margin": 5}, "margin is 5; it must be less than 2"),
        ({"resamples": "many"}, "resamples is 'many'; it must be a valid integer"),
        ({"min_coverage": 2}, "min_coverage is 2; it must be less than or equal to 1"),
        ({"slices": "topic"}, "slices is 'topic'; it must be a valid tuple"),
        ({"leanings": {"left": ["x"]}}, "leanings names left; name the two that are to be compare"),
        ({"marginn": 1}, "'marginn' is no setting of the analysis; did you mean 'margin'?"),
        ({"usage": None}, "'usage' is no setting of the analysis; there are leanings, families"),
        ({"interval": "bca"}, "'interval' was removed: all intervals are percentile intervals"),
        ({"ensembles": [["g"]]}, "'ensembles' was removed: reports no longer show several graders"),
    ):
        with pytest.raises(InputError) as raised:
            with_changes(AnalysisSettings(), DecisionSettings(), changes)
        assert str(raised.value).startswith(sentence)


def test_changes_reach_the_section_that_has_them_and_a_column_named_twice_is_one():
    columns = ("topic", "side", "topic")
    before = AnalysisSettings(slices=columns), DecisionSettings(min_clusters=50)
    settings, decision = with_changes(*before, {"margin": 0.2, "bias_bound": 0.3})
    assert (settings.margin, settings.slices) == (0.2, ("topic", "side"))
    assert (decision.bias_bound, decision.min_clusters) == (0.3, 50)


@pytest.mark.parametrize("kind", [AnalysisSettings, StudyConfig])
def test_a_setting_that_went_is_accepted_as_it_was_written_and_named_otherwise(kind):
    """Earlier versions wrote `ensembles = []` and `interval = "percentile"`."""

    def read(**went: object) -> Section:
        analysis = {"margin": 0.2, **went}
        whole = {"name": "s", "seed": 1, "sample": {"pairs": 3}, "analysis": analysis}
        return kind.model_validate(whole if kind is StudyConfig else analysis)

    settings = read(ensembles=[], interval="percentile")
    assert getattr(settings, "analysis", settings).margin == 0.2
    for went, sentence in (
        ({"ensembles": [["g", "h"]]}, "reports no longer show several graders combined into one"),
        ({"interval": "bca"}, "all intervals are percentile intervals"),
    ):
        with pytest.raises(ValidationError) as raised:
            read(**went)
        (name,) = went
        assert fault_of(raised.value).endswith(f"{name} was removed: {sentence}; delete it")


def test_the_settings_load_neither_a_store_nor_a_table():
    script = "import sys, evenhand.study.settings.analysis\n"
    script += "print(sorted({'pandas', 'numpy', 'sqlalchemy', 'tomlkit'} & set(sys.modules)))"
    assert python("-c", script, check=True).stdout.strip() == "[]"


SET = {
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
    "client_id": "evenhand",
    "client_secret": "${OIDC_SECRET}",
    "address": "https://study.example.org/",
    "leads": ["ada@example.org", "sub:00u1"],
}


def test_a_sound_section_is_taken():
    assert OidcSettings.model_validate(SET).address == "https://study.example.org"
    here = SET | {"address": "http://localhost:8501"}
    assert OidcSettings.model_validate(here).address == "http://localhost:8501"
    with_label = SET | {"label": "Log in"}  # a setting of former versions
    assert OidcSettings.model_validate(with_label) == OidcSettings.model_validate(SET)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server_metadata_url", "http://id.example.org/.well-known/openid-configuration"),
        ("server_metadata_url", "id.example.org"),
        ("client_id", ""),
        *(("client_secret", each) for each in ("hunter2 and more", "x${OIDC_SECRET}", "")),
        ("address", "http://study.example.org"),
        *(("address", f"https://{each}") for each in ("s.example/app/page", "s.example/a?b", "")),
        *(("leads", [each]) for each in ("ada", "ada@", "ada@example.org ", "sub:")),
        ("experts", ["@example.org"]),
    ],
)
def test_what_is_not_safe_or_names_nobody_is_refused(key, value):
    with pytest.raises(ValidationError) as refusal:
        OidcSettings.model_validate(SET | {key: value})
    assert "hunter2" not in str(refusal.value.errors()[0]["msg"])
