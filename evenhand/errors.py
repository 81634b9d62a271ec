"""Errors whose message is a sentence for the user, and reasons why a visitor is refused."""

from collections.abc import Iterable
from typing import Literal

from evenhand.texts import written


class InputError(ValueError):
    """Input that cannot be used: one sentence on what is wrong, where (file, row) and the remedy.

    The command line prints the sentence and exits with 2; nothing has been written.
    """


class StoreAway(Exception):  # noqa: N818 - nothing was done wrong
    """The study's store cannot be read or written at present: it is stopped, full, locked or out of
    reach. The operation was not done, and succeeds if repeated once the store is back.
    """


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return the candidate most similar to a word; "" if none is similar.

    >>> nearest("reprot", ["report", "respond"])
    'report'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(candidates), n=1)), "")


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a sentence on an unknown word, with the candidate probably meant, or "".

    >>> did_you_mean("humans", ["human", "model"]), did_you_mean("x", ["human"])
    ('; did you mean human?', '')
    """
    candidate = nearest(word, candidates)
    return f"; did you mean {candidate}?" if candidate else ""


Reason = Literal[
    "bad_code", "code_of_another_kind", "code_has_a_link", "code_alone", "several_spellings",
    "link_invalid", "link_expired", "link_revoked", "no_links", "prolific_only",
    "prolific_unsigned", "prolific_keys_away", "closed_before", "no_places", "wrong_password",
    "wait_seconds", "wait_minutes", "login_ended", "not_an_expert", "account_ended", "not_invited",
    "email_not_verified",
]  # fmt: skip
"""Reasons why a visitor is refused: keys of sentences in `texts.toml` and in each language."""


class Refused(InputError):  # noqa: N818 - named for what happened
    """Refusal of a visitor; pages word its `reason` with `fields` in the visitor's language."""

    def __init__(self, reason: Reason, **fields: object) -> None:
        super().__init__(written(f"refused.{reason}", **fields))
        self.reason = reason
        self.fields = fields
