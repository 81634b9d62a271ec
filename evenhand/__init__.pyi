from . import analysis as analysis
from .analysis.dataset import Dataset as Dataset
from .errors import InputError as InputError
from .reporting.gate import Comparison as Comparison
from .reporting.gate import Gate as Gate
from .reporting.library import Check as Check
from .reporting.library import calibrate as calibrate
from .reporting.library import check as check
from .reporting.library import compare as compare
from .reporting.library import gate as gate
from .reporting.library import label as label
from .reporting.library import open_study as open_study
from .reporting.library import plan as plan
from .reporting.library import read as read
from .reporting.library import select as select
from .reporting.new_study import Labelling as Labelling
from .reporting.planning import Plan as Plan
from .reporting.selecting import Calibration as Calibration
from .reporting.selecting import Selection as Selection

__version__: str
