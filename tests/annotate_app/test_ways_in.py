"""Who gets into a session, by what link or login, and who gets nowhere."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.study import open_study
from evenhand.study.access.accounts import make_token, read_login, set_account
from harness.served import holds
from tests.annotate_app.participants import (
    answer_shorter,
    heading,
    link,
    participant,
    rater_of,
    to_practice,
)

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

PASSWORD = "correct horse battery"


def test_forged_expired_and_foreign_links_lead_nowhere(new_context, crowd, new_page):
    page = new_page(crowd.url + participant(crowd.folder, "begun"))
    heading(page, "Before you begin")
    begun = rater_of(crowd.folder, "begun")
    page = new_context().new_page()
    good = link(crowd.folder, "anna")
    with open_study(crowd.folder) as study:
        foreign = "?invite=" + make_token(study.store, "lead-link", {"rater": "anna"}, 5)
    for address, sentence in {
        good[:-3] + "xyz": "This link is not valid",
        foreign: "This link is not valid",
        "?pass=forged": "This link is not valid",
        link(crowd.folder, "anna", hours=1e-9): "This link has expired",
        "?rater=anna": "A code alone does not open this study",
        f"?rater={begun}": "A code alone does not open this study",
        link(crowd.folder): "This link works from Prolific only",
        participant(crowd.folder, "begun").replace(
            "PID=", "PID=x"
        ): "This link works from Prolific",
        "": "",
    }.items():
        page.goto(crowd.url + address)
        if sentence:
            page.get_by_role("alert").filter(has_text=sentence).wait_for()
        else:
            page.get_by_text("Please open this study by the link").wait_for()
        assert page.locator(".panel, .st-key-step, input").count() == 0
    page.goto(f"{crowd.url}{good}&rater={begun}")
    to_practice(page)
    assert page.locator(".rater").inner_text() == "anna"  # the link's own, whatever stands beside


def test_an_expert_logs_in_goes_on_after_a_reload_and_logs_out(
    new_page, make_session, serve_study, axe
):
    folder = make_session(2, '[session]\nentry = "account"')
    with open_study(folder) as study:
        set_account(study.store, "ada", PASSWORD, "expert")
    server = serve_study(folder)
    page = new_page(f"{server.url}?rater=ada")
    page.get_by_role("alert").filter(has_text="A code alone does not open").wait_for()
    page.goto(server.url)
    page.get_by_label("Name").wait_for()
    axe(page, "login")

    def log_in(password: str) -> None:
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_label("Password", exact=True).press("Enter")

    log_in("wrong password")
    page.get_by_text("Name or password is wrong.").wait_for()
    log_in(PASSWORD)
    page.wait_for_selector(".panel .option")
    assert PASSWORD not in page.url
    page.reload()
    page.wait_for_selector(".panel .option")
    assert page.locator(".rater").inner_text() == "ada"
    answer_shorter(page)
    page.locator(".count", has_text="1 of 2").wait_for()
    assert holds(lambda: len(server.labels("ada")) == 1)
    assert page.url == server.url  # the login stands in no address
    ((kept, login),) = page.evaluate("Object.entries(sessionStorage)")
    assert login not in str(page.context.cookies())
    other = new_page(f"{server.url}?login={login}")
    other.get_by_label("Name").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Name").wait_for()
    with open_study(folder) as study, pytest.raises(InputError, match="login has ended"):
        read_login(study.store, login)
    page.go_back()
    page.go_forward()
    page.get_by_label("Name").wait_for()
    # The token, taken from the browser before, opens nothing either.
    page.evaluate("([name, login]) => sessionStorage.setItem(name, login)", [kept, login])
    page.reload()
    page.get_by_role("alert").filter(has_text="This login has ended").wait_for()
    assert page.locator(".panel").count() == 0
    log_in(PASSWORD)
    page.wait_for_selector(".panel .option")
    with open_study(folder) as study:
        set_account(study.store, "ada", f"{PASSWORD} changed", "expert")
    page.reload()
    page.get_by_role("alert").filter(has_text="This login has ended").wait_for()
