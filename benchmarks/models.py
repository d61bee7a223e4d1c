"""How fast the embedded server is, and what its choices bring, on this machine.

    python benchmarks/models.py [--model NAME] [--runs N] [--threads 1 2] [--slots 1 2] [--json]

For each count of threads and slots: tokens per second of reading a prompt and of writing, time to the first
token, and one round of samples that share a prompt, with its reuse and without. Medians. The variants are
measured in turn inside each run, because a machine's speed changes by the minute: the ratios are the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from suture.models import model_path
from suture.models.embedded import LlamaServer, ServerOptions, start_server
from suture.settings import PathSettings

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
    """One streamed reply; seconds to its first token, and what the server counted.

    Args:
        server: Who answers.
        index: Number of the sample.
        reuse: Whether the server may go on from a prompt that a slot holds.
        nonce: Begins the prompt, so that rounds share nothing.
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


async def measure_round(server: LlamaServer, *, reuse: bool, nonce: str) -> dict[str, float]:
    """A round of samples at once: how long it takes, and how many prompt tokens are evaluated for it."""
    start_s = time.perf_counter()
    replies = await asyncio.gather(*(ask(server, n, reuse=reuse, nonce=nonce) for n in range(ROUND)))
    seconds = time.perf_counter() - start_s
    return {
        "seconds": seconds,
        "prompt_tokens_evaluated": sum(reply["prompt_n"] for reply in replies),
        "reply_tokens_per_s": ROUND * REPLY_TOKENS / seconds,
    }


def measure(path: Path, threads: int, slots: int, runs: int) -> dict[str, Any]:
    """One variant: a single reply, then rounds with reuse and without, in turn."""
    options = ServerOptions(
        model_path=path, context_tokens=1024, slots=slots, threads=threads, batch_threads=threads
    )
    server = start_server(options)
    singles, with_reuse, without = [], [], []
    try:
        for run in range(runs):
            singles.append(asyncio.run(ask(server, 0, reuse=False, nonce=f"A{run} ")))
            with_reuse.append(asyncio.run(measure_round(server, reuse=True, nonce=f"B{run} ")))
            without.append(asyncio.run(measure_round(server, reuse=False, nonce=f"C{run} ")))
    finally:
        server.stop()
    shared, alone = medians(with_reuse), medians(without)
    single = medians(singles)
    return {
        "threads": threads,
        "slots": slots,
        "prompt_tokens_per_s": round(single["prompt_per_second"], 1),
        "reply_tokens_per_s": round(single["predicted_per_second"], 1),
        "first_token_s": round(single["first_token_s"], 2),
        "prompt_tokens": int(single["prompt_n"]),
        "round_s": {"reuse": round(shared["seconds"], 2), "no_reuse": round(alone["seconds"], 2)},
        "round_ratio": round(shared["seconds"] / alone["seconds"], 2),
        "prompt_tokens_evaluated": {
            "reuse": int(shared["prompt_tokens_evaluated"]),
            "no_reuse": int(alone["prompt_tokens_evaluated"]),
        },
    }


def medians(measured: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
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
    path = model_path(given.model, PathSettings().cache)
    rows = [measure(path, threads, slots, given.runs) for threads in given.threads for slots in given.slots]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{given.model}: {ROUND} samples a round, {REPLY_TOKENS} tokens each, medians of {given.runs}")
    for row in rows:
        print(
            "threads {threads}, slots {slots}: reads {prompt_tokens_per_s} and writes {reply_tokens_per_s} "
            "tokens/s, first token after {first_token_s} s; a round takes {round_s[reuse]} s with reuse and "
            "{round_s[no_reuse]} s without (ratio {round_ratio}), and evaluates "
            "{prompt_tokens_evaluated[reuse]} and {prompt_tokens_evaluated[no_reuse]} prompt tokens "
            "({prompt_tokens} in one prompt)".format(**row)
        )


if __name__ == "__main__":
    main()
