"""The container back end: it chooses the engine, the image and the mode; the zygote does the rest."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox.container.container_spec import (
    HIDDEN_FOLDERS,
    ContainerSpec,
    image_name,
    pack_image,
    system_mounts,
)
from suture.sandbox.container.container_transport import ContainerTransport, Engine, connect_to_engine
from suture.sandbox.contract import LIMIT_NAMES, Capabilities, Mount, ProgramLimits
from suture.sandbox.mounts.mount_planning import mounts_for_interpreter
from suture.sandbox.runtimes.discovery import get_own_interpreter
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.zygote_pool import ZygoteSpec
from suture.sandbox.zygote.zygote_sandbox import ZygoteSandbox
from suture.sandbox.zygote.zygote_transport import build_bundle

if TYPE_CHECKING:
    from docker import APIClient

log = logging.getLogger("suture.sandbox")

KNOWN_REFUSALS = {
    "cgroups in hybrid mode not supported": (
        "this machine has control groups of both versions, which crun refuses: install runc and start "
        'Podman with it (`podman --runtime runc system service`, or `runtime = "runc"` under [engine] in '
        "containers.conf)"
    ),
    "setrlimit": (
        'the engine may not raise a limit: set `default_ulimits = ["nofile=1024:1024", '
        '"nproc=1024:1024"]` under [containers] in containers.conf, or start it with another runtime'
    ),
}
"""Messages of an engine or its runtime, seen with Podman 4.3.1 -> what to do."""


class ContainerSandbox(ZygoteSandbox):
    """Runs each program in a container of Docker or Podman; see `contract.Sandbox`.

    Warm if a container may make namespaces: a zygote waits in it and forks each program into new namespaces
    of its own. If it may not, as under gVisor, each program gets its own container.

    Args:
        host: The engine's socket, as a URL; by default `$DOCKER_HOST`, or the first engine that answers here.
        image: A local image to use instead of the host's own `/usr`. The Python that runs Suture must run in
            it.
        runtime: The engine's runtime, such as `runsc` for gVisor. Another one is never used silently.
        mode: `auto`, `warm`, `spare` or `cold`.
        environ: The user's environment variables.
    """

    name = "container"
    spare_by_default = True

    def __init__(
        self,
        *,
        host: str | None = None,
        image: str | None = None,
        runtime: str | None = None,
        mode: str = "auto",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        own_interpreter = get_own_interpreter()
        super().__init__(own_interpreter, mounts_for_interpreter(own_interpreter), mode)
        self._host = host
        self._image = image
        self._runtime = runtime
        self._environ = os.environ if environ is None else environ
        self._engine: Engine | None = None
        self._image_name = ""
        self._image_id = ""

    async def capabilities(self) -> Capabilities:
        """See `contract.Sandbox.capabilities`. What works here is tried once."""
        await self.choose_mode()
        assert self._engine is not None
        is_gvisor = self._runtime is not None and Path(self._runtime).name.startswith("runsc")
        limits = set(LIMIT_NAMES)
        if is_gvisor:
            limits.discard("processes")  # gVisor accepts this limit and does not enforce it
        if self._mode != "warm":
            limits.discard("inodes")  # engines have no such option for a tmpfs
        return Capabilities(
            level="user_kernel" if is_gvisor else "container",
            mode=self._mode,
            limits=frozenset(limits),
            memory_enforcement="engine" if self._engine.limits_memory else "sampler",
            identity=(
                f"{self._engine.version} at {self._engine.address}, runtime {self._runtime}, "
                f"image {self._image_name} {self._image_id}, guards {' '.join(self._engine.security)}"
            ),
            reason=self._reason,
        )

    async def release(self) -> None:
        """Remove every container of this sandbox. Safe to call twice."""
        await super().release()
        if self._engine is not None:
            self._engine.client.close()

    async def prepare(self) -> None:
        """See `ZygoteSandbox.prepare`."""
        engine = await asyncio.to_thread(connect_to_engine, self._host, self._environ)
        try:
            await remove_orphans(engine)
            self._image_name = await (
                self._import_empty_image(engine) if self._image is None else self._require_image(engine)
            )
            details = await engine.request(partial(_inspect_image, self._image_name))
            self._image_id = str(details.get("Id") or "")
        except SandboxBroken as fault:
            raise SandboxUnavailable(fault.message, remedy="see the engine's log") from fault
        self._engine = engine

    def remedy(self, failure: str) -> str:
        """See `ZygoteSandbox.remedy`. Engines and runtimes have no codes for these refusals."""
        for refusal, remedy in KNOWN_REFUSALS.items():
            if refusal in failure:
                return remedy
        if self._image is not None:
            return (
                f"sandbox.image must be able to run {self._own_interpreter.executable!r}; or leave it unset"
            )
        return "try sandbox.backend = 'bubblewrap', or see the engine's log"

    async def _import_empty_image(self, engine: Engine) -> str:
        content = pack_image()
        name = image_name(content)
        if not await engine.request(lambda client: client.images(name=name, quiet=True)):
            response = await engine.request(lambda client: client.import_image_from_data(content))
            image_id = str(response).rpartition('"status":"')[2].partition('"')[0]
            repository, _, tag = name.rpartition(":")
            await engine.request(lambda client: client.tag(image_id, repository, tag))
        return name

    async def _require_image(self, engine: Engine) -> str:
        assert self._image is not None
        image = self._image
        try:
            details = await engine.request(partial(_inspect_image, image))
        except SandboxBroken as fault:
            program = "podman" if engine.podman else "docker"
            raise SandboxUnavailable(
                f"there is no image {image!r} on this machine, which sandbox.image names: {fault.message}",
                remedy=f"run `{program} pull {image}`, or build it; Suture pulls no images",
            ) from fault
        if (details.get("Config") or {}).get("Volumes"):
            raise SandboxUnavailable(
                f"the image {image!r} has volumes, which are writable", remedy="choose another image"
            )
        return image

    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], spec: ZygoteSpec
    ) -> Zygote:
        """See `ZygoteSandbox.start`."""
        engine = self._engine
        assert engine is not None
        container_spec = ContainerSpec(
            image=self._image_name,
            mounts=(*(system_mounts() if self._image is None else ()), *mounts),
            executable=self._own_interpreter.executable,
            start=spec.start,
            limits=limits,
            labels={OWNER_LABEL: process_name()},
            runtime=self._runtime,
            namespaces=namespaces,
            engine=engine,
        )
        payload = build_bundle(
            dict(spec.modules),
            spec.preload,
            [mount.target for mount in mounts],
            namespaces=namespaces,
            hidden_folders=HIDDEN_FOLDERS,
        )
        config = await asyncio.to_thread(container_spec.build_config)
        transport = await ContainerTransport.start(engine, config, self._runtime)
        return await Zygote.start(transport, payload, max_runs=None if namespaces else 1)


def _inspect_image(image: str, client: Any) -> dict[str, Any]:
    return dict(client.inspect_image(image))


OWNER_LABEL = "suture.owner"
"""The label on each container: boot id, PID namespace, process id, and when that process was started."""


def process_name(pid: int | None = None) -> str:
    """Return a name for this process (or another living one) that no other process ever has.

    Raises:
        OSError: There is no such process.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - this link names no file
    pid = pid or os.getpid()
    # The program's name may contain blanks and brackets; what follows the last bracket contains neither.
    started = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode("ascii")
    return f"{boot}/{namespace}/{pid}/{started}"


def is_orphan(owner: str) -> bool:
    """Return whether the process with this name is known to be gone."""
    boot, namespace, _, _ = process_name().split("/")
    parts = owner.split("/")
    if len(parts) != 4 or parts[:2] != [boot, namespace] or not parts[2].isdigit():
        return False  # it belongs to another machine or container, whose processes cannot be seen from here
    try:
        return process_name(int(parts[2])) != owner
    except OSError:
        return True


async def remove_orphans(engine: Engine) -> int:
    """Remove Suture's containers whose process is gone, and return how many were removed.

    A container that the engine cannot remove now is found again by the next process that starts.

    Raises:
        SandboxBroken: The engine does not answer.
    """
    containers = await engine.request(
        lambda client: client.containers(all=True, filters={"label": OWNER_LABEL})
    )
    orphan_ids = [
        str(container["Id"])
        for container in containers
        if is_orphan(str((container.get("Labels") or {}).get(OWNER_LABEL, "")))
    ]
    removed = 0
    for orphan_id in orphan_ids:
        try:
            await engine.request(partial(_remove, orphan_id))
        except SandboxBroken as fault:
            log.warning("a container of an ended process was not removed: %s", fault.message)
        else:
            removed += 1
    return removed


def _remove(container: str, client: APIClient) -> None:
    client.remove_container(container, v=True, force=True)
