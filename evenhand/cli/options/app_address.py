"""The app's address, as verbs take it: `--url`."""

from __future__ import annotations

from urllib.parse import urlsplit

from evenhand.errors import InputError

USUAL_ADDRESS = "http://localhost:8501/"


def app_address(text: str) -> str:
    """An address that ends in a slash, for a query to be put behind it.

    Raises InputError where a browser could not open it.

    >>> app_address("https://label.example.org/study")
    'https://label.example.org/study/'
    """
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets that hold no IPv6 address
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(
            f"--url {text!r} is not a valid address; write one such as https://label.example.org/"
        )
    return text if text.endswith("/") else f"{text}/"
