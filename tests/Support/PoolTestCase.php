<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * Hosts in processes of their own that share a pool of the test's own and evaluate in its application. After each test
 * it ends the pool, and checks that nothing is left of it.
 */
abstract class PoolTestCase extends EvaluationTestCase
{
    private const ASKING = <<<'PHP'
        $answer = (new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest(%s, %s, 60000));
        $told = $answer->diagnostics;
        $told = [$answer->result['value'] ?? null, $told['start'], $told['pool'] ?? false, $told['start_reason'] ?? ''];
        PHP;

    /** What boot has read of a file of the application. */
    protected const SEEN = 'return $GLOBALS["seen"];';

    protected PoolProcess $pool;

    /** Boots from `seen.php`, which says `old`. */
    protected TemporaryApplication $shop;

    protected function setUp(): void
    {
        $this->pool = $this->makePool();
        $this->shop = new TemporaryApplication(['seen.php' => "<?php return 'old';"]);
        $this->shop->write('vendor/autoload.php', '<?php $GLOBALS["seen"] = require __DIR__ . "/../seen.php";');
        parent::setUp();
    }

    protected function makePool(): PoolProcess
    {
        return new PoolProcess();
    }

    /** Ends what a test has started beside the pool. */
    protected function endHosts(): void
    {
    }

    protected function assertPostConditions(): void
    {
        $this->endHosts();
        $this->pool->end();
        $this->pool->await(fn (): bool => $this->processes() === []);
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->endHosts();
        $this->pool->end();
        parent::tearDown();
    }

    /** The code of a host that evaluates once. `$told` is then value, start, whether the pool has answered, and why. */
    protected function asking(string $snippet = self::SEEN): string
    {
        return sprintf(self::ASKING, var_export($snippet, true), var_export($this->shop->root, true));
    }

    /** What a file of the application says from now on. */
    protected function edit(string $word): void
    {
        $this->shop->write('seen.php', '<?php return ' . var_export($word, true) . ';');
    }

    /**
     * @return array<string, string> this process's, with the pool, which is not started where `CI` is set
     */
    protected function environment(): array
    {
        return $this->pool->environment + array_diff_key(getenv(), ['CI' => '']);
    }

    /**
     * The pool has made as many runs, from one boot.
     *
     * @return int the process id of the template
     */
    protected function assertOneTemplate(int $runs): int
    {
        ['served' => $served, 'templates' => $templates] = $this->pool->told();
        self::assertSame($runs, $served);
        self::assertCount(1, $templates, var_export($templates, true));

        return $templates[0]['pid'];
    }
}
