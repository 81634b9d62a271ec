"""The settings in study.toml as they are in force, each with its explanation."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.logins.lead_login import require
from evenhand.study import Study
from evenhand.study.settings.page import settings_in_force
from evenhand.texts import written


def show_settings(study: Study) -> None:
    import pandas as pd

    require(study, "lead")
    st.text(written("lead.settings"))
    table = pd.DataFrame(settings_in_force(study.config), columns=["key", "value", "says"])
    show_table(table, "Settings", {"key": "Key", "value": "Set to", "says": "What it says"})
