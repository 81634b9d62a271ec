"""Faults of settings in words."""

from __future__ import annotations

import json

from evenhand.study.desk.attention import KnownUnit
from evenhand.study.settings.sections import _FORMS
from evenhand.study.settings.study_toml import StudyConfig


def test_patterns_that_have_words_are_those_of_the_settings() -> None:
    schemas = [json.dumps(each.model_json_schema()) for each in (StudyConfig, KnownUnit)]
    for pattern in _FORMS:
        assert any(json.dumps(pattern) in schema for schema in schemas), pattern
