"""Rows 52-54: resources shared with the supervisor and with the user of the host, and planted environments."""

from __future__ import annotations

from attacks.planted_environments import try_planted_environments
from attacks.trials import Row, expect_output, expect_refused

__all__ = ["ROWS"]

ROWS = (
    Row(
        number=52,
        attempt="change the limits or the priority of the supervisor",
        attack=expect_refused("""
            import ctypes, resource
            KINDS = {"cpu": 0, "fsize": 1, "data": 2, "stack": 3, "nproc": 6, "nofile": 7, "as": 9}
            for name, kind in KINDS.items():
                for pid in {1, os.getppid()}:
                    attempt(f"limit {name} {pid}", resource.prlimit, pid, kind, (0, 0))
                    attempt(f"high bits {name} {pid}", call, "prlimit64", pid | 1 << 40, kind,
                            (ctypes.c_uint64 * 2)(0, 0), 0)
            attempt("affinity", os.sched_setaffinity, 1, os.sched_getaffinity(0))
            for policy in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE):
                attempt(f"policy {policy}", os.sched_setscheduler, 1, policy, os.sched_param(0))
            attempt("param", os.sched_setparam, 1, os.sched_param(0))
            attempt("attributes", call, "sched_setattr", 1, (ctypes.c_uint32 * 14)(56, 3), 0)
            for which, who in ((0, 1), (1, 0), (1, os.getpgid(0)), (2, 0), (2, os.getuid())):
                attempt(f"priority {which} {who}", os.setpriority, which, who, 19)
                attempt(f"disk {which} {who}", call, "ioprio_set", which + 1, who, 3 << 13)
            for name in ("process_madvise", "process_mrelease"):
                attempt(name, lambda: call(name, os.pidfd_open(1), 0, 0, 21, 0))
        """),
        twin=expect_output("""
            import resource, threading
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
            os.nice(1)
            os.setpriority(os.PRIO_PROCESS, os.getpid(), 19)  # whatever we were started with
            worker = threading.Thread(target=lambda: os.sched_setaffinity(
                threading.get_native_id(), os.sched_getaffinity(0)))
            worker.start(); worker.join()
            print("fine")
        """),
    ),
    Row(
        number=53,
        attempt="use up what the kernel counts for a user of the host",
        attack=expect_refused("""
            import ctypes, signal
            libc = ctypes.CDLL(None, use_errno=True)
            def made(name, *words):
                if getattr(libc, name)(*words) == -1: raise OSError(ctypes.get_errno(), name)
            attempt("watches", made, "inotify_init1", 0)
            attempt("semaphores", made, "semget", 0, 32000, 0o1600)
            attempt("queue", call, "mq_open", ctypes.c_char_p(b"q"), 66, 0o600, 0)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
            tried += 1
            waiting = 0
            while waiting < 9000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0: waiting += 1
            if waiting > 2000: lost("signals", waiting)
        """),
        twin=expect_output("""
            import multiprocessing, select, signal, threading
            os.sync(); os.stat("facts.json")
            lock = multiprocessing.get_context("fork").Lock()
            with lock, select.epoll(): pass
            rung = threading.Event()
            signal.signal(signal.SIGALRM, lambda *_: rung.set()); signal.setitimer(signal.ITIMER_REAL, 0.01)
            print("fine" if rung.wait(10) else "")
        """),
    ),
    Row(
        number=54,
        attempt="get the targets of links in a project's own environment mounted",
        attack=try_planted_environments,
        twin=expect_output("print(os.path.exists('/usr/bin'))", says="True"),
    ),
)
