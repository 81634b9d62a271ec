"""Libraries beside which tests put the product, each loaded when a test uses it: together they
take seconds, which whoever collects the tests would pay.
"""

from importlib import import_module
from types import ModuleType
from typing import Any


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of which pytest asks
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


linear_model, ensemble = _Lazy("sklearn.linear_model"), _Lazy("sklearn.ensemble")
pipeline, preprocessing = _Lazy("sklearn.pipeline"), _Lazy("sklearn.preprocessing")
anthropic_types, openai_types = _Lazy("anthropic.types"), _Lazy("openai.types")
altair, pl = _Lazy("altair"), _Lazy("polars")
stats, optimize = _Lazy("scipy.stats"), _Lazy("scipy.optimize")
metrics, model_selection = _Lazy("sklearn.metrics"), _Lazy("sklearn.model_selection")
isotonic = _Lazy("sklearn.isotonic")
sm, formula = _Lazy("statsmodels.api"), _Lazy("statsmodels.formula.api")
contingency_tables = _Lazy("statsmodels.stats.contingency_tables")
inter_rater = _Lazy("statsmodels.stats.inter_rater")
multitest = _Lazy("statsmodels.stats.multitest")
proportion = _Lazy("statsmodels.stats.proportion")
