"""What the tests of `altair mcp:serve` share: servers, clients of the official SDK, and processes seen from outside."""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOP = ROOT / "examples" / "shop"
ALTAIR = os.environ.get("ALTAIR_NATIVE") or str(ROOT / "target" / "release" / "altair")
TOKEN = "a token that only tests have"
TOOL = "framework__eval"
# Seconds in which what has to come, or to be gone, is so on the slowest of machines.
PATIENCE = 20

ENVIRONMENT = {**os.environ, "ALTAIR_MCP_TOKEN": TOKEN}


def command(*options, root=SHOP):
    """The words that start a server."""
    return [ALTAIR, "mcp:serve", f"--root={root}", *options]


def processes():
    """Every process that has not ended: id => (parent, name)."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, name, rest = re.match(r"(\d+) \((.*)\) (.*)", stat.read_text(), re.S).groups()
            state, parent = rest.split()[:2]
            if state not in "ZX":
                found[int(pid)] = (int(parent), name)
    return found


def below(pid):
    """The ids of all that a process has started, and what these have."""
    family, grown = {pid}, True
    everything = processes()
    while grown:
        more = {child for child, (parent, _) in everything.items() if parent in family} - family
        grown = bool(more)
        family |= more
    return family - {pid}


def sleeping(pid):
    """The ids of those of them that are in sleep(): runs of it. A fork that waits for its task is in poll(2)."""
    found = set()
    for one in below(pid):
        with contextlib.suppress(OSError):
            # clock_nanosleep(2) on x86_64 and on aarch64.
            if pathlib.Path(f"/proc/{one}/syscall").read_text().split()[0] in ("230", "115"):
                found.add(one)
    return found


async def until(is_so, what):
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"It did not come to it: {what}")
        await asyncio.sleep(0.01)


class HttpServer:
    """A server over HTTP on a free port of loopback."""

    def __init__(self, *options, root=SHOP, environment=ENVIRONMENT):
        words = command("--transport=http", "--port=0", *options, root=root)
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, env=environment, text=True)
        self.said = self.process.stderr.readline()
        self.url = re.search(r"http://\S+/mcp", self.said).group()

    @property
    def port(self):
        return int(re.search(r":(\d+)/mcp", self.url).group(1))

    def end(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        code = self.process.wait(PATIENCE)
        self.process.stderr.close()
        return code


class Clients(unittest.IsolatedAsyncioTestCase):
    """Sessions of the official SDK. What a server has started is gone when its session is."""

    @contextlib.asynccontextmanager
    async def stdio(self, *options, root=SHOP, person=None):
        parameters = StdioServerParameters(
            command=ALTAIR, args=command(*options, root=root)[1:], env=ENVIRONMENT
        )
        with open(os.devnull, "w") as errors:
            async with stdio_client(parameters, errlog=errors) as (read, write):
                async with ClientSession(read, write, elicitation_callback=person) as session:
                    session.hello = await session.initialize()
                    own = [pid for pid, (parent, name) in processes().items() if parent == os.getpid() and name == "altair"]
                    session.server = max(own)
                    yield session
                    family = below(session.server) | {session.server}
        await until(lambda: not family & set(processes()), "The server has left nothing.")

    @contextlib.asynccontextmanager
    async def http(self, *options, root=SHOP, person=None):
        server = HttpServer(*options, root=root)
        try:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as client:
                async with streamable_http_client(server.url, http_client=client) as streams:
                    async with ClientSession(*streams[:2], elicitation_callback=person) as session:
                        session.hello = await session.initialize()
                        session.server = server.process.pid
                        yield session
        finally:
            family = below(server.process.pid) | {server.process.pid}
            code = server.end()
        self.assertEqual(0, code)
        await until(lambda: not family & set(processes()), "The server has left nothing.")

    async def evaluate(self, session, snippet, **arguments):
        """One call, whose text and structure are the same; gives the structure."""
        answer = await session.call_tool(TOOL, {"snippet": snippet, **arguments})
        self.assertEqual(answer.structured_content, json.loads(answer.content[0].text))
        self.assertEqual(answer.structured_content["ok"], not answer.is_error)
        return answer.structured_content

    async def refused(self, session, arguments):
        """What a call says that is not run."""
        answer = await session.call_tool(TOOL, arguments)
        self.assertTrue(answer.is_error)
        self.assertIsNone(answer.structured_content)
        return answer.content[0].text
