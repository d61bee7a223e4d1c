"""How git is started, and the one place where that happens.

A repository that nobody has read must not run anything here, nor reach out, nor fill the memory. So git gets
plumbing commands alone, every program that a configuration can name is switched off by name, there is no
network, no terminal and no prompt, and its time, its memory and its output have limits.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError, StorageError, UsageError

PLUMBING = frozenset(
    (
        *(
            "apply",
            "cat-file",
            "check-ref-format",
            "checkout-index",
            "clone",
            "commit-tree",
            "config",
            "hash-object",
            "ls-files",
            "ls-tree",
        ),
        *(
            "merge-base",
            "merge-file",
            "read-tree",
            "rev-list",
            "rev-parse",
            "update-index",
            "update-ref",
            "var",
            "worktree",
        ),
        "write-tree",
    )
)
"""What we may call. Commands for people (`log`, `status`, `add`) start what a configuration names: a `log`
that may show signatures runs `gpg.program`. `clone` and `checkout-index` are for `cloning`, which has git
read no configuration at all."""
OFF = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.alternateRefsCommand="),
    *("-c", "core.askPass="),
    *("-c", "core.editor=false"),
    *("-c", "core.gitProxy="),
    *("-c", "core.pager=cat"),
    *("-c", "core.sshCommand=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "tag.gpgSign=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "gpg.program=false"),
    *("-c", "diff.external="),
    *("-c", "credential.helper="),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
PROGRAM = re.compile(
    r"(?:filter|diff|difftool|merge|mergetool|gpg|credential|remote|trailer|pager|alias|browser|man|sequence"
    r"|interactive|uploadpack|tar|guitool|sendemail|submodule)\..*(?<=\.)(?:clean|smudge|process|command|cmd|textconv"
    r"|driver|program|defaultkeycommand|helper|vcs|uploadpack|receivepack|proxy|editor|difffilter"
    r"|packobjectshook)",
    re.DOTALL,
)
"""Settings whose value is a program, among those that can have any name in the middle."""
KEPT = ("HOME", "XDG_CONFIG_HOME", "EMAIL", "TMPDIR")
KEPT_PREFIXES = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Who the user is; a GIT_DIR or GIT_INDEX_FILE of the caller would lead elsewhere."""
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # Unlike `protocol.allow` it is above what a repository says of a single protocol (`protocol.ext.allow`).
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
TIMEOUT_S = 30.0
"""Seconds of one call of git: a large repository on a cold disk."""
MOST_BYTES = 256 * 2**20
"""Of one answer: a tree of a few hundred bytes can unfold into any number of files."""
MOST_MEMORY_BYTES = 4 * 2**30
"""Of private memory; packs are mapped, and count not."""


@dataclass(frozen=True, kw_only=True)
class GitLimits:
    """What one call may take.

    Attributes:
        seconds: Of wall-clock time; the usual where not given.
        file_bytes: The length of each file that it writes; any where not given.
    """

    seconds: float | None = None
    file_bytes: int | None = None


USUAL = GitLimits()


def build_safe_environment(root: Path) -> dict[str, str]:
    """Variables that switch off every program which a configuration names under a name of its own.

    Git filters files whenever it looks whether they changed, which writing the index does too.

    Raises:
        StorageError: The configuration cannot be read.
    """
    listed = run_git(root, "config", "-z", "--name-only", "--list").split(b"\0")[:-1]
    names = sorted({name for name in map(os.fsdecode, listed) if "." in name})
    off = [(name, "") for name in names if PROGRAM.fullmatch(name)]
    off += [(name, "false") for name in names if name.startswith("filter.") and name.endswith(".required")]
    # Since git 2.54 a configuration names hooks too, and `core.hooksPath` is not about those.
    hooks = {name.rpartition(".")[0] for name in names if name.startswith("hook.")}
    off += [(f"{hook}.enabled", "false") for hook in sorted(hooks) if hook != "hook"]
    pairs = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(off)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(off)}
    return {"GIT_CONFIG_COUNT": str(len(off)), **pairs, **values}


def run_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    ok: tuple[int, ...] = (0,),
    options: tuple[str, ...] = (),
    limits: GitLimits = USUAL,
) -> bytes:
    """Run git in a folder; answers its stdout.

    Args:
        folder: The folder that git runs in.
        arguments: The command and its arguments.
        stdin: What git reads from its stdin.
        env: Variables beside those that it is given anyway.
        ok: Exit codes that are no fault.
        options: Of git itself, after those that it is given anyway.
        limits: What it may take.

    Raises:
        StorageError: It exited otherwise, did not end, or said too much.
        PrerequisiteError: Git is not installed.
    """
    ended = start_git(folder, *arguments, stdin=stdin, env=env, options=options, limits=limits)
    if ended.returncode not in ok:
        said = ended.stderr.decode("utf-8", "replace").strip() or f"exit code {ended.returncode}"
        raise StorageError(f"git {arguments[0]} failed: {said}")
    return ended.stdout


def start_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
    limits: GitLimits = USUAL,
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end, with nothing of the repository's own running beside it.

    Raises:
        StorageError: It cannot start, does not end, or says too much.
        PrerequisiteError: Git is not installed.
    """
    if arguments[0] not in PLUMBING:
        raise ValueError(f"git {arguments[0]} may run what a repository names; use plumbing")
    search = _search_path(folder)
    program = shutil.which("git", path=search)
    if program is None:
        raise PrerequisiteError("git is not installed", remedy="install git, or use --apply or --patch")
    kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith(KEPT_PREFIXES)}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as error_output:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [program, *OFF, *options, *arguments],
                cwd=folder,
                env={**kept, **QUIET, **(env or {}), "PATH": search},
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=error_output,
                start_new_session=True,
            )
        except OSError as fault:
            raise StorageError(f"git {arguments[0]} cannot start: {fault.strerror or fault}") from fault
        answer = _answer(process, arguments[0], limits)
        error_output.seek(0)
        return subprocess.CompletedProcess(
            process.args, process.returncode, stdout=answer, stderr=error_output.read(64 * 2**10)
        )


def _answer(process: subprocess.Popen[bytes], command: str, limits: GitLimits) -> bytes:
    """What it prints, until it ends by itself or at a limit."""
    late, seconds = threading.Event(), limits.seconds or TIMEOUT_S

    def end() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
            if limits.file_bytes is not None:
                most = (limits.file_bytes, limits.file_bytes)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, most)
        assert process.stdout is not None
        answer = process.stdout.read(MOST_BYTES + 1)
        if len(answer) > MOST_BYTES:
            raise StorageError(f"git {command} says more than {MOST_BYTES // 2**20} MiB")
        process.wait()
    finally:
        timer.cancel()
        _kill(process)
        process.stdout.close()  # type: ignore[union-attr] # it is a pipe
        process.wait()
    if late.is_set():
        raise StorageError(f"git {command} did not end within {seconds:g} s")
    return answer


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End git and whatever it has started; its session is its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _search_path(folder: Path) -> str:
    """Where programs are looked for: in no folder that is relative, nor in one of the project."""
    project = folder.resolve()
    entries = map(Path, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return os.pathsep.join(
        str(entry) for entry in entries if entry.is_absolute() and not entry.resolve().is_relative_to(project)
    )


MOST_ENTRIES = 200_000
"""Of a repository's folder that are looked at."""
MOST_FOLDERS = 16
"""Other folders that a repository leads to: the one that a worktree belongs to, and those it borrows from."""
MAX_POINTER_FILE_BYTES = 64 * 2**10
INCLUDED = re.compile(rb"""(?im)^[ \t]*(?:\[[^\]\n]*\])?[ \t]*path[ \t]*=[ \t]*"?([^"\n#;]+)""")


def require_no_pipes(root: Path) -> None:
    """Refuse a repository in which git would wait for somebody to write to it.

    Raises:
        UsageError: A pipe or a device lies in its folder, or in one that this leads to.
    """
    top = root.resolve()
    entries = (folder / ".git" for folder in (top, *top.parents))
    todo, seen = [*islice(filter(os.path.lexists, entries), 1)], set[Path]()
    while todo and len(seen) < MOST_FOLDERS:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        for path in _odd_entries(here):
            if _is_waited_for(path):
                raise UsageError(
                    f"the repository cannot be read: {str(path)!r} is a pipe or a device",
                    remedy="remove it, or use --apply or --patch",
                )
        todo += _led_to(here)


def _odd_entries(here: Path) -> Iterator[str]:
    """A file, or what lies in a folder and is neither a plain file nor a folder."""
    if not here.is_dir():
        yield str(here)
        return
    folders, left = [str(here)], MOST_ENTRIES
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue  # git cannot read it either


def _is_waited_for(path: str) -> bool:
    """Whether reading it may have no end; a socket cannot be opened, and `/dev/null` has its end at once."""
    try:
        found = Path(path).stat()
        if stat.S_ISCHR(found.st_mode):
            return found.st_rdev != Path(os.devnull).stat().st_rdev
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(found.st_mode) or stat.S_ISBLK(found.st_mode)


def _led_to(here: Path) -> Iterator[Path]:
    """Folders and files beside this one that git reads for it."""
    pointers = [(here, b"gitdir:", here.parent)] if not here.is_dir() else []
    pointers += [(here / "commondir", b"", here), (here / "objects/info/alternates", b"", here / "objects")]
    pointers += [(here / "info/alternates", b"", here)]  # of an object folder that is borrowed from
    for file, prefix, start in pointers:
        for line in _text(file).split(b"\n"):
            if name := line.strip().removeprefix(prefix).strip():
                yield Path(os.path.normpath(start / os.fsdecode(name)))
    for config in ("config", "config.worktree"):
        for found in INCLUDED.finditer(_text(here / config)):
            with contextlib.suppress(RuntimeError):  # nobody has that home
                named = Path(os.fsdecode(found[1].strip())).expanduser()
                yield Path(os.path.normpath(here / named))


def _text(path: Path) -> bytes:
    try:
        return (read_regular_file(path, MAX_POINTER_FILE_BYTES, follow=True) or b"").replace(b"\0", b"")
    except (OSError, ValueError):
        return b""
