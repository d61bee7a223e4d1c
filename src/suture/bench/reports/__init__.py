"""Reports of benchmark runs: figures, paired tests, tables and plots, from rows and nothing else.

No model and no sandbox is opened here, and nothing is computed while a run goes on.
"""

from suture.bench.reports.markdown import report_markdown
from suture.bench.reports.on_disk import read_rows, report_json, sessions_of, write_report
from suture.bench.reports.run_comparison import compare_runs, in_words
from suture.bench.reports.summary import report_of
from suture.bench.reports.tables import comparison_table

__all__ = [
    "compare_runs",
    "comparison_table",
    "in_words",
    "read_rows",
    "report_json",
    "report_markdown",
    "report_of",
    "sessions_of",
    "write_report",
]
