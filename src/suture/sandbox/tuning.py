"""The numbers that bound the sandbox: time limits, sizes and pool sizes, each with its reason.

Code that runs inside the sandbox on a bare interpreter cannot import this module. It keeps its own few
numbers (`execution/supervisor.py`, `zygote/inside`, `self_test/canary.py`, `unsafe_subprocess/reaper.py`,
`working_copy/command_runner.py`). Limits of Linux itself stay beside the code that meets them.
"""

from __future__ import annotations

MIB = 1 << 20

# One program (`execution`).
SETUP_TIMEOUT_S = 60.0
"""Until the sandbox must be ready for the program. Generous, because a busy machine is not the program's
fault."""
WATCHDOG_GRACE_S = 2.0
"""After `wall_s`, the time in which the supervisor inside must have ended the program before the host
does."""
KILL_TIMEOUT_S = 10.0
"""From SIGKILL until every process of the run must be gone."""
REMOVAL_TIMEOUT_S = 90.0
"""The same at the very end of a run or zygote: an engine may need a minute to report that it does not
answer."""
FLOOD_FACTOR = 16
"""A program that prints this many times its `output_bytes` is ended with `output_limit`."""
READ_CHUNK_BYTES = 1 << 16
"""Bytes that are read from a pipe, or sent in one frame, at a time: the capacity of a Linux pipe."""
MAX_COLLECTED_BYTES = 32 << 20
"""Content of one collected file, and of all collected files of a run together."""
MAX_REQUEST_FILES = 20_000
"""Files of one request. Four times as many as a project may have, because packages and test data come on
top."""
MAX_CHANNEL_FRAME_BYTES = 64 << 20
"""One frame of a conversation; a longer length is treated as no frame, whoever sends it."""
FINISH_TIMEOUT_S = 5.0
"""For a program to end by itself after its stdin was closed."""
EXIT_GRACE_S = 2.0
"""From the end of a program's stdout until the program itself must have ended."""
SHM_BYTES = 16 << 20
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
"""Until a zygote must be ready. Generous, because a busy machine is not the zygote's fault."""
MAX_ZYGOTE_FRAME_BYTES = MIB
"""One frame from a zygote; its own relay sends at most 64 KiB."""
MAX_ZYGOTE_RUNS = 500
MAX_ZYGOTE_AGE_S = 900.0
"""A zygote is replaced after this many runs or seconds. 500 mixed runs left its memory and processes
unchanged."""
MAX_KILLED_RUNS_IN_A_ROW = 3
"""Runs in a row that had to be killed, after which a zygote is replaced."""
MAX_ZYGOTE_STDERR_BYTES = 8192
"""The end of a zygote's stderr that is kept, because it says why the zygote died."""
CHILD_KILL_TIMEOUT_S = 2.0
"""For a zygote to end a child; after that the zygote itself is killed."""
MAX_IDLE_ZYGOTES = 4
"""Zygotes that wait for work; each holds about 15 MB."""
MAX_UNQUEUED_EXPENSIVE_RUNS = 2
"""Runs on zygotes that are slow to start which do not wait for one another; most machines have two
processors."""
PRELOAD_MB = 2048
"""Memory of a preloading zygote until its first run: of each process, and of all where there is a control
group."""
MIN_PRELOAD_PROCESSES = 256
MAX_PRELOAD_PROCESSES = 4096
"""Bounds of the limit on processes while a project's environment is preloaded."""

# Pool of sandboxes.
ITEMS_IN_FLIGHT_PER_SANDBOX = 2
"""Items of `SandboxPool.map` in progress for each sandbox, so that a slow one does not leave the others
idle."""

# Self-test.
CANARY_TIMEOUT_S = 30.0
"""For a canary to answer. Generous, because a busy machine is not the sandbox's fault."""
SURVIVOR_TIMEOUT_S = 2.0
"""Until the processes that a canary left behind must be gone."""
CANARY_TOTAL_MEMORY_MB = 48
"""Above what the canary's own interpreter needs, and far below what it tries to take."""

# Bubblewrap.
VERSION_QUERY_TIMEOUT_S = 10.0
"""For `bwrap --version`."""

# Container engines.
ENGINE_TIMEOUT_S = 60
"""For one request to the engine."""
MAX_CONTAINER_PROCESSES = 4096
MAX_CONTAINER_OPEN_FILES = 1024
"""Limits of each container. An engine that runs as a root without CAP_SYS_RESOURCE can grant no more."""
CONTAINER_BASE_MB = 64
"""Memory that a zygote itself may hold, beside the program's."""
MAX_REFUSAL_BYTES = 1 << 16
"""The body of an engine's refusal that is read for its message."""

# E2B.
MACHINE_EXTRA_LIFETIME_S = 300
"""A machine's lifetime beyond its program's `wall_s`. The service ends it then, even if Suture is gone."""
MAX_UNSENT_BYTES = MIB
"""Input that may wait to be sent to a machine before the writer has to wait."""
TASK_CANCEL_INTERVAL_S = 0.1
"""Between two attempts to cancel a task that waits inside the SDK."""

# Unsafe subprocess.
REAPER_KILL_TIMEOUT_S = 2.0
"""For the reaper to end its program; after that the reaper itself is killed."""

# Discovering runtimes and checking paths.
INTERPRETER_QUERY_TIMEOUT_S = 30.0
"""For `python` on PATH to describe itself; a shim of pyenv or conda on a cold disk takes some seconds."""
MAX_NAMED_PACKAGES = 5
"""Missing packages that a message names."""
MAX_ENVIRONMENTS_PER_PATTERN = 24
"""Environments that one pattern finds; tox and nox make one for each version and factor."""
MAX_LISTED_ENVIRONMENTS = 2000
"""Entries that are read of a folder that holds the environments of many projects."""
MAX_PROJECT_FILE_BYTES = MIB
"""A configuration file of a project; a longer one is ignored."""
MAX_CHECKED_ENTRIES = 1_000_000
"""Files in one folder that is searched for sockets and devices; the project may have filled it."""

# Working copies.
MAX_CHANGED_FILES = 500
MAX_CHANGED_FILE_BYTES = 2 * MIB
MAX_CHANGED_BYTES = 16 * MIB
"""Files that one command may change, the size of each, and of all together."""
MAX_CHANGED_PATH_CHARS = 400
COPY_OVERHEAD_S = 20.0
"""Beyond the command's own time limit, for hashing the files before and after."""
COPY_REPORT_BYTES = 4096
"""Room in the output for the line that says how the command ended."""

# Fetching packages.
CLIENT_TIMEOUT_S = 300.0
"""For one call of pip, npm or go, with all downloads."""
MAX_CLIENT_MESSAGE_CHARS = 600
"""Of a client's output, what an error message quotes."""
SETTINGS_QUERY_TIMEOUT_S = 60.0
"""For a client to print its own settings."""
MAX_CERTIFICATE_BYTES = 4 << 20
MAX_NPMRC_BYTES = MIB
MAX_LOCK_BYTES = 16 * MIB
MAX_ADDED_SET_BYTES = 64 * MIB
"""The record of a cached set, which holds the text of a manifest and of a lock."""
MAX_REQUESTED_PACKAGES = 100
"""Packages that one manifest may ask for."""
MAX_REQUIREMENT_CHARS = 200
MAX_GO_ROUNDS = 5
"""Resolving rounds for Go: each adds what the modules of the previous one require in turn."""
MAX_INSTALLED_PACKAGES = 5000
"""Entries that are read of an environment's folder of packages."""
MAX_INDEX_PAGE_BYTES = MIB
INDEX_PAGE_TIMEOUT_S = 30.0
"""For a whole page of an index, however slowly it arrives."""
MAX_INDEX_PAGES = 3
MAX_FILE_HOSTS = 4
"""Servers on which an index may keep its files."""
MAX_REQUEST_HEAD_BYTES = 1 << 16
REQUEST_HEAD_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 30.0
IDLE_TIMEOUT_S = 120.0
"""The index proxy's limits: a request's head, a connection to the index, silence on an open connection."""
MAX_DOWNLOADED_BYTES = 4 << 30
"""From the index, for one call of a client."""
MAX_CONNECTIONS = 64
"""At the same time; npm opens 15 by default (`maxsockets`)."""
MAX_NAMED_SERVERS = 5
"""Refused or silent servers that a message names."""
MAX_CACHED_PACKAGES_BYTES = 8 << 30
PACKAGE_SET_IN_USE_S = 24 * 3600
"""A set may still be mounted in a run this long after its last use; no run takes so long."""
