from rules import read_rules


def build_order(text):
    needs = {target: set(needed) for target, needed in read_rules(text).items()}
    for needed in list(needs.values()):
        for target in needed:
            needs.setdefault(target, set())
    order = []
    while needs:
        ready = [target for target, needed in needs.items() if not needed - set(order)]
        if not ready:
            raise ValueError(f"a circle among {', '.join(sorted(needs))}")
        order.append(min(ready))
        del needs[order[-1]]
    return order
