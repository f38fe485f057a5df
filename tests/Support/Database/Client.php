<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

/**
 * A way of PHP's to a server, as code for a snippet: `$connect()` gives a connection, `$run($connection, $sql)` has it
 * run a statement and throws what went wrong.
 */
enum Client: string
{
    case PdoExec = 'PDO::exec()';
    case PdoQuery = 'PDO::query()';
    case PdoPrepared = 'PDO, prepared';
    case PdoEmulated = 'PDO, prepared by emulation';
    case PdoSilent = 'PDO, without exceptions';
    case PdoPersistent = 'PDO, persistent';
    case MysqliQuery = 'mysqli::query()';
    case MysqliPrepared = 'mysqli, prepared';
    case MysqliMulti = 'mysqli::multi_query()';
    case MysqliAsynchronous = 'mysqli, asynchronous';
    case MysqliSilent = 'mysqli, without exceptions';
    case MysqliPersistent = 'mysqli, persistent';
    case PgQuery = 'pg_query()';
    case PgParams = 'pg_query_params()';
    case PgPrepared = 'pg_prepare()';
    case PgSend = 'pg_send_query()';
    case PgSendParams = 'pg_send_query_params()';
    case PgDefault = 'pg_query() of the last connection';

    public const OF_MARIADB = [
        self::PdoExec, self::PdoQuery, self::PdoPrepared, self::PdoEmulated, self::PdoSilent, self::PdoPersistent,
        self::MysqliQuery, self::MysqliPrepared, self::MysqliMulti, self::MysqliAsynchronous, self::MysqliSilent,
        self::MysqliPersistent,
    ];

    public const OF_POSTGRESQL = [
        self::PdoExec, self::PdoQuery, self::PdoPrepared, self::PdoEmulated, self::PdoSilent, self::PdoPersistent,
        self::PgQuery, self::PgParams, self::PgPrepared, self::PgSend, self::PgSendParams, self::PgDefault,
    ];

    public const OF_SQLITE = [
        self::PdoExec, self::PdoQuery, self::PdoPrepared, self::PdoEmulated, self::PdoSilent, self::PdoPersistent,
    ];

    /** Whether it takes several statements in one text. */
    public function takesSeveral(): bool
    {
        return !in_array($this, [
            self::PdoPrepared, self::MysqliQuery, self::MysqliPrepared, self::MysqliAsynchronous, self::MysqliSilent,
            self::MysqliPersistent, self::PgParams, self::PgPrepared, self::PgSendParams,
        ], true);
    }

    /** The code that sets `$connect` and `$run` for a server. */
    public function code(SqlServer|string $server): string
    {
        return $this->connecting($server) . "\n" . $this->running();
    }

    private function connecting(SqlServer|string $server): string
    {
        [$user, $password] = $server instanceof SqlServer ? [$server->user(), $server->password()] : ['', ''];
        [$user, $password] = [var_export($user, true), var_export($password, true)];
        if (str_starts_with($this->name, 'Pdo')) {
            $dsn = var_export($server instanceof SqlServer ? $server->dsn() : "sqlite:$server", true);
            $options = '[PDO::ATTR_EMULATE_PREPARES => ' . var_export($this === self::PdoEmulated, true)
                . ', PDO::ATTR_ERRMODE => PDO::ERRMODE_' . ($this === self::PdoSilent ? 'SILENT' : 'EXCEPTION')
                . ($this === self::PdoPersistent ? ', PDO::ATTR_PERSISTENT => true' : '') . ']';

            return "\$connect = static fn () => new PDO($dsn, $user, $password, $options);";
        }
        if (str_starts_with($this->name, 'Mysqli')) {
            $host = $this === self::MysqliPersistent ? 'p:127.0.0.1' : '127.0.0.1';
            $report = $this === self::MysqliSilent ? 'MYSQLI_REPORT_OFF' : 'MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT';

            return "mysqli_report($report); \$connect = static fn () =>"
                . " new mysqli('$host', $user, $password, 'shop', {$server->port()});";
        }
        $text = "host=127.0.0.1 port={$server->port()} dbname=shop user=shop password={$server->password()}";

        return "\$connect = static fn () => pg_connect('$text', PGSQL_CONNECT_FORCE_NEW);";
    }

    private function running(): string
    {
        $failed = match (true) {
            $this === self::PdoSilent => '$c->errorCode() !== "00000"'
                . ' && throw new Exception($c->errorInfo()[2] ?? "");',
            $this === self::MysqliSilent => '$c->errno !== 0 && throw new Exception($c->error);',
            str_starts_with($this->name, 'Pg') => '$done !== true && (!$done instanceof PgSql\Result'
                . ' || pg_result_error($done)) && throw new Exception(pg_last_error($c) ?: "failed");',
            default => '',
        };
        $body = match ($this) {
            self::PdoExec, self::PdoSilent => '$c->exec($sql);',
            self::PdoQuery, self::PdoPersistent => '$s = $c->query($sql); do { try { $s->fetchAll(); }'
                . ' catch (PDOException $e) { if ($e->getCode() !== "HY000") { throw $e; } } }'
                . ' while ($c->getAttribute(PDO::ATTR_DRIVER_NAME) === "mysql" && $s->nextRowset());',
            self::PdoPrepared, self::PdoEmulated => '$s = $c->prepare($sql); $s->execute(); if ($s->columnCount())'
                . ' { $s->fetchAll(); } $s = null;',
            self::MysqliQuery, self::MysqliSilent, self::MysqliPersistent => '$c->query($sql);',
            self::MysqliPrepared => '$s = $c->prepare($sql); $s->execute(); $s->get_result();',
            self::MysqliMulti => '$c->multi_query($sql); do { $c->store_result(); } while ($c->more_results()'
                . ' && $c->next_result());',
            self::MysqliAsynchronous => '$c->query($sql, MYSQLI_ASYNC); $c->reap_async_query();',
            self::PgQuery => '$done = @pg_query($c, $sql);',
            self::PgDefault => '$done = @pg_query($sql);',
            self::PgParams => '$done = @pg_query_params($c, $sql, []);',
            self::PgPrepared => 'static $n = 0; $n++; $done = @pg_prepare($c, "s$n", $sql);'
                . ' if ($done) { $done = @pg_execute($c, "s$n", []); }',
            self::PgSend => '@pg_send_query($c, $sql); $done = true; while ($r = pg_get_result($c)) {'
                . ' if (pg_result_error($r)) { throw new Exception(pg_result_error($r)); } }',
            self::PgSendParams => '@pg_send_query_params($c, $sql, []); $done = true;'
                . ' while ($r = pg_get_result($c)) { if (pg_result_error($r)) {'
                . ' throw new Exception(pg_result_error($r)); } }',
        };

        return "\$run = static function (\$c, string \$sql) { $body $failed };";
    }
}
