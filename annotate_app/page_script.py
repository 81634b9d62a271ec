"""The script that Streamlit runs for every page view; `app.py` sets up the rest."""

from __future__ import annotations

import sys

from evenhand.annotate_app.page import show_page

show_page(sys.argv[1])
