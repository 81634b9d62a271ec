"""Keywords of `import evenhand`: typed, shown to editors, and the nearest named for a wrong one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.options import SCALE_OPTIONS
from evenhand.cli.studies import ITEM_OPTIONS
from evenhand.reporting import keywords
from evenhand.reporting.planning import Assumptions
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings

TABLE = {"ann": list("yn") * 20, "ben": list("yyn") * 13 + ["n"], "gpt": list("yynn") * 10}
WHO: dict[str, Any] = {"human": ["ann", "ben"], "model": "gpt", "resamples": 20}


def test_every_setting_is_a_keyword() -> None:
    known = {*AnalysisSettings.model_fields, *DecisionSettings.model_fields, "seed"}
    # Of labels `overlap` says how they were chosen; of a plan it is the share with several.
    assert set(keywords.Settings.__annotations__) == known - {"overlap"}
    assert set(keywords.TuningKeywords.__annotations__) == {
        *keywords.RatingsKeywords.__annotations__
    } - {"reference"}


def test_every_option_of_the_commands_is_a_keyword() -> None:
    plural = {"--threshold": "thresholds"}
    options = {plural.get(each, each.strip("-").replace("-", "_")) for each in SCALE_OPTIONS}
    own = {"name", "overlap"}
    said = set(keywords.RatingsKeywords.__annotations__) - set(keywords.Settings.__annotations__)
    assert said == options | own
    items = {each.strip("-").replace("-", "_") for each in ITEM_OPTIONS}
    of_study = {"rubric", "sample", "stratify", "seed", "raters"}
    assert set(keywords.LabelKeywords.__annotations__) == items | of_study
    planned = set(keywords.PlanKeywords.__annotations__) - set(
        keywords.RatingsKeywords.__annotations__
    )
    assert planned | {"overlap"} == {each.name for each in fields(Assumptions)}


@pytest.mark.parametrize(
    "name", ["check", "gate", "compare", "select", "calibrate", "plan", "label"]
)
def test_editors_see_every_keyword(name: str) -> None:
    function = getattr(eh, name)
    shown = inspect.signature(function).parameters
    assert all(each.kind != inspect.Parameter.VAR_KEYWORD for each in shown.values())
    assert {"human", "margin", "reference"} <= set(shown) or name == "label"
    assert inspect.getdoc(function)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: eh.check(TABLE, humans=["ann"]),
         "check has no argument humans; did you mean human?"),
        (lambda: eh.gate(TABLE, "gpt", requires="verdict"),
         "gate has no argument requires; did you mean require?"),
        (lambda: eh.select(TABLE, marjin=0.1),
         "select has no argument marjin; did you mean margin?"),
        (lambda: eh.plan(half_widht=0.1),
         "plan has no argument half_widht; did you mean half_width?"),
        (lambda: eh.calibrate(TABLE, objektive="f1"),
         "calibrate has no argument objektive; did you mean objective?"),
        (lambda: eh.compare(TABLE, "gpt", base_line="b"),
         "compare has no argument base_line; did you mean baseline?"),
        (lambda: eh.label(TABLE, "s", qestion="?"),
         "label has no argument qestion; did you mean question?"),
        (lambda: eh.check(TABLE, zzz=1), "check has no argument zzz"),
        (lambda: eh.check(TABLE, **WHO, level="ordnal"),
         "level is 'ordnal'; did you mean ordinal?"),
        (lambda: eh.check(TABLE, **WHO, interval="bac"), "interval is 'bac'; did you mean bca?"),
        (lambda: eh.check(TABLE, **WHO, scope="those"), "scope is 'those'; did you mean these?"),
        (lambda: eh.plan(statistic="zzz"),
         "statistic is 'zzz'; use kappa, alpha, ac1, rate, threshold"),
        (lambda: eh.calibrate(TABLE, objective="youdn"),
         "objective is 'youdn'; did you mean youden?"),
        (lambda: eh.check(TABLE, **WHO, thresholds={"gpt": "x"}),
         "thresholds has 'x' for 'gpt'; give a number from 0 to 1"),
        (lambda: eh.gate(TABLE, "gpt", drift_margin=0.1, **WHO),
         "drift_margin= is about a comparison with a baseline; add baseline="),
        (lambda: eh.gate(TABLE, "gpt", new_rubric=True, **WHO),
         "new_rubric=True is about a comparison with a baseline; add baseline="),
        (lambda: eh.gate(TABLE, "gpt", "kapa > 0", **WHO),
         "require: there is no statistic 'kapa' here"),
        (lambda: eh.gate(TABLE, "gtp", **WHO), "there is no grader 'gtp' here; the raters are"),
        (lambda: eh.compare(TABLE, "gpt", **WHO),
         "name the baseline=, or with against= the grader to compare with"),
        (lambda: eh.calibrate(TABLE, **WHO), "there are no probabilities to tune a threshold on"),
        (lambda: eh.plan(power=2), "power= is 2; it must lie between 0 and 1"),
        (lambda: eh.check(TABLE, **WHO, categories={"y", "n"}),
         'categories is in order; give a list, such as categories=["1", "2"]'),
        (lambda: eh.check(TABLE, **WHO, categories="yn"), "categories is in order; give a list"),
        (lambda: eh.check(TABLE, **WHO, sheet="labels"),
         "sheet= names one of a workbook; a table in memory has none, leave it out"),
        (lambda: eh.label(TABLE, "s", question="?", options=["a", "b"], sheet="labels"),
         "sheet= names one of a workbook; a table in memory has none, leave it out"),
        (lambda: eh.plan(categories=["y", "n"]),
         "categories= is about the labels of a pilot; give its table or path"),
        (lambda: eh.plan(TABLE, agreement=0.9),
         "agreement= is an assumption for planning without a pilot; leave it out"),
        (lambda: eh.read("x.csv", sep=";"), "read has no argument sep"),
        (lambda: eh.read(TABLE), "path must be text or a path, not a dict"),
        (lambda: eh.check(TABLE, **WHO, margin="x"), "margin must be a number, not 'x'"),
        (lambda: eh.check(TABLE, **WHO, margin=True), "margin must be a number, not True"),
        (lambda: eh.check(TABLE, **WHO, seed=None), "seed must be a whole number, not None"),
        (lambda: eh.check(TABLE, **WHO, seed=-1), "seed must be 0 or more"),
        (lambda: eh.check(TABLE, **WHO, slices=5), "slices must be text or a list, not 5"),
        (lambda: eh.check(TABLE, **WHO, columns="unit=item"),
         "columns must be a dict, not 'unit=item'"),
        (lambda: eh.check(TABLE, **WHO, normalise="no"), "normalise must be True or False, not"),
        (lambda: eh.gate(TABLE, 5, **WHO), "grader must be text, not 5"),
        (lambda: eh.gate(TABLE, "gpt", baseline=TABLE), "baseline must be text or a path, not a"),
        (lambda: eh.plan(raters=2.5), "raters must be a whole number, not 2.5"),
        (lambda: eh.label(TABLE, "s", question="?", scale=5), "scale must be text, not 5"),
        (lambda: eh.label({"response": ["x"]}, "s", question="?", options=["a"]),
         'options: name two options at least, such as options=["yes", "no"]'),
        (lambda: eh.label({"response": ["x"]}, "s"),
         'Say what to ask: question="TEXT" with options=["yes", "no"] or scale="1-5", or rubric='),
        (lambda: eh.label(TABLE, question="?"),
         "a table has no name for the study; name its folder: label(items, FOLDER)"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(call: Any, says: str) -> None:
    with pytest.raises(eh.InputError) as error:
        call()
    assert str(error.value).startswith(says)
    assert "--" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_column_may_be_named_alone() -> None:
    table = TABLE | {"topic": ["tax", "war"] * 20}
    one, several = (eh.check(table, **WHO, slices=each) for each in ("topic", ["topic"]))
    assert one.results.equals(several.results)
    assert one.results["subset"].str.startswith("topic=").any()


WITHOUT_STUDIES = """
import sys
import evenhand as eh
class Lean:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sqlalchemy":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Lean())
try:
    eh.label([{"response": "x"}], "s", question="?", options=["a", "b"])
except eh.InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_library_that_is_not_installed_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_STUDIES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "sqlalchemy is not installed here; write `pip install 'evenhand[study]'`" in done.stdout
