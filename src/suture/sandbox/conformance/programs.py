"""How programs start, what they are given, and how they end."""

from __future__ import annotations

import os

from suture.sandbox.conformance.behaviour import (
    SandboxUnderTest,
    as_program_request,
    behaviours_of,
    code,
    demand,
    shown,
)
from suture.sandbox.contract import BOX, RunRequest


async def a_good_end(subject: SandboxUnderTest) -> None:
    """Exit code 0 is `ok`."""
    for request in (code("pass"), as_program_request("pass"), RunRequest(argv=("/bin/true",))):
        result = await subject.run(request)
        demand((result.status, result.exit_code, result.signal) == ("ok", 0, None), shown(result))
        demand((result.stdout, result.stderr, result.truncated) == (b"", b"", False), shown(result))


async def other_exit_codes(subject: SandboxUnderTest) -> None:
    """Any other exit code is `failed`, and comes back as it was."""
    for number in (1, 3, 127, 137, 255):
        result = await subject.run(as_program_request(f"raise SystemExit({number})"))
        demand((result.status, result.exit_code, result.signal) == ("failed", number, None), shown(result))


async def signals(subject: SandboxUnderTest) -> None:
    """A signal is told from an exit code."""
    for number in (6, 9, 11, 15):
        result = await subject.run(as_program_request(f"import os; os.kill(os.getpid(), {number})"))
        demand((result.status, result.exit_code, result.signal) == ("signalled", None, number), shown(result))


async def signals_of_code(subject: SandboxUnderTest) -> None:
    """A signal that ends Python code is told too."""
    result = await subject.run(code("import os; os.kill(os.getpid(), 9)"))
    demand((result.status, result.exit_code, result.signal) == ("signalled", None, 9), shown(result))


async def no_such_program(subject: SandboxUnderTest) -> None:
    """A program that is not there is exit code 127, with its name on stderr."""
    result = await subject.run(RunRequest(argv=("no-such-program", "x")))
    demand((result.status, result.exit_code) == ("failed", 127), shown(result))
    demand(b"no-such-program" in result.stderr, shown(result))


async def no_program(subject: SandboxUnderTest) -> None:
    """A file that is no program is exit code 126."""
    result = await subject.run(RunRequest(argv=("./text",), files={"text": b"no program"}))
    demand((result.status, result.exit_code) == ("failed", 126), shown(result))


async def code_that_raises(subject: SandboxUnderTest) -> None:
    """An exception of Python code is exit code 1, with a traceback on stderr that shows nothing of ours."""
    result = await subject.run(code("def f(x): return 1 / x\nprint('before')\nf(0)"))
    demand((result.status, result.exit_code, result.stdout) == ("failed", 1, b"before\n"), shown(result))
    lines = result.stderr.decode().splitlines()
    demand(
        lines[:2] == ["Traceback (most recent call last):", '  File "<string>", line 3, in <module>'], lines
    )
    demand(lines[-1] == "ZeroDivisionError: division by zero", lines)


async def code_that_does_not_parse(subject: SandboxUnderTest) -> None:
    """A syntax error of Python code is exit code 1."""
    result = await subject.run(code("print('never'"))
    demand((result.status, result.exit_code, result.stdout) == ("failed", 1, b""), shown(result))
    demand(b"SyntaxError" in result.stderr, shown(result))


async def code_as_an_interpreter_would(subject: SandboxUnderTest) -> None:
    """Python code sees the names, arguments and streams that `python -I -S -B -c` gives."""
    text = """
        import sys, __main__
        print(__name__, sys.argv, sys.flags.isolated, sys.flags.no_site, sys.stdin.isatty())
        print(__main__.__dict__ is globals(), sys.getrecursionlimit(), sys.stdout.encoding)
        print([name for name in sys.modules if "suture" in name])
    """
    seen = [(await subject.run(make(text))).stdout for make in (code, as_program_request)]
    demand(seen[0] == seen[1] and seen[0], seen)


async def output_is_bytes(subject: SandboxUnderTest) -> None:
    """What is printed comes back byte for byte, stdout and stderr apart."""
    raw = bytes(range(256))
    result = await subject.run(code(f"import os; os.write(1, {raw!r}); os.write(2, {raw[::-1]!r})"))
    demand((result.stdout, result.stderr, result.truncated) == (raw, raw[::-1], False), shown(result))


async def stdin_arrives(subject: SandboxUnderTest) -> None:
    """The request's stdin arrives whole, and ends."""
    for make in (code, as_program_request):
        echo = make("import sys; sys.stdout.write(sys.stdin.read().upper())", stdin=b"abc" * 100_000)
        demand((await subject.run(echo)).stdout == b"ABC" * 100_000, "the text did not come back")


async def stdin_is_empty(subject: SandboxUnderTest) -> None:
    """Without a stdin of the request's, a program reads its end at once."""
    result = await subject.run(as_program_request("import sys; print(repr(sys.stdin.read()))"))
    demand(result.stdout == b"''\n", shown(result))


async def stdin_unread(subject: SandboxUnderTest) -> None:
    """Stdin that nobody reads does no harm."""
    demand(
        (await subject.run(as_program_request("pass", stdin=b"x" * (4 << 20)))).status == "ok", "it mattered"
    )


async def arguments(subject: SandboxUnderTest) -> None:
    """Arguments arrive as they were: no shell reads them."""
    words = ("a b", "", "$HOME", "'\"", "*", "ü\n", "--", "-x")
    request = as_program_request("import sys; print(ascii(sys.argv[1:]))")
    result = await subject.run(RunRequest(argv=(*request.argv, *words), limits=request.limits))
    demand(result.stdout.decode().strip() == ascii(list(words)), shown(result))


async def the_environment(subject: SandboxUnderTest) -> None:
    """A program's environment is what the request names, and `PATH`, `HOME`, `TMPDIR` and `LANG`."""
    for make in (code, as_program_request):
        text = "import os; print(sorted(os.environ), os.environ['MINE'], os.environ['HOME'])"
        result = await subject.run(make(text, env={"MINE": "a=b", "HOME": "/tmp"}))
        demand(result.stdout == b"['HOME', 'LANG', 'MINE', 'PATH', 'TMPDIR'] a=b /tmp\n", shown(result))


async def the_hosts_environment(subject: SandboxUnderTest) -> None:
    """Nothing of the host's environment is within a program's reach."""
    os.environ["SUTURE_CONFORMANCE"] = "canary-of-the-host"
    try:
        result = await subject.run(
            code("""
                import glob, os
                print(dict(os.environ))
                for name in glob.glob("/proc/[0-9]*/environ"):
                    try: print(open(name, "rb").read())
                    except OSError: pass
            """)
        )
    finally:
        del os.environ["SUTURE_CONFORMANCE"]
    demand(result.status == "ok", shown(result))
    demand(b"canary-of-the-host" not in result.stdout, "a variable of the host's is there")


async def the_working_directory(subject: SandboxUnderTest) -> None:
    """A program starts in `BOX`; there, in `TMPDIR` and in `/dev/shm` it may write."""
    text = """
        import os
        for folder in (".", os.environ["TMPDIR"], "/dev/shm"): open(folder + "/x", "w").write("x")
        print(os.getcwd())
    """
    for make in (code, as_program_request):
        result = await subject.run(make(text))
        demand(result.stdout.decode() == f"{BOX}\n", shown(result))


async def no_privileges(subject: SandboxUnderTest) -> None:
    """A program is not root, and cannot become it."""
    text = """
        import os
        try: os.setuid(0)
        except OSError: pass
        print(0 in os.getresuid(), open("/proc/self/status").read().count("CapEff:\\t0000000000000000"))
    """
    result = await subject.run(code(text))
    demand(result.stdout == b"False 1\n", shown(result))


async def a_shell(subject: SandboxUnderTest) -> None:
    """A POSIX shell is there as `/bin/sh`."""
    result = await subject.run(RunRequest(argv=("/bin/sh", "-c", "(exit 3) & wait $!; echo $? | cat")))
    demand((result.status, result.stdout) == ("ok", b"3\n"), shown(result))


async def the_time_it_took(subject: SandboxUnderTest) -> None:
    """A result says how long the program ran."""
    result = await subject.run(code("import time; time.sleep(0.2)"))
    demand(0.1 < result.wall_s < 60, f"{result.wall_s} s")


async def the_cpu_time_it_took(subject: SandboxUnderTest) -> None:
    """A result that says how long the program and what it started computed does not count waiting."""
    text = "import os, time\nif os.fork(): os.wait()\nelse:\n    while time.process_time() < 0.3: pass\n"
    busy = (await subject.run(code(text))).cpu_s
    idle = (await subject.run(code("import time; time.sleep(1)"))).cpu_s
    demand(busy is None or 0.3 <= busy < 30, f"{busy} s of computing")
    demand(idle is None or idle < 0.9, f"{idle} s of sleeping")


BEHAVIOURS = behaviours_of(globals())
