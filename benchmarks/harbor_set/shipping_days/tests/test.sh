#!/bin/bash
# The reward is 1 if the tests of the issue pass, and those of the repository still do.
cd /repo
python -m pytest -q tests /tests/test_issue.py
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
