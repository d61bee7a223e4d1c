def split_evenly(items, parts):
    if parts < 1:
        raise ValueError("at least one part")
    least, longer = divmod(len(items), parts)
    split = []
    start = 0
    for number in range(parts):
        end = start + least + (number < longer)
        split.append(items[start:end])
        start = end
    return split
