def free_slots(busy, opens, closes, shortest):
    slots = []
    free_from = opens
    for start, end in sorted(busy):
        until = min(start, closes)
        if until - free_from >= max(shortest, 1):
            slots.append((free_from, until))
        free_from = max(free_from, end)
    if closes - free_from >= max(shortest, 1):
        slots.append((free_from, closes))
    return slots
