"""The nginx configuration of deploy/, run as it stands there: TLS, and a real browser."""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.routes import front_page
from evenhand.cli.main import lead_link
from harness.annotator import READY, arrive
from harness.proxy import NAME, Proxy, unverified
from harness.served import Served, holds
from tests.annotate_app.leading import turn_to

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def proxied(make_study, tmp_path_factory, nginx) -> Iterator[Proxy]:
    served = Served(make_study(3), tmp_path_factory.mktemp("server"), public_host=NAME)
    served.start()
    proxied = Proxy(tmp_path_factory.mktemp("nginx"), [served.port])
    proxied.served = served
    try:
        proxied.start()
        yield proxied
        proxied.stop()
    finally:
        served.kill()


@pytest.mark.thorough
def test_who_comes_while_the_app_is_away_reads_our_words_and_is_let_in_by_itself(proxied, browser):
    proxied.served.kill()
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    proxied.served.enter("early")
    answer = page.goto(f"{proxied.url}?rater=early")
    assert answer is not None and answer.status == 502
    expect(page.get_by_role("heading", name=ENGLISH.say("page.away_title"))).to_be_visible()
    expect(page.get_by_text(ENGLISH.say("page.away_text"))).to_be_visible()
    proxied.served.start()
    page.wait_for_selector(READY)
    context.close()
    assert "early" not in proxied.log + proxied.error_log  # whole addresses hold invites


def test_no_id_of_a_session_or_a_file_is_logged(proxied):
    proxied.ask("DELETE", "/_stcore/upload_file/secret-session/secret-file")
    proxied.ask("GET", "/media/secret-export.csv")
    proxied.ask("GET", "/long/" + "x" * 5_000)
    proxied.ask("GET", "/%0a203.0.113.9%20[forged]")
    wanted = "GET /media/ 403", "DELETE /_stcore/upload_file/ 403", "GET /long/"
    assert holds(lambda: all(each in proxied.log for each in wanted)), proxied.log
    assert "secret" not in proxied.log
    lines = proxied.log.splitlines()
    assert max(map(len, lines)) < 300
    assert not any(line.startswith("203.0.113.9") for line in lines)


HARMLESS = ("script-src-elem inline", "script-src eval")
"""A line for search engines; a library that asks whether it may compile, and goes on without."""


def refused(page: Page) -> list[str]:
    return [each for each in page.evaluate("refused") if not each.startswith(HARMLESS)]


@pytest.mark.journey
def test_the_policy_of_the_headers_lets_everything_run(proxied, browser):
    context = browser.new_context(ignore_https_errors=True)
    context.add_init_script(
        "window.refused = []; addEventListener('securitypolicyviolation', "
        "(e) => refused.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}`));"
    )
    page = context.new_page()
    person = arrive(page, proxied.served, "bea", proxied.url)
    person.answer("L")
    assert person.all_stored()
    assert page.evaluate("isSecureContext")
    assert refused(page) == []
    _, headers = proxied.ask("GET", "/")
    for name, value in {
        "content-security-policy": "object-src 'none'",
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "permissions-policy": "camera=()",
        "cross-origin-opener-policy": "same-origin",
    }.items():
        assert value in headers[name]
    link = lead_link(proxied.served.folder, proxied.url)
    page.goto(link)
    expect(page.get_by_text("Leading the study")).to_be_visible()
    assert holds(lambda: "GET /overview 200" in proxied.log)
    assert "lead" not in proxied.log
    assert link.partition("=")[2][:20] not in proxied.log
    for title in ("Progress", "Agreement", "Export"):
        turn_to(page, title)
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert refused(page) == []
    turn_to(page, "Recruitment")
    page.get_by_label("Annotator codes").fill("anna")
    page.get_by_role("button", name="Make links").click()
    expect(page.locator("code")).to_contain_text(f"{proxied.url}?invite=")
    # What the policy is for: nothing of another host, and nothing that was slipped into the page.
    page.evaluate("fetch('https://elsewhere.example.org').catch(() => {})")
    page.wait_for_function("refused.some((each) => each.startsWith('connect-src'))")
    context.close()


def test_what_is_closed_is_closed_by_nginx_too(proxied):
    for path in ("metrics", "metrics?families=x", "agent/interact", "script-health-check"):
        assert proxied.ask("GET", f"/_stcore/{path}")[0] == 404
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    local = [line.split()[1] for line in table if line.split()[3] == "0A"]  # listening
    port = f":{proxied.served.port:04X}"  # of the app itself, which stays on loopback
    assert [address for address in local if address.endswith(port)] == [f"0100007F{port}"]
    # Streamlit's files come compressed; nothing that tells of anybody is compressed on the way.
    path = re.search(r"static/js/index[\w.-]+", front_page())[0]
    for each, encoding in ((path, "gzip"), ("?rater=anybody", None)):
        _, headers = proxied.ask("GET", f"/{each}", headers={"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] == encoding
    upload = "/_stcore/upload_file/session/file"
    assert proxied.ask("PUT", upload, 5_000_000)[0] == 403
    assert proxied.ask("PUT", upload, 60_000_000)[0] == 413
    assert proxied.ask("PUT", "/", 5_000_000)[0] == 413


UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/", {}, 200),
        ("/_stcore/stream", UPGRADE, 101),
        ("/_stcore/stream", UPGRADE | {"Origin": f"https://{NAME}"}, 101),
        ("/_stcore/stream", UPGRADE | {"Origin": "https://elsewhere.example.org"}, 403),
    ],
)
def test_pages_of_another_name_cannot_speak_to_the_app(proxied, path, more, status):
    line = http.client.HTTPSConnection(
        "127.0.0.1", proxied.secure, timeout=20, context=unverified()
    )
    line.request("GET", path, headers={"Host": NAME, "Cookie": "long=" + "x" * 20_000} | more)
    assert line.getresponse().status == status
    line.close()


def test_without_tls_there_is_only_the_way_to_it(proxied):
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    plain = f"http://127.0.0.1:{proxied.plain}/?x=1"
    request = urllib.request.Request(plain, headers={"Host": NAME})
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.build_opener(Stay).open(request, timeout=10)
    assert answer.value.code == 301
    assert answer.value.headers["Location"] == f"https://{NAME}/?x=1"
    assert (proxied.home / "machine.log").read_text("utf-8") == ""  # it notes whole addresses
