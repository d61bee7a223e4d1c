"""What a program behind the wall is refused, and why.

Whatever is not named here is allowed: the wall itself hides files, processes and networks. This is about what
a wall of namespaces leaves open, and about parts of the kernel where nobody behind the wall has business.
"""

from __future__ import annotations

import errno

__all__ = [
    "ABSENT",
    "DENIED",
    "FAMILIES",
    "IOCTLS",
    "MEMORY_FILE_CALLS",
    "NAMESPACE_CALLS",
    "NAMESPACE_FLAGS",
    "SOCKET_CALLS",
    "WRONG_FAMILY",
]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for line in text.splitlines() for word in line.partition("#")[0].split())


NAMESPACE_CALLS = _words("""
    chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root setns umount2
    unshare
""")
"""New namespaces and mounts. The zygote needs them; no program does, and they reach much of the kernel."""

DENIED = _words("""
    # Looking into other processes.
    kcmp pidfd_getfd process_vm_readv process_vm_writev ptrace
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
    msgctl msgget msgrcv msgsnd shmget
""")
"""Refused with EPERM, whatever the arguments."""

MEMORY_FILE_CALLS = ("memfd_create",)
"""Files in memory that lie in no folder. Where no process has mapped them, only a control group sees them, so
without one they are absent, as on an old kernel; programs then take `/dev/shm`, which is counted."""

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
