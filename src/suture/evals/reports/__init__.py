"""Reports of benchmark runs: figures, paired tests, tables and plots, from rows and nothing else.

No model and no sandbox is opened here, and nothing is computed while a run goes on.
"""

from suture.evals.reports.cells import BASELINES, Cell, cells_of
from suture.evals.reports.pairing import Comparison, adjusted, compare_arms
from suture.evals.reports.reading import ROWS_FILE, read_rows
from suture.evals.reports.summing import Report, Section, report_of

__all__ = [
    "BASELINES",
    "ROWS_FILE",
    "Cell",
    "Comparison",
    "Report",
    "Section",
    "adjusted",
    "cells_of",
    "compare_arms",
    "read_rows",
    "report_of",
]
