<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Shell;

use Altair\Eval\Tests\Support\ShellTestCase;

/**
 * `altair shell`: what is shown of a line, and what a line may do.
 */
final class AnswersTest extends ShellTestCase
{
    public function testOutputAndErrorsOfALineFollowItsValue(): void
    {
        $shell = $this->shell();

        self::assertSame(
            "✓ int = 1\n— stdout —\nhello\n— stderr —\noops\n",
            $shell->ask('echo "hello\n"; fwrite(STDERR, "oops\n"); 1'),
        );
        self::assertSame("✓ int = 2\n", $shell->ask('2'));
    }

    public function testOutputThatIsBufferedAppearsWithItsLine(): void
    {
        $shell = $this->shell();

        self::assertSame("✓ null\n— stdout —\nin time\n", $shell->ask('ob_start(); echo "in time\n";'));
        self::assertSame("✓ null\n— stdout —\nmore\n", $shell->ask('echo "more\n";'));
    }

    public function testWarningsNameTheLineOfTheirText(): void
    {
        $shell = $this->shell();

        self::assertSame(
            "✓ null\n— stderr —\nWarning: Undefined variable \$missing in snippet on line 2\n",
            $shell->ask("[\n\$missing][0]"),
        );
        self::assertSame("✓ int = 1\n", $shell->ask('1'));
    }

    public function testAHintIsOfTheSessionsOwnNames(): void
    {
        $shell = $this->shell();
        $shell->ask('function totalOfOrders() {} $orders = new ArrayObject();');

        self::assertStringContainsString('did you mean totalOfOrders()?', $shell->ask('totalOfOrder()'));
        self::assertStringContainsString('did you mean count()?', $shell->ask('$orders->cuont()'));
    }

    public function testALongTextAndADeepArrayAreShownInPart(): void
    {
        $shell = $this->shell();

        self::assertLessThan(100_000, strlen($shell->ask('str_repeat("x", 10_000_000)')));
        self::assertLessThan(1_000_000, strlen($shell->ask('range(1, 1_000_000)')));
        $deep = $shell->ask('$a = []; for ($i = 0; $i < 5000; $i++) { $a = [$a]; } $a');
        self::assertLessThan(100_000, strlen($deep));
        self::assertSame("✓ int = 10000000\n", $shell->ask('strlen(str_repeat("x", 10_000_000))'));
        $shell->ask('$self = []; $self["self"] = &$self;');
        self::assertSame("✓ int = 1\n", $shell->ask('count($self)'));
    }

    public function testShowingAnIteratorDoesNotAdvanceIt(): void
    {
        $this->assertAnswers([
            '$g = (function () { yield 1; yield 2; })();' => '✓ iterable Generator (lazy)',
            '$g' => '✓ iterable Generator (lazy)',
            '$g ' => '✓ iterable Generator (lazy)',
            '$all = []; foreach ($g as $n) { $all[] = $n; } implode(",", $all)' => "✓ string = '1,2'",
            '$i = new ArrayIterator([7, 8]); $i->next(); $i' => '✓ iterable ArrayIterator (2)',
            '$i->current()' => '✓ int = 8',
        ]);
    }

    public function testTheContainerIsThatOfTheApplicationAndKeepsItsEntries(): void
    {
        $this->application(['config/container.php' => <<<'PHP'
            <?php
            return new class implements \Psr\Container\ContainerInterface {
                private array $made = [];
                public function has(string $id): bool { return $id === 'counter'; }
                public function get(string $id): mixed { return $this->made[$id] ??= new ArrayObject(); }
            };
            PHP, 'vendor/autoload.php' => <<<'PHP'
            <?php
            eval('namespace Psr\Container; interface ContainerInterface { function get(string $id); '
                . 'function has(string $id): bool; }');
            PHP]);
        $this->assertAnswers([
            'container("counter")[] = 5;' => '✓ int = 5',
            'container("counter")->count()' => '✓ int = 1',
            'namespace App; container("counter")[0]' => '✓ int = 5',
        ]);
    }

    public function testRefusalsAreToldWithTheirLineAndAllTogether(): void
    {
        $outside = '/etc/altair-outside';
        $shell = $this->shell();
        $write = "  refused: write $outside by filesystem; nothing allows it\n";
        $connect = "  refused: connect to 127.0.0.1:1 by ini; --service=127.0.0.1:1 allows it\n";

        self::assertSame("  nothing was refused\n", $shell->ask(':blocked'));
        self::assertStringContainsString($write, $shell->ask("@file_put_contents('$outside', 1)"));
        $second = $shell->ask('fsockopen("127.0.0.1", 1)');
        self::assertStringContainsString($connect, $second);
        self::assertStringNotContainsString($outside, $second);
        self::assertSame("✓ int = 1\n", $shell->ask('1'));
        $all = $shell->ask(':blocked');
        self::assertStringContainsString($write, $all);
        self::assertStringContainsString($connect, $all);
        self::assertSame(2, substr_count($all, 'refused:'));
        self::assertStringContainsString($connect, $shell->ask('fsockopen("127.0.0.1", 1)'), 'again');
        self::assertFileDoesNotExist($outside);
    }

    /**
     * @dataProvider laterCalls
     */
    public function testWhatIsRefusedToASnippetIsRefusedToWhatEarlierLinesHaveMade(string $made, string $call): void
    {
        $shell = $this->shell();
        $shell->ask($made);
        $shell->ask('1');

        self::assertStringContainsString(
            ' is refused in a confined run to code of the snippet',
            $shell->ask($call),
        );
    }

    /** @return array<string, array{string, string}> */
    public static function laterCalls(): array
    {
        return [
            'a function' => ['function f() { return eval("return 1;"); }', 'f()'],
            'a closure' => ['$f = fn () => eval("return 1;");', '$f()'],
            'a method' => ['class A { function f() { return ini_set("precision", "3"); } }', '(new A())->f()'],
            'a generator' => ['$g = (function () { yield 1; ini_set("precision", "3"); })();', 'foreach ($g as $n);'],
            'a function of a line that did not compile' => [
                'function f() { return eval("return 1;"); } class K {} class K {}', 'f()',
            ],
        ];
    }

    public function testWritesAreShownAndNotKept(): void
    {
        $shell = $this->shell();

        self::assertSame("  nothing was written\n", $shell->ask(':changes'));
        self::assertSame("✓ int = 3\n", $shell->ask('file_put_contents("new.txt", "one")'));
        self::assertSame("✓ string = 'one'\n", $shell->ask('file_get_contents("new.txt")'));
        self::assertSame(
            "  written so far, and not kept:\n    created  new.txt (3 bytes)\n",
            $shell->ask(':changes'),
        );
        self::assertFileDoesNotExist($this->application()->path('new.txt'));
        self::assertSame("booted anew; no variables are left\n", $shell->ask(':restart'));
        self::assertSame("  nothing was written\n", $shell->ask(':changes'));
        self::assertSame("✓ bool = false\n", $shell->ask('file_exists("new.txt")'));
    }

    public function testWritesAreRealIfTheyAreAllowed(): void
    {
        $shell = $this->shell('--writes');

        self::assertSame("✓ int = 3\n", $shell->ask('file_put_contents("new.txt", "one")'));
        self::assertStringEqualsFile($this->application()->path('new.txt'), 'one');
        self::assertSame("  with --writes, what is written is real and not listed\n", $shell->ask(':changes'));
    }

    /**
     * @dataProvider waysOut
     */
    public function testConnectionsAreMadeWhereTheyAreAllowed(string $option, bool $isReached): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $address = (string) stream_socket_get_name($server, false);
        $shell = $this->shell(...array_filter([str_replace('ADDRESS', $address, $option)]));
        $answer = $shell->ask("\$c = stream_socket_client('tcp://$address'); is_resource(\$c)");
        fclose($server);

        self::assertSame($isReached, $answer === "✓ bool = true\n", $answer);
        self::assertSame($isReached ? 0 : 1, substr_count($answer, "refused: connect to $address"), $answer);
    }

    /** @return array<string, array{string, bool}> */
    public static function waysOut(): array
    {
        return [
            'by default' => ['', false],
            'another service' => ['--service=127.0.0.1:9', false],
            'this service' => ['--service=ADDRESS', true],
            'the network' => ['--network', true],
        ];
    }

    public function testSecretsAreRedactedInEachLine(): void
    {
        $this->setVariable('DATABASE_URL', 'mysql://app:hunter2secret@db.example/app');
        $shell = $this->shell();
        $url = 'mysql://app:[redacted:DATABASE_URL]@db.example/app';
        $note = "  redacted: DATABASE_URL; --no-redact shows them\n";

        self::assertSame("✓ string = '$url'\n$note", $shell->ask('$url = getenv("DATABASE_URL")'));
        self::assertSame("✓ null\n{$note}— stdout —\n$url\n", $shell->ask('echo $url, "\n";'));
        self::assertSame(
            "✗ Exception: at [redacted:DATABASE_URL]\n  at snippet:1\n$note",
            $shell->ask('throw new Exception("at " . "hunter2secret");'),
        );
        self::assertSame("✓ int = 13\n", $shell->ask('strlen(parse_url($url, PHP_URL_PASS))'));
        self::assertStringContainsString(':hunter2secret@', $this->shell('--no-redact')->ask('getenv("DATABASE_URL")'));
    }
}
