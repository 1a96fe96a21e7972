"""Reports: what a run left behind, as a page to read.

Gives `write`, from folders of runs to one self-contained HTML file. Reads result files only.
"""

from .page import write
from .runs import ReportError, RunFiles, read_run

__all__ = ["ReportError", "RunFiles", "read_run", "write"]
