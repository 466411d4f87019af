"""Nodes a second of the tree and its controllers with a free evaluator, against a plain mutable UCT in Python.

python benchmarks/search.py [--most 100000]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from clock import best
from ramify.search import UCT, BestFirst, Child, Controller, Tree
from ramify.types import Key

KEY, WIDTH = Key("benchmark", "q", 0), 4
SCORES = [math.modf(math.sin(i) * 43758.5453)[0] % 1 for i in range(4096)]  # a free evaluator


def grow(controller: Controller, nodes: int) -> Tree:
    tree, made = Tree(), 1
    while made < nodes:
        asked = controller.ask(tree, KEY, math.inf)
        assert asked is not None
        [part] = asked.grow
        children = [Child((number,), SCORES[(made + number) % 4096], -1.0, -1.0) for number in range(WIDTH)]
        tree = controller.tell(tree, asked, {part.node: children})
        made += WIDTH
    return tree


class Node:
    """What one would write in an afternoon."""

    def __init__(self, parent: Node | None, token: int, score: float) -> None:
        self.parent, self.token, self.score = parent, token, score
        self.children: list[Node] = []
        self.visits, self.total = 0, 0.0


def plain(nodes: int, c: float = math.sqrt(2)) -> Node:
    root, made = Node(None, -1, 0.0), 1
    while made < nodes:
        node = root
        while node.children:
            seen = math.log(node.visits)
            node = max(node.children, key=lambda n, seen=seen: n.total / n.visits + c * math.sqrt(seen / n.visits))  # type: ignore[misc]
        for number in range(WIDTH):
            child = Node(node, number, SCORES[(made + number) % 4096])
            node.children.append(child)
            up: Node | None = child
            while up is not None:
                up.visits += 1
                up.total += child.score
                up = up.parent
        made += WIDTH
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000)
    options = parser.parse_args()
    uct, heap = UCT(width=WIDTH, most=10**9), BestFirst(width=WIDTH)
    same = [int(n) for n in grow(uct, 2_000).column("visits")[1 : WIDTH + 1]]
    assert same == [child.visits for child in plain(2_000).children], "both grow the same tree"
    print(f"{'nodes':>10}{'UCT':>14}{'best-first':>14}{'plain UCT':>14}   nodes a second, CPU time     UCT / plain")
    size = 1_000
    while size <= options.most:
        runs: list[Callable[[], object]] = [
            lambda n=size: grow(uct, n),  # type: ignore[misc]
            lambda n=size: grow(heap, n),  # type: ignore[misc]
            lambda n=size: plain(n),  # type: ignore[misc]
        ]
        speed = [size / best(each, 3 if size <= 10_000 else 1, time.process_time) for each in runs]
        print(f"{size:>10,}{speed[0]:>14,.0f}{speed[1]:>14,.0f}{speed[2]:>14,.0f}{speed[0] / speed[2]:>42.2f} x")
        size *= 10


if __name__ == "__main__":
    main()
