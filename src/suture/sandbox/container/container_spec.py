"""What a container is made of, in the engine's terms, and the image that it starts from.

The image holds nothing but empty folders: the host's own programs are mounted into it, so no registry is
needed.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import secrets
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.sandbox import tuning
from suture.sandbox.container.container_transport import Engine
from suture.sandbox.contract import BOX, SANDBOX_UIDS, Mount, ProgramLimits
from suture.sandbox.execution.process import read_source
from suture.sandbox.mounts.mount_planning import ETC, list_host_etc
from suture.sandbox.mounts.path_checks import SYSTEM_FOLDERS
from suture.sandbox.seccomp import build_filter_for_host
from suture.sandbox.zygote.zygote_transport import ZYGOTE_ENVIRONMENT, read_boot_source

REPOSITORY = "localhost/suture-empty"
"""The name of the image without its tag. `localhost` is Podman's prefix for images that were made here."""
FOLDERS = dict.fromkeys(("dev", "etc", "etc/ssl", "opt", "proc", "sys", "var"), 0o755)
"""The folders of the image, with their modes."""
# An engine may give a mount the mode of the folder below it.
FOLDERS |= {"run": 0o555, "var/tmp": 0o555, "tmp": 0o1777, BOX.strip("/"): 0o1777}


def image_name(content: bytes) -> str:
    """Return the name of the image with this content: a hash, so that a name always means the same image."""
    return f"{REPOSITORY}:{hashlib.sha256(content).hexdigest()[:16]}"


def pack_image(system_folders: Sequence[str] = SYSTEM_FOLDERS) -> bytes:
    """Return the image's single layer as a tar file; the same bytes on each call.

    Symbolic links among the host's `system_folders` become links in the image.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in FOLDERS.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
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
    return buffer.getvalue()


def system_mounts() -> Iterator[Mount]:
    """Yield mounts for the host's programs and libraries, and for the parts of its `/etc` that they need."""
    for name in (*SYSTEM_FOLDERS, *list_host_etc()):
        path = Path(name)
        if path.exists() and not (name in SYSTEM_FOLDERS and path.is_symlink()):
            yield Mount(source=str(path.resolve()), target=name)


HIDDEN_FOLDERS = ("/sys", "/run", "/var/tmp", "/dev/mqueue")
"""Folders that an engine creates and that each run would share with the next, or that reveal facts about the
host."""


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """A container that is about to be created.

    Attributes:
        image: The image whose files are the container's root.
        mounts: What it shows of the host, read-only.
        executable: The interpreter for Suture's own programs.
        start: The command that starts the zygote, up to its boot program.
        limits: The limits of the run, or of the runs.
        labels: The labels of the container.
        runtime: The engine's runtime, if not its default.
        namespaces: Whether its zygote makes new namespaces for each run; otherwise it serves one run.
        engine: The engine that will run it.
    """

    image: str
    mounts: Sequence[Mount]
    executable: str
    start: Sequence[str]
    limits: ProgramLimits
    labels: Mapping[str, str]
    runtime: str | None
    namespaces: bool
    engine: Engine

    def build_config(self) -> dict[str, Any]:
        """Return the configuration, as the SDK's `create_container_from_config` takes it."""
        uid = secrets.choice(SANDBOX_UIDS)
        seccomp_filter = build_filter_for_host(
            namespaces=self.namespaces, memory_files=self.engine.limits_memory
        )
        source = read_source("suture.sandbox.container.filter_entry")
        arguments = ["-I", "-S", "-B", "-c", source, seccomp_filter.hex()]
        host_config = self._host_config()
        if self.namespaces and not self.engine.podman:
            # Docker's own command line does the same for `--security-opt systempaths=unconfined`. A masked
            # /proc would make the kernel refuse the new proc mount of each run.
            host_config.update({"MaskedPaths": [], "ReadonlyPaths": []})
        config: dict[str, Any] = self.engine.client.create_container_config(
            self.image,
            [*arguments, *self.start, read_boot_source()],
            entrypoint=[self.executable],
            user=f"{uid}:{uid}",
            hostname="box",
            stdin_open=True,
            tty=False,
            working_dir="/",
            environment=dict(ZYGOTE_ENVIRONMENT),
            labels=dict(self.labels),
            network_disabled=True,
            host_config=host_config,
        )
        return config

    def _host_config(self) -> Any:
        """Return what the container may use of the host: mounts, limits and rights."""
        types = importlib.import_module("docker.types")
        memory_bytes = (self.limits.total_memory_mb + tuning.CONTAINER_BASE_MB) * tuning.MIB
        return self.engine.client.create_host_config(
            mounts=[
                types.Mount(mount.target, mount.source, type="bind", read_only=True) for mount in self.mounts
            ],
            tmpfs=self._tmpfs_folders(),
            shm_size=tuning.SHM_BYTES,
            read_only=True,
            network_mode="none",
            ipc_mode="private",
            cap_drop=["ALL"],
            security_opt=self._security_options(),
            mem_limit=memory_bytes,
            memswap_limit=memory_bytes,
            pids_limit=tuning.MAX_CONTAINER_PROCESSES,
            ulimits=[
                types.Ulimit(
                    name="nofile", soft=tuning.MAX_CONTAINER_OPEN_FILES, hard=tuning.MAX_CONTAINER_OPEN_FILES
                ),
                types.Ulimit(
                    name="nproc", soft=tuning.MAX_CONTAINER_PROCESSES, hard=tuning.MAX_CONTAINER_PROCESSES
                ),
                types.Ulimit(name="core", soft=0, hard=0),
            ],
            # The container's stdout is a conversation, which an engine would otherwise log to disk.
            log_config=types.LogConfig(type="none"),
            auto_remove=True,
            runtime=self.runtime,
        )

    def _tmpfs_folders(self) -> dict[str, str]:
        """Return the in-memory folders. The small ones replace large ones that Podman would mount there."""
        small_folders = {folder: "size=64k,mode=0555" for folder in ("/run", "/var/tmp")}
        if self.namespaces:
            return {**small_folders, "/tmp": "size=64k,mode=0555"}
        size = f"size={self.limits.disk_mb}m,exec,mode=1777"
        return {**small_folders, "/tmp": size, BOX: size}

    def _security_options(self) -> list[str]:
        """Return the security options.

        New namespaces and mounts need system calls that engines forbid by default, so the engine's filter is
        off for them. Suture's own filter replaces it.
        """
        relaxed = ["seccomp=unconfined", "apparmor=unconfined"] if self.namespaces else []
        if self.namespaces and self.engine.podman:
            relaxed.append("systempaths=unconfined")
        return ["no-new-privileges", "label=disable", *relaxed]
