<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Refusals;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * The audit log's file: how it is made, shared and repaired, and that nothing runs where it cannot be written.
 */
final class AuditLogFileTest extends TestCase
{
    use Refusals;

    private const LOG = '.altair/events.jsonl';

    private TemporaryApplication $application;

    private TemporaryApplication $elsewhere;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->elsewhere = new TemporaryApplication();
    }

    public function testTheDirectoryAndTheFileAreMade(): void
    {
        $before = umask(0);
        try {
            $this->evaluate();
        } finally {
            umask($before);
        }

        self::assertSame('40775', decoct((int) fileperms($this->application->path('.altair'))));
        self::assertTrue(is_file($this->application->path(self::LOG)));
    }

    /**
     * @dataProvider places
     */
    public function testNothingRunsWhereTheLogCannotBeWritten(callable $occupy, string $named): void
    {
        $occupy($this->application, $this->elsewhere);
        $elsewhere = $this->elsewhere->tree();

        $this->assertRefused(LaunchException::class, $named, fn () => $this->evaluate());
        $command = $this->command();

        self::assertSame([2, ''], [$command->exitCode, $command->output]);
        self::assertStringContainsString($named, $command->errors);
        self::assertSame(1, substr_count($command->errors, "\n"));
        self::assertFileDoesNotExist($this->application->path('it-ran'));
        self::assertSame($elsewhere, $this->elsewhere->tree());
    }

    /**
     * @return iterable<string, array{callable(TemporaryApplication, TemporaryApplication): mixed, string}>
     */
    public static function places(): iterable
    {
        $directory = static fn (TemporaryApplication $in): bool => mkdir($in->path('.altair'));
        yield 'a link to a file' => [
            static fn ($in, $other) => $directory($in)
                && symlink($other->write('log', ''), $in->path(self::LOG)),
            'symbolic link',
        ];
        yield 'a link to nothing' => [
            static fn ($in, $other) => $directory($in) && symlink($other->path('new'), $in->path(self::LOG)),
            'symbolic link',
        ];
        yield 'a link as the directory' => [
            static fn ($in, $other) => symlink($other->root, $in->path('.altair')),
            'symbolic link',
        ];
        yield 'a FIFO' => [
            static fn ($in) => $directory($in) && posix_mkfifo($in->path(self::LOG), 0644),
            'FIFO',
        ];
        yield 'a directory' => [static fn ($in) => mkdir($in->path(self::LOG), 0755, true), 'directory'];
        yield 'a file as the directory' => [static fn ($in) => touch($in->path('.altair')), '.altair'];
    }

    public function testALockThatIsNeverGivenBackRefusesTheRun(): void
    {
        $this->evaluate();
        unlink($this->application->path('it-ran'));
        $log = fopen($this->application->path(self::LOG), 'r');
        self::assertIsResource($log);
        self::assertTrue(flock($log, LOCK_EX));
        $begun = microtime(true);

        $this->assertRefused(LaunchException::class, 'locked', fn () => $this->evaluate());

        self::assertGreaterThanOrEqual(2, microtime(true) - $begun);
        self::assertLessThan(30, microtime(true) - $begun);
        self::assertFileDoesNotExist($this->application->path('it-ran'));
    }

    public function testATornLastLineStaysAndTheNextBeginsOnALineOfItsOwn(): void
    {
        $this->application->write(self::LOG, "{\"id\":\"whole\"}\n{\"id\":\"to");

        $this->evaluate();

        $lines = explode("\n", (string) file_get_contents($this->application->path(self::LOG)));
        self::assertSame(['{"id":"whole"}', '{"id":"to'], array_slice($lines, 0, 2));
        self::assertSame(['partial', 'ok', ''], array_map(
            static fn (string $line): string => json_decode($line, true)['status'] ?? '',
            array_slice($lines, 2),
        ));
    }

    public function testRunsSideBySideLeaveWholeLines(): void
    {
        $request = new EvalRequest('return str_repeat("x", 10);', $this->application->root, 60000, unsafe: true);

        $results = iterator_to_array((new Evaluator())->evaluateMany(array_fill(0, 20, $request), 8));

        $runs = [];
        foreach (file($this->application->path(self::LOG)) ?: [] as $line) {
            $event = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
            $runs[$event['extra']['run']][] = $event['status'];
        }
        self::assertCount(20, $results);
        self::assertSame(array_fill(0, 20, ['partial', 'ok']), array_values($runs));
    }

    public function testALogThatTheSnippetTakesAwayStillGetsItsLastLine(): void
    {
        $this->evaluate('unlink(".altair/events.jsonl"); rmdir(".altair");');

        $lines = file($this->application->path(self::LOG)) ?: [];
        self::assertSame('ok', json_decode((string) end($lines), true)['status'] ?? null);
    }

    private function evaluate(string $snippet = 'touch("it-ran");'): EvalResult
    {
        return (new Evaluator())->evaluate(new EvalRequest($snippet, $this->application->root, 60000, unsafe: true));
    }

    private function command(): Command
    {
        return Command::run(['eval', '--unsafe', 'touch("it-ran");'], $this->application->root);
    }
}
