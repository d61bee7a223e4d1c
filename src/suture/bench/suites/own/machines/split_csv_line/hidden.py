assert split_csv_line("") == [""]
assert split_csv_line(",") == ["", ""]
assert split_csv_line("a") == ["a"]
assert split_csv_line("a,b,") == ["a", "b", ""]
assert split_csv_line(" a , b ") == [" a ", " b "]
assert split_csv_line('""') == [""]
assert split_csv_line('"",x') == ["", "x"]
assert split_csv_line('""""') == ['"']
assert split_csv_line('"a""b"') == ['a"b']
assert split_csv_line('","') == [","]
assert split_csv_line('"a","b"') == ["a", "b"]
assert split_csv_line('5" pipe,2') == ['5" pipe', "2"]
assert split_csv_line('a"b"c') == ['a"b"c']
assert split_csv_line(' "a"') == [' "a"']
assert split_csv_line('a,"",""') == ["a", "", ""]
assert split_csv_line('"x,""y"",z",w') == ['x,"y",z', "w"]


def refuses(line):
    try:
        split_csv_line(line)
    except ValueError:
        return True
    return False


for line in ['"', '"a', 'a,"b', '"a"b', '"a" ,b', 'x,"a""']:
    assert refuses(line), line
