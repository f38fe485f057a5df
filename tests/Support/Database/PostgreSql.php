<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use PDO;

/**
 * PostgreSQL. The application is a superuser, which may write files and run programs on the server (`COPY … TO`):
 * nothing but the guards is to stand before an attack.
 */
final class PostgreSql extends SqlServer
{
    /** What makes it small and quick; nothing of it has to outlive a crash. */
    private const LEAN = [
        'autovacuum=off',
        'dynamic_shared_memory_type=mmap',
        'fsync=off',
        'full_page_writes=off',
        'max_connections=20',
        'max_wal_senders=0',
        'shared_buffers=8MB',
        'synchronous_commit=off',
        'wal_level=minimal',
    ];

    /** The directory of its socket, which is what libpq is told. */
    public function socketDirectory(): string
    {
        return $this->process->path();
    }

    public function socket(): string
    {
        return $this->process->path(".s.PGSQL.{$this->port()}");
    }

    public function dsn(bool $socket = false, string $database = self::SHOP): string
    {
        $host = $socket ? $this->socketDirectory() : '127.0.0.1';

        return "pgsql:host=$host;port={$this->port()};dbname=$database";
    }

    protected static function extensions(): array
    {
        return ['pdo_pgsql', 'pgsql'];
    }

    protected static function programs(): array
    {
        return ['initdb', 'postgres'];
    }

    protected static function users(): array
    {
        return ['postgres'];
    }

    protected static function system(): string
    {
        return 'postgres';
    }

    protected function commands(): array
    {
        $data = $this->process->path('data');
        $password = $this->process->write('password', $this->passwordOf(self::ADMINISTRATOR));
        $options = [
            ...self::LEAN,
            'listen_addresses=127.0.0.1',
            "port={$this->port()}",
            "unix_socket_directories={$this->socketDirectory()}",
        ];
        $initdb = (string) self::find('initdb');

        return [
            [
                $initdb, '--pgdata', $data, '--no-sync', '--no-instructions', '--wal-segsize=1',
                '--auth=scram-sha-256', '--username=' . self::ADMINISTRATOR, "--pwfile=$password",
                '--encoding=UTF8', '--no-locale',
            ],
            [
                dirname((string) realpath($initdb)) . '/postgres', '-D', $data,
                ...array_map(static fn (string $option): string => "--$option", $options),
            ],
        ];
    }

    /** After KILL its children would go on with what they do, and the kernel would keep its shared memory. */
    protected function signal(): string
    {
        return 'QUIT';
    }

    protected function clear(PDO $administrator): void
    {
        $drop = $administrator->query(
            "SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database"
            . " WHERE datname NOT IN ('postgres', 'template0', 'template1')"
            . " UNION ALL SELECT format('DROP OWNED BY %1\$I CASCADE; DROP ROLE %1\$I', rolname) FROM pg_roles"
            . " WHERE rolname <> current_user AND rolname NOT LIKE 'pg\\_%'",
        );
        array_map($administrator->exec(...), $drop->fetchAll(PDO::FETCH_COLUMN));
        $administrator->exec('ALTER SYSTEM RESET ALL');
        $administrator->exec('SELECT pg_reload_conf()');
    }

    protected function makeShop(PDO $administrator): void
    {
        $administrator->exec('CREATE ROLE ' . self::SHOP . " SUPERUSER LOGIN PASSWORD '{$this->password()}'");
        // From PostgreSQL 15 on there is a way that is slower, for a database as small as this.
        $copied = version_compare($administrator->getAttribute(PDO::ATTR_SERVER_VERSION), '15', '<') ? ''
            : ' STRATEGY file_copy';
        $administrator->exec('CREATE DATABASE ' . self::SHOP . ' OWNER ' . self::SHOP . $copied);
    }
}
