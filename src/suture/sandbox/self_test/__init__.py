"""The self-test of a sandbox: canary attacks before its first use, which decide how much of its claim is
believed.

This package knows sandboxes by their contract only, so that third-party ones are tested like the built-in
ones.
"""

from suture.sandbox.self_test.self_tested_sandbox import SelfTestedSandbox

__all__ = ["SelfTestedSandbox"]
