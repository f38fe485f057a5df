<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * The log of unsafe runs is none of a confined run's affair: who can open it can lock it, and then no unsafe run is
 * announced, nor its end.
 */
final class AuditLogCoveredTest extends TestCase
{
    private const LOG = '.altair/events.jsonl';

    /** Takes the lock if it can, says what came of it, and waits until it is told to end. */
    private const LOCKS = <<<'PHP'
        $log = @fopen('.altair/events.jsonl', 'r');
        echo json_encode([$log !== false, $log !== false && flock($log, LOCK_EX | LOCK_NB), @scandir('.altair')]);
        while (!file_exists('%s')) {
            usleep(1000);
        }
        return 1;
        PHP;

    /** Evaluates that, and says what it says. */
    private const HOST = <<<'PHP'
        [$root, $snippet, $writes, $warm, $place] = json_decode(getenv('ALTAIR_TEST_REQUEST'));
        $evaluator = new Evaluator(warm: $warm);
        $request = static fn (string $snippet): EvalRequest
            => new EvalRequest($snippet, $root, timeoutMs: 20000, allowWrites: $writes, readablePaths: [$place]);
        for ($calls = 0; $warm && $calls < 5; $calls++) {
            if ($evaluator->evaluate($request('return 1;'))->diagnostics['start'] === 'warm') {
                break;
            }
        }
        $result = $evaluator->evaluate($request($snippet), static function (string $type, string $text): void {
            say(trim($text));
        });
        say([$result->diagnostics['outcome'], $result->diagnostics['start']]);
        PHP;

    private TemporaryApplication $application;

    /** A run sees what is made in it later, too. */
    private TemporaryApplication $place;

    protected function setUp(): void
    {
        $this->place = new TemporaryApplication();
        $this->application = new TemporaryApplication();
    }

    /**
     * @return iterable<string, array{bool, bool, list<string>}>
     */
    public static function runs(): iterable
    {
        $without = ['-d', 'altair_eval.omit=filesystem'];
        yield 'a cold run' => [false, false, []];
        yield 'a warm run' => [false, true, []];
        yield 'a cold run with writes' => [true, false, []];
        yield 'a warm run with writes' => [true, true, []];
        yield 'without a private root' => [false, false, $without];
    }

    /**
     * @param list<string> $options of the host
     * @dataProvider runs
     */
    public function testAnUnsafeRunIsAnnouncedAndItsEndWhileAConfinedOneRuns(
        bool $writes,
        bool $warm,
        array $options,
    ): void {
        self::unsafe($this->application->root);
        $confined = $this->confined($writes, $warm, $options);
        $seen = json_decode($confined->line(), true);
        $message = self::unsafe($this->application->root);
        touch($this->place->path('end'));

        self::assertSame(['returned', $warm ? 'warm' : 'cold'], json_decode($confined->line(), true));
        self::assertNull($message);
        self::assertSame([false, false], array_slice($seen, 0, 2), 'opened, locked');
        // Without a private root there are the names.
        self::assertContains($seen[2], [['.', '..'], $options === [] ? false : ['.', '..', 'events.jsonl']]);
        self::assertSame(['partial', 'ok', 'partial', 'ok'], $this->logged());
    }

    /**
     * @param list<string> $options of the host
     * @dataProvider runs
     */
    public function testTheEndOfAnUnsafeRunIsLoggedWhenAConfinedOneHasBegunMeanwhile(
        bool $writes,
        bool $warm,
        array $options,
    ): void {
        $confined = null;
        $begin = function () use (&$confined, $writes, $warm, $options): void {
            $confined = $this->confined($writes, $warm, $options);
            $confined->line();
            touch($this->application->path('begun'));
        };
        $snippet = 'echo "unsafe"; while (!file_exists("begun")) { usleep(1000); } return 1;';
        $message = self::unsafe($this->application->root, $snippet, $begin);
        touch($this->place->path('end'));

        self::assertSame(['returned', $warm ? 'warm' : 'cold'], json_decode($confined->line(), true));
        self::assertNull($message);
        self::assertSame(['partial', 'ok'], $this->logged());
    }

    /**
     * @param list<string> $options of the host
     */
    private function confined(bool $writes, bool $warm, array $options): Script
    {
        $snippet = sprintf(self::LOCKS, $this->place->path('end'));
        $request = [$this->application->root, $snippet, $writes, $warm, $this->place->root];
        putenv('ALTAIR_TEST_REQUEST=' . json_encode($request, JSON_THROW_ON_ERROR));
        try {
            return new Script(self::HOST, $options);
        } finally {
            putenv('ALTAIR_TEST_REQUEST');
        }
    }

    /** What is said of an unsafe run beside its result, or in place of it. */
    private static function unsafe(string $root, string $snippet = 'return 1;', ?callable $meanwhile = null): ?string
    {
        $request = new EvalRequest($snippet, $root, timeoutMs: 60000, unsafe: true);
        try {
            $result = (new Evaluator())->evaluate($request, $meanwhile);
        } catch (LaunchException $refused) {
            return $refused->getMessage();
        }
        self::assertSame('returned', $result->diagnostics['outcome']);

        return $result->diagnostics['message'] ?? null;
    }

    /**
     * @return list<string> the state in each line of the log
     */
    private function logged(): array
    {
        $lines = file($this->application->path(self::LOG), FILE_IGNORE_NEW_LINES);

        return array_map(static fn (string $line): string => json_decode($line, true)['status'], $lines);
    }
}
