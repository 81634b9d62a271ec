"""A study before it is there: what it would mean, which names annotators would see, and nothing
left behind that is half of one.
"""

import os
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.annotate_app.sites import studies_in, study_path
from evenhand.errors import InputError
from evenhand.reporting import new_study
from evenhand.reporting.ratings_file.declared import ItemOptions
from evenhand.study import open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.claims import oversight
from harness.studies import write_pairs, write_responses
from tests.cases import refused


@pytest.mark.journey
def test_the_preview_is_that_of_the_study_and_a_bad_file_leaves_nothing(tmp_path):
    (tmp_path / "files").mkdir()
    plan = StudyPlan(
        pairs=write_pairs(tmp_path / "files" / "pairs.csv"),
        responses=write_responses(tmp_path / "files" / "responses.jsonl"),
        rubrics=usual_rubrics(propositions=False),
        sample=4,
    )
    before = sorted(tmp_path.iterdir())
    found = new_study.preview_only(new_study.create_and_preview, plan)
    assert (found.sampled, found.total, found.noun) == (4, 6, "pairs")
    loads = {each.rubric: each.judgments for each in found.load}
    assert loads["even-handedness"] == 4 * 2 * 3  # pairs, subjects, people
    assert found.precision[0].startswith("What 4 pairs")
    assert sorted(tmp_path.iterdir()) == before
    folder = new_study.folder_next_to(tmp_path / "present", "second")
    assert new_study.create_and_preview(folder, plan) == found
    with open_study(tmp_path / "second") as study:
        assert (study.config.name, len(study.store.sample())) == ("second", 4)
    plan.responses.write_text('{"subject": "s", "prompt": "not there", "response": "x"}\n', "utf-8")
    before = sorted(tmp_path.rglob("*"))
    refused("", new_study.create_and_preview, tmp_path / "third", plan)
    assert sorted(tmp_path.rglob("*")) == before
    single = tmp_path / "f.csv"
    single.write_text("prompt,response,model\np,a b,x\np,b c,y\n", "utf-8")
    with pytest.raises(InputError, match="in columns called response_a and response_b"):
        new_study.read_content(single, ItemOptions(rubric=["preference"]))


@pytest.mark.journey
def test_a_folder_without_a_study_begins_with_one_that_makes_others(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    start = new_study.start_study(folder)
    assert new_study.start_study(folder) == start
    assert study_path(start.name) == "/.start"
    with open_study(start) as study:
        assert oversight(study.store).paused
    assert studies_in([folder]) == [folder.resolve()]  # it is none of the folder's
    with pytest.raises(InputError, match="no such file or directory; name another"):
        new_study.start_study(tmp_path / "neither" / "there")


@pytest.mark.parametrize("name", ["", "..", "a/b", "../up", ".hidden", "x" * 65, "a b", "C:\\x"])
def test_a_name_never_leads_elsewhere(tmp_path, name):
    refused("a study's name is", new_study.folder_next_to, tmp_path / "present", name)


def test_what_is_there_is_left_alone_and_what_cannot_be_written_is_not_begun(tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "third").symlink_to(tmp_path / "nowhere")
    for name in ("second", "third"):
        refused("choose another", new_study.folder_next_to, tmp_path / "present", name)
    for home in ("home", "closed"):
        if home == "closed":  # whoever may write anywhere can write here
            (tmp_path / home).mkdir(mode=0o500)
        if home == "home" or os.geteuid():
            with pytest.raises(InputError, match="nothing can be written beside this study"):
                new_study.folder_next_to(tmp_path / home / "present", "second")


@pytest.mark.parametrize(("row", "options", "told"), [
    ({"output": "As GPT-4o, I say blue."}, "", "in 1 of 2 items, p0002 first (GPT-4o"),
    ({"output": "I am m1."}, "", "2 first (m1 in response)"),
    ({"output": "Jo is no joe.", "model": "joe"}, "", "p0002 first (joe in response)"),
    ({"context": "By gemini-2.5-pro."}, "", "2 first (gemini-2.5-pro in context)"),
    ({"output": "Blue. gpt_judge: yes"}, "--judge gpt_judge", "(gpt_judge in response)"),
    ({"gpt-4o": "It is blue.", "claude-opus": "It is red."},
     "--show question,gpt-4o,claude-opus", "Gpt-4o, Claude-opus. Rename these columns"),
    ({"output": "In m12, at 4o'clock, a llama met an alpaca, the judge ruled. rating: none."},
     "--judge judge", ""),
])  # fmt: skip
def test_names_in_texts_and_headings_are_counted(here, run, row, options, told):
    quiet = {"question": "Which colour?", "output": "It is blue.", "model": "m1", "judge": "yes"}
    rows = pd.DataFrame([quiet, quiet | row]).fillna("A plain text.").assign(gpt_judge="yes")
    rows.to_csv("items.csv", index=False)
    words = f"new s --items items.csv --question Right? --options yes,no {options}"
    printed = " ".join(run.ok(*words.split()).split())
    assert told in printed
    assert ("Annotators may see names" in printed) == bool(told)
    again = eh.label("items.csv", "s")
    assert [note[:24] for note in again.notes[1:]] == ["Annotators may see names"] * bool(told)
