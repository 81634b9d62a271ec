"""Completion as shells carry it out: each reads the code that is printed for it, then asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# What Tab does in each shell, without a terminal: LINE is what was typed so far.
TAB = {
    "bash": """
        eval "$(evenhand --completion bash)"
        COMP_LINE="$LINE" COMP_POINT=${#LINE} COMP_TYPE=9
        $(complete -p evenhand | sed "s/.*-F \\([^ ]*\\).*/\\1/") evenhand
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        autoload -Uz compinit && compinit -u -D
        eval "$(evenhand --completion zsh)"
        _describe() { print -l -- ${(P)2} }
        BUFFER=$LINE CURSOR=$#LINE words=(${=LINE})
        $_comps[evenhand]
    """,
    "fish": "evenhand --completion fish | source; complete -C $LINE",
}
QUIET = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "line", "offered"),
    [
        ("bash", "evenhand re", {"report", "reproduce", "respond", "restore"}),
        ("bash", "evenhand rubric suggest --pro", {"--proposer"}),
        ("bash", "evenhand plan --statistic a", {"ac1", "alpha"}),
        ("bash", "evenhand report my-", {"my-study/"}),
        ("zsh", "evenhand gate labels.csv --req", {"--require"}),
        ("fish", "evenhand gate labels.csv --req", {"--require"}),
    ],
)
def test_tab_completes(shell: str, line: str, offered: set[str], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "my-study").mkdir()
    (tmp_path / "evenhand").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m evenhand "$@"\n')
    (tmp_path / "evenhand").chmod(0o755)
    done = subprocess.run(
        [program, *QUIET[shell], "-c", TAB[shell]],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LINE": line},
        capture_output=True,
        text=True,
        check=True,
    )
    # fish and zsh add what an option is about.
    said = {text.partition("\t")[0].partition(":")[0].strip() for text in done.stdout.splitlines()}
    assert said == offered, done.stderr
