<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\Readers\Asker;
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
    /**
     * @return iterable<string, array{class-string<SqlServer>, Asker}>
     */
    public static function askers(): iterable
    {
        foreach (Asker::OF_MARIADB as $asker) {
            yield "MariaDB by $asker->value" => [MariaDb::class, $asker];
        }
        foreach (Asker::OF_POSTGRESQL as $asker) {
            yield "PostgreSQL by $asker->value" => [PostgreSql::class, $asker];
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider askers
     */
    public function testEachStatementComesToTheSame(string $class, Asker $asker): void
    {
        $server = $this->filled($class);
        $snippet = 'return ' . Reading::class . '::statements($asker, $to);';
        $control = self::returned($this->reading($server, $asker, $snippet, unsafe: true));
        $result = $this->reading($server, $asker, $snippet);
        $guarded = self::returned($result);
        $wrong = array_filter(
            $control,
            static fn (string $note): bool => str_starts_with($note, Reading::FAILED) && !$asker->saysOfNoWay($note),
        );
        self::assertSame([], $wrong, 'These statements are wrong.');
        $differences = [];
        foreach ($control as $label => $note) {
            if ($guarded[$label] !== $note) {
                $differences[$label] = [$note, $guarded[$label]];
            }
        }
        self::assertSame([], $differences);
        self::assertArrayNotHasKey('blocked', $result->diagnostics);
    }

    /**
     * @param class-string<SqlServer> $class
     */
    private function filled(string $class): SqlServer
    {
        $server = $this->server($class);
        $shop = $server->connectAsApplication();
        array_map($shop->exec(...), Tables::of(self::driver($server)));

        return $server;
    }

    private static function driver(SqlServer $server): string
    {
        return $server instanceof MariaDb ? 'mysql' : 'pgsql';
    }

    /** Evaluates with a way to ask, `$asker`, and where to, `$to`. */
    private function reading(SqlServer $server, Asker $asker, string $snippet, mixed ...$options): EvalResult
    {
        $libraries = array_map(Library::autoloader(...), array_filter([$asker->library()]));
        $this->application(['vendor/autoload.php' => '<?php error_reporting(E_ALL & ~E_DEPRECATED);'
            . ' foreach (' . var_export($libraries, true) . ' as $file) { require_once $file; }'
            . ' spl_autoload_register(static function (string $class): void {'
            . ' $file = ' . var_export(__DIR__, true) . ' . strtr(substr($class, 17), ["\\\\" => "/"]) . ".php";'
            . ' if (str_starts_with($class, "Altair\\\\Eval\\\\Tests\\\\") && is_file($file)) { require $file; } });']);
        $to = ['driver' => self::driver($server), 'port' => $server->port(), 'user' => $server->user(),
            'password' => $server->password()];
        $options += ['services' => [$server->address()], 'readablePaths' => [__DIR__ . '/Support/Database/Readers']];

        return $this->cold(
            '$asker = ' . Asker::class . "::{$asker->name}; \$to = " . var_export($to, true) . "; $snippet",
            ...$options,
        );
    }
}
