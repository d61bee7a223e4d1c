"""What a wall is worth: canary attacks on it before its first use, and what they leave of its claim.

This room knows walls by their contract only, so that one from elsewhere is tried like ours.
"""

from suture.sandbox.self_test.self_tested_sandbox import SelfTestedSandbox

__all__ = ["SelfTestedSandbox"]
