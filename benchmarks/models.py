"""Measure how fast the embedded server is on this machine, and what its options gain.

    python benchmarks/models.py [--model NAME] [--runs N] [--threads 1 2] [--slots 1 2] [--json]

For each number of threads and slots it prints medians of: tokens per second of reading a prompt and of writing,
the time to the first token, and the time of one round of samples that share a prompt, requested in three ways: as
a run does (`run`), as separate requests at the same time (`separate`), and so without reuse of what a slot holds
(`no_reuse`). The number of evaluated prompt tokens is the server's own count. The ways are measured in turn,
because the speed of a machine changes by the minute: only the ratios count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable
from typing import Any

import httpx
from script_exit import run_script

from suture.core.settings import ModelSettings, Settings
from suture.models import Message, Sampling
from suture.models.llama_server.local_model import LocalModel
from suture.models.llama_server.server_process import LlamaServer
from suture.models.llama_server.shared_servers import list_shared_servers, stop_shared_servers

PROMPT = (
    "You write small, careful Python functions. Handle empty input, and name things well.\n"
    + "".join(
        f"Rule {number}: a function does one thing, and its name says which.\n" for number in range(1, 9)
    )
    + "Write a function that merges overlapping intervals.\n"
)
ROUND = 4
REPLY_TOKENS = 24
TIMEOUT_S = 600.0


async def ask(server: LlamaServer, index: int, *, reuse: bool, nonce: str) -> dict[str, float]:
    """Return one streamed reply: seconds to its first token, and what the server counted.

    Args:
        server: The server.
        index: The number of the sample.
        reuse: Whether the server may continue from a prompt that a slot holds.
        nonce: The beginning of the prompt, so that rounds share nothing.
    """
    body = {
        "prompt": nonce + PROMPT,
        "n_predict": REPLY_TOKENS,
        "temperature": 0.8,
        "seed": index,
        "ignore_eos": True,
        "cache_prompt": reuse,
        "stream": True,
    }
    headers = {"Authorization": f"Bearer {server.key}"}
    start_s = time.perf_counter()
    first_s = 0.0
    timings: dict[str, float] = {}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client,
        client.stream("POST", f"{server.url}/completion", json=body, headers=headers) as answer,
    ):
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: "):
                continue
            first_s = first_s or time.perf_counter() - start_s
            timings = json.loads(line.removeprefix("data: ")).get("timings", timings)
    return {**timings, "first_token_s": first_s, "seconds": time.perf_counter() - start_s}


async def sample(model: LocalModel, index: int, nonce: str) -> None:
    """Request one reply as the coder of a run does."""
    prompt = [Message(role="user", content=nonce + PROMPT)]
    await model.complete(prompt, Sampling(temperature=0.8, max_tokens=REPLY_TOKENS, index=index))


async def prompt_tokens_evaluated(server: LlamaServer) -> int:
    """Return the evaluated prompt tokens of all requests so far, by the server's count."""
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client:
        told = await client.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {server.key}"})
    told.raise_for_status()
    lines = dict(line.rsplit(" ", 1) for line in told.text.splitlines() if not line.startswith("#"))
    return int(lines["llamacpp:prompt_tokens_total"])


async def measure_round(server: LlamaServer, *replies: Awaitable[Any]) -> dict[str, float]:
    """Return how long a round of simultaneous samples takes, and how many prompt tokens are evaluated for it."""
    before = await prompt_tokens_evaluated(server)
    start_s = time.perf_counter()
    await asyncio.gather(*replies)
    seconds = time.perf_counter() - start_s
    return {"seconds": seconds, "evaluated": await prompt_tokens_evaluated(server) - before}


async def measure(name: str, threads: int, slots: int, runs: int) -> dict[str, Any]:
    """Measure one variant: a single reply, then a round in each way, in turn."""
    knobs = ModelSettings(
        name=f"local:{name}", context_tokens=1024, threads=threads, slots=slots, timeout_s=TIMEOUT_S
    )
    model = LocalModel(name, Settings(model=knobs))
    singles: list[dict[str, float]] = []
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ("run", "separate", "no_reuse")}
    try:
        await sample(model, 0, "warming up ")
        (server,) = list_shared_servers()
        for run in range(runs):
            singles.append(await ask(server, 0, reuse=False, nonce=f"A{run} "))
            asked = (sample(model, n, f"B{run} ") for n in range(ROUND))
            rounds["run"].append(await measure_round(server, *asked))
            for way, reuse in (("separate", True), ("no_reuse", False)):
                replies = (ask(server, n, reuse=reuse, nonce=f"{way}{run} ") for n in range(ROUND))
                rounds[way].append(await measure_round(server, *replies))
    finally:
        await model.close()
        stop_shared_servers()
    single, ways = medians(singles), {way: medians(measured) for way, measured in rounds.items()}
    return {
        "threads": threads,
        "slots": slots,
        "prompt_tokens_per_s": round(single["prompt_per_second"], 1),
        "reply_tokens_per_s": round(single["predicted_per_second"], 1),
        "first_token_s": round(single["first_token_s"], 2),
        "prompt_tokens": int(single["prompt_n"]),
        "samples": ROUND,
        "round_s": {way: round(median["seconds"], 2) for way, median in ways.items()},
        "round_ratio": {
            way: round(ways[way]["seconds"] / ways["no_reuse"]["seconds"], 2) for way in ("run", "separate")
        },
        "prompt_tokens_evaluated": {way: int(median["evaluated"]) for way, median in ways.items()},
    }


def medians(measured: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(entry[name] for entry in measured) for name in measured[0]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        asyncio.run(measure(given.model, threads, slots, given.runs))
        for threads in given.threads
        for slots in given.slots
    ]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{given.model}: {ROUND} samples a round, {REPLY_TOKENS} tokens each, medians of {given.runs}")
    for row in rows:
        print(
            "threads {threads}, slots {slots}: reads {prompt_tokens_per_s} and writes {reply_tokens_per_s} "
            "tokens/s, first token after {first_token_s} s, {prompt_tokens} tokens in one prompt".format(
                **row
            )
        )
        for way in row["round_s"]:
            evaluated, took = row["prompt_tokens_evaluated"][way], row["round_s"][way]
            print(f"  a round ({way}): {took} s, {evaluated} prompt tokens evaluated for {ROUND} samples")


if __name__ == "__main__":
    sys.exit(run_script(main))
