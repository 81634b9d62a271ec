"""An OpenID provider on loopback, which logs every visitor in as `person` at once.

It is as strict as the real ones: a code works once, for the client that has the secret, at the
address and with the proof (PKCE, RFC 7636) that it was asked with.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "evenhand-app", "the client's secret"


class IdentityProvider:
    """Listens on a free port of loopback until closed."""

    def __init__(self) -> None:
        self.key = self.signing_key = RSAKey.generate_key(2048, {"kid": "one"})
        self.person: dict[str, Any] = {}
        """Claims of whoever logs in; they may also replace those that every token has."""
        self.redirect_uri = ""
        self.tokens = 0
        """How many ID tokens it gave."""
        self.logouts: list[dict[str, str]] = []
        self._asked: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def metadata_url(self) -> str:
        return f"{self.root}/.well-known/openid-configuration"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forge(self) -> None:
        """Sign from now on with a key that only says that it is the provider's."""
        self.signing_key = RSAKey.generate_key(2048, {"kid": "one"})

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.root,
            "authorization_endpoint": f"{self.root}/authorize",
            "token_endpoint": f"{self.root}/token",
            "jwks_uri": f"{self.root}/jwks",
            "end_session_endpoint": f"{self.root}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def jwks(self) -> dict[str, Any]:
        return {"keys": [self.key.as_dict(private=False) | {"use": "sig", "alg": "RS256"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Return the address to which the browser is redirected."""
        assert asked["client_id"] == CLIENT and asked["redirect_uri"] == self.redirect_uri
        assert asked["response_type"] == "code" and "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256" and asked["nonce"]
        code = secrets.token_hex(8)
        self._asked[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, sent: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens for a code, or None where it is refused."""
        asked = self._asked.pop(sent.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or authorization != f"Basic {basic}"
            or sent.get("redirect_uri") != self.redirect_uri
            or asked["code_challenge"] != challenge
        ):
            return None
        self.tokens += 1
        now = int(time.time())
        usual = {"iss": self.root, "aud": CLIENT, "iat": now, "exp": now + 300}
        claims = usual | {"nonce": asked["nonce"]} | self.person
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signing_key)
        return {"access_token": "none", "token_type": "Bearer", "id_token": signed}


def _handler(owner: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                self._lead_to(owner.authorize(asked))
            elif parts.path == "/logout":
                owner.logouts.append(asked)
                self._lead_to(asked["post_logout_redirect_uri"])
            else:
                self._send(owner.jwks() if parts.path == "/jwks" else owner.metadata())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            sent = {name: values[0] for name, values in parse_qs(body).items()}
            given = owner.token(sent, self.headers.get("authorization", ""))
            self._send(given or {"error": "invalid_grant"}, 200 if given else 400)

        def _lead_to(self, address: str) -> None:
            self.send_response(302)
            self.send_header("location", address)
            self.send_header("content-length", "0")
            self.end_headers()

        def _send(self, said: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
