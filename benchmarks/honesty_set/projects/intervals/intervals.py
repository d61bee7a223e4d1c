def merge(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def total_length(spans):
    return sum(end - start for start, end in merge(spans))


def gaps(spans):
    merged = merge(spans)
    return [[left[1], right[0]] for left, right in zip(merged, merged[1:])]


def sort_spans(spans):
    return sorted(spans, key=lambda span: (span[0], -span[1]))
