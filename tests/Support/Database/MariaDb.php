<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use PDO;

/**
 * MariaDB. The application may write files on the server and have its own read (`INTO OUTFILE`, `LOAD DATA LOCAL`):
 * nothing but the guards is to stand before an attack.
 */
final class MariaDb extends SqlServer
{
    /** What makes it small and quick to start; nothing of it has to outlive a crash. */
    private const LEAN = [
        '--innodb-buffer-pool-size=8M',
        '--innodb-doublewrite=0',
        '--innodb-fast-shutdown=2',
        '--innodb-flush-log-at-trx-commit=0',
        '--innodb-log-file-size=4M',
        '--innodb-use-native-aio=0',
        '--aria-pagecache-buffer-size=1M',
        '--key-buffer-size=1M',
        '--max-connections=50',
        '--performance-schema=0',
        '--skip-log-bin',
        '--skip-name-resolve',
    ];

    public function socket(): string
    {
        return $this->process->path('mariadb.sock');
    }

    public function dsn(bool $socket = false, string $database = self::SHOP): string
    {
        $where = $socket ? "unix_socket={$this->socket()}" : "host=127.0.0.1;port={$this->port()}";

        return "mysql:$where;dbname=$database;charset=utf8mb4";
    }

    protected static function extensions(): array
    {
        return ['pdo_mysql', 'mysqli'];
    }

    protected static function programs(): array
    {
        return ['mariadbd', 'mariadb-install-db'];
    }

    protected static function users(): array
    {
        return ['mysql'];
    }

    protected static function system(): string
    {
        return 'mysql';
    }

    protected function commands(): array
    {
        $data = "--datadir={$this->process->path('data')}";
        $sql = ['FLUSH PRIVILEGES', ...$this->account(self::ADMINISTRATOR)];
        // A statement a line is what it takes before it is up.
        $accounts = $this->process->write('accounts.sql', implode(";\n", $sql) . ";\n");

        return [
            [
                (string) self::find('mariadb-install-db'), '--no-defaults', $data, ...self::LEAN,
                '--skip-test-db', '--auth-root-authentication-method=normal', "--extra-file=$accounts",
            ],
            [
                (string) self::find('mariadbd'), '--no-defaults', $data, ...self::LEAN,
                '--bind-address=127.0.0.1', "--port={$this->port()}", "--socket={$this->socket()}",
                "--pid-file={$this->process->path('pid')}", '--local-infile=1', '--secure-file-priv=',
            ],
        ];
    }

    protected function clear(PDO $administrator): void
    {
        // What a run has left connected may hold a lock.
        $administrator->exec('SET lock_wait_timeout = 10');
        $administrator->exec('KILL USER ' . self::SHOP);
        $drop = $administrator->query(
            "SELECT CONCAT('DROP DATABASE `', schema_name, '`') FROM information_schema.schemata"
            . " WHERE schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
            . " UNION ALL SELECT IF(is_role = 'Y', CONCAT('DROP ROLE ', QUOTE(user)),"
            . " CONCAT('DROP USER ', QUOTE(user), '@', QUOTE(host))) FROM mysql.user"
            . " WHERE user NOT IN ('mariadb.sys', '" . self::ADMINISTRATOR . "')",
        );
        array_map($administrator->exec(...), $drop->fetchAll(PDO::FETCH_COLUMN));
    }

    protected function makeShop(PDO $administrator): void
    {
        $administrator->exec('CREATE DATABASE ' . self::SHOP . ' CHARACTER SET utf8mb4');
        array_map($administrator->exec(...), $this->account(self::SHOP));
    }

    /**
     * @return list<string> the statements that make an account
     */
    private function account(string $name): array
    {
        return [
            "CREATE USER $name@'%' IDENTIFIED BY '{$this->passwordOf($name)}'",
            "GRANT ALL ON *.* TO $name@'%' WITH GRANT OPTION",
        ];
    }
}
