import re


def slowest_paths(lines, count):
    times = {}
    for line in lines:
        parts = line.split()
        if len(parts) != 4 or not re.fullmatch(r"[0-9]{3}", parts[2]) or not re.fullmatch(r"[0-9]+ms", parts[3]):
            continue
        if parts[2].startswith("5"):
            continue
        path = parts[1].partition("?")[0]
        times.setdefault(path, []).append(int(parts[3][:-2]))
    means = [(path, sum(each) / len(each)) for path, each in times.items()]
    means.sort(key=lambda mean: (-mean[1], mean[0]))
    return means[:count]
