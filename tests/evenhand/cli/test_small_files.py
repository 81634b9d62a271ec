"""Each small file gets the answer that its careful reader would give, also in the shapes that
people had trouble with: read right without a word of help, or refused with a proposal that works
(`reading/README.md` of the shared data says which is right).
"""

import shlex
from pathlib import Path

import pytest

from tests.cases import one_in
from tests.commands import Done, Run, proposals
from tests.evenhand.cli.small_files import CASES, VERDICTS, Case


def answer(run: Run, case: Case, options: str = "") -> Done:
    """What evenhand says of the file, typed in its folder."""
    content = case.content if isinstance(case.content, bytes) else case.content.encode()
    Path(case.file).write_bytes(content)
    command = case.command or f"check {case.file}"
    return run(*shlex.split(f"{command} {options}"), "--resamples", "20")


CORE = ("good", "inverted", "one answer", "rows are missing", "one annotator an item")
OTHERS = [
    pytest.param(each, marks=[] if each.name in CORE else pytest.mark.slow) for each in VERDICTS
]


@pytest.mark.parametrize("case", [*CASES, *OTHERS], ids=lambda case: case.name)
@pytest.mark.usefixtures("here")
def test_a_small_file_gets_its_answer(run: Run, case: Case) -> None:
    done = answer(run, case)
    said = done.stdout + done.stderr
    assert done.returncode == case.code, said
    for words in (*case.says, case.mend):
        assert words in said
    if case.code == 2:
        assert "kappa" not in done.stdout  # no figures before the fault
        assert len(done.stderr.splitlines()) == 1
        assert len(done.stderr) < 500
        assert "['" not in done.stderr  # no lists of Python


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", one_in(2, [case for case in CASES if case.code == 2]), ids=lambda case: case.name
)
@pytest.mark.usefixtures("here")
def test_every_option_that_is_proposed_leads_on(run: Run, case: Case) -> None:
    """What is advised helps. The rest is read, or another fault is named: nobody is sent round in
    a circle.
    """
    first = answer(run, case)
    if case.mend:
        done = answer(run, case, case.mend)
        assert (done.returncode, done.stderr) == (0, "")
    for each in proposals(first.stderr):
        again = answer(run, case, each)
        assert again.returncode == 0 or again.stderr != first.stderr, each
        assert "Traceback" not in again.stderr
        assert "unrecognized" not in again.stderr


THREE = "--human ann,ben --model gpt"
SIX = "--human Ann1,Ann2,Ann3,Ann4,Ann5 --model Ann6"
READ = {
    "28c_zw_clean.csv": (THREE, "kappa 0.62 vs 0.77"),
    "28b_zw.csv": (THREE, "kappa 0.62 vs 0.77", "labels 29"),
    "28d_nfd.csv": (THREE, "kappa 0.62 vs 0.77", "labels no, sí"),
    "32b_rater_one.csv": ("", "annotators `ann@x.org`, `ben@x.org`; grader `gpt`"),
    "68_space_ids.csv": ("", "items 40", "Annotators · gpt", "40"),
    "26_nfd_ids.csv": ("", "items 40"),
    "31_float_ids.csv": ("", "items 40"),
    "shape_00_pandas_gap.csv": ("", "items `id`; annotator `human`; grader `judge`", "0, 1"),
    "shape_01_label_column.csv": ("--human label --model prediction",
        "annotator `label`; grader `prediction`"),
    "shape_02_other_info.jsonl": (SIX, "0.59 vs 0.57", "400 items, 5 annotators"),
    "shape_02_soft_label.jsonl": ("--human Ann1,Ann2,Ann3 --model Ann4", "400 items, 3 annotators",
        "labels -5 to 5, ordered"),
    "shape_08_crowd.csv": ("--human '*'", "and 64 more", "74 raters"),
    "shape_12_empty_input.csv": ("--human annotator1,annotator2 --model judge",
        "The column instruction names 100 items"),
}  # fmt: skip
REFUSED = {
    "28e_dash.csv": (THREE, "'off-topic'", "U+2010"),
    "28i_point.csv": (THREE, "'very good.'", "'very good'"),
    "93_apostrophe.csv": (THREE, "U+2019"),
    "32_rater_case.csv": ("", "'Ann@x.org'", "'ann@x.org'"),
    "71_model_case.csv": ("", "'GPT-4o'", "'gpt-4o'"),
    "shape_01_label_column.csv": ("", "--human label --model prediction"),
    "shape_11_missing_99.csv": ("--human ann,ben --model judge", "'99'", "--missing 99"),
    "shape_11_missing_dash.csv": ("--human ann,ben --model judge", "'-'", "--missing=-"),
}


@pytest.fixture
def check(run: Run, shared_data: Path, monkeypatch):
    """check(file, options): what evenhand says of a shared file."""
    monkeypatch.chdir(shared_data / "reading")

    def check(file: str, options: str = "") -> Done:
        return run("check", file, *shlex.split(options), "--resamples", "50")

    return check


@pytest.mark.slow
@pytest.mark.parametrize("file", READ)
def test_a_file_is_read_right(check, file: str) -> None:
    options, *expected = READ[file]
    done = check(file, options)
    assert done.returncode == 0, done.stderr
    for words in expected:
        assert words in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("file", REFUSED)
def test_what_a_refusal_proposes_works(check, file: str) -> None:
    options, *expected = REFUSED[file]
    done = check(file, options)
    assert done.returncode == 2
    for words in (file, *expected):
        assert words in done.stderr
    proposed = proposals(done.stderr)
    assert proposed
    for each in proposed:
        again = check(file, f"{options} {each}")
        assert (again.returncode, again.stderr) == (0, ""), each
