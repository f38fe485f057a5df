<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Fpm;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Hosts of PHP that share the pool: scripts that ask once, the built-in server, workers of php-fpm.
 */
final class PhpHostsTest extends EvaluationTestCase
{
    private const ASK = <<<'PHP'
        $answer = (new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest(%s, '%s', 60000));
        $diagnostics = $answer->diagnostics;
        echo json_encode([
            getmypid(), $answer->result['value'] ?? null, $diagnostics['start'], $diagnostics['pool'] ?? false,
            $diagnostics['start_reason'] ?? '',
        ]);
        PHP;

    private PoolProcess $pool;

    private TemporaryApplication $shop;

    private ?Fpm $fpm = null;

    protected function setUp(): void
    {
        $this->pool = new PoolProcess();
        $this->shop = new TemporaryApplication(['seen.php' => "<?php return 'old';"]);
        $this->shop->write('vendor/autoload.php', '<?php $GLOBALS["seen"] = require __DIR__ . "/../seen.php";');
        parent::setUp();
    }

    protected function assertPostConditions(): void
    {
        $this->fpm?->end();
        $this->pool->end();
        $this->pool->await(fn (): bool => $this->processes() === []);
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->fpm?->end();
        $this->pool->end();
        parent::tearDown();
    }

    public function testScriptsThatAskOnceShareATemplate(): void
    {
        $this->pool->start();

        self::assertSame(['old', 'first', true], array_slice($this->script(), 1, 3));
        self::assertSame(['old', 'warm', true], array_slice($this->script(), 1, 3));
        $this->shop->write('seen.php', "<?php return 'new';");
        self::assertSame(['new', 'first', true], array_slice($this->script(), 1, 3));
        self::assertSame(['new', 'cold', false], array_slice($this->script(['-d', 'altair_eval.warm=0']), 1, 3));
        self::assertSame(['new', 'first', false], array_slice($this->script(['-d', 'altair_eval.pool=off']), 1, 3));
    }

    public function testOutputIsStreamedAndManyAreEvaluated(): void
    {
        $this->pool->start();
        $code = <<<'PHP'
            $request = fn (string $snippet) => new Altair\Eval\EvalRequest($snippet, '%s', 60000);
            $evaluator = new Altair\Eval\Evaluator();
            $heard = [];
            $evaluator->evaluate(
                $request('echo "a"; flush(); usleep(300000); fwrite(STDERR, "b"); return 1;'),
                function (string $kind, string $chunk) use (&$heard, &$at): void {
                    [$heard[], $at[]] = ["$kind $chunk", hrtime(true)];
                },
            );
            $snippets = array_map(fn (int $n) => $request("return $n;"), range(1, 20));
            $values = [];
            foreach ($evaluator->evaluateMany($snippets, 2) as $key => $answer) {
                $values[$key] = [$answer->result['value'], $answer->diagnostics['pool'] ?? false];
            }
            ksort($values);
            echo json_encode([$heard, $at[1] - $at[0] > 200_000_000, array_column($values, 0),
                array_unique(array_column($values, 1))]);
            PHP;

        [$heard, $is_streamed, $values, $pool] = json_decode($this->php(sprintf($code, $this->shop->root)), true);
        self::assertSame([['out a', 'err b'], true], [$heard, $is_streamed]);
        self::assertSame([range(1, 20), [true]], [$values, $pool]);
    }

    public function testAWorkerOfFpmIsServedFromTheSecondRequestOn(): void
    {
        if (Fpm::program() === null) {
            self::markTestSkipped('There is no php-fpm.');
        }
        $asked = new TemporaryApplication();
        $code = sprintf(self::ASK, "'return \$GLOBALS[\"seen\"];'", $this->shop->root);
        $page = $asked->write('page.php', "<?php $code");
        // Its workers have changed their user, and the directory is theirs.
        $runtime = $asked->path('runtime');
        mkdir($runtime, 0700);
        if (posix_geteuid() === 0) {
            chown($runtime, 'nobody');
        }
        $this->fpm = new Fpm(['env[XDG_RUNTIME_DIR]' => $runtime, 'pm.max_requests' => '5']);
        $ask = fn (): array => json_decode($this->fpm->page($page), true);

        $starts = [];
        $workers = [];
        $this->pool->await(static function () use ($ask): bool {
            return $ask()[3];
        });
        for ($round = 0; $round < 40; $round++) {
            [$worker, $value, $start, $pool, $why] = $ask();
            self::assertSame(['old', true, ''], [$value, $pool, $why]);
            $starts[] = $start;
            $workers[$worker] = true;
        }
        self::assertSame(['warm'], array_values(array_unique($starts)));
        self::assertGreaterThan(4, count($workers), 'Workers are replaced meanwhile.');
        $this->shop->write('seen.php', "<?php return 'new';");
        self::assertSame(['new', 'first', true], array_slice($ask(), 1, 3));
        self::assertSame(['new', 'warm', true], array_slice($ask(), 1, 3));
        // The pool is the workers' own, and ends when its socket is gone.
        foreach (glob("$runtime/altair/*") ?: [] as $file) {
            unlink($file);
        }
    }

    /**
     * What a script in a process of its own is told.
     *
     * @param list<string> $options
     * @return list<mixed>
     */
    private function script(array $options = []): array
    {
        $code = sprintf(self::ASK, "'return \$GLOBALS[\"seen\"];'", $this->shop->root);

        return json_decode($this->php($code, $options), true, flags: JSON_THROW_ON_ERROR);
    }

    /** @param list<string> $options */
    private function php(string $code, array $options = []): string
    {
        $process = proc_open(
            [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), ...$options, '-r', $code],
            [['file', '/dev/null', 'r'], ['pipe', 'w']],
            $pipes,
            '/',
            $this->pool->environment + getenv(),
        );
        $output = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return $output;
    }
}
