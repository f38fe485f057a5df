<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Support\Json;
use JsonSerializable;
use LogicException;
use PHPUnit\Framework\TestCase;
use stdClass;

/**
 * JSON as the answers are written.
 */
final class JsonTest extends TestCase
{
    public function testItIsPrettyWithAFinalNewline(): void
    {
        self::assertSame("{\n    \"a\": [\n        1,\n        2\n    ]\n}\n", Json::encode(['a' => [1, 2]]));
        self::assertSame("[]\n", Json::encode([]));
    }

    public function testSlashesAndUnicodeStayAsTheyAre(): void
    {
        $path = "/srv/caf\u{e9}/\u{65e5}\u{1F600}";

        self::assertSame("[\n    \"$path\"\n]\n", Json::encode([$path]));
    }

    public function testTextThatIsNotUtf8IsReplacedAndNeverLost(): void
    {
        $json = Json::encode(["a\xffb" => "caf\xe9", 'after' => 1]);

        self::assertSame(["a\u{FFFD}b" => "caf\u{FFFD}", 'after' => 1], json_decode($json, true));
    }

    /**
     * @dataProvider unprintable
     * @param array<mixed> $data
     */
    public function testItIsNeverEmpty(array $data): void
    {
        $decoded = json_decode(Json::encode($data), true);

        self::assertIsArray($decoded);
        self::assertSame('still here', $decoded['next']);
    }

    /**
     * @return iterable<string, array{array<mixed>}>
     */
    public static function unprintable(): iterable
    {
        $loop = [1];
        $loop[] = &$loop;
        $object = new stdClass();
        $object->self = $object;
        yield 'a float that JSON lacks' => [['x' => NAN, 'y' => INF, 'next' => 'still here']];
        yield 'a resource' => [['x' => STDIN, 'next' => 'still here']];
        yield 'an array in itself' => [['x' => $loop, 'next' => 'still here']];
        yield 'an object in itself' => [['x' => $object, 'next' => 'still here']];
    }

    public function testAFloatStaysAFloat(): void
    {
        self::assertSame("[\n    1.0,\n    0.1\n]\n", Json::encode([1.0, 0.1]));
    }

    public function testAnExceptionOfTheDataGoesOnToTheCaller(): void
    {
        $this->expectExceptionObject(new LogicException('not serialisable'));

        Json::encode([new class implements JsonSerializable {
            public function jsonSerialize(): mixed
            {
                throw new LogicException('not serialisable');
            }
        }]);
    }

    public function testItTakesNothingButAnArray(): void
    {
        $this->expectException(\TypeError::class);

        Json::encode('text'); // @phpstan-ignore-line
    }
}
