import csv
from pathlib import Path


def mean(path):
    """The mean of the column `celsius`."""
    with Path(path).open(newline="") as file:
        values = [float(row["celsius"]) for row in csv.DictReader(file)]
    return sum(values) / len(values)
