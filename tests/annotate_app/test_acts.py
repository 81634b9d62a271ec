"""What a lead does on the pages, in the real app without a browser: what the study then holds, and
in `golden/acts-*.txt` what the page then shows that it did not show before (see `test_golden`).
"""

import shutil
import tomllib
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import pytest

from evenhand.annotate_app import sites
from evenhand.study import Study, access, open_study
from evenhand.study.desk.claims import oversight
from evenhand.study.lead.disagreements import decide, past_decisions, raised_flags
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.logs.decisions import acts
from harness.annotator import SUBJECT
from harness.visits import Act, Visit, lead_query
from tests.annotate_app.test_golden import hold

pytestmark = pytest.mark.journey
Step = tuple[str, list[Act], Callable[[Study], Any], Any]
"""A page and what is done there, what is read of the study, and what that is then."""


def news_of(visit: Visit, folder: Path, steps: list[Step]) -> str:
    """Take the steps, check what the study holds, and return what each page shows anew."""
    news, before = list[str](), ""
    for page, things, read, expected in steps:
        if page != before:
            visit.turn_to(*page.split("?"))
        news += [f"==== {page}", *visit.act(things, visit.text(sidebar=True))]
        before = page
        with open_study(folder) as study:
            assert read(study) == expected, f"{page}: {things}"
    return "\n".join(news) + "\n"


def invited(study: Study) -> list[tuple[str, str]]:
    table = access.invites_table(study)
    return sorted(zip(table["rater_id"], table["state"], strict=True))


def n_invited(study: Study) -> int:
    return len(access.invites_table(study))


def is_paused(study: Study) -> bool:
    return oversight(study.store).paused


def reason_of_ann(study: Study) -> str:
    return Sessions(study).next_step("ann").reason


def n_sampled(study: Study) -> int:
    return len(study.store.sample())


def roles(study: Study) -> dict[str, str]:
    return {name: account.role for name, account in access.accounts(study.store).items()}


LISTED = b"Participant id,Status\nunknown,RETURNED\n"
OPEN = [("", "open"), ("anna", "open"), ("bob", "open"), ("eve", "open")]
PASSWORD = "a long enough one"
EXPERT, LEAD = get_args(access.Role)
PEOPLE: list[Step] = [
    ("Recruitment", [{"invite.codes": "anna, bob,"}, "invite"], invited, OPEN),
    ("Recruitment", [{"invite.codes": "", "invite.count": 3},  # and a double click
        lambda v: v.run(click := v.event("invite")).run(click)], n_invited, 7),
    ("Recruitment", ["invite#1"], n_invited, 8),
    ("Recruitment", [{"invite.codes": "not a code"}, "invite"], n_invited, 8),
    ("Recruitment", [{"revoke.rater": "eve"}, None, "Revoke"],
        lambda s: dict(invited(s))["eve"], "revoked"),
    ("Recruitment", [{"places.name": " ann "}, None, "places"], reason_of_ann, "returned"),
    ("Recruitment", [{"places.name": "ann", "places.act": 3}, None, "places"], reason_of_ann, ""),
    ("Recruitment", [{"places.name": "nobody"}, None, "places"], reason_of_ann, ""),
    ("Recruitment", [lambda v: v.upload("submissions.file", "s.csv", LISTED), "submissions"],
        reason_of_ann, ""),
    ("Recruitment", ["Pause the study"], is_paused, True),
    ("Progress", [None], is_paused, True),
    ("Recruitment", ["Resume the study"], is_paused, False),
    ("Recruitment", [{"extend36.more": 3}, "extend36"], n_sampled, 39),
    ("Recruitment", [{"extend39.more": 1}, "extend39"], n_sampled, 40),
    ("Accounts", [{"account.name": "dora", "account.password": "short"}, "account"],
        roles, {"chair": EXPERT}),
    ("Accounts",
        [{"account.name": " dora ", "account.password": PASSWORD, "account.role": 1}, "account"],
        roles, {"chair": EXPERT, "dora": LEAD}),
    ("Accounts", [{"disable.name": "dora"}, None, "Remove"], roles, {"chair": EXPERT}),
    ("Log", [None], lambda s: [*acts(s.store)["kind"][:2]], ["account", "account"]),
]  # fmt: skip


def config_of(*places: str) -> Callable[[Study], Any]:
    """Read settings of study.toml as it is now."""

    def read(study: Study) -> Any:
        return [attrgetter(place)(read_config(study.folder)) for place in places]

    return read


def words_of_shorter(study: Study) -> list[Any]:
    rubric = study.rubrics["shorter"]
    option, same = rubric.options[0], [*study.config.same_text]
    return [rubric.title, rubric.question, option.name, [*option.examples], same]


def known(study: Study) -> list[str]:
    units = tomllib.loads((study.folder / "training.toml").read_text("utf-8"))["unit"]
    return [unit["name"] for unit in units]


def folder_of(visit: Visit) -> Path:
    return next(site.folder for site in sites.sites() if site.path == visit.path)


def meanwhile(visit: Visit) -> None:
    minutes = read_config(folder_of(visit)).annotation.lease_minutes
    change_config(folder_of(visit), {"annotation": {"lease_minutes": 45.0 + (minutes == 45)}})


ITEM = {
    "name": "new-item", "Response A": "Long, very long.", "Response B": "Short.",
    "Prompt A": "A?", "Prompt B": "B?",
    "explanation": "It *is*.", "expected.shorter": [1],
}  # fmt: skip
SAVE: list[Act] = [None, "save"]
"""Have the effects of what is filled in shown, then save it."""
CHANGES: list[Step] = [
    ("Settings", [{"raters_per_unit": 4, "annotation.confidence": True}, *SAVE],
        config_of("annotation.raters_per_unit", "annotation.confidence"), [4, True]),
    ("Settings", [{"raters_per_unit": 5}, None, "Discard changes"],
        config_of("annotation.raters_per_unit"), [4]),
    ("Settings", [{"raters_per_unit": 5}, meanwhile, None],
        config_of("annotation.lease_minutes", "annotation.raters_per_unit"), [45.0, 4]),
    ("Settings", ["Begin again from the newer text", {"display": 1}, *SAVE],
        config_of("annotation.display"), ["markdown"]),
    ("Settings", [{"pay is used": False}, *SAVE], config_of("pay"), [None]),
    ("Settings", [{"pay is used": True}, None, {"pay.complete": 6.0, "pay.currency": "pounds"},
        None], config_of("pay"), [None]),
    ("Settings", [{"pay.currency": "GBP"}, *SAVE],
        config_of("pay.complete", "pay.currency"), [6.0, "GBP"]),
    ("Settings", [{"analysis is open": True, "decision is open": True}, None,
        {"margin": 0.15, "cluster": " a "}, *SAVE],
        config_of("analysis.margin", "analysis.cluster"), [0.15, "a"]),
    ("Settings", [{"analysis is open": True}, None, {"margin": 2.5}, None],
        config_of("analysis.margin"), [0.15]),
    ("Settings", [{"margin": 0.5}, None, meanwhile, "save"],
        config_of("analysis.margin", "annotation.lease_minutes"), [0.15, 46.0]),
    ("Texts", [{".consent": "# Why\n\nRead *this*."}, *SAVE],
        config_of("consent.text"), ["# Why\n\nRead *this*."]),
    ("Texts", [{"text_in": 1}, None, {".consent": " Lies *dies*. "}, *SAVE],
        lambda study: (study.folder / "consent.de.md").read_text("utf-8"), "Lies *dies*.\n"),
    ("Texts", [{"text_in": 0}, None, {".consent": ""}, *SAVE], config_of("consent"), [None]),
    ("Rubrics", [{"rubric_name": "shorter"}, None, {"title": "Brevity"}, None, {"meaning": 1},
        *SAVE], words_of_shorter,
        ["Brevity", "Which response is shorter?", "Response A", [], ["shorter"]]),
    ("Rubrics", [{"L.name": "The left", "L.examples": "one\n\ntwo"}, None, {"meaning": 1}, *SAVE],
        words_of_shorter,
        ["Brevity", "Which response is shorter?", "The left", ["one", "two"], ["shorter"]]),
    ("Rubrics", [{"question": "Which is it?"}, *SAVE], words_of_shorter,
        ["Brevity", "Which is it?", "The left", ["one", "two"], []]),
    ("Training and checks", [{"at": 1}, None, ITEM, *SAVE], known, ["short-b", "new-item"]),
    ("Training and checks",
        [{"at": 1}, None, {"expected.shorter": [], "explanation": ""}, None], known,
        ["short-b", "new-item"]),
    ("Training and checks", [{"at": 0}, None, {"0.-": True}, *SAVE], known, ["new-item"]),
    ("Training and checks", [{"training_kind": [1]}, None, {"0.-": True}, *SAVE],
        config_of("attention"), [None]),
    ("Training and checks", [{"training_kind": [2]}, None, {"answer": "Who wrote them"}, *SAVE],
        lambda s: s.config.comprehension[0].answer, "Who wrote them"),
    ("Training and checks", [{"training_kind": [3]}, None, {"0.key": "party",
        "0.question": "Which?", "0.options": "left\nright", "0.quotas": "2, 0"}, *SAVE],
        lambda s: (s.config.side.key, s.config.side.quotas), ("party", (2, 0))),
    ("Training and checks", [{"0.-": True}, *SAVE], config_of("background"), [None]),
    ("Log", [None], lambda s: [*acts(s.store)["kind"][:2]], ["settings", "settings"]),
]  # fmt: skip


def decider(visit: Visit, **sent: object) -> None:
    token = visit.data("evenhand_decider")["token"]
    visit.send("evenhand_decider", "sent", {"token": token, **sent})


def ghost(visit: Visit) -> None:
    with open_study(folder_of(visit)) as study:
        decide(study, "ghost", f"p0006|{SUBJECT}", "shorter", "L", "At once.")


def decisions(study: Study) -> list[tuple[str, ...]]:
    table = past_decisions(study)
    return [*zip(table["unit_id"].str[:5], table["label"], table["reason"], strict=True)]


def flags(study: Study) -> list[tuple[str, str, str]]:
    return [(flag.reason, flag.note, flag.done_by) for flag in raised_flags(study)]


BEFORE = [("p0001", "2", "It says so.")]
QUALITY: list[Step] = [
    ("Flags", [{"flag-2.answer": "Thanks."}, "flag-2"], flags,
        [("other", "", ""), ("harmful", "looked at", "lead")]),
    ("Flags", [{"flag-2.note": "Reworded.", "flag-2.answer": "Thanks."}, "flag-2"], flags,
        [("other", "Reworded.", "lead"), ("harmful", "looked at", "lead")]),
    ("Adjudication", [lambda v: decider(v, label="C")], decisions, BEFORE),
    ("Adjudication", [lambda v: decider(v, passes=True)], decisions, BEFORE),
    ("Adjudication", [lambda v: decider(v, token="other", label="C", reason="x")],
        decisions, BEFORE),
    ("Adjudication", [lambda v: v.send("evenhand_decider", "sent", "nonsense")], decisions, BEFORE),
    ("Adjudication", [lambda v: decider(v, label="4", reason=" So. ")], decisions,
        [("p0006", "4", "So."), *BEFORE]),
    ("Adjudication", [{"Revise a decision of yours": 0}, None, "Open it again"],
        lambda s: len(decisions(s)), 2),
    ("Adjudication", [lambda v: decider(v, label="3", reason="Again.")], decisions,
        [("p0006", "3", "Again."), *BEFORE]),
    ("Adjudication", [ghost, lambda v: decider(v, label="C", reason="Both.")], decisions,
        [("p0006", "C", "Both."), ("p0006", "L", "At once."), ("p0006", "3", "Again."), *BEFORE]),
    ("Adjudication?unit=none&rubric=shorter", [None], lambda s: len(decisions(s)), 4),
    ("Items?item=P0006", [{"Show graders' labels": True}, None], lambda s: len(decisions(s)), 4),
]  # fmt: skip


@pytest.mark.parametrize("name", ["people", "changes", "quality"])
def test_what_a_lead_does_is_stored_and_shown(name: str, led: Path, tmp_path: Path, window) -> None:
    folder = Path(shutil.copytree(led, tmp_path / f"led-{name}"))
    steps = {"people": PEOPLE, "changes": CHANGES, "quality": QUALITY}[name]
    hold(f"acts-{name}", news_of(window(folder, lead_query(folder)), folder, steps))
