"""Run git safely. All git processes of this package start here.

A repository of a stranger must not run programs, use the network or fill the memory. Therefore only plumbing
commands run, every program that a git configuration can name is disabled, there is no network, no terminal
and no prompt, and time, memory and output are limited.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project.tuning import (
    GIT_TIMEOUT_S,
    MAX_GIT_ERROR_BYTES,
    MAX_GIT_MEMORY_BYTES,
    MAX_GIT_OUTPUT_BYTES,
    MAX_POINTER_FILE_BYTES,
    MAX_REPOSITORY_ENTRIES,
    MAX_REPOSITORY_FOLDERS,
)

PLUMBING = frozenset((
    "apply", "cat-file", "check-ref-format", "checkout-index", "clone", "commit-tree", "config",
    "for-each-ref", "hash-object", "ls-files", "ls-tree", "merge-base", "merge-file", "read-tree",
    "rev-list", "rev-parse", "update-index", "update-ref", "var", "worktree", "write-tree",
))  # fmt: skip
"""The allowed commands.

Commands for people (`log`, `status`, `add`) start programs that a configuration names: for example, a `log`
that shows signatures runs `gpg.program`. Only `cloning` uses `clone` and `checkout-index`; there, git reads
no configuration at all. """


INHERITED_DESCRIPTORS: ContextVar[tuple[int, ...]] = ContextVar("INHERITED_DESCRIPTORS", default=())
"""Descriptors that git keeps open. With that of a lock, the lock lasts until git has ended, even if we are killed."""


def setting_options(*settings: str) -> tuple[str, ...]:
    """Return the options that give git some settings for one command."""
    return tuple(word for setting in settings for word in ("-c", setting))


DISABLING_OPTIONS = (
    *setting_options(
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.attributesFile=/dev/null",
        "core.alternateRefsCommand=",
        "core.askPass=",
        "core.editor=false",
        "core.gitProxy=",
        "core.pager=cat",
        "core.sshCommand=false",
        "commit.gpgSign=false",
        "tag.gpgSign=false",
        "log.showSignature=false",
        "gpg.program=false",
        "diff.external=",
        "credential.helper=",
        "gc.auto=0",
        "maintenance.auto=false",
        "protocol.allow=never",
        "safe.bareRepository=explicit",
    ),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
"""Disable every program, hook and transport that a configuration can name by a fixed name.

The last options keep a repository from replacing objects with others, and from giving a path a special meaning.
"""
PROGRAM_SETTING = re.compile(
    r"(?:filter|diff|difftool|merge|mergetool|gpg|credential|remote|trailer|pager|alias|browser|man|sequence"
    r"|interactive|uploadpack|tar|guitool|sendemail|submodule)\..*(?<=\.)(?:clean|smudge|process|command|cmd|textconv"
    r"|driver|program|defaultkeycommand|helper|vcs|uploadpack|receivepack|proxy|editor|difffilter"
    r"|packobjectshook)",
    re.DOTALL,
)
"""Settings whose value is a program, among those with an arbitrary name in the middle."""
PASSED_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "EMAIL", "TMPDIR")
"""Variables that git needs to find the user's configuration and identity."""
PASSED_VARIABLE_PREFIXES = (
    "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
"""Variables that identify the user. Others, such as GIT_DIR, could lead git to another repository."""
ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # Unlike `protocol.allow`, this overrides a repository's setting for a single protocol.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}


@dataclass(frozen=True, kw_only=True)
class GitLimits:
    """Limits of one git command.

    Attributes:
        seconds: Max wall-clock seconds; `None` for the usual limit.
    """

    seconds: float | None = None
    file_bytes: int | None = None


DEFAULT_LIMITS = GitLimits()


def build_safe_environment(root: Path) -> dict[str, str]:
    """Return environment variables that disable every program that a repository's configuration names.

    Git runs such programs, for example filters, whenever it checks whether a file has changed. Writing the
    index does that, too.

    Raises:
        StorageError: The configuration cannot be read.
    """
    listed = run_git(root, "config", "-z", "--name-only", "--list").split(b"\0")[:-1]
    names = sorted({name for name in map(os.fsdecode, listed) if "." in name})
    overrides = [(name, "") for name in names if PROGRAM_SETTING.fullmatch(name)]
    filters = [name for name in names if name.startswith("filter.")]
    overrides += [(name, "false") for name in filters if name.endswith(".required")]
    # Since git 2.54, a configuration can name hooks, which `core.hooksPath` does not affect.
    hooks = {name.rpartition(".")[0] for name in names if name.startswith("hook.")}
    overrides += [(f"{hook}.enabled", "false") for hook in sorted(hooks) if hook != "hook"]
    pairs = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(overrides)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(overrides)}
    return {"GIT_CONFIG_COUNT": str(len(overrides)), **pairs, **values}


def run_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    ok: tuple[int, ...] = (0,),
    options: tuple[str, ...] = (),
    limits: GitLimits = DEFAULT_LIMITS,
) -> bytes:
    """Run git in a folder and return its stdout.

    Args:
        folder: Working directory of git.
        env: Additional environment variables.
        ok: Exit codes that are not an error.
        options: Additional options of git itself.

    Raises:
        StorageError: It failed, did not end, or printed too much.
        PrerequisiteError: Git is not installed.
    """
    process = start_git(folder, *arguments, stdin=stdin, env=env, options=options, limits=limits)
    if process.returncode not in ok:
        message = process.stderr.decode("utf-8", "replace").strip() or f"exit code {process.returncode}"
        raise StorageError(f"git {arguments[0]} failed: {message}")
    return process.stdout


def start_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
    limits: GitLimits = DEFAULT_LIMITS,
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end, without running any program of the repository. The arguments are as in `run_git`.

    Raises:
        StorageError: It cannot start, does not end, or prints too much.
        PrerequisiteError: Git is not installed.
    """
    if arguments[0] not in PLUMBING:
        raise ValueError(f"git {arguments[0]} may run what a repository names; use plumbing")
    search = _search_path(folder)
    program = shutil.which("git", path=search)
    if program is None:
        raise PrerequisiteError("git is not installed", remedy="install git, or use --apply or --patch")
    user_variables = {
        key: value
        for key, value in os.environ.items()
        if key in PASSED_VARIABLES or key.startswith(PASSED_VARIABLE_PREFIXES)
    }
    try:
        with tempfile.TemporaryFile() as input_file, tempfile.TemporaryFile() as error_output:
            input_file.write(stdin)
            input_file.seek(0)
            process = subprocess.Popen(
                [program, *DISABLING_OPTIONS, *options, *arguments],
                cwd=folder,
                env={**user_variables, **ENVIRONMENT, **(env or {}), "PATH": search},
                stdin=input_file,
                stdout=subprocess.PIPE,
                stderr=error_output,
                start_new_session=True,
                pass_fds=INHERITED_DESCRIPTORS.get(),
            )
            answer = _read_output(process, arguments[0], limits)
            error_output.seek(0)
            return subprocess.CompletedProcess(
                process.args, process.returncode, stdout=answer, stderr=error_output.read(MAX_GIT_ERROR_BYTES)
            )
    except OSError as fault:
        raise StorageError(f"git {arguments[0]} cannot run: {fault.strerror or fault}") from fault


def _read_output(process: subprocess.Popen[bytes], command: str, limits: GitLimits) -> bytes:
    """Return what a git process prints until it ends on its own or at a limit."""
    timed_out, seconds = threading.Event(), limits.seconds or GIT_TIMEOUT_S

    def stop_at_timeout() -> None:
        timed_out.set()
        _kill(process)

    timer = threading.Timer(seconds, stop_at_timeout)
    timer.start()
    try:
        _limit_resources(process.pid, limits.file_bytes)
        assert process.stdout is not None
        answer = process.stdout.read(MAX_GIT_OUTPUT_BYTES + 1)
        if len(answer) > MAX_GIT_OUTPUT_BYTES:
            raise StorageError(f"git {command} prints more than {MAX_GIT_OUTPUT_BYTES // 2**20} MiB")
        process.wait()
    finally:
        timer.cancel()
        _kill(process)
        process.stdout.close()  # type: ignore[union-attr] # it is a pipe
        process.wait()
    if timed_out.is_set():
        raise StorageError(f"git {command} did not end within {seconds:g} s")
    return answer


def _limit_resources(pid: int, max_file_bytes: int | None) -> None:
    """Limit the memory of a git process, and the size of the files that it writes. Only Linux can do that."""
    if sys.platform != "linux":
        return
    import resource

    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (MAX_GIT_MEMORY_BYTES, MAX_GIT_MEMORY_BYTES))
        if max_file_bytes is not None:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill git and all processes that it has started, which share its session."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _search_path(folder: Path) -> str:
    """Return the PATH for git without relative folders and without folders of the project."""
    project = folder.resolve()
    entries = map(Path, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return os.pathsep.join(
        str(entry) for entry in entries if entry.is_absolute() and not entry.resolve().is_relative_to(project)
    )


INCLUDED_CONFIG = re.compile(rb"""(?im)^[ \t]*(?:\[[^\]\n]*\])?[ \t]*path[ \t]*=[ \t]*"?([^"\n#;]+)""")
"""Matches the `path` setting by which a configuration includes another file."""


def require_no_pipes(root: Path) -> None:
    """Refuse a repository with pipes or devices, from which git would read forever.

    A pipe that is not found here, because a configuration names it in an unusual way, costs the time limit
    of one git command.

    Raises:
        UsageError: There is a pipe or a device in its folder, or in a folder that it refers to.
    """
    top = root.resolve()
    entries = (parent / ".git" for parent in (top, *top.parents))
    waiting, checked = [*islice(filter(os.path.lexists, entries), 1)], set[Path]()
    while waiting and len(checked) < MAX_REPOSITORY_FOLDERS:
        folder = waiting.pop()
        if folder in checked:
            continue
        checked.add(folder)
        for path in _special_entries(folder):
            if _blocks_readers(path):
                raise UsageError(
                    f"the repository cannot be read: {str(path)!r} is a pipe or a device",
                    remedy="remove it, or use --apply or --patch",
                )
        waiting += _referenced_folders(folder)


def _special_entries(path: Path) -> Iterator[str]:
    """Yield a file itself, or the entries of a folder that are neither regular files nor folders."""
    if not path.is_dir():
        yield str(path)
        return
    folders, entries_left = [str(path)], MAX_REPOSITORY_ENTRIES
    while folders and entries_left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    entries_left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue  # git cannot read it, either


def _blocks_readers(path: str) -> bool:
    """Return whether reading a path may block. Sockets cannot be opened, and `/dev/null` ends at once."""
    try:
        status = Path(path).stat()
        if stat.S_ISCHR(status.st_mode):
            return status.st_rdev != Path(os.devnull).stat().st_rdev
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISBLK(status.st_mode)


def _referenced_folders(git_folder: Path) -> Iterator[Path]:
    """Yield the folders and files that git also reads for this one."""
    pointers = [(git_folder, b"gitdir:", git_folder.parent)] if not git_folder.is_dir() else []
    pointers += [
        (git_folder / "commondir", b"", git_folder),
        (git_folder / "objects/info/alternates", b"", git_folder / "objects"),
        # This one is in an object folder of another repository.
        (git_folder / "info/alternates", b"", git_folder),
    ]
    for file, prefix, base in pointers:
        for line in _text(file).split(b"\n"):
            if name := line.strip().removeprefix(prefix).strip():
                yield Path(os.path.normpath(base / os.fsdecode(name)))
    for config in ("config", "config.worktree"):
        for match in INCLUDED_CONFIG.finditer(_text(git_folder / config)):
            with contextlib.suppress(RuntimeError):  # there is no such user
                included = Path(os.fsdecode(match[1].strip())).expanduser()
                yield Path(os.path.normpath(git_folder / included))


def _text(path: Path) -> bytes:
    try:
        return (read_regular_file(path, MAX_POINTER_FILE_BYTES, follow=True) or b"").replace(b"\0", b"")
    except (OSError, ValueError):
        return b""
