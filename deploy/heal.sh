#!/bin/sh
# Heal a checkout whose tests fail, in any pipeline. The fix is verified and written to a patch; nothing is pushed.
#   heal.sh [TEST COMMAND]      environment variables: SUTURE, FOLDER and every SUTURE_* setting; see docs/ci.md
set -eu
suture="${SUTURE:-suture}"
folder="${FOLDER:-suture-heal}"
test="${1:-}"

"$suture" ci heal "--out=$folder" ${test:+"--test=$test"}
if [ ! -f "$folder/certificate.json" ]; then
    echo "nothing to heal"
    exit 0
fi
# Verifying in another job, on a fresh checkout, is safer; the GitHub action does that.
"$suture" verify "$folder/certificate.json" --project .
echo "verified; apply it with: git apply $folder/fix.patch"
