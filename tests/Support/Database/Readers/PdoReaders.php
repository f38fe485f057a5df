<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use PDO;
use Symfony\Component\Cache\Adapter\PdoAdapter;
use Symfony\Component\HttpFoundation\Session\Storage\Handler\PdoSessionHandler;

/**
 * How an application reads by PDO's methods, and how Symfony's services do that stand on it.
 */
final class PdoReaders
{
    private function __construct()
    {
    }

    /**
     * @return iterable<string, Closure>
     */
    public static function each(PDO $c): iterable
    {
        yield from self::ofConnection($c);
        yield from self::ofStatements($c);
        yield from self::ofSymfony($c);
        if ($c->getAttribute(PDO::ATTR_DRIVER_NAME) === 'pgsql') {
            yield from self::ofPostgreSql($c);
        }
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofConnection(PDO $c): iterable
    {
        $isMySql = $c->getAttribute(PDO::ATTR_DRIVER_NAME) === 'mysql';
        $users = 'SELECT id, name FROM users ORDER BY id';
        yield 'query()' => fn () => $c->query($users, PDO::FETCH_KEY_PAIR)->fetchAll();
        yield 'exec() of a setting' => fn () => $c->exec($isMySql ? 'SET @a = 1' : 'SET search_path TO public');
        yield 'a level of isolation' => static function () use ($c, $isMySql): array {
            // MySQL is told of the next transaction, PostgreSQL of the one that it is in.
            $isMySql && $c->exec('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
            $c->beginTransaction();
            $isMySql || $c->exec('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
            $count = $c->query('SELECT COUNT(*) FROM users')->fetchColumn();

            return [$count, $c->inTransaction(), $c->rollBack(), $c->inTransaction()];
        };
        yield 'beginTransaction()' => static function () use ($c): array {
            $c->beginTransaction();
            $c->exec('SAVEPOINT trans2');
            $name = $c->query('SELECT name FROM users WHERE id = 2')->fetchColumn();
            $c->exec('ROLLBACK TO SAVEPOINT trans2');

            return [$name, $c->commit()];
        };
        yield 'quote()' => fn () => $c->query('SELECT ' . $c->quote("it's \\ ; -- lo_import(1) INTO OUTFILE 'x'"))
            ->fetchAll();
        yield 'attributes' => fn () => [
            $c->getAttribute(PDO::ATTR_SERVER_VERSION), $c->getAttribute(PDO::ATTR_CLIENT_VERSION) !== '',
            $c->getAttribute(PDO::ATTR_CONNECTION_STATUS) !== '', $c->getAttribute(PDO::ATTR_SERVER_INFO) !== '',
        ];
        if ($isMySql) {
            yield 'autocommit' => fn () => [
                $c->setAttribute(PDO::ATTR_AUTOCOMMIT, false), $c->query('SELECT id FROM users')->fetchAll(),
                $c->commit(),
                $c->setAttribute(PDO::ATTR_AUTOCOMMIT, true),
            ];
        }
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofStatements(PDO $c): iterable
    {
        yield 'names' => static function () use ($c): array {
            $statement = $c->prepare('SELECT * FROM posts WHERE id = :id OR (status = :status AND title LIKE :t)');
            $statement->execute([':id' => 1, 'status' => 'draft', ':t' => '%; INTO OUTFILE lo_import(1) --%']);

            return $statement->fetchAll(PDO::FETCH_ASSOC);
        };
        yield 'a statement twice' => static function () use ($c): array {
            $statement = $c->prepare('SELECT name FROM users WHERE id = ?');
            $names = [];
            foreach ([1, 2, 1] as $id) {
                $statement->execute([$id]);
                $names[] = $statement->fetchColumn();
                $statement->closeCursor();
            }

            return $names;
        };
        yield 'columns that are bound' => static function () use ($c): array {
            $statement = $c->prepare('SELECT id, name FROM users WHERE id > ? ORDER BY id');
            $id = 0;
            $statement->bindParam(1, $id, PDO::PARAM_INT);
            $statement->execute();
            $statement->bindColumn(2, $name);
            $names = [];
            while ($statement->fetch(PDO::FETCH_BOUND)) {
                $names[] = $name;
            }

            return $names;
        };
        yield 'what a column is' => static function () use ($c): array {
            $statement = $c->query('SELECT id, name FROM users');
            $meta = $statement->getColumnMeta(1);
            $statement->fetchAll();

            return [$meta['name'], $meta['native_type'], $statement->rowCount()];
        };
        yield 'groups' => fn () => $c->query('SELECT user_id, id FROM posts ORDER BY id')
            ->fetchAll(PDO::FETCH_GROUP | PDO::FETCH_COLUMN);
        yield 'objects' => fn () => $c->query('SELECT id, name FROM users ORDER BY id')->fetchAll(PDO::FETCH_OBJ);
        $posts = 'SELECT id FROM posts ORDER BY id';
        yield 'rows one by one' => fn () => iterator_to_array($c->query($posts, PDO::FETCH_NUM));
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofSymfony(PDO $c): iterable
    {
        if (!class_exists(PdoSessionHandler::class) || !class_exists(PdoAdapter::class)) {
            return;
        }
        $modes = ['none' => PdoSessionHandler::LOCK_NONE, 'advisory' => PdoSessionHandler::LOCK_ADVISORY];
        foreach ($modes as $name => $mode) {
            yield "a session with lock $name" => static function () use ($c, $mode): array {
                $handler = new PdoSessionHandler($c, ['lock_mode' => $mode]);
                $handler->open('', 'x');

                return [$handler->read('abc'), $handler->close()];
            };
        }
        yield 'the cache' => fn () => [
            (new PdoAdapter($c))->getItem('greeting')->get(), (new PdoAdapter($c))->getItem('nothing')->isHit(),
            (new PdoAdapter($c))->hasItem('greeting'),
        ];
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofPostgreSql(PDO $c): iterable
    {
        yield 'pgsqlCopyToArray()' => fn () => $c->pgsqlCopyToArray('users');
        yield 'pgsqlCopyToArray() of columns' => fn () => $c->pgsqlCopyToArray('users', ';', 'none', 'id, name');
        yield 'pgsqlCopyToFile()' => static function () use ($c): string {
            $file = tempnam(sys_get_temp_dir(), 'users');
            $c->pgsqlCopyToFile('users', $file, ',');
            $rows = file_get_contents($file);
            unlink($file);

            return $rows;
        };
        yield 'pgsqlLOBOpen()' => static function () use ($c): array {
            $c->beginTransaction();
            $text = stream_get_contents($c->pgsqlLOBOpen('424242', 'r'));

            return [$text, $c->commit()];
        };
        yield 'pgsqlGetNotify()' => fn () => [$c->pgsqlGetNotify(), $c->pgsqlGetPid() > 0];
    }
}
