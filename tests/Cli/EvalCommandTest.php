<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Cli;

use Altair\Cli\Attribute\Argument;
use Altair\Cli\Attribute\Command as CommandAttribute;
use Altair\Cli\Attribute\Option;
use Altair\Eval\Cli\EvalCommand;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Framework\Recorder;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Events\Actor;
use Altair\Events\EventKind;
use Altair\Events\EventStatus;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use ReflectionMethod;

/**
 * The Univeros framework's `eval`: how the framework sees it, what it prints, its exit codes, and its records.
 */
final class EvalCommandTest extends TestCase
{
    private TemporaryApplication $application;

    private string $directory;

    public static function setUpBeforeClass(): void
    {
        require_once dirname(__DIR__) . '/Support/Framework/framework.php';
    }

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->directory = (string) getcwd();
        chdir($this->application->root);
    }

    protected function tearDown(): void
    {
        chdir($this->directory);
    }

    public function testTheFrameworkFindsTheCommandAndItsParameters(): void
    {
        $class = new ReflectionClass(EvalCommand::class);
        $command = $class->getAttributes(CommandAttribute::class)[0]->newInstance();
        $parameters = [];
        foreach ((new ReflectionMethod(EvalCommand::class, '__invoke'))->getParameters() as $parameter) {
            $attribute = $parameter->getAttributes()[0]->newInstance();
            self::assertNotSame('', $attribute->description);
            $name = $attribute instanceof Option ? $attribute->name : Argument::class;
            $default = $parameter->getDefaultValue();
            $parameters[$parameter->getName()] = [(string) $parameter->getType(), $name, $default];
        }

        self::assertSame('eval', $command->name);
        self::assertNotSame('', $command->description);
        self::assertSame(
            [
                'snippet' => ['?string', Argument::class, null],
                'file' => ['?string', 'file', null],
                'timeoutMs' => ['int', 'timeout-ms', 5000],
                'memoryMb' => ['int', 'memory-mb', 128],
                'writes' => ['bool', 'writes', false],
                'network' => ['bool', 'network', false],
                'unsafe' => ['bool', 'unsafe', false],
                'bootstrap' => ['?string', 'bootstrap', null],
                'format' => ['string', 'format', 'human'],
            ],
            // The framework's own; those after them are compared with the table of options.
            array_slice($parameters, 0, 9),
        );
        $framework = ['return 1;', null, 5000, 128, false, false, false, null, 'json'];
        ob_start();
        $exitCode = (new EvalCommand(new Evaluator(warm: false)))(...$framework);
        self::assertSame([0, true], [$exitCode, json_decode((string) ob_get_clean(), true)['ok']]);
    }

    public function testWithNothingToRunItSaysSoAsTheFrameworksOwnDoes(): void
    {
        $script = new Script('require "$root/../../tests/bootstrap.php"; chdir(getenv("ALTAIR_TEST_SHOP"));
            exit((new Altair\Eval\Cli\EvalCommand())());');

        $said = "Provide a snippet as the first argument or --file=<path>.\n";
        self::assertSame([2, $said, ''], $script->end());
    }

    /**
     * @dataProvider snippets
     */
    public function testItPrintsWhatTheNativeCommandPrints(string $snippet): void
    {
        $native = Command::run(['eval', '--timeout-ms=1000', '--', $snippet], $this->application->root);

        [$exitCode, $output] = $this->eval(snippet: $snippet, timeoutMs: 1000);

        self::assertSame(self::comparable($native->output), self::comparable($output));
        self::assertSame([$native->exitCode, ''], [$exitCode, $native->errors]);
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function snippets(): iterable
    {
        yield 'nothing' => ['$a = 1; $b = 2;'];
        yield 'scalars' => ['[1, -1.0, 1e100, NAN, true, null, "it\'s", "\xff", str_repeat("é", 9000)]'];
        yield 'keys' => ['["a b" => 1, "" => 2, 5 => 3, "x.y-z" => [], "é" => [[]], "list" => [1, [2]]]'];
        yield 'a deep array' => ['[[[[[1]]]]]'];
        yield 'a long array' => ['range(1, 1500)'];
        yield 'objects' => ['
            class P { public $self; public $list = [1]; } $p = new P(); $p->self = $p; $p->{"b c"} = new P();
            return ["p" => $p, "empty" => new stdClass()];'];
        yield 'enums' => ['enum A { case X; } enum B: string { case Y = "y"; } enum C: int { case Z = 3; }
            return [A::X, B::Y, C::Z];'];
        yield 'what shows itself' => ['[new DateTimeImmutable("2020-01-02T03:04:05Z"), fn () => 1, STDIN]'];
        yield 'iterators' => ['[new ArrayIterator(["a" => 1]), (function () { yield [1] => 2; yield 1.5 => 3; })(),
            new InfiniteIterator(new ArrayIterator([1])), (function () { yield 1; throw new Exception("x"); })()]'];
        yield 'too large' => ['array_fill(0, 900, str_repeat("x", 9000))'];
        yield 'control characters' => ['["\x1b[31m" => "\u{202e}\u{85}\r\n\t\0", "q" => "\\\\\'"]'];
        yield 'an exception' => ['function f() { throw new LogicException("no", 7, new Exception("why\n")); } f();'];
        yield 'an exception without a message' => ['throw new Exception();'];
        yield 'a slip' => ['return 1 +;'];
        yield 'an exit' => ['exit(3);'];
        yield 'a clean exit' => ['exit(0);'];
        yield 'a fatal error' => ['trigger_error("bad\x07", E_USER_ERROR);'];
        yield 'memory' => ['function g() { return str_repeat("x", PHP_INT_MAX >> 8); } g();'];
        yield 'a deadline' => ['while (true);'];
        yield 'output' => ['echo "a\x1b\nb"; fwrite(STDERR, "oh\n"); return 1;'];
        yield 'long output' => ['echo str_repeat("0123456789abcde\n", 5000);'];
        yield 'a warning' => ['echo $missing;'];
        yield 'what is refused' => ['@shell_exec("id"); @file_get_contents("http://127.0.0.1:9/");'];
        yield 'files' => ['mkdir("d"); file_put_contents("d/new", "x"); unlink("vendor/autoload.php"); return 1;'];
        yield 'a file' => ['file_put_contents("new", "xy");'];
        yield 'while it is encoded' => ['return new class { function __debugInfo() { exit(4); } };'];
    }

    public function testBootThatFailsIsPrintedAsTheNativeCommandDoes(): void
    {
        $this->application->write('config/container.php', '<?php throw new LogicException("no container");');

        $this->testItPrintsWhatTheNativeCommandPrints('return 1;');
    }

    public function testJsonIsTheWholeAnswer(): void
    {
        [$exitCode, $output] = $this->eval(snippet: 'echo "x"; throw new LogicException("no");', format: 'json');

        $answer = json_decode($output, true, flags: JSON_THROW_ON_ERROR);
        self::assertSame([1, false, 'x'], [$exitCode, $answer['ok'], $answer['stdout']]);
        self::assertSame('LogicException', $answer['exception']['class']);
    }

    public function testOptionsReachTheRun(): void
    {
        $file = $this->application->write('snippet.php', '<?php file_put_contents("kept", "1"); return [
            ini_get("memory_limit"), getenv("ALTAIR_EVAL_ALLOW_NETWORK"), get_class(container())];');
        $this->application->write('other/boot.php', '<?php return new class {
            function get($id) { } function has($id) { } };');

        [$exitCode, $output] = $this->eval(
            file: $file,
            memoryMb: 64,
            writes: true,
            network: true,
            bootstrap: 'other/boot.php',
            format: 'json',
        );

        $values = array_column(json_decode($output, true)['result']['value'] ?? [$output], 'value');
        self::assertSame([0, '64M', '1'], [$exitCode, $values[0], $values[1]]);
        self::assertStringContainsString('other/boot.php', $values[2]);
        self::assertFileExists($this->application->path('kept'));
    }

    public function testServicesReadablePathsAndSecretsReachTheRun(): void
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0') ?: self::fail('No listener.');
        $address = stream_socket_get_name($listener, false);
        $connect = "@stream_socket_client('tcp://$address', \$code, \$why, 5) !== false";
        $said = fn (mixed ...$options): string => $this->eval(...$options)[1];
        self::assertStringContainsString('true', $said(snippet: $connect, service: "127.0.0.1:1,$address"));
        self::assertStringContainsString("--service=$address allows it", $said(snippet: $connect, service: 'none'));

        $outside = new TemporaryApplication();
        $file = $outside->write('kept.txt', 'kept');
        $read = '(string) @file_get_contents(' . var_export($file, true) . ')';
        self::assertStringContainsString("--read=$file allows it", $said(snippet: $read));
        self::assertStringContainsString("= 'kept'", $said(snippet: $read, read: "/usr/lib,$file"));

        putenv('APP_TOKEN=s3cr3t-of-tests');
        try {
            $token = 'getenv("APP_TOKEN")';
            self::assertStringContainsString('[redacted:APP_TOKEN]', $said(snippet: $token));
            self::assertStringContainsString('s3cr3t-of-tests', $said(snippet: $token, noRedact: true));
        } finally {
            putenv('APP_TOKEN');
        }
    }

    /**
     * @dataProvider wrongUsage
     */
    public function testWrongUsageIsOneLineOnStandardError(string $arguments, string $said): void
    {
        $script = new Script('require "$root/../../tests/bootstrap.php"; chdir(getenv("ALTAIR_TEST_SHOP"));
            exit((new Altair\Eval\Cli\EvalCommand())(' . $arguments . '));');

        [$exitCode, $output, $errors] = $script->end();

        self::assertSame([2, '', 1], [$exitCode, $output, substr_count($errors, "\n")], $errors);
        self::assertStringStartsWith('altair: ', $errors);
        self::assertStringContainsString($said, $errors);
    }

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function wrongUsage(): iterable
    {
        yield 'an empty snippet' => ['snippet: ""', 'snippet'];
        yield 'two snippets' => ['snippet: "1", file: "x"', 'both a snippet and --file'];
        yield 'no such file' => ['file: "/nowhere"', 'from --file=/nowhere: no such file or directory'];
        yield 'a directory' => ['file: "/"', 'from --file=/: is a directory'];
        yield 'no such format' => ['snippet: "1", format: "xml\x1b"', 'there is no format xml\x1b; there are'];
        yield 'a bootstrap outside' => ['snippet: "1", bootstrap: "/etc/passwd"', '/etc/passwd'];
    }

    public function testTheSnippetCanComeFromStandardInput(): void
    {
        $script = new Script('require "$root/../../tests/bootstrap.php"; chdir(getenv("ALTAIR_TEST_SHOP"));
            exit((new Altair\Eval\Cli\EvalCommand())(file: "-"));');

        // It is /dev/null.
        self::assertStringContainsString('snippet', $script->end()[2]);
    }

    public function testAnUnsafeRunIsRecorded(): void
    {
        $recorder = new Recorder();

        [$exitCode] = $this->eval($recorder, snippet: 'exit(3);', network: true, unsafe: true);

        self::assertSame(1, $exitCode);
        self::assertCount(1, $recorder->events);
        $event = $recorder->events[0]->given;
        self::assertSame(['eval', 'Exited 3.'], [$event['command'], $event['error']]);
        self::assertSame([Actor::Cli, EventKind::Eval, EventStatus::Fail], [
            $event['actor'],
            $event['kind'],
            $event['status'],
        ]);
        self::assertSame(
            [
                'unsafe' => true,
                'allow_writes' => false,
                'allow_network' => true,
                'snippet_length' => 8,
                'timed_out' => false,
            ],
            $event['extra'],
        );
        $log = explode("\n", trim((string) file_get_contents($this->application->path('.altair/events.jsonl'))));
        $logged = json_decode((string) end($log), true);
        self::assertSame(array_intersect_key($logged['extra'], $event['extra']), $event['extra']);
        self::assertSame(['eval', 'fail'], [$logged['kind'], $logged['status']]);

        $this->eval($recorder, snippet: 'return 1;', unsafe: true);
        $event = $recorder->events[1]->given;
        self::assertSame([EventStatus::Ok, null], [$event['status'], $event['error']]);
    }

    public function testAConfinedRunIsNotRecorded(): void
    {
        $recorder = new Recorder();

        $this->eval($recorder, snippet: 'return 1;', writes: true);

        self::assertSame([], $recorder->events);
    }

    public function testAnUnsafeRunThatCouldNotStartIsRecorded(): void
    {
        $this->application->write('.altair', 'no directory');
        $script = $this->unsafeRun(
            'new Altair\Eval\Tests\Support\Framework\Recorder()',
            '$event = $recorder->events[0]->given; say([$event["status"]->name, $event["error"], $event["extra"]]);',
        );

        [$exitCode, $output, $errors] = $script->end();

        [$status, $error, $extra] = json_decode($output, true) ?? self::fail($output . $errors);
        self::assertSame([2, 'Fail'], [$exitCode, $status], $errors);
        self::assertStringContainsString('.altair', $error);
        self::assertSame([false, true], [$extra['timed_out'], $extra['infrastructure_failure']]);
    }

    public function testARecorderThatBreaksLosesNoAnswer(): void
    {
        [$exitCode, $output, $errors] = $this->unsafeRun(
            'new Altair\Eval\Tests\Support\Framework\Recorder(isBroken: true)',
        )->end();

        self::assertSame(0, $exitCode);
        self::assertStringStartsWith("✓ int = 1\n", $output);
        self::assertStringContainsString('.altair/events.jsonl, and was not recorded by', $errors);
        self::assertStringContainsString('the disk is full', $errors);
    }

    private function unsafeRun(string $recorder, string $after = ''): Script
    {
        $root = var_export($this->application->root, true);

        return new Script('require "$root/../../tests/Support/Framework/framework.php";
            require "$root/../../tests/bootstrap.php";
            chdir(' . $root . ');
            $recorder = ' . $recorder . ';
            $exitCode = (new Altair\Eval\Cli\EvalCommand(null, $recorder))(snippet: "return 1;", unsafe: true);
            ' . $after . '
            exit($exitCode);');
    }

    /**
     * @return array{int, string} exit code, output
     */
    private function eval(?Recorder $recorder = null, mixed ...$arguments): array
    {
        ob_start();
        try {
            $exitCode = (new EvalCommand(new Evaluator(warm: false), $recorder))(...$arguments);
        } finally {
            $output = (string) ob_get_clean();
        }

        return [$exitCode, $output];
    }

    /** What is the same for two runs of one snippet. */
    private static function comparable(string $output): string
    {
        return (string) preg_replace(
            ['/ after \d+ms/', '/duration=\d+ms  memory=\d+ KB/'],
            [' after', 'figures'],
            $output,
        );
    }
}
