<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use Doctrine\DBAL\ArrayParameterType;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\ParameterType;
use Doctrine\DBAL\Platforms\AbstractMySQLPlatform;
use Doctrine\DBAL\Query\QueryBuilder;
use Doctrine\DBAL\Schema\AbstractSchemaManager;
use Doctrine\DBAL\TransactionIsolationLevel;

/**
 * How an application on Doctrine reads: by its connection, its query builder, and what it finds out of a schema.
 */
final class DoctrineReaders
{
    private function __construct()
    {
    }

    /**
     * @return iterable<string, Closure>
     */
    public static function each(Connection $db): iterable
    {
        yield from self::ofConnection($db);
        yield from self::ofBuilder($db->createQueryBuilder(...));
        yield from self::ofSchema($db, $db->createSchemaManager());
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofConnection(Connection $db): iterable
    {
        $users = 'SELECT id, name FROM users ORDER BY id';
        yield 'fetchAssociative()' => fn () => $db->fetchAssociative($users);
        yield 'fetchNumeric()' => fn () => $db->fetchNumeric('SELECT * FROM users WHERE id = ?', [2]);
        yield 'fetchOne()' => fn () => $db->fetchOne('SELECT name FROM users WHERE id = :id', ['id' => 1]);
        yield 'fetchAllAssociative()' => fn () => $db->fetchAllAssociative($users);
        yield 'fetchAllKeyValue()' => fn () => $db->fetchAllKeyValue($users);
        yield 'fetchAllAssociativeIndexed()' => fn () => $db->fetchAllAssociativeIndexed($users);
        yield 'fetchFirstColumn()' => fn () => $db->fetchFirstColumn($users);
        yield 'iterateAssociative()' => fn () => iterator_to_array($db->iterateAssociative($users));
        yield 'iterateKeyValue()' => fn () => iterator_to_array($db->iterateKeyValue($users));
        yield 'a list of values' => fn () => $db->executeQuery(
            'SELECT id FROM posts WHERE id IN (?) AND status IN (?) ORDER BY id',
            [[1, 2, 3], ['published', "it's; --"]],
            [ArrayParameterType::INTEGER, ArrayParameterType::STRING],
        )->fetchFirstColumn();
        yield 'names' => fn () => $db->executeQuery(
            'SELECT id FROM posts WHERE id > :id AND (title LIKE :t OR body LIKE :t) ORDER BY id',
            ['id' => 0, 't' => '%INTO OUTFILE%'],
            ['id' => ParameterType::INTEGER],
        )->fetchAllNumeric();
        yield 'prepare()' => static function () use ($db): array {
            $statement = $db->prepare('SELECT name FROM users WHERE id = ?');
            $statement->bindValue(1, 1, ParameterType::INTEGER);
            $first = $statement->executeQuery()->fetchOne();
            $statement->bindValue(1, 2, ParameterType::INTEGER);

            return [$first, $statement->executeQuery()->fetchOne()];
        };
        yield 'quote()' => fn () => $db->fetchOne('SELECT ' . $db->quote("it's; \\ -- lo_import(1) INTO OUTFILE"));
        $platform = $db->getDatabasePlatform();
        $zone = $platform instanceof AbstractMySQLPlatform ? "SET time_zone = '+00:00'" : "SET TIME ZONE 'UTC'";
        yield 'executeStatement()' => fn () => $db->executeStatement($zone);
        yield 'transactional()' => fn () => $db->transactional(
            static fn (Connection $db): array => [$db->getTransactionNestingLevel(), $db->fetchFirstColumn($users)],
        );
        yield 'nested transactions' => static function () use ($db): array {
            $db->setNestTransactionsWithSavepoints(true);
            $db->beginTransaction();
            $db->beginTransaction();
            $names = $db->fetchFirstColumn('SELECT name FROM users ORDER BY id');
            $db->rollBack();
            $db->createSavepoint('x');
            $db->releaseSavepoint('x');
            $db->commit();

            return $names;
        };
        yield 'setTransactionIsolation()' => fn () => [
            $db->setTransactionIsolation(TransactionIsolationLevel::SERIALIZABLE),
            $db->setTransactionIsolation(TransactionIsolationLevel::READ_COMMITTED),
            $db->getTransactionIsolation(),
        ];
        yield 'setAutoCommit()' => static function () use ($db): array {
            $db->setAutoCommit(false);
            $name = $db->fetchOne('SELECT name FROM users WHERE id = 1');
            $db->setAutoCommit(true);

            return [$name, $db->isTransactionActive()];
        };
        yield 'getDatabase()' => fn () => $db->getDatabase();
    }

    /**
     * @param Closure(): QueryBuilder $new
     * @return iterable<string, Closure>
     */
    private static function ofBuilder(Closure $new): iterable
    {
        $posts = static fn (): QueryBuilder => $new()->select('p.id', 'p.title')->from('posts', 'p')->orderBy('p.id');
        yield 'select()' => fn () => $posts()->fetchAllAssociative();
        yield 'where()' => fn () => $posts()->where('p.status = :s')->andWhere('p.views > :v')
            ->setParameter('s', 'published')->setParameter('v', 5, ParameterType::INTEGER)->fetchAllNumeric();
        yield 'orWhere()' => fn () => $posts()->where('p.id = ?')->orWhere('p.title LIKE ?')
            ->setParameters([2, '%東京%'])->fetchAllNumeric();
        yield 'expr()' => fn () => $posts()->where($new()->expr()->and(
            $new()->expr()->in('p.id', [1, 2, 3]),
            $new()->expr()->or($new()->expr()->isNull('p.price'), $new()->expr()->gte('p.views', 10)),
            $new()->expr()->notLike('p.title', "'%x%'"),
        ))->fetchFirstColumn();
        yield 'createNamedParameter()' => static function () use ($posts): array {
            $query = $posts();

            return $query->where('p.status = ' . $query->createNamedParameter('draft'))->andWhere(
                'p.id IN (' . $query->createNamedParameter([1, 2], ArrayParameterType::INTEGER) . ')',
            )->fetchAllKeyValue();
        };
        yield 'join()' => fn () => $posts()->addSelect('u.name')->innerJoin('p', 'users', 'u', 'u.id = p.user_id')
            ->leftJoin('p', 'comments', 'c', 'c.post_id = p.id')->addOrderBy('c.id')->fetchAllAssociative();
        yield 'groupBy()' => fn () => $new()->select('user_id', 'COUNT(*) AS n')->from('orders')->groupBy('user_id')
            ->having('COUNT(*) > :n')->setParameter('n', 1)->orderBy('user_id')->fetchAllAssociative();
        yield 'setMaxResults()' => fn () => $posts()->setFirstResult(1)->setMaxResults(1)->fetchAssociative();
        yield 'distinct()' => fn () => $new()->select('status')->distinct()->from('posts')->orderBy('status')
            ->fetchFirstColumn();
        yield 'a query in a query' => fn () => $posts()->where('p.user_id IN ('
            . $new()->select('u.id')->from('users', 'u')->where('u.name = :name')->getSQL() . ')')
            ->setParameter('name', 'Ada')->fetchOne();
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofSchema(Connection $db, AbstractSchemaManager $schema): iterable
    {
        $sorted = static function (array $list): array {
            sort($list);

            return $list;
        };
        yield 'listDatabases()' => fn () => $sorted($schema->listDatabases());
        yield 'listTableNames()' => fn () => $sorted($schema->listTableNames());
        yield 'tablesExist()' => fn () => [$schema->tablesExist(['users']), $schema->tablesExist(['nothing'])];
        yield 'listTableColumns()' => fn () => array_map(
            static fn ($column): array => [$column->getType()->getName(), $column->getLength(), $column->getNotnull()],
            $schema->listTableColumns('posts'),
        );
        // The server gives them in any order.
        yield 'listTableIndexes()' => fn () => $sorted(array_map(
            fn ($index): array => [$index->getName(), $index->getColumns(), $index->isUnique(), $index->isPrimary()],
            $schema->listTableIndexes('posts'),
        ));
        yield 'listTableForeignKeys()' => fn () => array_map(
            static fn ($key): array => [$key->getLocalColumns(), $key->getForeignTableName(), $key->onDelete()],
            $schema->listTableForeignKeys('posts'),
        );
        yield 'listViews()' => fn () => array_map(fn ($view): string => $view->getSql(), $schema->listViews());
        yield 'introspectTable()' => fn () => $db->getDatabasePlatform()
            ->getCreateTableSQL($schema->introspectTable('orders'));
        if (!$db->getDatabasePlatform() instanceof AbstractMySQLPlatform) {
            yield 'listSchemaNames()' => fn () => $sorted($schema->listSchemaNames());
            yield 'listSequences()' => fn () => array_map(
                static fn ($sequence): array => [$sequence->getName(), $sequence->getInitialValue()],
                $schema->listSequences(),
            );
        }
        yield 'createComparator()' => fn () => $schema->createComparator()->compareTables(
            $schema->introspectTable('orders'),
            $schema->introspectTable('orders'),
        )->isEmpty();
    }
}
