"""What a program behind the wall is refused, and why.

Whatever is not named here is allowed: the wall itself hides files, processes and networks. This is about what
a wall of namespaces leaves open, and about parts of the kernel where nobody behind the wall has business.
"""

from __future__ import annotations

import errno


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for line in text.splitlines() for word in line.partition("#")[0].split())


NAMESPACE_CALLS = _words("""
    chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root setns umount2
    unshare
""")
"""New namespaces and mounts. The zygote needs them; no program does, and they reach much of the kernel."""

DENIED = _words("""
    # Looking into other processes, and taking their memory from them.
    kcmp pidfd_getfd process_madvise process_mrelease process_vm_readv process_vm_writev ptrace
    # Large, and the ground of many known escapes.
    bpf io_uring_enter io_uring_register io_uring_setup perf_event_open userfaultfd vmsplice
    # Keyrings: namespaces hide them in part only.
    add_key keyctl request_key
    # The machine itself.
    acct create_module delete_module finit_module get_kernel_syms init_module kexec_file_load kexec_load
    lookup_dcookie nfsservctl query_module quotactl quotactl_fd reboot swapoff swapon syslog vhangup
    _sysctl sysfs uselib ustat adjtimex clock_adjtime clock_settime settimeofday
    ioperm iopl modify_ldt personality
    # Past the mounts: a file by its number, and events of whole file systems.
    fanotify_init fanotify_mark open_by_handle_at
    # Memory and messages that no limit of a program counts.
    get_mempolicy mbind memfd_secret migrate_pages move_pages set_mempolicy set_mempolicy_home_node
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink
    msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmget
""")
"""Refused with EPERM, whatever the arguments."""

MEMORY_FILE_CALLS = ("memfd_create",)
"""Files in memory that lie in no folder. Where no process has mapped them, only a control group sees them, so
without one they are absent, as on an old kernel; programs then take `/dev/shm`, which is counted."""

WATCH_CALLS = ("inotify_init", "inotify_init1")
"""Absent: the kernel counts watchers for a user of the host, in all namespaces together, and gives each 128.
Programs that watch files then look at them again and again, or say that they cannot."""

FLUSH_CALLS = ("sync", "syncfs")
"""Answered as done, and not done: they write out every disk of the host, and nothing in here lies on one."""

LIMIT_CALL = "prlimit64"
"""Another process's limits may be read and not set: a supervisor without open files or time is a dead one."""

SCHEDULING_CALLS = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
"""Refused on the first process, which supervises: it could come too late to its looks at memory and clock.
On others they are allowed, because threads are named by their numbers there."""
SUPERVISOR = 1

PRIORITY_CALLS = {"setpriority": 0, "ioprio_set": 1}
"""Refused on the first process, and on groups and users, which it belongs to; so each call's word for
a single process (`PRIO_PROCESS`, `IOPRIO_WHO_PROCESS`)."""

ABSENT = errno.ENOSYS
"""What calls answer that this list does not know. `clone3` does too: its flags are behind a pointer where no
filter can look, and every libc then takes `clone`."""

NAMESPACE_FLAGS = 0x7E020000
"""`CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}` of `linux/sched.h`; `clone` has no room for `NEWTIME`."""

SOCKET_CALLS = ("socket", "socketpair")
FAMILIES = (1, 2, 10)
"""`AF_UNIX`, `AF_INET`, `AF_INET6`: all there is to reach is the loopback of the wall's own namespace."""
WRONG_FAMILY = errno.EAFNOSUPPORT
"""As a kernel without that family. AF_VSOCK leads to the hypervisor's side: it is in no network namespace."""

IOCTLS = (0x5412, 0x541C)
"""`TIOCSTI` and `TIOCLINUX`: typing into the terminal that Suture was started from."""
