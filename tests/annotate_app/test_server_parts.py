"""Parts of the server by themselves, and rules that the app's files keep."""

import ast
import asyncio
import io
import logging
import re
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand import annotate_app
from evenhand.annotate_app import command, sites
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.lead.parts import MOST_MB
from evenhand.annotate_app.payload import panel_path
from evenhand.annotate_app.routes import Health, LogLimit, front_page, modules_of, visitor
from evenhand.annotate_app.sites import Site, client_address, start_watch
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import change_config
from evenhand.study.workspace import StoreState
from harness.studies import with_labels

WELL, AWAY = StoreState(can_read=True, can_write=True), StoreState(can_read=False, can_write=False)
PROXY, INNER, CLIENT = "10.0.0.1", "10.0.0.2", "203.0.113.9"


def test_however_many_want_to_know_the_store_is_asked_once_a_while():
    asked = []

    def ask() -> StoreState:
        asked.append(threading.current_thread())
        time.sleep(0.02)
        return WELL if len(asked) > 1 else AWAY

    async def many() -> None:
        health = Health(lambda: asyncio.to_thread(ask), keep=0.2)
        assert await asyncio.gather(*(health.state() for _ in range(50))) == [AWAY] * 50
        assert await health.state() == AWAY
        assert len(asked) == 1
        await asyncio.sleep(0.2)
        assert await health.state() == WELL

    asyncio.run(many())
    assert len(asked) == 2
    assert threading.main_thread() not in asked  # everybody else's work goes on meanwhile


def test_no_answer_and_a_fault_in_asking_is_a_no_and_holds_up_nobody():
    def fails() -> StoreState:
        raise OSError("out of files")

    assert asyncio.run(Health(lambda: asyncio.to_thread(fails)).state()) == AWAY
    over, asked = threading.Event(), []

    def ask() -> StoreState:
        asked.append(1)
        return WELL if over.wait(30) else AWAY

    async def twice() -> None:
        health = Health(lambda: asyncio.to_thread(ask), keep=0, patience=0.05)
        assert [await health.state() for _ in range(2)] == [AWAY, AWAY]
        assert len(asked) == 1  # the first is still waited for
        over.set()
        health.patience = 30
        assert await health.state() == WELL

    asyncio.run(twice())


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "found"),
    [
        (CLIENT, [], [], CLIENT),
        (CLIENT, ["6.6.6.6"], [], CLIENT),  # nobody is believed
        (CLIENT, ["6.6.6.6"], [PROXY], CLIENT),  # nor is he who is no proxy
        (PROXY, [CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}"], [PROXY], CLIENT),  # what the client wrote itself
        (PROXY, ["6.6.6.6", CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}, {INNER}"], [PROXY, INNER], CLIENT),
        (PROXY, ["<script>"], [PROXY], PROXY),
        (PROXY, [""], [PROXY], PROXY),
        (PROXY, [INNER], [PROXY, INNER], INNER),
        ("127.0.0.1", ["2001:db8::1"], ["127.0.0.1"], "2001:db8::1"),
    ],
)
def test_the_last_that_a_trusted_proxy_says(peer, forwarded, trusted, found):
    assert client_address(peer, forwarded, trusted) == found


@pytest.mark.parametrize(("trusted", "found"), [([], "127.0.0.1"), (["127.0.0.1"], CLIENT)])
def test_who_logs_in_is_at_the_address_that_a_trusted_proxy_says(
    make_study, monkeypatch, trusted, found
):
    folder = make_study(1)
    text = (file := folder / "study.toml").read_text("utf-8")
    headers = SimpleNamespace(get_all=lambda name: [f"6.6.6.6, {CLIENT}"])
    monkeypatch.setattr(sites.st, "context", SimpleNamespace(ip_address=None, headers=headers))
    monkeypatch.setattr(sites, "present_site", lambda: Site(folder))
    file.write_text("[session", "utf-8")  # somebody is just writing it
    assert sites.visitor_address() == "127.0.0.1"
    file.write_text(text, "utf-8")
    change_config(folder, {"session": {"trusted_proxies": trusted}})
    assert sites.visitor_address() == found


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, Callable[[], list[str]]]]:
    logger, kept = logging.Logger("bounded"), io.StringIO()
    logger.addFilter(LogLimit())
    logger.addHandler(logging.StreamHandler(kept))
    yield logger, lambda: kept.getvalue().split("\n")[:-1]
    visitor.set("")


def test_each_visitor_has_room_for_some_lines_a_minute(log):
    logger, kept = log
    for address in ("203.0.113.1", "203.0.113.2"):
        visitor.set(address)
        for _ in range(500):
            logger.warning("of %s", address)
    visitor.set("")
    logger.warning("the app's own")
    lines = kept()
    assert lines.count("of 203.0.113.1") == lines.count("of 203.0.113.2") == 30
    assert sum("left out" in line for line in lines) == 2
    assert lines[-1] == "the app's own"


def test_nothing_logged_begins_a_line_of_its_own(log):
    logger, kept = log
    hostile = "x\nforged\r\n\x1b[2J\u2028forged"
    logger.warning("said: %s", hostile)
    try:
        raise ValueError(hostile * 9_000)
    except ValueError:
        logger.exception("raised: %s", hostile)
    logger.warning("%d", hostile)  # does not fit
    lines = kept()
    assert not any(line.startswith("forged") for line in lines)
    assert all(line.isprintable() for line in lines)
    assert sum(map(len, lines)) < 20_000
    assert any(line.startswith("  | ") for line in lines)


@pytest.mark.slow
def test_a_rater_whom_a_rule_stops_gets_no_further_unit(make_study):
    folder = make_study(30)
    change_config(folder, {"quality": {"stop": ["fast"]}})
    with open_study(folder) as study:
        desk, over = AnnotationDesk(study), start_watch(study, every=0.2)
        try:
            for rater, seconds in (("ann", 30.0), ("ben", 25.0), ("hasty", 2.0)):
                with_labels(study, {rater: ("LRC" * 9)[:25]}, "shorter", seconds=seconds)
            for _ in range(300):
                if desk.end_reason("hasty"):
                    break
                time.sleep(0.2)
        finally:
            over.set()
        assert [desk.end_reason(rater) for rater in ("ann", "ben", "hasty")] == ["", "", "excluded"]
        assert desk.next_sheet("hasty") is None
        assert len(study.ratings()) == 75


@pytest.mark.journey
def test_a_folder_that_is_no_study_is_one_sentence(tmp_path, window):
    assert "is not a study" in window(tmp_path).text()


def test_the_first_page_carries_our_words_and_names_every_module_that_streamlit_begins_with():
    page = front_page()
    for ours in (ENGLISH.say("page.no_answer"), "<title>Annotation</title>", panel_path()):
        assert ours in page
    assert '<html translate="no"' in page and "service-desc" not in page
    modules = modules_of(page)
    assert any(name.startswith("BidiComponent.") for name in modules)
    assert len(modules) > 20
    assert all(f'"./static/js/{name}"' in page for name in modules)


FOLDER = Path(annotate_app.__file__).resolve().parent


def test_every_part_of_a_page_that_runs_by_itself_asks_again():
    for module in (FOLDER / "lead").glob("*.py"):
        for node in ast.parse(module.read_text("utf-8")).body:
            if any("fragment" in ast.unparse(d) for d in getattr(node, "decorator_list", [])):
                first = node.body[ast.get_docstring(node) is not None]
                assert "require(study, 'lead')" in ast.unparse(first), module.name


def test_no_text_of_the_study_becomes_markdown_or_markup():
    for module in (FOLDER / "lead").glob("*.py"):
        code = module.read_text("utf-8")
        assert not re.search(r"st\.(markdown|write|caption|info|warning|error|table)\(", code)
        if module.name not in ("pages.py", "parts.py"):
            assert "st.html(" not in code, module.name


def test_settings():
    settings = tomllib.loads((FOLDER / ".streamlit" / "config.toml").read_text("utf-8"))
    known = {"address": "127.0.0.1", "enableCORS": True, "enableXsrfProtection": True}
    assert settings["server"].items() >= (known | {"maxUploadSize": MOST_MB}).items()
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False


def test_command_names_script_and_study_in_full(tmp_path, monkeypatch):
    (tmp_path / "my study").mkdir()
    monkeypatch.chdir(tmp_path)
    words = command(["my study"], 8599, path="/a")
    assert words[:3] == [sys.executable, "-P", str(FOLDER / "app.py")]
    assert words[3:] == [str(tmp_path / "my study"), "--port=8599", "--public-host=", "--path=/a"]
    assert "--path" not in " ".join(command(["a", "b"], 8599))  # each has its folder's name
    monkeypatch.setattr("os.execve", lambda *_: None)
    annotate_app.serve("my study", 8599)
    assert Path.cwd() == FOLDER  # where no settings of Streamlit's are but the app's own


WRITERS = {
    "add_study", "answer_background", "answer_comprehension", "answer_side", "count_look",
    "create_and_preview", "create_items", "decide", "decide_consent", "disable_account", "exclude",
    "extend_sample", "log_out", "make_invites", "note_act", "pause", "readmit",
    "record_feedback_read", "record_rubric_read", "record_welcome_read", "release", "resume",
    "revoke_invites", "save", "set_account", "copy_access", "settle_flag", "sort_disagreement",
    "submit_all",
}  # fmt: skip
"""Functions and methods of the study that store what somebody did on a page."""
HANDED_ON = {"act_form", "draw_button", "lead_callback", "partial", "storing_callback"}
"""What is given to these is called later."""


def called(node: ast.AST) -> Iterator[str]:
    """Names that are called or handed to a process apart, and "st", in their order; of what is
    defined there and called later, nothing.
    """
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return
    inner = ast.iter_child_nodes(node)
    if isinstance(node, ast.keyword) and (node.arg or "").startswith("on_"):
        return
    if isinstance(node, ast.Call):
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in HANDED_ON:
            return
        inner = iter([*node.args, *node.keywords, node.func])
    for each in inner:
        yield from called(each)
    if isinstance(node, (ast.Attribute, ast.Name)):
        yield node.attr if isinstance(node, ast.Attribute) else node.id


@cache
def functions(code: str) -> dict[str, list[str]]:
    known = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    inner = {id(each) for node in known for each in ast.walk(node) if each is not node}
    names = {id(node): f"a part, {node.name}" if id(node) in inner else node.name for node in known}
    return {names[id(n)]: [name for each in n.body for name in called(each)] for n in known}


def reaching(goal: set[str], calls: dict[str, list[str]]) -> set[str]:
    """Names of functions that reach one of the goal's, which are among them."""
    while more := {name for name, called in calls.items() if goal.intersection(called)} - goal:
        goal = goal | more
    return goal


@pytest.mark.journey
def test_nothing_is_stored_after_streamlit_was_asked_for_something():
    codes = {path: path.read_text("utf-8") for path in FOLDER.rglob("*.py")}
    every = [each for code in codes.values() for each in functions(code).items()]
    public = {name: called for name, called in every if not name.startswith("_")}
    found = set()
    for path, code in codes.items():
        if "import streamlit" in code:  # else no run of Streamlit's is in it
            calls = functions(code)
            touching, storing = reaching({"st"}, public | calls), reaching(WRITERS, calls)
            for name, said in calls.items():
                asked = [n for n, each in enumerate(said) if each in touching - storing]
                stored = [n for n, each in enumerate(said) if each in storing]
                if asked and stored and asked[0] < stored[-1]:
                    found.add(f"{path.stem}.{name}")
    # A wish that a button has left is carried out by the run that reaches it, and kept until then.
    these = ("_carry_out", "a part, read_files", "show_new_study")
    assert found == {f"new_study_page.{name}" for name in these}


def test_without_a_rule_that_stops_nobody_is_watched(make_study, monkeypatch):
    monkeypatch.setattr("threading.Thread", None)  # starting one would fail
    with open_study(make_study(2)) as study:
        start_watch(study)
