"""What the doctor finds: each fault of a served study by itself, and none where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenhand.study import open_study
from evenhand.study.keeping.backup import keep_backups
from evenhand.study.keeping.doctor import examine, serving_notes
from evenhand.study.settings.study_toml import change_config

URL = "https://study.example.org/"


@pytest.fixture
def sound(make_study, tmp_path: Path) -> Path:
    """A study that is served as docs/serving.md says."""
    study = make_study()
    study.close()
    well = {"entry": "invite", "trusted_proxies": ["127.0.0.1"]}
    change_config(study.folder, {"session": well})
    (tmp_path / "backups").mkdir()
    keep_backups(study.folder, tmp_path / "backups", 14, verify=True)
    return study.folder


def ills(folder: Path, url: str = URL) -> list[str]:
    return [each.says for each in examine(folder, url) if not each.is_well]


def test_a_sound_study_has_nothing_to_mend(sound):
    assert ills(sound) == []
    assert len(examine(sound, URL)) >= 7
    with open_study(sound) as study:
        assert serving_notes(study, URL) == []


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda f: change_config(f, {"session": {"entry": "open"}}), "any rater code"),
        (lambda f: change_config(f, {"session": {"trusted_proxies": []}}), "No proxy is trusted"),
        (lambda f: (f / "study.toml").chmod(0o644), "Others on this machine can read"),
        (lambda f: os.chown(f / "study.db", 12345, 12345), "Files of another owner"),
        (lambda f: (f / "study.db").rename(f / "elsewhere.db"), "does not open"),
        (lambda f: change_config(f, {"annotation": {"rubrics": ["absent"]}}), "does not open"),
    ],
    ids=["open", "proxy", "modes", "owner", "store", "settings"],
)
def test_each_fault_is_found_by_itself(sound, harm, says):
    if "owner" in says and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    harm(sound)
    (found,) = ills(sound)
    assert says in found


def test_where_people_reach_it_counts(sound):
    assert "Only this machine's own names" in ills(sound, "")[0]
    assert "without TLS" in ills(sound, "http://study.example.org/")[0]
    change_config(sound, {"session": {"hosts": ["lab.example.org"]}})
    assert ills(sound, "") == []


def test_a_study_without_a_backup_is_told_so(make_study):
    study = make_study()
    assert any("No backup has been made" in each for each in ills(study.folder))
