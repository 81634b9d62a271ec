"""Who gets in, by which address, and who does not; places of participants from Prolific."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access import admission
from evenhand.study.access.accounts import disable_account, make_token, set_account, sign_in
from evenhand.study.access.admission import (
    Admission,
    admit,
    begin,
    enter,
    invites_table,
    make_invites,
    revoke_invites,
)
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.refused import Refused
from evenhand.study.session.sessions import Sessions, participants_table
from evenhand.study.store.database import append
from evenhand.study.store.logs.answers import events_of
from evenhand.study.store.schema import invite_events
from harness.studies import ASKS, CODES, label_all, task_of, with_labels
from tests.study.access.conftest import PASSWORD

CLOSED = '[session]\nentry = "invite"'
PROLIFIC = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}


def invite(study: Study, rater: str, hours: float = 1) -> dict[str, str]:
    return {"invite": make_invites(study, [rater], hours)[0].token}


def test_capital_letters_make_no_other_person(make_session):
    study = make_session()
    task_of(AnnotationDesk(study), "Anna")
    for typed in ("anna", " ANNA ", "Anna"):
        assert admit(study, {"rater": typed}).rater_id == "Anna"
    task_of(AnnotationDesk(study), "anna")  # two annotators from before this was so
    for typed in ("Anna", "anna"):
        assert admit(study, {"rater": typed}).rater_id == typed
    with pytest.raises(InputError, match="more than one spelling"):
        admit(study, {"rater": "ANNA"})  # neither: never a guess whose labels they are
    invite(study, "bo")
    with pytest.raises(InputError, match="a link or a login of its own"):
        admit(study, {"rater": "BO"})
    with_labels(study, {"Cy": "1"})  # from elsewhere
    known = admit(study, {"rater": "cy"})
    assert (known.rater_id, known.is_new) == ("Cy", False)


FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "bO-7")


def test_one_person_however_the_code_is_typed(make_session):
    study = make_session()
    desk = AnnotationDesk(study)
    label_all(desk, "Bo-7", most=1)
    for typed in ("bo-7", "BO-7", "  Bo-7\t", "\u3000bo-7", FULL_WIDTH):
        came = admit(study, {"rater": typed})
        assert (came.rater_id, came.address, came.is_new) == ("Bo-7", {"rater": "Bo-7"}, False)
        assert desk.progress(came.rater_id)[0] == 1


def test_an_open_study_takes_any_code_which_is_new_until_somebody_begins_under_it(make_session):
    study = make_session()
    assert admit(study, {}) is None
    assert admit(study, {"rater": " "}) is None
    assert admit(study, {"rater": " anna "}) == Admission("anna", "open", {"rater": "anna"})
    code = admit(study, {"rater": "\ufdfa" * 100_000}).rater_id  # each grows to 18 letters
    assert len(code) < 5_000  # cut before it is looked at
    with pytest.raises(InputError, match="letters, digits"):
        AnnotationDesk(study).register(code)

    def kinds() -> list[str]:
        with study.store.read() as connection:
            return [event.kind for event in events_of(connection, "bO-7")]

    for _ in range(2):  # asking changes nothing
        assert admit(study, {"rater": FULL_WIDTH}).is_new
    assert kinds() == []
    for _ in range(2):
        begin(study, "bO-7")
    assert not admit(study, {"rater": "BO-7"}).is_new
    assert kinds() == ["entered"]


@pytest.mark.parametrize("entry", ["invite", "account"])
def test_a_closed_study_says_the_same_of_every_code(make_session, entry):
    study = make_session(f'[session]\nentry = "{entry}"\n')
    task_of(AnnotationDesk(study), "known")
    said = set()
    for code in ("known", "KNOWN", "nobody"):
        with pytest.raises(InputError) as refusal:
            admit(study, {"rater": code})
        said.add(str(refusal.value))
    assert len(said) == 1


def test_an_invite_lets_in_the_rater_it_is_for_and_nobody_else(make_session):
    study = make_session(CLOSED)
    address = invite(study, "anna")
    assert admit(study, address) == Admission("anna", "invite", address)
    # Another rater's code beside the token changes nothing; a code alone opens nothing.
    assert admit(study, address | {"rater": "bo"}).rater_id == "anna"
    for code in ("anna", "bo"):
        with pytest.raises(InputError, match="a code alone does not open this study"):
            admit(study, {"rater": code})


@pytest.mark.parametrize("entry", ["open", "invite"])
def test_forged_expired_revoked_and_foreign_links_are_refused(make_session, entry):
    study, other = (make_session(f'[session]\nentry = "{entry}"') for _ in range(2))
    token, foreign = (invite(each, "anna")["invite"] for each in (study, other))
    passed = make_token(study.store, "pass", {"rater": "anna"}, 5)
    for wrong in (token[:-2] + "xx", token.partition(".")[0], foreign, passed):
        for query in ({"invite": wrong}, {"pass": wrong[:-1]}):
            with pytest.raises(InputError, match="this link is not valid"):
                admit(study, query)
    with pytest.raises(InputError, match="this link has expired"):
        admit(study, invite(study, "anna", hours=1e-9))
    assert [revoke_invites(study, "anna") for _ in range(2)] == [2, 0]
    with pytest.raises(InputError, match="this link was revoked"):
        admit(study, {"invite": token})
    assert admit(study, invite(study, "anna")).rater_id == "anna"  # a new one


def test_a_code_with_a_link_or_a_login_opens_nothing_by_itself(make_session):
    study = make_session()
    invite(study, "anna")
    set_account(study.store, "bo", PASSWORD, "expert")
    participant = admit(study, invite(study, "") | PROLIFIC).rater_id
    for code in ("anna", "bo", participant):
        with pytest.raises(InputError, match="a link or a login of its own"):
            admit(study, {"rater": code})
    # What an account or a link has closed, its end does not open: somebody's answers lie behind it.
    revoke_invites(study, "anna")
    disable_account(study.store, "bo")
    for code in ("anna", "bo"):
        with pytest.raises(InputError, match="a link or a login of its own"):
            admit(study, {"rater": code})


def test_an_expert_comes_in_by_login_while_it_lasts(make_session):
    study = make_session('[session]\nentry = "account"')
    set_account(study.store, "bo", PASSWORD, "expert")
    set_account(study.store, "cy", PASSWORD, "lead")
    login = sign_in(study.store, "bo", PASSWORD)
    assert admit(study, {}, login) == Admission("bo", "account", {})
    assert admit(study, {"login": login}) is None  # no address lets an account in
    with pytest.raises(InputError, match="does not label"):
        admit(study, {}, sign_in(study.store, "cy", PASSWORD))
    with pytest.raises(InputError, match="takes no links"):
        admit(study, invite(study, "anna"))
    with pytest.raises(InputError, match="a code alone"):
        admit(study, {"rater": "bo"})
    disable_account(study.store, "bo")
    with pytest.raises(InputError, match="log in again"):
        admit(study, {}, login)


@pytest.mark.parametrize(
    ("rater", "hours", "sentence"),
    [
        ("a b", 1, "'a b' is no annotator code"),
        ("humans", 1, "stands for a group"),
        ("bo", 1, "has an account"),
        *(
            ("ben", hours, "more than 0 and at most 2160 hours")
            for hours in (0, -1, float("nan"), float("inf"), 1e300)
        ),
    ],
)
def test_who_cannot_be_invited_or_for_so_long(make_session, rater, hours, sentence):
    study = make_session()
    set_account(study.store, "bo", PASSWORD, "expert")
    with pytest.raises(InputError, match=sentence):
        make_invites(study, ["anna", rater], hours=hours)
    assert admit(study, {"rater": "anna"}).way == "open"  # none was made


def test_a_participant_is_always_the_same_rater_under_another_name(make_session):
    study = make_session(CLOSED)
    link = invite(study, "")
    first = admit(study, link | PROLIFIC)
    assert first.way == "prolific"
    assert first.rater_id.startswith("r-")
    assert not any(value in str(first) for value in PROLIFIC.values())
    label_all(AnnotationDesk(study), first.rater_id, most=1)
    # A second submission goes on where the first stopped.
    for query in (first.address, link | PROLIFIC, link | PROLIFIC | {"SESSION_ID": "5f21" * 6}):
        assert admit(study, query).rater_id == first.rater_id
    other = PROLIFIC | {"PROLIFIC_PID": "5f2e" * 6, "SESSION_ID": "5f30" * 6}
    assert admit(study, link | other).rater_id != first.rater_id
    assert participants_table(study)["rater_id"].tolist()[:2] == [first.rater_id] * 2
    assert len(participants_table(study)) == 3
    assert AnnotationDesk(study).progress(first.rater_id)[0] == 1


def test_a_participants_ids_alone_open_nothing(make_session):
    study = make_session(CLOSED)
    link = invite(study, "")
    admit(study, link | PROLIFIC)
    wrong = ("", "<script>", "5f1e", "5F1E" * 6, "5f1e" * 7, "5f1g" * 6, "5f1e" * 6 + "\n")
    for name, value in product(PROLIFIC, (*wrong, "٣" * 24)):
        with pytest.raises(InputError, match="works from Prolific only"):
            admit(study, link | {**PROLIFIC, name: value})
    assert len(participants_table(study)) == 1
    with pytest.raises(InputError, match="not valid"):
        admit(study, {"invite": "forged"} | PROLIFIC)
    # An invite for one rater stays that rater's, whatever the address says besides.
    assert admit(study, invite(study, "anna") | PROLIFIC).rater_id == "anna"


def test_who_returned_a_submission_may_come_again_who_was_rejected_not(make_session):
    study = make_session(CLOSED)
    link, sessions = invite(study, ""), Sessions(study)
    rater = admit(study, link | PROLIFIC).rater_id
    sessions.release(rater, "returned")
    admit(study, link | PROLIFIC)
    assert sessions.next_step(rater).reason == "returned"  # the old submission stays returned
    assert admit(study, link | PROLIFIC | {"SESSION_ID": "5f21" * 6}).rater_id == rater
    assert sessions.next_step(rater).name == "labelling"
    sessions.release(rater, "rejected")
    with pytest.raises(InputError, match="your submission to this study was closed"):
        admit(study, link | PROLIFIC | {"SESSION_ID": "5f22" * 6})


def test_links_are_counted_by_whom_they_are_for(make_session):
    study = make_session()
    assert invites_table(study).empty
    make_invites(study, ["anna", "anna", "ben"], 1)
    revoke_invites(study, "anna")
    make_invites(study, ["anna"], 1)
    make_invites(study, ["cy"], 1e-9)
    found = invites_table(study)
    of_anna = found[found["rater_id"] == "anna"]
    assert of_anna["state"].tolist() == ["open", "revoked", "revoked"]
    assert admit(study, {"invite": of_anna["token"].iloc[0]}).rater_id == "anna"
    assert found.set_index("rater_id")["state"][["ben", "cy"]].tolist() == ["open", "expired"]


def test_a_link_is_short_and_one_of_before_still_works(make_session):
    study = make_session(CLOSED)
    assert len(invite(study, "anna", 168)["invite"]) <= 28
    about = {"invite": "ab" * 8, "rater": "bo"}
    older = [make_token(study.store, "invite", about, minutes) for minutes in (60, 0)]
    with pytest.raises(InputError, match="this link was revoked"):  # the log has no such link
        admit(study, {"invite": older[0]})
    with study.store.write() as connection:
        append(connection, invite_events, {"invite_id": "ab" * 8, "rater_id": "bo", "kind": "made"})
    assert admit(study, {"invite": older[0]}).rater_id == "bo"
    wrong = ((older[1], "expired"), ("ab" * 8, "not valid"), ("\0" * 22 + ".1", "not valid"))
    for token, said in wrong:
        with pytest.raises(InputError, match=said):
            admit(study, {"invite": token})
    assert invites_table(study)["token"].tolist()[0] == ""
    revoke_invites(study, "bo")
    with pytest.raises(InputError, match="this link was revoked"):
        admit(study, {"invite": older[0]})


# Places for participants: taken once each, freed only as the study says


FULL = "all places in this study are taken"


def address(number: int, submission: int = 0) -> dict[str, str]:
    """What Prolific adds to the link of a participant."""
    ids = {"PROLIFIC_PID": number, "STUDY_ID": 7, "SESSION_ID": 100 * number + submission}
    return {name: f"{value:024x}" for name, value in ids.items()}


def codes(places: int, more: str = "") -> str:
    return f"{CODES}places = {places}\n{more}\n"


@pytest.mark.slow
def test_invented_participants_get_no_more_than_the_places(make_session):
    study = make_session(codes(3))
    raters = [enter(study, address(number)) for number in range(3)]
    for number in range(3, 40):
        with pytest.raises(InputError, match=FULL):
            enter(study, address(number))
    assert len(participants_table(study)) == 3
    free = make_session(codes(0))  # without a number everybody gets in
    assert len({enter(free, address(number)) for number in range(5)}) == 5
    # Who has a place keeps it, by the same submission or another.
    assert [enter(study, address(number)) for number in range(3)] == raters
    assert enter(study, address(0, submission=1)) == raters[0]


def fail(sessions: Sessions, rater: str) -> None:
    sessions.decide_consent(rater, agreed=True)
    for _ in range(2):
        sessions.answer_comprehension(rater, ["that"])
    assert sessions.next_step(rater).reason == "screened_out"


def stop(sessions: Sessions, rater: str) -> None:
    sessions.decide_consent(rater, agreed=True)
    task_of(AnnotationDesk(sessions.study), rater)
    exclude(sessions.study.store, rater, "too fast")


ENDS: dict[str, Callable[[Sessions, str], None]] = {
    "no_consent": lambda sessions, rater: sessions.decide_consent(rater, agreed=False),
    "screened_out": fail,
    "stopped": stop,
    **dict.fromkeys(("returned", "timed_out", "rejected"), None),
}
"""Ways in which a part ends; None where Prolific says so."""


@pytest.mark.parametrize("end", ENDS)
def test_a_place_is_free_again_only_as_the_study_says(make_session, end):
    others = [other for other in ENDS if other != end]
    for more, freed in ((f"free_again = {[end]}", True), (f"free_again = {others}", False)):
        study = make_session(ASKS + codes(1, more))
        rater, sessions = enter(study, address(1)), Sessions(study)
        ENDS[end](sessions, rater) if ENDS[end] else sessions.release(rater, end)
        if freed:
            enter(study, address(2))
        with pytest.raises(InputError, match=FULL):
            enter(study, address(3))


def test_who_returns_after_their_place_was_taken_is_not_let_in_again(make_session):
    study = make_session(codes(1))
    rater = enter(study, address(1))
    Sessions(study).release(rater, "returned")
    enter(study, address(2))
    with pytest.raises(InputError, match=FULL):
        enter(study, address(1, submission=1))
    assert Sessions(study).next_step(rater).reason == "returned"


@pytest.mark.slow
def test_of_newcomers_at_the_same_moment_one_gets_the_last_place(make_session, any_database):
    many = 8
    study = make_session(codes(2), **any_database)
    enter(study, address(1))
    at_once = threading.Barrier(many)

    def come(number: int) -> str:
        with open_study(study.folder) as own:  # a connection of one's own, as another process has
            at_once.wait()
            return _entered(own, number)

    with ThreadPoolExecutor(many) as pool:
        found = list(pool.map(come, range(2, 2 + many)))
    assert sum(bool(rater) for rater in found) == 1
    assert len(participants_table(study)) == 2


def _entered(study: Study, number: int) -> str:
    """The rater's code; "" where all places are taken."""
    try:
        return enter(study, address(number))
    except InputError as error:
        if FULL not in str(error):
            raise
        return ""


# Addresses signed by Prolific: real keys and signatures, from a server on loopback


PAGE = "https://rate.example.org"


class Signer:
    """A server of keys, as Prolific has one, and its signatures."""

    def __init__(self) -> None:
        self.keys = [RSAKey.generate_key(2048, {"kid": "first"})]
        self.asked = 0
        signer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                signer.asked += 1
                said = {"keys": [key.as_dict(private=False) for key in signer.keys]}
                body = json.dumps(said).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def sign(self, number: int, key: RSAKey | None = None, **claims: object) -> str:
        own = {"aud": PAGE, "exp": int(time.time()) + 300, "prolific": address(number)}
        key = key or self.keys[-1]
        return jwt.encode({"alg": "RS256", "kid": key.kid}, own | claims, key)


@pytest.fixture
def signer(monkeypatch) -> Iterator[Signer]:
    monkeypatch.setattr(admission, "_known_keys", {})
    made = Signer()
    monkeypatch.setattr(admission, "SIGNING_KEYS", made.url)
    yield made
    made.server.shutdown()


@pytest.fixture
def study(make_session, signer):
    return make_session(codes(5, f'signed_for = "{PAGE}"'))


def come_in(study, token: str, claimed: int = 1) -> str:
    (invite,) = make_invites(study, [""], hours=1)
    query = {"invite": invite.token, "prolific_token": token, **address(claimed)}
    return admit(study, query).rater_id


def test_who_prolific_signed_for_is_let_in_as_the_one_it_names(study, signer):
    rater = come_in(study, signer.sign(1), claimed=2)  # the ids beside it count for nothing
    assert participants_table(study)["participant_id"].tolist() == [address(1)["PROLIFIC_PID"]]
    assert come_in(study, signer.sign(1)) == rater
    assert signer.asked == 1


def test_prolifics_clock_may_differ_a_little(study, signer):
    now = int(time.time())
    rater = come_in(study, signer.sign(1, iat=now + 30, nbf=now + 30))
    assert come_in(study, signer.sign(1, exp=now - 30)) == rater
    for claims in ({"iat": now + 600}, {"nbf": now + 600}, {"exp": now - 600}):
        with pytest.raises(Refused, match="Prolific"):
            come_in(study, signer.sign(1, **claims))


@pytest.mark.parametrize(
    "claims",
    [{"aud": "https://elsewhere.example.org"}, {"exp": 1}, {"aud": None}, {"exp": None},
     {"prolific": None}, {"prolific": {"PROLIFIC_PID": 7}}],
)  # fmt: skip
def test_what_is_signed_for_another_page_or_another_time_opens_nothing(study, signer, claims):
    with pytest.raises(Refused, match="Prolific"):
        come_in(study, signer.sign(1, **claims))
    assert participants_table(study).empty


def test_who_knows_an_id_gets_nowhere(study, signer):
    come_in(study, signer.sign(1))
    stranger = RSAKey.generate_key(2048, {"kid": "first"})
    unsigned = jwt.encode({"alg": "HS256"}, {"aud": PAGE}, OctKey.generate_key(256))
    garbage = ("", "a.b.c", "....", "\u00e9.\u00e9.\u00e9", "eyJ9.e30.", "x" * 10_000)
    for token in (*garbage, signer.sign(1, stranger), unsigned):
        with pytest.raises(Refused, match="not signed by Prolific"):
            come_in(study, token)
    assert len(participants_table(study)) == 1


def test_a_new_key_is_asked_for_but_not_at_every_forged_token(study, signer, monkeypatch):
    come_in(study, signer.sign(1))
    signer.keys.append(RSAKey.generate_key(2048, {"kid": "second"}))
    with pytest.raises(Refused):
        come_in(study, signer.sign(2))
    assert signer.asked == 1
    monkeypatch.setattr(admission, "_MINUTE", 0.0)
    come_in(study, signer.sign(2))
    assert signer.asked == 2


def test_where_the_keys_cannot_be_had_nobody_is_taken_for_somebody(study, signer):
    token = signer.sign(1)
    signer.server.shutdown()
    signer.server.server_close()
    with pytest.raises(Refused, match="cannot be asked at present"):
        come_in(study, token)
