"""Every sentence is used, renders with what it is given, and is written as the guide says; any
Unicode string in one has visible marks, and nothing falls over.
"""

import ast
import csv
import io
import json
import math
import os
import random
import re
import string
import tempfile
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.analysis.report.files import write_figures
from evenhand.annotate_app.payload import page_data
from evenhand.errors import InputError
from evenhand.reporting import exporting
from evenhand.reporting.gate import Check, Gate, junit_xml, summary_markdown
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.tables.columns import folded
from evenhand.study.tables.formats import read_table
from evenhand.texts import escaped_json, texts, visible, visible_in, written
from harness.studies import with_labels
from tests.commands import python

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "annotate_app", "evenhand", "exchange", "graders", "rubrics", "study")
WRITERS = ("written", "in_pieces", "say", "warn")
HAND_ON = ("cli/terminal.py", "report/charts.py", "report/blocks.py", "report/source.py")
NOT_SAID = (
    "cannot be told", "sat beside", "set beside", "no condition", "stands in", "95% interval",
    "cannot tell", "human rater", "in force", "talk it round", "talked round", "knocked off",
    "rarer kind", "put to", "whoever ", "anew", "hardly agree", "binary verdict",
)  # fmt: skip
"""Turns of phrase that read as translated, and private words for terms of the field."""


def _calls() -> Iterator[tuple[str, str, frozenset[str] | None]]:
    """(file, key, names of the fields given) of every `written`; None where these are not to be
    read off the call.
    """
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        source = file.read_text("utf-8")
        if not any(f"{name}(" in source for name in WRITERS):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        constants = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
        for table in (file.parent / name for name in list(constants) if name.endswith(".toml")):
            constants |= set(re.findall(r"\w+", table.read_text() if table.is_file() else ""))
        if "because(" in source:  # writes a reason, and the same in a few words
            both = {f"{room}.{name}" for room in ("because", "short") for name in constants}
            yield from ((str(file.relative_to(ROOT)), key, None) for key in both & texts().keys())
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS:
                if file.as_posix().endswith(HAND_ON) and isinstance(node.args[0], ast.Name):
                    continue  # a key that stands where it is asked for, or is declared
                names = [each.arg for each in node.keywords]
                known = None not in names and isinstance(node.args[0], ast.Constant)
                given = frozenset(filter(None, names)) if known else None
                for key in _keys_of(node.args[0], constants):
                    yield str(file.relative_to(ROOT)), key, given


def _keys_of(argument: ast.expr, constants: set[str]) -> list[str]:
    """What a key may be: one, one of two, or room and a name in the same file or its tables."""
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    if isinstance(argument, ast.IfExp):
        return [*_keys_of(argument.body, constants), *_keys_of(argument.orelse, constants)]
    assert isinstance(argument, ast.JoinedStr), ast.unparse(argument)
    parts = (
        re.escape(str(each.value)) if isinstance(each, ast.Constant) else "([a-z0-9_]+)"
        for each in argument.values
    )
    pattern = re.compile("".join(parts))
    matches = filter(None, map(pattern.fullmatch, texts()))
    found = [each.group() for each in matches if set(each.groups()) <= constants]
    assert found, f"no sentence is called {pattern.pattern}"
    return found


calls = cache(lambda: set(_calls()))


def _places(key: str) -> dict[str, str]:
    """What a sentence has a place for, and the form that it asks for."""
    return {name: form or "" for _, name, form, _ in string.Formatter().parse(texts()[key]) if name}


@pytest.mark.journey
def test_a_call_gives_what_its_sentence_asks_for() -> None:
    for file, key, fields in calls():
        assert key in texts(), f"{file}: no sentence is called {key}"
        named = frozenset(re.split(r"[.\[]", name)[0] for name in _places(key))
        assert fields in (None, named), f"{file}: {key}"


def test_no_sentence_is_left_over() -> None:
    report = ROOT / "analysis" / "report"
    used = {key for _, key, _ in calls()}
    used |= {*re.findall(r'"(\w+\.\w+)"', (report / "tables.toml").read_text("utf-8"))}
    for file in report.glob("templates/*"):
        used |= {*re.findall(r'(?:written\("|"\$)(\w+\.\w+)"', file.read_text("utf-8"))}
    assert texts().keys() == used


def test_sentences_are_plain() -> None:
    for key in texts():
        text = written(key, **{name: 0.5 if form else "X" for name, form in _places(key).items()})
        for sentence in re.split(r"(?<=[.!?:;])\s+|\n+", text):
            assert len(sentence.split()) <= 25, (key, sentence)
        assert not [turn for turn in NOT_SAID if turn in text], (key, text)
        assert "  " not in text, key
        assert text == text.strip(), key
    for page in (ROOT / "README.md", ROOT / "evenhand/cli/verbs.toml", *ROOT.glob("docs/*.md")):
        assert not [turn for turn in NOT_SAID if turn in page.read_text("utf-8")], page


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, np.float64("nan")])
def test_a_number_that_is_none_is_a_dash(value) -> None:
    said = written("cockpit.amount", amount=value, currency="USD")
    assert "—" in said
    assert not {"nan", "inf", "None"} & set(re.findall(r"\w+", said))


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
    draw, rows = random.Random(1), []
    for number in range(30):
        truth, *errors = [draw.random() < share for share in (0.5, 0.1, 0.2)]
        given = [label if truth ^ error else "no" for error in (False, *errors)]
        rows.append([*given, part if number % 2 else "north"])
    return pd.DataFrame(rows, columns=[rater, "ben", grader, "region"])


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
    raters = [f"a{odd}n", "ben", f"lab:g{odd}r"]
    given = {who: [str(1 + (n + turn) % 5) for n in range(24)] for turn, who in enumerate(raters)}
    with_labels(study, given, graders=raters[2:])
    written = tmp_path / "ratings.csv"
    written.write_bytes(exporting.as_csv(study, exporting.exported_ratings))
    assert {*raters} <= {*read_table(written)["rater_id"]}
    assert page_data(AnnotationDesk(study), "r1")["sheet"]


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\x0b\x07\x1b[31m\ufffe\u2028\x85", b"\xff"])
def test_the_program_ends_well_and_the_terminal_gets_no_raw_control(tmp_path, odd) -> None:
    """Of version 0.2.0 `check --out` ended in a native panic, exit 134, or in a traceback."""
    middle = os.fsdecode(odd) if isinstance(odd, bytes) else odd
    inside = "?" if isinstance(odd, bytes) else odd
    label, rater, grader, part = (f"{a}{inside}{a}" for a in "yagn")
    file, out = tmp_path / f"l{middle}l.csv", tmp_path / f"o{middle}o"
    labelled(label, rater, grader, part).to_csv(file, index=False)
    asked = ["--human", f"{rater},ben", "--model", grader, "--categories", f"{label},no"]
    asked += ["--affirmative", label, "--resamples", "50", "--slice", "region", "--out", str(out)]
    for code in (0, 2):
        ended = python("-m", "evenhand", "check", file, *asked, text=False, cwd=tmp_path)
        said = (ended.stdout + ended.stderr).decode()
        assert ended.returncode == code, said
        assert is_shown(said)
        if code == 0:
            assert (out / "report.html").stat().st_size > 10_000
            file.unlink()
    assert len(said.splitlines()) == 1, said
