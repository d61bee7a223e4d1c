"""The knobs, in small groups. The docstring under each field is its documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic.fields import FieldInfo

from suture.core.settings.deployment_schema import (
    CiSettings,
    LogSettings,
    MemorySettings,
    PathSettings,
    ServeSettings,
    StoreSettings,
)
from suture.core.settings.groups import Group, NamesAFile
from suture.core.settings.model_schema import ModelSettings, Names, RoleSettings

MOST_MB = 2**24
"""No machine has more than these 16 TiB; a kernel refuses limits far beyond in words of its own."""
MOST_PROCESSES = 2**22
"""More than any Linux can number."""

IsolationLevel = Literal["none", "process", "namespace", "container", "wasm", "user_kernel", "vm"]
"""What stands between untrusted code and the host, the weakest first."""


Autonomy = Literal["full_auto", "review_repairs", "review_all"]
"""How far a run goes by itself."""


def _plain_key(key: SecretStr | None) -> SecretStr | None:
    """A key without what a file that it came from had around it.

    Raises:
        ValueError: It cannot stand in the header of a request; who would refuse it there would quote it.
    """
    plain = key.get_secret_value().strip() if key is not None else ""
    if not (plain.isascii() and plain.isprintable()) or " " in plain:
        raise ValueError("a key is one word of ASCII letters, digits and signs")
    return SecretStr(plain) if key is not None else None


Key = Annotated[SecretStr | None, AfterValidator(_plain_key)]


class KeySettings(Group):
    """API keys. They are masked wherever they are shown and never written to a run folder."""

    openai: Key = None
    """Key for `openai:` models and OpenAI-compatible servers."""
    anthropic: Key = None
    """Key for `anthropic:` models."""
    qwen: Key = None
    """Key for `qwen:` models."""
    huggingface: Key = None
    """Token for the Hugging Face hub, where a download needs one."""
    serve: Key = None
    """What callers of `suture models serve` must show; random where unset."""
    e2b: Key = None
    """Key for the sandbox `e2b`."""
    ci: Key = None
    """Token of GitHub or GitLab with which `suture ci deliver` hands over; `suture ci heal` needs none."""


class SandboxSettings(Group):
    """The wall around untrusted code."""

    backend: str = "bubblewrap"
    """Which wall: `bubblewrap`, `container`, `e2b`, a package's own, or none at all: `unsafe-subprocess`."""
    minimum_level: IsolationLevel = "namespace"
    """The weakest isolation that will do; below it nothing is run."""
    mode: Literal["auto", "warm", "spare", "cold"] = "auto"
    """Bubblewrap's walls: one for many programs (warm), one ready for each, one made for each (cold)."""
    container_host: str | None = None
    """Socket of Docker or Podman, as a URL; where unset, `DOCKER_HOST` or the first one that answers."""
    image: str | None = None
    """A container image of this machine, in place of its own `/usr`; nothing is ever pulled."""
    runtime: str | None = None
    """The container engine's runtime, where not its default; `runsc` is gVisor."""
    e2b_template: str | None = None
    """Template of E2B's sandboxes, where not the service's own."""
    python: Path | None = None
    """The Python of a project's tests: an interpreter, or an environment's folder; else it is looked for."""
    check_wall_s: float = Field(default=10, gt=0)
    """Wall-clock seconds of one function-level check."""
    test_wall_s: float = Field(default=120, gt=0)
    """Wall-clock seconds of one run of a test command."""
    memory_mb: int = Field(default=1024, ge=64, le=MOST_MB)
    """Address space of each process behind the wall, in MiB."""
    total_memory_mb: int = Field(default=2048, ge=64, le=MOST_MB)
    """Memory of all processes and files of one program behind the wall, in MiB."""
    processes: int = Field(default=128, ge=1, le=MOST_PROCESSES)
    """The most processes and threads behind the wall."""
    disk_mb: int = Field(default=256, ge=1, le=MOST_MB)
    """Size of each writable folder behind the wall, in MiB."""
    output_kb: int = Field(default=1024, ge=1)
    """The most that is kept of each of stdout and stderr, in KiB."""
    secrets: Names = ()
    """Globs of files that are copied although they look like secrets (docs/sandbox.md)."""


class BudgetSettings(Group):
    """What one run may use; it ends with `budget_exhausted` rather than use more."""

    attempts: int = Field(default=12, ge=1)
    """Candidates asked of a model."""
    tokens: int = Field(default=60_000, ge=1)
    """Tokens of prompts and replies together."""
    completion_tokens: int | None = Field(default=None, ge=1)
    """Tokens of replies alone, as benchmarks limit them; with it replies are drawn one after the other."""
    money: float | None = Field(default=None, gt=0)
    """US dollars; needs a known price for every model that may be asked."""
    seconds: float = Field(default=900, gt=0)
    """Wall-clock seconds."""


class RepairSettings(Group):
    """Repair without a model, tried first where there is failing code."""

    enabled: bool = True
    """Whether it is tried at all."""
    candidates: int = Field(default=20_000, ge=0)
    """The most changes that are tried."""
    seconds: float | None = Field(default=None, gt=0)
    """The most wall-clock seconds of the search. Where none are set: 60, and half of what the run has left;
    with no model to ask afterwards, what the verdict and its proof leave."""
    seed: int = 0
    """Decides between changes that are equally likely, and which inputs tell repairs apart."""


class LoopSettings(Group):
    """How the loop goes about it."""

    recipe: Annotated[str, NamesAFile("recipe")] = "adaptive"
    """How to go about it: a name that `suture recipes list` shows, or a TOML file of your own."""
    samples: int = Field(default=4, ge=1, le=64)
    """Fresh samples asked for at once after the greedy one failed."""
    repair_rounds: int = Field(default=2, ge=0)
    """Repairs in one lineage before a fresh start."""
    trust_threshold: float = Field(default=0.9, ge=0, le=1)
    """A check with less trust informs but never decides."""
    abstain_below: float = Field(default=0.2, ge=0, le=1)
    """With less confidence a result that passes is not handed over as healed (docs/proof.md)."""
    abstain_undetermined: bool = False
    """Whether a result is not handed over as healed where other changes pass too and may do otherwise."""
    autonomy: Autonomy = "full_auto"
    """When a person is asked: never, before repairs, or before each round and the end (docs/people.md)."""


class ProposerSettings(Group):
    """A program that `suture heal` asks in place of a model (docs/proposers.md)."""

    command: str | None = None
    """The line for `/bin/sh`; what it changes is a candidate like any other. A model is asked where unset."""
    outside: bool = False
    """Whether it runs on this machine, with your files and your network, in place of the sandbox."""
    seconds: float = Field(default=600, gt=0)
    """Wall-clock seconds of one turn; what is left of the run's is the limit too."""
    turns: int = Field(default=2, ge=1)
    """How often it may try, each time with what the tests said of its last change."""


class ProofSettings(Group):
    """What is measured about a healed result before it is handed over."""

    seconds: float = Field(default=60, ge=0)
    """The most seconds, of those that the budget has left; 0 measures nothing."""
    mutants: int = Field(default=12, ge=0)
    """The most small changes of the changed lines that the tests are tried on, 12 in all; those that are not
    tried count as not noticed."""
    minimising_runs: int = Field(default=40, ge=0)
    """The most verdicts spent on making a change smaller; 0 leaves it as it was found."""


class SafetySettings(Group):
    """What new code does that a rule speaks of, before it is run and handed over (docs/safety.md)."""

    block: Names = ()
    """Rules whose new uses never run: the coder is told. `*` stands for any letters."""
    ask: Names = ()
    """Rules whose new uses run once a person has allowed them."""
    warn: Names = ()
    """Rules whose new uses are told with the result."""
    off: Names = ()
    """Rules that are not looked for."""
    bandit: bool = False
    """Whether Bandit looks at Python too, for what is of middling or high severity."""
    approve_deps: Literal["ask", "allowlist", "never"] = "ask"
    """Packages that new code asks for: others than those allowed take your approval, or none may be asked for
    but those (`allowlist`), or none at all (`never`)."""
    allowed_deps: Path | None = None
    """Your own list of allowed packages in the place of ours."""
    fetch_packages: Literal["sandbox", "host"] = "sandbox"
    """Where pip, npm and go fetch packages: behind a wall from which the index alone is in reach, or as you
    would, with your rights and your network."""
    package_hosts: Names = ()
    """Servers beside your index on which its files lie, `HOST` or `HOST:PORT`; those that pip's index
    names are known."""


class ProjectSettings(Group):
    """What a project's own files may decide (docs/settings.md)."""

    untrusted: Literal["refuse", "ignore"] = "refuse"
    """What happens where they would set more than they may and the project is not trusted."""
    test: str | None = None
    """The test command; where unset, the one that the project's files show."""


EMPTY: Any = Field(default_factory=dict, validate_default=True)
"""A group of which nothing is said. No instance of it: that would compile the group's own validator, which
`Settings` holds already, at every start."""


class Settings(Group):
    """All knobs of one run."""

    model: ModelSettings = EMPTY
    models: RoleSettings = EMPTY
    keys: KeySettings = EMPTY
    sandbox: SandboxSettings = EMPTY
    budget: BudgetSettings = EMPTY
    loop: LoopSettings = EMPTY
    repair: RepairSettings = EMPTY
    proposer: ProposerSettings = EMPTY
    proof: ProofSettings = EMPTY
    safety: SafetySettings = EMPTY
    project: ProjectSettings = EMPTY
    store: StoreSettings = EMPTY
    log: LogSettings = EMPTY
    memory: MemorySettings = EMPTY
    ci: CiSettings = EMPTY
    serve: ServeSettings = EMPTY
    paths: PathSettings = EMPTY

    def for_projects(self) -> Settings:
        """These, where nobody has named a recipe with the one for projects: each round mends the best."""
        if "recipe" in self.loop.model_fields_set:
            return self
        loop = self.loop.model_copy(update={"recipe": "always_repair"})
        return self.model_copy(update={"loop": loop})


THE_USERS_ALONE = (
    "sandbox.backend",
    "sandbox.minimum_level",
    "sandbox.container_host",
    "sandbox.runtime",
    "sandbox.image",
    "sandbox.python",
    "sandbox.secrets",
    "model.prices",
    "safety.allowed_deps",
    "safety.approve_deps",
    "proposer.command",
    "proposer.outside",
    "proposer.seconds",
    "proposer.turns",
    "project.untrusted",
    "store.url",
    "store.fallback_url",
    "store.runs",
    "store.namespace",
    "log.file",
    *(f"serve.{name}" for name in ServeSettings.model_fields),
    "paths.home",
    "paths.cache",
)
"""Settings that decide how far a project is trusted: never taken from its own files, trusted or not."""


def setting_fields() -> dict[str, FieldInfo]:
    """Every setting as `group.field`, in the order of this file."""
    return {
        f"{name}.{field}": info
        for name, group in groups_of_settings().items()
        for field, info in group.model_fields.items()
    }


def groups_of_settings() -> dict[str, type[Group]]:
    """The groups of `Settings` by their names."""
    return {
        name: info.annotation
        for name, info in Settings.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, Group)
    }
