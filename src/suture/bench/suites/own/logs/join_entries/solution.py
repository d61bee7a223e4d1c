def join_entries(lines):
    entries = []
    for line in lines:
        line = line.rstrip()
        if not line:
            continue
        if line[0] in " \t" and entries:
            entries[-1] += "\n" + line
        else:
            entries.append(line)
    return entries
