"""The bubblewrap back end: finding the program, building its command line, leaving root, diagnosing failures.

This package owns all knowledge of bubblewrap. What runs inside the sandbox belongs to `execution` and
`zygote`.
"""

from suture.sandbox.bubblewrap.diagnosis import Requirement
from suture.sandbox.bubblewrap.launcher import WRITABLE_DIR
from suture.sandbox.bubblewrap.sandbox import BubblewrapSandbox

__all__ = ["WRITABLE_DIR", "BubblewrapSandbox", "Requirement"]
