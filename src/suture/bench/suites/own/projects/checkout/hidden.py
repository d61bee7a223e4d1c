assert checkout({"a": 1}, {"a": 5000}) == 5000
assert checkout({"a": 1}, {"a": 4999}) == 5489
assert checkout({"a": 1}, {"a": 6000}, 10) == 5400
assert checkout({"a": 1}, {"a": 5000}, 1) == 4950 + 490
assert checkout({"a": 1}, {"a": 5555}, 10) == 5000
assert checkout({"a": 1}, {"a": 999}, 50) == 500 + 490
assert checkout({"a": 1}, {"a": 100}, 0) == 590
assert checkout({"a": 1}, {"a": 100}, 100) == 490
assert checkout({"a": 0}, {"a": 100}) == 0
assert checkout({"a": 9}, {"a": 100}) == 900 + 490
assert checkout({"a": 10}, {"a": 100}) == 900 + 490
assert checkout({"a": 100}, {"a": 101}) == 8080
assert checkout({"a": 99}, {"a": 100}) == 8910
assert checkout({"a": 10}, {"a": 101}) == 909 + 490
assert checkout({"a": 10}, {"a": 99}) == 891 + 490
assert checkout({"a": 11}, {"a": 33}) == 327 + 490
assert checkout({"a": 1, "b": 10}, {"a": 1000, "b": 500}) == 5500
assert checkout({"a": 5, "b": 5}, {"a": 500, "b": 500}) == 5000


def misses(basket):
    try:
        checkout(basket, {"a": 1})
    except KeyError:
        return True
    return False


assert misses({"b": 1})
assert misses({"a": 1, "b": 0})
