"""Traces of runs for OpenTelemetry, made from the ledger after the run.

This package reads a run folder and sends its spans where OpenTelemetry's standard variables name a collector.
The loop does not know it. It sends hashes and counts: no prompt, no reply, no code.
"""

from suture.storage.tracing.run_traces import Span, build_spans, export_run_trace, is_tracing_enabled

__all__ = ["Span", "build_spans", "export_run_trace", "is_tracing_enabled"]
