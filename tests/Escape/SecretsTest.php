<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Ways in which a secret gets into an answer. Each is seen to work where nothing is replaced, and to leave nothing
 * of it by default: in the answer, in the output while it is written, and in what is printed of it.
 */
final class SecretsTest extends EvaluationTestCase
{
    /** What is in every kind of text: quotes, slashes, what is not ASCII, and a line feed. */
    private const SECRET = "sé/cr+et \"&'<>\\ \n€0123456789";

    /** The value is `$s` in each. */
    private const LEAKS = [
        'a value' => 'return $s;',
        'inside of a text' => 'return "mysql:password=$s;";',
        'deep inside' => 'return ["a" => [1, (object) ["c" => $s]]];',
        'a key' => 'return [$s => 1, "x$s" => [2]];',
        'the name of a property' => 'return (object) [$s => 1];',
        'the environment' => 'return getenv();',
        'a superglobal' => 'return $_SERVER;',
        'what an object shows' => 'return new class ($s) { function __construct(private $v) { }
            function __debugInfo() { return ["v" => $this->v]; } };',
        'an iterator' => 'return (function () use ($s) { yield $s => $s; })();',
        'a backed enum' => 'return [constant("App\Leak::It")];',
        'output' => 'echo "<$s>";',
        'output in single bytes' => 'foreach (str_split($s) as $byte) { echo $byte; usleep(100); }',
        'output in halves, with time between' => 'echo substr($s, 0, 9); usleep(150000); echo substr($s, 9);',
        'output beside its beginning' => 'echo substr($s, 0, 2), $s, substr($s, 0, 2), "\n";',
        'standard error' => 'fwrite(STDERR, $s);',
        'both streams by turns' => 'echo substr($s, 0, 9); fwrite(STDERR, "x"); echo substr($s, 9);',
        'a warning' => 'echo ${$s};',
        'var_dump' => 'var_dump([$s]);',
        'var_export' => 'var_export([$s => [$s]]);',
        'an exception' => 'throw new RuntimeException("refused: $s");',
        'a previous exception' => 'throw new RuntimeException("no", 0, new LogicException($s));',
        'a fatal error' => 'trigger_error($s, E_USER_ERROR);',
        'the name of a file that is written' => 'file_put_contents("leak-" . rawurlencode($s), "");',
        'the name of a host that is refused' => '@fsockopen(rawurlencode($s), 80);',
        'addslashes()' => 'echo addslashes($s);',
        'htmlspecialchars()' => 'echo htmlspecialchars($s);',
        'htmlspecialchars() with ENT_COMPAT' => 'echo htmlspecialchars($s, ENT_COMPAT);',
        'htmlspecialchars() with ENT_NOQUOTES' => 'echo htmlspecialchars($s, ENT_NOQUOTES);',
        'htmlspecialchars() for HTML 5' => 'echo htmlspecialchars($s, ENT_QUOTES | ENT_HTML5);',
        'HTML by numbers' => 'echo strtr(htmlspecialchars($s), ["&#039;" => "&#39;", "&quot;" => "&#34;"]);',
        'the last output before the deadline' => 'echo $s; usleep(9000000);',
        'the last output of a killed process' => 'echo $s; flush(); trigger_error("x", E_USER_ERROR);',
        'json_encode()' => 'return json_encode(["k" => $s]);',
        'json_encode() with plain slashes' => 'return json_encode($s, JSON_UNESCAPED_SLASHES);',
        'json_encode() with plain Unicode' => 'return json_encode($s, JSON_UNESCAPED_UNICODE);',
        'json_encode() with both plain' => 'return json_encode($s, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);',
        'json_encode() pretty' => 'echo json_encode([[$s]], JSON_PRETTY_PRINT);',
        'json_encode() for HTML' => 'return json_encode($s, JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS
            | JSON_HEX_QUOT);',
        'json_encode() with tags for HTML' => 'return json_encode($s, JSON_HEX_TAG);',
        'json_encode() with quotes for HTML' => 'echo json_encode($s, JSON_HEX_APOS | JSON_HEX_QUOT);',
        'JSON in JSON' => 'return json_encode(["context" => json_encode(["k" => $s])]);',
        'JSON in JSON with plain slashes' => 'echo json_encode(json_encode([$s]), JSON_UNESCAPED_SLASHES);',
        'JSON in JSON with both plain' => 'return json_encode(json_encode($s, 320), 320);',
        'JSON in HTML' => 'echo htmlspecialchars(json_encode([$s]));',
        'urlencode()' => 'return urlencode($s);',
        'rawurlencode()' => 'echo "https://u:" . rawurlencode($s) . "@host/";',
        'http_build_query()' => 'return http_build_query(["p" => $s]);',
        'digits in lower case' => 'return preg_replace_callback("/%../", fn ($m) => strtolower($m[0]), urlencode($s));',
        'base64_encode()' => 'return base64_encode($s);',
        'base64 of something longer' => 'return base64_encode("user:$s");',
        'base64 one further' => 'return base64_encode("user:x$s.");',
        'base64 two further' => 'return base64_encode("user:xy$s..");',
        'base64 for URLs' => 'return strtr(base64_encode("user:$s"), "+/", "-_");',
        'base64 in JSON' => 'return json_encode(base64_encode($s));',
        'a text that is no UTF-8' => 'return "\xff\xfe$s";',
        'output that is no UTF-8' => 'echo "\xff\xfe$s\xff";',
        'a cut of output' => 'echo str_repeat("x", 16384 - 12), $s;',
        'a cut of output in base64' => 'echo str_repeat("x", 16384 - 12), base64_encode($s);',
        'a cut of a value' => 'return str_repeat("x", 10000 - 12) . $s . str_repeat("y", 100);',
        'a cut of a value that is no UTF-8' => 'return "\xff" . str_repeat("x", 10000 - 13) . $s . "yyyyyyyyyyyyyyy";',
        'a cut of everything' => 'return array_fill(0, 999, $s . str_repeat("x", 1500));',
    ];

    /**
     * @dataProvider leaks
     */
    public function testNothingOfItIsLeft(string $snippet, bool $warm): void
    {
        $evaluator = new Evaluator(warm: $warm);

        [$leaked] = $this->say($evaluator, $snippet, false);
        self::assertNotSame([], self::traces($leaked), 'The way does not work: it shows nothing.');

        [$said, $result] = $this->say($evaluator, $snippet, true);
        self::assertSame([], self::traces($said), $said);
        self::assertSame(['SHOP_SECRET'], $result->diagnostics['redacted']);
    }

    /**
     * @return iterable<string, array{string, bool}>
     */
    public static function leaks(): iterable
    {
        foreach (self::LEAKS as $name => $snippet) {
            yield "$name, cold" => [$snippet, false];
            yield "$name, warm" => [$snippet, true];
        }
    }

    public function testItIsLookedForInWhatBootHasRead(): void
    {
        $ways = ['$_ENV["SHOP_SECRET"] = $v;', '$_SERVER["SHOP_SECRET"] = $v;', 'putenv("SHOP_SECRET=$v");'];
        foreach ($ways as $keep) {
            $secret = bin2hex(random_bytes(9));
            $application = $this->application([
                '.env' => $secret,
                'vendor/autoload.php' => '<?php $v = file_get_contents(__DIR__ . "/../.env"); ' . $keep,
            ]);
            foreach ([true, true, false] as $warm) {
                $request = new EvalRequest('echo $GLOBALS["v"]; return "[{$GLOBALS["v"]}]";', $application->root);
                $streamed = '';
                $onOutput = static function (string $type, string $chunk) use (&$streamed): void {
                    $streamed .= $chunk;
                };
                $result = ($this->kept[$warm] ??= new Evaluator(warm: $warm))->evaluate($request, $onOutput);
                self::assertSame('[[redacted:SHOP_SECRET]]', $result->result['value'] ?? null, $keep);
                self::assertSame('[redacted:SHOP_SECRET]', $streamed);
            }
            $this->kept = [];
        }
    }

    public function testABootThatFailsDoesNotSayItEither(): void
    {
        $secret = bin2hex(random_bytes(9));
        $application = $this->application(['config/container.php' => '<?php
            $_ENV["SHOP_SECRET"] = "' . $secret . '"; echo $_ENV["SHOP_SECRET"];
            throw new LogicException("cannot connect with $_ENV[SHOP_SECRET]");']);
        foreach ([true, false] as $warm) {
            $request = new EvalRequest('return 1;', $application->root);
            $result = (new Evaluator(warm: $warm))->evaluate($request);
            self::assertSame('boot_failed', $result->diagnostics['outcome']);
            self::assertStringNotContainsString($secret, (string) json_encode($result->toArray(verbose: true)));
            self::assertSame('cannot connect with [redacted:SHOP_SECRET]', $result->exception['message']);
        }
    }

    /**
     * @dataProvider boots
     */
    public function testABootSaysNothingOfWhatItsFilesHold(string $boot, string $outcome): void
    {
        $secret = bin2hex(random_bytes(9));
        $application = $this->application([
            '.env' => "APP_NAME=shop\nDB_PASSWORD=\"$secret\"\n",
            'vendor/autoload.php' => '<?php $_ENV += parse_ini_file(__DIR__ . "/../.env");
                echo "booting with $_ENV[DB_PASSWORD]"; fwrite(STDERR, $_ENV["DB_PASSWORD"]); ' . $boot,
        ]);
        foreach ([true, true, false] as $warm) {
            $said = '';
            $onOutput = static function (string $type, string $chunk) use (&$said): void {
                $said .= $chunk;
            };
            $request = new EvalRequest('return 1;', $application->root, self::SHORT_MS);
            $evaluator = $this->kept[$warm] ??= new Evaluator(warm: $warm);
            $result = $evaluator->evaluate($request, $onOutput);
            self::assertSame($outcome, $result->diagnostics['outcome']);
            $said .= json_encode($result->toArray(verbose: true), JSON_THROW_ON_ERROR);
            self::assertStringContainsString('booting with [redacted:DB_PASSWORD]', $said);
            self::assertStringNotContainsString($secret, $said);
        }
    }

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function boots(): iterable
    {
        yield 'it succeeds' => ['', 'returned'];
        yield 'it throws' => ['throw new LogicException($_ENV["DB_PASSWORD"]);', 'boot_failed'];
        yield 'a fatal error' => ['trigger_error($_ENV["DB_PASSWORD"], E_USER_ERROR);', 'fatal'];
        yield 'it is killed' => ['posix_kill(getmypid(), SIGKILL);', 'signalled'];
        yield 'it is too slow' => ['while (true);', 'timed_out'];
    }

    public function testTheAuditLogHasNoneOfThemAtAll(): void
    {
        $secret = bin2hex(random_bytes(9));
        $application = $this->application(['.env' => "DB_PASSWORD=$secret\n"]);
        $snippet = "throw new LogicException('cannot connect with $secret');";
        $request = new EvalRequest($snippet, $application->root, unsafe: true, redact: false);

        $result = (new Evaluator())->evaluate($request);

        self::assertSame("cannot connect with $secret", $result->exception['message']);
        $log = (string) file_get_contents($application->path('.altair/events.jsonl'));
        self::assertStringNotContainsString($secret, $log);
        self::assertSame(3, substr_count($log, 'cannot connect with [redacted:DB_PASSWORD]'));
    }

    /** @var array<int, Evaluator> */
    private array $kept = [];

    protected function assertPostConditions(): void
    {
        $this->kept = [];
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->kept = [];
        parent::tearDown();
    }

    /**
     * All that is said of a run: the answer in its two forms, and the output as it came.
     *
     * @return array{string, EvalResult}
     */
    private function say(Evaluator $evaluator, string $snippet, bool $redact): array
    {
        $this->setVariable('SHOP_SECRET', self::SECRET);
        $application = $this->application(['src/Leak.php' => '<?php namespace App;
            enum Leak: string { case It = ' . var_export(self::SECRET, true) . '; }']);
        $streamed = ['out' => '', 'err' => ''];
        $request = new EvalRequest(
            '$s = getenv("SHOP_SECRET"); ' . $snippet,
            $application->root,
            str_contains($snippet, 'usleep(9') ? self::SHORT_MS : self::LONG_MS,
            redact: $redact,
        );
        $onOutput = static function (string $type, string $chunk) use (&$streamed): void {
            $streamed[$type] .= $chunk;
        };
        $result = $evaluator->evaluate($request, $onOutput);
        $answer = $result->toArray(verbose: true);
        // Digits of theirs may be those of the secret.
        unset($answer['diagnostics']['timings_ms']);

        return [implode("\n", [
            json_encode($answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR),
            \Altair\Eval\Support\HumanOutput::render($result),
            ...array_values($streamed),
        ]), $result];
    }

    /**
     * What can be told of the secret from a text: runs of its characters, in the text itself and in what it encodes.
     *
     * @return list<string>
     */
    private static function traces(string $said): array
    {
        // What is written twice has its own escapes escaped.
        $readings = [$said, stripcslashes($said), urldecode($said), urldecode(strtolower($said))];
        preg_match_all('/[A-Za-z0-9+\/_-]{8,}/', $said . stripslashes($said), $words);
        foreach (array_unique($words[0]) as $word) {
            foreach ([0, 1, 2, 3] as $skip) {
                $readings[] = (string) base64_decode(strtr(substr($word, $skip), '-_', '+/'));
            }
        }
        $all = implode("\n", $readings);
        // The beginning, which a cut leaves, and the end.
        $traces = ['sé/cr', 's\u00e9', 'cr+et', '€01234', '\u20ac0123', '0123456789', '6789'];

        return array_values(array_filter($traces, static fn (string $trace): bool => str_contains($all, $trace)));
    }
}
