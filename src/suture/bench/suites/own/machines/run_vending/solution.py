def run_vending(events, prices, stock):
    left = dict(stock)
    money, said = 0, []
    for event in events:
        if isinstance(event, int):
            money += max(event, 0)
            said.append(f"credit {money}")
        elif event == "cancel":
            said.append(f"returned {money}")
            money = 0
        elif event not in prices:
            said.append("unknown")
        elif left.get(event, 0) < 1:
            said.append("sold out")
        elif money < prices[event]:
            said.append(f"short {prices[event] - money}")
        else:
            said.append(f"sold, change {money - prices[event]}")
            left[event] -= 1
            money = 0
    return said
