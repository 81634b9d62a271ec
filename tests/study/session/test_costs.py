"""What a study costs, by hand on a small one."""

from __future__ import annotations

import pytest

from evenhand.study.session.costs import costs
from evenhand.study.settings.session import PaySettings, ProlificSettings


@pytest.fixture
def study(make_study):
    """80 response units, one rater each."""
    return make_study(pairs=40, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def test_nothing_is_owed_where_nothing_is_set(study):
    found = costs(study)
    assert (found.owed, found.expected, found.graders_usd) == (None, None, None)


def test_what_people_are_owed_in_the_end(study):
    study.config = study.config.model_copy(
        update={"pay": PaySettings(complete=6.0, currency="GBP")}
    )
    assert (costs(study).owed, costs(study).expected) == (0.0, None)
    annotation = study.config.annotation.model_copy(update={"units_per_rater": 15})
    study.config = study.config.model_copy(update={"annotation": annotation})
    assert costs(study).expected == 36.0  # 80 places at 15 each take 6 people
    prolific = ProlificSettings(complete="C", screened_out="S", no_consent="N", places=10)
    study.config = study.config.model_copy(update={"prolific": prolific})
    assert costs(study).expected == 60.0
