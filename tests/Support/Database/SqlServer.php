<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use PDO;

/**
 * A server with the database `shop`, which is the application's, and an administrator, as whom tests look at what
 * really is in it.
 */
abstract class SqlServer extends Server
{
    /** What is in the application's table `users` at the start of every test. */
    public const ROWS = [[1, 'ada@shop.example', 'Ada'], [2, 'grace@shop.example', 'Grace']];

    protected const ADMINISTRATOR = 'administrator';

    /** The application's account and its database. */
    protected const SHOP = 'shop';

    /** @var array<string, string> by account */
    private array $passwords = [];

    final public function user(): string
    {
        return self::SHOP;
    }

    final public function password(): string
    {
        return $this->passwordOf(self::SHOP);
    }

    /** Where PDO finds a database of it: by TCP, or by the Unix socket. */
    abstract public function dsn(bool $socket = false, string $database = self::SHOP): string;

    /** Connects as the administrator, from the test itself. */
    final public function connect(string $database = self::SHOP): PDO
    {
        return new PDO($this->dsn(true, $database), self::ADMINISTRATOR, $this->passwordOf(self::ADMINISTRATOR));
    }

    /** Connects as the application does. */
    final public function connectAsApplication(bool $socket = false): PDO
    {
        return new PDO($this->dsn($socket), $this->user(), $this->password());
    }

    /**
     * @return list<array{int, string, string}> what really is in the table `users`
     */
    final public function rows(): array
    {
        return $this->connect()->query('SELECT id, email, name FROM users ORDER BY id')->fetchAll(PDO::FETCH_NUM);
    }

    final public function reset(): void
    {
        $administrator = $this->connect(static::system());
        $this->clear($administrator);
        $this->makeShop($administrator);
        $shop = $this->connectAsApplication();
        $shop->exec('CREATE TABLE users (id INT PRIMARY KEY, email VARCHAR(100) UNIQUE NOT NULL,'
            . ' name VARCHAR(100) NOT NULL)');
        $insert = $shop->prepare('INSERT INTO users VALUES (?, ?, ?)');
        foreach (self::ROWS as $row) {
            $insert->execute($row);
        }
    }

    /** The database that every server has. */
    abstract protected static function system(): string;

    /** Removes databases and accounts that are not the server's own. */
    abstract protected function clear(PDO $administrator): void;

    /** Makes the application's account and its database. */
    abstract protected function makeShop(PDO $administrator): void;

    final protected function greet(): void
    {
        $this->connect(static::system());
        $administrator = $this->passwordOf(self::ADMINISTRATOR);
        new PDO($this->dsn(false, static::system()), self::ADMINISTRATOR, $administrator);
    }

    final protected function passwordOf(string $account): string
    {
        return $this->passwords[$account] ??= bin2hex(random_bytes(12));
    }
}
