"""Random streams: the cost of naming one, and of a draw for a batch of rows, against NumPy generators made anew.

python benchmarks/keys.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clock import best
from ramify.keys import generator, streams, uniform
from ramify.types import Key


def microseconds(run: Callable[[], object], rows: int, repeats: int = 20) -> float:
    return 1e6 * best(run, repeats) / rows


def main() -> None:
    rows = 1_000
    keys = [Key("benchmark", f"q{i // 80}", i % 80) for i in range(rows)]
    names = microseconds(lambda: streams(keys), rows)
    batch = streams(keys)
    draws = microseconds(lambda: uniform(batch, 17), rows)
    naive = microseconds(lambda: [generator(key).random() for key in keys], rows, 3)
    seeded = microseconds(lambda: [np.random.default_rng(i).random() for i in range(rows)], rows, 3)
    print(f"name a stream                        {names:8.3f} µs")
    print(f"draw at a position, {rows:,} rows       {draws:8.3f} µs a row")
    print(f"a fresh Philox generator a row       {naive:8.3f} µs a row   {naive / draws:6.0f} x")
    print(f"a fresh default_rng(seed) a row      {seeded:8.3f} µs a row   {seeded / draws:6.0f} x")


if __name__ == "__main__":
    main()
