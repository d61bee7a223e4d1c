import random

assert free_slots([], 540, 600, 60) == [(540, 600)]
assert free_slots([], 540, 600, 61) == []
assert free_slots([(540, 600)], 540, 600, 0) == []
assert free_slots([(0, 900), (545, 550)], 540, 800, 10) == []
assert free_slots([(560, 700), (570, 580)], 540, 760, 20) == [(540, 560), (700, 760)]
assert free_slots([(800, 900)], 540, 760, 5) == [(540, 760)]
assert free_slots([(100, 200)], 540, 760, 5) == [(540, 760)]
assert free_slots([(700, 900), (560, 580)], 540, 760, 20) == [(540, 560), (580, 700)]
assert free_slots([(550, 560), (560, 570)], 540, 580, 0) == [(540, 550), (570, 580)]
assert free_slots([(750, 800), (790, 900)], 540, 760, 5) == [(540, 750)]


def by_minutes(busy, opens, closes, shortest):
    free = [m for m in range(opens, closes) if not any(s <= m < e for s, e in busy)]
    found = []
    for m in free:
        if found and found[-1][1] == m:
            found[-1] = (found[-1][0], m + 1)
        else:
            found.append((m, m + 1))
    return [slot for slot in found if slot[1] - slot[0] >= shortest]


chance = random.Random(2)
for _ in range(80):
    times = []
    for _ in range(chance.randrange(6)):
        start = chance.randrange(-5, 40)
        times.append((start, start + chance.randrange(1, 12)))
    shortest = chance.randrange(5)
    assert free_slots(times, 5, 30, shortest) == by_minutes(times, 5, 30, shortest)
