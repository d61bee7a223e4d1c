"""What a run works with. It travels beside the state, never inside it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace

from suture.agents import PromptBook
from suture.core.ledger import Budget, Ledger, RunFolder, those_of
from suture.core.ledger.kinds import CandidateProposed, PackagesInstalled
from suture.core.records import Candidate, Task, Verdict, to_plain
from suture.core.settings import SandboxSettings, Settings
from suture.judge import Suite, prepare_suite
from suture.loop.policy.progress import Progress
from suture.loop.recipes.recipe import Extensions
from suture.loop.recipes.schema import Recipe
from suture.loop.run_spec import RunSpec
from suture.loop.state import LoopState, proposals_in, tried_in
from suture.loop.vetting import answered_uses, findings_in, refused_verdict, use_of
from suture.models import NO_MODEL, Model, Models, Role, may_call_tools
from suture.mutation import has_grammar
from suture.project.languages import Interpreter, is_pytest_command, pytest_equivalent
from suture.project.recorded_task import with_accepted_test
from suture.project.safety import Finding, levels_of
from suture.project.workspace import text_of
from suture.sandbox import Sandbox
from suture.sandbox.packages import AddedPackages, Installed, Packages, packages_of
from suture.search import EarlyBaseline, TrialPool

LONGEST_RUN = 0.6
"""The part of the run's time that one run of the tests may take: a change of them has to be run again."""


class _OwnSuite:
    """The task's suite, made ready once; the task since a test was accepted; what scans of candidates say."""

    def __init__(self) -> None:
        self.ready: Suite | None = None
        self.task: Task | None = None
        self.scans: dict[tuple[str, str], tuple[Finding, ...]] = {}


class _Ahead:
    """What was begun for a search that may come."""

    ready: TrialPool | None = None
    look: EarlyBaseline | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """What one run was asked to be, the outside things opened for it, and what its folder tells.

    What a run decides by does not change here: that is in the state, the ledger and the folder. Only what
    saves time is kept, such as the suite, made ready once, and processes begun ahead of a search.

    Attributes:
        spec: What the run was asked to be.
        folder: Where it is recorded.
        ledger: Its events.
        budget: What it may use, and has used.
        models: Who answers each role; every reply is kept in the folder.
        sandbox: The wall.
        recipe: Who takes part, and which moves there are.
        interpreter: What `python` means in the task's test command; `None` where it has none.
        prompts: The prompts of this run.
        extensions: What installed packages bring, of what the recipe wants.
    """

    spec: RunSpec
    folder: RunFolder
    ledger: Ledger
    budget: Budget
    models: Models
    sandbox: Sandbox
    recipe: Recipe
    interpreter: Interpreter | None = None
    prompts: PromptBook = field(default_factory=PromptBook)
    extensions: Extensions = field(default_factory=Extensions)
    _ahead: _Ahead = field(default_factory=_Ahead, init=False)
    _own_suite: _OwnSuite = field(default_factory=_OwnSuite, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def task(self) -> Task:
        """What is wanted, with the checks that were given, and the test that a person accepted for it."""
        given = self.spec.task
        if given.kind != "heal" or not given.statement:
            return given
        if self._own_suite.task is None:
            task = with_accepted_test(given, self.ledger.events)
            if task is given:
                return given
            self._own_suite.task, self._own_suite.ready = task, None
        return self._own_suite.task

    @property
    def settings(self) -> Settings:
        """The knobs."""
        return self.spec.settings

    @property
    def ready(self) -> TrialPool | None:
        """Processes for a search that may come; they end with the run."""
        return self._ahead.ready

    def make_ready(self, ready: TrialPool) -> None:
        """Keep such processes until they are taken, or the run ends."""
        self._ahead.ready = ready

    def take_ready(self) -> TrialPool | None:
        """Such processes, which belong to the caller from now on."""
        ready, self._ahead.ready = self._ahead.ready, None
        return ready

    def keep_look(self, look: EarlyBaseline) -> None:
        """Keep a look at the unchanged code, in another language, until it is taken, or the run ends."""
        self._ahead.look = look

    def take_look(self) -> EarlyBaseline | None:
        """Such a look, which belongs to the caller from now on."""
        look, self._ahead.look = self._ahead.look, None
        return look

    async def let_go(self) -> None:
        """End what was made ready and is not needed any more."""
        for begun in (self.take_ready(), self.take_look()):
            if begun is not None:
                await begun.close()

    def in_turn(self) -> AbstractAsyncContextManager[None]:
        """To be held while a reply is drawn.

        Where tokens of replies are limited the branches of a round draw one after the other, in their order:
        how long a reply may be is known only when those before it are there.
        """
        return nullcontext() if self.budget.limits.completion_tokens is None else self._turn

    @property
    def model(self) -> Model:
        """Who writes the code."""
        return self.models.for_role("coder").model

    @property
    def has_proposer(self) -> bool:
        """Whether a program of the user's stands in the model's place."""
        return self.task.kind == "heal" and bool(self.settings.proposer.command)

    @property
    def may_search(self) -> bool:
        """Whether there is code whose tests may be run many times over.

        By pytest, or as pytest would; in another language by the whole command, where its syntax is known.
        """
        command = self.task.test_command
        runs = is_pytest_command(command) or pytest_equivalent(command) is not None
        runs = runs or has_grammar(self.task.language)
        return self.settings.repair.enabled and self.task.kind == "heal" and runs

    async def load_suite(self, *, run: bool = False) -> Suite:
        """The task's own checks, made ready when they are first needed, and so also after a resume.

        What generated checks say too is in the state: see `evaluation.deciding`.

        Args:
            run: Whether the verdict on the task's own files is the next that is asked of them.
        """
        task = self.task  # first: with a test that was accepted since, another suite is needed
        if self._own_suite.ready is None:
            packages = self._packages()
            ready = await prepare_suite(
                task, self.sandbox, self._limits(), self.interpreter, run=run, packages=packages
            )
            self._own_suite.ready = replace(ready, vet=self.vet)
        return self._own_suite.ready

    def _packages(self) -> Packages | AddedPackages | None:
        def tell(installed: Installed) -> None:
            self.ledger.append(PackagesInstalled(packages=installed.names))

        return packages_of(self.task, self.settings, on_installed=tell)

    async def prepare(self, task: Task, *, run: bool = False) -> Suite:
        """The suite of a task like the run's, made ready anew."""
        ready = await prepare_suite(task, self.sandbox, self.settings.sandbox, self.interpreter, run=run)
        return replace(ready, vet=self.vet)

    def findings_in(self, candidate: Candidate) -> tuple[Finding, ...]:
        """What the safety scan says of what a candidate newly does."""
        known, key = self._own_suite.scans, (candidate.hash, candidate.origin)
        if key not in known:
            ready = self._own_suite.ready
            found = findings_in(candidate, self.task.files, levels_of(self.settings.safety))
            if ready is not None and (packages := ready.packages) is not None:
                files = candidate.files  # what was required in turn came with what a person was asked about
                found = tuple(one for one in found if not packages.vouches(one.path, files[one.path]))
            known[key] = found
        return known[key]

    def left_to_do(self, candidate: Candidate) -> tuple[str, ...]:
        """What a candidate leaves to whoever takes it over, beside its files."""
        ready = self._own_suite.ready
        packages = ready.packages if ready is not None else None
        return packages.told(candidate.files) if isinstance(packages, AddedPackages) else ()

    def vet(self, candidate: Candidate) -> Verdict | None:
        """The verdict on a candidate that must not be run: a rule blocks it, or nobody has allowed it."""
        stopping = [one for one in self.findings_in(candidate) if one.level in ("block", "ask")]
        if not stopping:
            return None
        allowed = answered_uses(self.folder, self.ledger.events)
        refused = [one for one in stopping if one.level == "block" or use_of(one) not in allowed]
        return refused_verdict(candidate, refused) if refused else None

    def _limits(self) -> SandboxSettings:
        """The limits of programs. No run of the tests may take the time that a repair of them needs."""
        limits, left_s = self.settings.sandbox, self.budget.remaining_s()
        if not left_s:
            return limits
        return limits.model_copy(update={"test_wall_s": min(limits.test_wall_s, LONGEST_RUN * left_s)})

    def test_sources(self) -> dict[str, str]:
        """The project's tests, path -> text, as far as known: the suite says which files hold them."""
        suite = self._own_suite.ready
        paths = suite.test_files if suite is not None else ()
        return {path: text_of(self.task.files[path]) for path in paths if path in self.task.files}

    def candidate(self, blob: str) -> Candidate:
        """Read a candidate back."""
        return self.folder.get_record(Candidate, blob)

    def verdict(self, blob: str) -> Verdict:
        """Read a verdict back."""
        return self.folder.get_record(Verdict, blob)

    def agreement_on(self, candidate: str) -> float | None:
        """The share of the other plausible repairs that behave like a candidate, where that is known."""
        proposed = self._proposed(candidate)
        return proposed.agreement if proposed else None

    def rivalry_of(self, candidate: str) -> tuple[int | None, float | None]:
        """A candidate's rivals, and its share of the scores of itself and them, where that was compared."""
        proposed = self._proposed(candidate)
        return (proposed.rivals, proposed.share) if proposed else (None, None)

    def undetermined(self, candidate: Candidate) -> tuple[str, ...]:
        """Rivals of a candidate, in words: the tests do not decide. A part has those of the whole."""
        proposed = self._proposed(candidate.hash)
        if proposed is None or proposed.rivals is None:
            proposed = self._proposed(candidate.parent or "") or proposed
        return proposed.apart if proposed else ()

    def _proposed(self, candidate: str) -> CandidateProposed | None:
        """How a candidate was first proposed."""
        every = those_of(self.ledger.events, CandidateProposed)
        return next((proposed for _, proposed in every if proposed.candidate == candidate), None)

    def keep(self, record: Candidate | Verdict) -> str:
        """Store a record; answers its blob's hash."""
        return self.folder.put_json(to_plain(record))

    def base_verdict(self, state: LoopState) -> Verdict | None:
        """The verdict on the user's own code, where there is such code."""
        first = next(iter(tried_in(state)), None)
        return self.verdict(first.verdict) if first and first.origin == "user" else None

    def coder(self, state: LoopState) -> Role:
        """Who writes the code now: the coder, or from a hard case on the stronger model.

        A fork of an escalated run may have no stronger model any more.
        """
        return "escalate" if state.get("escalated") and self.models.stronger else "coder"

    def progress(self, state: LoopState) -> Progress:
        """What the policy sees."""
        last = [p for p in proposals_in(state) if p.round == state["round"] - 1]
        return Progress(
            kind=self.task.kind,
            round=state["round"],
            tried=tried_in(state),
            samples_asked=state["samples_asked"],
            repairs_asked=state["repairs_asked"],
            attempts_left=self.budget.remaining_attempts(),
            checks=state["checks"],
            faults=tuple(p.fault for p in last) if all(p.fault for p in last) else (),
            last_fault=last[-1].message if last else "",
            may_search=self.may_search and not state.get("searched", True),
            not_code=state["not_code"],
            declined=0 < state["declined"] == state["decisions"],
            attempts_used=self.budget.spend().attempts,
            untrusted=bool(state["aids"].get("generated")),
            may_ask=self.model.name != NO_MODEL,
            may_escalate=self.models.stronger is not None
            and not self.has_proposer
            and not state.get("escalated"),
            escalated=state.get("escalated", 0),
            proposer=self.settings.proposer.turns if self.has_proposer else 0,
            agents_asked=state.get("agents_asked", 0),
            may_work=may_call_tools(self.models.for_role(self.coder(state)).model.name, self.settings),
        )
