"""Any Unicode string is a label, a name, a slice or a file name: data keep it, what is shown of it
has visible marks, and nothing falls over.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.analysis.report.files import write_figures
from evenhand.annotate_app.payload import View, page_data
from evenhand.errors import InputError
from evenhand.reporting import exporting
from evenhand.reporting.gate.checks import Check, Gate
from evenhand.reporting.gate.files import junit_xml, summary_markdown
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import validate_ratings
from evenhand.study.tables.spellings import folded
from evenhand.visible import escaped_json, visible, visible_in

CONTROLS = "".join(
    chr(n) for n in (*range(1, 32), *range(0x7F, 0xA0), 0x61C, 0x2028, 0x2029, 0xFEFF, 0xFFFE,
                     0xFFFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xFFF9, 0xFFFC),
                     0xFDD0, 0x1FFFE, 0x10FFFF)
)  # fmt: skip
WHOLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What a file in UTF-8 can hold, without NUL, which is refused in a sentence."""


def is_shown(text: str) -> bool:
    """Whether a terminal, a drawing library and an XML parser take the text as it stands."""
    text.encode()
    kinds = {unicodedata.category(letter) for letter in text if letter not in "\t\n\r"}
    return not kinds & {"Cc", "Cs", "Zl", "Zp"} and not set("\ufffe\uffff\u202e\u2066") & {*text}


@pytest.mark.slow
@given(st.text(st.characters()))
@example(CONTROLS)
@example("\ud800\udc00 \udfff\r\n\r")
def test_what_is_shown_of_any_text_can_be_shown(text: str) -> None:
    shown = visible(text)
    assert is_shown(shown)
    assert visible(shown) == shown
    ElementTree.fromstring(f"<a>{shown.translate({38: None, 60: None})}</a>")  # noqa: S314
    whole = json.dumps([text], ensure_ascii=False)
    # Two halves that meet are one character to JSON.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert json.loads(escaped_json(whole)) == [joined]
    escaped_json(whole).encode()
    assert visible_in({text: [text, 1]}) == {shown: [shown, 1]}


def labelled(label: str, rater: str, grader: str, part: str) -> pd.DataFrame:
    """A wide table in which all names are odd, and both people and the grader agree in part."""
    draw = random.Random(1)
    rows = []
    for number in range(30):
        truth = [draw.random() < share for share in (0.5, 0.1, 0.2)]
        given = [truth[0] ^ error for error in (False, truth[1], truth[2])]
        names = [label if yes else "no" for yes in given]
        region = part if number % 2 else "north"
        rows.append(dict(zip([rater, "ben", grader, "region"], [*names, region], strict=True)))
    return pd.DataFrame(rows)


@pytest.mark.slow
@settings(
    max_examples=1, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.text(WHOLE, max_size=8), st.text(WHOLE, max_size=8), st.text(WHOLE, max_size=8))
@example(CONTROLS, CONTROLS, CONTROLS)
@example("\x0b", "\u2028", "\x85")
@example("", "\x08O\x98}\U000d8b70\xdd\x06\x12", "d\U00049d4e\x88\U000a4b91\x1fm\U00058b7f")
def test_any_text_names_labels_raters_and_slices(tmp_path, one: str, two: str, three: str) -> None:
    label, rater, grader, part = f"y{one}s", f"a{two}n", f"g{three}r", f"s{one}x"
    table = labelled(label, rater, grader, part)
    try:
        found = eh.check(
            table, human=[rater, "ben"], model=grader, categories=[label, "no"],
            affirmative=label, slices=["region"], resamples=50, name=f"f{two}l",
        )  # fmt: skip
    except InputError as error:
        pytest.fail(f"refused: {error}")
    out = Path(tempfile.mkdtemp(dir=tmp_path)) / "out"
    found.report(out)
    pages = {file.name: file.read_bytes().decode() for file in out.iterdir()}
    assert {"report.html", "report.md", "results.csv", "report.json"} <= {*pages}
    for name in ("report.html", "report.md"):
        assert is_shown(pages[name]), name
    assert pages["report.html"].count("<svg ") >= 2
    assert is_shown(str(found))
    is_shown(found._repr_html_())
    # Data are as they were, but for what nobody sees in names.
    raters = {row[name] for row in json.loads(pages["report.json"])["results"]
              for name in ("rater_a", "rater_b")}  # fmt: skip
    assert {folded(rater), folded(grader)} <= raters
    assert f"region={part}" in {row["subset"] for row in csv.DictReader(
        io.StringIO(pages["results.csv"], newline=""))}  # fmt: skip
    figures = out / "figures"
    write_figures(found.analysis, found.context, figures)
    for file in figures.iterdir():
        if file.suffix in (".svg", ".tex", ".md"):
            assert is_shown(file.read_text("utf-8")), file.name
        if file.suffix == ".svg":
            ElementTree.fromstring(file.read_bytes())  # noqa: S314
    gate = Gate(f"f{two}l", grader, (Check(f"kappa of {label}", "not_met", f"{rater} says {one}"),))
    ElementTree.fromstring(junit_xml(gate))  # noqa: S314
    assert is_shown(summary_markdown(gate))


@pytest.mark.slow
def test_a_study_with_such_names_is_reported_exported_and_shown(make_study, tmp_path) -> None:
    odd = CONTROLS.translate({10: None, 13: None, 9: None})
    study = make_study(rubrics=["refusal"])
    units = study.rubric_units(study.rubrics["refusal"])
    ratings = pd.DataFrame([
        {"unit_id": unit, "rubric": "refusal", "rater_id": rater, "rater_kind": kind,
         "label": str(1 + (n + turn) % 5)}
        for turn, (rater, kind) in enumerate(
            [(f"a{odd}n", "human"), ("ben", "human"), (f"lab:g{odd}r", "model")])
        for n, unit in enumerate(units)
    ])  # fmt: skip
    import_ratings(study, validate_ratings(ratings, "ratings.csv"), "ratings.csv", {})
    written = tmp_path / "ratings.csv"
    written.write_bytes(exporting.as_csv(study, exporting.exported_ratings))
    back = read_table(written)
    assert {f"a{odd}n", f"lab:g{odd}r"} <= {*back["rater_id"]}
    assert page_data(AnnotationDesk(study), "r1", {}, View())["sheet"]


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\x0b\x07\x1b[31m\ufffe\u2028\x85", b"\xff"])
def test_the_program_ends_well_and_the_terminal_gets_no_raw_control(tmp_path, odd) -> None:
    """Of version 0.2.0 `check --out` ended in a native panic, exit 134, or in a traceback."""
    middle = os.fsdecode(odd) if isinstance(odd, bytes) else odd
    inside = "?" if isinstance(odd, bytes) else odd
    label, rater, grader, part = (f"{a}{inside}{a}" for a in "yagn")
    file = tmp_path / f"l{middle}l.csv"
    labelled(label, rater, grader, part).to_csv(file, index=False)
    out = tmp_path / f"o{middle}o"
    command = [sys.executable, "-P", "-m", "evenhand", "check", str(file), "--human",
               f"{rater},ben", "--model", grader, "--categories", f"{label},no",
               "--affirmative", label, "--resamples", "50", "--slice", "region",
               "--out", str(out)]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, cwd=tmp_path)
    said = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == 0, said
    assert is_shown(said)
    assert (out / "report.html").stat().st_size > 10_000
    with contextlib.suppress(OSError):
        Path(file).unlink()
    ended = subprocess.run(command, capture_output=True, cwd=tmp_path)
    said = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == 2
    assert is_shown(said)
    assert len(said.splitlines()) == 1, said
