<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Refusals;
use Altair\Eval\Tests\Support\TemporaryApplication;
use DateTimeImmutable;
use LogicException;
use PHPUnit\Framework\TestCase;

/**
 * The audit log: every unsafe run leaves two lines, or is not made.
 */
final class AuditTest extends TestCase
{
    use Refusals;

    private const LONG_MS = 60000;

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
    }

    public function testARunLeavesOneLineBeforeItAndOneAfterIt(): void
    {
        $snippet = 'return file(".altair/events.jsonl");';

        $seen = $this->evaluate($snippet)->result['value'] ?? [];

        self::assertCount(1, $seen, 'The first line is there before the snippet runs.');
        self::assertSame('partial', json_decode($seen[0]['value'], true)['status']);
        self::assertSame(['partial', 'ok'], array_column($this->events(), 'status'));
    }

    public function testALineTellsWhoRanWhatAndHowItEnded(): void
    {
        $this->evaluate('exit(0);', allowNetwork: true);

        [$before, $after] = $this->events();

        $keys = [
            'id', 'timestamp', 'actor', 'user', 'client', 'command', 'kind', 'status', 'duration_ms', 'error', 'extra',
        ];
        $extra = [
            'run', 'unsafe', 'allow_writes', 'allow_network', 'snippet_length', 'snippet_sha256', 'snippet',
            'exit_code', 'timed_out',
        ];
        foreach ([$before, $after] as $event) {
            self::assertSame($keys, array_keys($event));
            self::assertSame($extra, array_keys($event['extra']));
            self::assertMatchesRegularExpression('/^[0-9A-HJKMNP-TV-Z]{26}$/', $event['id']);
            self::assertMatchesRegularExpression(
                '/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/',
                $event['timestamp'],
            );
            self::assertEqualsWithDelta(time(), (new DateTimeImmutable($event['timestamp']))->getTimestamp(), 120);
            self::assertSame(['script', 'eval', 'eval'], [$event['actor'], $event['command'], $event['kind']]);
            self::assertSame(posix_getpwuid(posix_geteuid())['name'] ?? null, $event['user']);
            self::assertSame([true, false, true], array_slice(array_values($event['extra']), 1, 3));
            self::assertSame('exit(0);', $event['extra']['snippet']);
            self::assertSame(8, $event['extra']['snippet_length']);
            self::assertSame(hash('sha256', 'exit(0);'), $event['extra']['snippet_sha256']);
        }
        self::assertNotSame($before['id'], $after['id']);
        self::assertSame($before['extra']['run'], $after['extra']['run']);
        self::assertSame([null, 0], [$before['extra']['exit_code'], $after['extra']['exit_code']]);
        self::assertSame([null, null], [$before['error'], $after['error']]);
    }

    /**
     * @dataProvider failures
     */
    public function testARunThatFailsSaysWhy(
        string $snippet,
        int $exitCode,
        string $why,
        int $timeoutMs = self::LONG_MS,
    ): void {
        $result = $this->evaluate($snippet, $timeoutMs);
        self::assertSame($exitCode, $result->exitCode, var_export($result->toArray(), true));

        [$before, $after] = $this->events();

        self::assertSame(['partial', 'fail'], [$before['status'], $after['status']]);
        self::assertSame($before['extra']['run'], $after['extra']['run']);
        self::assertSame($exitCode, $after['extra']['exit_code']);
        self::assertSame($result->timedOut, $after['extra']['timed_out']);
        self::assertIsString($after['error']);
        self::assertStringContainsStringIgnoringCase($why, $after['error']);
    }

    /**
     * @return iterable<string, array{0: string, 1: int, 2: string, 3?: int}>
     */
    public static function failures(): iterable
    {
        yield 'it throws' => ['throw new RuntimeException("boom");', 1, 'boom'];
        yield 'it throws without a message' => ['throw new Exception();', 1, 'Exception'];
        yield 'it does not parse' => ['return (;', 1, 'ParseError'];
        yield 'it exits' => ['exit(3);', 3, '3'];
        yield 'it fails fatally' => ['trigger_error("bad", E_USER_ERROR);', 255, 'bad'];
        yield 'it runs out of memory' => ['ini_set("memory_limit", "8M"); str_repeat("x", 99 << 20);', 255, 'memory'];
        yield 'it is killed' => ['posix_kill(getmypid(), SIGKILL);', 137, '9'];
        yield 'it times out' => ['while (true);', 124, 'timed out', 1000];
    }

    public function testABootThatFailsIsAFailedRun(): void
    {
        $this->application->remove('vendor');

        $this->evaluate('return 1;');

        self::assertSame(['partial', 'fail'], array_column($this->events(), 'status'));
        self::assertStringContainsString('autoload.php', $this->events()[1]['error']);
    }

    public function testARunThatTheCallerBreaksOffIsAFailedRun(): void
    {
        $this->assertRefused(LogicException::class, 'enough', function (): void {
            (new Evaluator())->evaluate(
                $this->request('echo "x"; sleep(50);'),
                static fn () => throw new LogicException('enough'),
            );
        });

        [, $after] = $this->events();
        self::assertSame('fail', $after['status']);
        self::assertNotSame('', (string) $after['error']);
    }

    public function testAConfinedRunLeavesNoLog(): void
    {
        (new Evaluator())->evaluate(new EvalRequest('return 1;', $this->application->root, self::LONG_MS));

        self::assertFileDoesNotExist($this->application->path('.altair'));
    }

    public function testARequestThatCanNeverRunLeavesNoLog(): void
    {
        $request = new EvalRequest('1', $this->application->root, unsafe: true, bootstrap: 'no.php');
        $this->assertRefused(
            InvalidRequestException::class,
            'no.php',
            static fn () => (new Evaluator())->evaluate($request),
        );

        self::assertFileDoesNotExist($this->application->path('.altair'));
    }

    public function testALongSnippetIsCutButMeasuredWhole(): void
    {
        $snippet = 'return "' . str_repeat("\u{e9}", 5000) . '";';

        $this->evaluate($snippet);

        $extra = $this->events()[0]['extra'];
        self::assertSame(strlen($snippet), $extra['snippet_length']);
        self::assertSame(hash('sha256', $snippet), $extra['snippet_sha256']);
        self::assertStringStartsWith(rtrim(mb_strcut($extra['snippet'], 0, 4000)), $snippet);
        self::assertLessThan(4096 + 32, strlen($extra['snippet']));
    }

    public function testSecretLookingValuesAreMasked(): void
    {
        $this->evaluate('$command = "mysql --password=hunter2 --api-key sw0rdfish -u root"; return 1;');

        $log = (string) file_get_contents($this->application->path('.altair/events.jsonl'));
        self::assertStringNotContainsString('hunter2', $log);
        self::assertStringNotContainsString('sw0rdfish', $log);
        self::assertStringContainsString('***', $log);
        self::assertStringContainsString('-u root', $log);
    }

    public function testTheCommandLineIsAnotherActor(): void
    {
        $command = $this->command('eval', '--unsafe', 'return 1;');

        self::assertSame(0, $command->exitCode);
        self::assertSame(['cli', 'cli'], array_column($this->events(), 'actor'));
    }

    public function testEventsTailShowsWhatWasRun(): void
    {
        $this->evaluate('return "one";');
        $this->command('eval', '--unsafe', 'throw new Exception("two\x1b[31m");');

        $human = $this->command('events:tail');
        $json = $this->command('events:tail', '-n', '1', '--format=json');

        self::assertSame([0, ''], [$human->exitCode, $human->errors]);
        $lines = explode("\n", rtrim($human->output));
        self::assertCount(4, $lines);
        self::assertMatchesRegularExpression('/ok\s+script\s.*return "one";/', $lines[1]);
        self::assertMatchesRegularExpression('/fail\s+cli\s.*two/', $lines[3]);
        self::assertStringNotContainsString("\x1b", $human->output);
        self::assertSame($this->events()[3], $json->json());
    }

    public function testEventsTailWithoutALogShowsNothing(): void
    {
        $tail = $this->command('events:tail');

        self::assertSame([0, ''], [$tail->exitCode, $tail->output]);
    }

    private function evaluate(
        string $snippet,
        int $timeoutMs = self::LONG_MS,
        bool $allowNetwork = false,
    ): EvalResult {
        return (new Evaluator())->evaluate($this->request($snippet, $timeoutMs, $allowNetwork));
    }

    private function request(
        string $snippet,
        int $timeoutMs = self::LONG_MS,
        bool $allowNetwork = false,
    ): EvalRequest {
        return new EvalRequest(
            $snippet,
            $this->application->root,
            $timeoutMs,
            allowNetwork: $allowNetwork,
            unsafe: true,
        );
    }

    private function command(string ...$arguments): Command
    {
        return Command::run(array_values($arguments), $this->application->root);
    }

    /**
     * @return list<array<string, mixed>>
     */
    private function events(): array
    {
        return array_map(
            static fn (string $line): array => json_decode($line, true, flags: JSON_THROW_ON_ERROR),
            file($this->application->path('.altair/events.jsonl'), FILE_IGNORE_NEW_LINES) ?: [],
        );
    }
}
