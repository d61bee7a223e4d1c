"""The warm wall: a small trusted program that stays behind it and forks a child for each run.

What runs behind the wall is in `inside/`; the host's side is here. A zygote serves one run at a time: two at
once would share its network namespace.
"""

from suture.sandbox.zygote.zygote_pool import ZygotePool
from suture.sandbox.zygote.zygote_process import Zygote

__all__ = ["Zygote", "ZygotePool"]
