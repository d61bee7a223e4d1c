"""The child process around llama.cpp's server; it runs as a file and needs nothing but xllamacpp.

It reads one JSON line of options from stdin, writes `{"url": ...}` to stdout once the model is loaded, and
ends when stdin closes: the pipe breaks with the parent, however the parent dies. A process that the parent
forked may still hold the other end of the pipe, so the parent's process id is watched too. The key is in that
line and not in the arguments, which every user of the machine can read.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

WATCH_EVERY_S = 0.5
"""Seconds between two checks whether the parent lives. Chosen by judgement; not measured."""


def main() -> None:
    """Serve until stdin closes."""
    options = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_exit_with_parent, args=(options["parent"],), daemon=True).start()
    # The library's output goes to stderr: stdout carries only the line that the parent waits for.
    parent_pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import xllamacpp  # type: ignore[import-untyped]  # ships no type information

    params = xllamacpp.CommonParams()
    params.model.path = options["model_path"]
    params.hostnames = [options["host"]]
    params.port = options["port"]
    params.api_keys = [options["key"]]
    params.n_parallel = options["slots"]
    params.n_ctx = options["slots"] * options["context_tokens"]
    params.cache_ram_mib = options["cache_mb"]
    params.fit_params = False  # use the requested context size, or fail
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["batch_threads"]
    params.n_gpu_layers = 0  # the embedded model runs on the processor only
    params.endpoint_metrics = True
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    parent_pipe.write(json.dumps({"url": server.listening_address}) + "\n")
    parent_pipe.close()
    sys.stdin.buffer.read()
    os._exit(0)  # an orderly shutdown would wait for replies that are no longer read


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_EVERY_S)
    os._exit(0)


if __name__ == "__main__":
    main()
