"""Inputs of the QuixBugs programs that work on nodes: a module beside the program draws random graphs."""

from __future__ import annotations

__all__ = ["WRAPPERS"]

NODES = """
import random


class Node:
    def __init__(self, value=None, successor=None, successors=None, incoming=None, outgoing=None):
        self.value = value
        self.successor = successor
        self.successors = successors if successors is not None else []
        self.predecessors = []
        self.incoming_nodes = incoming if incoming is not None else []
        self.outgoing_nodes = outgoing if outgoing is not None else []


def digraph(draw, acyclic=False):
    nodes = [Node(number) for number in range(draw.randint(1, 8))]
    for node in nodes:
        for other in nodes:
            if node is not other and draw.random() < 0.25 and not (acyclic and other.value < node.value):
                node.successors.append(other)
                node.outgoing_nodes.append(other)
                other.incoming_nodes.append(node)
    return nodes


def linked(draw, cycle):
    nodes = [Node(number) for number in range(draw.randint(1, 9))]
    for node, following in zip(nodes, nodes[1:]):
        node.successor = following
    if cycle:
        nodes[-1].successor = draw.choice(nodes)
    return nodes
"""

REACHED = """
from {name} import {name}

def graded(seed):
    draw = random.Random(seed)
    nodes = digraph(draw)
    return bool({name}(draw.choice(nodes), draw.choice(nodes)))
"""

WRAPPERS = {
    "breadth_first_search": NODES + REACHED.format(name="breadth_first_search"),
    "depth_first_search": NODES + REACHED.format(name="depth_first_search"),
    "detect_cycle": NODES
    + """
from detect_cycle import detect_cycle

def graded(seed):
    draw = random.Random(seed)
    return bool(detect_cycle(linked(draw, draw.random() < 0.5)[0]))
""",
    "reverse_linked_list": NODES
    + """
from reverse_linked_list import reverse_linked_list

def graded(seed):
    node, values = reverse_linked_list(linked(random.Random(seed), False)[0]), []
    while node is not None and len(values) < 20:
        values.append(node.value)
        node = node.successor
    return values
""",
    "shortest_path_length": NODES
    + """
from shortest_path_length import shortest_path_length

def graded(seed):
    draw = random.Random(seed)
    nodes = digraph(draw)
    lengths = {(a, b): draw.randint(1, 12) for a in nodes for b in a.successors}
    return shortest_path_length(lengths, draw.choice(nodes), draw.choice(nodes))
""",
    "topological_ordering": NODES
    + """
from topological_ordering import topological_ordering

def graded(seed):
    draw = random.Random(seed)
    nodes = digraph(draw, acyclic=True)
    draw.shuffle(nodes)
    order = [node.value for node in topological_ordering(nodes)]
    fine = all(order.index(a.value) < order.index(b.value) for a in nodes for b in a.outgoing_nodes)
    return (sorted(order), fine)
""",
}
