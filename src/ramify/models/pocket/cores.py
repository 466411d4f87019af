"""One BLAS thread a call, and one part of the batch a core.

A row does not depend on its neighbours, so a batch may be cut anywhere, and each core may take its part
through the whole network. That beats letting the BLAS cut each product: every other operation runs in
parallel too, nobody waits at the end of each product, and on a busy machine nobody spins (with two OpenBLAS
threads a step was seen to take 40 times as long).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

__all__ = ["cores", "in_parallel", "keep_to_one", "single_threaded"]

Part = TypeVar("Part")


@cache
def _openblas() -> ctypes.CDLL | None:
    """The OpenBLAS inside NumPy's wheel, already loaded; None where NumPy links something else."""
    home = Path(np.__file__).parent
    for file in [*home.parent.glob("numpy.libs/*openblas*"), *home.glob(".dylibs/*openblas*")]:
        library = ctypes.CDLL(str(file))
        if hasattr(library, "scipy_openblas_set_num_threads64_"):
            return library
    return None


@cache
def cores() -> int:
    """The threads that the BLAS had when the first model was loaded; 1 where that is unknown."""
    library = _openblas()
    return 1 if library is None else int(library.scipy_openblas_get_num_threads64_())


def keep_to_one() -> None:
    """Use one core from now on: this process is one of several that share the machine."""
    library = _openblas()
    if library is not None:
        library.scipy_openblas_set_num_threads64_(1)
    cores.cache_clear()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep the BLAS on the calling thread."""
    library = _openblas()
    if library is None:
        yield
        return
    before = max(cores(), library.scipy_openblas_get_num_threads64_())  # cores() looks before the first change
    library.scipy_openblas_set_num_threads64_(1)
    try:
        yield
    finally:
        library.scipy_openblas_set_num_threads64_(before)


def in_parallel(work: Callable[[Part], None], parts: Sequence[Part]) -> None:
    """``work`` on every part, the first one on this thread."""
    waiting = [_pool().submit(work, part) for part in parts[1:]]
    for part in parts[:1]:
        work(part)
    for each in waiting:
        each.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(cores() - 1, 1), thread_name_prefix="pocket")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
