#!/bin/bash
# The reward is 1 if all titles have the right slug.
cd /app
if node /tests/check.js; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
