"""The ways of annotators, experts and leads into the real app, and each annotator's pages, without
a browser: what is stored, and in `golden/ways-*.txt` what each page shows anew (see `test_golden`).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.annotate_app.languages import ENGLISH, language
from evenhand.annotate_app.routes import ANSWERS
from evenhand.study import open_study
from evenhand.study.access import make_invites, set_account
from evenhand.study.desk.claims import exclude
from evenhand.study.store.store import events_of
from harness.led_study import ITEM, PASSWORD, SESSION
from harness.sessions import Session
from harness.studies import CODES, give_secret, panel_study, with_labels
from harness.visits import Visit
from tests.annotate_app.test_acts import act
from tests.annotate_app.test_golden import hold, lines_of

pytestmark = pytest.mark.journey
GO_ON, AGREE, DISAGREE = (ENGLISH.say(f"session.{name}") for name in ("go_on", "agree", "disagree"))
CHECK, SKIP = ENGLISH.say("session.check"), ENGLISH.say("session.skip_all")
BACKGROUND = """
[[background.questions]]
key = "party"
question = "Which party?"
options = ["left", "right"]
quotas = [1, 0]
[[background.questions]]
key = "age"
question = "How *old*?"
options = ["under 40", "40 or over"]
"""


def session_study(home: Path, name: str) -> Path:
    """Make a study of two pairs with every step of a session."""
    folder = panel_study(home, 2, languages=["de"]).rename(home / name)
    for file in ("training.toml", "attention.toml"):
        (folder / file).write_text(ITEM, "utf-8")
    with (folder / "study.toml").open("a", encoding="utf-8") as settings:
        settings.write(SESSION.replace("[background]", BACKGROUND) + CODES)
    with open_study(folder) as study:
        give_secret(study, "7" * 64)
    return folder


def answer(option: str) -> Callable[[Visit], Visit]:
    """Answer the item in the panel, whose page is then drawn anew."""

    def send(visit: Visit) -> Visit:
        drawn, session = visit.data("evenhand_panel"), Session(0, "")
        session.take(drawn["panel"])
        said = {"answers": session.first_options(session.data["sheet"])}
        said["answers"][0] |= {"option_key": option, "submit_id": f"{option}{len(visit.text())}"}
        said["practice"] = session.data["practice"]
        headers = visit.headers | {"x-evenhand-ticket": drawn["ticket"]}
        reply = visit.client.post(
            f"{visit.path}/{ANSWERS}", content=json.dumps(said), headers=headers
        )
        assert set(reply.json()["receipts"].values()) == {"stored"}
        return visit.run()

    return send


ANN: list[Any] = [
    {"entry-code": " "}, "entry-go", {"entry-code": "not a code"}, "entry-go",
    {"entry-code": " ann "}, "entry-go", "code-change",
    {"entry-code": "ann"}, "entry-go", "code-go-on", GO_ON, AGREE, GO_ON,
    {".side": 0}, GO_ON, GO_ON, answer("L"), GO_ON, answer("R"), GO_ON, CHECK,
    {".0": 1}, CHECK, {".0": 0}, CHECK, {".age": 1}, GO_ON, answer("L"), answer("C"),
]  # fmt: skip
KINDS = ["entered", "welcome_read", "consent", "side_answered", "rubric_read", "feedback_read",
    "feedback_read", "comprehension", "comprehension", "background_done"]  # fmt: skip
GERMAN = [language("de").say(f"session.{name}") for name in ("go_on", "disagree")]
NAME, PASSED, LOG_IN = (ENGLISH.say(f"login.{name}") for name in ("name", "password", "button"))


def log_in(name: str, password: str = PASSWORD) -> list[Any]:
    return [{NAME: name, PASSED: password}, LOG_IN]


IDS = "&PROLIFIC_PID={0}&STUDY_ID={0}&SESSION_ID={0}".format("5f1d7f7a0000000000000000")
WAYS: dict[str, tuple[str, str, list[Any]]] = {
    "ann": ("", "", ANN),
    "bob disagrees": ("rater=bob&lang=de", "", ["code-go-on", *GERMAN]),
    "a guest": ("invite={eve}", "", []),
    "a stranger": ("invite=forged", "", []),
    "a participant": ("invite={anyone}" + IDS, "", [GO_ON, DISAGREE]),
    "the excluded": ("rater=dee", "", []),
    "an expert at work": ("", "", [*log_in("chair", "wrong"), *log_in("chair")]),
    "an expert": ("", "adjudication", [*log_in("chair", "wrong"), *log_in("chair"), "Log out"]),
    "an expert elsewhere": ("", "settings", log_in("chair")),
    "a lead": ("", "log", [*log_in("ada"), "Log out"]),
    "a forged link": ("lead=forged", "overview", []),
    "one who asks to be in": ("lead=in", "", []),
    "an annotator who asks": ("rater=ann&lead=in", "", []),
}
"""Who comes in: the query and the place of their address, and what they do there."""


def news_of(visit: Visit, things: list[Any]) -> str:
    lines = lines_of(visit, sidebar=True)
    news, seen = lines, {*lines}
    for thing in things:
        act(visit, thing)
        if not isinstance(thing, dict):
            lines = lines_of(visit, sidebar=True)
            news += [f"== {thing if isinstance(thing, str) else 'answered'}"]
            news += [line for line in lines if line not in seen]
            seen = {*lines}
    return "\n".join(news) + "\n"


def test_everybody_comes_in_by_their_own_way(tmp_path: Path, window) -> None:
    folder, news = session_study(tmp_path, "ways"), []
    with open_study(folder) as study:
        guest, anyone = make_invites(study, ["eve", ""], 1)
        for name, role in (("chair", "expert"), ("ada", "lead")):
            set_account(study.store, name, PASSWORD, role)
        with_labels(study, {"dee": ["L"]}, "shorter")
        exclude(study.store, "dee", "too fast")
    for who, (query, place, things) in WAYS.items():
        asked = query.replace("{eve}", guest.token).replace("{anyone}", anyone.token)
        news += [f"==== {who}", news_of(window(folder, asked, place), things)]
    hold("ways", "\n".join(news))
    with open_study(folder) as study, study.store.read() as connection:
        assert [event.kind for event in events_of(connection, "ann")] == KINDS
        assert [event.kind for event in events_of(connection, "bob")] == KINDS[:3]
