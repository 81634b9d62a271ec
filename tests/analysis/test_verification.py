"""Estimates are held against libraries only where these compute the same thing."""

from __future__ import annotations

import pytest

from evenhand.analysis import Scale
from tests.analysis.make import analyse_labels


@pytest.mark.parametrize("ben", ["yynnyy-", "yynny--", "-------", "y------"])
def test_a_report_can_be_made_while_labels_are_still_coming_in(ben):
    # A unit with one label so far has its part in the marginals of Fleiss' kappa (Gwet 2014), which
    # statsmodels leaves out: there is nothing to compare, and no reason to stop.
    found = analyse_labels(
        {"ann": "ynnnyyy", "ben": ben},
        Scale("", ("y", "n"), affirmative=frozenset("y")),
        resamples=100,
        verify=True,
    )
    assert found.verification is not None


def test_where_all_units_have_two_labels_fleiss_kappa_is_compared():
    def compared(labels: dict[str, str]) -> int:
        found = analyse_labels(labels, Scale("", ("y", "n")), verify=True)
        return found.verification.compared

    whole = compared({"ann": "ynnnyyy", "ben": "yynnyyn"})
    partial = compared({"ann": "ynnnyyy", "ben": "yynnyy-"})
    assert whole > partial
