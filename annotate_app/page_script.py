"""The script that Streamlit runs for every page view; `app.py` sets up the rest."""

from __future__ import annotations

from evenhand.annotate_app.page import show_page
from evenhand.annotate_app.sites import present_site

if (site := present_site()) is not None:
    show_page(site)
