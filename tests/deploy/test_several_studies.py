"""Two studies behind nginx by path: a process for each, or one command for both."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from harness.annotator import arrive
from harness.proxy import NAME, Proxy
from harness.served import Served, ServedTogether
from tests.annotate_app.together import NAMES, two_studies

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(chromium: Callable[..., Browser]) -> Iterator[Browser]:
    browser = chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def apart(
    tmp_path_factory: pytest.TempPathFactory, nginx: None
) -> Iterator[tuple[Proxy, list[Served]]]:
    """A process for each study, and the configuration's lines for the second one."""
    home = tmp_path_factory.mktemp
    apps = [
        Served(folder, home("app"), public_host=NAME, path=f"/{folder.name}")
        for folder in two_studies(home("studies"))
    ]
    proxy = Proxy(home("nginx"), [], second=0)
    try:
        for app in apps:
            app.start()
        proxy.apps, proxy.second = [apps[0].port], apps[1].port
        proxy.start()
        yield proxy, apps
        proxy.stop()
    finally:
        for app in apps:
            app.kill()


@pytest.fixture(scope="module")
def at_once(
    tmp_path_factory: pytest.TempPathFactory, nginx: None
) -> Iterator[tuple[Proxy, list[Served]]]:
    """One command for both, and the configuration as it is for one."""
    home = tmp_path_factory.mktemp
    folders = two_studies(home("studies"))
    served = ServedTogether(folders, home("app"), options=["--url", f"https://{NAME}"])
    served.start()
    proxy = Proxy(home("nginx"), [served.port])
    try:
        proxy.start()
        yield proxy, [served.study(name) for name in NAMES]
        proxy.stop()
    finally:
        served.stop()


@pytest.fixture(params=["apart", "at_once"])
def site(request: pytest.FixtureRequest) -> tuple[Proxy, list[Served]]:
    found: tuple[Proxy, list[Served]] = request.getfixturevalue(request.param)
    return found


def test_each_study_is_labelled_at_its_path(site, browser):
    proxy, studies = site
    context = browser.new_context(ignore_https_errors=True)
    for name, study in zip(NAMES, studies, strict=True):
        person = arrive(context.new_page(), study, "ann", f"{proxy.url}{name}/")
        person.answer("L")
        assert person.all_stored()
    own = {str(each["name"]) for each in context.cookies()}
    assert {f"__Host-evenhand_session_{name}" for name in NAMES} <= own
    context.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/first", 307),
        ("/first/health", 200),
        ("/second/health", 200),
        ("/second/_stcore/metrics", 404),
        ("/third/", 404),
        ("/secondly/health", 404),
        ("/_stcore/health", 404),
    ],
)
def test_each_path_is_its_studys_alone(site, path, status):
    assert site[0].ask("GET", path)[0] == status


@pytest.mark.parametrize("path", ["/first/..%2fsecond/", "/first/%2e%2e/second/overview"])
def test_no_path_leads_from_one_to_the_other(site, path):
    status, headers = site[0].ask("GET", path)
    assert status in (400, 404)
    assert not [each for each in headers.get_all("Set-Cookie", []) if "evenhand_session" in each]
