"""Completion of verbs, options and files in the shell: the shell asks this program at each Tab."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.cli.verbs import Parser

SHELLS = ("bash", "zsh", "fish")


def complete(parser: Parser) -> None:
    """Where a shell asks, answer it and exit; else nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    own = parser
    for word in os.environ["COMP_LINE"].split():
        if word in own.verbs:
            own = own.verbs[word]
            own.declare()  # argcomplete looks at the options before the parser comes to this
    argcomplete.autocomplete(parser, always_complete_options=False)


def shell_code(shell: str) -> str:
    """What a shell has to read, once in each session, so that it asks."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["evenhand"], shell=shell)
