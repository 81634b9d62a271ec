"""A study appears whole or not at all, also in a database; leftovers of killed processes go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.rubrics import load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.tables.files import scratch_folder


def test_on_a_server_a_study_that_could_not_be_made_leaves_nothing(
    tmp_path: Path, new_postgresql: Callable[[], str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("prompt_a,prompt_b\nOne?,Other?\n")
    plan = StudyPlan(pairs=pairs, rubrics=[load_rubric("refusal")], store=new_postgresql())

    def dies(_: Study) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_study(tmp_path / "s", plan, dies)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]
    create_study(tmp_path / "s", plan)
    with open_study(tmp_path / "s") as study:
        assert len(study.store.pairs()) == 1


def test_leftovers_are_removed_and_folders_in_use_are_not(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, ".s[1].") as first:
        (tmp_path / ".s[1].0123abcd").mkdir()
        (tmp_path / ".s[1].notes-me").mkdir()
        with scratch_folder(tmp_path, ".s[1].") as second:
            assert {path.name for path in tmp_path.iterdir()} == {
                *(first.name, second.name, ".s[1].notes-me")
            }
        assert first.is_dir()
        assert not second.exists()
