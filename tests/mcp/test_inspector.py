"""The official inspector's command line, over standard input and output and over HTTP."""

import json
import os
import subprocess
import unittest

from support import ENVIRONMENT, PATIENCE, TOKEN, TOOL, HttpServer, command

INSPECTOR = os.environ["INSPECTOR"]


class Inspector(unittest.TestCase):
    def run_inspector(self, *arguments, target):
        """Its exit code, what it prints, and that with its complaints."""
        ended = subprocess.run(
            [INSPECTOR, *target, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=3 * PATIENCE
        )
        return ended.returncode, ended.stdout, ended.stdout + ended.stderr

    def check(self, target):
        code, printed, said = self.run_inspector("--method", "tools/list", target=target)
        self.assertEqual(0, code, said)
        [tool] = json.loads(printed)["tools"]
        self.assertEqual(TOOL, tool["name"])

        call = ["--method", "tools/call", "--tool-name", TOOL]
        code, printed, said = self.run_inspector(*call, "--tool-arg", "snippet=return 6 * 7;", target=target)
        self.assertEqual(0, code, said)
        answer = json.loads(printed)
        self.assertEqual(42, answer["structuredContent"]["result"])

        *_, said = self.run_inspector(*call, "--tool-arg", "snippet=throw new LogicException('boom');", target=target)
        self.assertIn("boom", said)
        *_, said = self.run_inspector(*call, "--tool-arg", "snippet=return 1;", "allow_writes=true", target=target)
        self.assertIn("`allow_writes`", said)

    def test_over_standard_input_and_output(self):
        self.check(command())

    def test_over_http(self):
        server = HttpServer()
        try:
            self.check([server.url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"])
            code, _, said = self.run_inspector("--method", "tools/list", target=[server.url, "--transport", "http"])
            self.assertNotEqual(0, code)
            self.assertNotIn(TOOL, said)
        finally:
            self.assertEqual(0, server.end())


if __name__ == "__main__":
    unittest.main()
