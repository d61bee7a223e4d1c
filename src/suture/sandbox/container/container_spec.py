"""An image of nothing but folders: a container can show the host's own programs without a registry."""
# FIXME doc of sandbox/container/container_spec: """What a container is made of, in the engine's words."""

from __future__ import annotations

import hashlib
import importlib
import io
import secrets
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.project.languages import Interpreter
from suture.sandbox.contract import BOX, SANDBOX_UIDS, Mount, ProgramLimits
from suture.sandbox.mounts.path_checks import SYSTEM_FOLDERS
from suture.sandbox.mounts.planning import ETC, HOST_ETC
from suture.sandbox.seccomp import own_filter
from suture.sandbox.zygote.bundle import boot_source

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "localhost/suture-nothing"
FOLDERS = dict.fromkeys(("dev", "etc", "etc/ssl", "opt", "proc", "sys", "var"), 0o755)
# An engine may give what it mounts there the mode of the folder below.
FOLDERS |= {"run": 0o555, "var/tmp": 0o555, "tmp": 0o1777, BOX.strip("/"): 0o1777}


def image_name(content: bytes) -> str:
    """The name of an image with this content, which never changes its meaning."""
    return f"{REPOSITORY}:{hashlib.sha256(content).hexdigest()[:16]}"


def pack_image(system_folders: Sequence[str] = SYSTEM_FOLDERS) -> bytes:
    """The image's one layer, as a tar file; the same bytes on each call.

    Args:
        system_folders: Folders of the host; its links are links in the image.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, mode in FOLDERS.items():
            tar.addfile(_folder(name, mode))
        for name in system_folders:
            path = Path(name)
            if path.is_symlink():
                link = tarfile.TarInfo(name.strip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(link)
        for path in sorted(ETC.iterdir()):
            file = tarfile.TarInfo(f"etc/{path.name}")
            content = path.read_bytes()
            file.size, file.mode = len(content), 0o644
            tar.addfile(file, io.BytesIO(content))
    return packed.getvalue()


def _folder(name: str, mode: int) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    return folder


def system_mounts() -> Iterator[Mount]:
    """The host's programs and libraries, and what of its `/etc` they need."""
    for name in (*SYSTEM_FOLDERS, *(f"/etc/{name}" for name in HOST_ETC)):
        path = Path(name)
        if path.exists() and not (name in SYSTEM_FOLDERS and path.is_symlink()):
            yield Mount(source=str(path.resolve()), target=name)


MIB = 1 << 20
SHM = "16m"
MOST_PROCESSES = 4096
MOST_FILES = 1024
"""Of each process; an engine that runs as a limited root can give no more."""
BASE_MB = 64
"""Memory that a zygote itself may hold."""
EMPTIED = ("/sys", "/run", "/var/tmp", "/dev/mqueue")
"""Folders that an engine makes and that each run would share with the next, or that tell about the host."""


@cache
def _gate_source() -> str:
    return resources.files("suture.sandbox.container").joinpath("filter_entry.py").read_text("utf-8")


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """A container, before it is made.

    Attributes:
        image: The image whose files are the container's root.
        mounts: What it shows of the host, read-only.
        own: The interpreter for our own programs.
        start: The zygote's first words.
        limits: Of the run, or of the runs.
        labels: What it is known by.
        runtime: The engine's runtime, where not its default.
        namespaces: Whether its zygote makes new namespaces for each run; else it serves one.
        podman: Whether the engine is Podman.
        limits_memory: Whether the engine limits what a container's memory may be.
    """

    image: str
    mounts: Sequence[Mount]
    own: Interpreter
    start: Sequence[str]
    limits: ProgramLimits
    labels: Mapping[str, str]
    runtime: str | None
    namespaces: bool
    podman: bool
    limits_memory: bool

    def config(self, client: APIClient) -> dict[str, Any]:
        """As the SDK's `create_container_from_config` takes it."""
        uid = secrets.choice(SANDBOX_UIDS)
        code = own_filter(namespaces=self.namespaces, memory_files=self.limits_memory)
        command = (
            *(self.own.executable, "-I", "-S", "-B", "-c", _gate_source()),
            *(code.hex(), *self.start, boot_source()),
        )
        host = self._host_config(client)
        if self.namespaces and not self.podman:
            # Docker's own command line does the same for `--security-opt systempaths=unconfined`.
            host.update({"MaskedPaths": [], "ReadonlyPaths": []})
        config: dict[str, Any] = client.create_container_config(
            self.image,
            list(command[1:]),
            entrypoint=[command[0]],
            user=f"{uid}:{uid}",
            hostname="box",
            stdin_open=True,
            tty=False,
            working_dir="/",
            environment={"LANG": "C.UTF-8", "LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1"},
            labels=dict(self.labels),
            network_disabled=True,
            host_config=host,
        )
        return config

    def _host_config(self, client: APIClient) -> Any:
        types = importlib.import_module("docker.types")
        total = (self.limits.total_memory_mb + BASE_MB) * MIB
        return client.create_host_config(
            mounts=[
                types.Mount(mount.target, mount.source, type="bind", read_only=True) for mount in self.mounts
            ],
            tmpfs=self._folders(),
            shm_size=SHM,
            read_only=True,
            network_mode="none",
            ipc_mode="private",
            cap_drop=["ALL"],
            security_opt=self._security(),
            mem_limit=total,
            memswap_limit=total,
            pids_limit=MOST_PROCESSES,
            ulimits=[
                types.Ulimit(name="nofile", soft=MOST_FILES, hard=MOST_FILES),
                types.Ulimit(name="nproc", soft=MOST_PROCESSES, hard=MOST_PROCESSES),
                types.Ulimit(name="core", soft=0, hard=0),
            ],
            # Its stdout is a conversation, which an engine would otherwise keep on disk.
            log_config=types.LogConfig(type="none"),
            auto_remove=True,
            runtime=self.runtime,
        )

    def _folders(self) -> dict[str, str]:
        """Folders in memory; the small ones stand where Podman would put large ones."""
        small = {folder: "size=64k,mode=0555" for folder in ("/run", "/var/tmp")}
        if self.namespaces:
            return {**small, "/tmp": "size=64k,mode=0555"}
        size = f"size={self.limits.disk_mb}m,exec,mode=1777"
        return {**small, "/tmp": size, BOX: size}

    def _security(self) -> list[str]:
        """New namespaces and mounts need what engines forbid by default; our filter stands in for it."""
        opened = ["seccomp=unconfined", "apparmor=unconfined"] if self.namespaces else []
        if self.namespaces and self.podman:
            opened.append("systempaths=unconfined")
        return ["no-new-privileges", "label=disable", *opened]
