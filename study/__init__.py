"""Studies and their store: pairs, units, sampling, assignment, labels and grades.

The names are in `__init__.pyi`, resolved on first use: reading a table must not load the database.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
