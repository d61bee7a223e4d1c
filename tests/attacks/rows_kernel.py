"""Rows 26-32 and 48: parts of the kernel that namespaces alone do not protect."""

from __future__ import annotations

import os
import shutil

from attacks.trials import (
    AttackContext,
    Row,
    Trial,
    TrialSkipped,
    attack_request,
    check,
    describe_result,
    expect_output,
    expect_refused,
    in_sequence,
)
from suture.sandbox import Mount
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.bubblewrap.root_staging import is_reachable

__all__ = ["ROWS"]

MACHINE_CODE = {"int 0x80": "b814000000cd80c3", "x32": "b8270000400f05c3"}
"""`getpid` as i386 and as x32, on x86_64."""


def expect_foreign_call_fails(code: str) -> Trial:
    """Return a trial in which a system call of another architecture must end the program or fail."""

    async def trial(context: AttackContext) -> None:
        if os.uname().machine != "x86_64":
            raise TrialSkipped("this machine has no second set of system calls")
        result = await context.sandbox.run(
            attack_request(
                context,
                f"""
                import ctypes, mmap
                page = mmap.mmap(-1, 4096, prot=7)
                page.write(bytes.fromhex("{code}"))
                made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
                if made > 0: lost("a foreign call", made)
                print("refused", made)
                """,
            )
        )
        check(b"BREACH" not in result.stdout, describe_result(result))
        check(
            result.status == "signalled" or result.stdout.startswith(b"refused -38"), describe_result(result)
        )

    return trial


def expect_refused_with_setuid_programs(code: str) -> Trial:
    """Do as `expect_refused`, with a bubblewrap and a setuid `id`, which runs as root if root created it."""

    async def trial(context: AttackContext) -> None:
        folder = context.bait.folder / "setuid"
        folder.mkdir()
        try:
            shutil.copy("/usr/bin/id", folder / "id")
            (folder / "id").chmod(0o4755)
            mounts = [Mount(source=str(folder), target="/opt/setuid")]
            bubblewraps = find_bubblewraps()
            if bubblewraps and is_reachable(bubblewraps[0]):
                mounts.append(Mount(source=os.path.realpath(bubblewraps[0]), target="/opt/bwrap"))
            await expect_refused(code, mounts=tuple(mounts))(context)
        finally:
            shutil.rmtree(folder)

    return trial


ROWS = (
    Row(
        number=26,
        attempt="make or enter namespaces",
        attack=expect_refused("""
            import ctypes
            NEW = {"user": 1 << 28, "mount": 1 << 17, "pid": 1 << 29, "net": 1 << 30, "ipc": 1 << 27}
            def clone(flags):
                words = (ctypes.c_uint64 * 8)(); words[0] = flags; words[4] = 17
                pid = call("clone3", words, 64)
                if pid == 0: os._exit(0)
                return pid
            def old_clone(flags):
                pid = call("clone", flags | 17, 0, 0, 0, 0)
                if pid == 0: os._exit(0)
                return pid
            for name, flag in NEW.items():
                attempt(f"unshare {name}", call, "unshare", flag)
                attempt(f"clone {name}", old_clone, flag)
                attempt(f"clone3 {name}", clone, flag)
                attempt(f"both {name}", call, "unshare", flag | NEW["user"])
            for name in ("user", "mnt", "net", "pid"):
                for pid in (1, "self"):
                    path = f"/proc/{pid}/ns/{name}"
                    attempt(f"setns {path}", lambda: call("setns", os.open(path, os.O_RDONLY), 0))
        """),
        twin=expect_output(
            """
            child = os.fork()
            if child == 0: os._exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
            says="7",
        ),
    ),
    Row(
        number=27,
        attempt="mount, unmount, change the root",
        attack=expect_refused("""
            import ctypes
            text = ctypes.c_char_p
            for target in (b"/tmp", b"/box", b"/usr", b"/proc"):
                attempt(f"tmpfs {target}", call, "mount", text(b"none"), text(target), text(b"tmpfs"), 0, 0)
                attempt(f"bind {target}", call, "mount", text(b"/"), text(target), 0, 4096, 0)
                attempt(f"writable {target}", call, "mount", 0, text(target), 0, 32 | 4096, 0)
                attempt(f"umount {target}", call, "umount2", text(target), 2)
            attempt("proc", call, "mount", text(b"proc"), text(b"/tmp"), text(b"proc"), 0, 0)
            attempt("fsopen", call, "fsopen", text(b"tmpfs"), 0)
            attempt("open_tree", call, "open_tree", -100, text(b"/"), 1)
            attempt("pivot_root", call, "pivot_root", text(b"/tmp"), text(b"/tmp"))
            attempt("chroot", os.chroot, "/tmp")
        """),
        twin=expect_output("os.mkdir('/tmp/d'); os.chdir('/tmp/d'); print(os.getcwd())", says="/tmp/d"),
    ),
    Row(
        number=28,
        attempt="get root from setuid programs or from a sandbox of its own",
        slow="it starts five programs, and waits up to three seconds for each",
        attack=expect_refused_with_setuid_programs("""
            import subprocess
            def run(*words):
                try: done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=3)
                except subprocess.TimeoutExpired: raise OSError from None
                if done.stdout.strip() != b"0": raise OSError
            for words in (("su", "-c", "id -u"), ("sudo", "-n", "id", "-u"), ("unshare", "-r", "id", "-u"),
                          ("/opt/setuid/id", "-u"),
                          ("/opt/bwrap", "--unshare-user", "--uid", "0", "--bind", "/", "/", "id", "-u")):
                attempt(words[0], run, *words)
            if "NoNewPrivs:\\t1" not in open("/proc/self/status").read(): lost("new privileges")
        """),
        twin=expect_output(
            "import subprocess; print(subprocess.run(['id', '-u'], stdout=-1, text=True).stdout)",
            says="65534",
        ),
    ),
    Row(
        number=29,
        attempt="become another user, take capabilities, make a device",
        attack=expect_refused("""
            import ctypes
            for user in (0, 1, 1000, 65533):
                attempt(f"setuid {user}", os.setuid, user)
                attempt(f"setgid {user}", os.setgid, user)
                attempt(f"setresuid {user}", os.setresuid, user, user, user)
                attempt(f"setgroups {user}", os.setgroups, [user])
            for path in ("/tmp/disk", "/box/disk"):
                attempt("mknod", os.mknod, path, 0o60600, os.makedev(8, 0))
                attempt("mknod mem", os.mknod, path + "c", 0o20600, os.makedev(1, 1))
            libc = ctypes.CDLL(None, use_errno=True)
            header, words = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)
            tried += 1
            if libc.capset(header, words) == 0: lost("capset")
            for line in open("/proc/self/status"):
                if line.startswith(("CapEff", "CapPrm", "CapAmb")) and int(line.split()[1], 16): lost(line)
            if 0 in os.getresuid() + os.getresgid(): lost("is root")
        """),
        twin=expect_output("os.setuid(os.getuid()); os.setgid(os.getgid()); print('fine')"),
    ),
    Row(
        number=30,
        attempt="reach parts of the kernel that no program needs",
        attack=expect_refused("""
            for name, *words in (
                ("keyctl", 0, -3, 0), ("add_key", 0, 0, 0, 0, -3), ("request_key", 0, 0, 0, -3),
                ("bpf", 0, 0, 0),
                ("perf_event_open", 0, 0, 0, 0, 0), ("userfaultfd", 0), ("io_uring_setup", 1, 0),
                ("open_by_handle_at", -100, 0, 0), ("kexec_load", 0, 0, 0, 0),
                ("reboot", 0xfee1dead, 672274793, 0, 0),
                ("swapon", 0, 0), ("swapoff", 0), ("syslog", 3, 0, 0), ("acct", 0), ("init_module", 0, 0, 0),
                ("delete_module", 0, 0), ("quotactl", 0, 0, 0, 0), ("fanotify_init", 0, 0),
                ("memfd_secret", 0),
                ("personality", 0x0040000), ("vhangup",), ("kcmp", 1, 1, 0, 0, 0), ("shmget", 0, 8192, 0o1600),
                ("msgget", 0, 0o1600), ("mq_open", 0, 66, 0o600, 0)):
                attempt(name, call, name, *words)
        """),
        twin=expect_output("""
            import mmap, select, tempfile
            with select.epoll() as poll: pass
            page = mmap.mmap(-1, 4096); page.write(b"fine"); open("/dev/shm/x", "w"); print(page[:4].decode())
        """),
    ),
    Row(
        number=31,
        attempt="make another machine's system calls, past the filter",
        attack=in_sequence(*(expect_foreign_call_fails(code) for code in MACHINE_CODE.values())),
        twin=expect_output("import ctypes; print(ctypes.CDLL(None).getpid() == os.getpid())", says="True"),
    ),
    Row(
        number=32,
        attempt="type into the terminal that started us",
        attack=expect_refused("""
            import ctypes
            def push(number): call("ioctl", number, 0x5412, ctypes.c_char_p(b"x"))
            for number in (0, 1, 2):
                attempt(f"TIOCSTI {number}", push, number)
                attempt(f"with high bits {number}", call, "ioctl", number, 0x700005412, ctypes.c_char_p(b"x"))
                attempt(f"TIOCLINUX {number}", call, "ioctl", number, 0x541C, ctypes.c_char_p(b"\\3"))
            for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0"):
                attempt(path, os.open, path, os.O_RDWR)
        """),
        twin=expect_output("import sys; print(sys.stdin.isatty(), sys.stdout.isatty())", says="False False"),
    ),
    Row(
        number=48,
        attempt="set the clock, be more important than others, hold memory",
        attack=expect_refused("""
            import ctypes, time
            attempt("clock_settime", time.clock_settime, time.CLOCK_REALTIME, 0.0)
            attempt("settimeofday", call, "settimeofday", (ctypes.c_long * 2)(0, 0), 0)
            attempt("adjtimex", call, "clock_adjtime", 0, (ctypes.c_long * 64)(1))
            attempt("fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50))
            attempt("nice", os.nice, -20)
            attempt("priority of another", os.setpriority, os.PRIO_PROCESS, FACTS["victim"], 19)
            libc = ctypes.CDLL(None, use_errno=True)
            tried += 1
            if libc.mlockall(3) == 0: lost("mlockall")
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of itself only
        """),
        twin=expect_output(
            "import time; os.nice(1); time.sleep(0.01); print('fine' if time.time() > 1e9 else '')"
        ),
    ),
)
