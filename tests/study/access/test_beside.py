"""Whose account goes along into a study made beside another."""

from __future__ import annotations

import pytest

from evenhand.study import open_study
from evenhand.study.access.accounts import accounts, set_account
from evenhand.study.access.beside import settle_beside
from evenhand.study.access.lead_login import Visitor, log_in, new_link_token, open_link, visitor
from tests.annotate_app.together import two_studies
from tests.study.access.conftest import PASSWORD


@pytest.mark.parametrize("role", ["lead", "expert"])
def test_who_came_by_a_link_takes_nobodys_account_along(tmp_path, role):
    """Not even that of somebody who is called as they are."""
    first, second = two_studies(tmp_path)
    with open_study(first) as study, open_study(second) as made:
        set_account(study.store, "lead", PASSWORD, role)  # type: ignore[arg-type]
        by_link = visitor(study.store, open_link(study.store, new_link_token(study.store)))
        assert not settle_beside(study, made, by_link)
        assert not settle_beside(study, made, Visitor("nobody", "lead"))
        assert set(accounts(made.store)) == {"ada"}
        by_account = visitor(study.store, log_in(study.store, "lead", PASSWORD))
        assert settle_beside(study, made, by_account) == (role == "lead")
        assert ("lead" in accounts(made.store)) == (role == "lead")
