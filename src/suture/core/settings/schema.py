"""The knobs, in small groups. The docstring under each field is its documentation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator
from pydantic.fields import FieldInfo

@dataclass(frozen=True)
class NamesAFile:
    """The mark of a setting that is a text, and may name a file.

    Attributes:
        kind: By which rule: a `recipe` that ends in `.toml`, or a `model` such as `scripted:FILE`.
    """

    kind: Literal["recipe", "model"]


class Group(BaseModel):
    """What all groups share: immutable, unknown keys refused, documented by docstrings under the fields.

    A validator is compiled when it is first used, which for most is never: `Settings` holds them all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def _split_names(value: object) -> object:
    """A variable or a flag holds a list as one text with commas."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _address(text: str | None) -> str | None:
    """An address that can be asked for something.

    Raises:
        ValueError: It is none. The text is not repeated: a password may stand in it.
    """
    if text is None:
        return None
    parts = urlsplit(text)  # which itself refuses half an IPv6 address
    if not text.isprintable() or " " in text or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "an address begins with http:// or https:// and a host, such as http://127.0.0.1:8000/v1"
        )
    if "?" in text or "#" in text:  # a request's path is put behind it
        raise ValueError("an address has no `?` and no `#`: what a server asks for there belongs into a key")
    if not 0 < (parts.port or 80) < 65536:  # a number beyond is refused by asking for it
        raise ValueError("there is no such port")
    return text


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Address = Annotated[str | None, AfterValidator(_address)]
ModelName = Annotated[str, NamesAFile("model")]
ModelNameOrNone = Annotated[str | None, NamesAFile("model")]
ModelNames = Annotated[Names, NamesAFile("model")]
OwnTemperature = Annotated[
    float | None, Field(ge=0, le=2, description="Its sampling temperature, where it is not greedy.")
]
OwnLength = Annotated[int | None, Field(ge=16, description="The most tokens of one of its replies.")]


class ModelSettings(Group):
    """Which model answers, and how."""

    name: ModelName = "auto"
    """`provider:model`, such as `local:qwen2.5-coder-1.5b`; `auto` takes what is here, `none` asks nobody."""
    fallbacks: ModelNames = ()
    """Models to ask, in this order, when the one before has failed; each step down is told."""
    temperature: float = Field(default=0.8, ge=0, le=2)
    """Sampling temperature of every sample after the first, which is greedy."""
    max_tokens: int = Field(default=1024, ge=16)
    """The most tokens of one reply; code that is cut there is asked for once more with twice as many.
    A reply that is only the rest of a function has 512 at first."""
    prefill: bool | None = None
    """Whether a reply may begin with what is known of the code; where unset, models known to take it."""
    tools: bool | None = None
    """Whether the model calls tools, and may work as an agent in `adaptive`; where unset, hosted ones do."""
    timeout_s: float = Field(default=600, gt=0)
    """The most seconds of one call, retries included."""
    retries: int = Field(default=2, ge=0)
    """Tries after the first, of a fault that may pass and has cost nothing."""
    concurrency: int = Field(default=8, ge=1)
    """Calls at once to one address."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Calls a minute to one address, evenly spaced."""
    base_url: Address = None
    """Address of an OpenAI-compatible server, or of Ollama; for models of the provider in `model.name`."""
    context_tokens: int = Field(default=8192, ge=1024)
    """Context of the embedded model, for each of its parallel slots, and of Ollama's."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of the embedded model; measured once per machine where unset."""
    slots: int | None = Field(default=None, ge=1)
    """Replies that the embedded model draws at once; by its threads and the free memory where unset."""
    seed: int = 0
    """Seed of the sampler; reply `index` of a call uses `seed + index`."""
    quantization: Literal["none", "4bit"] = "none"
    """How `huggingface:` models are loaded; `4bit` needs bitsandbytes and CUDA."""
    prices: Path | None = None
    """A TOML file of prices, which go before those that Suture comes with (docs/models.md)."""


class RoleSettings(Group):
    """A model of its own for a role, and how it draws; where unset, what the group `model` says holds.

    Before that, the optimiser and the escalation take what the coder has, the reviewer what the critic has.
    """

    coder: ModelNameOrNone = None
    """`provider:model` that writes and repairs code."""
    coder_temperature: OwnTemperature = None
    coder_max_tokens: OwnLength = None
    planner: ModelNameOrNone = None
    """`provider:model` that cuts a task into parts."""
    planner_temperature: OwnTemperature = None
    planner_max_tokens: OwnLength = None
    tester: ModelNameOrNone = None
    """`provider:model` that writes tests, for the spec, the property and the adversarial tester."""
    tester_temperature: OwnTemperature = None
    tester_max_tokens: OwnLength = None
    critic: ModelNameOrNone = None
    """`provider:model` that criticises a candidate."""
    critic_temperature: OwnTemperature = None
    critic_max_tokens: OwnLength = None
    reviewer: ModelNameOrNone = None
    """`provider:model` that reviews code that passes; the critic's where unset."""
    reviewer_temperature: OwnTemperature = None
    reviewer_max_tokens: OwnLength = None
    debugger: ModelNameOrNone = None
    """`provider:model` that looks for the cause of a failure."""
    debugger_temperature: OwnTemperature = None
    debugger_max_tokens: OwnLength = None
    summariser: ModelNameOrNone = None
    """`provider:model` that draws lessons from what was tried."""
    summariser_temperature: OwnTemperature = None
    summariser_max_tokens: OwnLength = None
    optimiser: ModelNameOrNone = None
    """`provider:model` that makes code that passes simpler; the coder's where unset."""
    optimiser_temperature: OwnTemperature = None
    optimiser_max_tokens: OwnLength = None
    escalate: ModelNameOrNone = None
    """`provider:model` that is stronger, and takes over from the coder on a hard case; nobody where unset."""
    escalate_temperature: OwnTemperature = None
    escalate_max_tokens: OwnLength = None


class PathSettings(Group):
    """Where Suture keeps things. It never writes into a project unless asked to apply a diff."""

    home: Path = Field(default=Path("~/.local/state/suture"), validate_default=True)
    """Runs and the checkpoint database."""
    cache: Path = Field(default=Path("~/.cache/suture"), validate_default=True)
    """Model weights and measurements of this machine."""
    prompts: Path | None = None
    """Prompts in the place of ours; a project's own `.suture/prompts` where unset."""

    @field_validator("home", "cache", "prompts", mode="after")
    @classmethod
    def _expand_home(cls, path: Path | None) -> Path | None:
        try:
            return path.expanduser() if path else None
        except RuntimeError as fault:  # a user with neither HOME nor an entry in the password file
            raise ValueError(f"{str(path)!r}: no home folder is known here; set HOME") from fault


class StoreSettings(Group):
    """The database of all runs, and what is kept where others reach it (docs/store.md)."""

    url: str | None = None
    """`sqlite:///FILE` or `postgresql://user@host/name`; the file `suture.db` beside the runs where unset."""
    fallback_url: str | None = None
    """A PostgreSQL that counts where `store.url` is unset and `suture db init` has made Suture's tables."""
    runs: Literal["local", "database"] = "local"
    """Where ledgers, blobs, replies and checkpoints are: here alone, or in the PostgreSQL of `store.url` too,
    so that another machine can go on with a run."""
    namespace: str = Field(default="default", pattern=r"^[\w.-]{1,100}$")
    """Whose rows are read and written: of a team or a project, where several share one database."""


class MemorySettings(Group):
    """What is remembered across runs, and how it is used (docs/memory.md)."""

    use: Literal["off", "search", "prompts", "on"] = "off"
    """What memories of earlier runs are used for: nothing, the search's order, prompts, or both."""
    embedder: str = "hashed"
    """Who makes vectors of texts: `hashed`, `minilm`, `openai:MODEL`, `ollama:MODEL`, or `none`."""
    base_url: Address = None
    """The embedder's address, where not its usual one; with OpenAI's protocol up to `/v1`."""
    most: int = Field(default=2, ge=0, le=20)
    """The most memories that a prompt tells."""
    chars: int = Field(default=400, ge=40, le=4000)
    """The most characters of each of them in a prompt."""
    withheld: float = Field(default=0.2, ge=0, le=0.5)
    """The share of found memories that is held back by chance, to learn whether they help."""
    placebo: float = Field(default=0.05, ge=0, le=0.5)
    """The share in whose place a text of the same length says nothing, as a control."""
    seed: int = 0
    """Decides which."""


class LogSettings(Group):
    """Structured logs: the events of the ledger, one JSON object a line (docs/store.md)."""

    file: Path | None = None
    """The file; none is written where unset."""
    most_mb: int = Field(default=20, ge=1)
    """At this size, in MiB, the file is put aside and a new one begun."""
    kept: int = Field(default=5, ge=1)
    """How many older files are kept."""


class ServeSettings(Group):
    """The service of `suture serve` (docs/serve.md)."""

    host: str = "127.0.0.1"
    """The address it listens at; any but this machine's own takes a token (`suture serve token add`)."""
    port: int = Field(default=8765, ge=0, le=65535)
    """Its port; 0 takes a free one."""
    hosts: Names = ()
    """Names, besides `localhost`, under which callers may reach it."""
    roots: Names = ()
    """Folders in which callers may have projects healed; none but what they send where there are none."""
    git: Names = ()
    """Beginnings of git addresses that callers may have healed, such as `https://git.example.com/team/`."""
    git_private: Names = ()
    """Hosts of these that may lie at an address which is not everybody's."""
    models: Names = ()
    """Models that callers may choose besides the one set; `none` they always may."""
    executor: Literal["local", "ray"] = "local"
    """Who does the runs: processes of the server, or a Ray cluster that servers share (docs/serve.md)."""
    ray_address: str = "auto"
    """The cluster, as `ray.init` takes it."""
    runs_at_once: int = Field(default=2, ge=1)
    """The most runs that go on at once; the others wait in their order. In a cluster each takes a CPU."""
    queue: int = Field(default=32, ge=0)
    """The most runs that wait; more are refused for now."""
    body_kb: int = Field(default=1024, ge=1)
    """The most of a request's body, in KiB, where it is no archive."""
    archive_mb: int = Field(default=16, ge=1)
    """The most of an archive of a project, in MiB, as it is sent."""
    unpacked_mb: int = Field(default=64, ge=1)
    """The most of what comes out of it, in MiB."""
    archive_files: int = Field(default=5000, ge=1)
    """The most files and folders in it."""
    keep_sent_days: float = Field(default=30, gt=0)
    """Days after their last use at which archives and clones are removed that no run can go on with."""
    tokens_a_day: int | None = Field(default=None, ge=1)
    """The most tokens of one caller's runs in 24 hours."""
    seconds_a_day: float | None = Field(default=None, gt=0)
    """The most wall-clock seconds of one caller's runs in 24 hours."""


class CiSettings(Group):
    """The gates of `suture ci` (docs/ci.md), and how it hands over what passes them."""

    hand_over: Literal["artifact", "comment", "pull_request"] = "artifact"
    """What `suture ci deliver` does: nothing beyond the folder, a comment with suggestions, or a draft."""
    confidence: float = Field(default=0.7, ge=0, le=1)
    """The least confidence of a change (docs/proof.md)."""
    evidence: Literal["split", "nonce", "report", "exit_status"] = "report"
    """The weakest kind of evidence that will do, of these from the strongest to the weakest."""
    most_lines: int = Field(default=40, ge=1)
    """The most lines that a change may add and take away, together."""
    most_files: int = Field(default=3, ge=1)
    """The most files that a change may touch."""
    forbidden: Names = (
        *("*.lock", "*-lock.json", "*-lock.yaml", "go.sum", "requirements*.txt", "constraints*.txt"),
        *(".github/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", "Jenkinsfile", "Dockerfile*"),
        *("migrations/", "alembic/", "*secret*", "*credential*"),
    )
    """Globs of files that no change may touch; names of files that keep secrets are always among them."""
    new_only: bool = True
    """Whether only tests are mended that do not fail at the base commit too."""
    most_heals: int = Field(default=3, ge=0)
    """The most heals of one branch: in its own commits, and handed over and still there."""
    bots: Names = ("*\\[bot\\]", "project_*_bot*", "group_*_bot*")
    """Globs of names whose commits are never healed, besides Suture's own."""



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
