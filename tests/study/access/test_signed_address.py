"""Addresses signed by Prolific: real keys and signatures, from a server on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from evenhand.study.access import admission as signed_address
from evenhand.study.access.admission import admit, make_invites
from evenhand.study.refused import Refused
from evenhand.study.session.sessions import participants_table
from tests.study.access.test_participants import address, codes

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
    monkeypatch.setattr(signed_address, "_KEYS", signed_address._Keys())
    made = Signer()
    yield made
    made.server.shutdown()


@pytest.fixture
def study(make_session, signer):
    more = f'signed_for = "{PAGE}"\nsigning_keys = "{signer.url}"'
    return make_session(codes(5, more))


def enter(study, token: str, claimed: int = 1) -> str:
    (invite,) = make_invites(study, [""], hours=1)
    query = {"invite": invite.token, "prolific_token": token, **address(claimed)}
    return admit(study, query).rater_id


def test_who_prolific_signed_for_is_let_in_as_the_one_it_names(study, signer) -> None:
    rater = enter(study, signer.sign(1), claimed=2)  # the ids beside it count for nothing
    assert participants_table(study)["participant_id"].tolist() == [address(1)["PROLIFIC_PID"]]
    assert enter(study, signer.sign(1)) == rater
    assert signer.asked == 1


def test_prolifics_clock_may_differ_a_little(study, signer) -> None:
    now = int(time.time())
    rater = enter(study, signer.sign(1, iat=now + 30, nbf=now + 30))
    assert enter(study, signer.sign(1, exp=now - 30)) == rater
    for claims in ({"iat": now + 600}, {"nbf": now + 600}, {"exp": now - 600}):
        with pytest.raises(Refused, match="Prolific"):
            enter(study, signer.sign(1, **claims))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://elsewhere.example.org"},
        {"exp": 1},
        {"aud": None},
        {"exp": None},
        {"prolific": None},
        {"prolific": {"PROLIFIC_PID": 7}},
    ],
)
def test_what_is_signed_for_another_page_or_another_time_opens_nothing(
    study, signer, claims
) -> None:
    with pytest.raises(Refused, match="Prolific"):
        enter(study, signer.sign(1, **claims))
    assert participants_table(study).empty


def test_who_knows_an_id_gets_nowhere(study, signer) -> None:
    enter(study, signer.sign(1))
    stranger = RSAKey.generate_key(2048, {"kid": "first"})
    unsigned = jwt.encode({"alg": "HS256"}, {"aud": PAGE}, OctKey.generate_key(256))
    garbage = ("", "a.b.c", "....", "\u00e9.\u00e9.\u00e9", "eyJ9.e30.", "x" * 10_000)
    for token in (*garbage, signer.sign(1, stranger), unsigned):
        with pytest.raises(Refused, match="not signed by Prolific"):
            enter(study, token)
    assert len(participants_table(study)) == 1


def test_a_new_key_is_asked_for_but_not_at_every_forged_token(study, signer, monkeypatch) -> None:
    enter(study, signer.sign(1))
    signer.keys.append(RSAKey.generate_key(2048, {"kid": "second"}))
    with pytest.raises(Refused):
        enter(study, signer.sign(2))
    assert signer.asked == 1
    monkeypatch.setattr(signed_address, "_MINUTE", 0.0)
    enter(study, signer.sign(2))
    assert signer.asked == 2


def test_where_the_keys_cannot_be_had_nobody_is_taken_for_somebody(study, signer) -> None:
    token = signer.sign(1)
    signer.server.shutdown()
    signer.server.server_close()
    with pytest.raises(Refused, match="cannot be asked at present"):
        enter(study, token)
