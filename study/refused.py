"""Reasons why a visitor is not let in, which a page can give in the visitor's language."""

from __future__ import annotations

from typing import Literal

from evenhand.errors import InputError
from evenhand.texts import written

Reason = Literal[
    "bad_code", "code_of_another_kind", "code_has_a_link", "code_alone", "several_spellings",
    "link_invalid", "link_expired", "link_revoked", "no_links", "prolific_only",
    "prolific_unsigned", "prolific_keys_away", "closed_before", "no_places", "wrong_password",
    "wait_seconds", "wait_minutes", "login_ended", "not_an_expert", "account_ended", "not_invited",
    "email_not_verified",
]  # fmt: skip


class Refused(InputError):  # noqa: N818 - named for what happened
    """A visitor's input does not let them in; as a text it is the English sentence."""

    def __init__(self, reason: Reason, **fields: object) -> None:
        super().__init__(written(f"refused.{reason}", **fields))
        self.reason = reason
        self.fields = fields
