#!/bin/sh
# Heal a red checkout in any pipeline: nothing is pushed, the change is verified and left as a patch.
#   heal.sh [TEST COMMAND]      SUTURE, FOLDER and every SUTURE_* setting are variables; see docs/ci.md
set -eu
suture="${SUTURE:-suture}"
folder="${FOLDER:-suture-heal}"
test="${1:-}"

"$suture" ci heal "--out=$folder" ${test:+"--test=$test"}
if [ ! -f "$folder/certificate.json" ]; then
    echo "nothing to heal"
    exit 0
fi
# Better in another job, on a fresh checkout, as the action does.
"$suture" verify "$folder/certificate.json" --project .
echo "verified; take it over with: git apply $folder/fix.patch"
