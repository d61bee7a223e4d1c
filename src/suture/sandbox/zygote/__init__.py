"""The warm mode: a small trusted process, the zygote, stays in a sandbox and forks a child for each run.

The code that runs inside the sandbox is in `inside/`; the rest is the host's side. A zygote serves one run at
a time, because two at once would share its network namespace.
"""

from suture.sandbox.zygote.zygote_pool import ZygotePool
from suture.sandbox.zygote.zygote_process import Zygote

__all__ = ["Zygote", "ZygotePool"]
