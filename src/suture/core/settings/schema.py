"""All settings, in small groups. The docstring below each field is its user documentation (docs/settings.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from suture.core.settings.service_settings import CiSettings, ServeSettings, SettingsGroup
from suture.core.settings.setting_types import (
    Address,
    FileReference,
    FindingNames,
    Key,
    ModelName,
    ModelNameOrNone,
    ModelNames,
    Names,
    RoleAddress,
    RoleKey,
    RoleMaxTokens,
    RoleTemperature,
    Services,
    parse_table,
)

MAX_MB = 2**24
"""16 TiB, more memory than any machine has. The kernel rejects much higher limits with a message of its own."""
MAX_PROCESSES = 2**22
"""The highest process id that Linux supports."""
IsolationLevel = Literal["none", "process", "namespace", "container", "wasm", "user_kernel", "vm"]
"""What separates untrusted code from the host, from the weakest to the strongest."""
Autonomy = Literal["full_auto", "review_repairs", "review_all"]
"""How much a run does without asking a person."""


EMPTY: Any = Field(default_factory=dict, validate_default=True)
"""Default of a group: all its settings have their own defaults.

An instance of the group would not do as the default: creating it compiles the group's own validator, which
`Settings` already contains, and makes every start slower.
"""


class ProfileSettings(SettingsGroup):
    """What a model can do, where Suture does not know it or is mistaken (docs/models.md).

    The group describes the model of `model.name`. `model.profiles` describes others.
    """

    capable: bool | None = None
    """Whether the model holds a conversation over a whole project. Other models get short prompts that let them
    write only what is missing. By default, the size in the model's name decides."""
    context_tokens: int | None = Field(default=None, ge=1024)
    """Context size of the model: tokens of prompt and reply together."""
    max_output_tokens: int | None = Field(default=None, ge=16)
    """Max tokens of one reply, thinking included."""
    tools: bool | None = None
    """Whether the model calls tools through its provider's protocol."""
    structured_output: bool | None = None
    """Whether the provider enforces a JSON schema."""
    reasoning: bool | None = None
    """Whether the model thinks before it answers."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much the model is asked to think. By default, the provider decides."""
    thinking_tokens: int | None = Field(default=None, ge=0)
    """Tokens that a reply may spend on thinking, beyond those of its answer."""
    prefill: bool | None = None
    """Whether the model continues a reply that Suture begins with code that is already known."""
    stop: bool | None = None
    """Whether the model takes stop sequences."""
    prompt_cache: Literal["none", "automatic", "explicit"] | None = None
    """How the provider caches the beginning of a prompt: not at all, by itself, or where the request marks it."""
    rejected_parameters: Names | None = None
    """Parameters of a request that the model refuses, such as `temperature` or `seed`."""


class ModelSettings(SettingsGroup):
    """Which model answers, and how it is called."""

    name: ModelName = "auto"
    """`provider:model`, such as `local:qwen2.5-coder-1.5b`. `auto` takes a model that is available on this
    machine; `none` uses no model."""
    fallbacks: ModelNames = ()
    """Models to ask, in this order, when the one before has failed. Every fallback is reported."""
    temperature: float = Field(default=0.8, ge=0, le=2)
    """Sampling temperature of all samples but the first, which is greedy."""
    max_tokens: int | None = Field(default=None, ge=16)
    """Max tokens of one answer, thinking not included. By default 1024 for small models, and up to 16384 for
    capable ones. An answer that is cut off is requested once more with twice as many. One that only completes a
    function starts with 512."""
    timeout_s: float = Field(default=600, gt=0)
    """Max seconds of one call, retries included."""
    retries: int = Field(default=2, ge=0)
    """Retries of a call after a temporary fault that cost nothing."""
    concurrency: int = Field(default=8, ge=1)
    """Max simultaneous calls to one address."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Max calls per minute to one address, evenly spaced."""
    base_url: Address = None
    """Address of an OpenAI-compatible server, or of Ollama, for models of the provider in `model.name`."""
    context_tokens: int = Field(default=8192, ge=1024)
    """Context size of the embedded model, for each of its parallel slots, and of Ollama's models. By default, an
    Ollama model has the `num_ctx` of its own file, if there is one; it never has more than it was trained with."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of the embedded model. By default, the number that `suture models pull` measured, or half of the
    cores."""
    slots: int | None = Field(default=None, ge=1)
    """Parallel replies of the embedded model. By default, as many as its threads and the free memory allow."""
    seed: int = 0
    """Seed of the sampler. Reply `index` of a call uses `seed + index`."""
    quantization: Literal["none", "4bit"] = "none"
    """How `huggingface:` models are loaded. `4bit` needs bitsandbytes and CUDA."""
    prices: Path | None = None
    """A TOML file of model prices, which override the built-in ones (docs/models.md)."""
    profile: ProfileSettings = EMPTY
    profiles: Annotated[Mapping[str, ProfileSettings], BeforeValidator(parse_table)] = {}
    """What other models can do: a table for each `provider:model`, with the settings of `model.profile`."""


class RoleSettings(SettingsGroup):
    """The model of each role. A role without its own model uses the group `model`.

    Two roles first look at another one: the optimiser and the escalation use the coder's settings.
    """

    coder: ModelNameOrNone = None
    """`provider:model` that writes and repairs code."""
    coder_temperature: RoleTemperature = None
    coder_max_tokens: RoleMaxTokens = None
    coder_base_url: RoleAddress = None
    coder_key: RoleKey = None
    planner: ModelNameOrNone = None
    """`provider:model` that splits a task into subtasks."""
    planner_temperature: RoleTemperature = None
    planner_max_tokens: RoleMaxTokens = None
    planner_base_url: RoleAddress = None
    planner_key: RoleKey = None
    tester: ModelNameOrNone = None
    """`provider:model` that writes tests, for the spec, the property and the adversarial tester."""
    tester_temperature: RoleTemperature = None
    tester_max_tokens: RoleMaxTokens = None
    tester_base_url: RoleAddress = None
    tester_key: RoleKey = None
    critic: ModelNameOrNone = None
    """`provider:model` that criticises a candidate."""
    critic_temperature: RoleTemperature = None
    critic_max_tokens: RoleMaxTokens = None
    critic_base_url: RoleAddress = None
    critic_key: RoleKey = None
    debugger: ModelNameOrNone = None
    """`provider:model` that finds the cause of a failure."""
    debugger_temperature: RoleTemperature = None
    debugger_max_tokens: RoleMaxTokens = None
    debugger_base_url: RoleAddress = None
    debugger_key: RoleKey = None
    summariser: ModelNameOrNone = None
    """`provider:model` that draws lessons from the attempts so far."""
    summariser_temperature: RoleTemperature = None
    summariser_max_tokens: RoleMaxTokens = None
    summariser_base_url: RoleAddress = None
    summariser_key: RoleKey = None
    optimiser: ModelNameOrNone = None
    """`provider:model` that simplifies code that passes. By default, the coder's."""
    optimiser_temperature: RoleTemperature = None
    optimiser_max_tokens: RoleMaxTokens = None
    optimiser_base_url: RoleAddress = None
    optimiser_key: RoleKey = None
    escalate: ModelNameOrNone = None
    """A stronger `provider:model` that takes over from the coder on a hard case. By default, none does."""
    escalate_temperature: RoleTemperature = None
    escalate_max_tokens: RoleMaxTokens = None
    escalate_base_url: RoleAddress = None
    escalate_key: RoleKey = None


class PathSettings(SettingsGroup):
    """Where Suture keeps its files. It writes into a project only when it is asked to apply a diff."""

    home: Path = Field(default=Path("~/.local/state/suture"), validate_default=True)
    """Folder of the runs and the checkpoint database."""
    cache: Path = Field(default=Path("~/.cache/suture"), validate_default=True)
    """Folder of model weights and of measurements of this machine."""
    prompts: Path | None = None
    """Folder of prompts that replace the built-in ones. By default, the project's `.suture/prompts`."""

    @field_validator("home", "cache", "prompts", mode="after")
    @classmethod
    def _expand_home(cls, path: Path | None) -> Path | None:
        try:
            return path.expanduser() if path else None
        except RuntimeError as fault:  # the user has neither HOME nor an entry in the password file
            raise ValueError(f"{str(path)!r}: no home folder is known here; set HOME") from fault


class StoreSettings(SettingsGroup):
    """The database of all runs (docs/runs.md)."""

    url: str | None = None
    """`sqlite:///FILE` or `postgresql://user@host/name`. By default, the file `suture.db` next to the runs."""
    fallback_url: str | None = None
    """A PostgreSQL database to use if `store.url` is unset and `suture db init` has created its tables."""
    runs: Literal["local", "database"] = "local"
    """Where ledgers, blobs, replies and checkpoints are kept: only on this machine, or also in the PostgreSQL
    database of `store.url`, so that another machine can continue a run."""
    namespace: str = Field(default="default", pattern=r"^[\w.-]{1,100}$")
    """Whose rows to read and write, if several teams or projects share one database."""


class MemorySettings(SettingsGroup):
    """Whether anything is remembered across runs (docs/runs.md)."""

    use: Literal["off", "prompts"] = "off"
    """Whether prompts show memories of earlier runs, and runs leave memories."""


class LogSettings(SettingsGroup):
    """Structured logs: the events of the ledger, one JSON object per line (docs/runs.md)."""

    file: Path | None = None
    """The log file. By default, no log is written."""
    max_mb: int = Field(default=20, ge=1)
    """Size in MiB at which the log file is rotated."""
    backups: int = Field(default=5, ge=1)
    """Number of rotated files to keep."""


class KeySettings(SettingsGroup):
    """API keys. They are masked wherever they are shown, and never written to a run folder."""

    openai: Key = None
    """Key for `openai:` models and OpenAI-compatible servers."""
    anthropic: Key = None
    """Key for `anthropic:` models."""
    qwen: Key = None
    """Key for `qwen:` models."""
    deepseek: Key = None
    """Key for `deepseek:` models."""
    openrouter: Key = None
    """Key for `openrouter:` models."""
    google: Key = None
    """Key for `google:` models, of the Gemini API."""
    bedrock: Key = None
    """API key for `bedrock:` models. By default, AWS's usual credentials are used."""
    huggingface: Key = None
    """Token for the Hugging Face hub, for downloads that need one."""
    serve: Key = None
    """Key that clients of `suture models serve` must send. By default, a random one."""
    e2b: Key = None
    """Key for the sandbox `e2b`."""
    ci: Key = None
    """GitHub or GitLab token for `suture ci deliver`, `respond` and `issue`. `suture ci heal` needs none."""


class SandboxSettings(SettingsGroup):
    """The sandbox that runs untrusted code."""

    backend: str = "auto"
    """Which sandbox to use: `bubblewrap`, `container`, `e2b`, one from an installed package, or no isolation
    at all: `unsafe-subprocess`. `auto` is `bubblewrap`, or `container` where bubblewrap cannot be built."""
    minimum_level: IsolationLevel = "namespace"
    """Weakest acceptable isolation. Nothing runs in a weaker sandbox."""
    mode: Literal["auto", "warm", "spare", "cold"] = "auto"
    """How Bubblewrap sandboxes are started: one that is reused for many programs (`warm`), one that is
    prepared before each program (`spare`), or one that is created for each program (`cold`)."""
    container_host: str | None = None
    """URL of the socket of Docker or Podman. By default, `DOCKER_HOST` or the first one that answers."""
    image: str | None = None
    """A local container image to use in place of this machine's `/usr`. Images are never pulled."""
    runtime: str | None = None
    """Runtime of the container engine, if not its default; `runsc` is gVisor."""
    e2b_template: str | None = None
    """Template of E2B's sandboxes, if not the service's default."""
    python: Path | None = None
    """Python of the project's tests: an interpreter, or the folder of an environment. By default, it is detected."""
    check_timeout_s: float = Field(default=10, gt=0)
    """Max wall-clock seconds of one function-level check."""
    test_timeout_s: float = Field(default=120, gt=0)
    """Max wall-clock seconds of one run of the test command."""
    memory_mb: int = Field(default=1024, ge=64, le=MAX_MB)
    """Address space in MiB of each process inside the sandbox."""
    total_memory_mb: int = Field(default=2048, ge=64, le=MAX_MB)
    """Memory in MiB of all processes and files of one program inside the sandbox."""
    processes: int = Field(default=128, ge=1, le=MAX_PROCESSES)
    """Max processes and threads inside the sandbox."""
    disk_mb: int = Field(default=256, ge=1, le=MAX_MB)
    """Size in MiB of each writable folder inside the sandbox, beside the project's own files."""
    output_kb: int = Field(default=1024, ge=1)
    """Max KiB that are kept of each of stdout and stderr. A program that prints 1,024 times as much is ended."""
    secrets: Names = ()
    """Globs of files that are copied into the sandbox although they look like secrets (docs/sandbox.md)."""


class BudgetSettings(SettingsGroup):
    """What one run may use. It ends with `budget_exhausted` before it exceeds a limit."""

    attempts: int = Field(default=12, ge=1)
    """Max candidates that models are asked for."""
    tokens: int = Field(default=60_000, ge=1)
    """Max tokens of prompts and replies together."""
    completion_tokens: int | None = Field(default=None, ge=1)
    """Max tokens of replies alone, for benchmarks. With this limit, replies are drawn one after the other."""
    money: float | None = Field(default=None, gt=0)
    """Max US dollars. The price of every model that may be asked must be known."""
    seconds: float = Field(default=900, gt=0)
    """Max wall-clock seconds."""


class RepairSettings(SettingsGroup):
    """Search for a repair without a model. It runs first where existing code fails."""

    enabled: bool = True
    """Whether to search."""
    candidates: int = Field(default=20_000, ge=0)
    """Max changes to try."""
    seconds: float | None = Field(default=None, gt=0)
    """Max wall-clock seconds of the search. By default 60, but at most half of what the run has left; before a
    capable model, a few seconds of trials; without a model, all the time that the verdict and its certification do
    not need."""
    seed: int = 0
    """Decides the order of equally likely changes, and which inputs tell repairs apart."""


class LoopSettings(SettingsGroup):
    """How the loop proceeds."""

    recipe: Annotated[str, FileReference("recipe")] = "adaptive"
    """The recipe: a name from `suture recipes list`, or a TOML file of your own."""
    samples: int = Field(default=4, ge=1, le=64)
    """Samples to draw at once after the greedy one has failed."""
    repair_rounds: int = Field(default=2, ge=0)
    """Successive repairs of one candidate before a fresh start."""
    trust_threshold: float = Field(default=0.9, ge=0, le=1)
    """Min trust of a check that decides. Checks with less trust only inform."""
    abstain_below: float = Field(default=0.2, ge=0, le=1)
    """A result that passes is not reported as healed if its confidence is lower (docs/proof.md)."""
    strict: bool | None = None
    """Whether a repair of the search is not reported as healed if the tests do not decide that it is right
    (docs/proof.md). By default only in `suture ci`."""
    autonomy: Autonomy = "full_auto"
    """When a person is asked: never, before repairs, or before each round and the end (docs/runs.md)."""


class ProposerSettings(SettingsGroup):
    """A program that `suture heal` runs in place of a model, and whose change it judges (docs/agents.md)."""

    command: str | None = None
    """Command line for `/bin/sh`. What it changes is judged as by `suture judge`. By default, a model is asked."""
    outside: bool = False
    """Whether it runs outside the sandbox, on this machine, with your files and your network."""
    seconds: float = Field(default=600, gt=0)
    """Max wall-clock seconds of one turn. The run's remaining time is a limit too."""
    turns: int = Field(default=3, ge=1)
    """Max turns. From the second turn on, it is told why its change is not accepted."""


class CertificationSettings(SettingsGroup):
    """What is measured about a healed result before it is delivered (docs/proof.md)."""

    seconds: float = Field(default=60, ge=0)
    """Max seconds, of those that the budget has left; 0 measures nothing."""
    mutants: int = Field(default=12, ge=0)
    """Max deliberate mistakes (mutants) in the changed lines that the tests run against, of 12 in all. Those that
    were not tried count as not noticed."""
    minimising_runs: int = Field(default=40, ge=0)
    """Max verdicts that may be spent on making a change smaller; 0 keeps it as it was found."""


class JudgeSettings(SettingsGroup):
    """What `suture judge` rejects, and how long it looks (docs/judge.md)."""

    rejects: FindingNames = ()
    """Codes of findings that reject a change, besides the usual ones."""
    remarks: FindingNames = ()
    """Codes of findings that are only remarks."""
    ignores: FindingNames = ()
    """Codes of findings that are left out, unless they reject the change."""
    accept_tests: bool = False
    """Whether a person has accepted what the change does to the tests; it is then a remark."""
    mistakes: int = Field(default=8, ge=0)
    """Max deliberate mistakes in the changed lines that the tests run against. They are
    fewer than in a heal run, because a judgement should take seconds."""
    mistakes_seconds: float = Field(default=30, ge=0)
    """Max seconds for them."""
    reuse_base: bool = True
    """Whether the results of the tests without the change are kept in `paths.cache`, for later judgements of changes
    to the same files."""


class SafetySettings(SettingsGroup):
    """What happens when new code does something that a safety rule covers (docs/sandbox.md)."""

    block: Names = ()
    """Rules whose new uses never run; the coder is told why. `*` matches any letters."""
    ask: Names = ()
    """Rules whose new uses run only after a person has allowed them."""
    warn: Names = ()
    """Rules whose new uses are reported with the result."""
    off: Names = ()
    """Rules that are not checked."""
    bandit: bool = False
    """Whether to also check Python code with Bandit, for issues of medium and high severity."""
    approve_deps: Literal["ask", "allowlist", "never"] = "ask"
    """Which packages new code may require: allowed ones and others after your approval (`ask`), only allowed
    ones (`allowlist`), or none (`never`)."""
    allowed_deps: Path | None = None
    """Your own list of allowed packages, in place of the built-in one."""
    fetch_packages: Literal["sandbox", "host"] = "sandbox"
    """Where pip, npm and go download packages: in a sandbox that can only reach the package index, or on this
    machine with your rights and your network."""
    package_hosts: Names = ()
    """Servers besides the index from which files may be downloaded, as `HOST` or `HOST:PORT`. The file
    servers of pip's index are known."""


class ProjectSettings(SettingsGroup):
    """What a project's own files may decide (docs/settings.md)."""

    untrusted: Literal["refuse", "ignore"] = "refuse"
    """What happens if a project that you do not trust sets more than it may: an error, or it is ignored."""
    test: str | None = None
    """The test command. By default, it is detected from the project's files."""
    services: Services = Field(default={})
    """Services that start inside the sandbox before each run of the tests, such as `{postgresql = {}, redis = {}}`: a
    table for each, with `command`, `port`, `ready`, `timeout_s` and `variables` (docs/layouts.md)."""


class Settings(SettingsGroup):
    """All settings of one run."""

    model: ModelSettings = EMPTY
    models: RoleSettings = EMPTY
    keys: KeySettings = EMPTY
    sandbox: SandboxSettings = EMPTY
    budget: BudgetSettings = EMPTY
    loop: LoopSettings = EMPTY
    repair: RepairSettings = EMPTY
    proposer: ProposerSettings = EMPTY
    certification: CertificationSettings = EMPTY
    judge: JudgeSettings = EMPTY
    safety: SafetySettings = EMPTY
    project: ProjectSettings = EMPTY
    store: StoreSettings = EMPTY
    log: LogSettings = EMPTY
    memory: MemorySettings = EMPTY
    ci: CiSettings = EMPTY
    serve: ServeSettings = EMPTY
    paths: PathSettings = EMPTY

    def for_features(self) -> Settings:
        """Return the settings for adding a feature to an existing project.

        Unless the user chose a recipe, each round repairs the best candidate: a conversation cannot ask for packages
        there.
        """
        if "recipe" in self.loop.model_fields_set:
            return self
        loop = self.loop.model_copy(update={"recipe": "always_repair"})
        return self.model_copy(update={"loop": loop})


USER_ONLY_SETTINGS = (
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
"""Settings that a project's own files never set, because they decide what the project itself may do."""
