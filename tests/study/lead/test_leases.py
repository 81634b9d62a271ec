"""Two adjudicators at work: no unit to both at once, nothing decided twice, revisions appended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.lead import adjudication
from evenhand.study.lead.adjudication import adjudication_queue, decide, open_next, past_decisions
from evenhand.study.lead.adjudication import reopen as reopen_case
from harness.studies import with_labels

RULE = "any"


@pytest.fixture
def study(make_study) -> Study:
    """Four responses that two people disagree on."""
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    with_labels(study, {"r1": "1111", "r2": "4444"})
    assert len(adjudication_queue(study, RULE)) == 4
    return study


def test_two_logins_get_two_units_and_keep_them(study):
    first, waiting = open_next(study, "ada", RULE)
    second, _ = open_next(study, "ben", RULE)
    assert waiting == 4
    assert first.key != second.key
    assert open_next(study, "ada", RULE, at=first.key)[0] == first


def test_who_passes_over_gives_the_unit_to_others_and_sees_it_again_at_the_end(study):
    seen = []
    for _ in range(4):
        case, _ = open_next(study, "ada", RULE, passed_over=seen)
        seen.append(case.key)
    assert len(set(seen)) == 4
    assert open_next(study, "ben", RULE)[0].key == seen[0]
    assert open_next(study, "ada", RULE, passed_over=seen)[0].key == seen[1]


def test_who_leaves_keeps_nothing(study):
    case, _ = open_next(study, "ada", RULE)
    adjudication.give_back(study.store, "ada")
    assert open_next(study, "ben", RULE)[0] == case


def test_a_unit_comes_back_when_its_lease_is_over_and_the_late_one_is_refused(study, monkeypatch):
    case, _ = open_next(study, "ada", RULE)
    monkeypatch.setattr(adjudication, "LEASE_MINUTES", -1.0)
    decide(study, "ada", *case.key, "1", "late, but nobody took it", holder="ada")
    slow, _ = open_next(study, "ada", RULE)
    assert open_next(study, "ben", RULE)[0] == slow
    with pytest.raises(InputError, match="ben has taken this unit over; nothing was stored"):
        decide(study, "ada", *slow.key, "1", "too late", holder="ada")
    assert past_decisions(study)["reason"].tolist() == ["late, but nobody took it"]


def test_a_lease_belongs_to_the_person_and_says_who_holds_what(study):
    case, _ = open_next(study, "ada", RULE)
    assert open_next(study, "ada", RULE)[0] == case  # after a new login
    (lease,) = adjudication.leases_of_others(study.store, "ben")
    assert (lease.key, lease.holder) == (case.key, "ada")
    assert adjudication.leases_of_others(study.store, "ada") == []
    adjudication.take_over(study.store, "ben", case.key)
    assert open_next(study, "ben", RULE, at=case.key)[0] == case
    with pytest.raises(InputError, match="ben has taken this unit over; nothing was stored"):
        decide(study, "ada", *case.key, "1", "too late", holder="ada")
    adjudication.give_back(study.store, "ben")
    with pytest.raises(InputError, match="given back from another window; nothing was stored"):
        decide(study, "ben", *case.key, "1", "too late", holder="ben")
    assert past_decisions(study).empty


def test_what_was_decided_meanwhile_is_not_handed_out(study):
    keys = [each.key for each in adjudication_queue(study, RULE)]
    seen = adjudication.last_label(study.store)
    decide(study, "ben", *keys[0], "1", "plain")
    assert adjudication.take_first(study.store, "ada", keys, seen) == keys[1]


@pytest.mark.slow
def test_many_at_once_never_meet(study):
    def work(holder: str) -> list[tuple[str, str]]:
        done = []
        with open_study(study.folder) as own:
            while case := open_next(own, holder, RULE)[0]:
                decide(own, holder, *case.key, "2", "so it is", holder=holder)
                done.append(case.key)
        return done

    with ThreadPoolExecutor(3) as pool:
        done = [key for keys in pool.map(work, ("ada", "ben", "cy")) for key in keys]
    assert len(done) == len(set(done))
    assert set(done) == set(past_decisions(study)[["unit_id", "rubric"]].itertuples(index=False))


@pytest.mark.slow
def test_a_revision_is_a_new_decision_and_the_latest_counts(study):
    case, _ = open_next(study, "ada", RULE)
    decide(study, "ada", *case.key, "1", "at first sight", holder="ada")
    again = reopen_case(study, "ada", case.key)
    assert again.labels == case.labels
    assert again.reasons == ()  # what the adjudicator wrote is nobody's remark on the unit
    with pytest.raises(InputError, match="ada has had this unit open since"):
        reopen_case(study, "ben", case.key)
    decide(study, "ada", *case.key, "5", "read again", holder="ada")
    decide(study, "ben", *open_next(study, "ben", RULE)[0].key, "2", "plain", holder="ben")
    (mine,) = past_decisions(study, "ada").to_dict("records")
    assert (mine["label"], mine["reason"], mine["done_by"]) == ("5", "read again", "ada")
    assert past_decisions(study)["done_by"].tolist() == ["ben", "ada"]
    ratings = study.ratings()
    assert ratings[ratings["rater_id"] == "adjudicator:ada"]["label"].tolist() == ["5"]


def test_only_the_rubric_that_was_asked_for(study):
    assert open_next(study, "ada", RULE, "hedging") == (None, 0)
    assert open_next(study, "ada", RULE, "refusal")[1] == 4
