"""The one error that a user is meant to read."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used: one sentence naming the place (file, row) and the mend.

    The command line prints the sentence and exits with 2; nothing has been written by then.
    """
