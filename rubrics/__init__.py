"""Rubrics: one file each, used by the annotation app, the prompts and the parsers alike.

The names are listed in `__init__.pyi` and resolved on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
