"""Questions to the person at the client: what is asked, what each answer does, and what clients may do instead of answering."""

import asyncio
import json
import pathlib
import shutil
import tempfile
import unittest

import httpx2
from mcp.types import ElicitResult
from support import PATIENCE, SHOP, TOKEN, TOOL, Clients, HttpServer, below, processes, until
from test_ends import GREETED, HELLO, Raw, call

NEWEST = "2026-07-28"
ALLOW = {"action": "accept", "content": {"decision": "allow once"}}
WRITE = "return file_put_contents('written', '1');"


def copy(directory):
    """A project that may be written to."""
    root = pathlib.Path(directory) / "shop"
    shutil.copytree(SHOP, root, symlinks=True)
    return root


class Person:
    """Answers questions, and keeps them."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params)
        answer = self.answers.pop(0)
        return ElicitResult(**answer) if isinstance(answer, dict) else await answer()


class Questions:
    """What holds over both transports."""

    def connect(self, *options, **named):
        raise NotImplementedError

    async def test_the_person_sees_what_would_run_and_a_yes_is_for_one_call(self):
        person = Person(ALLOW, {"action": "decline"}, ALLOW)
        with tempfile.TemporaryDirectory() as directory:
            root = copy(directory)
            async with self.connect(root=root, person=person) as session:
                names = (await session.list_tools()).tools[0].input_schema["properties"]
                self.assertIn("allow_writes", names)
                self.assertEqual(["read-only", "rollback", "write"], names["database"]["enum"])
                snippet = WRITE + " // \u202e"
                result = await self.evaluate(session, snippet, allow_writes=True, arguments={"id": "x\u200b"})
                self.assertTrue(result["ok"])
                self.assertTrue((root / "written").exists())
                [asked] = person.asked
                for shown in (str(root), "| " + WRITE + " // \\u{202e}", "$id = \"x\\u{200b}\"", "change and delete files"):
                    self.assertIn(shown, asked.message)
                self.assertNotIn("network", asked.message)

                (root / "written").unlink()
                said = await self.refused(session, {"snippet": snippet, "allow_writes": True, "arguments": {"id": "x\u200b"}})
                self.assertRegex(said, "^Nothing was run. The person who was asked declined `allow_writes`. Without it,")
                self.assertFalse((root / "written").exists())

                result = await self.evaluate(session, "return getenv('ALTAIR_EVAL_ALLOW_NETWORK') . getenv('ALTAIR_EVAL_ALLOW_WRITES');", allow_network=True)
                self.assertIn("10", json.dumps(result["result"]))
                self.assertEqual(3, len(person.asked))
                # Without a wish there is no question.
                self.assertTrue((await self.evaluate(session, WRITE))["ok"])
                self.assertFalse((root / "written").exists())
                self.assertEqual(3, len(person.asked))

    async def test_a_rollback_can_be_asked_for(self):
        person = Person(ALLOW, {"action": "cancel"})
        async with self.connect(person=person) as session:
            self.assertTrue((await self.evaluate(session, "return 1;", database="rollback"))["ok"])
            self.assertIn("everything rolled back", person.asked[0].message)
            said = await self.refused(session, {"snippet": "return 1;", "database": "write"})
            self.assertIn('asked for `database` "write" closed the question', said)

    async def test_only_the_value_is_consent(self):
        answers = [
            {"action": "accept"},
            {"action": "accept", "content": {"decision": "decline"}},
            {"action": "accept", "content": {"allow": "allow once"}},
            {"action": "decline"},
            {"action": "cancel"},
        ]
        person = Person(*answers)
        async with self.connect(person=person) as session:
            for answer in answers:
                said = await self.refused(session, {"snippet": "return 1;", "allow_writes": True})
                self.assertIn("Nothing was run.", said, answer)
            self.assertEqual(set(), below(session.server), "Nothing was run.")
        self.assertEqual(len(answers), len(person.asked))

    async def test_a_client_that_breaks_off_the_question_gets_no_run(self):
        async def break_off():
            raise RuntimeError("no window")

        async with self.connect(person=Person(break_off)) as session:
            said = await self.refused(session, {"snippet": "return 1;", "allow_writes": True})
            self.assertIn("the client could not ask", said)
            self.assertEqual(set(), below(session.server), "Nothing was run.")

    async def test_waiting_is_not_part_of_the_deadline_and_has_progress(self):
        told = []

        async def slowly():
            await asyncio.sleep(1.3)
            return ElicitResult(**ALLOW)

        async def note(progress, total, message):
            told.append(message)

        async with self.connect(person=Person(slowly)) as session:
            call = {"snippet": "return 1;", "timeout_ms": 1000, "allow_network": True}
            answer = await session.call_tool(TOOL, call, progress_callback=note)
            self.assertFalse(answer.is_error)
        self.assertRegex(told[0], r"^waiting for a person's answer for 0\.\d s$")

    async def test_a_cancelled_call_gets_no_run(self):
        asked = asyncio.Event()

        async def never():
            asked.set()
            await asyncio.sleep(PATIENCE)

        async with self.connect(person=Person(never)) as session:
            call = asyncio.create_task(session.call_tool(TOOL, {"snippet": "return 1;", "allow_writes": True}))
            await asyncio.wait_for(asked.wait(), PATIENCE)
            call.cancel()
            self.assertTrue((await self.evaluate(session, "return 2;"))["ok"])

    async def test_nobody_is_asked_where_that_is_turned_off(self):
        for option in ("--ask=never", "--readonly"):
            person = Person()
            async with self.connect(option, person=person) as session:
                self.assertNotIn("allow_writes", (await session.list_tools()).tools[0].input_schema["properties"])
                said = await self.refused(session, {"snippet": "return 1;", "allow_writes": True})
                self.assertIn("This server does not permit `allow_writes`", said)
                self.assertNotIn("--", said)

    async def test_what_nobody_would_read_is_refused_unasked(self):
        person = Person()
        async with self.connect(person=person) as session:
            said = await self.refused(session, {"snippet": "return 1;" + "/" * 4000, "allow_writes": True})
            self.assertIn("at most 4000 can be asked about", said)

    async def test_what_the_server_permits_is_not_asked(self):
        async with self.connect("--allow-network", person=Person()) as session:
            self.assertTrue((await self.evaluate(session, "return 1;", allow_network=True))["ok"])


class OverStdio(Questions, Clients):
    def connect(self, *options, **named):
        return self.stdio(*options, **named)


class OverHttp(Questions, Clients):
    def connect(self, *options, **named):
        return self.http(*options, **named)


class OnPipes(unittest.IsolatedAsyncioTestCase):
    def asking(self, server, elicitation):
        hello = {**HELLO, "params": {**HELLO["params"], "capabilities": {"elicitation": elicitation}}}
        server.send(hello, GREETED)
        server.answer_to(1)

    def test_an_empty_declaration_means_forms_and_another_mode_does_not(self):
        for elicitation, is_asked in (({}, True), ({"form": {}}, True), ({"url": {}}, False)):
            with Raw() as server:
                self.asking(server, elicitation)
                server.send(call(2, "return 1;", allow_writes=True))
                said = server.hear()
                self.assertEqual("elicitation/create" if is_asked else None, said.get("method"), elicitation)
                if is_asked:
                    server.send({"jsonrpc": "2.0", "id": said["id"], "result": {"action": "decline"}})
                    said = server.answer_to(2)
                self.assertTrue(said["result"]["isError"])

    async def test_a_client_that_closes_the_question_with_itself_gets_no_run(self):
        with tempfile.TemporaryDirectory() as directory:
            root = copy(directory)
            with Raw(root=root) as server:
                self.asking(server, {})
                server.send(call(2, WRITE, allow_writes=True))
                self.assertEqual("elicitation/create", server.hear()["method"])
                family = server.family()
                server.process.stdin.close()
                self.assertEqual(0, server.process.wait(PATIENCE))
                await until(lambda: not family & set(processes()), "Nothing is left.")
            self.assertFalse((root / "written").exists())

    def test_an_answer_that_is_none_is_no_consent(self):
        for answer in (
            {"result": {}},
            {"result": {"action": "yes"}},
            {"result": {"action": "accept", "content": ["allow once"]}},
            {"error": {"code": -32601, "message": "no such\u202e method"}},
        ):
            with Raw() as server:
                self.asking(server, {})
                server.send(call(2, "return 1;", allow_writes=True))
                server.send({"jsonrpc": "2.0", "id": server.hear()["id"], **answer})
                said = server.answer_to(2)["result"]
                self.assertTrue(said["isError"], answer)
                self.assertIn("Nothing was run.", said["content"][0]["text"])
                self.assertNotIn("\u202e", said["content"][0]["text"])


class OfTheNewestRevision(unittest.TestCase):
    """The revision in which the client calls again with the answer."""

    def message(self, number, arguments, capabilities={"elicitation": {}}, **params):
        meta = {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        params = {"name": TOOL, "arguments": arguments, "_meta": meta, **params}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    def answer(self, server, number, arguments, **named):
        server.send(self.message(number, arguments, **named))
        return server.answer_to(number)["result"]

    def answered(self, asked, answer=ALLOW):
        return {"requestState": asked["requestState"], "inputResponses": {"permission": answer}}

    def test_the_question_comes_back_sealed_and_its_answer_counts_once(self):
        with tempfile.TemporaryDirectory() as directory:
            root = copy(directory)
            with Raw(root=root) as server:
                given = {"snippet": WRITE, "allow_writes": True}
                asked = self.answer(server, 1, given)
                self.assertEqual("input_required", asked["resultType"])
                self.assertIn(WRITE, asked["inputRequests"]["permission"]["params"]["message"])
                self.assertFalse((root / "written").exists())
                # Another call, or a forged state, has no use of the answer.
                for other, state in (
                    ({**given, "snippet": "unlink('composer.json');"}, asked["requestState"]),
                    ({**given, "allow_network": True}, asked["requestState"]),
                    ({**given, "arguments": {"x": 1}}, asked["requestState"]),
                    (given, asked["requestState"][:-4] + "AAAA"),
                    (given, ""),
                ):
                    said = self.answer(server, 2, other, requestState=state, inputResponses={"permission": ALLOW})
                    self.assertIn("does not count", said["content"][0]["text"], said)
                self.assertTrue((root / "composer.json").exists())
                self.assertFalse((root / "written").exists())
                said = self.answer(server, 3, given, **self.answered(asked))
                self.assertTrue(said["structuredContent"]["ok"], said)
                self.assertTrue((root / "written").exists())
                (root / "written").unlink()
                said = self.answer(server, 4, given, **self.answered(asked))
                self.assertIn("given before", said["content"][0]["text"])
                self.assertFalse((root / "written").exists())

    def test_a_list_of_tools_takes_few_bytes_here_too(self):
        with Raw() as server:
            message = self.message(1, {})
            server.send({**message, "method": "tools/list", "params": {"_meta": message["params"]["_meta"]}})
            line = server.hear_line()
            self.assertIn("allow_writes", line.decode())
            self.assertLessEqual(len(line), 2500)

    def test_an_answer_without_a_question_is_asked_and_not_run(self):
        with Raw() as server:
            given = {"snippet": "return 1;", "allow_writes": True}
            said = self.answer(server, 1, given, inputResponses={"permission": ALLOW})
            self.assertEqual("input_required", said["resultType"])

    def test_a_no_is_a_no(self):
        with Raw() as server:
            given = {"snippet": "return 1;", "allow_network": True}
            for number, answer in enumerate(({"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, "yes")):
                asked = self.answer(server, 10 * number + 1, given)
                said = self.answer(server, 10 * number + 2, given, **self.answered(asked, answer))
                self.assertTrue(said["isError"])
                self.assertIn("Nothing was run.", said["content"][0]["text"])

    def test_a_client_that_cannot_ask_is_refused(self):
        with Raw() as server:
            said = self.answer(server, 1, {"snippet": "return 1;", "allow_writes": True}, capabilities={})
            self.assertIn("does not permit `allow_writes`", said["content"][0]["text"])

    def test_over_http_as_well(self):
        server = HttpServer()
        try:
            given = {"snippet": "return 1;", "allow_network": True}
            headers = {
                "Authorization": f"Bearer {TOKEN}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": NEWEST,
                "Mcp-Method": "tools/call",
                "Mcp-Name": TOOL,
            }

            def post(**params):
                answer = httpx2.post(server.url, json=self.message(1, given, **params), headers=headers, timeout=PATIENCE)
                self.assertEqual(200, answer.status_code, answer.text)
                text = answer.text
                lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
                return json.loads(lines[-1] if lines else text)["result"]

            said = post(**self.answered(post()))
            self.assertTrue(said["structuredContent"]["ok"], said)
        finally:
            server.end()


if __name__ == "__main__":
    unittest.main()
