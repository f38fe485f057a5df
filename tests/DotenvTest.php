<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Library;
use Throwable;

/**
 * A `.env` file means to the host what it means to the application: what either of PHP's parsers makes of a line is
 * known as a secret.
 */
final class DotenvTest extends EvaluationTestCase
{
    /** A line each, of which the parsers make different things or none. */
    private const LINES = [
        '%s_TOKEN=plain-%s',
        'export %s_TOKEN=exported-%s # a comment',
        '%s_TOKEN=pa$word123-%s',
        '%s_TOKEN=back\slash-%s',
        '%s_TOKEN=back\\\\slash-%s',
        '%s_TOKEN=pa1!word#ss-%s',
        '%s_TOKEN=Bob\'s-%s',
        '%s_TOKEN=O\'Neil\'s-%s',
        '%s_TOKEN="two words %s" # a comment',
        '%s_TOKEN="a \"word\" %s"',
        '%s_TOKEN="tab\tline\n%s"',
        '%s_TOKEN="back\\\\slash %s"',
        '%s_TOKEN="cost \$5 %s"',
        '%s_TOKEN=\'single "$PART" %s\'',
        '%s_TOKEN="whole ${PART} %s"',
        '%s_TOKEN=half-$PART-%s',
        '%s_TOKEN=${NONE:-default}-%s',
        '%s_TOKEN=${NONE}-%s',
        '%s_TOKEN=\$PART-%s',
        '%s_TOKEN=\'it\'"s mine %s"',
        '%s_TOKEN="a key' . "\n" . 'over lines' . "\n" . '%s"',
        '%s_TOKEN = spaced-%s',
        '%s_TOKEN="wrong \q escape %s"',
        '%s_TOKEN="more" than one %s',
        '%s_TOKEN=\'not closed %s',
    ];

    /**
     * What Laravel's parser and Symfony's make of each line.
     *
     * @return iterable<string, array{callable(string): array<string, ?string>}>
     */
    public static function parsers(): iterable
    {
        yield 'phpdotenv' => [static function (string $text): array {
            require_once Library::autoloader('Dotenv');

            return \Dotenv\Dotenv::parse($text);
        }];
        yield 'Symfony' => [static function (string $text): array {
            require_once Library::autoloader('Symfony/Component/Dotenv');

            return (new \Symfony\Component\Dotenv\Dotenv())->parse($text);
        }];
    }

    /**
     * @dataProvider parsers
     * @param callable(string): array<string, ?string> $parse
     */
    public function testWhatAParserReadsIsKnownAsASecret(callable $parse): void
    {
        $part = "PART=of-it\n";
        [$file, $values] = [$part, []];
        foreach (self::LINES as $number => $line) {
            $line = sprintf($line, "LINE$number", bin2hex(random_bytes(6))) . "\n";
            $file .= $line;
            try {
                $values += $parse($part . $line);
            } catch (Throwable $thrown) {
                self::assertStringNotContainsString('not found', $thrown->getMessage());
            }
        }
        unset($values['PART']);
        self::assertGreaterThan(15, count($values));
        $shown = $this->shown($file, $values);

        foreach ($values as $name => $value) {
            self::assertSame("[redacted:$name]", $shown[$name], "$name is $value");
        }
    }

    public function testWhatNoParserReadsIsKnownAsItIsWritten(): void
    {
        $written = ["'Bob's %s'", '"wrong \q %s', 'two words %s'];
        [$file, $values] = ['', []];
        foreach ($written as $number => $text) {
            $values["LINE{$number}_TOKEN"] = $text = sprintf($text, bin2hex(random_bytes(6)));
            $file .= "LINE{$number}_TOKEN=$text\n";
        }
        $expected = array_map(static fn (string $name): string => "[redacted:$name]", array_keys($values));

        self::assertSame($expected, array_values($this->shown($file, $values)));
    }

    public function testAnApostropheInAWordHidesNothingBehindIt(): void
    {
        $secret = bin2hex(random_bytes(9));
        // A database's port, which a project may name, at an address that no other test uses.
        $address = sprintf('127.%d.%d.%d:3306', random_int(1, 254), random_int(0, 254), random_int(1, 254));
        $listener = stream_socket_server("tcp://$address") ?: self::fail('No listener.');
        foreach (['DATABASE_URL', 'DB_HOST', 'DB_URL', 'APP_ENV'] as $name) {
            $this->setVariable($name, null);
        }
        $lines = ["APP_NAME=Bob's", "SHOP_SECRET=$secret", "DATABASE_URL=mysql://shop@$address/shop", ''];
        $root = $this->application(['.env' => implode("\n", $lines)])->root;
        $snippet = "return ['$secret', @stream_socket_client('tcp://$address', \$code, \$why, 5) !== false];";
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $root));

        self::assertSame('[redacted:SHOP_SECRET]', $result->result['value'][0]['value'] ?? null);
        self::assertTrue($result->result['value'][1]['value']);
        fclose($listener);
    }

    /**
     * What a run shows of values, in a project with this file.
     *
     * @param array<string, ?string> $values
     * @return array<string, mixed>
     */
    private function shown(string $file, array $values): array
    {
        $root = $this->application(['.env' => $file])->root;
        // As an application has them: none of them stands in the snippet as it is written.
        $snippet = 'return json_decode(base64_decode("' . base64_encode((string) json_encode($values)) . '"), true);';
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $root));
        self::assertTrue($result->ok(), (string) json_encode($result->toArray()));

        return array_column(array_map(
            static fn (string $name, array $value): array => [$name, $value['value']],
            array_keys($result->result['value']),
            $result->result['value'],
        ), 1, 0);
    }
}
