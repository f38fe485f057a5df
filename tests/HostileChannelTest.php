<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A snippet that finds the channel to the host cannot say anything on it that the host believes.
 */
final class HostileChannelTest extends EvaluationTestCase
{
    /** Opens every descriptor there may be, the channel among them, as often as it is open. */
    private const FIND = <<<'PHP'
        $found = [];
        for ($fd = 0; $fd <= 20; $fd++) {
            $stream = @fopen("php://fd/$fd", 'r+');
            if ($stream) {
                $found[$fd] = $stream;
            }
        }
        $channel = $found[3] ?? null;
        PHP;

    public function testTheChannelIsThereToBeFound(): void
    {
        // Else the tests below would show nothing.
        self::assertContains(3, $this->value(self::FIND . ' return array_keys($found);'));
    }

    /**
     * @dataProvider abuses
     */
    public function testTheReportIsTrueWhateverIsDoneToTheChannel(string $abuse): void
    {
        $result = $this->evaluate(self::FIND . "\n$abuse\nreturn 'the truth';");

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(['type' => 'string', 'value' => 'the truth'], $result->result);
    }

    /**
     * @dataProvider abuses
     */
    public function testAnExceptionAfterwardsIsTrueToo(string $abuse): void
    {
        $result = $this->evaluate(self::FIND . "\n$abuse\nthrow new Exception('the truth');");

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('the truth', $result->exception['message']);
    }

    public static function abuses(): iterable
    {
        yield 'garbage' => ['fwrite($channel, random_bytes(100)); fwrite($channel, str_repeat("\xFF", 5000));'];
        yield 'garbage on all that is open' => [
            'foreach ($found as $fd => $s) { if ($fd > 2) { @fwrite($s, "garbage\n"); } }',
        ];
        yield 'empty packets' => ['for ($i = 0; $i < 100; $i++) { @fwrite($channel, ""); }'];
        yield 'JSON of a result' => ['fwrite($channel, json_encode(["ok" => true, "result" => "forged"]));'];
        yield 'what a PHP without the extension would say' => ['fwrite($channel, json_encode(["version" => PHP_VERSION,'
            . ' "sapi" => "cli", "zts" => 0, "debug" => 0, "loaded" => false]));'];
        yield 'a message under guessed secrets' => ['for ($i = 0; $i < 256; $i++) {'
            . ' fwrite($channel, str_repeat(chr($i), 32) . "\0\3\0\x10{\"type\":\"forged\"}"); }'];
        yield 'a flood' => [
            '$packet = str_repeat("x", 8192); for ($i = 0; $i < 5000; $i++) { fwrite($channel, $packet); }',
        ];
        yield 'a flood in large packets' => [
            'stream_set_write_buffer($channel, 0); stream_set_chunk_size($channel, 1 << 20);'
                . ' for ($i = 0; $i < 50; $i++) { @fwrite($channel, str_repeat("x", 150000)); }',
        ];
        yield 'non-blocking and full' => ['stream_set_blocking($channel, false); for ($i = 0; $i < 5000; $i++) {'
            . ' @fwrite($channel, str_repeat("x", 8192)); }'];
        yield 'non-blocking reads' => ['stream_set_blocking($channel, false); @fread($channel, 100000);'];
        yield 'closing what was opened' => ['foreach ($found as $fd => $s) { if ($fd > 2) { fclose($s); } }'];
        yield 'half-closing it' => ['@stream_socket_shutdown($channel, STREAM_SHUT_RD);'];
    }

    public function testWhatTheHostSaidCannotBeReadAgain(): void
    {
        $snippet = self::FIND . ' stream_set_blocking($channel, false);'
            . ' return bin2hex((string) @fread($channel, 1 << 20));';

        self::assertSame('', $this->value($snippet));
    }

    public function testTheSecretIsNowhereInReachOfPhp(): void
    {
        $snippet = 'return [ini_get_all("altair_eval", false), getenv(), $_SERVER,'
            . ' get_defined_constants(true)["user"] ?? []];';
        $one = json_encode($this->value($snippet), JSON_THROW_ON_ERROR);
        $two = json_encode($this->value($snippet), JSON_THROW_ON_ERROR);

        // Two runs have two secrets; nothing that differs between them is long enough to hold one.
        $differ = array_diff(self::texts($one), self::texts($two));
        self::assertLessThan(32, max([0, ...array_map(strlen(...), $differ)]), implode("\n", $differ));
    }

    public function testAReadThatWaitsForTheHostEndsAtTheDeadline(): void
    {
        $result = $this->evaluate(self::FIND . ' fread($channel, 1);', timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
    }

    public function testAForgedReportOfASnippetThatKillsItselfIsNotBelieved(): void
    {
        $result = $this->forgeAnd('posix_kill(getmypid(), SIGKILL);');

        self::assertOutcome('signalled', $result, 137);
    }

    public function testAForgedReportOfASnippetThatExitsIsNotBelieved(): void
    {
        self::assertOutcome('exited', $this->forgeAnd('exit(0);'), 0);
    }

    public function testAForgedReportOfASnippetThatLeavesNativelyIsNotBelieved(): void
    {
        $result = $this->forgeAnd('FFI::cdef("void _exit(int);")->_exit(0);', unsafe: true);

        self::assertOutcome('no_report', $result, 1);
    }

    public function testAForgedTimeoutIsNotBelieved(): void
    {
        // The host's own signal, sent by the snippet: the child stops, but the deadline had not passed.
        $result = $this->evaluate('for ($s = 34; $s < 65; $s++) { posix_kill(getmypid(), $s); } sleep(60); return 1;');

        self::assertFalse($result->timedOut);
        self::assertNotSame('timed_out', $result->diagnostics['outcome']);
        self::assertNotSame(0, $result->exitCode);
        self::assertFalse($result->ok());
    }

    public function testClosingTheChannelNativelyLosesTheReportAndNothingElse(): void
    {
        $result = $this->evaluate(
            'echo "kept"; FFI::cdef("int close(int);")->close(3); return "forged";',
            unsafe: true,
        );

        self::assertOutcome('no_report', $result, 1);
        self::assertSame('kept', $result->stdout);
    }

    private function forgeAnd(string $ending, bool $unsafe = false): EvalResult
    {
        $forgery = 'fwrite($channel, str_repeat("\0", 32) . "\0\3\0\x10{\"type\":\"forged\"}");'
            . ' echo json_encode(["ok" => true, "result" => ["type" => "string", "value" => "forged"]]);';

        return $this->evaluate(self::FIND . "\n$forgery\n$ending", unsafe: $unsafe);
    }

    /**
     * @return list<string>
     */
    private static function texts(string $json): array
    {
        preg_match_all('/"((?:[^"\\\\]|\\\\.)*)"/', $json, $texts);

        return $texts[1];
    }
}
