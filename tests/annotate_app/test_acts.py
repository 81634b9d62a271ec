"""What people press on a page is stored: by callbacks that ask nothing of Streamlit's before."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from evenhand import annotate_app
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.store.schema import flag_events
from harness.served import Served
from harness.studies import send, task_of

FOLDER = Path(annotate_app.__file__).resolve().parent
WRITERS = {
    "add_study", "answer_background", "answer_comprehension", "answer_side", "count_look",
    "create_and_preview", "create_items", "decide", "decide_consent", "disable_account", "exclude",
    "extend_sample", "log_out", "make_invites", "note_act", "pause", "read_feedback",
    "read_rubric", "read_welcome", "readmit", "release", "resume", "revoke_invites",
    "save", "set_account", "settle_beside", "settle_flag", "sort_disagreement",
    "submit_all",
}  # fmt: skip
"""Functions and methods of the study that store what somebody did on a page."""
HANDED_ON = {"act_form", "lead_callback", "partial", "press", "storing_callback"}
"""What is given to these is called later."""


class _Calls(ast.NodeVisitor):
    """Names that a function calls or hands to a process apart, and "st", in their order; of what
    is defined in it and called later, nothing.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.found: list[str] = []
        for statement in function.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        pass

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_keyword(self, node: ast.keyword) -> None:
        if not (node.arg or "").startswith("on_"):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if getattr(node.func, "id", "") not in HANDED_ON:
            for each in (*node.args, *node.keywords, node.func):
                self.visit(each)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self.found.append(node.attr)

    def visit_Name(self, node: ast.Name) -> None:
        self.found.append(node.id)


def functions(code: str) -> dict[str, list[str]]:
    """What is called by each function of a module, and by each that is defined in one."""
    tree = ast.parse(code)
    known = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {id(each) for node in known for each in ast.walk(node) if each is not node}
    names = {id(node): f"a part, {node.name}" if id(node) in inner else node.name for node in known}
    return {names[id(node)]: _Calls(node).found for node in known}


def reaching(goal: set[str], calls: dict[str, list[str]]) -> set[str]:
    """Names of functions that reach one of the goal's, which are among them."""
    while more := {name for name, called in calls.items() if goal.intersection(called)} - goal:
        goal = goal | more
    return goal


def faults(code: str, touching: set[str]) -> Iterator[str]:
    """The functions that store something after they have asked something of Streamlit."""
    calls = functions(code)
    storing = reaching(WRITERS, calls)
    for name, called in calls.items():
        asked = [at for at, each in enumerate(called) if each in touching and each not in storing]
        stored = [at for at, each in enumerate(called) if each in storing]
        if asked and stored and asked[0] < stored[-1]:
            yield name


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("def page(s):\n if st.button('x'):\n  exclude(s)", ["page"]),
        ("def page(s):\n st.button('x', on_click=partial(act, s))\ndef act(s):\n exclude(s)", []),
        ("def page(s):\n st.button('x', on_click=exclude)", []),
        ("def act(s):\n who = require(s)\n exclude(s, who)", ["act"]),
        ("def act(s):\n exclude(s)\n st.session_state['x'] = 1", []),
        ("def act(s):\n exclude(s, st.session_state['x'])", ["act"]),
        ("def act(s):\n exclude(s)\n st.text('x')\n note_act(s)", ["act"]),
        ("def page(s):\n st.text(s)\n act(s)\ndef act(s):\n (pause if s else resume)(s)", ["page"]),
        ("def page(s):\n def act():\n  exclude(s)\n st.button('x', on_click=act)", []),
        ("def page(s):\n st.text('x')\n apart(count_look, s)", ["page"]),
        ("def page(s):\n st.button('x', on_click=lead_callback(s, 'x', act, pause))", []),
    ],
)  # fmt: skip
def test_the_rule_finds_what_breaks_it(code, wrong):
    assert list(faults(code, {"st", "require"})) == wrong


def test_nothing_is_stored_after_streamlit_was_asked_for_something():
    codes = {path: path.read_text("utf-8") for path in FOLDER.rglob("*.py")}
    every = [each for code in codes.values() for each in functions(code).items()]
    public = {name: called for name, called in every if not name.startswith("_")}
    found = set()
    for path, code in codes.items():
        if "import streamlit" in code:  # else no run of Streamlit's is in it
            touching = reaching({"st"}, public | functions(code))
            found |= {f"{path.stem}.{name}" for name in faults(code, touching)}
    # A wish that a button has left is carried out by the run that reaches it, and kept until then.
    wishes = {f"new_study_page.{name}" for name in ("_carry_out", "_of_items", "_of_pairs")}
    assert found == wishes | {"new_study_page.show_new_study"}


# ---- in a browser -------------------------------------------------------------------------------


REASONS = ("harmful", "personal_data", "broken_text", "unclear_rubric", "other")
SLOW = """
    CREATE TABLE slow (n);
    WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500)
    INSERT INTO slow SELECT n FROM c;
    CREATE TRIGGER slowly BEFORE INSERT ON flag_events
    BEGIN SELECT count(*) FROM slow a, slow b WHERE a.n + b.n < 0; END;
"""
"""Makes the store take some .3 s to write what is done about a flag."""


@pytest.fixture
def served(make_study, serve_study) -> Served:
    folder = make_study(2)
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "ann").task_id
        flags = [Flag(submit_id=each, task_id=task, reason=each) for each in REASONS]
        send(desk, "ann", *flags)
        with study.store.write() as connection:
            connection.connection.executescript(SLOW)
    return serve_study(folder)


def click_all(page: Page, name: str) -> None:
    """Click on all buttons of this name as fast as fingers can."""
    buttons = page.get_by_role("button", name=name)
    expect(buttons).to_have_count(len(REASONS), timeout=120_000)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    buttons.evaluate_all(
        """async (buttons) => {
            for (const button of buttons) {
                button.click();
                await new Promise((done) => setTimeout(done, 60));
            }
        }"""
    )


@pytest.mark.browser
@pytest.mark.journey
def test_five_quick_clicks_are_five_acts_while_the_store_is_slow(lead, served):
    page = lead(served, "Flags")
    answers = page.get_by_label("What was done about it")
    expect(answers).to_have_count(len(REASONS), timeout=120_000)
    for number in range(len(REASONS)):
        answers.nth(number).fill(f"did {number}")
    click_all(page, "Mark as dealt with")
    expect(answers).to_have_count(0, timeout=120_000)
    with open_study(served.folder) as study:
        said = study.store.values(sa.select(flag_events.c.text))
    assert sorted(said) == [f"did {number}" for number in range(len(REASONS))]
