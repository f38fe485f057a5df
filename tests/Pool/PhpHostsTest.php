<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * Scripts that share the pool, most of which ask once.
 */
final class PhpHostsTest extends PoolTestCase
{
    public function testScriptsThatAskOnceShareATemplate(): void
    {
        $this->pool->start();

        self::assertSame(['old', 'first', true], array_slice($this->script(), 0, 3));
        self::assertSame(['old', 'warm', true], array_slice($this->script(), 0, 3));
        $this->edit('new');
        self::assertSame(['new', 'first', true], array_slice($this->script(), 0, 3));
        self::assertSame(['new', 'cold', false], array_slice($this->script(['-d', 'altair_eval.warm=0']), 0, 3));
        self::assertSame(['new', 'cold', false], array_slice($this->script(['-d', 'altair_eval.pool=off']), 0, 3));
    }

    public function testAScriptAndTheCommandLineShareATemplate(): void
    {
        $this->pool->start();
        self::assertSame(['old', 'first', true], array_slice($this->script(), 0, 3));

        $told = $this->pool->evaluate($this->shop, self::SEEN)['diagnostics'];
        self::assertSame(['warm', true], [$told['start'], $told['pool']]);
        $this->assertOneTemplate(runs: 2);
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

    /**
     * A host fills its objects from what the pool has told it, without a look at that.
     */
    public function testWhatThePoolHasToldIsTheObjectThatAHostMakesOfItsOwnRun(): void
    {
        $this->pool->start();
        $snippets = [
            'return ["a" => 1.0, "b" => [null, true, "\u{1F600}\n\"\\\\"], "7" => [],'
                . ' "k\"\n" => new ArrayObject(["x"])];',
            'return [0.1 + 0.2, 1e308, -0.0, NAN, INF, PHP_INT_MAX, PHP_INT_MIN, "\xFF", new stdClass()];',
            'echo "out \u{e9}"; fwrite(STDERR, "err\0"); exit(3);',
            'throw new LogicException("no", 7, new Exception("before"));',
            'return 1 +;',
            '@file_put_contents("/etc/altair-outside", "x"); file_put_contents("new.txt", "n"); return null;',
            // A map that a PHP array would show as a list.
            '$db = new PDO("sqlite:" . __DIR__ . "/db"); $db->exec("CREATE TABLE \"0\" (a)");'
                . ' return $db->exec("INSERT INTO \"0\" VALUES (1)");',
        ];
        $code = <<<'PHP'
            $evaluator = new Altair\Eval\Evaluator();
            foreach (%s as $snippet) {
                $request = new Altair\Eval\EvalRequest($snippet, %s, 60000, queries: true, database: "rollback");
                $result = $evaluator->evaluate($request);
                if (!in_array($result->diagnostics['pool'] ?? null, %s, true)) {
                    throw new LogicException(json_encode($result->diagnostics));
                }
                $told = get_object_vars($result);
                foreach (['start', 'pool', 'timings_ms', 'queries'] as $varies) {
                    unset($told['diagnostics'][$varies]);
                }
                unset($told['durationMs'], $told['memoryPeakBytes']);
                var_dump($told, $result->ok(), array_keys($result->toArray(true)));
            }
            PHP;
        $ask = fn (string $from, array $options): string => $this->php(
            sprintf($code, var_export($snippets, true), var_export($this->shop->root, true), $from),
            $options,
        );
        $own = self::withoutIds($ask('[null]', ['-d', 'altair_eval.warm=0', '-d', 'altair_eval.pool=off']));
        self::assertStringContainsString('object(stdClass)# (', $own);
        self::assertSame([7, 7], [substr_count($own, 'array(10)'), substr_count($own, '["stdout"]=>')], $own);
        self::assertSame($own, self::withoutIds($ask('[true]', [])));
    }

    /** Without the ids of objects (`spl_object_id()`), which depend on what was there before. */
    private static function withoutIds(string $dump): string
    {
        return addcslashes(preg_replace('~#\d+~', '#', $dump), "\0..\x8");
    }

    /**
     * What a script in a process of its own is told.
     *
     * @param list<string> $options
     * @return list<mixed>
     */
    private function script(array $options = []): array
    {
        $code = $this->asking() . 'echo json_encode($told);';

        return json_decode($this->php($code, $options), true, flags: JSON_THROW_ON_ERROR);
    }

    /** @param list<string> $options */
    private function php(string $code, array $options = []): string
    {
        $process = proc_open(
            [PHP_BINARY, '-d', 'extension=' . Without::extension(), ...$options, '-r', $code],
            [['file', '/dev/null', 'r'], ['pipe', 'w']],
            $pipes,
            '/',
            $this->environment(),
        );
        $output = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return $output;
    }
}
