"""Random streams: a ``Key`` names a stream, and the variate at (step, index) of it is a pure function of both.

Philox4x32-10 (Salmon et al., 2011) is a keyed bijection of a 128-bit counter, so there is no state to carry: a
truncated, resumed, re-batched or re-ordered run draws the same numbers. The layout below is protocol 1 and frozen:

    digest  = BLAKE2b-128(b"ramify/1" | len(run) run | len(question) question | sample u64 | len(stream) stream)
    key     = digest[0:8]                         two little-endian 32-bit words
    counter = (index, step, digest[8:12], digest[12:16])

``index`` is the token id (Gumbel noise) or a draw number; ``step`` is the token position.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from ramify.errors import is_whole, require
from ramify.types import Key

__all__ = ["digest", "generator", "gumbel", "numbered", "permutation", "philox", "streams", "uniform"]

PROTOCOL = b"ramify/1"
MULTIPLIER = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
LOW = 0xFFFFFFFF


def digest(key: Key) -> bytes:
    """The 16 bytes that identify a stream. Length prefixes keep ("p1", "12") apart from ("p11", "2").

    >>> digest(Key("run", "q1", 0, "draw")).hex()
    '8699c927403d1a3ef99197d3c80b070c'
    """
    require(is_whole(key.sample) and key.sample < 2**64, "Key.sample", key.sample, "use an integer in [0, 2**64)")
    for name in ("run", "question", "stream"):
        require(isinstance(getattr(key, name), str), f"Key.{name}", getattr(key, name), "use a string")
    run, question, stream = (part.encode() for part in (key.run, key.question, key.stream))
    message = b"".join(
        [
            PROTOCOL,
            struct.pack("<I", len(run)) + run,
            struct.pack("<I", len(question)) + question,
            struct.pack("<Q", key.sample),
            struct.pack("<I", len(stream)) + stream,
        ]
    )
    return hashlib.blake2b(message, digest_size=16).digest()


def streams(keys: Iterable[Key]) -> np.ndarray:
    """The streams of several keys as one ``[B, 4]`` uint32 array: what every draw below takes."""
    packed = b"".join(map(digest, keys))
    return np.frombuffer(packed, dtype="<u4").astype(np.uint32).reshape(-1, 4)


def numbered(key: Key, samples: Iterable[int]) -> np.ndarray:
    """The streams ``[n, 4]`` of a key under other sample numbers; what they share is hashed once.

    >>> key = Key("run", "q1", 0, "replay")
    >>> bool((numbered(key, [3, 7]) == streams([key._replace(sample=3), key._replace(sample=7)])).all())
    True
    """
    digest(key)  # checks its fields
    run, question, stream = (part.encode() for part in (key.run, key.question, key.stream))
    opening = [PROTOCOL, struct.pack("<I", len(run)), run, struct.pack("<I", len(question)), question]
    shared = hashlib.blake2b(b"".join(opening), digest_size=16)
    closing = struct.pack("<I", len(stream)) + stream
    found = []
    for sample in samples:
        one = shared.copy()
        one.update(struct.pack("<Q", sample) + closing)
        found.append(one.digest())
    return np.frombuffer(b"".join(found), dtype="<u4").astype(np.uint32).reshape(-1, 4)


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Philox4x32-10 of 32-bit words, Python ints or broadcast uint64 arrays: four words of the same kind.

    >>> [f"{word:08x}" for word in philox((0, 0, 0, 0), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = MULTIPLIER[0] * c0, MULTIPLIER[1] * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & LOW, (left >> 32) ^ c3 ^ k1, left & LOW
        k0, k1 = (k0 + WEYL[0]) & LOW, (k1 + WEYL[1]) & LOW
    return c0, c1, c2, c3


def uniform(stream: np.ndarray, step: Any = 0, index: Any = 0) -> np.ndarray:
    """Uniforms strictly inside (0, 1), 53 bits each: ``stream [..., 4]`` against broadcast ``step`` and ``index``.

    >>> uniform(streams([Key("run", "q1", 0, "draw")]), step=[0, 1]).round(6).tolist()
    [0.877641, 0.207214]
    """
    place, step, index = stream[..., 0], np.asarray(step), np.asarray(index)
    for name, word in (("step", step), ("index", index)):
        ok = word.size == 0 or (word.min() >= 0 and word.max() < 2**32)
        require(ok, name, word if word.size < 4 else word.min(), "use integers in [0, 2**32)")
    if stream.size == 4 and step.size == 1 and index.size == 1:  # one draw: Python's integers beat arrays of one
        shape = max(place.shape, step.shape, index.shape, key=len)
        k0, k1, c2, c3 = stream.ravel().tolist()
        a, b, *_ = philox((index.item(), step.item(), c2, c3), (k0, k1))
    else:
        shape = np.broadcast_shapes(place.shape, step.shape, index.shape)
        k0, k1, c2, c3 = (stream[..., word].astype(np.uint64) for word in range(4))
        a, b, *_ = philox((index.astype(np.uint64), step.astype(np.uint64), c2, c3), (k0, k1))
    bits = np.asarray(((a >> 5) << 26) | (b >> 6), dtype=np.float64)
    # The top cell's midpoint rounds up to 1.0 in double precision; its left neighbour is the honest value.
    return np.minimum((bits + 0.5) * 2.0**-53, 1.0 - 2.0**-53).reshape(shape)


def gumbel(stream: np.ndarray, step: Any = 0, index: Any = 0) -> np.ndarray:
    """Standard Gumbel noise. Keyed by token id, it does not depend on the support or on the other tokens."""
    noise: np.ndarray = -np.log(-np.log(uniform(stream, step, index)))
    return noise


def permutation(key: Key, n: int) -> np.ndarray:
    """A uniform permutation of ``range(n)``: the order of n uniforms of the stream.

    >>> permutation(Key("run", "q1", 0, "replay"), 5).tolist()
    [2, 1, 3, 4, 0]
    """
    return np.argsort(uniform(streams([key]), index=np.arange(n)), kind="stable")


def generator(key: Key) -> np.random.Generator:
    """A NumPy generator on this stream, for work outside the replayed path.

    Its bits are fixed (Philox4x64 keyed by the digest); the distributions NumPy makes of them may change between
    NumPy releases, so whatever a run must replay draws from ``uniform`` and ``gumbel`` instead.
    """
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest(key), "little")))
