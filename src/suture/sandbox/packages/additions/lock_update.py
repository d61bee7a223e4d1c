"""Update a project's lock with the package manager that owns it: uv, Poetry, PDM, Yarn or pnpm.

The package manager runs in the sandbox of `client.py`, in a folder that holds the project's manifest, its lock and the
package manager's settings. It runs no code of a package: it builds nothing and starts no script. The new lock is used
only if everything that was locked stays as it was, and if it locks the new packages that the tests run with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import BudgetExceeded, Cancelled, PrerequisiteError, SutureError, describe_fault
from suture.sandbox import (
    WRITABLE_DIR,
    Mount,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.packages.additions.adder import AddedSet, Files, LockUpdates, read_file_text
from suture.sandbox.packages.client import (
    TEMP_DIR,
    Client,
    NetworkAccess,
    filtered_environment,
    guarded_module_code,
    parse_origins,
    query_client_settings,
    run_client,
)
from suture.sandbox.packages.installer import MAX_QUOTED_CHARS, PackagesRefused, WorkFolder
from suture.sandbox.packages.npm_installer import node_client
from suture.sandbox.tuning import MAX_CLIENT_SETTINGS_BYTES

CACHE = f"{WRITABLE_DIR}/{TEMP_DIR}/cache"
"""Where a package manager keeps what it downloads; removed with its other temporary files."""
LOCKED = re.compile(
    r"""(?<!content_hash\ =\ ")\bsha(?:1|256|512)[-:][\w+/=]{20,}  # the hash of a file
    |^name\ =\ ".+"(?:\nversion\ =\ ".+")?$                       # a package in TOML
    |^source\ =\ \{.+\}$                                           # where uv takes it from: an index, a commit
    |^(?:resolved_reference|revision)\ =\ ".+"$                    # its commit, of Poetry or PDM
    |^\ \ resolved\ ".+"$                                          # its address, of Yarn 1
    |^\ \ '?[\w@./-]+.*:$                                          # a package or a workspace member of pnpm
    |(?<=resolution:\ ").+?(?=::|") | (?<=checksum:\ ).+           # a version and its hash, of Yarn 2 or later
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Matches the parts of a lock that say what is locked. The hash of the manifest is not one of them."""
ENTRY = re.compile(r"^(?:\[\[package\]\]|\S.*:)$", re.MULTILINE)
"""Matches the line with which a package begins in a lock in TOML or of Yarn, or a table in one of pnpm."""
UNREACHABLE = re.compile(
    r"(?i)error sending request|connection (?:refused|reset|error|failed)|timed? ?out|name resolution|ConnectError"
)
"""Matches the output of uv, Poetry and PDM if their index cannot be reached."""


@dataclass(frozen=True, kw_only=True)
class LockTool:
    """A package manager that can update its own lock.

    Attributes:
        command: What a person enters to update the lock. The first word is the program.
        argv: Its arguments in the sandbox.
        settings: Files in a project that hold settings of the program.
        user_settings: The same in the user's home folder.
        user_variables: Matches the names of environment variables with the user's indexes and logins.
        variables: Environment variables that it always gets.
        registry_settings: Its own settings that name its registry. It prints them on this machine, outside the project.
    """

    command: str
    argv: tuple[str, ...]
    settings: tuple[str, ...] = ()
    user_settings: tuple[str, ...] = ()
    user_variables: str = "(?!)"
    variables: Mapping[str, str] = field(default_factory=dict)
    registry_settings: tuple[str, ...] = ()


PYTHON_LOCK_TOOLS: Mapping[str, LockTool] = {
    "uv.lock": LockTool(
        command="uv lock",
        argv=("lock", "--no-build", "--no-python-downloads", "--no-progress"),
        settings=("uv.toml",),
        user_settings=(".config/uv/uv.toml",),
        user_variables=r"UV_\w*(?:INDEX|FIND_LINKS|INSECURE_HOST|PRERELEASE|EXCLUDE_NEWER)\w*",
        variables={"UV_CACHE_DIR": CACHE},
    ),
    "poetry.lock": LockTool(
        command="poetry lock",
        argv=("lock", "--no-interaction", "--no-ansi"),
        settings=("poetry.toml",),
        user_settings=(
            ".config/pypoetry/config.toml",
        ),  # `auth.toml` beside it may hold a login for publishing
        user_variables=r"POETRY_(?:HTTP_BASIC|CERTIFICATES)_\w+",
        variables={
            "POETRY_CACHE_DIR": CACHE,
            "POETRY_VIRTUALENVS_CREATE": "false",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        },
    ),
    "pdm.lock": LockTool(
        command="pdm lock --update-reuse",
        argv=("lock", "--update-reuse", "--skip=:all"),  # `--skip` leaves out the project's own hooks
        settings=("pdm.toml",),
        user_variables=r"PDM_PYPI_\w+",
        variables={
            "PDM_CACHE_DIR": CACHE,
            "PDM_CHECK_UPDATE": "0",
            "PDM_ONLY_BINARY": ":all:",
            "PDM_USE_VENV": "0",
        },
    ),
}
NODE_LOCK_TOOLS: Mapping[str, LockTool] = {
    "yarn.lock": LockTool(
        command="yarn install",
        argv=("install", "--mode=update-lockfile"),
        settings=(".yarnrc.yml",),
        variables={
            "YARN_CACHE_FOLDER": CACHE,
            "YARN_ENABLE_SCRIPTS": "false",
            "YARN_IGNORE_SCRIPTS": "true",  # the same for Yarn 1, which installs into the folder
            "YARN_ENABLE_IMMUTABLE_INSTALLS": "false",
            "YARN_IGNORE_PATH": "1",  # the project's settings may name a program of the project
        },
        # Yarn has another name than npm for npm's registry. The second setting is that of Yarn 2 or later.
        registry_settings=("registry", "npmRegistryServer"),
    ),
    "pnpm-lock.yaml": LockTool(
        command="pnpm install",
        argv=(
            "install",
            "--lockfile-only",
            "--no-frozen-lockfile",
            "--ignore-scripts",
            "--ignore-pnpmfile",
            "--config.manage-package-manager-versions=false",  # the manifest may name another version of pnpm
            f"--store-dir={TEMP_DIR}/store",
        ),
        settings=("pnpm-workspace.yaml",),
    ),
}


async def update_locks(
    tools: Mapping[str, LockTool],
    base: Files,
    manifest_path: str,
    added: AddedSet,
    work_folder: WorkFolder,
    find_access: Callable[[WorkFolder], Awaitable[NetworkAccess]],
) -> LockUpdates:
    """Update the locks that a project has, each with the package manager that owns it.

    Args:
        tools: Path of a lock -> its package manager.
        base: The project without the candidate.
        manifest_path: The manifest to which packages were added.
        added: The new packages. A lock among its files is left out.
        work_folder: Each package manager runs in a new folder below it.
        find_access: Returns what a package manager that runs in a folder may reach.
    """
    files: dict[str, str] = {}
    failures: dict[str, str] = {}
    manifest = {manifest_path: added.files[manifest_path]}
    for path in sorted((tools.keys() & base.keys()) - added.files.keys()):
        tool_folder = replace(work_folder, folder=work_folder.folder / f"{path}.new")
        try:
            lock = await _run_tool(tools[path], path, base, manifest, tool_folder, find_access)
            require_unchanged_packages(read_file_text(base, path), lock, added.lock_parts)
            files[path] = lock
        except (BudgetExceeded, Cancelled):
            raise
        except (PackagesRefused, SutureError, OSError) as fault:
            reason = fault.message if isinstance(fault, SutureError) else describe_fault(fault)
            failures[path] = f"with `{tools[path].command}` ({reason[:MAX_QUOTED_CHARS]})"
    return LockUpdates(files=files, failures=failures)


async def _run_tool(
    tool: LockTool,
    path: str,
    base: Files,
    manifest: Mapping[str, str],
    work_folder: WorkFolder,
    find_access: Callable[[WorkFolder], Awaitable[NetworkAccess]],
) -> str:
    """Return the lock at `path` as the package manager updates it. `work_folder` is created."""
    if not work_folder.sandboxed:  # the project's settings may name plugins, which would run as the user
        raise PackagesRefused('locks are not updated with safety.fetch_packages = "host"')
    client = _find_client(tool)
    work_folder.folder.mkdir()
    access = await find_access(work_folder)
    registries = [await _query_registry(client, name, work_folder) for name in tool.registry_settings]
    variables = {name: text for name, text in os.environ.items() if re.fullmatch(tool.user_variables, name)}
    settings = {name: _read_user_settings(name) for name in tool.user_settings}
    access = replace(
        access,
        origins=access.origins | parse_origins(filter(None, registries), ()),
        variables={**access.variables, **variables},
        files={**access.files, **{name: content for name, content in settings.items() if content}},
    )
    for name in {path, *tool.settings} & base.keys():
        write_file_atomically(work_folder.folder / name, base[name])
    for name, text in manifest.items():
        write_file_atomically(work_folder.folder / name, text.encode())
    await run_client(client, tool.argv, work_folder, access)
    return work_folder.read_text(path)


async def _query_registry(client: Client, setting: str, work_folder: WorkFolder) -> str:
    """Return the address that a setting of a package manager holds; empty if it does not know the setting.

    The folder is still empty, so that nothing of the project decides the answer.
    """
    argv = (*client.host_argv, "config", "get", setting)
    with suppress(PrerequisiteError):
        output = await query_client_settings(client.name, argv, work_folder.folder, filtered_environment())
        return output.strip() if output.startswith(("https://", "http://")) else ""
    return ""


def _read_user_settings(name: str) -> bytes:
    """Return the content of a file in the user's home folder; empty if there is none, or if it cannot be read."""
    with suppress(OSError):
        return read_regular_file(Path.home() / name, MAX_CLIENT_SETTINGS_BYTES, follow=True) or b""
    return b""


def require_unchanged_packages(old: str, new: str, lock_parts: Mapping[str, tuple[str, ...]]) -> None:
    """Check that a lock still locks what it did, and that it locks the packages that the tests run with.

    Args:
        old: The project's lock.
        new: The updated lock.
        lock_parts: See `AddedSet`.

    Raises:
        PackagesRefused: It does not, or the old lock has entries of which nothing can be compared.
    """
    locked_before, locked = set(LOCKED.findall(old)), set(LOCKED.findall(new))
    if not locked_before and ENTRY.search(old):
        raise PackagesRefused("it does not say by what its packages are locked")
    if not locked >= locked_before:
        raise PackagesRefused("other packages than the new ones would change")
    for package, parts in lock_parts.items():
        if locked.isdisjoint(parts):
            raise PackagesRefused(f"it would not lock {package}, with which the tests run")


def _find_client(tool: LockTool) -> Client:
    """Return the program on the user's PATH.

    Raises:
        PackagesRefused: It is not there, or is a Python script without an environment of its own.
    """
    name = tool.command.split()[0]
    path = shutil.which(name)
    if path is None:
        raise PackagesRefused(f"{name} is not on PATH")
    program = Path(path).resolve()
    if program.suffix in (".js", ".cjs", ".mjs"):
        return replace(node_client(name, program), variables=tool.variables)
    with program.open("rb") as file:
        is_script = file.read(2) == b"#!"
    own_python = get_own_interpreter()
    client = Client(
        name=name,
        argv=(str(program),),
        host_argv=(str(program),),
        mounts=(Mount(source=str(program), target=str(program)),),
        folders=(str(Path(own_python.executable).parent),),
        variables=tool.variables,
        unreachable=UNREACHABLE,
    )
    if not is_script:
        return client
    environment = program.parent.parent
    if not (environment / "pyvenv.cfg").is_file():
        raise PackagesRefused(f"the {name} on PATH has no environment of its own")
    python = discover_interpreter(None, {"VIRTUAL_ENV": str(environment)})
    # Poetry and PDM start the interpreters on PATH to ask what they are.
    argv = (python.executable, "-I", "-B", "-c", guarded_module_code(name, may_start=True))
    return replace(client, argv=argv, host_argv=argv, mounts=mounts_for_interpreter(python))
