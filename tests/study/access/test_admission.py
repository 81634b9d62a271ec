"""Who gets in, by which address, and who does not."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access import accounts as access
from evenhand.study.access.accounts import disable_account, make_token, set_account, sign_in
from evenhand.study.access.admission import (
    Admission,
    admit,
    begin,
    invites_table,
    make_invites,
    new_code,
    revoke_invites,
)
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.sessions import Sessions, participants_table
from evenhand.study.store.logs.answers import events_of
from harness.studies import with_labels

PASSWORD = "correct horse battery"
PROLIFIC = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}


@pytest.fixture(autouse=True)
def cheap_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same library, with less work for each check."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(access, "_hasher", lambda: hasher)


def invite(study: Study, rater: str, hours: float = 1) -> dict[str, str]:
    return {"invite": make_invites(study, [rater], hours)[0].token}


def test_an_open_study_takes_any_code(make_session) -> None:
    study = make_session()
    assert admit(study, {}) is None
    assert admit(study, {"rater": " "}) is None
    assert admit(study, {"rater": " anna "}) == Admission("anna", "open", {"rater": "anna"})


def test_capital_letters_make_no_other_person(make_session) -> None:
    study = make_session()
    AnnotationDesk(study).next_task("Anna")
    for typed in ("anna", " ANNA ", "Anna"):
        assert admit(study, {"rater": typed}).rater_id == "Anna"
    AnnotationDesk(study).next_task("anna")  # two people from before this was so
    assert [admit(study, {"rater": typed}).rater_id for typed in ("Anna", "anna")] == [
        "Anna",
        "anna",
    ]
    with pytest.raises(InputError, match="more than one spelling"):
        admit(study, {"rater": "ANNA"})  # neither: never a guess whose labels they are
    invite(study, "bo")
    with pytest.raises(InputError, match="a link or a login of its own"):
        admit(study, {"rater": "BO"})


FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "bO-7")


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["bo-7", "BO-7", "  Bo-7\t", "\u3000bo-7", FULL_WIDTH])
def test_one_person_however_the_code_is_typed(make_session, typed) -> None:
    study = make_session()
    desk = AnnotationDesk(study)
    task = desk.next_task("Bo-7")
    desk.submit("Bo-7", task.task_id, "s", "1")
    came = admit(study, {"rater": typed})
    assert (came.rater_id, came.address, came.is_new) == ("Bo-7", {"rater": "Bo-7"}, False)
    assert desk.progress(came.rater_id)[0] == 1


def test_a_new_code_is_new_until_somebody_begins_under_it(make_session) -> None:
    study = make_session()
    for _ in range(2):  # asking changes nothing
        assert admit(study, {"rater": FULL_WIDTH}).is_new
    with study.store.read() as connection:
        assert events_of(connection, "bO-7") == []
    begin(study, "bO-7")
    begin(study, "bO-7")
    assert not admit(study, {"rater": "BO-7"}).is_new
    with study.store.read() as connection:
        assert [event.kind for event in events_of(connection, "bO-7")] == ["entered"]


def test_labels_from_elsewhere_make_a_code_known(make_session) -> None:
    study = make_session()
    with_labels(study, {"Cy": "1"})
    assert admit(study, {"rater": "cy"}).rater_id == "Cy"
    assert not admit(study, {"rater": "cy"}).is_new


def test_a_very_long_code_is_cut_before_it_is_looked_at(make_session) -> None:
    study = make_session()
    code = admit(study, {"rater": "\ufdfa" * 100_000}).rater_id  # each grows to 18 letters
    assert len(code) < 5_000
    with pytest.raises(InputError, match="letters, digits"):
        AnnotationDesk(study).register(code)


@pytest.mark.parametrize("entry", ["invite", "account"])
def test_a_closed_study_says_the_same_of_every_code(make_session, entry) -> None:
    study = make_session(f'[session]\nentry = "{entry}"\n')
    AnnotationDesk(study).next_task("known")
    said = set()
    for code in ("known", "KNOWN", "nobody"):
        with pytest.raises(InputError) as refusal:
            admit(study, {"rater": code})
        said.add(str(refusal.value))
    assert len(said) == 1


def test_an_invite_lets_in_the_rater_it_is_for_and_nobody_else(make_session) -> None:
    study = make_session('[session]\nentry = "invite"')
    address = invite(study, "anna")
    assert admit(study, address) == Admission("anna", "invite", address)
    # Another rater's code beside the token changes nothing; a code alone opens nothing.
    assert admit(study, address | {"rater": "bo"}).rater_id == "anna"
    for code in ("anna", "bo"):
        with pytest.raises(InputError, match="a code alone does not open this study"):
            admit(study, {"rater": code})


@pytest.mark.parametrize("entry", ["open", "invite"])
def test_forged_expired_revoked_and_foreign_links_are_refused(make_session, entry) -> None:
    study, other = (make_session(f'[session]\nentry = "{entry}"') for _ in range(2))
    token = invite(study, "anna")["invite"]
    wrong = [
        token[:-2] + "xx",
        token.partition(".")[0],
        invite(other, "anna")["invite"],
        make_token(study.store, "pass", {"rater": "anna"}, 5),
    ]
    for each in wrong:
        with pytest.raises(InputError, match="this link is not valid"):
            admit(study, {"invite": each})
        with pytest.raises(InputError, match="this link is not valid"):
            admit(study, {"pass": each[:-1]})
    with pytest.raises(InputError, match="this link has expired"):
        admit(study, invite(study, "anna", hours=1e-9))
    assert revoke_invites(study, "anna") == 2
    assert revoke_invites(study, "anna") == 0
    with pytest.raises(InputError, match="this link was revoked"):
        admit(study, {"invite": token})
    assert admit(study, invite(study, "anna")).rater_id == "anna"  # a new one


def test_a_code_with_a_link_or_a_login_opens_nothing_by_itself(make_session) -> None:
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


def test_an_expert_comes_in_by_login_while_it_lasts(make_session) -> None:
    study = make_session('[session]\nentry = "account"')
    set_account(study.store, "bo", PASSWORD, "expert")
    set_account(study.store, "cy", PASSWORD, "lead")
    login = sign_in(study.store, "bo", PASSWORD, 5)
    assert admit(study, {}, login) == Admission("bo", "account", {})
    assert admit(study, {"login": login}) is None  # no address lets an account in
    with pytest.raises(InputError, match="does not label"):
        admit(study, {}, sign_in(study.store, "cy", PASSWORD, 5))
    with pytest.raises(InputError, match="takes no links"):
        admit(study, invite(study, "anna"))
    with pytest.raises(InputError, match="a code alone"):
        admit(study, {"rater": "bo"})
    disable_account(study.store, "bo")
    with pytest.raises(InputError, match="log in again"):
        admit(study, {}, login)


@pytest.mark.parametrize(
    ("rater", "sentence"),
    [("a b", "'a b' is no rater code"), ("humans", "stands for a group"), ("bo", "has an account")],
)
def test_who_cannot_be_invited(make_session, rater, sentence) -> None:
    study = make_session()
    set_account(study.store, "bo", PASSWORD, "expert")
    with pytest.raises(InputError, match=sentence):
        make_invites(study, ["anna", rater], hours=1)
    assert admit(study, {"rater": "anna"}).way == "open"  # none was made


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_link_is_neither_over_at_once_nor_good_for_ever(make_session, hours) -> None:
    with pytest.raises(InputError, match="more than 0 and at most 2160 hours"):
        make_invites(make_session(), ["anna"], hours)


def test_a_participant_is_always_the_same_rater_under_another_name(make_session) -> None:
    study = make_session('[session]\nentry = "invite"')
    link = invite(study, "")
    first = admit(study, link | PROLIFIC)
    assert first.way == "prolific"
    assert first.rater_id.startswith("r-")
    assert not any(value in str(first) for value in PROLIFIC.values())
    assert admit(study, first.address).rater_id == first.rater_id
    assert admit(study, link | PROLIFIC).rater_id == first.rater_id
    other = PROLIFIC | {"PROLIFIC_PID": "5f2e" * 6, "SESSION_ID": "5f30" * 6}
    assert admit(study, link | other).rater_id != first.rater_id
    assert len(participants_table(study)) == 2


def test_a_participants_ids_alone_open_nothing(make_session) -> None:
    study = make_session('[session]\nentry = "invite"')
    link = invite(study, "")
    admit(study, link | PROLIFIC)
    wrong = (
        "",
        "<script>",
        "5f1e",
        "5F1E" * 6,
        "5f1e" * 7,
        "5f1g" * 6,
        f"{'5f1e' * 6}\n",
        "٣" * 24,
    )
    for name in PROLIFIC:
        for value in wrong:
            with pytest.raises(InputError, match="works from Prolific only"):
                admit(study, link | {**PROLIFIC, name: value})
    assert len(participants_table(study)) == 1
    with pytest.raises(InputError, match="not valid"):
        admit(study, {"invite": "forged"} | PROLIFIC)
    # An invite for one rater stays that rater's, whatever the address says besides.
    assert admit(study, invite(study, "anna") | PROLIFIC).rater_id == "anna"


def test_who_returned_a_submission_may_come_again_who_was_rejected_not(make_session) -> None:
    study = make_session('[session]\nentry = "invite"')
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


def test_a_second_submission_goes_on_where_the_first_stopped(make_session) -> None:
    study = make_session('[session]\nentry = "invite"')
    link, desk = invite(study, ""), AnnotationDesk(study)
    rater = admit(study, link | PROLIFIC).rater_id
    task = desk.next_task(rater)
    desk.submit(rater, task.task_id, "first", "1", 1.0)
    again = admit(study, link | PROLIFIC | {"SESSION_ID": "5f21" * 6})
    assert again.rater_id == rater
    assert desk.progress(rater)[0] == 1
    assert participants_table(study)["rater_id"].tolist() == [rater, rater]


def test_codes_are_made_at_random() -> None:
    codes = {new_code() for _ in range(100)}
    assert len(codes) == 100


def test_links_are_counted_by_whom_they_are_for(make_session) -> None:
    study = make_session()
    assert invites_table(study).empty
    make_invites(study, ["anna", "anna", "ben"], 1)
    revoke_invites(study, "anna")
    make_invites(study, ["anna"], 1)
    found = invites_table(study).set_index("rater_id")[["open", "revoked"]]
    assert found.loc["anna"].tolist() == [1, 2]
    assert found.loc["ben"].tolist() == [1, 0]
