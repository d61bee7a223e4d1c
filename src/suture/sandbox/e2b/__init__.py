"""Machines of the service E2B: each program runs in one of its own, without access to the internet.

Tested against a local server that speaks the service's protocol; never run on the service.
"""

from suture.sandbox.e2b.sandbox import E2bSandbox

__all__ = ["E2bSandbox"]
