<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Terminal;

/**
 * `altair run`: any command under a policy, from the shell.
 */
final class RunTest extends EvaluationTestCase
{
    private string $directory;

    protected function setUp(): void
    {
        parent::setUp();
        $this->directory = sys_get_temp_dir() . '/altair-run-' . bin2hex(random_bytes(4));
        mkdir($this->directory);
        file_put_contents($this->directory . '/a', "one\n");
    }

    protected function tearDown(): void
    {
        exec('rm -r ' . escapeshellarg($this->directory));
        parent::tearDown();
    }

    /** @param list<string> $arguments */
    private function altairRun(array $arguments, string $input = ''): Command
    {
        return Command::run(['run', ...$arguments], $this->directory, $input);
    }

    public function testTheCommandsOutputAndExitCodeAreItsOwn(): void
    {
        $ran = $this->altairRun(['--', 'sh', '-c', 'cat; pwd; echo err >&2; exit 3'], "in\n");

        self::assertSame([3, "in\n$this->directory\n", "err\n"], [$ran->exitCode, $ran->output, $ran->errors]);
    }

    /**
     * @dataProvider endings
     * @param list<string> $arguments
     */
    public function testExitCodes(array $arguments, int $code, string $says): void
    {
        $ran = $this->altairRun($arguments);

        self::assertSame($code, $ran->exitCode, $ran->errors);
        self::assertStringContainsString($says, $ran->errors);
    }

    /** @return array<string, array{list<string>, int, string}> */
    public static function endings(): array
    {
        return [
            'a signal' => [['--', 'sh', '-c', 'kill -9 $$'], 137, ''],
            'a timeout' => [['--timeout=1', '--', 'sleep', '60'], 124, 'it took too long (--timeout)'],
            'silence' => [['--idle-timeout=1', '--', 'sleep', '60'], 124, 'silent too long (--idle-timeout)'],
            'no such command' => [['--', 'no-such-command'], 127, 'no-such-command: command not found'],
            'no program' => [['--', '/etc/passwd'], 126, 'may not be executed'],
            'an unknown option' => [['--wirte=.', '--', 'ls'], 125, "did you mean '--write'?"],
            'nothing' => [[], 125, '<command>... is missing'],
            'an unknown driver' => [['--driver=lxc', '--', 'ls'], 125, 'use one of: host, docker'],
            'a path that is not there' => [['--write=nothing', '--', 'ls'], 125, 'the path nothing cannot be used'],
            'a wrong limit' => [['--memory=much', '--', 'ls'], 125, 'Invalid memory limit format: much'],
            'a variable without a value' => [['--env=A', '--', 'ls'], 125, '--env=NAME=value'],
        ];
    }

    public function testAMissingDriverIsNamed(): void
    {
        $arguments = ['run', '--driver=docker', '--', 'ls'];
        $ran = Command::run($arguments, $this->directory, environment: ['DOCKER_BIN' => '/nowhere']);

        self::assertSame([125, "altair: Failed to start docker\n"], [$ran->exitCode, $ran->errors]);
    }

    public function testItMayReadButNotWriteAndIsToldWhatWasRefused(): void
    {
        $ran = $this->altairRun(['--', 'sh', '-c', 'cat a; echo x > a; echo x > /etc/x; unshare -r true; ls /proc']);

        self::assertStringStartsWith("one\n", $ran->output);
        self::assertStringContainsString('Read-only file system', $ran->errors);
        self::assertStringContainsString('altair: refused: call unshare()', $ran->errors);
        self::assertSame("one\n", file_get_contents($this->directory . '/a'));
        self::assertMatchesRegularExpression('/^2\n/m', $ran->output, 'its own processes');
        self::assertStringNotContainsString("\n" . getmypid() . "\n", $ran->output);
    }

    public function testAWritablePathIsWrittenAtOnce(): void
    {
        $ran = $this->altairRun(['--write=.', '--', 'sh', '-c', 'echo two > a']);

        self::assertSame([0, '', ''], [$ran->exitCode, $ran->output, $ran->errors]);
        self::assertSame("two\n", file_get_contents($this->directory . '/a'));
    }

    public function testALayerIsShownAndOnlyAppliedIfAsked(): void
    {
        $command = ['--', 'sh', '-c', 'echo two > a; mkdir d; echo new > d/b'];
        $shown = $this->altairRun(['--layer=.', '--diff', ...$command]);

        self::assertSame([0, ''], [$shown->exitCode, $shown->output]);
        self::assertStringContainsString("created  d/b (4 bytes)", $shown->errors);
        self::assertStringContainsString("-one\n        +two\n", $shown->errors);
        self::assertStringContainsString('not applied: nobody can be asked here; --apply=yes', $shown->errors);
        self::assertSame(['a'], array_values(array_diff(scandir($this->directory) ?: [], ['.', '..'])));

        $applied = $this->altairRun(['--layer=.', '--apply=yes', ...$command]);
        self::assertStringContainsString('applied 3 changes', $applied->errors);
        self::assertSame("two\n", file_get_contents($this->directory . '/a'));
        self::assertSame("new\n", file_get_contents($this->directory . '/d/b'));

        $failed = $this->altairRun(['--layer=.', '--apply=yes', '--', 'sh', '-c', 'echo three > a; exit 1']);
        self::assertSame(1, $failed->exitCode);
        self::assertStringContainsString('not applied: the command ended with 1', $failed->errors);
        self::assertSame("two\n", file_get_contents($this->directory . '/a'));
    }

    public function testJson(): void
    {
        $ran = $this->altairRun(['--format=json', '--layer=.', '--', 'sh', '-c', 'echo out; rm a; exit 4']);
        $seen = json_decode($ran->output, true, flags: JSON_THROW_ON_ERROR);

        self::assertSame([4, ''], [$ran->exitCode, $ran->errors]);
        self::assertSame(['sh', '-c', 'echo out; rm a; exit 4'], $seen['command']);
        self::assertSame(["out\n", 4, false], [$seen['stdout'], $seen['exit_code'], $seen['applied']]);
        self::assertSame([['path' => 'a', 'size' => 4]], $seen['file_changes']['deleted']);
    }

    public function testAPolicyFileIsReadAndOptionsWin(): void
    {
        mkdir($this->directory . '/d');
        $policy = ['write' => ['d'], 'timeout' => 1, 'env' => ['A' => 'file', 'B' => 'file'], 'inherit_env' => false];
        file_put_contents($this->directory . '/policy.json', json_encode($policy));
        $ran = $this->altairRun(
            ['--policy=policy.json', '--env=A=option', '--', 'sh', '-c', 'echo $A $B $HOME; echo x > d/x; sleep 60'],
        );

        self::assertSame([124, "option file\n"], [$ran->exitCode, $ran->output]);
        self::assertFileExists($this->directory . '/d/x');

        $wrong = ['{"wirte": []}' => 'unknown field `wirte`', '[' => 'EOF', '{"timeout": 0}' => 'at least 1'];
        foreach ($wrong as $text => $why) {
            file_put_contents($this->directory . '/policy.json', $text);
            $ran = $this->altairRun(['--policy=policy.json', '--', 'ls']);
            self::assertSame(125, $ran->exitCode);
            self::assertStringContainsString($why, $ran->errors);
        }
    }

    public function testADeclaredServiceIsReachedAndNothingElse(): void
    {
        $servers = [];
        foreach ([0, 1] as $index) {
            $servers[$index] = stream_socket_server('tcp://127.0.0.1:0');
            self::assertNotFalse($servers[$index]);
        }
        [$declared, $other] = array_map(static fn ($server) => stream_socket_get_name($server, false), $servers);
        $code = 'foreach (array_slice($argv, 1) as $to) { echo @fsockopen("tcp://$to") ? "yes" : "no", "\n"; }';
        $try = ['--', PHP_BINARY, '-n', '-r', $code, $declared, $other];

        self::assertSame("yes\nno\n", $this->altairRun(["--service=$declared", ...$try])->output);
        $none = $this->altairRun($try);
        self::assertSame("no\nno\n", $none->output);
        self::assertSame("yes\nyes\n", $this->altairRun(['--network', ...$try])->output);
    }

    public function testSignalsArePassedOn(): void
    {
        $script = 'trap "echo caught; exit 7" TERM; echo ready; while :; do sleep 0.1; done';
        $altair = dirname(__DIR__, 2) . '/bin/altair';
        $command = [$altair, 'run', '--', 'sh', '-c', $script];
        $process = proc_open($command, [1 => ['pipe', 'w']], $pipes, $this->directory);
        self::assertIsResource($process);
        self::assertSame("ready\n", fgets($pipes[1]));
        proc_terminate($process, SIGTERM);

        self::assertSame("caught\n", stream_get_contents($pipes[1]));
        self::assertSame(7, proc_close($process));
    }

    public function testAClosedPipeEndsTheCommand(): void
    {
        $altair = escapeshellarg(dirname(__DIR__, 2) . '/bin/altair');
        $output = shell_exec("cd $this->directory; { $altair run -- yes; echo \$? >&2; } 2>&1 >/dev/full | tail -1");

        self::assertSame("141\n", $output);
    }

    public function testOnATerminalTheCommandHasOneAndAPersonIsAsked(): void
    {
        $altair = dirname(__DIR__, 2) . '/bin/altair';
        $script = 'stty size; test -t 0 && test -t 1 && test -t 2 && echo terminal; echo two > a;'
            . ' read l; echo "got $l"';
        $terminal = new Terminal([$altair, 'run', '--layer=.', '--', 'sh', '-c', $script], $this->directory, 33, 77);
        $terminal->waitFor("33 77\r\nterminal\r\n");
        $terminal->type("hello\n");
        $terminal->waitFor('got hello');
        $terminal->waitFor('Apply this change? [y/N] ');
        self::assertSame("one\n", file_get_contents($this->directory . '/a'));
        $terminal->type("y\n");
        [$rest, $code] = $terminal->end();

        self::assertStringContainsString('applied 1 change', $rest);
        self::assertSame(0, $code);
        self::assertSame("two\n", file_get_contents($this->directory . '/a'));
    }

    /** @param list<string> $options */
    private function atTerminal(string $script, array $options = [], bool $piped = false, int $rows = 24): Terminal
    {
        $altair = dirname(__DIR__, 2) . '/bin/altair';
        $command = [$altair, 'run', '--layer=.', ...$options, '--', 'sh', '-c', $script];

        return new Terminal($command, $this->directory, $rows, 80, $piped);
    }

    public function testTheFirstAnswerCountsWhenOutputGoesToAPipe(): void
    {
        $terminal = $this->atTerminal('echo two > a', piped: true);
        $terminal->waitFor('Apply this change? [y/N] ');
        $terminal->type("y\n");
        [$rest, $code] = $terminal->end();

        self::assertStringContainsString('applied 1 change', $rest);
        self::assertSame(0, $code);
        self::assertSame("two\n", file_get_contents($this->directory . '/a'));
    }

    public function testALayerThatCannotBeAppliedSaysSoAndNobodyIsAsked(): void
    {
        $script = 'echo two > a; i=0; while [ $i -lt 130 ]; do i=$((i+1)); mkdir d; cd d; done';
        foreach (['--apply=ask', '--apply=yes'] as $apply) {
            $ran = $this->altairRun(['--layer=.', $apply, '--', 'sh', '-c', $script]);
            self::assertSame($apply === '--apply=yes' ? 125 : 0, $ran->exitCode, $ran->errors);
            self::assertStringContainsString('more than 128 nested directories', $ran->errors);
        }
        $terminal = $this->atTerminal($script);
        [$shown] = $terminal->end();

        self::assertStringContainsString('more than 128 nested directories', $shown);
        self::assertStringNotContainsString('[y/N', $shown);
        self::assertSame("one\n", file_get_contents($this->directory . '/a'));
        self::assertFileDoesNotExist($this->directory . '/d');
    }

    /** @return array<string, array{bool}> */
    public static function outputs(): array
    {
        return ['on the terminal' => [false], 'to a pipe' => [true]];
    }

    /**
     * @dataProvider outputs
     */
    public function testWhatWasTypedBeforeIsNoAnswer(bool $piped): void
    {
        // It reads nothing, so that what is typed stays where it is.
        $script = 'exec 0<&-; trap "echo two > a; exit 0" TERM; echo ready >&2; while :; do sleep 0.1; done';
        $terminal = $this->atTerminal($script, piped: $piped);
        $terminal->waitFor('ready');
        foreach ([1, 2, 3, 4] as $time) {
            $terminal->type("y\n");
            // The terminal shows it.
            $terminal->waitFor('y');
        }
        $terminal->signal(SIGTERM);
        $terminal->waitFor('Apply this change? [y/N] ');
        $terminal->type("n\n");
        [$rest] = $terminal->end();

        self::assertStringContainsString('not applied', $rest);
        self::assertSame("one\n", file_get_contents($this->directory . '/a'));
    }

    public function testTheCommandsLastOutputDoesNotControlTheScreenOfTheQuestion(): void
    {
        // Another screen, a scrolling region of one line, nothing visible, line drawing, a hidden cursor, black
        // colours, and a string without an end.
        $attack = '\033[?1049h\033[1;1r\033[?6h\033[8m\033(0\016\033[?25l\033[?7l\033]11;#000\007\033]0;';
        $terminal = $this->atTerminal("echo two > a; printf '$attack'");
        $terminal->waitFor("\033]0;");
        $before = $terminal->waitFor('modified');

        self::assertStringStartsWith("\x18\033\\", $before);
        $usual = [
            "\033[!p", "\033[?1049l", "\033[m", "\033(B", "\x0f", "\033[r", "\033[?6l", "\033[?7h", "\033[?25h",
            "\033[?1003l", "\033[?2004l", "\033]111\033\\", "\033[999;1H",
        ];
        foreach ($usual as $sequence) {
            self::assertStringContainsString($sequence, $before, addcslashes($sequence, "\0..\37"));
        }
        // What is typed before is forgotten.
        $terminal->waitFor('[y/N');
        $terminal->type("n\n");
        $terminal->end();
    }

    /**
     * @testWith [["-u", "TERM"]]
     *           [["TERM="]]
     *           [["TERM=dumb"]]
     * @param list<string> $environment
     */
    public function testTheScreenOfTheQuestionIsUsualWhateverTheTerminalIsSaidToBe(array $environment): void
    {
        $altair = dirname(__DIR__, 2) . '/bin/altair';
        $script = "echo two > a; printf '\033[8m\033[23;24r'; echo > a\u{200b}";
        $command = ['env', ...$environment, $altair, 'run', '--layer=.', '--', 'sh', '-c', $script];
        $terminal = new Terminal($command, $this->directory, 24, 80);
        $terminal->waitFor("\033[23;24r");
        $before = $terminal->waitFor('modified');
        self::assertStringContainsString("\033[m", $before);
        self::assertStringContainsString("\033[r", $before);
        $terminal->waitFor('a\u{200b} ');
        $terminal->waitFor('[y/N');
        $terminal->type("n\n");
        $terminal->end();
    }

    public function testAllChangesCanBeListedBeforeTheAnswerAndWhatWasThereComesFirst(): void
    {
        $names = 'i=100; while [ $i -lt 160 ]; do i=$((i+1)); echo x > 0-$i; done';
        file_put_contents($this->directory . '/z', 'old');
        $terminal = $this->atTerminal("$names; echo two > a; rm z; ln -s /etc/passwd l");
        $first = $terminal->waitFor('Apply these changes? [y/N, l lists all] ');
        self::assertStringContainsString('modified a (4 bytes)', self::uncoloured($first));
        self::assertStringContainsString('deleted  z (3 bytes)', self::uncoloured($first));
        self::assertStringNotContainsString('0-160', $first);
        self::assertLessThanOrEqual(24, substr_count($first, "\n"));

        $terminal->type("l\n");
        $all = '';
        for ($page = 0; $page < 2; $page++) {
            $all .= $terminal->waitFor('Enter for more, q to stop: ');
            $terminal->type("\n");
        }
        $all .= $terminal->waitFor('Apply these changes? [y/N, l lists all] ');
        self::assertStringContainsString('created  0-160 (2 bytes)', self::uncoloured($all));
        self::assertStringContainsString('created  l → /etc/passwd', self::uncoloured($all));
        $terminal->type("y\n");
        [$rest] = $terminal->end();

        self::assertStringContainsString('applied 63 changes', $rest);
        self::assertFileExists($this->directory . '/0-160');
    }

    /** How many rows of 80 columns a text takes. */
    private static function rows(string $text): int
    {
        $rows = 0;
        foreach (preg_split('/\r?\n/', self::uncoloured($text)) ?: [] as $line) {
            $rows += max(1, (int) ceil(mb_strlen($line) / 80));
        }

        return $rows;
    }

    public function testLongLinesPushNothingOffTheScreenUnnoticed(): void
    {
        file_put_contents($this->directory . '/z', 'old');
        $long = 't=$(printf "%04000d" 0); n=$(printf "%0200d" 0)';
        $terminal = $this->atTerminal(
            "$long; echo two > a; rm z; mkdir \$n; for i in 1 2 3 4 5 6 7 8; do ln -s b\$t.e l\$i; done",
        );
        $terminal->waitFor('11 changes');
        // The question says that there is more to see, although each change has a line.
        $first = $terminal->waitFor('Apply these changes? [y/N, l lists all] ');
        self::assertLessThanOrEqual(24, self::rows('title' . $first . 'question'));
        self::assertStringContainsString('modified a (4 bytes)', self::uncoloured($first));
        self::assertStringContainsString('deleted  z (3 bytes)', self::uncoloured($first));
        self::assertStringContainsString('created  l8 → b00', self::uncoloured($first));
        self::assertStringContainsString('00.e', $first);

        $terminal->type("l\n");
        $all = '';
        [$shown, $total, $perPage] = [0, 1, 0];
        while ($total - $shown > $perPage) {
            $page = $terminal->waitFor(' lines; Enter for more, q to stop: ');
            self::assertLessThanOrEqual(24, self::rows($page));
            self::assertSame(1, preg_match('/(\d+) of (\d+)$/D', $page, $found));
            [$shown, $total] = [(int) $found[1], (int) $found[2]];
            $perPage = $perPage ?: $shown;
            $all .= substr($page, 0, -strlen($found[0]));
            $terminal->type("\n");
        }
        $page = $terminal->waitFor('Apply these changes? [y/N, l lists all] ');
        self::assertLessThanOrEqual(24, self::rows($page));
        $all .= $page;
        $terminal->type("n\n");
        $terminal->end();
        $all = (string) preg_replace('/\s+/', '', self::uncoloured($all));
        foreach (range(1, 8) as $index) {
            self::assertStringContainsString("createdl{$index}→b" . str_repeat('0', 4000) . '.e', $all);
        }
    }

    private static function uncoloured(string $text): string
    {
        return (string) preg_replace('/\x1b\[[0-9;]*m/', '', $text);
    }

    public function testCtrlCOnATerminalReachesTheCommandOnly(): void
    {
        $altair = dirname(__DIR__, 2) . '/bin/altair';
        $script = 'trap "echo interrupted; exit 9" INT; echo ready; while :; do sleep 0.1; done';
        $terminal = new Terminal([$altair, 'run', '--', 'sh', '-c', $script], $this->directory, 24, 80);
        $terminal->waitFor('ready');
        $terminal->type("\x03");
        $terminal->waitFor('interrupted');

        self::assertSame(9, $terminal->end()[1]);
        self::assertSame([], Processes::children());
    }
}
