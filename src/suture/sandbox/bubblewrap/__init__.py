"""The bubblewrap back end: finding the program, building its command line, leaving root, diagnosing failures.

This package owns all knowledge of bubblewrap. What runs inside the sandbox belongs to `execution` and
`zygote`.
"""

from suture.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from suture.sandbox.bubblewrap.diagnosis import Requirement
from suture.sandbox.bubblewrap.launcher import WRITABLE_DIR

__all__ = ["WRITABLE_DIR", "BubblewrapSandbox", "Requirement"]
