"""The official Python SDK, over standard input and output and over HTTP."""

import asyncio
import json
import os
import random
import socket
import tempfile
import time
import unittest

from support import PATIENCE, TOOL, Clients, below, processes, sleeping, until


class Conversation:
    """What a client may do, whatever carries it."""

    def connect(self, *options, **named):
        raise NotImplementedError

    async def test_it_says_what_it_is(self):
        async with self.connect() as session:
            self.assertEqual("altair-eval", session.hello.server_info.name)
            self.assertIn(TOOL, session.hello.instructions)
            [tool] = (await session.list_tools()).tools
            self.assertEqual(TOOL, tool.name)
            self.assertEqual(["snippet"], tool.input_schema["required"])
            self.assertFalse(tool.input_schema["additionalProperties"])
            self.assertEqual(["ok"], tool.output_schema["required"])

    async def test_arguments_that_are_refused_are_not_in_its_schema(self):
        always = ["snippet", "timeout_ms", "queries", "arguments", "depth", "max_items", "max_string", "diff", "verbose", "typed"]
        for options, more in {
            (): [],
            ("--allow-writes",): ["allow_writes", "database"],
            ("--allow-rollback",): ["database"],
            ("--allow-network",): ["allow_network"],
        }.items():
            async with self.connect(*options) as session:
                [tool] = (await session.list_tools()).tools
                self.assertCountEqual(always + more, tool.input_schema["properties"], options)


    async def test_its_annotations_say_what_it_may_do(self):
        for options, expected in {
            (): (True, False, False),
            ("--readonly",): (True, False, False),
            ("--allow-writes",): (False, True, False),
            ("--allow-network",): (False, True, True),
            ("--service=127.0.0.1:1",): (False, True, False),
            ("--service=127.0.0.1:3306", "--service=db.example:5432"): (False, False, False),
            ("--service=127.0.0.1:3306", "--service=127.0.0.1:6379"): (False, True, False),
            ("--service=none",): (True, False, False),
        }.items():
            async with self.connect(*options) as session:
                hints = (await session.list_tools()).tools[0].annotations
                said = (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint)
                self.assertEqual(expected, said, options)

    async def test_it_answers_with_the_value(self):
        async with self.connect() as session:
            result = await self.evaluate(
                session, "return container(Shop\\UserRepository::class)->find(1)->name;", verbose=True
            )
            self.assertEqual("Ada", result["result"])
            self.assertEqual("cold", result["diagnostics"]["start"])
            await self.evaluate(session, "1 + 1")
            result = await self.evaluate(session, "1 + 1", verbose=True)
            self.assertEqual(2, result["result"])
            self.assertEqual("warm", result["diagnostics"]["start"])
            result = await self.evaluate(session, "1 + 1", typed=True)
            self.assertEqual({"type": "int", "value": 2}, result["result"])
            self.assertNotIn("diagnostics", result)

    async def test_it_tells_what_databases_were_asked(self):
        snippet = "return count(container(Shop\\OrderRepository::class)->withStatus(Shop\\OrderStatus::Paid));"
        async with self.connect() as session:
            result = await self.evaluate(session, snippet, queries=True)
            told = [(query["sql"], query["times"]) for query in result["diagnostics"]["queries"]]
            self.assertIn(("SELECT * FROM users WHERE id = ?", result["result"]), told)
            result = await self.evaluate(session, snippet)
            self.assertNotIn("diagnostics", result)

    async def test_every_ending_is_in_the_schema_and_only_a_clean_one_is_no_error(self):
        endings = {
            "return 1;": "returned",
            "throw new DomainException('boom');": "threw",
            "return 1 +;": "threw",
            "exit(3);": "exited",
            "trigger_error('gone', E_USER_ERROR);": "fatal",
            "str_repeat('x', 1 << 30);": "out_of_memory",
            "posix_kill(getmypid(), SIGKILL);": "signalled",
            "while (true) { echo str_repeat('x', 65536); }": "timed_out",
            "file_put_contents('new', 'x'); return @shell_exec('id');": "threw",
            "return [1.5, null, new ArrayObject([1]), fopen('php://memory', 'r'), \"\\xff\"];": "returned",
        }
        async with self.connect() as session:
            # The client checks each answer against the schema.
            await session.list_tools()
            for snippet, outcome in endings.items():
                result = await self.evaluate(session, snippet, timeout_ms=3000)
                told = result.get("diagnostics", {}).get("outcome", "returned")
                self.assertEqual(outcome, told, result)
                self.assertEqual(outcome == "returned", result["ok"])

    async def test_a_declared_service_is_reached_and_no_other_address(self):
        with socket.create_server(("127.0.0.1", 0)) as declared, socket.create_server(("127.0.0.1", 0)) as other:
            addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in (declared, other)]
            snippet = "return @stream_socket_client('tcp://%s', $code, $why, 5) ? 'connected' : $why;"
            async with self.connect(f"--service={addresses[0]}") as session:
                result = await self.evaluate(session, snippet % addresses[0])
                self.assertEqual("connected", result["result"])
                result = await self.evaluate(session, snippet % addresses[1])
                self.assertNotEqual("connected", result["result"])
                [lift] = [blocked["lift"] for blocked in result["diagnostics"]["blocked"]]
                self.assertIn(f"can name {addresses[1]} as a service", lift)
                self.assertTrue(lift.startswith("allow_network"), lift)

    async def test_what_lifts_a_refusal_is_no_flag_of_a_command_line(self):
        snippet = "@file_get_contents('https://192.0.2.1/'); @shell_exec('id'); @file_get_contents('/etc/shadow'); return 1;"
        async with self.connect() as session:
            blocked = (await self.evaluate(session, snippet))["diagnostics"]["blocked"]
            self.assertGreaterEqual(len(blocked), 2)
            self.assertNotIn("--", json.dumps([entry["lift"] for entry in blocked]))

    async def test_what_a_call_writes_opens_nothing_to_the_next(self):
        # A project may name a database of its own user's, by its kind's port.
        host = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.{random.randint(1, 254)}"
        with socket.create_server((host, 3306)), tempfile.TemporaryDirectory() as root:
            address = f"{host}:3306"
            os.mkdir(f"{root}/vendor")
            with open(f"{root}/vendor/autoload.php", "w", encoding="utf-8") as autoload:
                autoload.write("<?php\n")
            async with self.connect("--allow-writes", root=root) as session:
                write = f"return file_put_contents('.env', 'DATABASE_URL=mysql://{address}/x');"
                await self.evaluate(session, write, allow_writes=True)
                self.assertTrue(os.path.exists(f"{root}/.env"))
                snippet = f"return @stream_socket_client('tcp://{address}', $code, $why, 5) ? 'connected' : $why;"
                result = await self.evaluate(session, snippet)
                self.assertFalse(result["ok"], result)
            # Another server goes by what there is.
            async with self.connect(root=root) as session:
                result = await self.evaluate(session, snippet)
                self.assertEqual("connected", result["result"])

    async def test_output_is_in_the_answer_and_nowhere_else(self):
        async with self.connect() as session:
            result = await self.evaluate(session, 'echo "{\\"jsonrpc\\":\\"2.0\\"}\\n"; fwrite(STDERR, "err");')
            self.assertEqual('{"jsonrpc":"2.0"}\n', result["stdout"])
            self.assertEqual("err", result["stderr"])
            self.assertEqual(2, (await self.evaluate(session, "2"))["result"])

    async def test_what_cannot_be_asked_for_is_refused_and_not_run(self):
        refused = [
            ({}, "`snippet` is missing"),
            ({"snippet": ""}, "`snippet` is empty"),
            ({"snippet": "   "}, "The snippet is empty"),
            ({"snippet": 1}, "`snippet` must be a string, not a number"),
            ({"snippet": "1", "timeout_ms": 99}, "from 100 to 60000, not 99"),
            ({"snippet": "1", "timeout_ms": 60001}, "from 100 to 60000"),
            ({"snippet": "1", "timeout_ms": "1000"}, "`timeout_ms` must be an integer, not a string"),
            ({"snippet": "1", "allow_writes": True}, "does not permit `allow_writes`. Without it, what a run writes"),
            ({"snippet": "1", "allow_network": True}, "does not permit `allow_network`. Without it, a run reaches"),
            ({"snippet": "1", "database": "rollback"}, "does not permit `database` \"rollback\""),
            ({"snippet": "1", "database": "write"}, "does not permit `database` \"write\""),
            ({"snippet": "1", "arguments": [1]}, "`arguments` must be an object of names and values, not an array"),
            ({"snippet": "1", "arguments": {"this": 1}}, '"this" cannot be an argument'),
            ({"snippet": "1", "allow_writes": "yes"}, "`allow_writes` must be true or false"),
            ({"snippet": "1", "unsafe": True}, "altair eval --unsafe"),
            ({"snippet": "1", "memory_mb": 64}, "There is no argument `memory_mb`"),
        ]
        async with self.connect() as session:
            for arguments, said in refused:
                self.assertIn(said, await self.refused(session, arguments), arguments)
            self.assertEqual(set(), below(session.server), "Nothing was run.")
            with self.assertRaisesRegex(Exception, f"Unknown tool: rm.*{TOOL}"):
                await session.call_tool("rm", {"snippet": "1"})

    async def test_a_flag_lets_calls_ask(self):
        async with self.connect("--allow-network") as session:
            self.assertTrue((await self.evaluate(session, "1", allow_network=True))["ok"])
            self.assertIn("`allow_writes`", await self.refused(session, {"snippet": "1", "allow_writes": True}))

    async def test_fifty_calls_at_once(self):
        async with self.connect() as session:
            calls = [self.evaluate(session, f"return {number};", timeout_ms=PATIENCE * 1000) for number in range(50)]
            results = await asyncio.gather(*calls)
            self.assertEqual(list(range(50)), [result["result"] for result in results])

    async def test_a_slow_call_delays_no_other(self):
        if (os.cpu_count() or 1) < 2:
            self.skipTest("one core")
        async with self.connect() as session:
            slow = asyncio.create_task(self.evaluate(session, "sleep(3); return 'slow';"))
            for number in range(5):
                await self.evaluate(session, f"return {number};")
            self.assertFalse(slow.done())
            self.assertEqual("slow", (await slow)["result"])

    async def test_a_progress_token_gets_progress(self):
        told = []

        async def note(progress, total, message):
            told.append((progress, message))

        async with self.connect() as session:
            began = time.monotonic()
            await session.call_tool(TOOL, {"snippet": "usleep(1300000);"}, progress_callback=note)
            self.assertGreaterEqual(len(told), 2)
            self.assertLessEqual(len(told), (time.monotonic() - began) / 0.5)
            self.assertEqual(sorted(told), told)
            self.assertRegex(told[-1][1], r"^running for \d\.\d s$")
            told.clear()
            snippet = "echo \"one\\ntwo \\x1b[1m\\n\"; flush(); usleep(1300000);"
            await session.call_tool(TOOL, {"snippet": snippet}, progress_callback=note)
            self.assertTrue(told[-1][1].endswith(" s: two \\u{1b}[1m"), told)

    async def test_a_cancelled_call_ends_its_run(self):
        async with self.connect() as session:
            await self.evaluate(session, "1")
            call = asyncio.create_task(self.evaluate(session, "sleep(50);", timeout_ms=60000))
            await until(lambda: sleeping(session.server), "It runs.")
            ran = sleeping(session.server)
            call.cancel()
            await until(lambda: not ran & set(processes()), "It is ended.")
            self.assertTrue((await self.evaluate(session, "2"))["ok"])

    async def test_ten_megabytes(self):
        async with self.connect() as session:
            snippet = "/*" + "x" * 10_000_000 + "*/ return 7;"
            answer = await session.call_tool(TOOL, {"snippet": snippet, "timeout_ms": 20000})
            self.assertEqual(7, answer.structured_content["result"])

    async def test_two_servers_on_one_project(self):
        async with self.connect() as one, self.connect() as other:
            for session in (one, other, one, other):
                self.assertTrue((await self.evaluate(session, "return 1;"))["ok"])
            self.assertEqual(set(), below(one.server) & below(other.server))


class OverStdio(Conversation, Clients):
    def connect(self, *options, **named):
        return self.stdio(*options, **named)


class OverHttp(Conversation, Clients):
    def connect(self, *options, **named):
        return self.http(*options, **named)


if __name__ == "__main__":
    unittest.main()
