<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * Where there is no Syscall User Dispatch, a filter records boot: nothing stale is used there either, and the forks of
 * a template are as everywhere.
 */
final class WithoutDispatchTest extends EvaluationTestCase
{
    /** Tests that are to hold with either recorder, and what of them says something about the recorder. */
    private const TESTS = [
        'NeverStaleTest' => '',
        // The same looks, and another change.
        'NeverStaleLooksTest' => '^(?!.*ContentsThatAreReplaced)',
        'NeverStaleStartTest' => '',
        'EditInTimeTest' => '',
        'StaysWarmTest' => '',
    ];

    /** Evaluates until there is a template. `$ask` says how a run started, and its result. */
    private const HOST = <<<'PHP'
        $evaluator = new Altair\Eval\Evaluator(warm: true);
        $ask = static function (string $snippet, ?callable $listen = null) use ($evaluator): array {
            $result = $evaluator->evaluate(new Altair\Eval\EvalRequest($snippet, ROOT, 20000), $listen);
            return [$result->diagnostics['start'] ?? null, $result->result['value'] ?? $result->toArray()];
        };
        for ($call = 0; $call < 5 && $ask('return 1;')[0] !== 'warm'; $call++) {
        }

        PHP;

    /** Prints the lines of `/proc/<pid>/status` of a template and its fork while a snippet runs. */
    private const LOOK_AT_BOTH = <<<'PHP'
        $seen = [];
        $ask('echo getmypid(); usleep(200000); return 1;', static function (string $type, string $fork) use (&$seen) {
            preg_match('/^PPid:\s*(\d+)/m', (string) file_get_contents("/proc/$fork/status"), $keeper);
            // Its oldest child is the template. There may be a fork that waits for the next run.
            $template = (int) file_get_contents("/proc/$keeper[1]/task/$keeper[1]/children");
            foreach ([$template, $fork] as $pid) {
                preg_match_all('/^(Threads|Seccomp_filters|SigCgt|SigBlk):\s*(\S+)/m',
                    (string) file_get_contents("/proc/$pid/status"), $lines);
                $seen[] = array_combine($lines[1], $lines[2]);
            }
        });
        echo json_encode($seen);
        PHP;

    /**
     * @dataProvider tests
     */
    public function testTheSameTestsHold(string $test, string $filter): void
    {
        $root = dirname(__DIR__, 2);
        [$code, $output, $errors] = Without::command(['dispatch'], [
            PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), (string) realpath($_SERVER['argv'][0]),
            '--configuration', "$root/phpunit.xml", ...($filter === '' ? [] : ['--filter', "/$filter/"]),
            "$root/tests/Warm/$test.php",
        ]);

        self::assertSame(0, $code, $output . $errors);
        self::assertMatchesRegularExpression('/^OK \(\d+ tests, \d+ assertions\)$/m', $output);
    }

    public static function tests(): iterable
    {
        foreach (self::TESTS as $test => $filter) {
            yield $test => [$test, $filter];
        }
    }

    public function testThereIsNoDispatchThere(): void
    {
        // PR_SET_SYSCALL_USER_DISPATCH with PR_SYS_DISPATCH_OFF, which asks for nothing.
        $code = 'exit(FFI::cdef("int prctl(int, long, long, long, long);")->prctl(59, 0, 0, 0, 0) === 0 ? 0 : 3);';

        self::assertSame(3, Without::php(['dispatch'], $code, ['-d', 'ffi.enable=1'])[0]);
    }

    public function testNeitherATemplateNorItsForkHasTheFilter(): void
    {
        $application = $this->application(['vendor/autoload.php' => '<?php is_file(__FILE__);']);
        $with = $this->host([], $application->root, self::LOOK_AT_BOTH);
        $without = $this->host(['dispatch'], $application->root, self::LOOK_AT_BOTH);

        self::assertCount(2, $with);
        self::assertSame(['1', '1'], array_column($with, 'Threads'));
        // The one that takes the dispatch away is on all of them.
        $filters = static fn (array $of): array => array_map(intval(...), array_column($of, 'Seccomp_filters'));
        self::assertSame(array_map(static fn (int $count): int => $count + 1, $filters($with)), $filters($without));
        $others = static fn (array $of): array => array_map(
            static fn (array $one): array => array_diff_key($one, ['Seccomp_filters' => 0]),
            $of,
        );
        self::assertSame($others($with), $others($without));
    }

    /**
     * @dataProvider boots
     */
    public function testABootThatIsWarmWithDispatchIsSoWithout(string $boot): void
    {
        $boot = "<?php\n$boot\n\$seen = file_get_contents(dirname(__DIR__) . '/data.txt');";
        $application = $this->application(['vendor/autoload.php' => $boot, 'data.txt' => 'old']);
        $ask = <<<'PHP'
            $answers = [$ask('pcntl_sigprocmask(SIG_BLOCK, [], $now); return [$seen, $now];')];
            file_put_contents(ROOT . '/data.txt', 'longer');
            echo json_encode([...$answers, $ask('return $GLOBALS["seen"];')]);
            PHP;
        $ask = strtr($ask, ['$seen, $now' => '$GLOBALS["seen"], $now']);
        $with = $this->host([], $application->root, $ask);
        $application->write('data.txt', 'old');
        $without = $this->host(['dispatch'], $application->root, $ask);

        self::assertSame('warm', $with[0][0], (string) json_encode($with));
        self::assertSame(['first', 'longer'], $with[1]);
        self::assertSame($with, $without);
    }

    public static function boots(): iterable
    {
        yield 'that blocks all signals' => ['pcntl_sigprocmask(SIG_BLOCK, range(1, 31));'];
        yield 'that ignores and handles all signals' => ['foreach (array_diff(range(1, 31), [SIGKILL, SIGSTOP]) as $n) '
            . '{ pcntl_signal($n, $n % 2 ? SIG_IGN : static function (): void { is_file(__FILE__); }); }'];
        yield 'that handles signals with all of them blocked' => ['pcntl_async_signals(true);'
            . ' pcntl_signal(SIGUSR1, static function (): void { pcntl_sigprocmask(SIG_BLOCK, range(1, 31)); });'
            . ' posix_kill(getmypid(), SIGUSR1);'];
    }

    /**
     * @param list<string> $without what is taken away
     * @return list<mixed>
     */
    private function host(array $without, string $root, string $code): array
    {
        $code = strtr(self::HOST . $code, ['ROOT' => var_export($root, true)]);
        [, $output, $errors] = Without::php($without, $code);

        return json_decode($output, true) ?? self::fail($output . $errors);
    }
}
