from . import analysis as analysis
from .analysis.dataset import Dataset as Dataset
from .errors import InputError as InputError
from .reporting.library import Check as Check
from .reporting.library import check as check
from .reporting.library import open_study as open_study
from .reporting.library import read as read

__version__: str
