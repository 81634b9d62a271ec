"""How far everybody has come, each stage by one who is there."""

from __future__ import annotations

from evenhand.study.desk.oversight import exclude
from evenhand.study.session.funnel import funnel
from evenhand.study.session.sessions import Sessions
from evenhand.study.store.logs.session import add_event
from harness.studies import with_labels

CONSENT = '[consent]\ntext = "You may stop at any time."\n'


def test_everybody_is_where_they_are(make_session):
    study = make_session(CONSENT)
    sessions = Sessions(study)
    people = ["waits", "refuses", "works", "done", "returned", "excluded"]
    with study.store.write() as connection:
        for name in people:
            add_event(connection, name, "entered", way="open")
    for name in people[1:]:
        sessions.decide_consent(name, agreed=name != "refuses")
    found = {"entered": 6, "consented": 4, "passed": 4}
    assert funnel(study) == found | {"working": 4, "done": 0, "left": 1, "excluded": 0}
    sessions.complete("done")
    sessions.release("returned", "returned")
    with_labels(study, {"excluded": "1"})
    exclude(study.store, "excluded", "too fast")
    # Who returned had labelled nothing: they consented, and are not among those who passed.
    found |= {"passed": 3}
    assert funnel(study) == found | {"working": 1, "done": 1, "left": 2, "excluded": 1}


def test_without_consent_there_is_no_such_stage(make_session):
    found = funnel(make_session())
    assert "consented" not in found and not any(found.values())
