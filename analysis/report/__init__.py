"""Rendering an analysis: report.html, report.md, report.json, results.csv and a panel as text.

Every number in them is read off the `results` table; nothing is computed here but its rounding.

The names are listed in `__init__.pyi` and resolved on first use: the panel needs no charts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
