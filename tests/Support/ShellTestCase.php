<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * Talks to sessions of the test's application.
 */
abstract class ShellTestCase extends EvaluationTestCase
{
    /** Has it meet its deadline soon. */
    protected const SOON = '--timeout-ms=' . self::SHORT_MS;

    /** @var list<Shell> */
    private array $shells = [];

    protected function shell(string ...$options): Shell
    {
        return $this->shells[] = new Shell($this->application()->root, array_values($options));
    }

    protected function assertPostConditions(): void
    {
        foreach ($this->shells as $shell) {
            $shell->end();
        }
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->shells = [];
        parent::tearDown();
    }

    /**
     * Has lines run in one session, and compares the first line of each answer.
     *
     * @param array<string, string> $answers line => the first line of its answer
     */
    protected function assertAnswers(array $answers, string ...$options): void
    {
        $shell = $this->shell(...$options);
        $given = $shell->headlines(array_map(strval(...), array_keys($answers)));
        self::assertSame($answers, array_combine(array_keys($answers), $given));
        self::assertSame('', $shell->end()[1]);
    }
}
