from .creation import create_study as create_study
from .creation import extend_sample as extend_sample
from .workspace import Study as Study
from .workspace import open_study as open_study

__all__ = ["Study", "create_study", "extend_sample", "open_study"]
