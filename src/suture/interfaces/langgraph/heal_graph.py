"""The graph `heal`: run, ask a person where the run waits, and continue, until the run has ended.

A thread of this graph follows one run of Suture, whose record stays the only record. If a thread is forked at a
question that its run has passed already, the other answer continues in a fork of the run.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Any, Literal, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from suture.api import HealOptions, Review, ReviewAnswer, fork_from_iteration, heal, pending_review, resume
from suture.core.interruption import run_in_loop_thread
from suture.core.ledger import Event, encode_event, find_run, read_ledger, select_events
from suture.core.ledger.kinds import MovesDecided
from suture.core.ledger.reading import Listener
from suture.core.records import Result, render_reason
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.interfaces.narrative.review_text import review_as_json


class HealInput(TypedDict, total=False):
    """What to heal, and how.

    Attributes:
        project: The project's folder.
        test: The test command; by default the one that the project's files suggest.
        bug_report: What you know about the fault.
        settings: Settings by their dotted key, such as `{"loop.autonomy": "review_all"}`.
    """

    project: str
    test: str
    bug_report: str
    settings: dict[str, Any]


class HealOutput(TypedDict, total=False):
    """How the run ended, or why it waits.

    Attributes:
        run: The id of the run; `suture show RUN` tells all about it.
        outcome: As in `Result`; `waiting` while a question is open.
        reason: Why, in words.
        diff: The verified change; empty if nothing changed. Nothing is applied: see `suture apply RUN`.
        confidence: Confidence in the result, in [0, 1].
        warnings: Signs that the change does not solve the task.
    """

    run: str
    outcome: str
    reason: str
    diff: str
    confidence: float
    warnings: list[str]


class HealState(HealInput, HealOutput, total=False):
    """The state of a thread.

    Attributes:
        question: The open question, as `GET /runs/{run}` of `suture serve` shows it.
        step: The number of decisions that the run had carried out before the one that it asks about.
        answer: The arguments of the `ReviewAnswer` that a person has given.
    """

    question: dict[str, Any]
    step: int
    answer: dict[str, Any]


HealGraph = CompiledStateGraph[HealState, None, HealInput, HealOutput]


def make_heal_graph() -> HealGraph:
    """Return the graph, for `langgraph.json` or as a node of another graph.

    A question interrupts it, so it needs a checkpointer where `loop.autonomy` asks a person; LangGraph's server
    and a parent graph bring their own. Resume it by the arguments of a `ReviewAnswer`, such as
    `Command(resume={"choice": "approve"})`. The events of the run are streamed as `custom`.
    """
    graph = StateGraph(HealState, input_schema=HealInput, output_schema=HealOutput)
    graph.add_node("heal", _heal)
    graph.add_node("ask", _ask)
    graph.add_node("continue", _continue)
    graph.add_edge(START, "heal")
    graph.add_conditional_edges("heal", _next_node)
    graph.add_edge("ask", "continue")
    graph.add_conditional_edges("continue", _next_node)
    return graph.compile(name="suture_heal")


def _next_node(state: HealState) -> Literal["ask", "__end__"]:
    return "ask" if state["outcome"] == "waiting" else "__end__"


async def _heal(state: HealState) -> HealState:
    if not state.get("project"):
        raise UsageError("no project was given", remedy='give the input {"project": FOLDER}')
    return await run_in_loop_thread(_start_run(state, _stream_events()))


async def _start_run(state: HealState, on_event: Listener) -> HealState:
    settings = _load_settings(state)
    options = HealOptions(
        settings=settings,
        test=state.get("test") or None,
        bug_report=state.get("bug_report", ""),
        on_event=on_event,
    )
    return _describe(await heal(state["project"], options), settings)


async def _ask(state: HealState) -> HealState:
    """Interrupt the graph with the run's question, and again with the problem of an answer that does not fit."""
    question, problem = state["question"], ""
    while True:
        answer = interrupt({**question, "problem": problem})
        try:
            _require_answer(answer, question["choices"])
        except UsageError as fault:
            problem = str(fault)
        else:
            return {"answer": answer}


def _require_answer(answer: Any, choices: Sequence[str]) -> None:
    fields = [field.name for field in dataclasses.fields(ReviewAnswer)]
    if not isinstance(answer, dict) or answer.get("choice") not in choices or not answer.keys() <= {*fields}:
        raise UsageError(
            "this is no answer to the question",
            remedy=f"give {', '.join(fields)}; the choices are {', '.join(choices)}",
        )
    hint, files = answer.get("hint", ""), answer.get("files", {})
    if not isinstance(hint, str) or not _is_text_mapping(files):
        raise UsageError("`hint` must be a text, and `files` must map paths to texts")
    ReviewAnswer(**answer)


def _is_text_mapping(files: Any) -> bool:
    return isinstance(files, dict) and all(isinstance(text, str) for text in (*files, *files.values()))


async def _continue(state: HealState) -> HealState:
    return await run_in_loop_thread(_continue_run(state, _stream_events()))


async def _continue_run(state: HealState, on_event: Listener) -> HealState:
    """Answer the run's question; if the run has passed it, let a fork of the run ask it again and answer that."""
    settings = _load_settings(state)
    run, asked, answer = state["run"], state["question"]["key"], ReviewAnswer(**state["answer"])

    def answer_question(review: Review) -> ReviewAnswer | None:
        return answer if review.key == asked else None

    question = pending_review(run, settings=settings)
    if question is not None and question.key == asked:
        result = await resume(run, settings=settings, on_review=answer_question, on_event=on_event)
    else:
        step = state["step"]
        result = await fork_from_iteration(
            run, step, settings=settings, on_review=answer_question, on_event=on_event
        )
    return _describe(result, settings)


def _load_settings(state: HealState) -> Settings:
    return load_settings(Path(state["project"]), state.get("settings", {})).settings


def _stream_events() -> Listener:
    """Return a listener that streams the events of a run, which another thread writes."""
    loop, write, node = asyncio.get_running_loop(), get_stream_writer(), copy_context()

    def listen(event: Event) -> None:
        values = {"run": event.run, **encode_event(event)}
        loop.call_soon_threadsafe(write, values, context=node)

    return listen


def _describe(result: Result, settings: Settings) -> HealState:
    """Return what the state says about a run that has ended or waits."""
    described: HealState = {
        "run": result.run_id,
        "outcome": result.outcome,
        "reason": render_reason(result.reason),
        "diff": result.diff,
        "confidence": result.confidence,
        "warnings": list(result.warnings),
    }
    if result.outcome == "waiting":
        described |= _describe_question(result.run_id, settings)
    return described


def _describe_question(run: str, settings: Settings) -> HealState:
    review = pending_review(run, settings=settings)
    assert review is not None  # The run waits for its answer.
    events = read_ledger(find_run(settings.paths.home, run).ledger_path).events
    decisions = sum(1 for _ in select_events(events, MovesDecided))
    question = {**review_as_json(review), "key": review.key, "choices": list(review.choices)}
    return {"question": question, "step": max(0, decisions - 1)}
