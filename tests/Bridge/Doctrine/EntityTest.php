<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Doctrine;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Library;

/**
 * Entities of Doctrine's ORM, its proxies, collections and queries: shown as they are, and nothing is loaded for it.
 */
final class EntityTest extends EvaluationTestCase
{
    protected function setUp(): void
    {
        parent::setUp();
        $this->application(Library::doctrine());
    }

    /** The value, and how many SELECTs ran. */
    private function shown(string $snippet, int $selects): array
    {
        $result = $this->evaluate($snippet, queries: true);
        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame($selects, self::selects($result), 'Looking asks the database nothing.');

        return $result->result;
    }

    private static function selects(EvalResult $result): int
    {
        $selects = array_filter(
            $result->diagnostics['queries'],
            static fn (array $query): bool => str_contains($query['sql'], 'FROM Author')
                || str_contains($query['sql'], 'FROM Book'),
        );

        return array_sum(array_column($selects, 'times'));
    }

    public function testAnEntityShowsItsFieldsAndThatItsCollectionIsNotLoaded(): void
    {
        $author = self::private($this->shown('em()->find(App\Author::class, 1)', 1));

        self::assertSame([1, 'Ada', 36, '[hidden]'], [
            $author['id']['value'], $author['name']['value'], $author['age']['value'], $author['password']['value'],
        ]);
        self::assertSame('1815-12-10T00:00:00+00:00', $author['born']['display']);
        self::assertSame(
            ['type' => 'iterable', 'class' => 'Doctrine\ORM\PersistentCollection', 'lazy' => true],
            $author['books'],
        );
    }

    public function testAProxyThatIsNotInitialisedIsItsClassAndIdentifier(): void
    {
        $author = self::private($this->shown('em()->find(App\Book::class, 1)', 1))['author'];
        // The ORM's own proxies had no properties but by their names; those of version 3 are the entity's.
        $shown = $author['properties'] + ($author['private'] ?? []);

        self::assertSame(['App\Author', true], [$author['class'], $author['lazy']]);
        self::assertStringEndsWith('\__CG__\App\Author', $author['proxy']);
        self::assertSame(['id' => ['type' => 'int', 'value' => 1]], $shown, 'Defaults would lie.');
    }

    public function testOneThatIsInitialisedIsItsEntity(): void
    {
        $author = $this->shown('$a = em()->find(App\Book::class, 1)->author(); $a->name(); return $a;', 2);

        self::assertSame('App\Author', $author['class']);
        self::assertArrayNotHasKey('lazy', $author);
        self::assertSame([], $author['properties']);
        self::assertSame('Ada', self::private($author)['name']['value']);
    }

    public function testACollectionThatIsLoadedShowsItsItems(): void
    {
        $books = $this->shown('$b = em()->find(App\Author::class, 1)->books(); $b->toArray(); return $b;', 2);

        self::assertSame(['iterable', true, 1], [$books['type'], $books['exhausted'], $books['size_hint']]);
        self::assertSame('Notes', self::private($books['preview'][0]['value'])['title']['value']);
    }

    public function testQueriesShowTheirParts(): void
    {
        $builder = $this->shown('$b = em()->createQueryBuilder(); return $b->select("a", $b->expr()->count("b.id"))
            ->from(App\Author::class, "a")->leftJoin("a.books", "b", "WITH", "b.title <> \'\'")
            ->where("a.id = :id OR a.id = 8")->andWhere("a.age > 3")->setParameter("id", 7)->setMaxResults(5);', 0);
        $builder = $builder['properties'];

        self::assertSame('a, COUNT(b.id)', $builder['select']['value']);
        self::assertSame('App\Author a', $builder['from']['value']);
        self::assertSame("LEFT JOIN a.books b WITH b.title <> ''", $builder['join']['value']);
        self::assertSame('(a.id = :id OR a.id = 8) AND a.age > 3', $builder['where']['value']);
        self::assertSame(5, $builder['max_results']['value']);
        self::assertSame(7, self::private($builder['parameters']['preview'][0]['value'])['value']['value']);
        $query = $this->shown('em()->createQuery("select a from App\\\\Author a")', 0)['properties'];
        self::assertSame('select a from App\Author a', $query['dql']['value']);
        $dbal = $this->shown('em()->getConnection()->createQueryBuilder()->select("a", "b")->from("c", "d")
            ->where("a = 1 OR a = 2")->andWhere("b = 3")->orderBy("a", "DESC")', 0)['properties'];
        self::assertSame(['a, b', 'c d', '(a = 1 OR a = 2) AND b = 3', 'a DESC'], array_map(
            static fn (string $part): string => $dbal[$part]['value'],
            ['select', 'from', 'where', isset($dbal['order_by']) ? 'order_by' : 'orderBy'],
        ));
    }

    private static function private(array $object): array
    {
        return $object['private'];
    }
}
