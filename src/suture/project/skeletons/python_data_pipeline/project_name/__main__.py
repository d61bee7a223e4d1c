"""The command line: read a table, process its rows, and write the result."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence

from project_name import pipeline
from project_name.tables import read_rows, write_result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipeline and return the exit code."""
    parser = argparse.ArgumentParser(prog="project_name", description=pipeline.__doc__)
    parser.add_argument("input", help="a table: .csv, .json or .jsonl")
    parser.add_argument("output", help="the file for the result: .csv, or else JSON")
    arguments = parser.parse_args(argv)
    try:
        rows = read_rows(arguments.input)
        if not rows:
            raise ValueError(f"{arguments.input} has no rows")
        write_result(pipeline.process(rows), arguments.output)
    except (OSError, ValueError, csv.Error) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
