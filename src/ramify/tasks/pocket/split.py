"""Train and evaluation never meet: a hash of the canonical question decides its side."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["BUCKETS", "SPLITS", "split_of"]

BUCKETS = 16  # one of them is for evaluation
SPLITS = ("train", "eval")


def split_of(canonical: str) -> str:
    """The side of a question, from the text that all its equivalent forms share.

    >>> [split_of(f"3 4:{target}") for target in range(20)].count("eval")
    1
    """
    return "train" if blake2b(canonical.encode(), digest_size=2).digest()[0] % BUCKETS else "eval"
