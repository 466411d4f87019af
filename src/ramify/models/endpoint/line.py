"""A client with one connection, which reads what has come and not a sixteenth of it at a time.

A response with alternatives is ten megabytes. The engine below the client asks for 64 KB, the event loop has read 256,
and what is left over is copied again and again: asking for all of it halves the cost of the transport.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

__all__ = ["line"]

CHUNK = 1 << 18
BROKEN = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol)


def line(headers: dict[str, str], timeout: httpx2.Timeout, trusted: ssl.SSLContext) -> httpx2.AsyncClient:
    """The client. It heeds no proxy of the environment, which would see the key."""
    return httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_Transport(trusted), trust_env=False)


@contextmanager
def _told() -> Iterator[None]:
    """The engine's errors as the client's, by name."""
    try:
        yield
    except BROKEN as error:
        raise httpx2.TransportError(f"{type(error).__name__}: {error}".removesuffix(": ")) from None


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self.write, self.aclose, self.get_extra_info = inner.write, inner.aclose, inner.get_extra_info  # type: ignore[method-assign]

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max(max_bytes, CHUNK), timeout)

    async def start_tls(self, *given: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(*given, **named))


class _Backend(httpcore2.AnyIOBackend):
    async def connect_tcp(self, *given: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await super().connect_tcp(*given, **named))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _told():
            async for part in self._inner:
                yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(self, trusted: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted, max_connections=1, max_keepalive_connections=1, network_backend=_Backend()
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        place = request.url
        url = httpcore2.URL(scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=place.raw_path)
        asked = httpcore2.Request(
            request.method, url, headers=request.headers.raw, content=request.stream, extensions=request.extensions
        )
        with _told():
            found = await self._pool.handle_async_request(asked)
        return httpx2.Response(
            found.status, headers=found.headers, stream=_Body(found.stream), extensions=found.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()
