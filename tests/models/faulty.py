"""A server of our own that fails on purpose, and knows what it did.

It answers from the seed of a request, so a test can tell what every leaf must be. What goes wrong is decided by the
seed and by how often it was seen: a share ``faults`` of first attempts fail, each in one of ``kinds``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

KINDS = ("429", "500", "slow", "cut", "malformed", "wrong", "duplicate")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def words(seed: int, cap: int) -> list[int]:
    """The tokens of a seed: up to ``cap`` letters, with an end where it comes first."""
    raw = hashlib.blake2b(str(seed).encode(), digest_size=64).digest()
    letters = [byte % 26 for byte in raw]
    return letters[: min(cap, 4 + raw[0] % 28)]


def text(seed: int, cap: int) -> str:
    return "".join(ALPHABET[token] for token in words(seed, cap))


def entry(token: int, position: int, top: int, wrong: bool = False) -> dict[str, Any]:
    """A token with its alternatives: probabilities 2^-1, 2^-2, ...; the chosen one is of rank 1 + position % 3."""
    rank = position % 3 if top > 2 else 0
    others = [(token + 1 + i) % 26 for i in range(25)]
    ids = [*others[:rank], token, *others[rank:]]
    values = [-(1 + i) * math.log(2) for i in range(len(ids))]
    own = 0.75 if wrong else values[rank]
    listed = [
        {"id": x, "token": ALPHABET[x], "logprob": v, "bytes": [97 + x]} for x, v in zip(ids, values, strict=True)
    ]
    return {"id": token, "token": ALPHABET[token], "logprob": own, "bytes": [97 + token], "top_logprobs": listed[:top]}


class Faulty:
    """The server, in a thread of this process: ``with Faulty(faults=0.1) as server: ... server.url``."""

    def __init__(
        self,
        faults: float = 0.0,
        kinds: Sequence[str] = KINDS,
        *,
        capacity: int = 10**9,
        pace: float = 0.0,  # seconds a token
        slow: float = 0.3,
        retry_after: str = "0.05",
        always: bool = False,  # whether later attempts fail as the first one did
        key: str = "",
        hangs_up: bool = False,  # on the second request of a connection, unanswered, as after an idle time
        forgets: str = "",  # "seeds": draws something else every time; "one": always the same; "logprobs": gives none
    ) -> None:
        self.faults, self.kinds, self.capacity, self.pace, self.slow = faults, tuple(kinds), capacity, pace, slow
        self.retry_after, self.always, self.key, self.forgets = retry_after, always, key, forgets
        self.hangs_up = hangs_up
        self.seen: Counter[int] = Counter()  # requests by seed
        self.answered: Counter[int] = Counter()  # complete answers by seed
        self.injected: Counter[str] = Counter()
        self.connections = 0
        self.under_way = self.most = self.left = 0  # left: streams that the client closed
        self.written = 0  # tokens
        self.bodies: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Faulty:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    # ------------------------------------------------------------------------------------------------------------ HTTP

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        heard = 0
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                said = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:])}
                body = await reader.readexactly(int(said.get("content-length", 0)))
                heard += 1
                if self.hangs_up and heard == 2:
                    break
                if not await self._reply(writer, head[0].split()[1], said, json.loads(body or b"{}")):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, path: str, said: dict[str, str], body: dict[str, Any]) -> bool:
        """Answer one request; whether the connection goes on."""
        if self.key and said.get("authorization") != f"Bearer {self.key}":
            echo = said.get("authorization", "nothing")  # as some servers do
            return await self._send(writer, 401, {"error": {"message": f"Incorrect API key provided: {echo}"}})
        if path.endswith("/models"):
            return await self._send(writer, 200, {"data": [{"id": "faulty", "max_model_len": 4096}]})
        self.bodies = [*self.bodies[-9:], body]
        if self.under_way >= self.capacity:
            self.injected["full"] += 1
            return await self._send(writer, 429, {"error": "full"}, f"Retry-After: {self.retry_after}\r\n")
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await self._answer(writer, body)
        except ConnectionError:
            self.left += 1
            raise
        finally:
            self.under_way -= 1

    def _fault(self, seed: int) -> str:
        again = self.seen[seed]
        self.seen[seed] += 1
        coin = int.from_bytes(hashlib.blake2b(f"fault {seed}".encode(), digest_size=8).digest(), "little") / 2**64
        if coin >= self.faults or (again and not self.always):
            return ""
        kind = self.kinds[int(coin / self.faults * len(self.kinds))]
        self.injected[kind] += 1
        return kind

    def _drawn(self, seed: int) -> int:
        return {"seeds": sum(self.seen.values()), "one": 0}.get(self.forgets, seed)

    async def _answer(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> bool:
        seed, cap, top = body["seed"], body["max_tokens"], int(body.get("top_logprobs") or 0)
        fault, tokens = self._fault(seed), words(self._drawn(seed), cap)
        if fault == "429":
            return await self._send(writer, 429, {"error": "later"}, f"Retry-After: {self.retry_after}\r\n")
        if fault == "500":
            return await self._send(writer, 500, {"error": "it broke"})
        if fault == "slow":
            await asyncio.sleep(self.slow)
        if fault == "malformed":
            await self._send(writer, 200, b'{"choices": [{"index": 0, "message": {"content": "ab')
            return True
        rows = [entry(token, i, top, fault == "wrong") for i, token in enumerate(tokens)]
        rows = [] if self.forgets == "logprobs" else rows
        finish = "length" if len(tokens) == cap else "stop"
        usage = {"completion_tokens": len(tokens), "prompt_tokens": 7}
        frame = {"id": f"r{seed}", "model": "faulty", "system_fingerprint": "fp"}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(ALPHABET[token] for token in tokens)}
            choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": {"content": rows}}
            choices = [choice, choice] if fault == "duplicate" else [choice]
            data = json.dumps({**frame, "choices": choices, "usage": usage}).encode()
            await self._send(writer, 200, data[: len(data) // 2] if fault == "cut" else data, length=len(data))
            self.written += len(tokens)
            self.answered[seed] += fault in ("", "slow")
            return fault != "cut"
        return await self._stream(writer, seed, tokens, rows, finish, {**frame, "usage": usage}, fault)

    async def _stream(
        self,
        writer: asyncio.StreamWriter,
        seed: int,
        tokens: list[int],
        rows: list[dict[str, Any]],
        finish: str,
        frame: dict[str, Any],
        fault: str,
    ) -> bool:
        kind = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(kind)
        usage = frame.pop("usage")
        for i, token in enumerate(tokens):
            if fault == "cut" and i == len(tokens) // 2:
                return False
            choice = {"index": 0, "delta": {"content": ALPHABET[token]}, "logprobs": {"content": rows[i : i + 1]}}
            choices = [choice, choice] if fault == "duplicate" else [choice]
            self._event(writer, {**frame, "choices": choices})
            self.written += 1
            if self.pace:
                await writer.drain()
                await asyncio.sleep(self.pace)
        self._event(writer, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        self._event(writer, {**frame, "choices": [], "usage": usage})
        done = b"data: [DONE]\n\n"
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(done), done))
        await writer.drain()
        self.answered[seed] += fault in ("", "slow")
        return True

    @staticmethod
    def _event(writer: asyncio.StreamWriter, said: dict[str, Any]) -> None:
        data = b"data: %s\n\n" % json.dumps(said).encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    @staticmethod
    async def _send(
        writer: asyncio.StreamWriter, status: int, said: dict[str, Any] | bytes, more: str = "", length: int = -1
    ) -> bool:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        size = length if length >= 0 else len(data)
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{more}content-length: {size}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        return True


def expected_logprobs(tokens: np.ndarray, top: int) -> np.ndarray:
    """What ``entry`` gives as the log-probability of each token."""
    rank = np.arange(len(tokens)) % 3 if top > 2 else np.zeros(len(tokens))
    return -(1 + rank) * math.log(2)


if __name__ == "__main__":  # a process of its own, for measurements: prints its port, ends with its input
    with Faulty(float(sys.argv[1])) as server:
        print(server.port, flush=True)
        sys.stdin.read()
