"""Servers that are spoken to badly, or end badly: raw bytes, and clients and servers that go away."""

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import time
import unittest

import httpx2
from support import ALTAIR, ENVIRONMENT, PATIENCE, SHOP, TOKEN, TOOL, HttpServer, below, command, processes, until

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
GREETED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number, snippet, **arguments):
    arguments = {"snippet": snippet, **arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": TOOL, "arguments": arguments}}


class Raw:
    """A server on pipes, and what it says, line by line."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            command(*options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def send(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def hear(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "The server says nothing."
        return json.loads(self.process.stdout.readline())

    def answer_to(self, number):
        while (said := self.hear()).get("id") != number:
            pass
        return said

    def family(self):
        return below(self.process.pid) | {self.process.pid}


class OnPipes(unittest.IsolatedAsyncioTestCase):
    async def gone(self, family):
        await until(lambda: not family & set(processes()), "Nothing is left.")

    def test_garbage_is_passed_over(self):
        with Raw() as server:
            server.send(HELLO)
            server.answer_to(1)
            server.send(GREETED)
            garbage = [b"\n", b"garbage\n", b"\xff\xfe\x00\n", b"{\n", b"[1, 2\n", b'{"jsonrpc":"2.0"}\n', b"[]\n", b"null\n"]
            server.send(*garbage, call(2, "return 2;"))
            self.assertEqual(2, server.answer_to(2)["result"]["structuredContent"]["result"])

    def test_a_message_may_come_in_pieces(self):
        with Raw() as server:
            for piece in (json.dumps(HELLO) + "\n").encode().splitlines(keepends=True):
                server.send(piece[:30])
                time.sleep(0.05)
                server.send(piece[30:])
            self.assertEqual("altair-eval", server.answer_to(1)["result"]["serverInfo"]["name"])

    def test_an_unknown_method_is_an_error_of_the_protocol(self):
        with Raw() as server:
            server.send(HELLO, GREETED, {"jsonrpc": "2.0", "id": 7, "method": "no/such"})
            self.assertEqual(-32601, server.answer_to(7)["error"]["code"])

    def test_nothing_but_messages_is_on_standard_output(self):
        with Raw() as server:
            server.send(HELLO, GREETED, call(2, "echo 'out'; fwrite(STDERR, 'err'); error_log('log'); return 1;"))
            server.answer_to(2)
            server.process.stdin.close()
            self.assertEqual(b"", server.process.stdout.read())
            self.assertRegex(server.process.stderr.read(), rb"^altair: serving framework__eval for .*/shop; [^\n]*\n$")
            self.assertEqual(0, server.process.wait(PATIENCE))

    async def test_a_client_that_goes_away_in_the_middle_ends_the_server_and_its_runs(self):
        with Raw() as server:
            server.send(HELLO, GREETED, call(2, "return 1;"))
            server.answer_to(2)
            server.send(*[call(number, "sleep(50);", timeout_ms=60000) for number in (3, 4, 5)])
            await until(lambda: len(server.family()) >= 4, "They run.")
            family = server.family()
            server.process.stdin.close()
            server.process.stdout.close()
            self.assertEqual(0, server.process.wait(PATIENCE))
            await self.gone(family)

    async def test_half_a_message_is_the_end_of_the_client(self):
        with Raw() as server:
            server.send(HELLO, b'{"jsonrpc":"2.0","id":2,"method":"tools/ca')
            server.answer_to(1)
            server.process.stdin.close()
            self.assertEqual(0, server.process.wait(PATIENCE))

    def test_a_client_that_says_nothing_is_no_error(self):
        with Raw() as server:
            server.process.stdin.close()
            self.assertEqual(0, server.process.wait(PATIENCE))

    async def test_a_killed_server_leaves_nothing(self):
        for with_signal, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 0), (signal.SIGINT, 0)):
            with Raw() as server:
                server.send(HELLO, GREETED, call(2, "return 1;"))
                server.answer_to(2)
                server.send(call(3, "sleep(50);", timeout_ms=60000))
                await until(lambda: len(server.family()) >= 4, "It runs.")
                family = server.family()
                server.process.send_signal(with_signal)
                self.assertEqual(code, server.process.wait(PATIENCE))
                await self.gone(family)


class OverHttp(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.server = HttpServer()
        self.addCleanup(self.server.end)

    def post(self, message=HELLO, **changed):
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **changed,
        }
        headers = {name: value for name, value in headers.items() if value is not None}
        return httpx2.post(self.server.url, json=message, headers=headers, timeout=PATIENCE)

    def test_who_has_the_token_is_served(self):
        self.assertEqual(200, self.post().status_code)
        self.assertEqual(200, self.post(Origin="http://localhost:6274").status_code)

    def test_others_are_refused_and_told_what_to_do(self):
        for changed, status, said in (
            ({"Authorization": None}, 401, "Authorization: Bearer <token>"),
            ({"Authorization": "Bearer another token of that length"}, 401, "Authorization: Bearer <token>"),
            ({"Origin": "https://evil.example"}, 403, "evil.example"),
            ({"Origin": "null"}, 403, "null"),
            ({"Host": "evil.example"}, 403, "evil.example"),
        ):
            answer = self.post(**changed)
            self.assertEqual(status, answer.status_code, changed)
            self.assertIn(said, answer.json()["error"]["message"])
            self.assertEqual(status == 401, "www-authenticate" in answer.headers)
        self.assertEqual(set(), below(self.server.process.pid), "Nothing was run.")

    def test_there_is_nothing_elsewhere(self):
        answer = httpx2.get(self.server.url.replace("/mcp", "/"), headers={"Authorization": f"Bearer {TOKEN}"})
        self.assertEqual(404, answer.status_code)
        self.assertIn("/mcp", answer.json()["error"]["message"])

    def test_garbage_is_no_end(self):
        for garbage in (b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\n", b"\x00" * 100_000, b"POST /mcp HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
                raw.sendall(garbage)
        self.assertEqual(200, self.post().status_code)

    def test_a_message_that_is_too_long_is_refused(self):
        long = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"x": "y" * (17 << 20)}}
        self.assertEqual(413, self.post(long).status_code)
        self.assertEqual(200, self.post().status_code)

    def test_a_port_in_use_is_told(self):
        words = command("--transport=http", f"--port={self.server.port}")
        ended = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((2, ""), (ended.returncode, ended.stdout))
        self.assertRegex(ended.stderr, r"^altair: cannot listen on 127\.0\.0\.1, port \d+: it is in use; .*--port.*\n$")

    async def test_a_killed_server_leaves_nothing(self):
        server = HttpServer()
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            headers = {
                "Authorization": f"Bearer {TOKEN}",
                "Accept": "application/json, text/event-stream",
            }
            hello = await client.post(server.url, json=HELLO, headers=headers)
            headers["Mcp-Session-Id"] = hello.headers["mcp-session-id"]
            await client.post(server.url, json=GREETED, headers=headers)
            running = asyncio.create_task(client.post(server.url, json=call(2, "sleep(50);", timeout_ms=60000), headers=headers))
            await until(lambda: len(below(server.process.pid)) >= 3, "It runs.")
            family = below(server.process.pid)
            self.assertEqual(-9, server.end(signal.SIGKILL))
            await until(lambda: not family & set(processes()), "Nothing is left.")
            with self.assertRaises(httpx2.HTTPError):
                await running


class OfTheCommand(unittest.TestCase):
    def run_server(self, *options, environment=None, root=SHOP):
        return subprocess.run(
            command(*options, root=root), env={**ENVIRONMENT, **(environment or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE,
        )

    def test_wrong_usage_is_one_line_and_exit_code_2(self):
        for options, said in (
            (["--transport=carrier-pigeon"], "carrier-pigeon"),
            (["--port=70000"], "70000"),
            (["--readonly", "--allow-writes"], "--allow-writes"),
            (["--unsafe"], "--unsafe"),
            (["--php=/no/such/php"], "/no/such/php"),
            (["--transport=http", "--host=192.0.2.1"], "192.0.2.1"),
        ):
            ended = self.run_server(*options)
            self.assertEqual((2, ""), (ended.returncode, ended.stdout), options)
            self.assertIn(said, ended.stderr)
            self.assertTrue(ended.stderr.startswith("altair: "), ended.stderr)
            self.assertEqual(1, ended.stderr.count("\n"), ended.stderr)
        ended = self.run_server(root="/no/such/project")
        self.assertEqual(2, ended.returncode)
        self.assertIn("/no/such/project", ended.stderr)

    def test_a_token_that_is_too_short_is_refused(self):
        ended = self.run_server("--transport=http", "--port=0", environment={"ALTAIR_MCP_TOKEN": "secret"})
        self.assertEqual(2, ended.returncode)
        self.assertRegex(ended.stderr, r"^altair: the token in ALTAIR_MCP_TOKEN cannot be used: .*16")
        self.assertNotIn("secret", ended.stderr)

    def test_a_token_is_made_where_there_is_none_and_is_not_known_to_runs(self):
        environment = {name: value for name, value in ENVIRONMENT.items() if name != "ALTAIR_MCP_TOKEN"}
        server = HttpServer(environment=environment)
        try:
            token = server.process.stderr.readline().removeprefix("altair: token: ").strip()
            self.assertRegex(token, r"^[0-9a-f]{64}$")
            headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
            self.assertEqual(200, httpx2.post(server.url, json=HELLO, headers=headers).status_code)
        finally:
            self.assertEqual(0, server.end())

    def test_the_token_is_not_in_the_environment_of_runs(self):
        with Raw() as server:
            server.send(HELLO, GREETED, call(2, "return getenv('ALTAIR_MCP_TOKEN');"))
            self.assertIs(False, server.answer_to(2)["result"]["structuredContent"]["result"])

    def test_its_help_says_how(self):
        ended = subprocess.run([ALTAIR, "mcp:serve", "--help"], capture_output=True, text=True)
        self.assertEqual(0, ended.returncode)
        for said in ("--transport", "--allow-writes", "--readonly", "ALTAIR_MCP_TOKEN", "framework__eval"):
            self.assertIn(said, ended.stdout)


if __name__ == "__main__":
    unittest.main()
