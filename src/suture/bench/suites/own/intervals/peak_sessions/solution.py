def peak_sessions(sessions):
    changes = []
    for start, end in sessions:
        if start < end:
            changes += [(start, 1), (end, -1)]
    most, moment, running = 0, None, 0
    for time, change in sorted(changes):
        running += change
        if running > most:
            most, moment = running, time
    return most, moment
