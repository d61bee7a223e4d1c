"""The system calls that a program inside the sandbox is refused, and why; and the numbers of the named calls.

Every call up to `NEWEST_CALL` that is not named here is allowed, because namespaces already hide files, processes
and networks. The rules cover what namespaces leave open, and parts of the kernel that no program in the sandbox
needs. Newer calls are answered as unimplemented.
"""

from __future__ import annotations

import errno


def _split_words(text: str) -> tuple[str, ...]:
    """Return the words of a rule file, without comments."""
    return tuple(word for line in text.splitlines() for word in line.partition("#")[0].split())


NAMESPACE_CALLS = _split_words("""
    chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root setns umount2
    unshare
""")
"""New namespaces and mounts. The zygote needs them. No program does, and they expose much of the kernel."""

DENIED_CALLS = _split_words("""
    # Reading other processes, and taking their memory.
    kcmp pidfd_getfd process_madvise process_mrelease process_vm_readv process_vm_writev ptrace
    # Large, and the origin of many known escapes.
    bpf io_uring_enter io_uring_register io_uring_setup perf_event_open userfaultfd vmsplice
    # Keyrings: namespaces hide them only in part.
    add_key keyctl request_key
    # The machine itself.
    acct create_module delete_module finit_module get_kernel_syms init_module kexec_file_load kexec_load
    lookup_dcookie nfsservctl query_module quotactl quotactl_fd reboot swapoff swapon syslog vhangup
    _sysctl sysfs uselib ustat adjtimex clock_adjtime clock_settime settimeofday
    ioperm iopl modify_ldt personality
    # Access around the mounts: a file by its handle, and events of whole file systems.
    fanotify_init fanotify_mark open_by_handle_at
    # Memory and messages that no limit of a program counts.
    get_mempolicy mbind memfd_secret migrate_pages move_pages set_mempolicy set_mempolicy_home_node
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink
    msgctl msgget msgrcv msgsnd semctl semget semop semtimedop
""")
"""Calls that are refused with EPERM, whatever the arguments."""

SHARED_MEMORY_CALL, MAX_SHARED_SEGMENT_BYTES = "shmget", 4096
"""Refused for larger segments. PostgreSQL locks its data folder with a segment of 56 bytes, and does not start without.
Linux allows 4,096 segments in an IPC namespace (`SHMMNI`), and each run has its own: 16 MiB that no limit may count."""

MEMORY_FILE_CALLS = ("memfd_create",)
"""Files in memory that are in no folder. If no process has mapped them, only a control group counts them.
Without a control group they answer as on an old kernel, and programs fall back to `/dev/shm`, which is
counted."""

WATCH_CALLS = ("inotify_init", "inotify_init1")
"""Answered as unimplemented: the kernel counts inotify instances per host user, over all namespaces, and
allows 128. Programs that watch files then poll, or report that they cannot watch. A zygote's supervisor uses one
to see which paths appear (`zygote/inside/kernel.py`)."""

FLUSH_CALLS = ("sync", "syncfs")
"""Answered with success, but not made: they write out every disk of the host, and nothing in the sandbox is
on one."""

LIMIT_CALL = "prlimit64"
"""Limits of another process may be read but not set. Otherwise a program could set its supervisor's limits
on open files or CPU time to 0, and the supervisor would die."""

SCHEDULING_CALLS = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
"""Refused on the first process, which supervises: slowed down, it would check memory and the clock too late.
Allowed on all others: a program may schedule its own threads, and a filter cannot tell the id of a thread from
that of another process."""
SUPERVISOR_PID = 1
"""The first process of a run's namespace."""

PRIORITY_CALLS = {"setpriority": 0, "ioprio_set": 1}
"""Refused on the first process, and on groups and users, which include it. The value is each call's constant
for a single process (`PRIO_PROCESS`, `IOPRIO_WHO_PROCESS`)."""

UNIMPLEMENTED = errno.ENOSYS
"""The answer to calls above `NEWEST_CALL`. `clone3` gets it too: its flags are behind a pointer, which a filter
cannot follow, and every libc then uses `clone`."""

NAMESPACE_FLAGS = 0x7E020000
"""`CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}` of `linux/sched.h`. `clone` cannot express `CLONE_NEWTIME`."""

SOCKET_CALLS = ("socket", "socketpair")
"""Calls whose first argument is a family of addresses."""
ALLOWED_FAMILIES = (1, 2, 10)
"""`AF_UNIX`, `AF_INET`, `AF_INET6`: with these only the loopback of the sandbox's own network namespace can
be reached."""
FAMILY_ERROR = errno.EAFNOSUPPORT
"""As a kernel without that family answers. AF_VSOCK leads to the hypervisor and belongs to no network
namespace."""

DENIED_IOCTLS = (0x5412, 0x541C)
"""`TIOCSTI` and `TIOCLINUX`: they type into the terminal that Suture was started from."""


NEWEST_CALL = 450
"""The newest call that the rules were checked against, on each machine: `set_mempolicy_home_node` of Linux
6.1. The rules say nothing about newer calls, so these are answered with `UNIMPLEMENTED`, as on an older kernel."""


def _parse_table(text: str) -> dict[str, int]:
    pairs = (word.split("=") for word in text.split())
    return {name: int(number) for name, number in pairs}


# The numbers are part of the kernel's ABI and never change. They come from `asm/unistd_64.h`, and for aarch64
# from `asm-generic/unistd.h`. A call that a machine does not have is not in its table.
X86_64 = _parse_table("""
_sysctl=156 acct=163 add_key=248 adjtimex=159 bpf=321 chroot=161 clock_adjtime=305 clock_settime=227
clone3=435 clone=56 create_module=174 delete_module=176 fanotify_init=300 fanotify_mark=301 finit_module=313
fsconfig=431 fsmount=432 fsopen=430 fspick=433 get_kernel_syms=177 get_mempolicy=239 init_module=175
inotify_init1=294 inotify_init=253 io_uring_enter=426 io_uring_register=427 io_uring_setup=425 ioctl=16
ioperm=173 iopl=172 ioprio_set=251 kcmp=312 kexec_file_load=320 kexec_load=246 keyctl=250 lookup_dcookie=212
mbind=237 memfd_create=319 memfd_secret=447 migrate_pages=256 modify_ldt=154 mount=165 mount_setattr=442
move_mount=429 move_pages=279 mq_getsetattr=245 mq_notify=244 mq_open=240 mq_timedreceive=243
mq_timedsend=242 mq_unlink=241 msgctl=71 msgget=68 msgrcv=70 msgsnd=69 nfsservctl=180 open_by_handle_at=304
open_tree=428 perf_event_open=298 personality=135 pidfd_getfd=438 pivot_root=155 prlimit64=302
process_madvise=440 process_mrelease=448 process_vm_readv=310 process_vm_writev=311 ptrace=101
query_module=178 quotactl=179 quotactl_fd=443 reboot=169 request_key=249 sched_setaffinity=203
sched_setattr=314 sched_setparam=142 sched_setscheduler=144 semctl=66 semget=64 semop=65 semtimedop=220
set_mempolicy=238 set_mempolicy_home_node=450 setns=308 setpriority=141 settimeofday=164 shmget=29 socket=41
socketpair=53 swapoff=168 swapon=167 sync=162 syncfs=306 sysfs=139 syslog=103 umount2=166 unshare=272
uselib=134 userfaultfd=323 ustat=136 vhangup=153 vmsplice=278
""")

AARCH64 = _parse_table("""
acct=89 add_key=217 adjtimex=171 bpf=280 chroot=51 clock_adjtime=266 clock_settime=112 clone3=435 clone=220
delete_module=106 fanotify_init=262 fanotify_mark=263 finit_module=273 fsconfig=431 fsmount=432 fsopen=430
fspick=433 get_mempolicy=236 init_module=105 inotify_init1=26 io_uring_enter=426 io_uring_register=427
io_uring_setup=425 ioctl=29 ioprio_set=30 kcmp=272 kexec_file_load=294 kexec_load=104 keyctl=219
lookup_dcookie=18 mbind=235 memfd_create=279 memfd_secret=447 migrate_pages=238 mount=40 mount_setattr=442
move_mount=429 move_pages=239 mq_getsetattr=185 mq_notify=184 mq_open=180 mq_timedreceive=183
mq_timedsend=182 mq_unlink=181 msgctl=187 msgget=186 msgrcv=188 msgsnd=189 nfsservctl=42
open_by_handle_at=265 open_tree=428 perf_event_open=241 personality=92 pidfd_getfd=438 pivot_root=41
prlimit64=261 process_madvise=440 process_mrelease=448 process_vm_readv=270 process_vm_writev=271 ptrace=117
quotactl=60 quotactl_fd=443 reboot=142 request_key=218 sched_setaffinity=122 sched_setattr=274
sched_setparam=118 sched_setscheduler=119 semctl=191 semget=190 semop=193 semtimedop=192 set_mempolicy=237
set_mempolicy_home_node=450 setns=268 setpriority=140 settimeofday=170 shmget=194 socket=198 socketpair=199
swapoff=225 swapon=224 sync=81 syncfs=267 syslog=116 umount2=39 unshare=97 userfaultfd=282 vhangup=58
vmsplice=75
""")
