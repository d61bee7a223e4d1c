"""The E2B back end: each program runs in a machine of that service, without internet access.

Tested against a local server that speaks the service's protocol; never run on the service itself.
"""

from suture.sandbox.e2b.e2b_sandbox import E2bSandbox

__all__ = ["E2bSandbox"]
