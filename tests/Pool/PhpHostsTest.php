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
