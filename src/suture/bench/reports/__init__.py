"""Reports of benchmark runs: figures, paired tests, tables and plots, from rows and nothing else.

No model and no sandbox is opened here, and nothing is computed while a run goes on.
"""

from suture.bench.reports.arm_comparison import compare_runs, render_arm_comparison
from suture.bench.reports.markdown_report import render_markdown_report
from suture.bench.reports.report_files import load_sessions, read_rows, render_json_report, write_report
from suture.bench.reports.report_summary import build_report
from suture.bench.reports.tables import comparison_table

__all__ = [
    "compare_runs",
    "comparison_table",
    "render_arm_comparison",
    "read_rows",
    "render_json_report",
    "render_markdown_report",
    "build_report",
    "load_sessions",
    "write_report",
]
