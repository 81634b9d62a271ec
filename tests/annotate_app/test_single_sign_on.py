"""Login by an organisation's provider, in a real browser, against a provider of our own."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import NAMESPACE_URL, uuid5

import pytest
from playwright.sync_api import Page, expect

from evenhand.study import open_study
from evenhand.study.access import accounts, disable_account
from evenhand.study.settings.study_toml import change_config
from harness.annotator import READY
from harness.identity_provider import CLIENT, SECRET, IdentityProvider
from harness.ports import free_port
from harness.served import Served
from tests.annotate_app.leading import complaint, inside
from tests.annotate_app.together import two_studies

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

ADA = {"sub": "ada-1", "email": "Ada@example.org", "email_verified": True}
MANY = {"groups": [str(uuid5(NAMESPACE_URL, str(n))) for n in range(150)]}
"""As large organisations say of everybody: it takes more than one cookie."""
BEN = {"sub": "ben-2"}
BUTTON = "Log in with your organisation"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()
    yield provider
    provider.close()


def sign_on_at(provider: IdentityProvider, served: Served, **lists: list[str]) -> None:
    settings = {
        "server_metadata_url": provider.metadata_url,
        "client_id": CLIENT,
        "client_secret": "${EVENHAND_TEST_SECRET}",
        "address": served.url.rstrip("/"),
    }
    change_config(served.folder, {"oidc": settings | lists})
    served.environment["EVENHAND_TEST_SECRET"] = SECRET


@pytest.fixture(scope="module")
def served(make_study, tmp_path_factory, provider) -> Iterator[Served]:
    served = Served(make_study(2), tmp_path_factory.mktemp("server"), free_port())
    listed = {"leads": ["ada@example.org"], "experts": ["sub:ben-2", "sub:cy-3"]}
    sign_on_at(provider, served, **listed)
    change_config(served.folder, {"session": {"entry": "account"}})
    with served:
        yield served


@pytest.fixture
def come_by_it(new_page, served, provider) -> Callable[..., Page]:
    """come_by_it(door, claims) -> the page of whoever clicked the button there."""

    def come(door: str, person: dict[str, object]) -> Page:
        provider.person, provider.signing_key = person, provider.key
        provider.redirect_uri = f"{served.url}oauth2callback"
        page = new_page(f"{served.url}{door}")
        page.get_by_role("button", name=BUTTON).click()
        return page

    return come


def refused(page: Page, text: str) -> None:
    complaint(page, text)
    expect(page.get_by_text("Log out")).to_have_count(0)


def asked_to_log_in(page: Page) -> None:
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
    expect(page.locator(".evenhand-complaint, :text('Log out')")).to_have_count(0)


def cookies(page: Page) -> list[dict[str, object]]:
    found = page.context.cookies()
    return [each for each in found if str(each["name"]).startswith("_streamlit_user")]


def test_a_lead_comes_in_and_what_let_them_in_ends_with_the_login(
    come_by_it, new_context, served, provider
):
    page = come_by_it("?lead", ADA | MANY)
    inside(page)
    with open_study(served.folder) as study:
        (account,) = [each for each in accounts(study.store).values() if each.role == "lead"]
    assert "ada" not in account.name
    expect(page.get_by_text(f"as {account.name}")).to_be_visible()
    page.reload()
    inside(page)
    assert len(cookies(page)) > 2
    thief = new_context()
    thief.add_cookies(page.context.cookies())
    stolen = thief.new_page()
    stolen.goto(f"{served.url}?lead")
    asked_to_log_in(stolen)
    kept = page.evaluate("Object.entries(sessionStorage)")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
    page.wait_for_url(served.url)
    assert not cookies(page)
    assert len(provider.logouts) == 1
    page.evaluate("kept => kept.forEach(([k, v]) => sessionStorage.setItem(k, v))", kept)
    page.goto(f"{served.url}?lead")
    refused(page, "log in again")


def test_an_expert_labels_under_a_code_of_their_own_until_the_account_is_ended(
    come_by_it, served, provider
):
    page = come_by_it("", BEN)
    page.wait_for_selector(READY)
    name = page.locator(".rater").inner_text()
    assert name.startswith("sso-") and "ben" not in name
    with open_study(served.folder) as study:
        assert accounts(study.store)[name].role == "expert"
    with page.expect_response(lambda reply: "/auth/logout" in reply.url):
        page.get_by_role("button", name="Log out").click()
    asked_to_log_in(page)
    assert not cookies(page)
    page = come_by_it("", {"sub": "cy-3"})
    page.wait_for_selector(READY)
    name, logouts = page.locator(".rater").inner_text(), len(provider.logouts)
    with open_study(served.folder) as study:
        disable_account(study.store, name)
    page.reload()
    refused(page, "This login has ended")
    assert len(provider.logouts) == logouts  # nobody logged out
    page.get_by_role("button", name=BUTTON).click()
    refused(page, "Your account in this study was ended")


def test_a_forged_token_opens_nothing(come_by_it, provider):
    page = come_by_it("", {"sub": "nobody"})
    refused(page, "not verified")

    def come_again() -> None:
        given = provider.tokens
        with page.expect_response(lambda reply: "/oauth2callback" in reply.url):
            page.get_by_role("button", name=BUTTON).click()
        asked_to_log_in(page)  # on another page
        assert provider.tokens == given + 1

    for claim in ({"nonce": "guessed"}, {"iss": "http://127.0.0.1:1"}, {"exp": 1}):
        provider.person = BEN | claim
        come_again()
        assert not cookies(page)
    provider.person = BEN | {"aud": "another-app"}
    come_again()
    provider.person = BEN
    provider.forge()
    come_again()
    assert not cookies(page)
    provider.signing_key = provider.key
    page.get_by_role("button", name=BUTTON).click()  # it was this that kept them out
    page.wait_for_selector(READY)


def test_no_secret_is_written_anywhere_and_a_study_without_a_provider_has_no_such_address(
    served, mortal
):
    for file in [*served.folder.rglob("*"), *served.home.rglob("*")]:
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file
    for path in ("auth/login?provider=x", "oauth2callback?state=x", "auth/logout"):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"{mortal.url}{path}")  # noqa: S310
        assert refusal.value.code == 404


def test_one_login_at_the_provider_serves_two_studies_and_each_lets_in_whom_it_lists(
    new_page, provider, tmp_path
):
    folders = two_studies(tmp_path)
    served = {f.name: Served(f, tmp_path, free_port(), path=f"/{f.name}") for f in folders}
    with ExitStack() as stack:
        for name, lead in (("first", "sub:ada-1"), ("second", "sub:ben-2")):
            sign_on_at(provider, served[name], leads=[lead])
            stack.enter_context(served[name])
        page = new_page("about:blank")
        provider.person, provider.signing_key = ADA, provider.key

        def come_to(name: str) -> None:
            provider.redirect_uri = f"{served[name].url}oauth2callback"
            page.goto(f"{served[name].url}overview")
            page.get_by_role("button", name=BUTTON).click()

        come_to("first")
        expect(page.get_by_text("Leading the study")).to_be_visible()
        kept = page.context.cookies()
        paths = {each["path"] for each in kept if each["name"].startswith("_streamlit_user")}
        assert paths == {"/first"}
        page.goto(f"{served['second'].url}overview")  # with the first's login at hand
        expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
        come_to("second")
        complaint(page, "does not know you")
        provider.person = BEN
        page.get_by_role("button", name=BUTTON).click()
        expect(page.get_by_text("Leading the study")).to_be_visible()
        page.get_by_role("button", name="Log out").click()  # of the second alone
        page.wait_for_url(served["second"].url)  # by way of the provider
        expect(page.get_by_role("button", name=BUTTON)).to_be_visible()
        page.goto(f"{served['first'].url}overview")
        expect(page.get_by_text("Leading the study")).to_be_visible()
