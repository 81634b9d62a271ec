"""Agreement of human and model raters: pure functions over two tables, and over plain arrays.

`analyse` takes the two tables and returns the whole panel. The other functions return one statistic
each, on plain labels (units, raters) with declared categories:

>>> from evenhand.analysis import krippendorff_alpha
>>> labels = [["yes", "yes"], ["no", "no"], ["yes", "no"], ["no", None]]
>>> alpha = krippendorff_alpha(labels, categories=["yes", "no"], level="nominal")
>>> round(alpha.estimate, 3), alpha.n
(0.444, 3)

The public names are listed in `__init__.pyi`, each with its module, for readers and type checkers
alike. They are resolved on first use, so that importing the package loads no numerical library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
