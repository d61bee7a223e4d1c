"""The certificate: what was proved of one change, what it takes to prove it again, and what is only said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.core.records import Check, Evidence, Language, Project, Task, TaskKind, Verdict
from suture.core.records.result import render_html
from suture.judge import Suite

FORMAT = "suture-certificate/2"
CERTIFICATE = "certificate.json"
"""The certificate's name in the run folder."""
PASSES_TOO = "passes too, may do otherwise: "
"""What a warning begins with that names a rival, and is no sign of gaming."""


@dataclass(frozen=True, kw_only=True)
class CertifiedTask:
    """A task without its files: what was asked, and by what it was judged; the fields are those of `Task`.

    Attributes:
        source_roots: Folders of the project, relative to it, that its environment has on `sys.path`.
    """

    kind: TaskKind
    statement: str = ""
    module: str = "solution.py"
    beside: tuple[str, ...] = ()
    several: bool = False
    entry_point: str | None = None
    language: Language = "python"
    checks: tuple[Check, ...] = ()
    test_command: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    source_roots: tuple[str, ...] = ()
    project: Project | None = None

    def with_files(self, files: Mapping[str, bytes]) -> Task:
        """The task that the certificate describes, with the files of the project."""
        return Task(
            statement=self.statement,
            kind=self.kind,
            language=self.language,
            module=self.module,
            extra_modules=self.beside,
            allows_more_files=self.several,
            entry_point=self.entry_point,
            files=files,
            checks=self.checks,
            test_command=self.test_command,
            protected=self.protected,
            writable=self.only,
            project=self.project,
        )


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Which changed statements the tests run.

    Attributes:
        unmeasured: Why there is no measurement; empty where there is one.
        changed: Path -> first lines of the changed statements, in the changed file.
        covered: Path -> those of them that ran.
    """

    unmeasured: str = ""
    changed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    covered: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MutantRun:
    """One small change of a changed statement, as a diff over the result, and whether a test noticed it."""

    path: str
    line: int
    label: str
    diff: str
    killed: bool


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """How well the tests guard the changed statements.

    Attributes:
        unmeasured: Why there is no measurement, or not all of it; empty where all that were drawn were run.
        generated: Mutants that there are to draw from.
        drawn: How many are to be run, by the rule of `mutation_testing.py`; `None` where time ran out before.
        mutants: Those that were run: the first of the drawn.
    """

    unmeasured: str = ""
    generated: int = 0
    drawn: int | None = None
    mutants: tuple[MutantRun, ...] = ()

    @property
    def killed(self) -> int:
        """Mutants that some passing test noticed."""
        return sum(run.killed for run in self.mutants)

    @property
    def least_score(self) -> float | None:
        """The share of the drawn mutants that a test is known to notice; `None` where there are none.

        What was not run counts as not noticed: whoever measures less, by need or by choice, gains nothing.
        """
        if self.drawn == 0:
            return None
        return self.killed / self.drawn if self.drawn else 0.0


@dataclass(frozen=True, kw_only=True)
class MinimisationSummary:
    """What delta debugging made of the change.

    Attributes:
        edits_found: Edits, counted in lines, of the candidate as it was found.
        edits: Edits that are left.
        runs: Verdicts that it took.
        is_minimal: Whether nothing that may be left out can be spared; false where the limit came first.
        left_out: Parts that were left out, though somebody wrote them: files, and functions in them.
    """

    edits_found: int = 0
    edits: int = 0
    runs: int = 0
    is_minimal: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lint:
    """New findings of a linter on changed lines; `absent` says why it was not asked."""

    tool: str = ""
    absent: str = ""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnverifiedClaims:
    """What running does not prove: nobody can tell from code which model wrote it, or what it cost.

    Attributes:
        run: The run's id.
        suture: The version that made it.
        made_at_s: Seconds since the epoch.
        model: Who wrote the code, as `provider:model`; else the model of the run.
        seed: The setting `model.seed`.
        prompts: Hashes of the files of prompts that were used.
        calls: Hashes of the calls of models, which name their replies in the run's folder.
        recipe: The recipe's name.
        label: How the candidate came to be, in a few words.
        attempts: Candidates asked of a model.
        tokens: Those of prompts and replies together.
        model_calls: Calls of models.
        seconds: Wall-clock seconds of the run.
        python: The version of the tests' interpreter.
        limits: The numbers among the settings of the sandbox, by their names.
        agreement: The share of the other plausible repairs that behave like this one; `None` where unknown.
        rivals: Other repairs that pass and may do otherwise; more than none lower the confidence.
        share: Its part of the scores of itself and those rivals, which limits the confidence; 0 for none.
        warnings: Signs that the change games the tests.
        accepted_tests: Tests that a model wrote and a person accepted before they decided anything.
        minimal: What delta debugging made of the change.
        lint: What a linter newly finds.
    """

    run: str = ""
    suture: str = ""
    made_at_s: float = 0.0
    model: str = ""
    seed: int = 0
    prompts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    recipe: str = ""
    label: str = ""
    attempts: int = 0
    tokens: int = 0
    model_calls: int = 0
    seconds: float = 0.0
    python: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    agreement: float | None = None
    rivals: int = 0
    share: float = 0.0
    warnings: tuple[str, ...] = ()
    accepted_tests: tuple[str, ...] = ()
    minimal: MinimisationSummary = field(default_factory=MinimisationSummary)
    lint: Lint = field(default_factory=Lint)

    @property
    def warned(self) -> bool:
        """Whether there are signs that the change games the tests."""
        return not all(warning.startswith(PASSES_TOO) for warning in self.warnings)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was proved of one change, with all that it takes to prove it again without a model.

    Attributes:
        format: Which shape this is.
        task: What was asked, and by what it was judged.
        project: Path -> SHA-256 of each file before the change.
        project_hash: The content hash of `project`.
        diff: The change as a unified diff.
        result: Changed path -> SHA-256 after the change.
        evidence: The kind of evidence of the verdicts.
        before: Check -> what it said before the change; empty where there was no code yet.
        after: Check -> what it said after the change.
        fixed: Checks that failed before and pass after.
        newly_failing: Checks that passed before and do not pass after; a certificate with any is false.
        coverage: Which changed statements the tests run.
        mutation: How well the tests guard them.
        confidence: In [0, 1], by the model of `proof/confidence.py` over all of the above, and lowered by the
            rivals and the signs of gaming that are claimed. That a search found no rival raises the result's
            alone: nobody can find it out anew.
        claims: What running does not prove.
        seal: The content hash of everything else; it shows accidents, while forgery is shown by replaying.
    """

    format: str = FORMAT
    task: CertifiedTask
    project: Mapping[str, str]
    project_hash: str
    diff: str
    result: Mapping[str, str]
    evidence: Evidence
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str]
    fixed: tuple[str, ...] = ()
    newly_failing: tuple[str, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    mutation: Mutation = field(default_factory=Mutation)
    confidence: float = 0.0
    claims: UnverifiedClaims = field(default_factory=UnverifiedClaims)
    seal: str = ""

    def _repr_html_(self) -> str:
        """For notebooks."""
        changed = sum(map(len, self.coverage.changed.values()))
        covered = sum(map(len, self.coverage.covered.values()))
        killed = sum(mutant.killed for mutant in self.mutation.mutants)
        rows = (
            ("fixed", "\n".join(self.fixed)),
            ("newly failing", "\n".join(self.newly_failing)),
            ("evidence", self.evidence),
            ("coverage", self.coverage.unmeasured or f"{covered} of {changed} changed statements run"),
            (
                "mutation",
                self.mutation.unmeasured or f"{killed} of {len(self.mutation.mutants)} mistakes caught",
            ),
            ("confidence, at least", f"{self.confidence:.2f}"),
            ("seal", self.seal),
        )
        return render_html("certificate", rows, self.diff)


def certify_task(suite: Suite) -> CertifiedTask:
    """A suite's task as a certificate holds it."""
    task = suite.task
    return CertifiedTask(
        kind=task.kind,
        statement=task.statement,
        module=task.module,
        beside=task.extra_modules,
        several=task.allows_more_files,
        entry_point=task.entry_point,
        language=task.language,
        checks=task.checks,
        test_command=task.test_command,
        protected=task.protected,
        only=task.writable,
        source_roots=suite.command.interpreter.source_roots if suite.command else (),
        project=task.project,
    )


def statuses(verdict: Verdict | None) -> dict[str, str]:
    """Id of each check -> its status; none where there is no verdict."""
    return {o.check_id: o.status for o in verdict.outcomes} if verdict else {}


def new_failures(before: Verdict | None, after: Verdict) -> tuple[str, ...]:
    """Checks that passed before and do not pass after; one that is gone has failed."""
    return tuple(sorted(before.passed - after.passed)) if before else ()
