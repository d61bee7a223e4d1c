"""Movements of a store, one a line: `in 3 green tea` or `out 1 salt`."""


def read_movements(text):
    """A list of tuples (article, change); what goes out is below 0.

    Raises:
        ValueError: A line is no movement.
    """
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        words = line.split()
        if len(words) < 3 or words[0].lower() not in ("in", "out") or not words[1].isdigit():
            raise ValueError(f"no movement: {line!r}")
        kind, number, article = words[0].lower(), int(words[1]), " ".join(words[2:])
        rows.append((article, number if kind == "in" else -number))
    return rows
