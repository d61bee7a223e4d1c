MOVES = {
    ("closed", "open"): "open",
    ("open", "close"): "closed",
    ("closed", "lock"): "locked",
    ("locked", "unlock"): "closed",
}


def run_door(events):
    state, refused = "closed", 0
    for event in events:
        if (state, event) in MOVES:
            state = MOVES[state, event]
        else:
            refused += 1
    return state, refused
