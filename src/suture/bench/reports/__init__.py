"""Reports of benchmark runs: metrics, paired tests and tables, from rows alone.

This package opens no model and no sandbox.
"""

from suture.bench.reports.arm_comparison import compare_runs, render_arm_comparison
from suture.bench.reports.markdown_report import (
    load_sessions,
    read_rows,
    render_json_report,
    render_markdown_report,
    write_report,
)
from suture.bench.reports.report_summary import build_report
from suture.bench.reports.report_tables import comparison_table

__all__ = [
    "build_report",
    "compare_runs",
    "comparison_table",
    "load_sessions",
    "read_rows",
    "render_arm_comparison",
    "render_json_report",
    "render_markdown_report",
    "write_report",
]
