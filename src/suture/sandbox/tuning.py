"""The numbers that bound the sandbox: time limits, sizes and pool sizes.

A number without a measurement was chosen by judgement. Code that runs inside the sandbox on a bare
interpreter cannot import this module, so it keeps its own few numbers (`execution/supervisor.py`,
`zygote/inside`, `self_test/canary.py`, `unsafe_subprocess/reaper.py`, `working_copy/command_runner.py`).
Limits of Linux itself stay next to the code that they affect.
"""

from __future__ import annotations

MIB = 1 << 20

# One program (`execution`).
SETUP_TIMEOUT_S = 60.0
"""Time for a sandbox to become ready for its program. Generous, because a busy machine is not the program's
fault."""
WATCHDOG_GRACE_S = 2.0
"""The supervisor inside ends a program after `wall_s`. If it has not after this extra time, the host does."""
KILL_TIMEOUT_S = 10.0
"""Time from SIGKILL until every process of the run must be gone."""
REMOVAL_TIMEOUT_S = 90.0
"""Time for the final removal of a run or zygote. Generous, because an engine that does not answer is noticed only
after `ENGINE_TIMEOUT_S`."""
FLOOD_FACTOR = 1024
"""A program that prints this many times its `output_bytes` is ended with `output_limit`. Suites that log everything
print some hundred MiB, which costs time but no memory."""
READ_CHUNK_BYTES = 1 << 16
"""Size of one read from a pipe and of one frame: the capacity of a Linux pipe."""
MAX_COLLECTED_BYTES = 32 * MIB
"""Size of all collected files of a run together."""
ROOM_STEP_MB, ROOM_STEP_FILES = 64, 10_000
"""Space in MiB, and inodes, that a request gets for its own files, rounded up to whole steps.
Small requests get no more, so that they share what was made ready for requests without files."""
MAX_CHANNEL_FRAME_BYTES = 64 * MIB
"""Size of one frame of a conversation. A program that announces a longer one is ended."""
FINISH_TIMEOUT_S = 5.0
"""Time for a program to end on its own after its stdin was closed."""
EXIT_GRACE_S = 2.0
"""Time for a program to end on its own after its stdout has ended."""
SHM_BYTES = 16 * MIB
"""Size of `/dev/shm`, for semaphores and shared memory. The zygote's children and containers use the same
size."""

# Memory control groups.
CGROUP_BASE_BYTES = 64 * MIB
"""Added to each limit for the sandbox itself: bubblewrap, a waiting interpreter, pages of shared
libraries."""
MAX_TCP_BUFFER_BYTES = 64 * MIB
"""TCP buffers. cgroup v1 does not count them as memory, so without a limit a program could fill the
machine."""
CGROUP_REMOVAL_ATTEMPTS = 50
CGROUP_REMOVAL_INTERVAL_S = 0.02
"""A control group can be removed only after its last process has been reaped, so removal is retried."""

# Zygotes.
ZYGOTE_READY_TIMEOUT_S = 60.0
"""Time for a zygote to become ready. Generous, because a busy machine is not the zygote's fault."""
MAX_ZYGOTE_FRAME_BYTES = MIB
"""Size of one frame from a zygote. Its relay sends at most 64 KiB, so a longer frame is an attack or a fault."""
MAX_ZYGOTE_RUNS = 500
MAX_ZYGOTE_AGE_S = 900.0
"""A zygote is replaced after this many runs or seconds. 500 mixed runs left its memory and processes
unchanged."""
MAX_KILLED_RUNS_IN_A_ROW = 3
"""Consecutive runs that had to be killed after which a zygote is replaced."""
MAX_ZYGOTE_STDERR_BYTES = 8192
"""The end of a zygote's stderr is kept, because it says why the zygote died."""
CHILD_KILL_TIMEOUT_S = 2.0
"""Time for a zygote to end a child. After that the zygote itself is killed."""
MAX_IDLE_ZYGOTES = 4
"""Zygotes that wait for work; each holds about 15 MB."""
MAX_UNQUEUED_EXPENSIVE_RUNS = 2
"""Where a zygote is slow to start, this many runs get one of their own before further runs wait for a busy
one. Most machines have two processors."""
PRELOAD_MB = 2048
"""Memory of a preloading zygote until its first run: of each process, and with a control group of all
together."""
MIN_PRELOAD_PROCESSES = 256
MAX_PRELOAD_PROCESSES = 4096
"""Bounds of the limit on processes while a project's environment is preloaded."""

# Pool of sandboxes.
ITEMS_IN_FLIGHT_PER_SANDBOX = 2
"""Items of `SandboxPool.map` in progress for each sandbox, so that a slow item leaves no other sandbox idle."""

# Self-test.
CANARY_TIMEOUT_S = 30.0
"""Time for a canary to answer. Generous, because a busy machine is not the sandbox's fault."""
SURVIVOR_TIMEOUT_S = 2.0
"""Time until the processes that a canary left behind must be gone."""
CANARY_TOTAL_MEMORY_MB = 48
"""The canary's limit on total memory: above what its interpreter needs, and far below what it tries to take.
"""

# Bubblewrap.
VERSION_QUERY_TIMEOUT_S = 10.0
"""Time for `bwrap --version`."""

# Container engines.
ENGINE_TIMEOUT_S = 60
"""Time for one request to the engine."""
MAX_CONTAINER_PROCESSES = 4096
MAX_CONTAINER_OPEN_FILES = 1024
"""Limits of each container. An engine that runs as a root without CAP_SYS_RESOURCE can grant no more."""
CONTAINER_BASE_MB = 64
"""Memory that a container may hold for the zygote itself, in addition to the program's."""
MAX_REFUSAL_BYTES = 1 << 16
"""Maximum bytes of an engine's refusal that are read for the error message."""

# E2B.
MACHINE_EXTRA_LIFETIME_S = 300
"""A machine's lifetime beyond its program's `wall_s`. The service ends it then, even if Suture is gone."""
MAX_UNSENT_BYTES = MIB
"""Input that may wait to be sent to a machine before the writer has to wait."""
TASK_CANCEL_INTERVAL_S = 0.1
"""Time between two attempts to cancel a task that waits inside the SDK."""

# Unsafe subprocess.
REAPER_KILL_TIMEOUT_S = 2.0
"""Time for the reaper to end its program. After that the reaper itself is killed."""

# Discovering runtimes and checking paths.
INTERPRETER_QUERY_TIMEOUT_S = 30.0
"""Time for `python` on PATH to describe itself. A shim of pyenv or conda on a cold disk takes some seconds."""
MAX_NAMED_PACKAGES = 5
"""Number of missing packages that a message names."""
MAX_ENVIRONMENTS_PER_PATTERN = 24
"""Environments that are considered for one pattern. tox and nox make one for each version and factor."""
MAX_LISTED_ENVIRONMENTS = 2000
"""Entries that are read of a folder with the environments of many projects."""
MAX_PROJECT_FILE_BYTES = MIB
"""Size of a project's configuration file. A longer one is ignored."""
MAX_CHECKED_ENTRIES = 1_000_000
"""Files in a folder that is searched for sockets and devices. A project may have filled it."""

# Working copies.
MAX_CHANGED_FILES = 500
MAX_CHANGED_FILE_BYTES = 2 * MIB
MAX_CHANGED_BYTES = 16 * MIB
"""Maximum changes that are returned from one command: number of files, size of each, size of all together."""
MAX_CHANGED_PATH_CHARS = 400
COPY_OVERHEAD_S = 20.0
"""Time for hashing the files before and after a command, in addition to its own time limit."""
COPY_REPORT_BYTES = 4096
"""Part of the output that is reserved for the line that says how the command ended."""

# Fetching packages.
CLIENT_TIMEOUT_S = 300.0
"""Time for one call of pip, npm or go, with all downloads."""
MAX_CLIENT_MESSAGE_CHARS = 600
"""Maximum characters of a client's output that an error message quotes."""
SETTINGS_QUERY_TIMEOUT_S = 60.0
"""Time for a client to print its own settings."""
MAX_CERTIFICATE_BYTES = 4 * MIB
MAX_CLIENT_SETTINGS_BYTES = MIB
MAX_LOCK_BYTES = 16 * MIB
MAX_ADDED_SET_BYTES = 64 * MIB
"""Size of the record of a cached set, which holds the content of a manifest and of a lock."""
MAX_REQUESTED_PACKAGES = 100
"""Packages that one manifest may ask for."""
MAX_REQUIREMENT_CHARS = 200
MAX_GO_ROUNDS = 5
"""Resolving rounds for Go: each adds what the modules of the previous one require in turn."""
MAX_INSTALLED_PACKAGES = 5000
"""Entries that are read of an environment's folder of packages. Further ones count as not installed."""
MAX_INDEX_PAGE_BYTES = MIB
INDEX_PAGE_TIMEOUT_S = 30.0
"""Time for a whole page of an index, however slowly it arrives."""
MAX_INDEX_PAGES = 3
"""Packages whose page is requested before an index counts as having none."""
MAX_FILE_HOSTS = 4
"""Servers on which an index may keep its files."""
MAX_REQUEST_HEAD_BYTES = 1 << 16
REQUEST_HEAD_TIMEOUT_S = 30.0
"""Size of a request's head to the index proxy, and the time until it is complete."""
CONNECT_TIMEOUT_S = 30.0
"""Time for the index proxy to connect to the index."""
IDLE_TIMEOUT_S = 120.0
"""Seconds without traffic after which the index proxy closes a connection."""
MAX_DOWNLOADED_BYTES = 4 << 30
"""Bytes that one call of a client may transfer."""
MAX_CONNECTIONS = 64
"""Connections of a client at the same time. npm opens 15 by default (`maxsockets`)."""
MAX_NAMED_SERVERS = 5
"""Number of refused or silent servers that a message names."""
MAX_CACHED_PACKAGES_BYTES = 8 << 30
"""Size of all cached sets together, beyond which the least recently used ones are removed."""
PACKAGE_SET_IN_USE_S = 24 * 3600
"""Seconds after its last use in which a set is not removed: it may be mounted in a run, and no run takes that long."""
