<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Forgery\ForgingApplication;
use Altair\Eval\Tests\Support\Forgery\Wire;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * Whatever a run says, and however much of it, costs its host little memory and no time beyond the deadline. Each is a
 * host of its own, a PHP with the memory limit of a web server.
 */
final class HostHealthTest extends TestCase
{
    private const DEADLINE_MS = 1000;

    /** The same of a run that takes that long to put its message together. */
    private const LONG_DEADLINE_MS = 5000;

    /** The same of a run that is done in a tenth of that. */
    private const SHORT_DEADLINE_MS = 500;

    /** Milliseconds after the deadline in which an answer has to be there. */
    private const TIME_BEYOND_MS = 200;

    /** What a host may need for one evaluation beyond what an honest one needs, in KiB. */
    private const MEMORY_BEYOND_KB = 64 * 1024;

    private const HOST_MEMORY = '128M';

    private const SECRET = '______';

    /** A long one: it stands for the secret. */
    private const SECRET_NAME = 'APP_SECRET_OF_WHICH_THE_NAME_IS_LONGER_THAN_ITS_VALUE';

    /** A host that evaluates something honest, and then an attack; both are asked for all that they say. */
    private const HOST = <<<'PHP'
        $request = fn (string $snippet) => new EvalRequest(
            $snippet,
            getenv('ALTAIR_TEST_APPLICATION'),
            (int) getenv('ALTAIR_TEST_DEADLINE'),
        );
        $peak = static function (): int {
            preg_match('/^VmHWM:\s*(\d+)/m', file_get_contents('/proc/self/status'), $of);
            return (int) $of[1];
        };
        $attack = getenv('ALTAIR_TEST_ATTACK');
        $isWarm = getenv('ALTAIR_TEST_WARM') === '1';
        json_encode((new Evaluator(warm: false))->evaluate($request('return 1;'))->toArray());
        $before = $peak();
        $evaluator = new Evaluator(warm: $isWarm);
        putenv('ALTAIR_TEST_FLOOD=1');
        $began = hrtime(true);
        $result = $evaluator->evaluate($request($attack));
        $took = (hrtime(true) - $began) / 1e6;
        $bytes = strlen(json_encode($result->toArray()));
        say([
            'ms' => $took,
            'kb' => $peak() - $before,
            'outcome' => $result->diagnostics['outcome'],
            'bytes' => $bytes,
            'stdout' => $result->stdout,
            'stderr' => $result->stderr,
        ]);
        PHP;

    /** A message of 15 MB, and the same with another byte at a place, as often as there may be. */
    private const SIXTY_FOUR = <<<'PHP'
        $message = %s;
        for ($i = 0; $i < 64; $i++) {
            $message[%s] = chr(48 + $i);
            wire()->say($message);
        }
        PHP;

    /** Text that is long enough to hold a message of its own, in the snippet. */
    private const LONG = 'str_repeat("x", 15_000_000)';

    /**
     * Before: all that was said to be refused was kept, and looked for on the disk; JSON of 14 MB became hundreds of
     * megabytes, and PHP's arrays of it ended the host.
     *
     * @dataProvider attacks
     */
    public function testTheHostStaysWell(string $attack, int $deadlineMs = self::DEADLINE_MS): void
    {
        $answer = $this->answer($attack, ['ALTAIR_TEST_DEADLINE' => (string) $deadlineMs]);

        self::assertStringContainsString(Wire::SENT, $answer['stderr'], 'Else this shows nothing.');
        $this->assertStaysWell($answer, $deadlineMs);
    }

    public static function attacks(): iterable
    {
        yield 'refused, 64 of 15 MB' => [sprintf(self::SIXTY_FOUR, 'Messages::refused(' . self::LONG . ')', '5')];
        yield 'refused, 64 that end otherwise' => [
            sprintf(self::SIXTY_FOUR, 'Messages::refused(' . self::LONG . ')', '15_000_004'),
        ];
        yield 'refused, 64 with long guards' => [
            sprintf(self::SIXTY_FOUR, 'Messages::refused("x", ' . self::LONG . ')', '7'),
        ];
        yield 'refused, 64 with long switches' => [
            sprintf(self::SIXTY_FOUR, 'Messages::refused("x", "ini", ' . self::LONG . ')', '12'),
        ];
        yield 'outside, 64 of 15 MB' => [
            sprintf(self::SIXTY_FOUR, 'Messages::outside("/" . ' . self::LONG . ')', '6'),
        ];
        yield 'outside, 64 to be written' => [
            sprintf(self::SIXTY_FOUR, 'Messages::outside("/" . ' . self::LONG . ', true)', '6'),
        ];
        yield 'outside, of many parts' => [
            sprintf(self::SIXTY_FOUR, 'Messages::outside(str_repeat("/x", 7_500_000))', '6'),
        ];
        foreach (self::values() as $name => $json) {
            yield "returned, $name" => [self::reported("Messages::returned($json)", 0)];
            yield "threw, $name" => [self::reported("Messages::threw($json)", 1)];
        }
        $text = 'str_repeat("x", 14_000_000)';
        $frames = 'Messages::location("x", 1, "f (x:1)", 1_000_000)';
        yield 'fatal, a long message' => [self::reported("Messages::fatal($text)", 255)];
        yield 'fatal, many frames' => [self::reported("Messages::fatal('x', $frames)", 255)];
        yield 'fatal, empty frames' => [
            self::reported('Messages::fatal("x", Messages::location("x", 1, "", 14_000_000))', 255),
        ];
        yield 'fatal, a long file' => [self::reported("Messages::fatal('x', Messages::location($text, 1))", 255)];
        yield 'out of memory, many frames' => [self::reported("Messages::outOfMemory('x', $frames)", 255)];
        yield 'stopped, many frames' => [
            "wire()->say(Messages::stopped(1, $frames)); pcntl_sigprocmask(SIG_BLOCK, range(34, 64)); for (;;);",
        ];
        // On a busy machine it takes more than a second to make them.
        yield 'guards, a million' => ['$g = []; for ($i = 0; $i < 1_000_000; $i++) { $g["g$i"] = "x"; }'
            . ' $m = Messages::guarded($g); unset($g); wire()->say($m); wire()->leave(0);', self::LONG_DEADLINE_MS];
        yield 'reports, one after the other' => [
            '$m = Messages::report(Messages::returned(str_repeat("[", 14_000_000)));'
                . ' for ($i = 0; $i < 40; $i++) { wire()->say($m); } wire()->leave(0);',
        ];
    }

    /**
     * Before: these ended as they do; a message under the secret that happened to be one was believed.
     *
     * @dataProvider floods
     */
    public function testAFloodEndsAtTheDeadline(string $flood): void
    {
        $answer = $this->answer($flood);

        self::assertSame('timed_out', $answer['outcome']);
        self::assertStringContainsString(Wire::SENT, $answer['stderr'], 'Else this shows nothing.');
        $this->assertStaysWell($answer);
    }

    public static function floods(): iterable
    {
        yield 'refused' => ['for ($i = 0;; $i++) { wire()->say(Messages::refused("tried $i")); }'];
        yield 'the same refused' => ['$m = Messages::refused("tried"); for (;;) { wire()->say($m); }'];
        yield 'refused, large' => [
            '$m = Messages::refused(str_repeat("x", 200_000));'
                . ' for ($i = 0;; $i++) { $m[5] = chr($i & 127); $m[6] = chr($i >> 7 & 127); wire()->say($m); }',
        ];
        yield 'outside' => ['for ($i = 0;; $i++) { wire()->say(Messages::outside("/etc/$i", true)); }'];
        yield 'reports' => [
            '$m = Messages::report(Messages::returned(' . self::LONG . ')); for (;;) { wire()->say($m); }',
        ];
        yield 'stopped' => [
            '$m = Messages::stopped(1, Messages::location("x", 1, "f (x:1)", 500)); for (;;) { wire()->say($m); }',
        ];
        yield 'guards' => ['for ($i = 0;; $i++) { wire()->say(Messages::ready(array_fill($i, 1000, "x"))); }'];
        yield 'garbage' => ['$p = random_bytes(4096); for (;;) { wire()->packet($p); }'];
        yield 'garbage under the secret' => [
            '$p = wire()->secret() . "\0" . random_bytes(30000); for ($i = 0;; $i++) {'
                . ' $p[33] = chr($i % 11); wire()->packet($p); }',
        ];
        yield 'a message without an end' => [
            '$p = wire()->secret() . "\1" . str_repeat("x", 32768); for (;;) { wire()->packet($p); }',
        ];
        yield 'packets that are too large' => ['$p = str_repeat("x", 150_000); for (;;) { wire()->packet($p); }'];
        yield 'empty packets' => ['for (;;) { wire()->packet(""); }'];
        yield 'lengths that lie' => [
            '$p = wire()->secret() . "\0\4" . str_repeat("\xff", 9) . "\1"; for (;;) { wire()->packet($p); }',
        ];
    }

    /**
     * Before: each key was told apart from all before it that are alike once they are redacted, one after the other.
     *
     * @dataProvider alikeKeys
     */
    public function testKeysThatAreAlikeOnceTheyAreRedactedTakeNoLonger(string $snippet): void
    {
        $answer = $this->answer($snippet, [
            self::SECRET_NAME => self::SECRET,
            'ALTAIR_TEST_DEADLINE' => (string) self::SHORT_DEADLINE_MS,
        ]);

        self::assertSame('returned', $answer['outcome']);
        $this->assertStaysWell($answer, self::SHORT_DEADLINE_MS);
    }

    public static function alikeKeys(): iterable
    {
        $shown = self::keys(1000, 10);
        $many = self::keys(16000, 26);

        yield 'an array, of which not all are shown' => ["$many return array_fill_keys(\$keys, null);"];
        yield 'arrays of as many as are shown' => ["$shown return array_fill(0, 16, array_fill_keys(\$keys, null));"];
        yield 'objects' => ["$shown return array_fill(0, 16, (object) array_fill_keys(\$keys, null));"];
        $json = 'json_encode(["type" => "array", "value" => array_fill_keys($keys, null)])';
        yield 'forged' => [self::keys(8000, 20) . self::reported("Messages::returned($json)", 0)];
    }

    /**
     * Before: what boot said to be refused was kept for as long as the template.
     */
    public function testWhatBootSaysCostsTheHostNoMoreThanWhatASnippetSays(): void
    {
        $message = 'Messages::refused(str_repeat("x", 4_000_000))';
        $boot = 'if (getenv("ALTAIR_TEST_FLOOD") === "1") {
                [$secret] = wire()->secretsInMemory() + [""];
                echo $secret === "" ? "no secret" : "said";
                wire()->under($secret);
                ' . sprintf(self::SIXTY_FOUR, $message, '5') . '
                unset($message);
            }';

        $answer = $this->answer('return 1;', ['ALTAIR_TEST_WARM' => '1'], $boot);

        self::assertStringContainsString('said', $answer['stdout'], 'Else this shows nothing.');
        $this->assertStaysWell($answer);
    }

    /**
     * @return iterable<string, string> JSON of 14 MB, as the code that makes it
     */
    private static function values(): iterable
    {
        $list = static fn (string $item): string
            => "'[' . str_repeat('$item,', intdiv(14_000_000, strlen('$item') + 1)) . '0]'";

        yield 'lists' => $list('[0]');
        yield 'numbers' => $list('0');
        yield 'objects' => $list('{"a":{}}');
        yield 'encoded values' => $list('{"type":"int","value":1}');
        yield 'keys' => '(static function (): string {
            for ($i = 0, $json = "{"; strlen($json) < 14_000_000; $i++) { $json .= "\"k$i\":{},"; }
            return $json . "\"k\":0}"; })()';
        yield 'a string' => '\'"\' . str_repeat("x", 14_000_000) . \'"\'';
        yield 'deep lists' => 'str_repeat("[", 7_000_000) . str_repeat("]", 7_000_000)';
        yield 'lists as deep as can be read' => $list(str_repeat('[', 99) . str_repeat(']', 99));
    }

    /**
     * Code that makes so many `$keys`: a row of the secret's one letter is the secret however long it is, and each key
     * is three rows, each of one of `$lengths` lengths.
     */
    private static function keys(int $count, int $lengths): string
    {
        $row = 'str_repeat("_", 6 + intdiv($i, $lengths ** %d) %% $lengths)';
        $rows = implode(' . "-" . ', array_map(static fn (int $of): string => sprintf($row, $of), [0, 1, 2]));

        return "\$lengths = $lengths; for (\$i = 0; \$i < $count; \$i++) { \$keys[] = $rows; }";
    }

    private static function reported(string $ending, int $status): string
    {
        return "wire()->say(Messages::report($ending)); wire()->leave($status);";
    }

    /**
     * @param array{ms: float, kb: int, outcome: string, bytes: int, stdout: string, stderr: string} $answer
     */
    private function assertStaysWell(array $answer, int $deadlineMs = self::DEADLINE_MS): void
    {
        $seen = json_encode(['stdout' => '', 'stderr' => ''] + $answer);
        self::assertLessThanOrEqual($deadlineMs + self::TIME_BEYOND_MS, $answer['ms'], "Milliseconds: $seen");
        self::assertLessThanOrEqual(self::MEMORY_BEYOND_KB, $answer['kb'], "KiB: $seen");
    }

    /**
     * What such a host says of its attack.
     *
     * @param array<string, string> $variables
     * @return array{ms: float, kb: int, outcome: string, bytes: int, stdout: string, stderr: string}
     */
    private function answer(string $attack, array $variables = [], string $boot = ''): array
    {
        $application = new TemporaryApplication(ForgingApplication::files($boot));
        $variables += [
            'ALTAIR_TEST_APPLICATION' => $application->root,
            'ALTAIR_TEST_DEADLINE' => (string) self::DEADLINE_MS,
            'ALTAIR_TEST_ATTACK' => $attack,
        ];
        array_walk($variables, static fn (string $value, string $name): bool => putenv("$name=$value"));
        try {
            $script = new Script(self::HOST, ['-d', 'memory_limit=' . self::HOST_MEMORY]);
        } finally {
            array_map(static fn (string $name): bool => putenv($name), array_keys($variables));
        }
        try {
            $line = $script->line();
        } catch (RuntimeException $thrown) {
            self::fail('The host did not survive. ' . substr($thrown->getMessage(), 0, 400));
        }
        [$status, , $errors] = $script->end();
        self::assertSame(0, $status, $errors);

        return json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    }
}
