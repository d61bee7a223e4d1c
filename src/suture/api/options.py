"""The options of `heal` and `solve`. Every interface builds one such value and passes it on whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suture.core.ledger.reading import Listener
from suture.core.settings import Settings
from suture.loop.review.questions import Asker, Reviewer
from suture.models import Model
from suture.sandbox import Sandbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that `heal` and `solve` share.

    Attributes:
        settings: The settings of the run. By default they are loaded from the environment and from the
            settings files of the project and the user.
        model: The model to ask: `provider:model`, a `Model`, or a LangChain chat model. By default the one
            that the settings name.
        sandbox: Where untrusted code runs. By default a sandbox is opened as the settings say, and closed at
            the end of the run.
        apply: Write the verified change into the project when every trusted check passes.
        replies: A record to answer model calls from: a run (`last`, its id or its folder) or a reply file.
        or_live: Ask the model for calls that `replies` does not hold, instead of failing.
        on_review: Called where `loop.autonomy` asks for a person. It may be async. It returns the answer, or
            `None` to park the run with the outcome `waiting`.
        on_event: Called with each event of the run's ledger. An exception that it raises is raised again when
            the run has ended.
        run_id: The id of the new run, where one was reserved with `suture.core.ledger.new_run_id`.
        requested_at_s: When the user asked for the run, in seconds since the epoch, if that was before the
            call. The time budget counts from then.
    """

    settings: Settings | None = None
    model: str | Model | BaseChatModel | None = None
    sandbox: Sandbox | None = None
    apply: bool = False
    replies: str | Path | None = None
    or_live: bool = False
    on_review: Reviewer | None = None
    on_event: Listener | None = None
    run_id: str = ""
    requested_at_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class HealOptions(RunOptions):
    """Options of `heal`; those that it shares with `solve` are documented in `RunOptions`.

    Attributes:
        test: The test command. By default the setting `project.test`, else the command that the project's
            files suggest: pytest, unittest, `npm test` or `go test ./...`.
        protect: Globs of files that must not change, besides the tests and the project's configuration.
        only: Globs of the files that may change. By default every file that is not protected.
        since: The oldest commit that may have broken the tests. Suture finds the commit that did by running
            the failing tests on earlier code, and starts its search there. By default it considers the last
            few commits of a git repository.
        bug_report: What you know about the fault: an issue, a log, a hint. A model reads it. Where every test
            passes, the model first writes a test that shows the fault, and `on_review` decides whether to
            use it.
        ask: Called once where two repairs that a search found behave differently. It may be async. It gets
            an input on which they differ and says which answer is right, or `None` if it does not know.
            `True` sends the question to `on_review`, or parks the run where there is no `on_review`.
            By default nobody is asked.
        commit: Write the change into the project, and commit it.
        branch: Commit the change on a new branch of this name; nothing else changes.
        patch: Write the change into a new file as a diff.
        reads_parents: Whether files above the folder may be read that decide its tests, up to the root of its
            repository. Suture's servers read none, because a caller may only name folders below allowed ones.
    """

    test: str | Sequence[str] | None = None
    protect: Sequence[str] = ()
    only: Sequence[str] = ()
    since: str | None = None
    bug_report: str = ""
    ask: Asker | bool | None = None
    commit: bool = False
    branch: str | None = None
    patch: str | Path | None = None
    reads_parents: bool = True


@dataclass(frozen=True, kw_only=True)
class WriteOptions(RunOptions):
    """Options of `solve`; those that it shares with `heal` are documented in `RunOptions`.

    `apply` writes the code into the current folder, or into `existing`.

    Attributes:
        test: A file of tests: pytest tests, or plain asserts.
        asserts: Plain asserts as text.
        entry_point: The name to define, where the statement does not say it.
        language: The language to write: `python`, `node`, `typescript` or `go`.
        project: The kind of project to make: `web_app`, `data_pipeline`, `cli_tool` or `library`. Suture
            starts it in the sandbox and checks it from outside.
        ask: If neither a test nor an example says what is right, send results of the code to `on_review`; without
            `on_review` the run waits for the answer. By default nobody is asked, and such code stays unverified.
        existing: The folder of a project that gets a new feature. Its own tests decide, and must pass before.
        sample: Data on which a data pipeline is run.
        skeleton: Whether the model writes only one file of a new project, and Suture provides the others; by
            default that is so for small models. There are skeletons for Python, JavaScript, TypeScript and Go.
        into: Write all files of the code into this folder, which is created if needed. The code may then be
            several files. With `existing`, the whole project is written there.
    """

    test: str | Path | None = None
    asserts: str = ""
    entry_point: str | None = None
    language: str | None = None
    project: str | None = None
    ask: bool = False
    existing: str | Path | None = None
    sample: str | Path | None = None
    skeleton: bool | None = None
    into: str | Path | None = None
