"""The conversation with a model that repairs or writes a project: patch, new facts, next patch.

A reply contains a change in any common form, tool calls, or both. After a change the deciding tests run automatically,
and the next message says how they ended. Every step is in the ledger before the next one begins. A run that is resumed
or replayed takes recorded steps from the ledger and does not repeat them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from suture.agents import tuning
from suture.agents.calling.model_call import ModelQuestion, ask
from suture.agents.conversation.agent_tools import AgentTools
from suture.agents.conversation.agent_turn import (
    AgentTurn,
    Opening,
    Patch,
    PatchJudge,
    build_opening,
    find_recorded_step,
    make_patch,
)
from suture.agents.conversation.step_records import (
    StepResult,
    decode_messages,
    decode_step,
    encode_messages,
    record_step,
    render_counts,
    render_known_trial,
    render_trial,
)
from suture.agents.conversation.tool_calls import (
    OFFERED_TOOLS,
    TEXT_CALL,
    MessageHistory,
    ToolInputs,
    read_inputs,
    read_text_calls,
)
from suture.agents.replies.change_reading import read_change
from suture.core.ledger.kinds import AgentBriefed, AgentStepped
from suture.core.ledger.kinds.agents import AgentEnding, AgentProblem
from suture.errors import (
    BudgetExceeded,
    ContextTooLong,
    MalformedReply,
    ModelAuthError,
    ModelError,
    ReplyLost,
)
from suture.judge import find_protected_paths, find_tidiable_files
from suture.models import Message, Reply, Sampling, ToolCall
from suture.models.profiles import ModelProfile, find_profile
from suture.models.tuning import ASCII_CHARS_PER_TOKEN
from suture.project.workspace import decode_text, overlay_candidate

CHANGING_TOOLS = ("edit", "shell")
"""Tools that change files."""


@dataclass(kw_only=True)
class _Progress:
    """The state of a turn, which follows from its steps.

    Attributes:
        patches: The tested patches by number. The first one is the code at the beginning.
        best: The best patch, which the next one begins from: the latest of those that are equally good. It may
            be a part of the repair that has no effect without another part.
        unusable: Consecutive replies that achieved nothing.
        without_gain: Consecutive patches that are not better than the ones before.
        longer_replies: Replies that were cut, after each of which longer ones are allowed.
        lost_replies: Consecutive replies that were lost on their way.
    """

    history: MessageHistory
    patches: list[Patch]
    best: Patch
    changed: Mapping[str, str] = field(default_factory=dict)
    steps: int = 0
    unusable: int = 0
    without_gain: int = 0
    longer_replies: int = 0
    lost_replies: int = 0
    begins_attempt: bool = True

    def add(self, reply: Reply, result: StepResult) -> None:
        """Take over a step."""
        self.steps += 1
        self.lost_replies = 0
        self.begins_attempt = result.patch is not None
        if reply.text or reply.tool_calls:
            # Nothing in a reply that was cut off is applied, so its text would only lengthen each later prompt.
            text = reply.text[: tuning.MAX_COMPACTED_CHARS] if result.problem == "cut" else reply.text
            message = Message(role="assistant", content=text, tool_calls=reply.tool_calls)
            self.history.extend([message, *result.answer])
        self.changed = result.changed
        self.unusable = self.unusable + 1 if result.problem else 0
        self.longer_replies += result.problem == "cut"
        if result.patch is not None:
            self.patches.append(result.patch)
            self.without_gain = 0 if result.patch.is_better_than(self.best) else self.without_gain + 1
            if not result.patch.is_worse_than(self.best):
                self.best = result.patch


async def converse(turn: AgentTurn, judge: PatchJudge) -> None:
    """Let a model work until every deciding test passes, it makes no progress, or its budget is used up.

    Its patches are the candidates that `judge` has recorded.

    Raises:
        BudgetExceeded: There was no budget for the first patch.
        MalformedReply: The model changed nothing.
        ModelError: The model failed, and had changed nothing before.
        SandboxError: The sandbox failed.
    """
    await _Conversation(turn, judge).run()


class _Conversation:
    """One turn of a model."""

    def __init__(self, turn: AgentTurn, judge: PatchJudge) -> None:
        self._turn, self._judge = turn, judge
        role_model = turn.calls.models.for_role(turn.coder)
        self._max_answer_tokens = role_model.max_tokens
        self._profile: ModelProfile = find_profile(role_model.model.name, turn.calls.settings)
        self._room_tokens = _prompt_room_tokens(self._profile, self._max_answer_tokens)
        result_tokens = min(self._room_tokens // tuning.RESULT_SHARE_DIVISOR, tuning.MAX_RESULT_TOKENS)
        self._tools = AgentTools(turn=turn, max_chars=int(result_tokens * ASCII_CHARS_PER_TOKEN))
        start = make_patch(0, {}, turn.verdict, turn.baseline, turn.trust_threshold)
        self._progress = _Progress(history=MessageHistory(opening=()), patches=[start], best=start)
        self._shown_files: tuple[str, ...] = ()

    async def run(self) -> None:
        """Take steps until the turn ends."""
        ending: AgentEnding = ""
        progress = self._progress
        opening = await self._load_opening()
        progress.history.opening, self._shown_files = opening.messages, opening.shown_files
        while not ending and progress.steps < self._turn.max_steps:
            try:
                reply = await self._ask()
                ending = await self._take_step(reply)
            except ModelAuthError:
                raise
            except (BudgetExceeded, ModelError) as fault:
                if len(progress.patches) == 1:
                    raise
                progress.lost_replies += 1
                may_recover = isinstance(fault, ReplyLost) or getattr(fault, "is_transient", False)
                if not may_recover or progress.lost_replies > tuning.MAX_LOST_REPLIES:
                    return  # The patches so far may be enough.
        if len(progress.patches) == 1 and ending != "asks":
            why = f": {ending}" if ending else ""
            raise MalformedReply(f"the agent changed nothing in {progress.steps} step(s){why}")

    async def _load_opening(self) -> Opening:
        """Return the first messages; those that are recorded, if there are any, so that replies are found again."""
        turn, calls = self._turn, self._turn.calls
        recorded = find_recorded_step(
            AgentBriefed, lambda event: event.turn == turn.number, lambda event: (event.messages,), calls
        )
        if recorded is not None:
            recorded.adopt(calls)
            briefed = recorded.payload
            messages = decode_messages(recorded.blobs[briefed.messages])
            return Opening(messages=messages, shown_files=briefed.shown_files)
        max_tokens = min(self._room_tokens // 2, tuning.MAX_OPENING_TOKENS)
        opening = await build_opening(turn, self._profile, max_tokens)
        blob = calls.folder.save_json(encode_messages(opening.messages))
        calls.ledger.append(AgentBriefed(turn=turn.number, messages=blob, shown_files=opening.shown_files))
        return opening

    async def _ask(self) -> Reply:
        """Return the next reply. A prompt that the provider calls too long is shortened.

        A reply after a tested patch is another attempt; other replies, such as calls of tools, belong to the
        same one.
        """
        turn, progress = self._turn, self._progress
        longer = min(tuning.RETRY_LENGTH_FACTOR**progress.longer_replies, tuning.MAX_LENGTH_FACTOR)
        question = ModelQuestion(
            role=turn.coder,
            messages=(),
            prompt=turn.calls.prompts.load("agent").hash,
            sampling=Sampling(
                temperature=turn.move.temperature,
                max_tokens=longer * self._max_answer_tokens,
                # The number of a repeated question distinguishes it from the lost one, which a replay loses again.
                index=(turn.move.index + tuning.LOST_REPLY_STRIDE * progress.lost_replies) * turn.max_steps
                + progress.steps,
            ),
            move="agent",
            is_retry=not progress.begins_attempt,
            tools=OFFERED_TOOLS if turn.offers_tools and self._profile.tools else (),
        )
        for retries in range(tuning.MAX_PROMPT_RETRIES + 1):
            # Each time that the provider rejects the prompt as too long, the token limit shrinks by a third. The factor
            # is chosen by judgement; not measured.
            messages = progress.history.within(int(self._room_tokens * (2 / 3) ** retries))
            try:
                return await ask(replace(question, messages=messages), turn.calls)
            except ContextTooLong:
                if retries == tuning.MAX_PROMPT_RETRIES:
                    raise
        raise AssertionError("unreachable")

    async def _take_step(self, reply: Reply) -> AgentEnding:
        """Answer a reply, or take the answer from the ledger. Return why the turn ends; empty if it continues."""
        turn, progress = self._turn, self._progress
        number, started_s = progress.steps + 1, time.monotonic()
        recorded = find_recorded_step(
            AgentStepped,
            lambda step: (step.turn, step.number) == (turn.number, number),
            lambda step: (step.answer, step.changes, step.tested, step.verdict),
            turn.calls,
        )
        if recorded is None:
            result = await self._answer(reply)
            seconds = time.monotonic() - started_s
            record_step(result, self._calls_in(reply), turn, number, seconds)
        else:
            result = decode_step(recorded.payload, recorded.blobs, turn)
            if result.patch is not None or result.ending == "asks":
                tested = result.patch.changed if result.patch is not None else result.changed
                patch_number = len(progress.patches)
                if recorded.is_own:
                    verdict = result.patch.verdict if result.patch is not None else None
                    self._judge.restore(tested, patch_number, verdict)
                else:  # A replay judges again, so that its verdicts confirm the recorded ones.
                    await self._judge.judge(tested, patch_number, reply.call_hash)
            recorded.adopt(turn.calls)
        progress.add(reply, result)
        return result.ending

    async def _answer(self, reply: Reply) -> StepResult:
        """Carry out what a reply asks for, and test its change."""
        fault = _find_fault(reply)
        if fault is not None:
            problem, note = fault
            answers = [(call, note) for call in reply.tool_calls]
            return self._finish(reply, answers, [note], self._progress.changed, problem)
        calls = self._calls_in(reply)
        changed, notes = self._read_text(reply.text)
        if any(call.name in CHANGING_TOOLS for call in calls):
            notes = []  # The calls hold the change; code in the text only explains it.
        is_complete, wants_tests = not notes, False
        outputs: list[tuple[ToolCall, str]] = []
        for call in calls:
            inputs = read_inputs(call)
            wants_tests |= inputs.name == "run_tests"
            text, changed, failed = await self._use(inputs, changed)
            is_complete &= not failed
            outputs.append((call, text))
        earlier = next((patch for patch in self._progress.patches if patch.changed == changed), None)
        is_changed = changed != self._progress.changed
        if earlier is None and (wants_tests or (is_changed and is_complete)):
            return await self._test(reply, outputs, notes, changed)
        if earlier is None or not is_changed or not is_complete:
            return self._answer_untested(reply, outputs, notes, changed, is_complete=is_complete)
        notes.append(f"These are the files of an earlier patch again. {render_counts(earlier)}")
        return self._finish(reply, outputs, notes, self._progress.best.changed, "same_patch")

    def _calls_in(self, reply: Reply) -> tuple[ToolCall, ...]:
        """Return the calls of a reply: native ones, or those in its text for a model without a tool protocol."""
        return reply.tool_calls if self._profile.tools else read_text_calls(reply.text)

    def _read_text(self, text: str) -> tuple[Mapping[str, str], list[str]]:
        """Return `(changes, notes)`: all changes, including those in the text of a reply, and why others are left out.

        A change that does not apply to the present files, but to those of an earlier patch, builds on that one.
        """
        present, notes = self._read_text_after(self._progress.changed, text)
        if notes:
            for patch in reversed(self._progress.patches):
                changed, problems = self._read_text_after(patch.changed, text)
                if not problems and changed != patch.changed:
                    return changed, []
        return present, notes

    def _read_text_after(self, before: Mapping[str, str], text: str) -> tuple[dict[str, str], list[str]]:
        """Return the changes and notes of a reply to the files with the changes `before` (path -> text)."""
        turn = self._turn
        files = {
            path: decode_text(content)
            for path, content in overlay_candidate(turn.files, before).items()
            if b"\0" not in content
        }
        for path in self._shown_files:
            files.setdefault(path, "")  # the file to write
        change = read_change(
            TEXT_CALL.sub("", text), files, shown=self._shown_files or None, protected=self._protected_paths
        )
        allowed, refused = self._tools.check_changes(change.files, before)
        notes = [problem.render() for problem in change.problems]
        notes += [f"Not applied: {reason}." for reason in refused]
        if notes:
            applied = ", ".join(sorted(allowed))
            notes.append(
                f"The change of {applied} is applied: do not send it again."
                if applied
                else "Nothing of this reply is applied. Send all of the change again."
            )
        return self._tools.add_changes(allowed, before), notes

    @cached_property
    def _protected_paths(self) -> tuple[str, ...]:
        suite = self._turn.suite
        protected = {*find_protected_paths(self._turn.files, suite)} - find_tidiable_files(suite)
        return tuple(sorted(protected))

    async def _use(
        self, inputs: ToolInputs, changed: Mapping[str, str]
    ) -> tuple[str, Mapping[str, str], bool]:
        """Carry out one call. Return its result for the model, the changes after it, and whether an edit failed."""
        if inputs.error:
            return inputs.error, changed, inputs.name == "edit"
        if inputs.name == "run_tests":
            return self._render_known_tests(changed), changed, False
        result = await self._tools.use(inputs, changed)
        return result.text, result.changed, result.failed

    def _render_known_tests(self, changed: Mapping[str, str]) -> str:
        """Return the result of the tests if it is known; else a message that they run after this reply."""
        tested = next((patch for patch in self._progress.patches if patch.changed == changed), None)
        if tested is None or tested.verdict is None:
            return "The tests run on all changes of this reply; the result is below."
        return render_known_trial(tested, self._turn.trust_threshold)

    def _answer_untested(
        self,
        reply: Reply,
        outputs: Sequence[tuple[ToolCall, str]],
        notes: list[str],
        changed: Mapping[str, str],
        *,
        is_complete: bool,
    ) -> StepResult:
        """Return the result of a reply whose changes are not tested: it has none, or some could not be applied."""
        if not is_complete:
            if changed != self._progress.changed:
                notes.append("The tests have not run yet.")
            return self._finish(reply, outputs, notes, changed, "not_applied")
        if outputs:
            return self._finish(reply, outputs, notes, changed)
        known = next((p for p in self._progress.patches[1:] if p.changed == changed), None)
        state = f" They are as after patch {known.number}." if known else ""
        notes.append(f"Your reply does not change the files.{state} Send another change, or call a tool.")
        return self._finish(reply, outputs, notes, changed, "no_change")

    async def _test(
        self,
        reply: Reply,
        outputs: Sequence[tuple[ToolCall, str]],
        notes: list[str],
        changed: Mapping[str, str],
    ) -> StepResult:
        """Run the deciding tests on a new patch."""
        turn, progress = self._turn, self._progress
        number, threshold = len(progress.patches), turn.trust_threshold
        try:
            verdict = await self._judge.judge(changed, number, reply.call_hash)
        except MalformedReply as fault:
            notes.append(f"The change was not applied: {fault.message}.")
            return self._finish(reply, outputs, notes, progress.changed, "not_applied")
        if verdict is None:
            notes.append("A person has to allow this change.")
            return self._finish(reply, outputs, notes, changed, ending="asks")
        patch = make_patch(number, changed, verdict, turn.baseline, threshold)
        is_kept = not patch.is_worse_than(progress.best)
        notes.append(render_trial(patch, progress.best, turn, is_kept=is_kept))
        has_gain = patch.is_better_than(progress.best)
        ending: AgentEnding = "passed" if patch.passes else ""
        if not has_gain and progress.without_gain + 1 >= tuning.MAX_PATCHES_WITHOUT_GAIN:
            ending = "stalled"
        next_files = changed if is_kept else progress.best.changed
        return self._finish(reply, outputs, notes, next_files, ending=ending, patch=patch)

    def _finish(
        self,
        reply: Reply,
        outputs: Sequence[tuple[ToolCall, str]],
        notes: Sequence[str],
        changed: Mapping[str, str],
        problem: AgentProblem = "",
        *,
        ending: AgentEnding = "",
        patch: Patch | None = None,
    ) -> StepResult:
        """Return the result of a step, with the messages that answer its reply."""
        if problem and self._progress.unusable + 1 >= tuning.MAX_UNUSABLE_REPLIES:
            ending = "repeated" if problem == "same_patch" else "unusable"
        answer = _answer_calls(outputs, notes) if reply.tool_calls else _answer_text(outputs, notes)
        return StepResult(answer=answer, changed=changed, patch=patch, problem=problem, ending=ending)


def _find_fault(reply: Reply) -> tuple[AgentProblem, str] | None:
    """Return why nothing in a reply is carried out, as a code and for the model; `None` if the reply is whole."""
    if reply.finish == "length":
        return "cut", (
            "Your reply was cut at the limit of its length, and nothing of it was applied. Send a shorter one: "
            "edits of the lines that change in place of whole files."
        )
    if not reply.text.strip() and not reply.tool_calls:
        return "empty", "Your reply was empty. Answer with the change."
    return None


def _answer_calls(outputs: Sequence[tuple[ToolCall, str]], notes: Sequence[str]) -> tuple[Message, ...]:
    """Return the results of native calls, one message each. The notes are in the last one.

    Not every provider takes a user's message right after a tool's.
    """
    messages = [
        Message(role="tool", content=text or "(nothing)", tool_call_id=call.id) for call, text in outputs
    ]
    last = messages[-1]
    texts = [last.content, *(note for note in notes if note != last.content)]
    return (*messages[:-1], replace(last, content="\n\n".join(texts)))


def _answer_text(outputs: Sequence[tuple[ToolCall, str]], notes: Sequence[str]) -> tuple[Message, ...]:
    """Return one message with the results of calls in the text of a reply, and with the notes."""
    texts = [f"Result of {call.name}:\n{text}" for call, text in outputs]
    return (Message(role="user", content="\n\n".join([*texts, *notes])),)


def _prompt_room_tokens(profile: ModelProfile, max_answer_tokens: int) -> int:
    """Return the tokens that a prompt may have: the context without the reply, up to a limit."""
    context_tokens = profile.context_tokens or tuning.DEFAULT_CONTEXT_TOKENS
    room_tokens = context_tokens - min(profile.reply_tokens(max_answer_tokens), context_tokens // 2)
    return min(room_tokens, tuning.MAX_PROMPT_TOKENS)
