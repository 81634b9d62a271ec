"""A study with another value of one setting, and the tests of settings that no report shows."""

import shutil
import tomllib
from pathlib import Path

from evenhand.study.settings.study_toml import change_config


def changed(folder: Path, to: Path, setting: str, value: object) -> Path:
    """A copy of the study with another value of one setting in its study.toml."""
    shutil.copytree(folder, to)
    section, _, key = setting.rpartition(".")
    text = (to / "study.toml").read_text("utf-8")
    if not section and not isinstance(value, dict):  # a key at the top
        lines = [line for line in text.splitlines() if not line.startswith(f"{setting} =")]
        written = str(value).lower() if isinstance(value, bool) else repr(value)
        (to / "study.toml").write_text("\n".join([f"{setting} = {written}", *lines]), "utf-8")
    elif isinstance(value, dict) and not section:
        change_config(to, {f"{setting}.{each}": inner for each, inner in value.items()})
    else:
        change_config(to, {section: {key: value}})
    return to


TESTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ELSEWHERE = {
    setting: (file, test)
    for file, tests in TESTS.items()
    for test, settings in tests.items()
    for setting in settings
}
"""Setting -> the file under tests/ and the test that sees what it does."""
