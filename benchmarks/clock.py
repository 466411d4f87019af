"""The one way benchmarks take time."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(run: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of several runs, after one that warms up.

    On a busy machine a short run may escape the scheduler where a long one cannot: to compare work on one thread, hand
    in ``time.process_time``.
    """
    run()
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)
