<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SqlServer;
use RuntimeException;

/**
 * What a database session that only reads costs a query over TCP, and what it costs a statement to be told of.
 */
final class Databases
{
    /** Milliseconds of each of so many queries, as the snippet itself takes them. */
    private const QUERY = <<<'PHP'
        $connection = new PDO('%s', '%s', '%s');
        $connection->query('SELECT 1')->fetchAll();
        for ($taken = []; count($taken) < %d;) {
            $began = hrtime(true);
            $connection->query('SELECT * FROM users WHERE id = 1')->fetchAll();
            $taken[] = (hrtime(true) - $began) / 1e6;
        }
        return $taken;
        PHP;

    /** Milliseconds of a statement, of a thousand that all are other ones, each so many times. */
    private const STATEMENT = <<<'PHP'
        $connection = new PDO('sqlite::memory:');
        for ($taken = [], $n = 0; count($taken) < %d;) {
            $began = hrtime(true);
            for ($i = 0; $i < 1000; $i++, $n++) {
                $connection->query("SELECT id, name FROM (SELECT $n AS id, 'a@x' AS email, 'A' AS name) u")->fetch();
            }
            $taken[] = (hrtime(true) - $began) / 1e9;
        }
        return $taken;
        PHP;

    /** What being told of may add to a statement, in milliseconds. */
    private const TOLD_MS = 0.005;

    /** The server, and how many times as long a query may take. */
    private const LIMITS = ['MariaDB' => [MariaDb::class, 2.0], 'PostgreSQL' => [PostgreSql::class, 1.1]];

    public static function measure(Setting $setting, Table $table): void
    {
        foreach (self::LIMITS as $name => [$class, $limit]) {
            $row = "a query of $name by TCP in a session that only reads / in one that writes";
            $missing = $class::whyMissing();
            if ($missing !== null) {
                $table->skip($row, $missing);
                continue;
            }
            $server = $class::shared();
            $server->reset();
            $guarded = self::queries($setting, $server, 'read-only');
            $other = self::queries($setting, $server, 'write');
            $seen = Comparison::ofBlocks($guarded, $other, max(4, intdiv($setting->rounds, 10)), 500);
            $table->ratio($row, $seen, $limit);
        }
        $evaluator = new Evaluator(warm: true);
        $statements = static fn (bool $queries): \Closure => static fn (int $times): array => self::taken(
            $evaluator,
            new EvalRequest(sprintf(self::STATEMENT, $times), $setting->application->root, 60000, queries: $queries),
        );
        $told = Comparison::ofBlocks($statements(true), $statements(false), max(4, intdiv($setting->rounds, 10)), 10);
        $table->difference('a statement of SQLite that is told of / that is not', $told, self::TOLD_MS);
    }

    /**
     * @return list<float> what it gives
     */
    private static function taken(Evaluator $evaluator, EvalRequest $request): array
    {
        $result = $evaluator->evaluate($request);
        $result->ok() || throw new RuntimeException(json_encode($result->toArray()) ?: 'It failed.');

        return array_map(static fn (array $taken): float => (float) $taken['value'], $result->result['value']);
    }

    /**
     * @return \Closure(int): list<float>
     */
    private static function queries(Setting $setting, SqlServer $server, string $database): \Closure
    {
        $evaluator = new Evaluator(warm: true);

        return static function (int $times) use ($evaluator, $setting, $server, $database): array {
            $snippet = sprintf(self::QUERY, $server->dsn(), $server->user(), $server->password(), $times);

            return self::taken($evaluator, new EvalRequest(
                $snippet,
                $setting->application->root,
                60000,
                services: [$server->address()],
                database: $database,
            ));
        };
    }
}
