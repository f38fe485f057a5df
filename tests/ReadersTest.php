<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\Readers\Asker;
use Altair\Eval\Tests\Support\Database\Readers\Parameters;
use Altair\Eval\Tests\Support\Database\Readers\Reader;
use Altair\Eval\Tests\Support\Database\Readers\Readers;
use Altair\Eval\Tests\Support\Database\Readers\Reading;
use Altair\Eval\Tests\Support\Database\Readers\Tables;
use Altair\Eval\Tests\Support\Database\SessionTestCase;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Library;

/**
 * No reader is refused: what applications read comes to the same in a run whose sessions only read as in one without
 * guards.
 */
final class ReadersTest extends SessionTestCase
{
    private const SERVERS = ['mysql' => MariaDb::class, 'pgsql' => PostgreSql::class];

    /** Statements of each server, none twice. */
    private const STATEMENTS_MIN = 200;

    /** Random values for each server, in as many runs as keep clear of the deadline. */
    private const VALUES = 50000;
    private const RUNS = 2;
    private const SEED = 20240229;

    /** What reads, and does more than that: locks rows, or does what nobody can tell. */
    private const NO_READERS = [
        'mysql' => [
            'SELECT * FROM users FOR UPDATE', 'SELECT * FROM users WHERE id = 1 FOR UPDATE SKIP LOCKED',
            'SELECT * FROM users FOR UPDATE NOWAIT', 'CALL says_one()', 'CREATE TEMPORARY TABLE t (a INT)',
            'CREATE TEMPORARY TABLE t AS SELECT * FROM users', 'SELECT NEXTVAL(numbers)',
            // MariaDB refuses what it only explains, too.
            "EXPLAIN UPDATE users SET name = 'x' WHERE id = 1", 'EXPLAIN DELETE FROM comments WHERE id = 1',
            "EXPLAIN INSERT INTO users VALUES (9, 'x', 'y')", "EXPLAIN REPLACE INTO users VALUES (9, 'x', 'y')",
            "EXPLAIN FORMAT=JSON UPDATE users SET name = 'x' WHERE id = 1",
        ],
        'pgsql' => [
            'SELECT * FROM users FOR UPDATE', 'SELECT * FROM users FOR NO KEY UPDATE SKIP LOCKED',
            'SELECT * FROM users FOR SHARE', 'SELECT * FROM users FOR KEY SHARE NOWAIT', 'CALL says_one()',
            'CREATE TEMPORARY TABLE t (a INT)', 'SELECT * INTO TEMP u FROM users', 'SELECT nextval(\'numbers\')',
        ],
    ];

    /** @var array<class-string<SqlServer>, SqlServer> servers with all that is read */
    private static array $filled = [];

    /**
     * Another test may have looked to the servers before.
     *
     * @beforeClass
     */
    public static function fillAnew(): void
    {
        self::$filled = [];
    }

    /**
     * @return iterable<string, array{string, Asker}>
     */
    public static function askers(): iterable
    {
        foreach (Asker::OF_MARIADB as $asker) {
            yield "MariaDB by $asker->value" => ['mysql', $asker];
        }
        foreach (Asker::OF_POSTGRESQL as $asker) {
            yield "PostgreSQL by $asker->value" => ['pgsql', $asker];
        }
    }

    /** @dataProvider askers */
    public function testEachReaderComesToTheSame(string $driver, Asker $asker): void
    {
        $snippet = 'return ' . Reading::class . '::all($asker, $to);';
        $control = array_merge(...self::returned($this->reading($driver, $asker, $snippet, unsafe: true)));
        $result = $this->reading($driver, $asker, $snippet);
        $guarded = array_merge(...self::returned($result));
        $works = array_filter($control, static fn (string $note): bool => !str_starts_with($note, Reading::FAILED));
        $wrong = array_filter(array_diff_key($control, $works), fn (string $note): bool => !$asker->saysOfNoWay($note));
        self::assertSame([], $wrong, 'What no server takes.');
        $differences = '';
        foreach (array_diff_assoc($works, $guarded) as $label => $note) {
            $differences .= "\n$label\n    without guards: $note\n    in a run: {$guarded[$label]}\n";
        }
        self::assertSame('', $differences);
        if ($works === $control) {
            self::assertArrayNotHasKey('blocked', $result->diagnostics);
        }
        self::assertGreaterThan(self::STATEMENTS_MIN, count($works));
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function drivers(): iterable
    {
        yield 'MariaDB' => ['mysql'];
        yield 'PostgreSQL' => ['pgsql'];
    }

    /** @dataProvider drivers */
    public function testThereAreManyOfThem(string $driver): void
    {
        $statements = [];
        foreach (Readers::of($driver) as $readers) {
            foreach ($readers as $reader) {
                $statements[$reader->sql] = true;
            }
        }
        self::assertGreaterThan(self::STATEMENTS_MIN, count($statements));
    }

    /** @dataProvider askers */
    public function testWhatDoesMoreThanReadIsRefused(string $driver, Asker $asker): void
    {
        $snippet = '$notes = []; foreach (' . var_export(self::NO_READERS[$driver], true) . ' as $sql) {'
            . ' $notes += ' . Reading::class . '::statements($asker, $to, [$sql => new ' . Reader::class . '($sql)]); }'
            . ' return $notes;';
        $control = self::returned($this->reading($driver, $asker, $snippet, unsafe: true));
        $guarded = self::returned($this->reading($driver, $asker, $snippet));
        foreach ($control as $sql => $note) {
            if ($asker->saysOfNoWay($note)) {
                continue;
            }
            self::assertStringStartsNotWith(Reading::FAILED, $note, $sql);
            self::assertStringStartsWith(Reading::FAILED, $guarded[$sql], $sql);
            self::assertMatchesRegularExpression('~\b(25006|1792)\b~', $guarded[$sql], $sql);
            if (str_starts_with($asker->name, 'Pdo')) {
                self::assertStringContainsString('SQLSTATE[25006]', $guarded[$sql], $sql);
            }
        }
    }

    /** @dataProvider drivers */
    public function testValuesAreNoCode(string $driver): void
    {
        foreach (range(1, self::RUNS) as $run) {
            $seed = self::SEED + $run;
            $snippet = 'return ' . Parameters::class . "::send(\$asker->connect(\$to), $seed, "
                . self::VALUES / self::RUNS . ');';
            $result = $this->reading($driver, Asker::PdoEmulated, $snippet);
            [$sent, $wrong] = self::returned($result);
            self::assertSame([], $wrong, "The seed is $seed.");
            self::assertSame(self::VALUES / self::RUNS, $sent);
            self::assertArrayNotHasKey('blocked', $result->diagnostics, "The seed is $seed.");
        }
    }

    private function filled(string $driver): SqlServer
    {
        $class = self::SERVERS[$driver];
        $server = self::$filled[$class] ?? null;
        if ($server === null || !$server->runs()) {
            $server = $this->server($class);
            $shop = $server->connectAsApplication();
            array_map($shop->exec(...), Tables::of($driver));
        }

        return self::$filled[$class] = $server;
    }

    /** Evaluates with a way to ask, `$asker`, and where to, `$to`. */
    private function reading(string $driver, Asker $asker, string $snippet, mixed ...$options): EvalResult
    {
        $server = $this->filled($driver);
        $this->application(['vendor/autoload.php' => $this->autoloader($asker)]);
        $to = [
            'driver' => $driver, 'port' => $server->port(), 'user' => $server->user(),
            'password' => $server->password(),
        ];
        $options += [
            'services' => [$server->address()], 'readablePaths' => [__DIR__ . '/Support/Database/Readers'],
            'memoryLimitMb' => 256,
        ];

        return $this->cold(
            '$asker = ' . Asker::class . "::{$asker->name}; \$to = " . var_export($to, true) . "; $snippet",
            ...$options,
        );
    }

    /** The autoloader of an application that has what the askers are, and their libraries. */
    private function autoloader(Asker $asker): string
    {
        $files = array_filter(array_map(
            static fn (string $library) => $asker->isOfFramework() ? Library::autoloader($library)
                : stream_resolve_include_path("$library/autoload.php"),
            $asker->libraries(),
        ));

        return '<?php error_reporting(E_ALL & ~E_DEPRECATED);'
            . ' foreach (' . var_export($files, true) . ' as $file) { require_once $file; }'
            . ' spl_autoload_register(static function (string $class): void {'
            . ' $file = ' . var_export(__DIR__, true) . ' . "/" . strtr(substr($class, 18), "\\\\", "/") . ".php";'
            . ' if (str_starts_with($class, "Altair\\\\Eval\\\\Tests\\\\") && is_file($file)) { require $file; } });';
    }
}
