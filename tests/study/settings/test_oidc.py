"""The section of the single sign-on: what it takes, and what it refuses."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evenhand.study.settings.session import OidcSettings

SET = {
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
    "client_id": "evenhand",
    "client_secret": "${OIDC_SECRET}",
    "address": "https://study.example.org/",
    "leads": ["ada@example.org", "sub:00u1"],
}


def test_a_sound_section_is_taken() -> None:
    assert OidcSettings.model_validate(SET).address == "https://study.example.org"
    here = SET | {"address": "http://localhost:8501"}
    assert OidcSettings.model_validate(here).address == "http://localhost:8501"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server_metadata_url", "http://id.example.org/.well-known/openid-configuration"),
        ("server_metadata_url", "id.example.org"),
        ("client_id", ""),
        ("client_secret", "hunter2 and more"),
        ("client_secret", "x${OIDC_SECRET}"),
        ("client_secret", ""),
        ("address", "http://study.example.org"),
        ("address", "https://study.example.org/app/page"),
        ("address", "https://study.example.org/app?page"),
        ("address", "https://"),
        ("leads", ["ada"]),
        ("leads", ["ada@"]),
        ("leads", ["ada@example.org "]),
        ("leads", ["sub:"]),
        ("experts", ["@example.org"]),
    ],
)
def test_what_is_not_safe_or_names_nobody_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError) as refusal:
        OidcSettings.model_validate(SET | {key: value})
    assert "hunter2" not in str(refusal.value.errors()[0]["msg"])
