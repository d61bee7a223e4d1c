def merge_settings(base, changes):
    merged = dict(base)
    for key, change in changes.items():
        if change is None:
            merged.pop(key, None)
        elif isinstance(change, dict):
            there = merged.get(key)
            merged[key] = merge_settings(there if isinstance(there, dict) else {}, change)
        else:
            merged[key] = change
    return merged
