<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * The README's examples, run as they stand there, from the top of the clone.
 */
final class ReadmeTest extends TestCase
{
    /** What the README calls the clone, and its user. */
    private const CLONE = '/home/you/altair-eval';
    private const USER = 'you';

    /** What differs from one run to the next: times, and what PHP takes of memory. */
    private const VARIABLE = [
        '/\b\d+(?=ms\b)/' => 'N',
        '/(?<=memory=)\d+(?= KB)/' => 'N',
        '/(?<="memory_peak_bytes":)\d+/' => 'N',
        '/(?<="duration_ms":)\d+/' => 'N',
        // Of the table of statements.
        '/ +\d+\.\d(?= ms$|  [A-Z])/m' => ' N',
        '/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d/' => 'TIME',
    ];

    /** A deadline that passes while the machine is busy may leave the child no time to say where it was. */
    private const TRIES = 3;

    private string $log;

    private ?string $logged = null;

    protected function setUp(): void
    {
        $this->log = self::top() . '/examples/shop/.altair/events.jsonl';
        $this->logged = is_file($this->log) ? (string) file_get_contents($this->log) : null;
    }

    protected function tearDown(): void
    {
        if ($this->logged !== null) {
            file_put_contents($this->log, $this->logged);
        } elseif (is_file($this->log)) {
            unlink($this->log);
            rmdir(dirname($this->log));
        }
        self::assertSame([], Processes::childrenLeft());
    }

    /**
     * @dataProvider sessions
     */
    public function testACommandPrintsWhatTheReadmeSays(string $command, string $output, string $needs): void
    {
        for ($try = 1; $try <= self::TRIES; ++$try) {
            $before = $needs === '' ? '' : $this->database($command);
            $seen = self::stable($this->execute(['sh', '-c', $before . $command]));
            if ($seen === self::stable($output)) {
                break;
            }
        }

        self::assertSame(self::stable($output), $seen, $command);
    }

    /**
     * @return iterable<string, array{string, string, string}> command => what it prints, and the variable that it needs
     */
    public static function sessions(): iterable
    {
        foreach (self::blocks('console') as $block) {
            $needs = '';
            foreach (preg_split('/^\$ /m', $block, flags: PREG_SPLIT_NO_EMPTY) as $example) {
                [$command, $output] = explode("\n", $example, 2);
                if (str_contains($command, 'events:tail')) {
                    // It shows what the command before has left.
                    $command = $before . ' >/dev/null; ' . $command;
                }
                if (str_starts_with($command, 'export ')) {
                    $needs = $command;
                    continue;
                }
                yield "$needs $command" => [$command, $output, $needs];
                $before = $command;
            }
        }
    }

    /** The shop's database, as it is when a command of the README comes to it: what sets the variable. */
    private function database(string $command): string
    {
        if (MariaDb::whyMissing() !== null) {
            Skip::NotInstalled->because(MariaDb::whyMissing());
        }
        $server = MariaDb::shared();
        $server->reset();
        $server->connect()->exec('DROP TABLE users');
        $url = "mysql://{$server->user()}:{$server->password()}@{$server->address()}/shop";
        $fill = 'php examples/shop/fill-database.php';

        return "export DATABASE_URL=$url; " . (trim($command) === $fill ? '' : "$fill; ");
    }

    /**
     * @dataProvider programs
     */
    public function testAProgramPrintsWhatTheReadmeSays(string $code, string $output): void
    {
        $extension = getenv('EXTENSION');
        $options = $extension === false ? [] : ['-d', "extension=$extension"];
        if (!str_starts_with($code, '<?php')) {
            self::assertSame($output, $this->execute([PHP_BINARY, ...$options, '-r', $code]));

            return;
        }
        // One that is a file: closures are sent as the source of theirs.
        $file = tempnam(sys_get_temp_dir(), 'readme');
        self::assertIsString($file);
        try {
            file_put_contents($file, $code);

            self::assertSame($output, $this->execute([PHP_BINARY, ...$options, $file]));
        } finally {
            unlink($file);
        }
    }

    public function testEveryProgramThatEntersAClosureIsAFile(): void
    {
        $entering = array_filter(self::blocks('php'), static fn (string $code) => str_contains($code, '->enter('));

        self::assertNotSame([], $entering);
        foreach ($entering as $code) {
            self::assertStringStartsWith('<?php', $code);
            self::assertContains($code, array_column(self::programs(), 0), 'What it prints follows.');
        }
    }

    /**
     * @return list<array{string, string}>
     */
    public static function programs(): array
    {
        $block = '((?:(?!^```).)*)^```$';
        preg_match_all("/^```php\n$block\n\n```text\n$block/ms", self::readme(), $programs, PREG_SET_ORDER);

        return array_map(static fn (array $program): array => array_slice($program, 1), $programs);
    }

    public function testTheTestCaseIsOneThatRuns(): void
    {
        $shown = array_filter(self::blocks('php'), static fn (string $code) => str_contains($code, 'extends TestCase'));
        $file = (string) file_get_contents(self::top() . '/examples/shop/tests/ShopTest.php');

        self::assertSame([preg_replace('/^.*?(?=namespace )/s', '', $file)], array_values($shown));
    }

    public function testEveryMakeTargetThatTheReadmeNamesIsOne(): void
    {
        preg_match_all('/make ([a-z]+)/', implode(self::blocks('sh')) . self::readme(), $named);
        preg_match_all('/^([a-z-]+):/m', (string) file_get_contents(self::top() . '/Makefile'), $targets);

        self::assertContains('try', $named[1]);
        self::assertSame([], array_diff($named[1], $targets[1]));
    }

    public function testTheLimitsAreThoseOfTheRequestAndTheEncoder(): void
    {
        preg_match_all('/^\| ([^|]+) \| ([^|]+) \|$/m', self::section('## Limits'), $rows);
        $limits = array_combine($rows[1], $rows[2]);
        $numbers = static fn (int ...$values): array => array_map(number_format(...), $values);

        foreach (
            [
                'deadline of the whole call, boot included' => $numbers(
                    \Altair\Eval\EvalRequest::DEFAULT_TIMEOUT_MS,
                    \Altair\Eval\EvalRequest::MIN_TIMEOUT_MS,
                    \Altair\Eval\EvalRequest::MAX_TIMEOUT_MS,
                ),
                '`memory_limit`, from the end of boot on' => $numbers(
                    \Altair\Eval\EvalRequest::DEFAULT_MEMORY_MB,
                    \Altair\Eval\EvalRequest::MIN_MEMORY_MB,
                    \Altair\Eval\EvalRequest::MAX_MEMORY_MB,
                ),
                'output kept of each stream' => $numbers(\Altair\Eval\Runner\SubprocessRunner::OUTPUT_LIMIT),
                'depth of an encoded value' => $numbers(\Altair\Eval\Encoder\ValueEncoder::MAX_DEPTH),
                'string in an encoded value' => $numbers(\Altair\Eval\Encoder\ValueEncoder::STRING_MAX),
                'entries of an array, items of an iterator' => $numbers(
                    1000,
                    \Altair\Eval\Encoder\ValueEncoder::ITERABLE_PREVIEW,
                ),
            ] as $name => $expected
        ) {
            preg_match_all('/\d[\d,]*/', $limits[$name] ?? '', $found);
            self::assertSame($expected, $found[0], $name);
        }
    }

    /**
     * @param list<string> $command
     * @return string both streams
     */
    private function execute(array $command): string
    {
        $process = proc_open(
            $command,
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]],
            $pipes,
            self::top(),
            ['NO_COLOR' => '1'] + getenv(),
        );
        self::assertIsResource($process);
        $output = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return $output;
    }

    /** The text with what differs taken out, and places as the README names them. */
    private static function stable(string $text): string
    {
        $user = posix_getpwuid(posix_geteuid())['name'] ?? (string) posix_geteuid();
        $text = strtr($text, [self::top() => self::CLONE, "  cli  $user  " => '  cli  ' . self::USER . '  ']);

        return (string) preg_replace(array_keys(self::VARIABLE), array_values(self::VARIABLE), $text);
    }

    /**
     * @return list<string> the contents of the code blocks of a language
     */
    private static function blocks(string $language): array
    {
        preg_match_all("/^```$language\n(.*?)^```$/ms", self::readme(), $blocks);
        self::assertNotSame([], $blocks[1], "The README has examples in $language.");

        return $blocks[1];
    }

    private static function section(string $heading): string
    {
        $from = (string) strstr(self::readme(), "\n$heading\n");

        return explode("\n## ", substr($from, strlen($heading)), 2)[0];
    }

    private static function readme(): string
    {
        return (string) file_get_contents(self::top() . '/README.md');
    }

    private static function top(): string
    {
        return dirname(__DIR__);
    }
}
