"""How programs start, what they are given, and how they end."""

from __future__ import annotations

import os

from sandbox.conformance.behaviour import (
    SandboxUnderTest,
    code_request,
    collect_behaviours,
    demand,
    describe,
    program_request,
)
from suture.sandbox.contract import BOX, RunRequest


async def exit_code_zero_is_ok(subject: SandboxUnderTest) -> None:
    """Exit code 0 is `ok`."""
    for request in (code_request("pass"), program_request("pass"), RunRequest(argv=("/bin/true",))):
        result = await subject.run(request)
        demand((result.status, result.exit_code, result.signal) == ("ok", 0, None), describe(result))
        demand((result.stdout, result.stderr, result.truncated) == (b"", b"", False), describe(result))


async def other_exit_codes_are_kept(subject: SandboxUnderTest) -> None:
    """Any other exit code is `failed`, and comes back as it was."""
    for number in (1, 3, 127, 137, 255):
        result = await subject.run(program_request(f"raise SystemExit({number})"))
        demand((result.status, result.exit_code, result.signal) == ("failed", number, None), describe(result))


async def signals_are_reported(subject: SandboxUnderTest) -> None:
    """A signal is distinguished from an exit code."""
    for number in (6, 9, 11, 15):
        result = await subject.run(program_request(f"import os; os.kill(os.getpid(), {number})"))
        demand(
            (result.status, result.exit_code, result.signal) == ("signalled", None, number), describe(result)
        )


async def signals_to_python_code_are_reported(subject: SandboxUnderTest) -> None:
    """A signal that ends Python code is reported too."""
    result = await subject.run(code_request("import os; os.kill(os.getpid(), 9)"))
    demand((result.status, result.exit_code, result.signal) == ("signalled", None, 9), describe(result))


async def missing_program_is_127(subject: SandboxUnderTest) -> None:
    """A missing program is exit code 127, with its name on stderr."""
    result = await subject.run(RunRequest(argv=("no-such-program", "x")))
    demand((result.status, result.exit_code) == ("failed", 127), describe(result))
    demand(b"no-such-program" in result.stderr, describe(result))


async def non_executable_is_126(subject: SandboxUnderTest) -> None:
    """A file that is not executable is exit code 126."""
    result = await subject.run(RunRequest(argv=("./text",), files={"text": b"no program"}))
    demand((result.status, result.exit_code) == ("failed", 126), describe(result))


async def exceptions_show_a_clean_traceback(subject: SandboxUnderTest) -> None:
    """An exception of Python code is exit code 1, with a traceback without Suture's frames."""
    result = await subject.run(code_request("def f(x): return 1 / x\nprint('before')\nf(0)"))
    demand((result.status, result.exit_code, result.stdout) == ("failed", 1, b"before\n"), describe(result))
    lines = result.stderr.decode().splitlines()
    demand(
        lines[:2] == ["Traceback (most recent call last):", '  File "<string>", line 3, in <module>'], lines
    )
    demand(lines[-1] == "ZeroDivisionError: division by zero", lines)


async def syntax_errors_fail(subject: SandboxUnderTest) -> None:
    """A syntax error of Python code is exit code 1."""
    result = await subject.run(code_request("print('never'"))
    demand((result.status, result.exit_code, result.stdout) == ("failed", 1, b""), describe(result))
    demand(b"SyntaxError" in result.stderr, describe(result))


async def code_runs_as_in_an_interpreter(subject: SandboxUnderTest) -> None:
    """Python code sees the names, arguments and streams that `python -I -S -B -c` gives."""
    text = """
        import sys, __main__
        print(__name__, sys.argv, sys.flags.isolated, sys.flags.no_site, sys.stdin.isatty())
        print(__main__.__dict__ is globals(), sys.getrecursionlimit(), sys.stdout.encoding)
        print([name for name in sys.modules if "suture" in name])
    """
    code_output = (await subject.run(code_request(text))).stdout
    program_output = (await subject.run(program_request(text))).stdout
    demand(code_output and code_output == program_output, (code_output, program_output))


async def output_is_kept_byte_for_byte(subject: SandboxUnderTest) -> None:
    """Output comes back byte for byte, stdout and stderr separately."""
    raw = bytes(range(256))
    result = await subject.run(code_request(f"import os; os.write(1, {raw!r}); os.write(2, {raw[::-1]!r})"))
    demand((result.stdout, result.stderr, result.truncated) == (raw, raw[::-1], False), describe(result))


async def stdin_arrives(subject: SandboxUnderTest) -> None:
    """The request's stdin arrives whole, and ends."""
    for create_request in (code_request, program_request):
        echo = create_request(
            "import sys; sys.stdout.write(sys.stdin.read().upper())", stdin=b"abc" * 100_000
        )
        demand((await subject.run(echo)).stdout == b"ABC" * 100_000, "the text did not come back")


async def stdin_is_empty(subject: SandboxUnderTest) -> None:
    """Without stdin in the request, a program reads its end immediately."""
    result = await subject.run(program_request("import sys; print(repr(sys.stdin.read()))"))
    demand(result.stdout == b"''\n", describe(result))


async def unread_stdin_is_harmless(subject: SandboxUnderTest) -> None:
    """Stdin that the program does not read is harmless."""
    result = await subject.run(program_request("pass", stdin=b"x" * (4 << 20)))
    demand(result.status == "ok", "it mattered")


async def arguments_are_not_interpreted(subject: SandboxUnderTest) -> None:
    """Arguments arrive unchanged: no shell interprets them."""
    words = ("a b", "", "$HOME", "'\"", "*", "ü\n", "--", "-x")
    request = program_request("import sys; print(ascii(sys.argv[1:]))")
    result = await subject.run(RunRequest(argv=(*request.argv, *words), limits=request.limits))
    demand(result.stdout.decode().strip() == ascii(list(words)), describe(result))


async def environment_is_that_of_the_request(subject: SandboxUnderTest) -> None:
    """A program's environment is what the request names, and `PATH`, `HOME`, `TMPDIR` and `LANG`."""
    for create_request in (code_request, program_request):
        text = "import os; print(sorted(os.environ), os.environ['MINE'], os.environ['HOME'])"
        result = await subject.run(create_request(text, env={"MINE": "a=b", "HOME": "/tmp"}))
        demand(result.stdout == b"['HOME', 'LANG', 'MINE', 'PATH', 'TMPDIR'] a=b /tmp\n", describe(result))


async def host_environment_is_hidden(subject: SandboxUnderTest) -> None:
    """A program cannot read the host's environment."""
    os.environ["SUTURE_CONFORMANCE"] = "canary-of-the-host"
    try:
        result = await subject.run(
            code_request("""
                import glob, os
                print(dict(os.environ))
                for name in glob.glob("/proc/[0-9]*/environ"):
                    try: print(open(name, "rb").read())
                    except OSError: pass
            """)
        )
    finally:
        del os.environ["SUTURE_CONFORMANCE"]
    demand(result.status == "ok", describe(result))
    demand(b"canary-of-the-host" not in result.stdout, "a variable of the host's is there")


async def working_directory_is_writable(subject: SandboxUnderTest) -> None:
    """A program starts in `BOX`; there, in `TMPDIR` and in `/dev/shm` it may write."""
    text = """
        import os
        for folder in (".", os.environ["TMPDIR"], "/dev/shm"): open(folder + "/x", "w").write("x")
        print(os.getcwd())
    """
    for create_request in (code_request, program_request):
        result = await subject.run(create_request(text))
        demand(result.stdout.decode() == f"{BOX}\n", describe(result))


async def programs_have_no_privileges(subject: SandboxUnderTest) -> None:
    """A program is not root, and cannot become it."""
    text = """
        import os
        try: os.setuid(0)
        except OSError: pass
        print(0 in os.getresuid(), open("/proc/self/status").read().count("CapEff:\\t0000000000000000"))
    """
    result = await subject.run(code_request(text))
    demand(result.stdout == b"False 1\n", describe(result))


async def a_shell_exists(subject: SandboxUnderTest) -> None:
    """A POSIX shell exists as `/bin/sh`."""
    result = await subject.run(RunRequest(argv=("/bin/sh", "-c", "(exit 3) & wait $!; echo $? | cat")))
    demand((result.status, result.stdout) == ("ok", b"3\n"), describe(result))


async def wall_time_is_reported(subject: SandboxUnderTest) -> None:
    """A result says how long the program ran."""
    result = await subject.run(code_request("import time; time.sleep(0.2)"))
    demand(0.1 < result.wall_s < 60, f"{result.wall_s} s")


async def cpu_time_excludes_waiting(subject: SandboxUnderTest) -> None:
    """A result that says how long the program and what it started computed does not count waiting."""
    text = "import os, time\nif os.fork(): os.wait()\nelse:\n    while time.process_time() < 0.3: pass\n"
    busy_s = (await subject.run(code_request(text))).cpu_s
    idle_s = (await subject.run(code_request("import time; time.sleep(1)"))).cpu_s
    demand(busy_s is None or 0.3 <= busy_s < 30, f"{busy_s} s of computing")
    demand(idle_s is None or idle_s < 0.9, f"{idle_s} s of sleeping")


BEHAVIOURS = collect_behaviours(globals())
