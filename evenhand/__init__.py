"""Can an LLM grader replace human raters?

>>> import evenhand as eh
>>> [name for name in dir(eh) if name.islower() and name.isalpha()]
['analysis', 'calibrate', 'check', 'compare', 'gate', 'label', 'plan', 'read', 'select']

The public names are listed in `__init__.pyi` and loaded on first use, so `evenhand --help` loads
none of what they need.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return __all__
