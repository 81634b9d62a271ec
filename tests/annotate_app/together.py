"""Two studies behind one address, and how they are asked without a browser."""

import http.client
from pathlib import Path

from evenhand.study import open_study
from evenhand.study.access import set_account
from evenhand.study.settings.study_toml import change_config
from harness.served import ServedTogether
from harness.studies import panel_study

NAMES = ("first", "second")
PASSWORD = "a long enough one"
PROXY = "127.0.0.9"


def two_studies(home: Path) -> list[Path]:
    """Two studies in folders of their own names, each with its own password for its lead."""
    for number, name in enumerate(NAMES):
        (home / f"of-{name}").mkdir()
        panel_study(home / f"of-{name}", 6 + number).rename(home / name)
        change_config(home / name, {"session": {"trusted_proxies": [PROXY]}})
        with open_study(home / name) as study:
            set_account(study.store, "ada", f"{PASSWORD} for {name}", "lead")
    return [home / name for name in NAMES]


def asked(
    together: ServedTogether, path: str, address: str = "127.0.0.1", **headers: str
) -> tuple[int, str]:
    """The status and text with which somebody at this loopback address is answered."""
    line = http.client.HTTPConnection(
        "127.0.0.1", together.port, timeout=20, source_address=(address, 0)
    )
    line.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = line.getresponse()
    found = answer.status, answer.read().decode()
    line.close()
    return found
