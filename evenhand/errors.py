"""The errors that a user is meant to read."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used: one sentence naming the place (file, row) and the remedy.

    The command line prints the sentence and exits with 2; nothing has been written by then.
    """


class StoreAway(Exception):  # noqa: N818 - nothing was done wrong
    """The study's store cannot be read or written for now: stopped, full, locked, out of reach.

    The operation was not done. It may be repeated: once the store is back, it succeeds.
    """
