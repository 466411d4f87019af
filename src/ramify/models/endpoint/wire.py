"""The client: requests go out as there is room for them, leaves come back as they finish.

Outside it is a plain iterator. Inside, one thread runs an event loop with one pool of connections; it goes on reading
while the caller thinks. Closing the iterator, an exception or Ctrl-C ends the thread and every connection, and a
server that notices a closed connection stops generating.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import httpx2
import msgspec

from ramify.errors import EndpointError, RamifyError
from ramify.models.endpoint.flow import Aimd, retry_after
from ramify.models.endpoint.job import Job
from ramify.models.endpoint.line import line
from ramify.models.endpoint.replies import Malformed, decoder
from ramify.models.endpoint.secret import fetch, scrub
from ramify.types import Leaf, Request

if TYPE_CHECKING:
    import ssl

    from ramify.models.endpoint.endpoint import Endpoint

__all__ = ["headers", "sample"]

TICK = 0.1  # seconds between two looks at what was cancelled meanwhile


class Refused(Exception):
    """Come back later: nothing was drawn."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds


class Fault(Exception):
    """An attempt that failed; another may not."""


def sample(endpoint: Endpoint, requests: Iterable[Request]) -> Iterator[Leaf]:
    """Leaves of an endpoint, in the order in which they finish."""
    wire = Wire(endpoint)
    try:
        yield from _served(wire, requests)
    finally:
        wire.close()


def _served(wire: Wire, requests: Iterable[Request]) -> Iterator[Leaf]:
    waiting, under_way = iter(requests), set[Job]()
    while True:
        while len(under_way) < wire.room and (request := next(waiting, None)) is not None:
            under_way.add(wire.submit(request))
        if not under_way:
            return
        found = None
        while found is None:
            unwanted = getattr(requests, "cancelled", None) or ()
            for job in under_way if unwanted else ():
                if job.request.key in unwanted:
                    wire.cancel(job)
            found = wire.next_leaf(TICK)
        job, leaf = found
        under_way.remove(job)
        yield leaf


def headers(secret: str) -> dict[str, str]:
    """What every request says of itself. The only place where the key is used."""
    plain = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    return plain | ({"authorization": f"Bearer {secret}"} if secret else {})


class Wire:
    """The thread with the event loop, and what may be asked of it from outside."""

    def __init__(self, endpoint: Endpoint) -> None:
        assert not isinstance(endpoint.urls, str)
        self._secret = fetch(endpoint.key)
        self._exchange = Exchange(endpoint, self._secret)
        self._outcomes: SimpleQueue[tuple[Job, Leaf | BaseException]] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="ramify-wire", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._exchange.close())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    @property
    def room(self) -> int:
        """Requests that may be under way, over all servers."""
        return sum(max(1, int(server.window.size)) for server in self._exchange.servers.values())

    def submit(self, request: Request) -> Job:
        job = Job(request, self._exchange.endpoint)
        self._loop.call_soon_threadsafe(self._begin, job)
        return job

    def _begin(self, job: Job) -> None:
        job.task = self._loop.create_task(self._exchange.answer(job))
        job.task.add_done_callback(lambda task: self._finished(job, task))

    def _finished(self, job: Job, task: asyncio.Task[Leaf]) -> None:
        if task.cancelled():
            if job.cancelled:  # before it had begun
                self._outcomes.put((job, job.leaf("stop:cancelled")))
            return
        self._outcomes.put((job, task.exception() or task.result()))

    def cancel(self, job: Job) -> None:
        """Give a request up: it is answered with a leaf of what it had."""
        if not job.cancelled:
            job.cancelled = True
            self._loop.call_soon_threadsafe(lambda: job.task and job.task.cancel())

    def next_leaf(self, seconds: float) -> tuple[Job, Leaf] | None:
        """The next leaf and its request, or None if none comes for a while. An error inside is raised here."""
        try:
            job, found = self._outcomes.get(timeout=seconds)
        except Empty:
            if not self._thread.is_alive():
                raise EndpointError(
                    "the thread of the client has ended: ask again, a rerun goes on from here"
                ) from None
            return None
        if isinstance(found, BaseException):
            raise found
        return job, found

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)


class Turns:
    """The room at one server: a window that adapts, and a door that a Retry-After closes for a while."""

    def __init__(self, rule: Aimd) -> None:
        self.rule, self.window = rule, rule.start()
        self.under_way, self.closed_until = 0, 0.0
        self.lines: list[httpx2.AsyncClient] = []  # connections that nobody is using, the last used one last
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Wait for room; gives the time of launching."""
        loop = asyncio.get_running_loop()
        while self.under_way >= max(1, int(self.window.size)) or loop.time() < self.closed_until:
            place = loop.create_future()
            self._waiting.append(place)
            if loop.time() < self.closed_until:
                loop.call_at(self.closed_until, self._wake)
            try:
                await place
            except asyncio.CancelledError:
                self._wake()  # the place may have been given to this one
                raise
        self.under_way += 1
        try:
            yield loop.time()
        finally:
            self.under_way -= 1
            self._wake()

    def _wake(self) -> None:
        free = max(1, int(self.window.size)) - self.under_way
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def succeeded(self) -> None:
        self.window = self.rule.grown(self.window)

    def refused(self, launched: float, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        self.window = self.rule.cut_down(self.window, launched, now)
        self.closed_until = max(self.closed_until, now + seconds)


class Exchange:
    """Requests and answers, inside the loop."""

    def __init__(self, endpoint: Endpoint, secret: str) -> None:
        assert not isinstance(endpoint.urls, str)
        self.endpoint, self._secret = endpoint, secret
        self.servers = {url: Turns(endpoint.concurrency) for url, _ in endpoint.urls}
        self._decoder = decoder(endpoint.dialect.ids)
        self._trusted: ssl.SSLContext | None = None

    async def answer(self, job: Job) -> Leaf:
        """A leaf, after as many attempts as it takes and the policy allows."""
        try:
            return await self._attempts(job) if job.request.cap else job.leaf("length")
        except asyncio.CancelledError:
            if not job.cancelled:
                raise
            return job.leaf("stop:cancelled")
        except RamifyError:
            raise
        except Exception as error:  # a stop of the caller's, or a mistake of ours: never the text of a request
            raise EndpointError(f"{job.request.key}: {self._said(error)}") from None

    async def _attempts(self, job: Job) -> Leaf:
        retry, loop = self.endpoint.retry, asyncio.get_running_loop()
        patient_until = None
        while True:
            server = self.servers[job.url]
            async with server.turn() as launched:
                try:
                    ended = await self._once(job)
                    server.succeeded()
                    return job.leaf(ended)
                except Refused as refused:
                    job.refused += 1
                    patient_until = patient_until or launched + retry.patience
                    wait = refused.seconds or retry.wait(job.refused, job.request.key)  # "after 0 s" says nothing
                    server.refused(launched, wait)
                    if loop.time() + wait > patient_until:
                        raise EndpointError(self._gave_up(job, f"{job.url} is full for {retry.patience} s")) from None
                    continue
                except (Fault, Malformed, httpx2.HTTPError, TimeoutError, msgspec.MsgspecError) as error:
                    job.fail(self._said(error))
            if len(job.failures) >= retry.attempts:
                raise EndpointError(self._gave_up(job, "; ".join(dict.fromkeys(job.failures))))
            await asyncio.sleep(retry.wait(len(job.failures), job.request.key))

    def _gave_up(self, job: Job, why: str) -> str:
        remedy = "look at the server's log, or give Retry more attempts or patience; a rerun goes on from here"
        return f"{job.request.key} was not answered in {len(job.failures)} attempts ({why}): {remedy}"

    def _said(self, error: Exception) -> str:
        """An error in its own words, without the key."""
        return scrub(f"{type(error).__name__}: {error}".removesuffix(": "), self._secret)

    async def _once(self, job: Job) -> str:
        """One attempt: how the response ended."""
        job.begin(sum(server.under_way for server in self.servers.values()) - 1)
        path = "/chat/completions" if self.endpoint.route == "chat" else "/completions"
        async with asyncio.timeout(self.endpoint.timeouts.whole), self._reply(job, job.url + path) as response:
            if response.status_code != 200:
                await self._refuse(response)
            if "event-stream" in response.headers.get("content-type", ""):
                ended = await self._streamed(job, response)
            else:
                ended = self._whole(job, b"".join([chunk async for chunk in job.bounded(response.aiter_bytes())]))
        job.seconds = time.perf_counter() - job.start
        job.trace.check(self.endpoint.logprobs or job.request.top > 0)
        return ended

    async def _streamed(self, job: Job, response: httpx2.Response) -> str:
        """Pieces as they come. Leaving early closes the connection, and the server stops."""
        rest = b""
        async for chunk in job.bounded(response.aiter_bytes()):
            *lines, rest = (rest + chunk).split(b"\n")
            for event in lines:
                if not event.startswith(b"data:") or event[5:].strip() in (b"", b"[DONE]"):  # the blank is optional
                    continue
                job.trace.hear(self._decoder.decode(event[5:]))
                if ended := job.halted():
                    return ended
        if not job.trace.finish:
            raise Malformed(f"the stream was cut after {job.trace.count} tokens")
        return job.ended()

    def _whole(self, job: Job, body: bytes) -> str:
        job.trace.hear(self._decoder.decode(body))
        if not job.trace.finish:
            raise Malformed("a response without an end")
        return job.halted() or job.ended()

    async def _refuse(self, response: httpx2.Response) -> None:
        """What a status says: later, again, or never."""
        status = response.status_code
        later = retry_after(dict(response.headers), datetime.now(UTC))
        if status == 429 or (status == 503 and later is not None):
            raise Refused(later)
        body = (await response.aread())[:2000].decode(errors="replace")
        said = f"{status} from {response.url.copy_with(query=None)}: {scrub(body, self._secret)}"
        if status in (408, 425) or status >= 500:
            raise Fault(said)
        remedies = {401: self._keyed(), 403: self._keyed(), 404: "check the model's name and the URL"}
        raise EndpointError(f"{said} ({remedies.get(status, 'the server does not take this request')})")

    def _keyed(self) -> str:
        return f"check the key at {self.endpoint.key}" if self.endpoint.key else "name a key: Endpoint(key='env:NAME')"

    @asynccontextmanager
    async def _reply(self, job: Job, url: str) -> AsyncIterator[httpx2.Response]:
        """The response to a request, on a connection that is kept open for the next one.

        A client has one connection. One pool for all would look at every connection for every request: at 256 of them
        that is most of the work.
        """
        lines = self.servers[job.url].lines
        kept = bool(lines)
        client = lines.pop() if kept else self._connected()
        try:
            response = await self._sent(client, client.build_request("POST", url, content=job.body), kept)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            lines.append(client)

    async def _sent(self, client: httpx2.AsyncClient, request: httpx2.Request, kept: bool) -> httpx2.Response:
        """Send it. Servers close idle connections when they like: one that dies unheard is opened anew, no attempt."""
        try:
            return await client.send(request, stream=True)
        except httpx2.TransportError as error:
            if not kept or "Timeout" in str(error):
                raise
        return await client.send(request, stream=True)

    def _connected(self) -> httpx2.AsyncClient:
        if self._trusted is None:  # once: it reads the system's certificates, which plain HTTP does not need
            self._trusted = httpx2.create_ssl_context(any(url.startswith("https:") for url in self.servers))
        times = self.endpoint.timeouts
        timeout = httpx2.Timeout(times.silence, connect=times.connect, pool=None)
        return line(headers(self._secret), timeout, self._trusted)

    async def close(self) -> None:
        """Cancel everything and close every connection."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for server in self.servers.values():
            for client in server.lines:
                await client.aclose()
