"""The wall made by bubblewrap, on this machine: found, told what to build, started without root, diagnosed.

This room owns what is known of bubblewrap. What then runs behind the wall is that of `runs` and `zygote`.
"""

from suture.sandbox.bubblewrap.launcher import WRITABLE_DIR
from suture.sandbox.bubblewrap.sandbox import BubblewrapSandbox

__all__ = ["WRITABLE_DIR", "BubblewrapSandbox"]
