"""The ways of annotators, experts and leads into the real app, and each annotator's pages, without
a browser: what is stored, and in `golden/ways.txt` what each page shows anew (see `test_golden`).
"""

from pathlib import Path

import pytest

from evenhand.annotate_app.languages import ENGLISH, language
from evenhand.study import open_study
from evenhand.study.access import make_invites, set_account
from evenhand.study.desk.claims import exclude
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.store import events_of
from harness.led_study import PASSWORD, session_study
from harness.studies import with_labels
from harness.visits import Act, lead_query
from tests.annotate_app.test_golden import hold

pytestmark = pytest.mark.journey
GO_ON, AGREE, DISAGREE, CHECK = (
    ENGLISH.say(f"session.{name}") for name in ("go_on", "agree", "disagree", "check")
)


def answer(option: str) -> Act:
    return lambda visit: visit.answer(option)


ANN: list[Act] = [
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


def log_in(name: str, password: str = PASSWORD) -> list[Act]:
    return [{NAME: name, PASSED: password}, LOG_IN]


IDS = "&PROLIFIC_PID={0}&STUDY_ID={0}&SESSION_ID={0}".format("5f1d7f7a0000000000000000")
WAYS: dict[str, tuple[str, str, list[Act]]] = {
    "ann": ("", "", ANN),
    "bob disagrees": ("rater=bob&lang=de", "", ["code-go-on", *GERMAN]),
    "a guest": ("invite={eve}", "", []),
    "a stranger": ("invite=forged", "", []),
    "a German stranger": ("invite=forged&lang=de", "", []),
    "a German": ("", "", [lambda visit: visit.send("evenhand_language", "chosen", "de")]),
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
OTHER = "evenhand_session_led=" + "b" * 43
CLOSED = ("rater=zoe", "pass=forged", "invite={anyone}", "invite={late}", "invite={eve}xyz",
    "invite={anyone}" + IDS.replace("PID=", "PID=x"), "")  # fmt: skip
"""Addresses that open nothing where everybody needs a link."""


def test_a_window_gives_back_its_login_until_it_has_ended(led: Path, window) -> None:
    first, second, third = window(led, lead_query(led), "accounts"), *(window(led) for _ in "ab")
    login = first.data("evenhand_login")["login"]
    for visit in (second, third):
        visit.turn_to("Accounts")
        assert visit.headings[0] != "Accounts"
    assert second.send("evenhand_login", "kept", login).headings[0] == "Accounts"
    upload = f"{first.path}/_stcore/upload_file/{first.session}/file"
    for cookie, refused in ((first.headers["cookie"], False), ("", True), (OTHER, True)):
        for method, path in (("PATCH", upload), ("GET", f"{first.path}/media/none.csv")):
            status = first.client.request(method, path, headers={"cookie": cookie}).status_code
            assert (status == 403) == refused, (cookie, path)
    first.press("Log out")
    assert third.send("evenhand_login", "kept", login).headings[0] != "Accounts"
    assert second.run().headings[0] != "Accounts"


def test_everybody_comes_in_by_their_own_way(tmp_path: Path, window) -> None:
    folder, news = session_study(tmp_path, "ways"), []
    with open_study(folder) as study:
        guest, anyone = make_invites(study, ["eve", ""], 1)
        (late,) = make_invites(study, ["anna"], 1e-9)
        for name, role in (("chair", "expert"), ("ada", "lead")):
            set_account(study.store, name, PASSWORD, role)
        with_labels(study, {"dee": ["L"]}, "shorter")
        exclude(study.store, "dee", "too fast")
    tokens = {"eve": guest.token, "anyone": anyone.token, "late": late.token}
    for who, (query, place, things) in WAYS.items():
        visit = window(folder, query.format_map(tokens), place)
        news += [f"==== {who}", visit.text(sidebar=True)]
        news += visit.act(things, visit.text(sidebar=True))
    change_config(folder, {"session": {"entry": "invite"}})
    for query in CLOSED:
        visit = window(folder, query.format_map(tokens))
        assert "entry-code" not in visit.text()
        news += [f"==== {query}", visit.text()]
    hold("ways", "\n".join(news) + "\n")
    with open_study(folder) as study, study.store.read() as connection:
        assert [event.kind for event in events_of(connection, "ann")] == KINDS
        assert [event.kind for event in events_of(connection, "bob")] == KINDS[:3]
