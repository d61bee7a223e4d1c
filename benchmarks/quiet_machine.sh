#!/bin/sh
# The figures of the field set that count seconds: on a machine that does nothing else, or they mean nothing.
#
#     SUTURE_DATA=... benchmarks/idle.sh FOLDER        # rows and sums go there; a second call goes on
#
# On two slow cores: one edit 40 minutes at most (27 bugs, a minute each and the suite once more), two edits 15,
# QuixBugs 40. Fetching the packages takes 10 more the first time.
set -eu
out=${1:?a folder for rows}
mkdir -p "$out"
python=${PYTHON:-python}
here=$(dirname "$0")

"$python" "$here/field.py" --report --fetch
"$python" "$here/field.py" --report --kind one --first 3 --seconds 60 --rows "$out/one.jsonl" | tee "$out/one.txt"
"$python" "$here/field.py" --report --kind two --first 1 --seconds 60 --rows "$out/two.jsonl" | tee "$out/two.txt"
"$python" "$here/quixbugs.py" --arm search --rows "$out/quixbugs.jsonl" | tee "$out/quixbugs.txt"
