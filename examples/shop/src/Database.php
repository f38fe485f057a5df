<?php

declare(strict_types=1);

namespace Shop;

use InvalidArgumentException;
use PDO;

/**
 * Opens the shop's database.
 */
final class Database
{
    private const CUSTOMERS = [
        'Ada', 'Barbara', 'Claude', 'Donald', 'Edsger', 'Frances', 'Grace', 'Hedy', 'Ida', 'Joan',
        'Katherine', 'Leslie', 'Margaret', 'Niklaus', 'Ole', 'Peter', 'Radia', 'Sophie', 'Tony', 'Ursula',
    ];

    private const SCHEMA = [
        'CREATE TABLE users (id INTEGER PRIMARY KEY, email VARCHAR(100) NOT NULL UNIQUE, name VARCHAR(100) NOT NULL,'
            . ' registered_at VARCHAR(25) NOT NULL)',
        'CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, status VARCHAR(20) NOT NULL,'
            . ' total INTEGER NOT NULL, FOREIGN KEY (user_id) REFERENCES users (id))',
    ];

    /**
     * The database at a URL such as `mysql://shop:password@127.0.0.1:3306/shop`, or a freshly filled one in memory.
     */
    public static function open(?string $url = null): PDO
    {
        [$dsn, $user, $password] = $url === null ? ['sqlite::memory:', null, null] : self::parse($url);
        $database = new PDO($dsn, $user, $password, [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ]);
        if ($url === null) {
            self::fill($database);
        }

        return $database;
    }

    /**
     * Makes the tables. Twenty customers; every second one has an order.
     */
    public static function fill(PDO $database): void
    {
        array_map($database->exec(...), self::SCHEMA);
        $database->beginTransaction();
        $addUser = $database->prepare('INSERT INTO users VALUES (?, ?, ?, ?)');
        $addOrder = $database->prepare('INSERT INTO orders VALUES (?, ?, ?, ?)');
        $statuses = OrderStatus::cases();
        foreach (self::CUSTOMERS as $index => $name) {
            $id = $index + 1;
            $day = sprintf('2026-01-%02dT09:30:00+00:00', $id);
            $addUser->execute([$id, strtolower($name) . '@shop.example', $name, $day]);
            if ($id % 2 === 0) {
                $order = intdiv($id, 2);
                $status = $statuses[($order - 1) % count($statuses)];
                $addOrder->execute([$order, $id, $status->value, $order * 1250]);
            }
        }
        $database->commit();
    }

    /**
     * @return array{string, ?string, ?string} DSN, user, password
     */
    private static function parse(string $url): array
    {
        $parts = parse_url($url) ?: throw new InvalidArgumentException('The URL of the database cannot be read.');
        parse_str($parts['query'] ?? '', $options);
        $dsn = match ($parts['scheme'] ?? '') {
            'mysql', 'mariadb' => 'mysql:charset=utf8mb4;',
            'pgsql', 'postgresql' => 'pgsql:',
            default => throw new InvalidArgumentException('The shop knows databases of MySQL, MariaDB and PostgreSQL.'),
        };
        $dsn .= isset($options['unix_socket'])
            ? "unix_socket=$options[unix_socket]"
            : 'host=' . ($parts['host'] ?? 'localhost') . (isset($parts['port']) ? ";port=$parts[port]" : '');
        $decode = static fn (string $name): ?string => isset($parts[$name]) ? rawurldecode($parts[$name]) : null;

        return [$dsn . ';dbname=' . ltrim($parts['path'] ?? '', '/'), $decode('user'), $decode('pass')];
    }
}
