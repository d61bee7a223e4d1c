"""Driver programs that run inside the sandbox, and the code that prepares their jobs.

Each program reads `plan.json` next to it and appends JSON lines to `trials`. The programs share a process
with the candidates, so what they report only orders candidates, and no verdict depends on it.
"""
