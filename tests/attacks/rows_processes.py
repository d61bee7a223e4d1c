"""Rows 10-22: processes, memory, time, output, and other processes."""

from __future__ import annotations

import resource

from attacks.trials import (
    SHORT_TIMEOUT_S,
    AttackContext,
    Row,
    Trial,
    attack_request,
    check,
    describe_result,
    expect_end,
    expect_output,
    expect_refused,
    in_sequence,
)

__all__ = ["ROWS"]

SHORT_LIMITS = {"wall_s": SHORT_TIMEOUT_S, "cpu_s": 30}
FEW_PROCESSES = {"processes": 32}
MIB = 1 << 20
MAX_HOST_GROWTH_MIB = 64
"""How much a flood of output may cost the host: the stored output, and the content of pipes and buffers."""


def expect_flood_is_stopped(code: str) -> Trial:
    """Return a trial in which endless output must end the program without much memory on the host."""

    async def trial(context: AttackContext) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await context.sandbox.run(attack_request(context, code, limits={"cpu_s": 30}))
        check((result.status, result.truncated) == ("output_limit", True), describe_result(result))
        check(len(result.stdout) + len(result.stderr) < 3 << 16, f"{len(result.stdout)} bytes were kept")
        growth_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        check(growth_mib < MAX_HOST_GROWTH_MIB, f"the host grew by {growth_mib} MiB")

    return trial


ROWS = (
    Row(
        number=10,
        attempt="fork until the machine has no more processes",
        attack=expect_end(
            """
            import time
            made = 0
            try:
                while made < 500:
                    if os.fork() == 0: time.sleep(60); os._exit(0)
                    made += 1
            except OSError: print("stopped", 16 < made < 32)
            else: lost("no end")
            """,
            "ok",
            says="stopped True",
            limits=FEW_PROCESSES,
        ),
        twin=expect_output(
            """
            children = []
            for n in range(8):
                child = os.fork()
                if child == 0: os._exit(n)
                children.append(child)
            print([os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children] == list(range(8)))
            """,
            says="True",
            limits=FEW_PROCESSES,
        ),
    ),
    Row(
        number=11,
        attempt="fork in every child too, until the time is up",
        attack=expect_end(
            """
            while True:
                try: os.fork()
                except OSError: pass
            """,
            "timeout",
            limits={**SHORT_LIMITS, **FEW_PROCESSES},
        ),
        twin=expect_output(
            "import subprocess; subprocess.run(['/bin/sh', '-c', '(:) & (:) & wait']); print('fine')"
        ),
    ),
    Row(
        number=12,
        attempt="start threads without end",
        attack=expect_end(
            """
            import threading, time
            made = 0
            try:
                while made < 500:
                    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
                    made += 1
            except RuntimeError: print("stopped", 16 < made < 32)
            else: lost("no end")
            """,
            "ok",
            says="stopped True",
            limits={**FEW_PROCESSES, "memory_mb": 2048},
        ),
        twin=expect_output("""
            import threading
            threads = [threading.Thread(target=sum, args=([n],)) for n in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print("fine")
        """),
    ),
    Row(
        number=13,
        attempt="take all memory at once, or bit by bit",
        slow="what it takes must be filled first",
        attack=in_sequence(
            expect_end("held = bytearray(2 << 30); lost('2 GiB')", "memory", limits={"memory_mb": 256}),
            expect_end(
                "held = []\nwhile len(held) < 2048: held.append(b'x' * (1 << 20))\nlost('2 GiB')",
                "memory",
                limits={"memory_mb": 256},
            ),
        ),
        twin=expect_output("held = bytearray(100 << 20); print('fine')", limits={"memory_mb": 256}),
    ),
    Row(
        number=14,
        attempt="take all memory with many processes, each below its limit",
        limit="total_memory_mb",
        slow="as row 13, with eight processes",
        attack=expect_end(
            """
            import time
            for _ in range(8):
                if os.fork() == 0:
                    held = b"x" * (150 << 20)
                    time.sleep(600)
            time.sleep(600)
            """,
            "memory",
            limits={"memory_mb": 256, "total_memory_mb": 512},
        ),
        twin=expect_output(
            """
            import time
            for _ in range(3):
                if os.fork() == 0: held = b"x" * (20 << 20); time.sleep(0.3); os._exit(0)
            for _ in range(3): os.wait()
            print("fine")
            """,
            limits={"memory_mb": 256},
        ),
    ),
    Row(
        number=15,
        attempt="never end",
        attack=expect_end("while True: pass", "timeout", limits=SHORT_LIMITS),
        twin=expect_output("for _ in range(10_000): pass\nprint('fine')"),
    ),
    Row(
        number=16,
        attempt="wait for ever, also for words on stdin",
        attack=in_sequence(
            expect_end("import time; time.sleep(1000)", "timeout", limits=SHORT_LIMITS),
            expect_end("import sys; print('end' if sys.stdin.read() == '' else 'text')", "ok", says="end"),
        ),
        twin=expect_output("import sys; print(sys.stdin.read())", stdin=b"fine"),
    ),
    Row(
        number=17,
        attempt="ignore every signal; stop itself, so that no clock of its own runs",
        attack=in_sequence(
            expect_end(
                """
                import signal
                for number in range(1, 65):
                    try: signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError): pass
                while True: pass
                """,
                "timeout",
                limits=SHORT_LIMITS,
            ),
            expect_end("os.kill(os.getpid(), 19)", "timeout", limits=SHORT_LIMITS),
        ),
        twin=expect_output("""
            import signal
            signal.signal(signal.SIGUSR1, lambda *_: print("fine")); os.kill(os.getpid(), signal.SIGUSR1)
        """),
    ),
    Row(
        number=18,
        attempt="print without end, to either stream, and without a line's end",
        attack=in_sequence(
            expect_flood_is_stopped("while True: os.write(1, b'x\\n' * 32768)"),
            expect_flood_is_stopped("while True: os.write(2, b'x\\n' * 32768)"),
            expect_flood_is_stopped("line = b'x' * (1 << 20)\nfor _ in range(10_000): os.write(1, line)"),
        ),
        twin=expect_output("print('x' * 60_000)", says="x" * 60_000),
    ),
    Row(
        number=19,
        attempt="close its output and go on; leave the pipe to a grandchild",
        attack=in_sequence(
            expect_end(
                "import time; os.close(1); os.close(2); time.sleep(1000)", "timeout", limits=SHORT_LIMITS
            ),
            expect_end(
                """
                import time
                if os.fork() == 0: time.sleep(1000)
                print("leaving", flush=True); os._exit(0)
                """,
                "ok",
                says="leaving",
            ),
        ),
        twin=expect_output("print('fine', flush=True); os.close(1); os.close(2)"),
    ),
    Row(
        number=20,
        attempt="leave a daemon behind",
        attack=in_sequence(
            expect_end(
                """
                import time
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        for number in (0, 1, 2): os.close(number)
                        while True: time.sleep(1)
                    os._exit(0)
                time.sleep(0.1); print("left")
                """,
                "ok",
                says="left",
            ),
            expect_refused("""
                for name in os.listdir("/proc"):
                    if name.isdigit() and int(name) != os.getpid():
                        tried += 1
                        try: seen = open(f"/proc/{name}/comm").read().strip()
                        except OSError: continue
                        if seen == FACTS["marker"]: lost("a daemon of the last run", name)
                tried += 1
            """),
        ),
        twin=expect_output(
            "import subprocess; print(subprocess.run(['/bin/echo', 'fine'], stdout=-1, text=True).stdout)"
        ),
    ),
    Row(
        number=21,
        attempt="kill everything in reach, process 1, its parent; ten thousand signals to its parent",
        attack=in_sequence(
            expect_end(
                "import time; os.kill(-1, 9); time.sleep(1000)",
                "signalled",
                "failed",
                "timeout",
                "ok",
                limits=SHORT_LIMITS,
            ),
            expect_end(
                """
                import time
                for pid in (1, os.getppid(), FACTS["victim"]):
                    for number in (9, 15, 19, 2):
                        try: os.kill(pid, number)
                        except OSError: pass
                print("sent", flush=True)
                """,
                "ok",
                "failed",
                "signalled",
                "timeout",
                limits=SHORT_LIMITS,
            ),
            expect_end(
                """
                for _ in range(10_000):
                    try: os.kill(os.getppid(), 10)
                    except OSError: pass
                """,
                "ok",
                "failed",
                "signalled",
                "timeout",
                limits=SHORT_LIMITS,
            ),
        ),
        twin=expect_output(
            """
            import time
            child = os.fork()
            if child == 0: time.sleep(1000)
            os.kill(child, 9); print(os.WTERMSIG(os.waitpid(child, 0)[1]))
        """,
            says="9",
        ),
    ),
    Row(
        number=22,
        attempt="look into other processes",
        attack=expect_refused("""
            import ctypes
            buffer = ctypes.create_string_buffer(64)
            vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
            here = (ctypes.c_void_p * 2)(id(buffer), 64)
            for pid in {1, 2, 3, os.getppid(), FACTS["victim"]} - {os.getpid()}:
                attempt(f"ptrace {pid}", call, "ptrace", 16, pid, 0, 0)
                attempt(f"seize {pid}", call, "ptrace", 0x4206, pid, 0, 0)
                attempt(f"read {pid}", call, "process_vm_readv", pid, vector, 1, here, 1, 0)
                attempt(f"write {pid}", call, "process_vm_writev", pid, vector, 1, here, 1, 0)
                attempt(f"mem {pid}", os.open, f"/proc/{pid}/mem", os.O_RDWR)
                attempt(f"fd {pid}", lambda: call("pidfd_getfd", os.pidfd_open(pid), 0, 0))
                for number in range(8):
                    attempt(f"fd {pid}/{number}", os.open, f"/proc/{pid}/fd/{number}", os.O_WRONLY)
        """),
        twin=expect_output("print('fine' if read('/proc/self/maps') else '')"),
    ),
)
