"""Nodes a second of the tree and its controllers with a free evaluator, against treequest and a plain mutable UCT.

python benchmarks/search.py [--most 1000000]          (pip install treequest)

And searches of steps on the pocket engine that fork shared prefixes, against the same ones that compute all of them
anew:

python benchmarks/search.py --shared [--questions 8]
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import math
import time
from collections.abc import Callable
from typing import Any

from clock import best
from ramify.search import (
    ABMCTS,
    PUCT,
    RAP,
    UCT,
    Beam,
    BestFirst,
    BetaScores,
    Child,
    Controller,
    DepthFirst,
    Expansion,
    Rebase,
    Tree,
)
from ramify.types import Key

KEY, WIDTH, MANY = Key("benchmark", "q", 0), 4, 10**9
SCORES = [math.modf(math.sin(i) * 43758.5453)[0] % 1 for i in range(4096)]  # a free evaluator

# ----------------------------------------------------------------------------------------------------------------- ours

DEEP: dict[str, Controller] = {
    "UCT": UCT(width=WIDTH, most=MANY),
    "best-first": BestFirst(width=WIDTH),
    "depth-first": DepthFirst(width=WIDTH, leaves=None),
    "beam of 64": Beam(n=256, m=WIDTH, depth=MANY),
}
OTHERS: dict[str, Controller] = {
    "PUCT": PUCT(width=WIDTH, most=MANY),
    "RAP": RAP(width=WIDTH, most=MANY),
    "REBASE of 256": Rebase(width=256, depth=MANY),
}
ADAPTIVE = ABMCTS(BetaScores(), most=MANY)


def grow(controller: Controller, nodes: int) -> Tree:
    tree, made = Tree(), 1
    while made < nodes:
        asked = controller.ask(tree, KEY, math.inf)
        assert asked is not None
        children, made = born(asked, made)
        tree = controller.tell(tree, asked, children)
    return tree


def born(asked: Expansion, made: int) -> tuple[dict[int, list[Child]], int]:
    children = {}
    for part in asked.grow:
        numbers = range(part.width)
        children[part.node] = [Child((number,), SCORES[(made + number) % 4096], -1.0, -1.0) for number in numbers]
        made += part.width
    return children, made


# ---------------------------------------------------------------------------------------------------------------- peers


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


def peer(algorithm: Any, nodes: int, inplace: bool = True) -> None:
    """treequest; in its quickest form the state is changed in place, by default every step copies all of it."""
    state, made = algorithm.init_tree(), 0

    def generate(_: object) -> tuple[str, float]:
        return "", SCORES[made % 4096]

    while made < nodes:
        made += 1
        state = algorithm.step(state, {"": generate}, inplace=inplace)


# -------------------------------------------------------------------------------------------------------------- reports


def speed(run: Callable[[], object], nodes: int) -> float:
    """Nodes a second of CPU time: the best of three, or one run of a large tree."""
    if nodes <= 10_000:
        return nodes / best(run, 3, time.process_time)
    gc.collect()
    start = time.process_time()
    run()
    return nodes / (time.process_time() - start)


def trees(most: int) -> None:
    same = [int(n) for n in grow(DEEP["UCT"], 2_000).column("visits")[1 : WIDTH + 1]]
    assert same == [child.visits for child in plain(2_000).children], "both grow the same tree"
    names = [*DEEP, "plain UCT"]
    print(f"{'nodes':>10}" + "".join(f"{name:>14}" for name in names) + "   nodes a second, CPU time")
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most]
    seconds: dict[int, list[float]] = {}
    for size in sizes:
        runs: list[Callable[[], object]] = [lambda c=c, n=size: grow(c, n) for c in DEEP.values()]  # type: ignore[misc]
        found = [speed(run, size) for run in (*runs, lambda n=size: plain(n))]  # type: ignore[misc]
        seconds[size] = [size / each for each in found]
        print(f"{size:>10,}" + "".join(f"{each:>14,.0f}" for each in found), flush=True)
    if len(sizes) > 2:
        low, high = sizes[1], sizes[-1]
        linear = high * math.log(high) / (low * math.log(low))
        ratio = [b / a / linear for a, b in zip(seconds[low], seconds[high], strict=True)]
        print(f"{'growth':>10}" + "".join(f"{each:>14.2f}" for each in ratio), end="")
        print(f"   time at {high:,} over time at {low:,}, in units of n log n: 1 is n log n")


def others(nodes: int = 10_000) -> None:
    print(f"\nothers at {nodes:,} nodes: ", end="")
    print(", ".join(f"{name} {speed(lambda c=c: grow(c, nodes), nodes):,.0f}" for name, c in OTHERS.items()))  # type: ignore[misc]


def peers(nodes: int = 1_000) -> None:
    if importlib.util.find_spec("treequest") is None:
        print("\ntreequest is not installed: pip install treequest")
        return
    import treequest
    from treequest.algos.best_first_search import BestFirstSearchAlgo

    print(f"\nagainst treequest at {nodes:,} nodes, nodes a second")
    uct: Any = treequest.StandardMCTS(samples_per_action=WIDTH)
    pairs: dict[str, tuple[Callable[[], object], Controller]] = {
        "UCT": (lambda: peer(uct, nodes), DEEP["UCT"]),
        "UCT, as it steps by default": (lambda: peer(uct, nodes, inplace=False), DEEP["UCT"]),
        "best-first": (lambda: peer(BestFirstSearchAlgo(num_samples=WIDTH), nodes), DEEP["best-first"]),
        "AB-MCTS-A": (lambda: peer(treequest.ABMCTSA(dist_type="beta"), nodes), ADAPTIVE),
    }
    for name, (theirs, mine) in pairs.items():
        start = time.process_time()
        theirs()
        slow = nodes / (time.process_time() - start)
        fast = speed(lambda c=mine: grow(c, nodes), nodes)  # type: ignore[misc]
        print(f"{name:>28}{slow:>12,.0f} treequest{fast:>12,.0f} here{fast / slow:>10,.0f} x", flush=True)


# ------------------------------------------------------------------------------------------------------ shared prefixes


def shared(count: int) -> None:
    """Seconds of searches over shared prefixes and of the same searches without: the same trees and scores."""
    from ramify.bank import Proposal
    from ramify.decode import Temperature
    from ramify.ledger import Ledger, Tokens
    from ramify.models import Pocket, ValueHead, decode_with
    from ramify.models.pocket.model import engine_of
    from ramify.run import Arm, Search, Searched, run_search
    from ramify.search import Evaluator, Exponentiated, Particles, ToDelimiter
    from ramify.tasks import Countdown

    model, step = Pocket("main"), ToDelimiter((int(Pocket("main").encode("\n")[0]),), most=40)
    asked, pool = Countdown(5).questions(count, run="benchmarks/search"), engine_of(model).pool
    arm = Arm(Proposal(run="b"), decode_with(model, Temperature(1.0)), lambda q: model.encode(q.prompt))

    def search(controller: Controller, evaluator: Evaluator, memory: float) -> Searched:
        protocol = Search(controller, evaluator, cap=120)
        return run_search(protocol, asked, arm, Ledger("tokens", Tokens()), lambda text, _: text, memory=memory)

    apart, together, free = ValueHead("main"), ValueHead("main", shared=True), Exponentiated()
    controllers: dict[str, Controller] = {
        "beam 16/4": Beam(16, 4, step),
        "REBASE 16": Rebase(16, 0.2, step),
        "particles 16": Particles(16, step),
        "best-first, 48 expansions of 4": BestFirst(4, step, most=48),
    }
    head = f"{'anew':>9}{'shared':>9}{'faster':>9}{'computed':>11}{'represented':>13}{'blocks copied':>15}"
    print(f"{'search':44}{head}  peak")
    kinds: list[tuple[str, Evaluator, Evaluator]] = [("likelihood", free, free), ("value", apart, together)]
    for name, controller in controllers.items():
        for label, anew, reads in kinds:
            before, copied = search(controller, anew, 0), pool.copied
            found = search(controller, reads, math.inf)
            copied, use = pool.copied - copied, found.compute.sharing
            for a, b in zip(before.trees, found.trees, strict=True):
                assert (a.column("score")[1:] == b.column("score")[1:]).all(), "the same bits"
            slow = best(lambda c=controller, e=anew: search(c, e, 0), 3, time.process_time)  # type: ignore[misc]
            fast = best(lambda c=controller, e=reads: search(c, e, math.inf), 3, time.process_time)  # type: ignore[misc]
            assert use is not None
            print(
                f"{name + ', ' + label:44}{slow:>7.2f} s{fast:>7.2f} s{slow / fast:>7.1f} x{use.computed:>11,}"
                f"{use.represented:>13,}{copied:>15,}  {use.peak_tokens:,} tokens, {use.peak_bytes / 2**20:.0f} MiB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--shared", action="store_true", help="shared prefixes on the pocket engine, and nothing else")
    parser.add_argument("--questions", type=int, default=8)
    options = parser.parse_args()
    if options.shared:
        shared(options.questions)
        return
    trees(options.most)
    others()
    peers()


if __name__ == "__main__":
    main()
