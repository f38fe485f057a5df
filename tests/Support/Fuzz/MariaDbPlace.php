<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Database\Statements;
use PDO;

/**
 * MariaDB, with tables of each of its engines.
 */
final class MariaDbPlace extends Place
{
    private const MAKES = [
        'SET GLOBAL innodb_lock_wait_timeout = 1', 'SET GLOBAL lock_wait_timeout = 1',
        'SET GLOBAL max_statement_time = 3',
        'CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, t TEXT, n INT)', "INSERT INTO log (t, n) VALUES ('a', 1)",
        'CREATE TABLE child (id INT, parent INT, FOREIGN KEY (parent) REFERENCES users (id)) ENGINE = InnoDB',
        'CREATE VIEW users_view AS SELECT id, email, name FROM users', 'CREATE SEQUENCE numbers',
        'CREATE DATABASE things', 'CREATE TABLE things.things (a INT)',
        "CREATE PROCEDURE runs(t TEXT) EXECUTE IMMEDIATE t", 'CREATE VIEW writing AS SELECT writes() AS n',
        'CREATE TRIGGER audit AFTER INSERT ON users FOR EACH ROW INSERT INTO log (t, n) VALUES (\'new\', NEW.id)',
        'CREATE USER other', 'CREATE ROLE clerk', 'GRANT clerk TO shop', 'FLUSH STATUS',
    ];

    /** Tables whose engine has no transactions, and what writes to them. */
    private const LASTING = [
        'CREATE TABLE isam (a INT) ENGINE = MyISAM', 'INSERT INTO isam VALUES (1)',
        'CREATE TABLE aria (a INT) ENGINE = Aria',
        'CREATE TABLE mem (a INT) ENGINE = MEMORY', 'CREATE TABLE csv (a INT NOT NULL) ENGINE = CSV',
        'CREATE TABLE merged (a INT) ENGINE = MERGE UNION = (isam) INSERT_METHOD = LAST',
        'CREATE TABLE parted (a INT) ENGINE = MyISAM PARTITION BY HASH (a) PARTITIONS 2',
        'CREATE VIEW isam_view AS SELECT a FROM isam', 'CREATE VIEW isam_view_view AS SELECT a FROM isam_view',
        'CREATE TABLE things.isam (a INT) ENGINE = MyISAM',
        'CREATE FUNCTION stays() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO isam VALUES (5); RETURN 1; END',
        'CREATE FUNCTION calls_stays() RETURNS INT RETURN stays()', 'CREATE VIEW staying AS SELECT stays() AS a',
        'CREATE PROCEDURE keeps() INSERT INTO isam VALUES (6)', 'CREATE PROCEDURE calls_keeps() CALL keeps()',
        'CREATE TRIGGER keep AFTER INSERT ON child FOR EACH ROW INSERT INTO isam VALUES (NEW.id)',
        'CREATE TABLE parent (id INT PRIMARY KEY)', 'INSERT INTO parent VALUES (1)',
        'CREATE TABLE kept (id INT, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE)',
        'CREATE TRIGGER kept AFTER DELETE ON kept FOR EACH ROW DELETE FROM isam',
        'CREATE VIEW mysql_view AS SELECT * FROM mysql.plugin',
    ];

    /** Tables whose names are no words: with them a session that is rolled back writes nothing at all. */
    private const ODD = [
        'CREATE TABLE `odd name` (a INT) ENGINE = MyISAM', 'CREATE TABLE `été` (a INT) ENGINE = MyISAM',
        'CREATE TABLE `1` (a INT) ENGINE = MyISAM',
    ];

    /** Variables that change by themselves, or with what others do. */
    private const OTHERS = [
        'GTID_BINLOG_POS', 'GTID_BINLOG_STATE', 'GTID_CURRENT_POS', 'GTID_SLAVE_POS', 'INNODB_BUFFER_POOL_DUMP_NOW',
        'INNODB_BUFFER_POOL_LOAD_NOW', 'INNODB_BUFFER_POOL_LOAD_ABORT', 'INNODB_LOG_CHECKPOINT_NOW',
    ];

    public function kind(): string
    {
        return 'mysql';
    }

    protected function shared(): SqlServer
    {
        return MariaDb::shared();
    }

    protected function make(): void
    {
        $administrator = $this->administrator('mysql');
        $administrator->exec('SET GLOBAL lock_wait_timeout = 5');
        // After what has been prepared nothing can be dropped.
        foreach ($administrator->query("XA RECOVER FORMAT = 'SQL'")->fetchAll(PDO::FETCH_NUM) as $prepared) {
            $administrator->exec("XA ROLLBACK $prepared[3]");
        }
        $administrator = null;
        $this->victim = null;
        $this->server->reset();
        $this->makeDirectories();
        $administrator = $this->administrator();
        array_map($administrator->exec(...), [
            ...Statements::IN_MARIADB, ...self::MAKES,
            ...($this->oddness > 0 ? self::LASTING : []), ...($this->oddness > 1 ? self::ODD : []),
        ]);
        $this->victim = $this->administrator();
    }

    protected function lasting(): array
    {
        $administrator = $this->administrator();

        return [
            'variables' => self::variables($administrator),
            'accounts' => self::rows($administrator, 'SELECT User, Host FROM mysql.global_priv ORDER BY 1, 2'),
            'databases' => self::rows($administrator, 'SHOW DATABASES'),
            'routines' => self::rows($administrator, "SELECT db, name FROM mysql.proc WHERE db <> 'shop' ORDER BY 1"),
        ] + array_diff_key(
            $this->ofTheServer($administrator),
            ['table mysql.global_priv' => 0, 'table mysql.proc' => 0],
        );
    }

    protected function seen(): array
    {
        $administrator = $this->administrator();
        $seen = $this->ofTheServer($administrator) + ['variables' => self::variables($administrator)];
        $tables = $administrator->query(
            'SELECT table_schema, table_name, table_type FROM information_schema.tables'
            . " WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
        )->fetchAll(PDO::FETCH_NUM);
        foreach ($tables as [$schema, $name, $type]) {
            $table = '`' . str_replace('`', '``', $schema) . '`.`' . str_replace('`', '``', $name) . '`';
            $made = self::rows($administrator, "SHOW CREATE TABLE $table");
            $seen["definition of $schema.$name"] = (string) preg_replace('~ AUTO_INCREMENT=\d+~', '', $made);
            if ($type !== 'VIEW') {
                $is = $type === 'SEQUENCE' ? 'sequence' : 'table';
                $seen["$is $schema.$name"] = self::rows($administrator, "SELECT * FROM $table");
            }
        }
        $seen['databases'] = self::rows($administrator, 'SELECT * FROM information_schema.schemata ORDER BY 2');
        $triggers = 'SELECT trigger_schema, trigger_name, action_statement, definer FROM information_schema.triggers';
        $seen['triggers'] = self::rows($administrator, "$triggers ORDER BY 1, 2");
        $seen['a session of another'] = self::isThere($this->victim);

        return $seen;
    }

    protected function sessions(): int
    {
        $ask = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'shop'";

        return (int) $this->administrator('mysql')->query($ask)->fetchColumn();
    }

    protected function victimId(): string
    {
        return (string) $this->victim?->query('SELECT CONNECTION_ID()')->fetchColumn();
    }

    protected function isOfTheServer(string $path): bool
    {
        $own = '~/(ib_|ibtmp|#|aria_log|.*\.(frm|ibd|MYI|MYD|MAI|MAD|CSM|CSV|MRG|par)$)|^(pid|mariadb)~';

        return preg_match($own, $path) === 1 && !str_starts_with($path, 'out/');
    }

    /**
     * What is the server's and not in a database of an application.
     *
     * @return array<string, string>
     */
    private function ofTheServer(PDO $administrator): array
    {
        $seen = [];
        $tables = $administrator->query(
            'SELECT table_name FROM information_schema.tables'
            . " WHERE table_schema = 'mysql' AND table_type = 'BASE TABLE'"
            . " AND table_name NOT IN ('innodb_index_stats', 'innodb_table_stats', 'general_log', 'slow_log')",
        )->fetchAll(PDO::FETCH_COLUMN);
        $list = implode(', ', array_map(static fn (string $name): string => "mysql.`$name`", $tables));
        foreach ($administrator->query("CHECKSUM TABLE $list")->fetchAll(PDO::FETCH_NUM) as [$name, $sum]) {
            $seen["table $name"] = (string) $sum;
        }
        $queries = [
            'prepared transactions' => 'XA RECOVER', 'replication' => 'SHOW ALL SLAVES STATUS',
            'plugins' => 'SELECT plugin_name, plugin_status FROM information_schema.all_plugins ORDER BY 1',
            'flushes' => "SHOW GLOBAL STATUS LIKE 'Flush_commands'",
            'start' => "SHOW GLOBAL STATUS LIKE 'Com_shutdown'",
        ];
        foreach ($queries as $name => $query) {
            $seen[$name] = self::rows($administrator, $query);
        }
        unset($seen['table mysql.gtid_slave_pos']);

        return $seen;
    }

    private static function variables(PDO $administrator): string
    {
        $others = "'" . implode("', '", self::OTHERS) . "'";

        return self::rows($administrator, 'SELECT variable_name, variable_value'
            . " FROM information_schema.global_variables WHERE variable_name NOT IN ($others) ORDER BY 1");
    }

    private function administrator(string $database = 'shop'): PDO
    {
        $administrator = $this->server->connect($database);
        $administrator->exec("SET max_statement_time = 20, lock_wait_timeout = 10, sql_mode = ''");

        return $administrator;
    }
}
