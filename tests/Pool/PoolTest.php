<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * The command line and the pool: when there is one, what it answers, and what becomes of a run if one of both dies.
 */
final class PoolTest extends EvaluationTestCase
{
    private PoolProcess $pool;

    private TemporaryApplication $shop;

    protected function setUp(): void
    {
        $this->pool = new PoolProcess();
        $this->shop = new TemporaryApplication(['seen.php' => "<?php return 'old';"]);
        parent::setUp();
    }

    protected function assertPostConditions(): void
    {
        $this->pool->end();
        $this->pool->await(fn (): bool => $this->processes() === []);
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->pool->end();
        parent::tearDown();
    }

    public function testTheSecondCallStartsOneAndLaterCallsAreWarm(): void
    {
        self::assertStart('cold', $this->ask('return 1;'), false);
        self::assertNull($this->pool->state(), 'One call is no reason for a process that stays.');
        self::assertStart('cold', $this->ask('return 1;'), false);
        $pid = $this->pool->await(fn (): ?int => $this->pool->pid());

        self::assertStart('first', $this->ask('return 1;'));
        $warm = $this->ask('return getmypid();');
        self::assertStart('warm', $warm);
        self::assertNotSame($warm['result'], $this->ask('return getmypid();')['result']);
        self::assertSame($pid, $this->pool->pid());
    }

    public function testNoneIsStartedWhereCiIsSetAndOneThatRunsIsUsed(): void
    {
        foreach ([1, 2, 3] as $ignored) {
            self::assertStart('cold', $this->ask('return 1;', environment: ['CI' => '1']), false);
        }
        self::assertNull($this->pool->state());

        $this->pool->start();
        self::assertStart('first', $this->ask('return 1;', environment: ['CI' => '1']));
    }

    public function testColdIsColdAndOffIsOff(): void
    {
        $this->pool->start();

        self::assertStart('cold', $this->ask('return 1;', ['--cold']), false);
        self::assertStart('cold', $this->ask('return 1;', environment: ['ALTAIR_EVAL_POOL' => 'off']), false);
        self::assertSame(0, $this->pool->told()['served']);
    }

    public function testAnUnsafeRunIsTheHostsOwn(): void
    {
        $this->pool->start();

        $answer = $this->ask('return 1;', ['--unsafe']);
        self::assertArrayNotHasKey('pool', $answer['diagnostics']);
        self::assertSame(0, $this->pool->told()['served']);
    }

    /**
     * @dataProvider snippets
     * @param list<string> $options
     */
    public function testItAnswersAsAColdRunDoes(string $snippet, array $options = []): void
    {
        $this->pool->start();
        $cold = $this->ask($snippet, ['--cold', ...$options]);
        foreach (['first', 'warm'] as $start) {
            $answer = $this->ask($snippet, $options);
            self::assertStart($start, $answer);
            self::assertSame(self::lasting($cold), self::lasting($answer));
        }
    }

    public static function snippets(): iterable
    {
        yield 'a value' => ['return ["a" => 1.5, "b" => [null, true, "\u{1F600}"]];'];
        yield 'an exact float' => ['return [0.1 + 0.2, 1e308, -0.0, PHP_FLOAT_EPSILON, NAN, INF];'];
        yield 'an object' => ['return new ArrayObject([1, 2]);'];
        yield 'output' => ['echo "out"; fwrite(STDERR, "err"); return 1;'];
        yield 'much output' => ['echo str_repeat("x", 3_000_000); return 1;'];
        yield 'a large value' => ['return str_repeat("y", 900_000);', ['--max-string=1000000']];
        yield 'an exception' => ['throw new LogicException("no", 7, new Exception("before"));'];
        yield 'a parse error' => ['return 1 +;'];
        yield 'an exit' => ['echo "bye"; exit(3);'];
        yield 'a fatal error' => ['function f() {} function f() {}'];
        yield 'out of memory' => ['return str_repeat("z", 1 << 30);'];
        yield 'a signal' => ['posix_kill(getmypid(), 9);'];
        yield 'a refusal' => ['@file_put_contents("/etc/altair-outside", "x"); exec("true");'];
        yield 'changes' => ['file_put_contents("new.txt", "n"); unlink("seen.php"); return 1;', ['--diff']];
        yield 'arguments' => ['return [$id, $ids];', ['--arg', 'id=7', '--arg-json', 'ids=[1,2]']];
        yield 'the working directory' => ['return [getcwd(), __DIR__, __FILE__];'];
        yield 'bytes that are no text' => ["return [\"\xFF\", \$_SERVER['argv'] ?? null];"];
        yield 'an option' => ['return ini_get("memory_limit");', ['--memory-mb=77']];
    }

    public function testATimeoutIsOne(): void
    {
        $this->pool->start();
        $this->ask('return 1;');

        $answer = $this->ask('echo "begun"; sleep(30);', ['--timeout-ms=400']);
        self::assertStart('warm', $answer);
        self::assertSame([true, 'timed_out', 'begun'], [
            $answer['timed_out'],
            $answer['diagnostics']['outcome'],
            $answer['stdout'],
        ]);
        self::assertLessThan(3000, $answer['duration_ms']);
    }

    public function testSecretsOfTheCallerAreRedacted(): void
    {
        $this->pool->start();
        $environment = ['SHOP_PASSWORD' => 'correct-horse-battery'];

        $answer = $this->ask('echo getenv("SHOP_PASSWORD"); return 1;', environment: $environment);
        self::assertStart('first', $answer);
        self::assertSame('[redacted:SHOP_PASSWORD]', $answer['stdout']);
    }

    public function testARunHasItsCallersEnvironmentUmaskLimitsAndNiceness(): void
    {
        $this->pool->start();
        $ask = fn (string $snippet, array $through, string ...$options): mixed
            => $this->ask($snippet, ['--no-redact', ...$options], through: $through)['result']['value'];

        foreach (['0027' => 0027, '0002' => 0002] as $text => $umask) {
            $masked = ['sh', '-c', "umask $text; exec \"$@\"", '-'];
            self::assertSame(0077, $ask('return umask();', $masked), 'Its files end with it.');
            self::assertSame($umask, $ask('return umask();', $masked, '--writes'));
            self::assertSame(0777 & ~$umask, fileperms($this->shop->path('.altair')) & 0777);
            rmdir($this->shop->path('.altair'));
        }
        self::assertSame('its own', $ask('return getenv("OF_CALLER");', ['env', 'OF_CALLER=its own']));
        self::assertFalse($ask('return getenv("OF_CALLER");', []));
        $files = 'return posix_getrlimit()["hard openfiles"];';
        self::assertSame(97, $ask($files, ['sh', '-c', 'ulimit -n 97; exec "$@"', '-']));
        self::assertGreaterThan(97, $ask($files, []), 'The next run has what its own caller has.');
        $niceness = 'return pcntl_getpriority();';
        $own = $ask($niceness, []);
        self::assertSame($own + 5, $ask($niceness, ['nice', '-n', '5']));
        self::assertSame($own, $ask($niceness, []));
    }

    public function testTerminalsAndDirectoriesShareATemplate(): void
    {
        $this->pool->start();
        $this->ask('return 1;');
        foreach (['TERM' => 'dumb', 'PWD' => '/', 'SHLVL' => '9', 'ALTAIR_LAUNCHER' => '1:1'] as $name => $value) {
            self::assertStart('warm', $this->ask('return 1;', environment: [$name => $value]));
        }
        self::assertCount(1, $this->pool->told()['templates']);
    }

    public function testAnEditIsSeen(): void
    {
        $this->pool->start();
        $this->shop->write('vendor/autoload.php', '<?php $GLOBALS["seen"] = require __DIR__ . "/../seen.php";');
        $ask = fn (): array => $this->ask('return $GLOBALS["seen"];');
        self::assertSame('old', $ask()['result']['value']);
        self::assertStart('warm', $ask());

        $this->shop->write('seen.php', "<?php return 'new';");
        $answer = $ask();
        self::assertSame('new', $answer['result']['value']);
        self::assertStart('first', $answer);
    }

    public function testManyCallersAtOnceGetTheirOwnAnswers(): void
    {
        $pid = $this->pool->start();
        $this->ask('return 1;');
        // Each fork that waits for its task has two streams, a channel and a pidfd.
        $spares = fn (): int => array_sum(array_column($this->pool->told()['templates'], 'spares'));
        $besidesSpares = static function () use ($pid, $spares): ?int {
            $waiting = $spares();
            $descriptors = count(scandir("/proc/$pid/fd")) - 4 * $waiting;

            return $spares() === $waiting ? $descriptors : null;
        };
        $descriptors = $this->pool->await($besidesSpares);
        $script = 'for i in 1 2 3 4 5 6 7 8; do'
            . ' "$0" eval --root="$1" --format=compact "return $2 + $i;" || echo wrong; done';
        $callers = [];
        for ($caller = 100; $caller <= 800; $caller += 100) {
            $callers[$caller] = proc_open(
                ['sh', '-c', $script, Command::native(), $this->shop->root, (string) $caller],
                [['file', '/dev/null', 'r'], ['pipe', 'w']],
                $pipes,
                '/',
                $this->pool->environment + array_diff_key(getenv(), ['CI' => '']),
            );
            $streams[$caller] = $pipes[1];
        }
        foreach ($callers as $caller => $process) {
            $lines = explode("\n", trim((string) stream_get_contents($streams[$caller])));
            proc_close($process);
            $values = array_map(static fn (string $line): mixed => json_decode($line, true)['result'] ?? $line, $lines);
            self::assertSame(range($caller + 1, $caller + 8), $values);
        }
        self::assertSame(65, $this->pool->told()['served']);
        // Those who found no fork that waits have looked for one.
        self::assertSame([65], array_column($this->pool->told()['templates'], 'uses'));
        $this->pool->await(static fn (): bool => ($besidesSpares() ?? PHP_INT_MAX) <= $descriptors);
    }

    public function testWheneverThePoolDiesNoAnswerIsWrongAndNoEffectIsThereTwice(): void
    {
        $this->shop->write('effects', '');
        $snippet = 'usleep(random_int(0, 9000)); file_put_contents("effects", "$token\n", FILE_APPEND); return $token;';
        $script = 'for i in $(seq 30); do "$0" eval --root="$1" --writes --format=compact'
            . ' --arg "token=$2-$i" -- "$3" 2>&1; echo "$2-$i $?"; done';
        $callers = [];
        foreach (['a', 'b', 'c'] as $caller) {
            $callers[$caller] = proc_open(
                ['sh', '-c', $script, Command::native(), $this->shop->root, $caller, $snippet],
                [['file', '/dev/null', 'r'], ['pipe', 'w']],
                $pipes,
                '/',
                $this->pool->environment + array_diff_key(getenv(), ['CI' => '']),
            );
            $streams[$caller] = $pipes[1];
        }
        $kills = 0;
        while (array_filter($callers, static fn ($caller): bool => proc_get_status($caller)['running']) !== []) {
            $pid = $this->pool->start();
            usleep(random_int(0, 80_000));
            $kills += (int) posix_kill($pid, SIGKILL);
        }
        $told = '';
        foreach ($callers as $caller => $process) {
            $told .= stream_get_contents($streams[$caller]);
            proc_close($process);
        }
        self::assertGreaterThan(2, $kills);
        $effects = array_count_values(explode("\n", trim((string) file_get_contents($this->shop->path('effects')))));
        self::assertSame([1], array_values(array_unique($effects)), 'None is there twice.');
        self::assertSame(90, preg_match_all('~^(\w-\d+) (\d+)$~m', $told, $ends, PREG_SET_ORDER));
        foreach ($ends as [, $token, $status]) {
            self::assertContains($status, ['0', '2'], $told);
            self::assertTrue($status === '2' || isset($effects[$token]), "$token has no effect.");
            self::assertSame($status === '0', str_contains($told, "{\"ok\":true,\"result\":\"$token\""), $told);
        }
    }

    public function testItLogsNowhereButInTheFileThatItIsToldOf(): void
    {
        $log = $this->shop->path('pool.log');
        $pid = $this->pool->start(['env', "ALTAIR_POOL_LOG=$log"]);
        $this->ask('return 1;');
        $this->pool->altair(['pool', '--stop']);

        self::assertMatchesRegularExpression(
            "~^\\S+Z pool $pid serves at {$this->pool->directory}/altair\n\\S+Z pool $pid ends\n$~",
            (string) file_get_contents($log),
        );
    }

    public function testACallerThatDiesEndsItsRun(): void
    {
        $this->pool->start();
        $this->ask('return 1;');
        [$process, $began] = $this->under();
        proc_terminate($process, SIGKILL);
        proc_close($process);

        $this->pool->await(fn (): bool => $this->pool->told()['running'] === 0);
        self::assertSame('begun', file_get_contents($began), 'It has not come to its end.');
        self::assertStart('warm', $this->ask('return 1;'), why: 'Others are served.');
    }

    public function testCtrlCEndsTheRun(): void
    {
        $this->pool->start();
        $this->ask('return 1;');
        [$process, $began] = $this->under();
        proc_terminate($process, SIGINT);

        self::assertNotSame(0, proc_close($process));
        $this->pool->await(fn (): bool => $this->pool->told()['running'] === 0);
        self::assertSame('begun', file_get_contents($began));
    }

    public function testARunIsNotMadeTwiceIfThePoolDies(): void
    {
        $pid = $this->pool->start();
        [$process, $began, $errors] = $this->under();
        posix_kill($pid, SIGKILL);

        self::assertSame(2, self::ended($process));
        rewind($errors);
        self::assertSame(
            "altair: The pool ended or did not answer while the run was under way. The run may have had effects, so it"
                . " was not made again.\n",
            stream_get_contents($errors),
        );
        self::assertSame('begun', file_get_contents($began), 'It has had its effect once.');
        self::assertStart('cold', $this->ask('return 1;'), false);
    }

    public function testAPoolThatIsStoppedIsNotWaitedFor(): void
    {
        $pid = $this->pool->start();
        $this->ask('return 1;');
        posix_kill($pid, SIGSTOP);
        $began = microtime(true);

        self::assertStart('cold', $this->ask('return 1;'), false);
        self::assertLessThan(5, microtime(true) - $began);
        posix_kill($pid, SIGCONT);
        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testStopEndsItAndLeavesNothing(): void
    {
        $pid = $this->pool->start();
        $this->ask('return 1;');
        $template = $this->pool->told()['templates'][0]['pid'];
        [$process, $began] = $this->under();

        self::assertSame(0, $this->pool->altair(['pool', '--stop'])->exitCode);
        $status = (string) @file_get_contents("/proc/$pid/status");
        self::assertDoesNotMatchRegularExpression('~^State:\s+[RSD]~m', $status, 'It waits for the end.');
        self::assertSame(2, self::ended($process));
        $this->pool->await(static fn (): bool => !posix_kill($template, 0));
        self::assertSame([], glob("{$this->pool->directory}/altair/*"));
        self::assertSame('begun', file_get_contents($began));
        self::assertSame(0, $this->pool->altair(['pool', '--stop'])->exitCode, 'There is none any more.');
    }

    public function testItEndsWhenItsSocketIsGone(): void
    {
        $pid = $this->pool->start();
        foreach (glob("{$this->pool->directory}/altair/*") ?: [] as $file) {
            unlink($file);
        }

        $this->pool->await(static fn (): bool => !posix_kill($pid, 0));
    }

    public function testThereIsOneAndAStaleSocketIsReplaced(): void
    {
        $pid = $this->pool->start();
        self::assertSame($pid, $this->pool->start());
        posix_kill($pid, SIGKILL);
        $this->pool->await(static fn (): bool => !posix_kill($pid, 0));
        self::assertNotSame([], glob("{$this->pool->directory}/altair/*"));

        self::assertNotSame($pid, $this->pool->start());
        self::assertStart('first', $this->ask('return 1;'));
    }

    public function testItHasNothingOfItsStarters(): void
    {
        $pid = $this->pool->start(['sh', '-c', 'exec 9</etc/passwd; exec "$@"', '-']);

        self::assertSame('', file_get_contents("/proc/$pid/environ"));
        self::assertSame('/', readlink("/proc/$pid/cwd"));
        self::assertSame($pid, posix_getsid($pid));
        $files = array_map(static fn (string $fd): mixed => @readlink($fd), glob("/proc/$pid/fd/*") ?: []);
        self::assertNotContains('/etc/passwd', $files);
        self::assertSame(3, count(array_keys($files, '/dev/null', true)));
        $this->ask('return 1;');
        $title = $this->pool->await(static function () use ($pid): ?string {
            $title = rtrim((string) file_get_contents("/proc/$pid/cmdline"), "\0");

            return $title === 'altair pool (1 template)' ? $title : null;
        });
        self::assertSame('altair pool (1 template)', $title);
    }

    public function testAPersonIsShownWhatIsThere(): void
    {
        self::assertStringStartsWith('No pool is running.', $this->pool->altair(['pool'])->output);
        self::assertSame("{\"pool\":null}\n", $this->pool->altair(['pool', '--format=json'])->output);
        $this->pool->start();
        $this->ask('return 1;');

        self::assertMatchesRegularExpression(
            '~^pool \d+: 1 template, 1 run, up \d+ s\n  \S+' . basename($this->shop->root)
                . '  ready, 1 use, \d spares?, age \d+ s, idle \d+ s, \d+ MiB\n$~',
            $this->pool->altair(['pool'])->output,
        );
    }

    /**
     * A run that has begun.
     *
     * @return array{resource, string, resource} the command, the file that the run writes first, and its errors
     */
    private function under(): array
    {
        $began = $this->shop->path('began');
        $snippet = 'file_put_contents("began", "begun", FILE_APPEND); usleep(1_500_000);'
            . ' file_put_contents("began", ", ended", FILE_APPEND);';
        $errors = tmpfile();
        $command = ['eval', "--root={$this->shop->root}", '--writes', '--', $snippet];
        $process = proc_open(
            [Command::native(), ...$command],
            [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], $errors],
            $pipes,
            '/',
            $this->pool->environment + getenv(),
        );
        $this->pool->await(static fn (): bool => is_file($began) && filesize($began) > 0);

        return [$process, $began, $errors];
    }

    /** @param resource $process */
    private static function ended($process): int
    {
        do {
            usleep(5000);
            $status = proc_get_status($process);
        } while ($status['running']);
        proc_close($process);

        return $status['exitcode'];
    }

    /**
     * @param list<string> $options
     * @param array<string, string> $environment
     * @param list<string> $through
     * @return array<string, mixed>
     */
    private function ask(string $snippet, array $options = [], array $environment = [], array $through = []): array
    {
        return $this->pool->evaluate($this->shop, $snippet, $options, $environment, $through);
    }

    /**
     * @param array<string, mixed> $answer
     */
    private static function assertStart(string $start, array $answer, bool $pool = true, string $why = ''): void
    {
        $diagnostics = $answer['diagnostics'];
        self::assertSame([$start, $pool], [$diagnostics['start'], $diagnostics['pool'] ?? false], $why);
    }

    /**
     * What does not differ between two runs.
     *
     * @param array<string, mixed> $answer
     * @return array<string, mixed>
     */
    private static function lasting(array $answer): array
    {
        foreach (['timings_ms', 'start', 'pool'] as $key) {
            unset($answer['diagnostics'][$key]);
        }
        unset($answer['duration_ms'], $answer['memory_peak_bytes']);

        return $answer;
    }
}
