import re
from decimal import Decimal

UNITS = {"": 1, "b": 1}
for power, letter in enumerate("kmg", 1):
    UNITS[letter + "b"] = 1000**power
    UNITS[letter + "ib"] = 1024**power


def parse_size(text):
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in UNITS:
        raise ValueError(f"no size: {text!r}")
    return int(Decimal(match[1]) * UNITS[match[2]])
