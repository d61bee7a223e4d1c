"""The self-test of a sandbox: canary attacks before its first use decide how much of the claimed isolation is believed.

This package knows sandboxes by their contract only, so third-party ones are tested like the built-in ones.
"""

from suture.sandbox.self_test.self_tested_sandbox import SelfTestedSandbox

__all__ = ["SelfTestedSandbox"]
