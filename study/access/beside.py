"""A study made beside the one whose lead made it, to be served at the same address."""

from __future__ import annotations

from evenhand.study.access.accounts import copy_account
from evenhand.study.access.lead_login import Visitor
from evenhand.study.settings.study_toml import FILE_NAME, with_values
from evenhand.study.store.logs.decisions import note_settings
from evenhand.study.tables.files import atomic_write
from evenhand.study.workspace import Study

_LIKE_HERE = ("entry", "trusted_proxies", "hosts")
"""What says who gets in: the world reaches the new study as it does this one."""


def settle_beside(study: Study, made: Study, lead: Visitor) -> bool:
    """Give a new study this one's ways in, and its lead's account. True if they have one here: who
    came by a link has none.
    """
    ways_in = study.config.session.model_dump(mode="json", include={*_LIKE_HERE})
    path = made.folder / FILE_NAME
    text = with_values(path.read_text("utf-8"), {"session": ways_in})
    atomic_write(path, text.encode())
    note_settings(made.store, text, lead.name)
    return lead.has_account and copy_account(study.store, made.store, lead.name)
