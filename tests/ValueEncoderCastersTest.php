<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Values\LazyState;
use Altair\Eval\Tests\Support\Values\SymfonyLazy;
use ArrayIterator;
use ArrayObject;
use DateInterval;
use DateTime;
use DateTimeImmutable;
use DateTimeZone;
use DOMDocument;
use Generator;
use LogicException;
use PDO;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use RuntimeException;
use SimpleXMLElement;
use SplMaxHeap;
use SplObjectStorage;
use SplPriorityQueue;
use SplQueue;
use SplStack;
use stdClass;
use WeakMap;

/**
 * Objects of well-known classes show what they mean, and none is changed or initialised by looking.
 */
final class ValueEncoderCastersTest extends TestCase
{
    public function testADateNamesItsZoneWhereThatSaysMoreThanTheOffset(): void
    {
        $date = ValueEncoder::encode(new DateTime('2024-07-01 12:00 Europe/Rome'));

        self::assertSame(['2024-07-01T12:00:00+02:00', 'Europe/Rome'], [$date['display'], $date['zone']]);
        self::assertArrayNotHasKey('zone', ValueEncoder::encode(new DateTimeImmutable('2024-07-01 12:00 +05:30')));
        $own = new class ('2024-07-01 UTC') extends DateTimeImmutable {
            protected string $note = 'own';
        };
        self::assertSame('own', ValueEncoder::encode($own)['protected']['note']['value']);
    }

    public function testZonesAndIntervalsAreALine(): void
    {
        self::assertSame('Europe/Rome', ValueEncoder::encode(new DateTimeZone('Europe/Rome'))['display']);
        self::assertSame('P1Y2DT3H', ValueEncoder::encode(new DateInterval('P1Y2DT3H'))['display']);
        $back = (new DateTime('2024-01-03'))->diff(new DateTime('2024-01-01'));
        self::assertSame('-P2D', ValueEncoder::encode($back)['display']);
    }

    public function testADateThatWasNeverConstructedIsStillAnObject(): void
    {
        foreach ([DateTime::class, DateTimeZone::class, DateInterval::class, SimpleXMLElement::class] as $class) {
            $object = (new ReflectionClass(self::unconstructed($class)))->newInstanceWithoutConstructor();

            $encoded = ValueEncoder::encode($object);

            self::assertArrayHasKey('class', $encoded);
            self::assertArrayNotHasKey('display', $encoded);
        }
    }

    /** A class below a built-in one, which does not call its parent's constructor. */
    private static function unconstructed(string $class): string
    {
        return (string) eval("return (new class extends \\$class { function __construct() { } })::class;");
    }

    public function testCarbonAndIdentifiersAreALine(): void
    {
        foreach (['Carbon', 'Ramsey/Uuid', 'Symfony/Component/Uid'] as $library) {
            require_once Library::autoloader($library);
        }
        $text = 'ff6f8cb0-c57d-41e1-9b21-0800200c9a66';
        $shown = array_map(ValueEncoder::encode(...), [
            new \Carbon\CarbonImmutable('2024-07-01 12:00 Europe/Rome'),
            \Carbon\CarbonInterval::days(3),
            \Ramsey\Uuid\Uuid::fromString($text),
            \Ramsey\Uuid\Uuid::fromBytes(\Ramsey\Uuid\Uuid::fromString($text)->getBytes()),
            \Symfony\Component\Uid\Uuid::fromString($text),
            \Symfony\Component\Uid\Ulid::fromString('01ARZ3NDEKTSV4RRFFQ69G5FAV'),
        ]);

        self::assertSame(
            ['2024-07-01T12:00:00+02:00', 'P3D', $text, $text, $text, '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
            array_column($shown, 'display'),
        );
        foreach ($shown as $object) {
            self::assertSame([], $object['properties']);
            self::assertArrayNotHasKey('private', $object);
        }
    }

    public function testAMessageOfPsr7IsItsLineHeadersAndLength(): void
    {
        foreach (['GuzzleHttp/Psr7', 'Nyholm/Psr7'] as $library) {
            require_once Library::autoloader($library);
        }
        $headers = ['Authorization' => 'Bearer s3cret', 'Accept' => ['a', 'b']];
        foreach (['GuzzleHttp\Psr7', 'Nyholm\Psr7'] as $namespace) {
            $request = "$namespace\\Request";
            $request = new $request('POST', 'https://u:p@example.org/x?page=1&api_key=s3cret', $headers, 'hello');
            $response = "$namespace\\Response";
            $response = ValueEncoder::encode(new $response(404, ['X' => 'y'], 'gone'))['properties'];

            $shown = ValueEncoder::encode($request)['properties'];

            self::assertSame('POST', $shown['method']['value']);
            self::assertSame('https://u:***@example.org/x?page=1&api_key=***', $shown['target']['value']);
            self::assertSame('[hidden]', $shown['headers']['value']['Authorization']['value']);
            self::assertSame('a, b', $shown['headers']['value']['Accept']['value']);
            self::assertSame(5, $shown['body_length']['value']);
            self::assertSame([404, 'Not Found', 4], [
                $response['status']['value'], $response['reason']['value'], $response['body_length']['value'],
            ]);
            self::assertSame(0, $request->getBody()->tell() % 5, 'The body was not read.');
        }
    }

    public function testAMessageOfHttpFoundationIsItsLineHeadersAndLength(): void
    {
        require_once Library::autoloader('Symfony/Component/HttpFoundation');
        $request = \Symfony\Component\HttpFoundation\Request::create(
            '/path?token=s3cret',
            'PUT',
            server: ['HTTP_COOKIE' => 'a=b'],
            content: 'hello',
        );

        $shown = ValueEncoder::encode($request)['properties'];
        $response = ValueEncoder::encode(new \Symfony\Component\HttpFoundation\Response('hey', 201))['properties'];

        self::assertSame(['PUT', '/path?token=***', 5], [
            $shown['method']['value'], $shown['target']['value'], $shown['body_length']['value'],
        ]);
        self::assertSame('[hidden]', $shown['headers']['value']['cookie']['value']);
        self::assertSame([201, 3], [$response['status']['value'], $response['body_length']['value']]);
    }

    public function testWhatAnIterationEmptiesIsStillFull(): void
    {
        $heap = new SplMaxHeap();
        $queue = new SplPriorityQueue();
        $list = new SplQueue();
        $list->setIteratorMode(SplQueue::IT_MODE_DELETE);
        foreach ([1, 3, 2] as $n) {
            $heap->insert($n);
            $queue->insert("p$n", $n);
            $list[] = $n;
        }

        self::assertSame([3, 2, 1], self::values($heap));
        self::assertSame(['p3', 'p2', 'p1'], self::values($queue));
        self::assertSame([1, 3, 2], self::values($list));
        self::assertSame([3, 3, 3], [count($heap), count($queue), count($list)]);
    }

    public function testAHeapWhoseCloneThrowsSaysSo(): void
    {
        $heap = new class extends SplMaxHeap {
            public function __clone()
            {
                throw new LogicException('not me');
            }
        };

        self::assertSame('not me', ValueEncoder::encode($heap)['error']['message']);
    }

    public function testStructuresKeepTheirPlace(): void
    {
        $array = new ArrayIterator(['a' => 1, 'b' => 2, 'c' => 3]);
        $array->next();
        $storage = new SplObjectStorage();
        $storage[$key = new stdClass()] = 'data';
        $storage[new stdClass()] = null;
        $storage->rewind();
        $storage->next();
        $stack = new SplStack();
        $stack->push(1);
        $stack->push(2);
        $stack->rewind();
        $map = new WeakMap();
        $map[$key] = 'weak';

        self::assertSame([1, 2, 3], self::values($array));
        self::assertSame(['data', null], self::values($storage));
        self::assertSame(
            spl_object_id($key),
            ValueEncoder::encode($storage)['preview'][0]['key']['id'],
        );
        self::assertSame([2, 1], self::values($stack));
        self::assertSame(['weak'], self::values($map));
        self::assertSame(['b', 1, 1], [$array->key(), $storage->key(), $stack->key()]);
    }

    public function testAnArrayObjectGivesItsItemsAndNoPrivateOnesOfWhatItWraps(): void
    {
        $wrapped = new class {
            public int $shown = 1;
            private int $hidden = 2;

            public function hidden(): int
            {
                return $this->hidden;
            }
        };

        self::assertSame([1], self::values(new ArrayObject($wrapped)));
        self::assertSame(1, ValueEncoder::encode(new ArrayObject($wrapped))['size_hint']);
    }

    public function testAClassBelowThatIteratesInItsOwnWayIsIterated(): void
    {
        $doubled = new class ([1, 2]) extends ArrayIterator {
            public function current(): mixed
            {
                return parent::current() * 2;
            }
        };

        self::assertSame([2, 4], self::values($doubled));
    }

    public function testXmlIsItsTextAndBounded(): void
    {
        $document = new DOMDocument();
        $document->loadXML('<a><b x="1">' . str_repeat('t', 20000) . '</b></a>');
        $element = $document->documentElement->firstChild;

        self::assertSame(
            "<?xml version=\"1.0\"?>\n<a><b>1</b></a>\n",
            self::property(new SimpleXMLElement('<a><b>1</b></a>'), 'xml')['value'],
        );
        self::assertStringStartsWith('<b x="1">ttt', self::property($element, 'xml')['value']);
        self::assertSame([20013, true], [
            self::property($element, 'xml')['length'], self::property($element, 'xml')['truncated'],
        ]);
        self::assertStringStartsWith('<?xml', self::property($document, 'xml')['value']);
    }

    public function testANodeWithoutADocumentHasNoneOfThePropertiesThatPhpAnswersFor(): void
    {
        $node = new class ('x') extends \DOMElement {
            private int $own = 1;

            public function own(): int
            {
                return $this->own;
            }

            public function __get(string $name): mixed
            {
                throw new LogicException($name);
            }
        };

        $encoded = ValueEncoder::encode($node);

        self::assertNotContains(['type' => 'uninitialized'], $encoded['properties']);
        self::assertSame(['own'], array_keys($encoded['private']));
        self::assertArrayNotHasKey('error', $encoded);
    }

    public function testARowThatIsFetchedWhenReadIsOnlyNamed(): void
    {
        $row = (new PDO('sqlite::memory:'))->query('select 1 as a')->fetch(PDO::FETCH_LAZY);

        $encoded = ValueEncoder::encode($row);

        self::assertSame(['PDORow', true, []], [$encoded['class'], $encoded['lazy'], $encoded['properties']]);
    }

    public function testAClosureShowsItsParameters(): void
    {
        $closure = static fn (int $a, ?string &$b, array $c = [], string|int $d = 'x', self ...$rest): int => 1;

        self::assertSame(
            ['int $a', '?string &$b', 'array $c = []', "string|int \$d = 'x'", 'self ...$rest'],
            ValueEncoder::encode($closure)['parameters'],
        );
        self::assertSame(
            ['array $array', 'int $offset', '?int $length = null', 'bool $preserve_keys = false'],
            ValueEncoder::encode(array_slice(...))['parameters'],
        );
    }

    public function testAnExceptionIsWhatItSaysAndNoTrace(): void
    {
        $exception = new class ('boom', 3, new RuntimeException('below')) extends LogicException {
            protected string $added = 'own';
        };

        $encoded = ValueEncoder::encode($exception);

        self::assertSame(['message', 'code', 'file', 'line', 'previous'], array_keys($encoded['properties']));
        self::assertSame('below', $encoded['properties']['previous']['properties']['message']['value']);
        self::assertSame(['added'], array_keys($encoded['protected']));
        self::assertArrayNotHasKey('private', $encoded);
    }

    public function testALazyObjectOfSymfonysIsAsFarAsItIs(): void
    {
        $waiting = new SymfonyLazy(new LazyState(1), 7);
        $ready = new SymfonyLazy(new LazyState(3), 7, 'name');
        $proxy = new SymfonyLazy(new LazyState(0, $ready), 8);

        $encoded = ValueEncoder::encode($waiting);
        self::assertSame([true, ['id']], [$encoded['lazy'], array_keys($encoded['properties'])]);
        $encoded = ValueEncoder::encode($ready);
        self::assertSame(['id', 'name'], array_keys($encoded['properties']));
        self::assertArrayNotHasKey('lazy', $encoded);
        self::assertArrayNotHasKey('private', $encoded);
        $encoded = ValueEncoder::encode($proxy);
        self::assertSame(
            [spl_object_id($ready), SymfonyLazy::class],
            [$encoded['id'], $encoded['proxy']],
        );
        self::assertSame('name', $encoded['properties']['name']['value']);
        self::assertSame(0, SymfonyLazy::$woken, 'No __debugInfo of what is not initialised.');
    }

    public function testALazyObjectOfPhpsOwnIsAsFarAsItIs(): void
    {
        if (PHP_VERSION_ID < 80400) {
            Skip::OlderPhp->because('PHP has lazy objects from 8.4 on.');
        }
        $class = new ReflectionClass(Support\Values\Secretive::class);
        $wake = static fn () => throw new LogicException('woken');
        foreach ([$class->newLazyGhost($wake), $class->newLazyProxy($wake)] as $lazy) {
            $class->getProperty('shown')->setRawValueWithoutLazyInitialization($lazy, 5);

            $encoded = ValueEncoder::encode($lazy);

            self::assertTrue($encoded['lazy']);
            self::assertSame(['shown' => ['type' => 'int', 'value' => 5]], $encoded['properties']);
            self::assertArrayNotHasKey('private', $encoded);
            self::assertTrue($class->isUninitializedLazyObject($lazy));
        }
        $proxy = $class->newLazyProxy(static fn () => new Support\Values\Secretive());
        $instance = $class->initializeLazyObject($proxy);
        $encoded = ValueEncoder::encode($proxy);
        self::assertSame([spl_object_id($instance), 2], [$encoded['id'], $encoded['protected']['protected']['value']]);
        self::assertSame(Support\Values\Secretive::class, $encoded['proxy']);
    }

    public function testAGeneratorIsReadWhereItIsWhatWasAskedFor(): void
    {
        $generator = (static function (): Generator {
            yield 'k' => 1;
        })();

        self::assertSame([1], self::values($generator));
    }

    /**
     * @return list<mixed>
     */
    private static function values(object $iterable): array
    {
        $encoded = ValueEncoder::encode($iterable);
        self::assertSame(['iterable', true], [$encoded['type'], $encoded['exhausted']]);

        return array_map(static fn (array $item): mixed => $item['value']['value'], $encoded['preview']);
    }

    private static function property(object $object, string $name): mixed
    {
        return ValueEncoder::encode($object)['properties'][$name];
    }
}
