"""Completion of verbs, options and files in the shell: the shell asks this program at each Tab."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.cli.verbs import Parser

SHELLS = ("bash", "zsh", "fish")


def complete(parser: Parser) -> None:
    """Answer a shell that asks for completions, and exit; do nothing otherwise."""
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
    """Return the code that a shell must load once in each session to complete our commands."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["evenhand"], shell=shell)
