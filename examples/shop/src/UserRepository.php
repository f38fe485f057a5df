<?php

declare(strict_types=1);

namespace Shop;

use DateTimeImmutable;
use PDO;

/**
 * The customers.
 */
final class UserRepository
{
    public function __construct(private readonly PDO $database)
    {
    }

    public function find(int $id): ?User
    {
        return $this->one('SELECT * FROM users WHERE id = ?', $id);
    }

    /**
     * An address is compared without regard to case.
     */
    public function findByEmail(string $email): ?User
    {
        return $this->one('SELECT * FROM users WHERE email = ?', strtolower($email));
    }

    public function count(): int
    {
        return (int) $this->database->query('SELECT COUNT(*) FROM users')->fetchColumn();
    }

    /**
     * @return list<User> by id
     */
    public function all(): array
    {
        return array_map($this->hydrate(...), $this->database->query('SELECT * FROM users ORDER BY id')->fetchAll());
    }

    private function one(string $query, int|string $key): ?User
    {
        $statement = $this->database->prepare($query);
        $statement->execute([$key]);
        $row = $statement->fetch();

        return $row === false ? null : $this->hydrate($row);
    }

    /**
     * @param array<string, mixed> $row
     */
    private function hydrate(array $row): User
    {
        return new User($row['id'], $row['email'], $row['name'], new DateTimeImmutable($row['registered_at']));
    }
}
