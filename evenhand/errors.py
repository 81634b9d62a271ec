"""Errors whose message is a sentence for the user, and reasons why a visitor is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from evenhand.texts import written


class InputError(ValueError):
    """Input that cannot be used: one sentence with the place (file, row) and the remedy.

    The command line prints the sentence and exits with 2; nothing has been written.
    """


class StoreAway(Exception):  # noqa: N818 - nothing was done wrong
    """The study's store cannot be read or written at present: it is stopped, full, locked or out of
    reach. The operation was not done, and succeeds if repeated once the store is back.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word most similar to another; "" if none is similar.

    >>> nearest("reprot", ["report", "respond"])
    'report'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence on an unknown word: the word probably meant, if any.

    >>> did_you_mean("humans", ["human", "model"]), did_you_mean("x", ["human"])
    ('; did you mean human?', '')
    """
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


Reason = Literal[  # which a page can give in the visitor's language
    "bad_code", "code_of_another_kind", "code_has_a_link", "code_alone", "several_spellings",
    "link_invalid", "link_expired", "link_revoked", "no_links", "prolific_only",
    "prolific_unsigned", "prolific_keys_away", "closed_before", "no_places", "wrong_password",
    "wait_seconds", "wait_minutes", "login_ended", "not_an_expert", "account_ended", "not_invited",
    "email_not_verified",
]  # fmt: skip


class Refused(InputError):  # noqa: N818 - named for what happened
    """A visitor's input that does not let them in; `reason` and `fields` are for their language."""

    def __init__(self, reason: Reason, **fields: object) -> None:
        super().__init__(written(f"refused.{reason}", **fields))
        self.reason = reason
        self.fields = fields
