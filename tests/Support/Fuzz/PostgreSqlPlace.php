<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Database\Statements;
use PDO;
use RuntimeException;

/**
 * PostgreSQL, with extensions whose functions write past transactions.
 */
final class PostgreSqlPlace extends Place
{
    private const EXTENSIONS = [
        'adminpack', 'dblink', 'file_fdw', 'lo', 'pg_surgery', 'pg_visibility', 'postgres_fdw', 'tablefunc', 'xml2',
    ];

    private const MAKES = [
        'CREATE TABLE log (id serial PRIMARY KEY, t text, n int)', "INSERT INTO log (t, n) VALUES ('a', 1)",
        'CREATE TABLE child (id int, parent int REFERENCES users DEFERRABLE INITIALLY DEFERRED)',
        'INSERT INTO child VALUES (1, 1)', 'CREATE SEQUENCE numbers', 'CREATE TYPE mood AS ENUM (\'fine\')',
        'CREATE VIEW users_view AS SELECT id, email, name FROM users',
        'CREATE MATERIALIZED VIEW mv AS SELECT now() AS t',
        'CREATE SCHEMA things', 'CREATE TABLE things.things (a int)', 'CREATE INDEX brin ON log USING brin (n)',
        "CREATE INDEX gin ON log USING gin (to_tsvector('simple', t))",
        'CREATE FUNCTION lifts_and_writes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN'
            . " PERFORM set_config('transaction_read_only', 'off', false); RETURN writes(); END $$",
        'CREATE PROCEDURE runs(t text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE t; END $$',
        'CREATE FUNCTION executes(t text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE t; RETURN 1; END $$',
        'CREATE FUNCTION touches() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM child; RETURN NULL; END $$',
        'CREATE FUNCTION fires() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM child; END $$',
        'CREATE SERVER files FOREIGN DATA WRAPPER file_fdw', "SELECT lo_from_bytea(4242, 'large')",
        'GRANT pg_read_all_data TO shop', 'CREATE ROLE other', 'GRANT ALL ON log TO other', 'ANALYZE',
    ];

    /** What is in a table of the catalogue and of statistics: it is written in place. */
    private const IN_PLACE = [
        'pg_class' => [
            'relpages', 'reltuples', 'relallvisible', 'relfrozenxid', 'relminmxid', 'relhasindex', 'relhastriggers',
            'relhasrules', 'relhassubclass',
        ],
        'pg_database' => ['datfrozenxid', 'datminmxid'],
        'pg_index' => ['indcheckxmin'],
    ];

    private const STATISTICS = ['pg_statistic', 'pg_statistic_ext_data'];

    public function kind(): string
    {
        return 'pgsql';
    }

    protected function shared(): SqlServer
    {
        return PostgreSql::shared();
    }

    protected function make(): void
    {
        $this->victim = null;
        $before = (string) $this->server->connect('postgres')->query('SELECT now()')->fetchColumn();
        $this->server->reset();
        $this->makeDirectories();
        $administrator = $this->server->connect();
        foreach (self::EXTENSIONS as $extension) {
            $administrator->exec("CREATE EXTENSION $extension");
        }
        $port = $this->server->port();
        $lines = $this->toPlay('')['words']['FILE_IN'];
        // The server is named in the database, so that no text that is changed names another.
        $makes = [
            ...Statements::IN_POSTGRESQL, ...self::MAKES,
            "CREATE SERVER me FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '127.0.0.1', port '$port', dbname 'shop')",
            'CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw'
                . " OPTIONS (host '127.0.0.1', port '$port', dbname 'shop')",
            "CREATE FOREIGN TABLE remote (id int, t text, n int) SERVER own OPTIONS (table_name 'log')",
            "CREATE FOREIGN TABLE lines (a text) SERVER files OPTIONS (filename '$lines')",
        ];
        foreach (['me', 'own'] as $name) {
            $makes[] = "CREATE USER MAPPING FOR shop SERVER $name"
                . " OPTIONS (user 'shop', password '{$this->server->password()}')";
        }
        $settings = ['lock_timeout' => '100ms', 'statement_timeout' => '3s', 'deadlock_timeout' => '50ms'];
        foreach ($settings as $name => $value) {
            $makes[] = "ALTER ROLE shop SET $name = '$value'";
        }
        array_map($administrator->exec(...), $makes);
        $this->victim = $this->server->connect();
        $this->victim->exec('LISTEN x');
        // What a reset has had the server read again.
        for ($tries = 500; $tries > 0; $tries--) {
            $is = "SELECT pg_conf_load_time() > '$before'";
            if ($this->server->connect('postgres')->query($is)->fetchColumn()) {
                return;
            }
            usleep(2000);
        }

        throw new RuntimeException('The server does not read its settings.');
    }

    protected function lasting(): array
    {
        $administrator = $this->server->connect('postgres');
        $queries = [
            'roles' => 'SELECT rolname, rolsuper, rolcanlogin FROM pg_roles ORDER BY 1',
            'databases' => 'SELECT datname, datacl, datistemplate, datallowconn FROM pg_database ORDER BY 1',
            'tablespaces' => 'SELECT spcname FROM pg_tablespace',
            'settings of roles' => 'SELECT setconfig FROM pg_db_role_setting WHERE setrole = 0',
            'rights' => 'SELECT * FROM pg_parameter_acl', 'origins' => 'SELECT * FROM pg_replication_origin',
            'tables' => "SELECT relname FROM pg_class WHERE oid >= 16384 AND relkind = 'r' ORDER BY 1",
            'functions' => 'SELECT count(*), sum(hashtext(proname)::bigint) FROM pg_proc',
        ];

        return array_map(static fn (string $query): string => self::rows($administrator, $query), $queries);
    }

    protected function seen(): array
    {
        // It must not come between what others may have committed since.
        usleep(1000);
        $administrator = $this->server->connect();
        $administrator->exec("SET statement_timeout = '20s'");
        $tables = $administrator->query("SELECT c.oid::regclass::text, c.relname, n.nspname, c.relkind FROM pg_class c"
            . " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm', 'S', 'p')"
            . " AND n.nspname NOT LIKE 'pg\\_t%' AND n.nspname <> 'information_schema'")->fetchAll(PDO::FETCH_NUM);
        $parts = [];
        foreach ($tables as [$name, $bare, $schema, $kind]) {
            $row = isset(self::IN_PLACE[$bare]) && $schema === 'pg_catalog'
                ? "(to_jsonb(t) - ARRAY['" . implode("', '", self::IN_PLACE[$bare]) . "'])::text" : 't::text';
            $is = match (true) {
                $kind === 'S' => 'sequence',
                in_array($bare, self::STATISTICS, true) => 'statistics',
                default => 'table',
            };
            $what = $administrator->quote("$is $schema.$bare");
            $parts[] = $kind === 'S' ? "SELECT $what, last_value || ' ' || is_called FROM $name"
                : "SELECT $what, count(*) || ' ' || coalesce(sum(hashtextextended($row, 0)), 0) FROM $name t";
        }
        $parts[] = "SELECT 'statistics of pg_class', count(*) || ' ' || sum(hashtextextended(concat(relname, relpages,"
            . " reltuples, relhasindex, relhastriggers, relhasrules), 0)) FROM pg_class";
        $seen = $administrator->query(implode(' UNION ALL ', $parts))->fetchAll(PDO::FETCH_KEY_PAIR);
        $queries = [
            'prepared transactions' => 'SELECT gid FROM pg_prepared_xacts',
            'settings read at' => 'SELECT pg_conf_load_time(), pg_postmaster_start_time()',
            'settings' => "SELECT name, setting FROM pg_settings WHERE source NOT IN ('session', 'client', 'override')"
                . ' ORDER BY 1',
            'slots' => 'SELECT slot_name FROM pg_replication_slots',
            'resets of statistics' => 'SELECT datname, stats_reset FROM pg_stat_database UNION ALL'
                . " SELECT 'bgwriter', stats_reset FROM pg_stat_bgwriter UNION ALL SELECT name, stats_reset"
                . ' FROM pg_stat_slru UNION ALL SELECT \'wal\', stats_reset FROM pg_stat_wal ORDER BY 1, 2',
            'log' => 'SELECT pg_walfile_name(pg_current_wal_lsn()) <> \'\'',
        ];
        foreach ($queries as $name => $query) {
            $seen[$name] = self::rows($administrator, $query);
        }
        $seen['a session of another'] = self::isThere($this->victim);
        $isThere = $seen['a session of another'] === 'is there';
        $seen['what others are told'] = $isThere && $this->victim->pgsqlGetNotify() ? 'something' : 'nothing';

        return $seen;
    }

    protected function sessions(): int
    {
        $ask = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'";

        return (int) $this->server->connect('postgres')->query($ask)->fetchColumn();
    }

    protected function victimId(): string
    {
        return (string) $this->victim?->pgsqlGetPid();
    }

    protected function isOfTheServer(string $path): bool
    {
        $own = '~^data/(base|global|pg_wal|pg_xact|pg_subtrans|pg_multixact|pg_stat|pg_dynshmem|pg_notify|pg_commit_ts|'
            . 'pg_serial|pg_snapshots|pg_logical|pg_stat_tmp)/|^\.s\.|^password|/(core|postmaster)~';

        return preg_match($own, $path) === 1;
    }
}
