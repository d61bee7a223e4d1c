import re

LINE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \[([A-Za-z]+)\]")


def count_levels(lines):
    counts = {}
    for line in lines:
        match = LINE.match(line)
        level = match[1].upper() if match else "OTHER"
        counts[level] = counts.get(level, 0) + 1
    return counts
