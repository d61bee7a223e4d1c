"""The container backend: which engine, which image, warm or cold, and then the zygote."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from suture.errors import SandboxBroken, SandboxUnavailable
from suture.languages import Interpreter
from suture.sandbox.container.carrier import ContainerCarrier
from suture.sandbox.container.engine import Engine, connect
from suture.sandbox.container.image import image_name, pack_image, system_mounts
from suture.sandbox.container.owners import OWNER, own_name, remove_orphans
from suture.sandbox.container.recipe import EMPTIED, Recipe
from suture.sandbox.contract import LIMITS, Capabilities, Mount, ProgramLimits, RunRequest
from suture.sandbox.copying import pack_for_zygote
from suture.sandbox.interpreter import own_interpreter
from suture.sandbox.mounts import interpreter_mounts, plan_mounts
from suture.sandbox.programs import ProgramSandbox, trial
from suture.sandbox.running import Running
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import bundle
from suture.sandbox.zygote.warm import WarmRuns, ZygoteKind, bare_kind

__all__ = ["ContainerSandbox"]

TRIAL = RunRequest(python="", limits=ProgramLimits(wall_s=30))


@lru_cache(maxsize=64)
def _planned(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    return plan_mounts(mounts)


class ContainerSandbox(ProgramSandbox):
    """Runs each program in a container of Docker's or Podman's; see `contract.Sandbox`.

    Warm where a container may make namespaces: a zygote waits in one and forks each program into new
    namespaces of its own. Cold where it may not, as under gVisor: each program has a container of its own.

    Args:
        host: The engine's socket, as a URL; by default `$DOCKER_HOST`, or the first that answers here.
        image: An image that is on this machine already, in place of the host's own `/usr`; the Python that
            runs Suture must run in it.
        runtime: The engine's runtime, such as `runsc` for gVisor; never silently another one.
        cold: A container for each program even where a warm one is possible.
        environ: The user's environment variables.
    """

    name = "container"

    def __init__(
        self,
        *,
        host: str | None = None,
        image: str | None = None,
        runtime: str | None = None,
        cold: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._host = host
        self._image = image
        self._runtime = runtime
        self._environ = os.environ if environ is None else environ
        self._own: Interpreter = own_interpreter()
        self._own_mounts = interpreter_mounts(self._own)
        self._warm = WarmRuns(self._own)
        self._cold = "it was asked for" if cold else ""
        self._engine: Engine | None = None
        self._root = ""
        self._level = ""
        self._choosing = asyncio.Lock()

    async def close(self) -> None:
        """Remove every container of this sandbox; safe to call twice."""
        await super().close()
        await self._warm.close()

    async def choose(self) -> Engine:
        """The engine that works here; tried once.

        Raises:
            SandboxUnavailable: None does.
        """
        async with self._choosing:
            if self._engine is None:
                self._engine = await self._try()
            return self._engine

    async def capabilities(self) -> Capabilities:
        """What this wall means to do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        engine = await self.choose()
        user_kernel = self._runtime is not None and Path(self._runtime).name.startswith("runsc")
        # gVisor takes the limit on processes and does not keep it.
        missing = {"processes"} if user_kernel else set()
        return Capabilities(
            level="user_kernel" if user_kernel else "container",
            mode="cold" if self._cold else "warm",
            limits=frozenset(set(LIMITS) - missing),
            total_memory="engine" if engine.limits_memory else "sampler",
            identity=f"{engine.version}, {self._runtime or 'its own runtime'}, {self._image or 'no image'}",
            reason=self._cold,
        )

    async def _try(self) -> Engine:
        engine = await asyncio.to_thread(connect, self._host, self._environ)
        try:
            await remove_orphans(engine)
            self._root = await (self._import_nothing(engine) if self._image is None else self._find(engine))
            complaint = self._cold or await trial(self._begin_warm(engine, TRIAL, self._own_mounts), TRIAL)
            if complaint:
                self._cold = complaint
                complaint = await trial(self._begin_cold(engine, TRIAL, self._own_mounts), TRIAL)
        except SandboxBroken as fault:
            raise SandboxUnavailable(fault.message, remedy="see the engine's own log") from fault
        if complaint:
            raise SandboxUnavailable(f"no container runs here: {complaint}", remedy=self._remedy())
        return engine

    def _remedy(self) -> str:
        if self._image is not None:
            return f"sandbox.image must be able to run {self._own.executable!r}; or leave it unset"
        return "try sandbox.backend = 'bubblewrap', or see the engine's own log"

    async def _import_nothing(self, engine: Engine) -> str:
        content = pack_image()
        name = image_name(content)
        if not await engine.ask(lambda client: client.images(name=name, quiet=True)):
            told = await engine.ask(lambda client: client.import_image_from_data(content))
            made = str(told).rpartition('"status":"')[2].partition('"')[0]
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

    @asynccontextmanager
    async def begin(self, request: RunRequest) -> AsyncIterator[Running]:
        """See `ProgramSandbox.begin`."""
        mounts = _planned((*self._own_mounts, *request.mounts))
        engine = await self.choose()
        begin = self._begin_cold if self._cold else self._begin_warm
        async with begin(engine, request, mounts) as running:
            yield running

    @asynccontextmanager
    async def _begin_warm(
        self, engine: Engine, request: RunRequest, mounts: Sequence[Mount]
    ) -> AsyncIterator[Running]:
        total = request.limits.total_memory_mb
        start = partial(self._start, engine, ProgramLimits(total_memory_mb=total), True)
        async with self._warm.begin(request, mounts, start, place=total) as running:
            yield running

    @asynccontextmanager
    async def _begin_cold(
        self, engine: Engine, request: RunRequest, mounts: Sequence[Mount]
    ) -> AsyncIterator[Running]:
        zygote = await self._start(engine, request.limits, False, mounts, bare_kind(self._own, request))
        try:
            yield zygote.begin(pack_for_zygote(request))
        finally:
            await zygote.end()

    async def _start(
        self,
        engine: Engine,
        limits: ProgramLimits,
        namespaces: bool,
        mounts: Sequence[Mount],
        kind: ZygoteKind,
    ) -> Zygote:
        system = system_mounts() if self._image is None else ()
        recipe = Recipe(
            image=self._root,
            mounts=(*system, *mounts),
            own=self._own,
            start=kind.start,
            limits=limits,
            labels={OWNER: own_name()},
            runtime=self._runtime,
            namespaces=namespaces,
            podman=engine.podman,
        )
        words = bundle(
            dict(kind.modules),
            kind.preload,
            [mount.target for mount in mounts],
            namespaces=namespaces,
            emptied=EMPTIED,
        )
        config = await asyncio.to_thread(recipe.config, engine.client)
        carrier = await ContainerCarrier.start(engine, config, self._runtime)
        return await Zygote.start(carrier, words, most_runs=None if namespaces else 1)


def _image_facts(image: str, client: Any) -> dict[str, Any]:
    return dict(client.inspect_image(image))
