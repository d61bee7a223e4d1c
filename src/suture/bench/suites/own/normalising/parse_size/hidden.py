assert parse_size("0") == 0
assert parse_size("10") == 10
assert parse_size("7 B") == 7
assert parse_size("7b") == 7
assert parse_size("1 kB") == 1000
assert parse_size("1 KB") == 1000
assert parse_size("1KiB") == 1024
assert parse_size("1kib") == 1024
assert parse_size("3 GB") == 3000000000
assert parse_size("1 GiB") == 1073741824
assert parse_size("0.5 MiB") == 524288
assert parse_size("2.999") == 2
assert parse_size("0.0019 kB") == 1
assert parse_size("4.35 MB") == 4350000
assert parse_size("1.005 MB") == 1005000
assert parse_size("\t12\tmb ") == 12000000
assert type(parse_size("1.5 kB")) is int


def refuses(text):
    try:
        parse_size(text)
    except ValueError:
        return True
    return False


for text in ["", " ", "kB", "1 XB", "1 k", "-1 kB", "+1", "1..5 kB", "1.5.2", "1 2", "1 kB x", "ten"]:
    assert refuses(text), text
