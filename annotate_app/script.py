"""What Streamlit runs anew for every session and event: the page."""

from __future__ import annotations

import sys

from evenhand.annotate_app.page import show_page

show_page(sys.argv[1:])
