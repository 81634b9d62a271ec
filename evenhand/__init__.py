"""May an LLM grader stand in for people?

>>> import evenhand as eh
>>> dir(eh)
['Check', 'InputError', '__version__', 'analysis', 'check', 'read']

The public names stand in `__init__.pyi` and are resolved on first use: `evenhand --help` loads none
of what they need.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.1.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return __all__
