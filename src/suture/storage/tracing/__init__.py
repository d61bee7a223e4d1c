"""A run as spans for other people's tools: made from its ledger, after the fact.

This room reads a run folder and sends what it says where the standard variables of OpenTelemetry name a
collector. Nothing in the loop knows of it. It sends hashes and counts: no prompt, no reply, no code.
"""

from suture.storage.tracing.opentelemetry_export import export_run, wants_traces
from suture.storage.tracing.spans import Span, spans_of

__all__ = ["Span", "export_run", "spans_of", "wants_traces"]
