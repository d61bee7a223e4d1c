#!/bin/sh
# Measures the figures of the field set and of QuixBugs that count seconds. Run it on a quiet machine only.
#
#     SUTURE_DATA=... benchmarks/quiet_machine.sh FOLDER   # writes rows and sums there; a second call continues
#
# On two slow cores, one-edit bugs take at most 40 minutes (27 bugs, a minute each and one more run of the suite),
# two-edit bugs 15 and QuixBugs 40. Fetching the packages takes 10 minutes more the first time.
set -eu
out=${1:?a folder for rows}
mkdir -p "$out"
python=${PYTHON:-python}
here=$(dirname "$0")

"$python" "$here/field.py" --report --fetch
"$python" "$here/field.py" --report --kind one --first 3 --seconds 60 --rows "$out/one.jsonl" | tee "$out/one.txt"
"$python" "$here/field.py" --report --kind two --first 1 --seconds 60 --rows "$out/two.jsonl" | tee "$out/two.txt"
"$python" "$here/quixbugs.py" --arm search --rows "$out/quixbugs.jsonl" | tee "$out/quixbugs.txt"
