<?php

declare(strict_types=1);

namespace Shop;

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

    private const SCHEMA = <<<'SQL'
        CREATE TABLE users (
            id INTEGER PRIMARY KEY,
            email TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            registered_at TEXT NOT NULL
        );
        CREATE TABLE orders (
            id INTEGER PRIMARY KEY,
            user_id INTEGER NOT NULL REFERENCES users (id),
            status TEXT NOT NULL,
            total INTEGER NOT NULL
        );
        SQL;

    /**
     * The database at a DSN, or a freshly filled one in memory.
     */
    public static function open(?string $dsn = null): PDO
    {
        $database = new PDO($dsn ?? 'sqlite::memory:', options: [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ]);
        if ($dsn === null) {
            self::fill($database);
        }

        return $database;
    }

    /**
     * Twenty customers; every second one has an order.
     */
    private static function fill(PDO $database): void
    {
        $database->exec(self::SCHEMA);
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
}
