"""No wall at all: programs run as the user, with limits on what they may use and none on what they may do.

This room is for machines where nothing else can be had, and for people who know what they run. It is never a
fallback: only its own name opens it, and each run says so.
"""

from suture.sandbox.unsafe_subprocess.sandbox import UnsafeSubprocess

__all__ = ["UnsafeSubprocess"]
