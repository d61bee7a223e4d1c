"""Rows 1-9: the host's files and secrets, and limits on disk space."""

from __future__ import annotations

from attacks.trials import (
    AttackContext,
    Row,
    attack_request,
    check,
    describe_result,
    expect_end,
    expect_output,
    expect_refused,
    expect_refused_twice,
    in_sequence,
)

__all__ = ["ROWS"]

SMALL_DISK = {"disk_mb": 8}
FILL_PROGRAM = """
import errno
written = 0
try:
    for number in range(200):
        with open(f"{FOLDER}/{number}", "wb") as file:
            file.write(bytes(1 << 20))
        written += 1
    lost("no end", written)
except OSError as fault:
    print("stopped", errno.errorcode[fault.errno], written <= MOST)
    try: file.close()
    except OSError: pass
    for number in range(written + 1): os.unlink(f"{FOLDER}/{number}")
"""


def fill_folder(folder: str, max_mib: int) -> str:
    """Return code that fills a folder, which must not take more than `max_mib` MiB."""
    return f"FOLDER, MOST = {folder!r}, {max_mib}\n{FILL_PROGRAM}"


async def create_too_many_files(context: AttackContext) -> None:
    """Create up to 200,000 files, which the limit on inodes must stop."""
    code = """
        import errno
        made = 0
        try:
            for number in range(200_000):
                os.close(os.open(f"f{number}", os.O_WRONLY | os.O_CREAT))
                made += 1
        except OSError as fault:
            print(errno.errorcode[fault.errno], made <= 60_000)
        else:
            lost("as many files as it likes", made)
    """
    result = await context.sandbox.run(attack_request(context, code))
    # A sandbox may count files itself instead of letting the kernel refuse them; then it ends the program.
    check(result.status == "memory" or result.stdout == b"ENOSPC True\n", describe_result(result))


ROWS = (
    Row(
        number=1,
        attempt="read the host's files: keys, credentials, the agent's settings, /etc/shadow, all there is",
        slow="it opens every file that it can see",
        attack=expect_refused("""
            for path in (*FACTS["secrets"], "/etc/shadow", "/proc/kcore", "/dev/mem", "/dev/sda", "/dev/vda"):
                attempt(path, read, path)
            attempt("list", os.listdir, FACTS["folder"])
            attempt("through /proc", os.listdir, "/proc/1/root" + FACTS["folder"])
            for folder, folders, names in os.walk("/"):
                if folder == "/": folders[:] = set(folders) - {"usr", "proc", "sys"}
                if not folder.startswith(FACTS["prefix"]):
                    for path in (os.path.join(folder, name) for name in names):
                        try: held = os.path.isfile(path) and FACTS["token"].encode() in read(path)
                        except OSError: continue
                        if held and path != "/box/facts.json": lost(path)
        """),
        twin=expect_output(
            "print(open('given').read(), os.path.exists('/usr/bin/env'))",
            files={"given": b"fine"},
            says="fine True",
        ),
    ),
    Row(
        number=2,
        attempt="find a key of the launcher's environment",
        attack=expect_refused_twice("""
            import glob
            if FACTS["token"] in str(dict(os.environ)): lost("os.environ")
            for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
                tried += 1
                try: text = open(path, "rb").read()
                except OSError: continue
                if FACTS["token"].encode() in text: lost(path)
        """),
        twin=expect_output("print(os.environ['GIVEN'])", env={"GIVEN": "fine"}),
    ),
    Row(
        number=3,
        attempt="use a descriptor that the launcher had open",
        attack=expect_refused_twice("""
            import stat
            for number in range(1024):
                tried += 1
                try: facts = os.fstat(number)
                except OSError: continue
                if number > 2: lost(number, facts)
                elif not (stat.S_ISFIFO(facts.st_mode) or stat.S_ISSOCK(facts.st_mode)): lost(number, facts)
        """),
        twin=expect_output(
            "files = [open(f'f{n}', 'w') for n in range(32)]; print(min(f.fileno() for f in files))", says="3"
        ),
    ),
    Row(
        number=4,
        attempt="write outside its own folders",
        attack=expect_refused("""
            name = FACTS["token"]
            folders = ["/", "/usr", "/usr/bin", "/usr/lib", "/dev", "/etc", "/proc", "/opt", "/mnt", "/var",
                       FACTS["folder"], FACTS["prefix"] + "/lib", os.path.dirname(os.__file__)]
            for folder in folders:
                attempt(folder, write, f"{folder}/{name}")
                attempt(folder, os.mkdir, f"{folder}/{name}")
            for path in ("/etc/passwd", "/etc/ld.so.cache", "/usr/bin/env", os.__file__, *FACTS["secrets"]):
                attempt(path, os.open, path, os.O_WRONLY)
                attempt(path, os.chmod, path, 0o777)
                attempt(path, os.unlink, path)
        """),
        twin=expect_output(
            "for f in ('/box', '/tmp', '/dev/shm', os.environ['TMPDIR']): write(f + '/x')\nprint('fine')"
        ),
    ),
    Row(
        number=5,
        attempt="change a setting of the kernel",
        attack=expect_refused("""
            for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
                         "/sys/kernel/uevent_helper", "/sys/power/state", "/proc/1/oom_score_adj"):
                attempt(path, os.open, path, os.O_WRONLY)
            for root in ("/proc/sys", "/sys"):
                for folder, _, names in os.walk(root):
                    for name in names:
                        attempt(f"{folder}/{name}", os.open, f"{folder}/{name}", os.O_WRONLY)
        """),
        twin=expect_output(
            "print('fine' if read('/proc/self/stat').startswith(b'%d ' % os.getpid()) else 'who')"
        ),
    ),
    Row(
        number=6,
        attempt="fill its working folder",
        attack=expect_end(fill_folder("/box", 8), "ok", says="stopped ENOSPC True", limits=SMALL_DISK),
        twin=expect_output("open('x', 'wb').write(bytes(4 << 20)); print('fine')", limits=SMALL_DISK),
    ),
    Row(
        number=7,
        attempt="fill the other writable folders",
        attack=in_sequence(
            expect_end(fill_folder("/tmp", 8), "ok", says="stopped ENOSPC True", limits=SMALL_DISK),
            expect_end(fill_folder("/dev/shm", 16), "ok", says="stopped ENOSPC True", limits=SMALL_DISK),
            expect_refused("attempt('message queue', write, '/dev/mqueue/x')"),
        ),
        twin=expect_output(
            """
            import tempfile
            with tempfile.NamedTemporaryFile() as file: file.write(bytes(4 << 20))
            open("/dev/shm/x", "wb").write(bytes(4 << 20)); print("fine")
        """,
            limits=SMALL_DISK,
        ),
    ),
    Row(
        number=8,
        attempt="make 200,000 empty files",
        limit="inodes",
        slow="200,000 files take their time",
        attack=create_too_many_files,
        twin=expect_output("for n in range(2000): write(f'f{n}')\nprint(len(os.listdir('.')))", says="2001"),
    ),
    Row(
        number=9,
        attempt="make a file of 1 TiB",
        attack=expect_refused("""
            write("huge")
            attempt("truncate", os.truncate, "huge", 1 << 40)
            attempt("fallocate", lambda: os.posix_fallocate(os.open("huge", os.O_WRONLY), 0, 1 << 40))
            def seek():
                with open("sparse", "wb") as file: file.seek(1 << 40); file.write(b"x")
            attempt("seek", seek)
        """),
        twin=expect_output("os.truncate(os.open('x', os.O_RDWR | os.O_CREAT), 1 << 20); print('fine')"),
    ),
)
