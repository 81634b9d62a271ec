"""`streamlit run annotate_app/app.py -- STUDY_DIR`: the page that annotators work on."""

from __future__ import annotations

import sys
from pathlib import Path

_HOME = str(Path(__file__).resolve().parents[1])
if _HOME not in sys.path:  # run from a checkout that is not installed
    sys.path.insert(0, _HOME)

from evenhand.annotate_app.page import show_page  # noqa: E402

show_page(sys.argv[1:])
