from collections import deque


def shortest(edges, start, goal):
    distances, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        if node == goal:
            return distances[node]
        for neighbour in edges.get(node, ()):
            if neighbour not in distances:
                distances[neighbour] = distances[node] + 1
                queue.append(neighbour)
    return -1


def reachable(edges, start):
    seen, stack = {start}, [start]
    while stack:
        for neighbour in edges.get(stack.pop(), ()):
            if neighbour not in seen:
                seen.add(neighbour)
                stack.append(neighbour)
    return sorted(seen)


def order(needs):
    done = []
    while len(done) < len(needs):
        ready = sorted(n for n in needs if n not in done and all(m in done for m in needs[n]))
        if not ready:
            return None
        done += ready
    return done


def degree(edges):
    return {node: len(neighbours) for node, neighbours in edges.items()}
