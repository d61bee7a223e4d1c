import random

assert merge_bookings([]) == []
assert merge_bookings([(5, 5)]) == []
assert merge_bookings([(7, 2)]) == []
assert merge_bookings([(1, 10), (2, 3), (4, 5)]) == [(1, 10)]
assert merge_bookings([(4, 5), (2, 3), (1, 10)]) == [(1, 10)]
assert merge_bookings([(1, 2), (2, 3), (3, 4)]) == [(1, 4)]
assert merge_bookings([(1, 2), (3, 3), (4, 6)]) == [(1, 2), (4, 6)]
assert merge_bookings([(-5, -1), (-1, 0), (2, 3)]) == [(-5, 0), (2, 3)]

given = [(3, 4), (1, 2)]
merge_bookings(given)
assert given == [(3, 4), (1, 2)]


def by_minutes(bookings):
    busy = sorted({m for start, end in bookings for m in range(start, end)})
    found = []
    for m in busy:
        if found and found[-1][1] == m:
            found[-1] = (found[-1][0], m + 1)
        else:
            found.append((m, m + 1))
    return found


chance = random.Random(1)
for _ in range(60):
    made = []
    for _ in range(chance.randrange(7)):
        start = chance.randrange(20)
        made.append((start, start + chance.randrange(-1, 7)))
    assert merge_bookings(made) == by_minutes(made)
