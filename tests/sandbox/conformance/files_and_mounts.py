"""Files, mounts and modules: what goes in, what comes out, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox.conformance.behaviour import (
    SandboxUnderTest,
    code_request,
    collect_behaviours,
    demand,
    demand_refusal,
    describe,
    get_interpreter,
    program_request,
    shared_folder,
)
from suture.errors import UsageError
from suture.sandbox.contract import BOX, LIBRARY, Mount, ProgramLimits, RunRequest

MALFORMED_PATHS = ("", "/", "/etc/x", "..", "../x", "a/../x", "a/..", "./x", "a//b", "a/", "a\0b", "\ud800")
TOO_LONG_PATHS = ("n" * 256, "d/" * 2001 + "f")
"""A name longer than Linux allows (`NAME_MAX`), and a path longer than a request may have."""
BAD_REQUESTS: tuple[dict[str, Any], ...] = (
    {"argv": ()},
    {"argv": ("",)},
    {"argv": ("a", "b\0c")},
    {"argv": ("a", "x" * (128 << 10))},
    {"env": {"A": "b\0"}},
    {"env": {"": "x"}},
    {"env": {"A=B": "x"}},
    {"python": "pass"},
    {"modules": {"m.py": b""}},
    {"files": {"a": b"", "a/b": b""}},
)
"""Fields in addition to `argv=("/bin/true",)`."""
LIBRARY_FILES = {
    "conforming/__init__.py": b"",
    "conforming/first.py": b"from conforming.inner.second import VALUE\nseen = [VALUE]\n",
    "conforming/inner/second.py": b"from __future__ import annotations\nVALUE = 42\n",
}
"""Modules that import one another, one of them in a package without an `__init__.py`."""


async def request_files_are_written(subject: SandboxUnderTest) -> None:
    """A request's files lie below `BOX`, in folders that are made for them."""
    files = {"a/b/c.txt": b"in", "empty": b"", "raw": bytes(range(256))}
    text = """
        import os
        print(open("a/b/c.txt").read(), os.path.getsize("empty"), sum(open("raw", "rb").read()))
    """
    for create_request in (code_request, program_request):
        result = await subject.run(create_request(text, files=files))
        demand(result.stdout == b"in 0 32640\n", describe(result))


async def unusual_names_work(subject: SandboxUnderTest) -> None:
    """Every name that Linux accepts works: any letters, line breaks, invalid UTF-8, case variants."""
    names = ("ümläut", "a\nb", "\udcff", "-rf", "a", "A", "...", " ")
    files = {name: str(number).encode() for number, name in enumerate(names)}
    result = await subject.run(
        code_request(
            "import os; print(sorted(open(name).read() for name in os.listdir('.')))",
            files=files,
            collect=names,
        )
    )
    demand(
        result.stdout.decode().strip() == str([str(number) for number in range(len(names))]), describe(result)
    )
    demand(result.files == files, sorted(result.files))


async def many_files_work(subject: SandboxUnderTest) -> None:
    """Three thousand files work."""
    files = {f"d{number % 40}/f{number}.py": b"x = 1\n" for number in range(3000)}
    text = "import os; print(sum(len(names) for _, _, names in os.walk('.')))"
    demand((await subject.run(code_request(text, files=files))).stdout == b"3000\n", "some are not there")


async def scripts_are_executable(subject: SandboxUnderTest) -> None:
    """A file that begins with `#!` can be run."""
    result = await subject.run(RunRequest(argv=("./script",), files={"script": b"#!/bin/sh\necho ran\n"}))
    demand(result.stdout == b"ran\n", describe(result))


async def collected_files_come_back(subject: SandboxUnderTest) -> None:
    """Collected files come back as the program left them; missing ones do not."""
    text = """
        import os
        open("given", "a").write("!")
        os.mkdir("new"); open("new/made", "wb").write(bytes(range(256)) * 1000); open("not-asked", "w")
    """
    collect = ("given", "new/made", "untouched", "missing", "new", "given/below")
    for create_request in (code_request, program_request):
        result = await subject.run(
            create_request(text, files={"given": b"in", "untouched": b"u"}, collect=collect)
        )
        expected = {"given": b"in!", "new/made": bytes(range(256)) * 1000, "untouched": b"u"}
        demand(result.files == expected, describe(result))


async def only_regular_files_come_back(subject: SandboxUnderTest) -> None:
    """Nothing but regular files comes back, and no link is followed on the way to one."""
    text = """
        import os
        os.symlink("/etc/passwd", "link"); os.symlink("/etc", "folder"); os.mkfifo("fifo")
        os.mkdir("real"); os.symlink("real", "alias"); open("real/file", "w").write("x")
    """
    collect = ("link", "folder/passwd", "fifo", "alias/file", "real/file", "real")
    result = await subject.run(code_request(text, collect=collect))
    demand((result.status, dict(result.files)) == ("ok", {"real/file": b"x"}), describe(result))


async def large_files_stay(subject: SandboxUnderTest) -> None:
    """More than 32 MiB does not come back."""
    text = "open('huge', 'wb').truncate(40 << 20); open('small', 'w').write('x')"
    result = await subject.run(code_request(text, collect=("huge", "small")))
    demand(dict(result.files) == {"small": b"x"}, describe(result))


async def files_come_back_after_a_failure(subject: SandboxUnderTest) -> None:
    """Files also come back from a program that fails."""
    result = await subject.run(code_request("open('x', 'w').write('x'); raise SystemExit(3)", collect=("x",)))
    demand((result.exit_code, dict(result.files)) == (3, {"x": b"x"}), describe(result))


async def changes_of_watched_files_are_reported(subject: SandboxUnderTest) -> None:
    """A watched file that the program changes is reported, also if it is restored, moved or behind a new folder."""
    text = """
        import os, shutil, time
        time.sleep(0.1)  # the kernel may count the time of a change in ticks
        for name in ("restored", "written"):
            before = os.stat(name)
            open(name, "r+").write("other")
            if name == "restored": open(name, "r+").write("start"); os.utime(name, ns=(0, before.st_mtime_ns))
        os.remove("removed")
        os.rename("moved", "away"); os.rename("away", "moved")
        os.remove("linked"); os.symlink("restored", "linked")
        os.chmod("mode", 0o777)
        os.rename("a", "b"); shutil.copytree("b", "a")
        open("read").read(); open("unwatched", "w").write("x")
    """
    changed = ("a/copied", "linked", "mode", "moved", "removed", "restored", "written")
    files = dict.fromkeys((*changed, "read", "unwatched", "apart/untouched"), b"start")
    watched = tuple(path for path in files if path != "unwatched")
    for create_request in (code_request, program_request):
        result = await subject.run(create_request(text, files=files, watched=watched))
        demand(result.changed == {"a", *changed}, describe(result))


async def new_paths_beside_watched_files_are_reported(subject: SandboxUnderTest) -> None:
    """Paths that are new in the folders above watched files are reported, and those in new folders there."""
    text = """
        import os
        os.mkdir("tests/new"); os.symlink("/", "tests/link"); os.mkdir("src/more")
        for path in ("tests/new/file", "tests/caf\\udce9", "src/module", "src/more/other", "src/deep/below"):
            open(path, "w").close()
        os.chmod("tests/new", 0)
    """
    files = {"tests/watched": b"", "src/file": b"", "src/deep/file": b""}
    expected = {"tests/new", "tests/new/file", "tests/caf\udce9", "tests/link"}
    expected |= {"src/module", "src/more", "src/more/other"}
    for create_request in (code_request, program_request):
        result = await subject.run(create_request(text, files=files, watched=("tests/watched",)))
        demand(result.created == expected and not result.changed, describe(result))
        demand(
            (await subject.run(create_request(text, files=files))).created == frozenset(),
            "nothing is watched",
        )


async def a_flood_of_new_paths_is_a_change(subject: SandboxUnderTest) -> None:
    """More than 10,000 new paths beside watched files are a change of the folder."""
    text = "for number in range(10_500): open(f'{number}', 'w').close()"
    result = await subject.run(code_request(text, files={"watched": b""}, watched=("watched",)))
    demand(result.changed == {"."} and not result.created, describe(result))


async def bad_paths_are_refused(subject: SandboxUnderTest) -> None:
    """A path that is absolute, leads upwards, is empty or too long is a `UsageError`, in or out."""
    for path in (*MALFORMED_PATHS, *TOO_LONG_PATHS):
        await demand_refusal(subject, RunRequest(argv=("/bin/true",), files={path: b""}))
        await demand_refusal(subject, RunRequest(argv=("/bin/true",), collect=(path,)))
        await demand_refusal(subject, RunRequest(argv=("/bin/true",), watched=(path,)))


async def bad_requests_are_refused(subject: SandboxUnderTest) -> None:
    """An invalid request is a `UsageError`: no program, two programs, a NUL byte, too long an argument."""
    for fields in BAD_REQUESTS:
        await demand_refusal(subject, RunRequest(**{"argv": ("/bin/true",), **fields}))


async def bad_conversations_are_refused(subject: SandboxUnderTest) -> None:
    """A conversation is refused for the same reasons as a run."""
    try:
        async with subject.sandbox.open(RunRequest(argv=("/bin/true",), files={"../x": b""})):
            pass
    except UsageError:
        return
    demand(False, "it started")


async def mounts_are_shown(subject: SandboxUnderTest) -> None:
    """A mount shows a host folder at its target; the program cannot write to it."""
    text = """
        print(open("/opt/shown/text").read())
        for action in (lambda: open("/opt/shown/planted", "w"), lambda: open("/opt/shown/text", "a")):
            try: action(); print("WROTE")
            except OSError: print("refused")
    """
    with shared_folder() as folder:
        mounts = (Mount(source=str(folder), target="/opt/shown"),)
        for create_request in (code_request, program_request):
            result = await subject.run(create_request(text, mounts=mounts))
            demand(result.stdout == b"hello\nrefused\nrefused\n", describe(result))
        demand((folder / "text").read_text() == "hello", "the host's file has changed")


async def mounts_are_not_kept(subject: SandboxUnderTest) -> None:
    """A mount of one request is not visible in the next."""
    with shared_folder() as folder:
        await subject.run(code_request("pass", mounts=(Mount(source=str(folder), target="/opt/shown"),)))
        result = await subject.run(code_request("import os; print(os.path.exists('/opt/shown/text'))"))
    demand(result.stdout == b"False\n", describe(result))


async def bad_mounts_are_refused(subject: SandboxUnderTest) -> None:
    """A mount over a folder of the sandbox, of a missing folder, or below another mount is a `UsageError`."""
    for target in ("relative", "/", BOX, f"{BOX}/x", "/tmp", "/proc/x", "/etc", "/dev/shm", "/a/../b", "/a/"):
        await demand_refusal(subject, code_request("pass", mounts=(Mount(source="/usr/lib", target=target),)))
    await demand_refusal(
        subject, code_request("pass", mounts=(Mount(source="/no/such/thing", target="/opt/x"),))
    )
    with shared_folder() as folder:
        outer = Mount(source=str(folder), target="/opt/tree")
        inner = Mount(source="/usr/lib", target="/opt/tree/inner")
        await demand_refusal(subject, code_request("pass", mounts=(outer, inner)))


async def modules_are_importable(subject: SandboxUnderTest) -> None:
    """Python code imports the request's modules, and gets fresh ones each time."""
    text = "from conforming.first import seen; seen.append(len(seen)); print(seen)"
    for _ in range(2):
        result = await subject.run(code_request(text, modules=LIBRARY_FILES))
        demand((result.stdout, result.stderr) == (b"[42, 1]\n", b""), describe(result))


async def modules_are_not_kept(subject: SandboxUnderTest) -> None:
    """One request's modules are not visible in the next, and lie only below `LIBRARY`."""
    await subject.run(code_request("import conforming", modules=LIBRARY_FILES))
    result = await subject.run(code_request("import conforming"))
    demand((result.status, b"ModuleNotFoundError" in result.stderr) == ("failed", True), describe(result))
    result = await subject.run(code_request("import os; print(os.listdir('.'))", modules=LIBRARY_FILES))
    demand(result.stdout in (b"[]\n", f"['{LIBRARY}']\n".encode()), describe(result))


async def preloading_is_invisible(subject: SandboxUnderTest) -> None:
    """A program behaves the same with preloaded code as without."""
    text = (
        b"import os, sys; print(__name__, __file__, sys.argv, sys.path[0], sorted(os.environ), os.getcwd())"
    )
    plain = RunRequest(
        argv=(get_interpreter(), "-m", "program", "a b"),
        files={"program.py": text},
        limits=ProgramLimits(wall_s=60),
    )
    expected = await subject.run(plain)
    demand(expected.status == "ok", describe(expected))
    for _ in range(2):
        result = await subject.run(replace(plain, preload="import statistics"))
        demand((result.status, result.stdout) == (expected.status, expected.stdout), describe(result))


async def failed_preloading_is_harmless(subject: SandboxUnderTest) -> None:
    """Preloaded code that fails does not affect the program."""
    request = RunRequest(
        argv=(get_interpreter(), "-m", "program"),
        files={"program.py": b"print('ran')"},
        preload="raise SystemExit('never ready')",
        limits=ProgramLimits(wall_s=60),
    )
    for _ in range(2):
        result = await subject.run(request)
        demand((result.status, result.stdout) == ("ok", b"ran\n"), describe(result))


BEHAVIOURS = collect_behaviours(
    globals(), mounts=("mounts_are_shown", "mounts_are_not_kept", "bad_mounts_are_refused")
)
