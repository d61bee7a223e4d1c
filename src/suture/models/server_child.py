"""The child process around llama.cpp's server; run as a file, it needs nothing but xllamacpp.

It reads one JSON line of options from stdin, writes `{"url": ...}` to stdout once the model is loaded, and
ends when stdin does: the pipe breaks with the parent, however the parent died. The key comes in that line and
not in the arguments, which every user of the machine can read.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve until stdin ends."""
    options = json.loads(sys.stdin.buffer.readline())
    # Whatever the library prints goes to stderr: stdout is for the one line that the parent waits for.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import xllamacpp  # type: ignore[import-untyped]  # ships no type information

    params = xllamacpp.CommonParams()
    params.model.path = options["model_path"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["key"]]
    params.n_parallel = options["slots"]
    params.n_ctx = options["slots"] * options["context_tokens"]
    params.fit_params = False  # take the context that was asked for, or fail
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["batch_threads"]
    params.n_gpu_layers = 0
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    answer.write(json.dumps({"url": server.listening_address}) + "\n")
    answer.close()
    sys.stdin.buffer.read()
    os._exit(0)  # an orderly end would wait for replies that nobody reads any more


if __name__ == "__main__":
    main()
