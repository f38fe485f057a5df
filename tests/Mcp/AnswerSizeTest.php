<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Mcp;

use Altair\Eval\Tests\Support\McpServer;
use PHPUnit\Framework\TestCase;

/**
 * What an answer of `altair mcp:serve` costs an agent, in bytes of its structured content.
 */
final class AnswerSizeTest extends TestCase
{
    /** Rows of five columns, as PHP. */
    private const ROWS = 'array_map(fn ($n) => [
        "id" => $n, "name" => "Customer $n", "email" => "customer$n@shop.example",
        "total" => $n * 1.25, "paid" => $n > 3,
    ], range(1, 20))';

    private static ?McpServer $server = null;

    public static function setUpBeforeClass(): void
    {
        self::$server = new McpServer();
    }

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    public function testASumIsAFewBytes(): void
    {
        self::assertLessThanOrEqual(40, strlen($this->answer('return 1+1;')));
        self::assertMatchesRegularExpression('/^\{"ok":true,"result":2,"duration_ms":\d+\}$/', $this->answer('1+1'));
    }

    public function testAUserOfTheShopIsItsPropertiesAndItsClass(): void
    {
        $answer = $this->answer('container(Shop\UserRepository::class)->findByEmail("ada@shop.example")');

        self::assertLessThanOrEqual(160, strlen($answer), $answer);
        self::assertStringContainsString(
            '{"@object":"Shop\\\\User","id":1,"email":"ada@shop.example","name":"Ada","registeredAt":{"@date":"',
            $answer,
        );
    }

    public function testRowsCostWhatTheirPlainJsonCosts(): void
    {
        $plain = strlen((string) json_encode(eval('return ' . self::ROWS . ';')));

        self::assertLessThanOrEqual(1.05 * $plain, strlen($this->answer('return ' . self::ROWS . ';')));
    }

    public function testRowsOfObjectsCostLittleMore(): void
    {
        $plain = strlen((string) json_encode(eval('return ' . self::ROWS . ';')));
        $objects = 'return array_map(fn ($row) => (object) $row, ' . self::ROWS . ');';

        self::assertLessThanOrEqual(1.15 * $plain, strlen($this->answer($objects)));
    }

    public function testAValueHas16KibibytesAtMostAndSaysWhatIsMissing(): void
    {
        $answer = $this->answer('return array_fill(0, 5000, ' . self::ROWS . '[0]);', ['max_items' => 10000]);
        $result = json_decode($answer, true)['result'];

        self::assertLessThan(16384 + 60, strlen($answer));
        self::assertGreaterThan(15500, strlen($answer));
        self::assertSame(['array', 5000, 'return less of it'], [$result['@cut'], $result['count'], $result['hint']]);
        self::assertSame('customer1@shop.example', end($result['items'])['email']);
    }

    public function testTypedAndVerboseAreForTheAsking(): void
    {
        $typed = json_decode($this->answer('1', ['typed' => true]), true);
        $verbose = json_decode($this->answer('1', ['verbose' => true]), true);

        self::assertSame(['type' => 'int', 'value' => 1], $typed['result']);
        self::assertCount(3, $typed);
        self::assertCount(10, $verbose);
        self::assertSame(1, $verbose['result']);
        self::assertArrayHasKey('guards', $verbose['diagnostics']);
        self::assertArrayHasKey('timings_ms', $verbose['diagnostics']);
    }

    public function testWhatFailedLeavesOutWhatItHasNot(): void
    {
        $answer = json_decode($this->answer('throw new LogicException("no");'), true);

        self::assertSame(['ok', 'exception', 'duration_ms', 'exit_code', 'diagnostics'], array_keys($answer));
        self::assertSame('threw', $answer['diagnostics']['outcome']);
    }

    /**
     * @param array<string, mixed> $arguments
     */
    private function answer(string $snippet, array $arguments = []): string
    {
        $arguments += ['snippet' => $snippet, 'timeout_ms' => 60000];
        $told = self::$server->ask('tools/call', ['name' => 'framework__eval', 'arguments' => $arguments]);
        $text = $told['content'][0]['text'];
        self::assertSame($told['structuredContent'], json_decode($text, true));
        self::assertStringNotContainsString("\n", $text);

        return $text;
    }
}
