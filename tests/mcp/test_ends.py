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
from support import ALTAIR, ENVIRONMENT, PATIENCE, SHOP, TOKEN, TOOL, HttpServer, below, command, processes, sleeping, until

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

    def __init__(self, *options, root=SHOP):
        self.process = subprocess.Popen(
            command(*options, root=root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )

        self.heard = b""

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

    def hear_line(self):
        """What it says next. Read here: a pipe object's own buffer may hold a line that `select` does not see."""
        while b"\n" not in self.heard:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, "The server says nothing."
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, "The server has ended."
            self.heard += piece
        line, _, self.heard = self.heard.partition(b"\n")
        return line

    def hear(self):
        return json.loads(self.hear_line())

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

    def test_what_is_not_declared_is_no_method(self):
        with Raw() as server:
            server.send(HELLO, GREETED)
            self.assertEqual({"tools": {}}, server.answer_to(1)["result"]["capabilities"])
            methods = (
                "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read",
                "resources/subscribe", "completion/complete", "logging/setLevel", "tasks/list",
            )
            for number, method in enumerate(methods, 2):
                params = {"name": "x", "uri": "x:y", "level": "info"}
                params |= {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}}
                server.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                self.assertEqual(-32601, server.answer_to(number)["error"]["code"], method)
                server.send({"jsonrpc": "2.0", "id": 100 + number, "method": method})
                self.assertEqual(-32601, server.answer_to(100 + number)["error"]["code"], method)

    def test_a_call_that_cannot_be_read_has_invalid_params(self):
        with Raw() as server:
            server.send(HELLO, GREETED)
            for number, params in enumerate((
                None, {}, {"arguments": {"snippet": "1"}}, {"name": 7}, {"name": TOOL, "arguments": ["1"]},
                {"name": TOOL, "arguments": "1"}, {"name": "rm", "arguments": {}},
            ), 2):
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
                server.send(message if params is None else {**message, "params": params})
                error = server.answer_to(number)["error"]
                self.assertEqual(-32602, error["code"], params)
                self.assertIn(TOOL, error["message"])

    def test_a_line_that_is_too_long_gets_an_error(self):
        with Raw() as server:
            server.send(HELLO, GREETED)
            server.answer_to(1)
            long = b'{"jsonrpc":"2.0","id":2,"method":"' + b"x" * (16 << 20) + b'"}\n'
            for _ in range(2):
                server.send(long)
                said = server.hear()
                self.assertEqual((None, -32600), (said.get("id"), said["error"]["code"]))
                self.assertIn("16 MiB", said["error"]["message"])
            server.send(call(3, "return 3;"))
            self.assertTrue(server.answer_to(3)["result"]["structuredContent"]["ok"])

    def test_a_list_of_tools_takes_few_bytes(self):
        for options in ((), ("--allow-writes", "--allow-network", "--allow-rollback", "--service=127.0.0.1:1")):
            for capabilities in ({}, {"elicitation": {}}):
                with Raw(*options) as server:
                    server.send({**HELLO, "params": {**HELLO["params"], "capabilities": capabilities}}, GREETED)
                    server.answer_to(1)
                    server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
                    line = server.hear_line()
                    self.assertIn(TOOL, line.decode())
                    self.assertLessEqual(len(line), 2500, (options, capabilities))

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

    async def test_the_end_of_a_session_ends_its_run_at_once(self):
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as client:
            sessions = []
            for _ in range(2):
                hello = await client.post(self.server.url, json=HELLO)
                sessions.append({"Mcp-Session-Id": hello.headers["mcp-session-id"]})
                await client.post(self.server.url, json=GREETED, headers=sessions[-1])
            await client.post(self.server.url, json=call(2, "return 1;"), headers=sessions[0])
            calls, ran = [], []
            for session in sessions:
                before = sleeping(self.server.process.pid)
                message = call(3, "sleep(50);", timeout_ms=60000)
                calls.append(asyncio.create_task(client.post(self.server.url, json=message, headers=session)))
                await until(lambda: sleeping(self.server.process.pid) > before, "It runs.")
                ran.append(sleeping(self.server.process.pid) - before)
            began = time.monotonic()
            await client.delete(self.server.url, headers=sessions[0])
            await until(lambda: not ran[0] & set(processes()), "It is ended.")
            self.assertLess(time.monotonic() - began, 1.5)
            self.assertEqual(ran[1], sleeping(self.server.process.pid), "The other session's run goes on.")
            await client.delete(self.server.url, headers=sessions[1])
            await until(lambda: not ran[1] & set(processes()), "It is ended.")
            await asyncio.gather(*calls, return_exceptions=True)

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
            await until(lambda: sleeping(server.process.pid), "It runs.")
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
