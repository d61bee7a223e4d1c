"""The container backend: which engine, which image, warm or cold, and then the zygote."""

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
    EMPTIED,
    ContainerSpec,
    image_name,
    pack_image,
    system_mounts,
)
from suture.sandbox.container.engine import Engine, connect
from suture.sandbox.container.transport import ContainerTransport
from suture.sandbox.contract import LIMIT_NAMES, Capabilities, Mount, ProgramLimits
from suture.sandbox.mounts.planning import mounts_for_interpreter
from suture.sandbox.runtimes.discovery import get_own_interpreter
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import bundle
from suture.sandbox.zygote.zygote_pool import ZygoteSpec
from suture.sandbox.zygote.zygote_sandbox import ZygoteSandbox

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
"""Words of an engine or its runtime -> what to do; seen with Podman 4.3.1."""


class ContainerSandbox(ZygoteSandbox):
    """Runs each program in a container of Docker's or Podman's; see `contract.Sandbox`.

    Warm where a container may make namespaces: a zygote waits in one and forks each program into new
    namespaces of its own. Where it may not, as under gVisor, each program has a container of its own.

    Args:
        host: The engine's socket, as a URL; by default `$DOCKER_HOST`, or the first that answers here.
        image: An image that is on this machine already, in place of the host's own `/usr`; the Python that
            runs Suture must run in it.
        runtime: The engine's runtime, such as `runsc` for gVisor; never silently another one.
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
        own = get_own_interpreter()
        super().__init__(own, mounts_for_interpreter(own), mode)
        self._host = host
        self._image = image
        self._runtime = runtime
        self._environ = os.environ if environ is None else environ
        self._engine: Engine | None = None
        self._root = ""
        self._image_id = ""

    async def capabilities(self) -> Capabilities:
        """What this wall means to do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        await self.choose()
        assert self._engine is not None
        user_kernel = self._runtime is not None and Path(self._runtime).name.startswith("runsc")
        # gVisor takes the limit on processes and does not keep it.
        missing = {"processes"} if user_kernel else set()
        missing |= set() if self._mode == "warm" else {"inodes"}  # engines take no such word for a folder
        return Capabilities(
            level="user_kernel" if user_kernel else "container",
            mode=self._mode,
            limits=frozenset(set(LIMIT_NAMES) - missing),
            memory_enforcement="engine" if self._engine.limits_memory else "sampler",
            identity=(
                f"{self._engine.version} at {self._engine.address}, runtime {self._runtime}, "
                f"image {self._root} {self._image_id}, guards {' '.join(self._engine.security)}"
            ),
            reason=self._reason,
        )

    async def release(self) -> None:
        """Remove every container of this sandbox; safe to call twice."""
        await super().release()
        if self._engine is not None:
            self._engine.client.close()

    async def prepare(self) -> None:
        """See `ZygoteSandbox.prepare`."""
        engine = await asyncio.to_thread(connect, self._host, self._environ)
        try:
            await remove_orphans(engine)
            self._root = await (self._import_nothing(engine) if self._image is None else self._find(engine))
            facts = await engine.ask(partial(_image_facts, self._root))
            self._image_id = str(facts.get("Id") or "")
        except SandboxBroken as fault:
            raise SandboxUnavailable(fault.message, remedy="see the engine's own log") from fault
        self._engine = engine

    def remedy(self, complaint: str) -> str:
        """See `ZygoteSandbox.remedy`."""
        for words, remedy in KNOWN_REFUSALS.items():
            if words in complaint:
                return remedy
        if self._image is not None:
            return f"sandbox.image must be able to run {self._own.executable!r}; or leave it unset"
        return "try sandbox.backend = 'bubblewrap', or see the engine's own log"

    async def _import_nothing(self, engine: Engine) -> str:
        content = pack_image()
        name = image_name(content)
        if not await engine.ask(lambda client: client.images(name=name, quiet=True)):
            answer = await engine.ask(lambda client: client.import_image_from_data(content))
            made = str(answer).rpartition('"status":"')[2].partition('"')[0]
            repository, _, tag = name.rpartition(":")
            await engine.ask(lambda client: client.tag(made, repository, tag))
        return name

    async def _find(self, engine: Engine) -> str:
        assert self._image is not None
        image = self._image
        try:
            facts = await engine.ask(partial(_image_facts, image))
        except SandboxBroken as fault:
            raise SandboxUnavailable(
                f"there is no image {image!r} on this machine: {fault.message}",
                remedy="pull or build it first; Suture pulls nothing",
            ) from fault
        if (facts.get("Config") or {}).get("Volumes"):
            raise SandboxUnavailable(
                f"the image {image!r} has volumes, and those can be written", remedy="choose another image"
            )
        return image

    async def start(
        self, limits: ProgramLimits, namespaces: bool, mounts: Sequence[Mount], kind: ZygoteSpec
    ) -> Zygote:
        """See `ZygoteSandbox.start`."""
        engine = self._engine
        assert engine is not None
        system = system_mounts() if self._image is None else ()
        spec = ContainerSpec(
            image=self._root,
            mounts=(*system, *mounts),
            own=self._own,
            start=kind.start,
            limits=limits,
            labels={OWNER: own_name()},
            runtime=self._runtime,
            namespaces=namespaces,
            podman=engine.podman,
            limits_memory=engine.limits_memory,
        )
        words = bundle(
            dict(kind.modules),
            kind.preload,
            [mount.target for mount in mounts],
            namespaces=namespaces,
            emptied=EMPTIED,
        )
        config = await asyncio.to_thread(spec.config, engine.client)
        carrier = await ContainerTransport.start(engine, config, self._runtime)
        return await Zygote.start(carrier, words, most_runs=None if namespaces else 1)


def _image_facts(image: str, client: Any) -> dict[str, Any]:
    return dict(client.inspect_image(image))


OWNER = "suture.owner"
"""The label on each container: machine, PID namespace, process, when that process was started."""


def own_name(pid: int | None = None) -> str:
    """A name for this process, or another one that lives, which no other one ever has.

    Raises:
        OSError: There is no such process.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - this link leads nowhere
    pid = pid or os.getpid()
    # The name of a program may hold blanks and brackets; what follows it does not.
    started = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode("ascii")
    return f"{boot}/{space}/{pid}/{started}"


def is_orphan(owner: str) -> bool:
    """Whether the process of this name is known to be gone."""
    boot, space, _, _ = own_name().split("/")
    theirs = owner.split("/")
    if len(theirs) != 4 or theirs[:2] != [boot, space] or not theirs[2].isdigit():
        return False  # of another machine or another container, whose processes cannot be seen from here
    try:
        return own_name(int(theirs[2])) != owner
    except OSError:
        return True


async def remove_orphans(engine: Engine) -> int:
    """Remove containers of ours whose process is gone; tells how many.

    One that the engine cannot remove now is found again by whoever starts next.

    Args:
        engine: The engine whose containers are looked through.

    Raises:
        SandboxBroken: The engine does not answer.
    """
    found = await engine.ask(lambda client: client.containers(all=True, filters={"label": OWNER}))
    orphans = [str(one["Id"]) for one in found if is_orphan(str((one.get("Labels") or {}).get(OWNER, "")))]
    removed = 0
    for orphan in orphans:
        try:
            await engine.ask(partial(_remove, orphan))
        except SandboxBroken as fault:
            log.warning("a container that an ended process left is not removed: %s", fault.message)
        else:
            removed += 1
    return removed


def _remove(container: str, client: APIClient) -> None:
    client.remove_container(container, v=True, force=True)
