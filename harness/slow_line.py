"""A connection to a local server with the delay of a line across an ocean."""

from __future__ import annotations

import asyncio
import random
import threading
from types import TracebackType


class SlowLine:
    """Passes on every byte, HTTP and WebSocket alike, `milliseconds` after it came, each way.

    The delay may be changed while the line is in use. Bytes stay in their order, and no more time
    passes for many than for few: the line is far away, not narrow. `jitter` is by how much more
    each way may take, by chance; while `silent`, nothing arrives and nothing is lost; `cut` and
    `mend` are a line that breaks.
    """

    def __init__(self, port: int, milliseconds: float = 0) -> None:
        self.to = port
        self.milliseconds = milliseconds
        self.jitter = 0.0
        self.silent = False
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._chance = random.Random(0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> SlowLine:
        self._thread.start()
        starting = asyncio.start_server(self._connect, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        self._is_cut = True
        for writer in list(self._open):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    def mend(self) -> None:
        self._is_cut = False

    async def _close(self) -> None:
        self._server.close()
        own = asyncio.current_task()
        running = [task for task in asyncio.all_tasks() if task is not own]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        both = {writer}
        try:
            if self._is_cut:
                writer.transport.abort()
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to)
            both.add(far_writer)
            self._open |= both
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:  # as where there is no line, whoever asked is told that nobody answers
            self._open -= both
            for each in both:
                each.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        due = 0.0
        arriving = asyncio.create_task(self._arrive(on_the_way, writer))
        try:
            data = b"-"
            while data:  # the empty one says that the other side is done
                data = await reader.read(65_536)
                takes = self.milliseconds + self._chance.uniform(0, self.jitter)
                due = max(due, self._loop.time() + takes / 1000)
                on_the_way.put_nowait((due, data))
            await arriving
        finally:
            arriving.cancel()
            writer.close()

    async def _arrive(
        self, on_the_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        while True:
            due, data = await on_the_way.get()
            await asyncio.sleep(max(due - self._loop.time(), 0))
            while self.silent:
                await asyncio.sleep(0.02)
            if not data:
                return
            writer.write(data)
            await writer.drain()
