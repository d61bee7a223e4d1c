#!/bin/bash
cat > /app/totals.py <<'PROGRAM'
import csv
import sys
from collections import defaultdict

totals = defaultdict(float)
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        if row["quantity"] and row["price"]:
            totals[row["customer"]] += float(row["quantity"]) * float(row["price"])
for customer in sorted(totals):
    print(f"{customer} {totals[customer]:.2f}")
PROGRAM
