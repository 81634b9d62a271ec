"""LLM graders: providers, option probabilities, the runner, and the offline baseline.

The names are listed in `__init__.pyi` and resolved on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
