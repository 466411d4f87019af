"""The HTTP client against the OpenAI SDK: CPU a long response with top-20 log-probabilities, short requests a second.

A process of its own serves the same bytes to both. The SDK gives objects; ours gives a leaf, with its numbers in arrays
and checked. CPU is that of this process, all threads, the fastest of interleaved rounds.

python benchmarks/endpoint.py
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import openai

from ramify.models.endpoint import Aimd, Endpoint
from ramify.types import Key, Request, Words

TOKENS, TOP, LONG, ROUNDS = 6000, 20, 3, 3
SHORT, MANY, WIDTH = 16, 300, 32


# ----------------------------------------------------------------------------------------------------------- the server


def entry(i: int) -> dict[str, Any]:
    """A token as llama.cpp writes it."""
    values = [-0.1 - 0.37 * j - 0.001 * (i % 50) for j in range(TOP)]
    total = max(0.0, math.log(sum(map(math.exp, values))))
    listed = [
        {"id": (i * 31 + j) % 49152, "token": word, "bytes": [*word.encode()], "logprob": value - total}
        for j, (value, word) in enumerate((value, f" word{(i + j) % 977}") for j, value in enumerate(values))
    ]
    return {**listed[0], "top_logprobs": listed}


def response(tokens: int) -> bytes:
    rows = [entry(i) for i in range(tokens)]
    message = {"role": "assistant", "content": "".join(row["token"] for row in rows)}
    choice = {"index": 0, "message": message, "finish_reason": "length", "logprobs": {"content": rows}}
    usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
    frame = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    data = json.dumps(frame, separators=(",", ":")).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data)


def stream(tokens: int) -> bytes:
    frame = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": row["token"]}, "finish_reason": None, "logprobs": {"content": [row]}}
        for row in map(entry, range(tokens))
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "length"})
    events = [b"data: " + json.dumps({**frame, "choices": [x]}, separators=(",", ":")).encode() for x in choices]
    chunks = [b"%x\r\n%s\n\n\r\n" % (len(event) + 2, event) for event in (*events, b"data: [DONE]")]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(chunks) + b"0\r\n\r\n"


async def serve() -> None:
    made = {(cap, flow): make(cap) for cap in (SHORT, TOKENS) for flow, make in ((False, response), (True, stream))}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.split("content-length: ")[1].split("\r\n")[0])
                asked = json.loads(await reader.readexactly(length))
                writer.write(made[asked["max_tokens"], bool(asked.get("stream"))])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


# ---------------------------------------------------------------------------------------------------------- the clients


def ours(url: str, cap: int, count: int, width: int, flow: bool) -> None:
    endpoint = Endpoint("m", url, "llama.cpp", stream=flow, concurrency=Aimd(width, width, width))
    asked = (Request(Key("bench", f"q{i}", 0), Words("x", 9), cap, top=TOP) for i in range(count))
    leaves = list(endpoint(asked))
    assert len(leaves) == count
    assert all(leaf.top is not None and leaf.top.logprobs.shape == (cap, TOP) for leaf in leaves)


def sdk(url: str, cap: int, count: int, width: int, flow: bool) -> None:
    async def one(client: Any, room: asyncio.Semaphore) -> None:
        said: dict[str, Any] = {"model": "m", "max_tokens": cap, "logprobs": True, "top_logprobs": TOP, "seed": 1}
        async with room:
            found = await client.chat.completions.create(
                messages=[{"role": "user", "content": "x"}], stream=flow, **said
            )
            if flow:
                pieces = [piece async for piece in found]
                assert len(pieces) == cap + 1
            else:
                assert len(found.choices[0].logprobs.content) == cap

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            room = asyncio.Semaphore(width)
            await asyncio.gather(*(one(client, room) for _ in range(count)))

    asyncio.run(run())


def least(runs: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """(CPU, wall) seconds of each, the least of interleaved rounds after one that warms up."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            found[name] += [(time.process_time() - cpu, time.perf_counter() - wall)] if turn else []
    return {name: (min(cpu for cpu, _ in each), min(wall for _, wall in each)) for name, each in found.items()}


def compare(url: str) -> None:
    print(f"{TOKENS:,} tokens with top-{TOP}, CPU seconds a response")
    for flow in (False, True):
        runs = {"ours": partial(ours, url, TOKENS, LONG, 1, flow), "SDK": partial(sdk, url, TOKENS, LONG, 1, flow)}
        took = least(runs, ROUNDS)
        mine, theirs = took["ours"][0] / LONG, took["SDK"][0] / LONG
        name = "streamed" if flow else "whole"
        print(
            f"  {name:9} ours {mine:7.3f}   OpenAI SDK {openai.__version__} {theirs:7.3f}   {theirs / mine:6.1f} x less"
        )
    print(f"{SHORT} tokens with top-{TOP}, {MANY} requests, {WIDTH} at a time, whole")
    runs = {"ours": partial(ours, url, SHORT, MANY, WIDTH, False), "SDK": partial(sdk, url, SHORT, MANY, WIDTH, False)}
    for name, (cpu, wall) in least(runs, ROUNDS).items():
        print(f"  {name:9} {MANY / wall:7.0f} requests/s   {1e3 * cpu / MANY:6.2f} ms CPU a request")


def main() -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        compare(f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
    finally:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
