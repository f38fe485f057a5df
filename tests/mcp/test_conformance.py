"""The protocol's official conformance suite, in the release and in the alpha for the newest revision.

It is for servers that play a part of its own: most scenarios call tools, prompts and resources by names that it gives. What a
server with one tool cannot pass is in `conformance/`, with the reason; what is listed there and passes fails the test.
"""

import asyncio
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

from support import PATIENCE, TOKEN, HttpServer

CONFORMANCE = os.environ["CONFORMANCE"]
BASELINES = pathlib.Path(__file__).parent / "conformance"


class WithToken:
    """Passes requests on with the server's token, which the suite cannot send: one request a connection."""

    def __init__(self, server):
        self.server = server
        self.started = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()))
        self.thread.start()
        self.started.wait(PATIENCE)

    async def run(self):
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        self.connections = set()
        listener = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        self.started.set()
        await self.ended.wait()
        listener.close()
        for connection in self.connections:
            connection.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    def end(self):
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join()

    def connect(self, reader, writer):
        connection = asyncio.create_task(self.serve(reader, writer))
        self.connections.add(connection)
        connection.add_done_callback(self.connections.discard)

    async def serve(self, reader, writer):
        upstream = None
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = [line for line in head.strip().split("\r\n") if not line.lower().startswith("connection:")]
            # The names in `Host` and `Origin` are the suite's to choose; the port is this one.
            lines = [
                line.replace(f":{self.port}", f":{self.server.port}") if line.lower().startswith("host:") else line
                for line in lines
            ]
            lines += [f"Authorization: Bearer {TOKEN}", "Connection: close", "", ""]
            answers, upstream = await asyncio.open_connection("127.0.0.1", self.server.port)
            upstream.write("\r\n".join(lines).encode("latin-1"))
            ends = [asyncio.create_task(self.pump(reader, upstream)), asyncio.create_task(self.pump(answers, writer))]
            # Whoever ends, the request is over.
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()
            if upstream:
                upstream.close()

    async def pump(self, reader, writer):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()


class Conformance(unittest.TestCase):
    def check(self, version, *options):
        server = HttpServer()
        proxy = WithToken(server)
        try:
            with tempfile.TemporaryDirectory() as results:
                words = [CONFORMANCE, version, "server", "--url", f"http://127.0.0.1:{proxy.port}/mcp"]
                words += ["--expected-failures", BASELINES / f"{version}.yml", "--output-dir", results, *options]
                ended = subprocess.run(words, cwd=results, capture_output=True, text=True, timeout=30 * PATIENCE)
                self.assertEqual(0, ended.returncode, ended.stdout[-20000:] + ended.stderr[-5000:])
                return ended.stdout
        finally:
            proxy.end()
            self.assertEqual(0, server.end())

    def test_the_release(self):
        self.check("release", "--suite", "all")

    def test_the_alpha_for_the_newest_revision(self):
        self.check("alpha", "--requirements", "2026-07-28")


if __name__ == "__main__":
    unittest.main()
