import random

assert peak_sessions([(1, 3), (3, 5)]) == (1, 1)
assert peak_sessions([(4, 4)]) == (0, None)
assert peak_sessions([(4, 2), (1, 2)]) == (1, 1)
assert peak_sessions([(5, 9), (0, 3), (6, 7), (1, 2)]) == (2, 1)
assert peak_sessions([(0, 10), (2, 4), (4, 6), (5, 6)]) == (3, 5)
assert peak_sessions([(-3, -1), (-2, 0)]) == (2, -2)
assert peak_sessions([(0, 1), (0, 1), (0, 1)]) == (3, 0)


def by_moments(sessions):
    counts = [(sum(s <= m < e for s, e in sessions), -m) for m in range(-2, 25)]
    most, moment = max(counts, default=(0, 0))
    return (most, -moment) if most else (0, None)


chance = random.Random(3)
for _ in range(80):
    made = []
    for _ in range(chance.randrange(8)):
        start = chance.randrange(12)
        made.append((start, start + chance.randrange(-1, 6)))
    assert peak_sessions(made) == by_moments(made)
