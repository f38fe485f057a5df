<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;

/**
 * An isolated PHP in which an application has booted, with the guards, services, layer and limits of a request.
 */
final class ApplicationTest extends RuntimeTestCase
{
    private const AUTOLOAD = <<<'PHP'
        <?php
        if (is_file(__DIR__ . '/tells')) {
            echo "booting\n";
        }
        define('BOOTED', getmypid());
        PHP;

    public function testTheApplicationBootsOnceAndTheSnippetRunsFirst(): void
    {
        [$output, $runtime] = self::printed(fn (): Runtime => $this->started(
            files: ['vendor/tells' => ''],
            snippet: '$GLOBALS["number"] = 6; $local = 1; define("SNIPPET", BOOTED); echo "snippet\n"; return 7;',
        ));
        self::assertSame("booting\nsnippet\n", $output);

        $seen = static fn (): array => [BOOTED === getmypid(), SNIPPET === BOOTED, $GLOBALS['number'], isset($local)];
        self::assertSame([true, true, 6, false], $runtime->enter($seen));
        self::assertSame([true, true, 6, false], $runtime->enter($seen));
        self::assertSame($this->application()->root, $runtime->enter(static fn (): string => getcwd()));
    }

    public function testTheSnippetMayBeEmptyHereOnly(): void
    {
        foreach (['', " \n\t"] as $snippet) {
            self::assertTrue($this->started($snippet)->enter(static fn (): bool => defined('BOOTED')));
        }
        $this->expectException(InvalidRequestException::class);
        $this->evaluate('');
    }

    public function testEnteredClosuresKnowTheContainer(): void
    {
        $shop = dirname(__DIR__, 3) . '/examples/shop';
        $runtime = $this->kept(Runtime::fromRequest(new EvalRequest('', $shop, self::LONG_MS)));
        $snippet = 'return get_class(container());';
        $class = (new Evaluator())->evaluate(new EvalRequest($snippet, $shop))->result['value'];

        $first = static fn (): array => [get_class(\container()), spl_object_id(\container())];
        [$seen, $id] = $runtime->enter($first);
        self::assertSame($class, $seen);
        self::assertSame([$class, $id], $runtime->enter($first), 'It is the same in each entry.');
    }

    public function testWhatItWritesIsInItsLayerAndListed(): void
    {
        $runtime = $this->started();
        self::assertSame([], $runtime->fileChanges());
        $before = $this->application()->tree();

        self::assertSame(['new', false], $runtime->enter(static function (): array {
            file_put_contents('new.txt', 'new');
            unlink('data.txt');

            return [file_get_contents('new.txt'), file_exists('data.txt')];
        }));
        $changes = $runtime->fileChanges();
        self::assertSame(['new.txt'], array_column($changes['created'], 'path'));
        self::assertSame(['data.txt'], array_column($changes['deleted'], 'path'));
        $runtime->enter(static fn (): mixed => file_put_contents('later.txt', ''));
        $paths = array_column($runtime->fileChanges()['created'], 'path');
        sort($paths);
        self::assertSame(['later.txt', 'new.txt'], $paths, 'So far.');
        $kept = $runtime->enter(static fn () => file_get_contents('new.txt'));
        self::assertSame('new', $kept, 'It stays in the layer.');

        self::assertSame($before, $this->application()->tree());
        $runtime->close();
        self::assertSame($before, $this->application()->tree());
    }

    public function testWhatItWritesIsRealWhereTheRequestSaysSo(): void
    {
        $runtime = $this->started(allowWrites: true);
        $runtime->enter(static fn (): mixed => file_put_contents('new.txt', 'new'));

        self::assertSame('new', file_get_contents($this->application()->path('new.txt')));
        self::assertSame([], $runtime->fileChanges(), 'What is real is not listed.');
    }

    public function testWhatWasRefusedSoFarIsListed(): void
    {
        $runtime = $this->started('@file_get_contents("/etc/shadow");');
        $what = static fn (): array => array_column($runtime->blocked(), 'what');
        self::assertSame(['read /etc/shadow'], $what());

        $runtime->enter(static function (): void {
            try {
                exec('true');
            } catch (\Error) {
                // It is refused.
            }
        });
        $runtime->enter(static fn (): mixed => @file_get_contents('/etc/gshadow'));
        self::assertEqualsCanonicalizing(['read /etc/shadow', 'exec()', 'read /etc/gshadow'], $what());
        self::assertSame(['filesystem'], array_values(array_unique(array_column(array_filter(
            $runtime->blocked(),
            static fn (array $one): bool => str_starts_with($one['what'], 'read'),
        ), 'guard'))));
    }

    public function testARefusalNamesWhatTheRequestHas(): void
    {
        $runtime = $this->started('');
        $runtime->enter(static fn (): mixed => @file_put_contents('/etc/altair-outside', 'x'));

        self::assertSame([
            'exec() is refused in a confined run; unsafe: true allows it',
            "fsockopen() is refused in a confined run; services: ['127.0.0.1:1'] allows it",
        ], self::refusedFunctions($runtime));
        self::assertSame([
            'connect to 127.0.0.1:1' => "services: ['127.0.0.1:1']",
            'exec()' => 'unsafe: true',
            'read /etc/shadow' => "readablePaths: ['/etc/shadow']",
            'write /etc/altair-outside' => 'unsafe: true',
        ], self::ways($runtime));
    }

    public function testLimitsAreThoseOfTheRequest(): void
    {
        $runtime = $this->started('', timeoutMs: self::SHORT_MS, memoryLimitMb: 48);

        self::assertSame('48M', $runtime->enter(static fn (): string => ini_get('memory_limit')));
        self::assertSame('96M', $runtime->enter(static fn (): string => ini_get('memory_limit'), memoryLimitMb: 96));
        self::assertSame('48M', $runtime->enter(static fn (): string => ini_get('memory_limit')));
        self::assertStringStartsWith('sandbox unusable: the deadline of 700 ms passed', self::failure(
            static fn (): mixed => $runtime->enter(static function (): void {
                while (true) {
                    usleep(1000);
                }
            }),
        ));
    }

    /**
     * @dataProvider failures
     */
    public function testOneThatDoesNotStartSaysWhyAndLeavesNothing(
        string $snippet,
        string $message,
        string $autoload = self::AUTOLOAD,
        int $timeoutMs = self::LONG_MS,
    ): void {
        $application = $this->application(['vendor/autoload.php' => $autoload]);
        $request = new EvalRequest($snippet, $application->root, $timeoutMs);
        $thrown = self::printed(static fn (): Runtime => Runtime::fromRequest($request))[1];

        self::assertInstanceOf(Exception::class, $thrown);
        self::assertStringMatchesFormat("sandbox unusable: $message", $thrown->getMessage());
        $thrown = self::printed(static fn (): mixed => \sandbox\Runtime::fromRequest($request))[1];
        self::assertInstanceOf(\sandbox\Exception::class, $thrown);
    }

    public static function failures(): iterable
    {
        $snippet = 'its snippet did not return:';
        yield 'a snippet that throws' => [
            'throw new LogicException("why");',
            "$snippet LogicException: why in snippet:1",
        ];
        yield 'one that exits' => ['exit(4);', "$snippet it called exit(4)"];
        yield 'one that cannot be compiled' => ['return 1 +;', "$snippet ParseError: syntax error%A in snippet:1"];
        yield 'one that ends fatally' => [
            'error_reporting(0); trigger_error("fatal", E_USER_ERROR);',
            "$snippet fatal in snippet:1",
        ];
        yield 'one that takes too long' => [
            'while (true) { usleep(1000); }',
            'the deadline of 700 ms passed in snippet:1',
            self::AUTOLOAD,
            self::SHORT_MS,
        ];
        yield 'a boot that throws' => [
            '',
            'The autoloader threw. RuntimeException: no boot in %s/vendor/autoload.php:1',
            '<?php throw new RuntimeException("no boot");',
        ];
        yield 'a boot that exits' => ['', '%A', '<?php exit(3);'];
        yield 'a boot that takes too long' => [
            '',
            'the deadline of 700 ms passed in %s/vendor/autoload.php:1',
            '<?php while (true) { usleep(1000); }',
            self::SHORT_MS,
        ];
    }

    public function testARequestThatCannotBeMadeThrowsAsInAnEvaluation(): void
    {
        $this->expectException(InvalidRequestException::class);
        Runtime::fromRequest(new EvalRequest('', '/nowhere/at/all'));
    }

    public function testAnUnsafeSessionIsAudited(): void
    {
        $runtime = $this->started('return 1;', unsafe: true);
        $events = fn (): array => array_map(
            static fn (string $line): array => json_decode($line, true, flags: JSON_THROW_ON_ERROR),
            file($this->application()->path('.altair/events.jsonl')),
        );
        self::assertCount(1, $events(), 'Before anything has run.');
        self::assertTrue($runtime->enter(static fn (): bool => touch('real.txt')));
        self::assertFileExists($this->application()->path('real.txt'));
        $runtime->close();

        [$began, $ended] = $events();
        self::assertSame(['partial', true, 'return 1;'], [
            $began['status'], $began['extra']['unsafe'], $began['extra']['snippet'],
        ]);
        self::assertSame(['ok', $began['extra']['run']], [$ended['status'], $ended['extra']['run']]);

        $runtime = $this->started('', unsafe: true);
        self::failure(static fn (): mixed => $runtime->enter(static fn (): mixed => posix_kill(getmypid(), SIGKILL)));
        $last = array_slice($events(), -1)[0];
        self::assertSame(['fail', 'it was ended by signal 9 (SIGKILL)'], [$last['status'], $last['error']]);
    }

    public function testTheSecondOfAKindStartsFromATemplate(): void
    {
        $application = $this->application(['vendor/autoload.php' => self::AUTOLOAD]);
        // What was written a moment ago may be written again unseen.
        array_map(static fn (string $path) => touch($application->path($path), time() - 60), $application->tree());
        $script = new Script($this->inFile(sprintf(<<<'PHP'
            use Altair\Eval\EvalRequest;
            use Altair\Sandbox\Runtime;
            $runtimes = [];
            for ($i = 0; $i < 4; $i++) {
                $runtimes[] = Runtime::fromRequest(new EvalRequest('$GLOBALS["i"] = 1;', %s, 60000));
            }
            foreach ($runtimes as $i => $runtime) {
                say($runtime->enter(static fn (int $i) => [BOOTED === getmypid(), $GLOBALS['i'] += $i], [$i]));
            }
            $pids = array_map(static fn ($runtime) => $runtime->enter(static fn () => BOOTED), $runtimes);
            say(count(array_unique($pids)));
            PHP, var_export($application->root, true))));

        [$code, $output, $errors] = $script->end();
        // Forks know what their template has booted with.
        $expected = "[true,1]\n[false,2]\n[false,3]\n[false,4]\n2\n";
        self::assertSame([0, $expected, ''], [$code, $output, $errors]);
        self::assertSame([], $script->left());
    }

    /**
     * @param array<string, string> $files
     */
    private function started(string $snippet = '', array $files = [], mixed ...$options): Runtime
    {
        $files += ['vendor/autoload.php' => self::AUTOLOAD, 'data.txt' => 'data'];
        $application = $this->application($files);
        $options += ['timeoutMs' => self::LONG_MS];

        return $this->kept(Runtime::fromRequest(new EvalRequest($snippet, $application->root, ...$options)));
    }
}
