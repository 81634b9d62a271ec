from .files import render_lines as render_lines
from .files import render_notebook as render_notebook
from .files import write_figures as write_figures
from .files import write_report as write_report
from .sections.certainty import render_routing_text as render_routing_text
from .sections.certainty import render_thresholds_text as render_thresholds_text
from .sections.graders import render_table_text as render_table_text
from .source import ReportContext as ReportContext

__all__ = [
    "ReportContext",
    "render_lines",
    "render_notebook",
    "render_routing_text",
    "render_table_text",
    "render_thresholds_text",
    "write_figures",
    "write_report",
]
