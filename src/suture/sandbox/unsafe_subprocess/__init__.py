"""No isolation: programs run as the user, with limits on resources but none on what they may do.

This back end is for machines where no sandbox can be had, and for people who know what they run. It is never
a fallback: only its own name selects it, and each run prints a warning.
"""

from suture.sandbox.unsafe_subprocess.unsafe_sandbox import UnsafeSubprocess

__all__ = ["UnsafeSubprocess"]
