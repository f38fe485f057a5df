<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\EvalRequest;
use Altair\Eval\Tests\Support\Forgery\ForgingApplication;
use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;

/**
 * Native code in a runtime that speaks to the caller with the runtime's own secret: it can lie about its own values,
 * and do nothing else. The caller goes on, and what it gets is an Exception or a value of scalars and arrays.
 */
final class HostileTest extends RuntimeTestCase
{
    /** What an entered closure has, to write a value byte by byte. */
    private const ONE = '"\x03\x02"'; // int 1, in zigzag

    private Runtime $runtime;

    protected function setUp(): void
    {
        parent::setUp();
        $root = $this->application(ForgingApplication::files())->root;
        $this->runtime = $this->kept(Runtime::fromRequest(new EvalRequest('wire()->quietly();', $root, 20_000)));
        ini_set('memory_limit', '192M');
    }

    protected function tearDown(): void
    {
        ini_restore('memory_limit');
        parent::tearDown();
    }

    public function testItHasTheSecret(): void
    {
        // Else nothing below would be a test.
        $forged = $this->enter('wire()->part(' . self::ONE . '); wire()->say(Messages::left()); return 2;');

        self::assertSame(1, $forged);
    }

    /**
     * @dataProvider lies
     */
    public function testALieIsAnExceptionOfTheCaller(string $code, string $message): void
    {
        $thrown = self::thrown(fn (): mixed => $this->enter("$code return 'the truth';"));

        self::assertInstanceOf(Exception::class, $thrown, $thrown->getMessage());
        self::assertStringMatchesFormat($message, $thrown->getMessage());
        $this->assertCallerGoesOn();
    }

    public static function lies(): iterable
    {
        $unread = 'sandbox bailed out: its value cannot be read';
        $say = static fn (string $value): string => "wire()->part($value); wire()->say(Messages::left());";
        yield 'no value' => ['wire()->say(Messages::left());', $unread];
        yield 'an empty part' => [$say('""'), $unread];
        yield 'an unknown tag' => [$say('"\xff"'), $unread];
        yield 'a string that is longer than it is' => [$say('"\x05\xff\xff\x03abc"'), $unread];
        yield 'a string without an end' => [$say('"\x05\xff\xff\xff\xff\xff\xff\xff\xff\x7f"'), $unread];
        yield 'a list of everything' => [$say('"\x06\xff\xff\xff\xff\xff\xff\xff\xff\x7f"'), $unread];
        yield 'lists in lists' => [$say('str_repeat("\x06\x01", 30000)'), $unread];
        yield 'more than a value' => [$say('"\x00\x00"'), $unread];
        yield 'two of the same key' => [$say('"\x07\x02" . str_repeat("\x03\x02\x00", 2)'), $unread];
        yield 'a key that is no key' => [$say('"\x07\x01\x00\x00"'), $unread];
        yield 'a number of too many bytes' => [$say('"\x03\x82\x80\x80\x00"'), $unread];
        yield 'an object' => [$say('"O:8:\"stdClass\":0:{}"'), $unread];
        yield 'the value before, with more behind it' => [
            'wire()->part(' . self::ONE . '); wire()->part("x"); wire()->say(Messages::left());',
            $unread,
        ];
        yield 'a value that needs more memory than the caller has' => [
            // A byte of a list is sixteen of PHP's: 12 MB are 192.
            '$size = 400 * 30000; wire()->part("\x06" . Messages::number($size));'
                . ' for ($i = 0; $i < 400; $i++) { wire()->part(str_repeat("\x00", 30000)); }'
                . ' wire()->say(Messages::left());',
            'sandbox bailed out: its value is larger than the memory limits of the entry and the caller allow',
        ];
        yield 'more parts than the caller has memory' => [
            '$part = str_repeat("\x00", 32000); for ($i = 0; $i < 6500; $i++) { wire()->part($part); }'
                . ' wire()->say(Messages::left());',
            'sandbox bailed out: its value is larger than the memory limits of the entry and the caller allow',
        ];
        yield 'an end that it has not had' => [
            'wire()->say(Messages::leftBy(Messages::fatal("forged\0\x1b[31m", Messages::location("there", 7))));',
            'sandbox bailed out: forged\\0%S in there:7',
        ];
        yield 'an exception that is none' => [
            'wire()->say(Messages::leftBy(Messages::threw("[1,{\"class\":7}]")));',
            'sandbox bailed out: %S',
        ];
        yield 'an exception of lies' => [
            'wire()->say(Messages::leftBy(Messages::threw(json_encode(["class" => str_repeat("x", 200000),'
                . ' "message" => "m", "code" => 0, "file" => "f", "line" => -1, "trace" => [],'
                . ' "previous" => null]))));',
            'sandbox bailed out: %S',
        ];
        yield 'a refusal without an end' => [
            'wire()->say(Messages::leftUnentered(str_repeat("x", 300000)));',
            'sandbox bailed out: xxx%S',
        ];
        yield 'its own report, and an end' => [
            'wire()->say(Messages::report(Messages::exited(0))); wire()->leave(0);',
            'sandbox unusable: it called exit(0)',
        ];
        yield 'an end without a word' => ['wire()->leave(0);', 'sandbox unusable: it ended with status 0'];
        yield 'an end of which it lies' => [
            'wire()->say(Messages::report(Messages::fatal("forged"))); wire()->signal(9);',
            'sandbox unusable: it was ended by signal 9 (SIGKILL)',
        ];
        yield 'a closed channel' => ['wire()->close();', 'sandbox unusable: it ended with status 0'];
    }

    /**
     * @dataProvider noise
     */
    public function testNoiseIsNotHeard(string $code): void
    {
        self::assertSame('the truth', $this->enter("$code return 'the truth';"));
        self::assertSame('and again', $this->enter("return 'and again';"));
        $this->assertCallerGoesOn();
    }

    public static function noise(): iterable
    {
        yield 'ready again' => ['wire()->say(Messages::ready([]), Messages::entered(1), Messages::guarded([]));'];
        yield 'boot again' => ['wire()->say(Messages::booted(1, "forged"), Messages::unable("forged"));'];
        yield 'a second thread' => ['wire()->say(Messages::secondThread(1));'];
        yield 'reports' => ['for ($i = 0; $i < 100; $i++) { wire()->say(Messages::report(Messages::exited(3))); }'];
        yield 'a stop' => ['wire()->say(Messages::stopped(Messages::SNIPPET, Messages::location("forged", 1)));'];
        yield 'variables' => ['wire()->say(Messages::variables(["PASSWORD" => "the truth"]));'];
        yield 'garbage under the secret' => ['for ($i = 0; $i < 256; $i++) { wire()->packet(wire()->secret()'
            . ' . chr($i === 3 ? 0 : $i) . random_bytes(200)); }'];
        yield 'garbage without it' => ['for ($i = 0; $i < 256; $i++) { wire()->packet(random_bytes(300)); }'];
        yield 'a value without the secret' => [
            'wire()->packet(str_repeat("x", 32) . "\x03" . ' . self::ONE . ');'
                . ' wire()->packet(str_repeat("x", 32) . "\0" . Messages::left());',
        ];
        yield 'packets without an end' => ['for ($i = 0; $i < 300; $i++) { wire()->packet(wire()->secret() . "\1"'
            . ' . str_repeat("x", 30000)); } wire()->packet(wire()->secret() . "\2");'];
        yield 'empty packets' => ['for ($i = 0; $i < 100; $i++) { wire()->packet(""); }'];
        yield 'a flood' => [
            '$packet = str_repeat("x", 30000); for ($i = 0; $i < 3000; $i++) { wire()->packet($packet); }',
        ];
    }

    public function testTwoEndsOfOneEntryDisturbNobodyElse(): void
    {
        $lie = 'wire()->part(' . self::ONE . '); wire()->say(Messages::left());';
        self::assertSame(1, $this->enter("$lie $lie $lie return 'the truth';"));
        // What is left over is its own answers, and those are all that it can get wrong. The caller may have
        // heard and dropped the first part of one of them, so that the rest is no value.
        $unread = 'sandbox bailed out: its value cannot be read';
        for ($i = 0; $i < 6; $i++) {
            try {
                $later = $this->enter('return "later";');
            } catch (Exception $exception) {
                $later = $exception->getMessage();
            }
            self::assertContains($later, [1, 'the truth', 'later', $unread]);
        }
        $this->assertCallerGoesOn();
    }

    public function testOneThatAnswersBeforeItHasHeardIsEnded(): void
    {
        // Else what it does not read would stay with the caller, entry by entry.
        $lie = 'wire()->part(' . self::ONE . '); wire()->say(Messages::left());';
        // More than a caller hears at once.
        self::assertSame(1, $this->enter(str_repeat($lie, 40) . " return 'the truth';"));
        $long = [str_repeat('x', 20 << 20)];

        $told = 'sandbox unusable: it answered before it was asked';
        $enter = fn (): mixed => $this->runtime->enter(static fn (string $long): int => strlen($long), $long);
        self::assertSame($told, self::failure($enter));
        self::assertSame($told, self::failure($enter));
        $this->assertCallerGoesOn();
    }

    public function testPartsWithoutAnEndLastUntilTheDeadline(): void
    {
        $message = self::failure(fn (): mixed => $this->runtime->enter(static function (): void {
            $part = str_repeat("\0", 32000);
            while (true) {
                \wire()->part($part);
            }
        }, timeoutMs: self::SHORT_MS));

        self::assertStringStartsWith('sandbox unusable: the deadline of 700 ms passed', $message);
        self::assertLessThan(400 << 20, self::peak(), 'What is too much is not kept.');
        $this->assertCallerGoesOn();
    }

    public function testFloodsOfOutputLastUntilTheDeadline(): void
    {
        $bytes = 0;
        ob_start(static function (string $output) use (&$bytes): string {
            $bytes += strlen($output);

            return '';
        }, 1);
        try {
            $message = self::failure(fn (): mixed => $this->runtime->enter(static function (): void {
                while (true) {
                    echo str_repeat('x', 100_000);
                }
            }, timeoutMs: self::SHORT_MS));
        } finally {
            ob_end_clean();
        }

        self::assertStringStartsWith('sandbox unusable: the deadline of 700 ms passed', $message);
        self::assertGreaterThan(1_000_000, $bytes);
    }

    public function testAValueThatSharesWithoutAnEndIsRefused(): void
    {
        $share = static function (): array {
            $value = [str_repeat('x', 3000)];
            for ($i = 0; $i < 60; $i++) {
                $value = [$value, $value];
            }

            return $value;
        };
        foreach ([true, false] as $guarded) {
            $runtime = $this->runtime(guarded: $guarded);
            self::assertSame(
                'sandbox bailed out: its value is larger than the memory limits of the entry and the caller allow',
                self::failure(static fn (): mixed => $runtime->enter($share, timeoutMs: self::LONG_MS)),
            );
            self::assertSame(1, $runtime->enter(static fn (): int => 1));
        }
    }

    public function testTheSameWhereTheCallersMemoryHasNoLimit(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            $runtime = new Altair\Sandbox\Runtime(['log_errors' => 0, 'display_errors' => 0], guarded: false);
            try {
                $runtime->enter(static function () {
                    $value = ['x'];
                    for ($i = 0; $i < 60; $i++) {
                        $value = [$value, $value];
                    }
                    return $value;
                }, timeoutMs: 700);
            } catch (Altair\Sandbox\Exception $e) {
                say('refused');
            }
            say(memory_get_peak_usage() < 50 << 20);
            PHP), ['-d', 'memory_limit=-1']);

        self::assertSame([0, "refused\ntrue\n", ''], $script->end());
    }

    private function enter(string $code): mixed
    {
        return $this->runtime->enter(static fn (string $code): mixed => eval($code), [$code]);
    }

    private function assertCallerGoesOn(): void
    {
        $value = [1, ['a' => 2]];
        self::assertSame($value, $this->runtime()->enter(static fn (array $a): array => $a, [$value]));
    }

    /** The most memory that this process has had, in bytes. */
    private static function peak(): int
    {
        preg_match('/^VmHWM:\s+(\d+)/m', (string) file_get_contents('/proc/self/status'), $kib);

        return 1024 * (int) $kib[1];
    }
}
