<?php

declare(strict_types=1);

namespace Shop;

use PDO;
use UnexpectedValueException;

/**
 * The orders.
 */
final class OrderRepository
{
    public function __construct(private readonly PDO $database, private readonly UserRepository $users)
    {
    }

    public function find(int $id): ?Order
    {
        return $this->select('SELECT * FROM orders WHERE id = ?', $id)[0] ?? null;
    }

    /**
     * @return list<Order> by id
     */
    public function ofCustomer(User $customer): array
    {
        return $this->select('SELECT * FROM orders WHERE user_id = ? ORDER BY id', $customer->id);
    }

    /**
     * @return list<Order> by id
     */
    public function withStatus(OrderStatus $status): array
    {
        return $this->select('SELECT * FROM orders WHERE status = ? ORDER BY id', $status->value);
    }

    /**
     * @return list<Order>
     */
    private function select(string $query, int|string $key): array
    {
        $statement = $this->database->prepare($query);
        $statement->execute([$key]);

        return array_map($this->hydrate(...), $statement->fetchAll());
    }

    /**
     * @param array<string, mixed> $row
     */
    private function hydrate(array $row): Order
    {
        $customer = $this->users->find($row['user_id'])
            ?? throw new UnexpectedValueException(sprintf('Order %d has no customer.', $row['id']));

        return new Order($row['id'], $customer, OrderStatus::from($row['status']), $row['total']);
    }
}
