<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Warm\Answer;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * Boots that end badly, that say something, or that leave something a fork would share.
 */
final class BootTest extends WarmTestCase
{
    private const MENDED = "<?php \$seen = 'mended';";

    /** @dataProvider failures */
    public function testAFailureIsThatOfAColdRunAndIsGoneOnceItIsMended(string $code): void
    {
        $application = $this->application(['vendor/autoload.php' => '<?php', 'config/container.php' => "<?php\n$code"]);
        $cold = $this->cold('echo "the snippet ran"; return 1;');
        self::assertFalse($cold->ok());

        for ($call = 0; $call < 2; $call++) {
            $result = $this->ask('echo "the snippet ran"; return 1;');
            self::assertSame(self::withoutGuards($cold), self::withoutGuards($result));
            self::assertSame([], self::templates(), 'A boot that failed leaves no template.');
        }

        $application->write('config/container.php', '<?php return new class {'
            . ' function has($id) { return true; } function get($id) { return "mended"; } };');
        self::assertSame('mended', self::returned($this->ask('return container("x");')));
        self::assertSame('mended', self::returned($this->warmed('return container("x");')));
    }

    public static function failures(): iterable
    {
        yield 'throws' => ['echo "before"; throw new DomainException("boom", 3);'];
        yield 'throws with a reason' => ['throw new LogicException("a", 1, new RuntimeException("b"));'];
        yield 'does not parse' => ['return 1 +;'];
        yield 'exits' => ['echo "before"; exit(0);'];
        yield 'exits with a status' => ['fwrite(STDERR, "before"); exit(7);'];
        yield 'dies' => ['die("the reason");'];
        yield 'fatal' => ['trigger_error("gone", E_USER_ERROR);'];
        yield 'fatal of the engine' => ['class A { abstract function f(); }'];
        yield 'no memory' => ['ini_set("memory_limit", "16M"); str_repeat("x", 64 << 20);'];
        yield 'returns no container' => ['return "container";'];
        yield 'is killed' => ['posix_kill(getmypid(), SIGKILL); throw new LogicException("it lives");'];
        yield 'crashes' => ['posix_kill(getmypid(), SIGSEGV); throw new LogicException("it lives");'];
        yield 'says and writes' => ['file_put_contents("made", "x"); echo "out"; fwrite(STDERR, "err"); exit(1);'];
        yield 'starts a process' => ['exec("true"); throw new LogicException("after");'];
    }

    public function testTheGuardsOfAFailureAreThoseOfAColdRunButForLandlock(): void
    {
        $this->application(['vendor/autoload.php' => '<?php throw new DomainException("boom");']);

        $inTemplate = ['landlock' => 'degraded to the private root alone while a template boots'];
        $expected = [...$this->cold('1')->diagnostics['guards'], ...$inTemplate];
        self::assertSame($expected, $this->ask('1')->diagnostics['guards']);
    }

    public function testABootThatFailsLaterOnIsNotAnsweredByTheOldTemplate(): void
    {
        $application = $this->booting('require "$root/more.php";', ['more.php' => self::MENDED]);
        $this->warmed();

        $application->write('more.php', '<?php throw new DomainException("boom");');
        self::assertSame('boom', $this->ask('return 1;')->exception['message'] ?? null);

        $application->write('more.php', self::MENDED);
        self::assertSame('mended', self::returned($this->ask('return $GLOBALS["seen"];')));
        $this->warmed();
    }

    /** @dataProvider noises */
    public function testWhatItPrintsIsShownInEachRun(string $boot): void
    {
        $this->booting($boot);
        $snippet = 'echo "run"; fwrite(STDERR, "err of run"); return 1;';
        $cold = Answer::of($this->cold($snippet));
        self::assertStringContainsString('boot', $cold['stdout'] . $cold['stderr']);

        foreach (['first', 'warm', 'warm'] as $start) {
            $result = $start === 'first' ? $this->ask($snippet) : $this->warmed($snippet);
            self::assertSame($cold, Answer::of($result));
        }
    }

    public static function noises(): iterable
    {
        yield 'output' => ['echo "of boot\n";'];
        yield 'errors' => ['fwrite(STDERR, "of boot\n");'];
        yield 'both' => ['echo "out of boot\n"; fwrite(STDERR, "err of boot\n"); print("more\n");'];
        yield 'a warning' => ['echo $undefined_in_boot;'];
        yield 'a deprecation' => ['trigger_error("old in boot", E_USER_DEPRECATED);'];
        yield 'a log line' => ['error_log("of boot");'];
        yield 'a flood' => ['echo "boot"; for ($i = 0; $i < 400; $i++) { echo str_repeat("x", 100), "\n"; }'];
        yield 'what it holds back' => ['ob_start(); echo "of boot";'];
        yield 'what it holds back and lets go' => ['ob_start(); echo "of boot"; ob_end_flush();'];
        yield 'what it changes on the way' => ['ob_start(fn ($s) => strtoupper($s)); echo "of boot"; ob_end_flush();'
            . ' echo "boot";'];
    }

    public function testItsOutputReachesTheObserverOnceInEachRun(): void
    {
        $this->booting('echo "<boot>";');

        foreach (['first', 'warm'] as $start) {
            $seen = '';
            $onOutput = static function (string $type, string $chunk) use (&$seen): void {
                $seen .= $chunk;
            };
            if ($start === 'warm') {
                $this->warmed('return 1;');
            }
            $result = $this->askOf($this->evaluator, 'echo "<run>";', $onOutput);
            self::assertStart($start, $result);
            self::assertSame(['<boot><run>', '<boot><run>'], [$seen, $result->stdout]);
        }
    }

    /** @dataProvider leftovers */
    public function testWhatAForkWouldShareIsBootedInEachChild(string $boot, string $reason, string $use): void
    {
        $this->booting($boot, ['var/app.log' => "begun\n"]);
        $cold = $this->cold("return $use;");
        self::assertOutcome('returned', $cold, 0, value: true);

        for ($call = 0; $call < 3; $call++) {
            $result = $this->ask("return $use;");
            self::assertStart('booted', $result);
            self::assertMatchesRegularExpression($reason, $result->diagnostics['start_reason']);
            self::assertSame(Answer::of($cold), Answer::of($result), "Call $call.");
        }
    }

    public static function leftovers(): iterable
    {
        $log = '[fwrite($GLOBALS["log"], "run\n"), file_get_contents("var/app.log")]';

        yield 'an open log' => ['$log = fopen("$root/var/app.log", "a"); fwrite($log, "boot\n");', '~app\.log~', $log];
        yield 'a file that is open to read' => [
            '$file = fopen("$root/var/app.log", "r");',
            '~app\.log~',
            'fgets($GLOBALS["file"])',
        ];
        yield 'an open directory' => ['$d = opendir("$root/var");', '~/var\b~', 'is_string(readdir($GLOBALS["d"]))'];
        yield 'a temporary file' => [
            '$file = tmpfile(); fwrite($file, "boot");',
            '~/php|deleted~',
            '[fwrite($GLOBALS["file"], "run"), rewind($GLOBALS["file"]), fgets($GLOBALS["file"])]',
        ];
        yield 'a socket pair' => [
            '$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); $ok = $pair !== false;',
            '~connection|socket~',
            '[$GLOBALS["ok"], fwrite($GLOBALS["pair"][0], "x\n"), fgets($GLOBALS["pair"][1])]',
        ];
        yield 'a thread' => [
            '$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, void *);'
                . ' void *dlsym(void *, const char *);"); $t = FFI::new("unsigned long");'
                . ' $ok = $c->pthread_create(FFI::addr($t), null, $c->dlsym(null, "pause"), null);',
            '~thread~',
            '$GLOBALS["ok"] === 0',
        ];
        yield 'a file that is mapped to be written' => [
            '$c = FFI::cdef("char *mmap(void *, size_t, int, int, int, long); int open(const char *, int);'
                . ' int close(int);"); $fd = $c->open("$root/var/app.log", 2);'
                . ' $map = $c->mmap(null, 4096, 3, 1, $fd, 0); $c->close($fd);',
            '~shared memory.*app\.log~',
            '[$GLOBALS["map"][0], $GLOBALS["map"][0] = "X", file_get_contents("var/app.log")]',
        ];
        yield 'a database' => [
            '$d = new SQLite3("$root/var/app.db"); $d->exec("CREATE TABLE t (v)");',
            '~app\.db~',
            '[$GLOBALS["d"]->exec("INSERT INTO t VALUES (1)"), $GLOBALS["d"]->querySingle("SELECT count(*) FROM t")]',
        ];
        yield 'a database of PDO' => [
            '$d = new PDO("sqlite:$root/var/app.db"); $d->query("PRAGMA user_version")->fetchColumn();',
            '~app\.db~',
            '$GLOBALS["d"]->query("SELECT count(*) FROM sqlite_schema")->fetchColumn()',
        ];
    }

    public function testAConnectionThatBootHasMadeAndEnded(): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $address = stream_socket_get_name($server, false);
        $this->booting("\$ok = fclose(stream_socket_client('tcp://$address'));");

        for ($call = 0; $call < 3; $call++) {
            $result = $this->ask('return $GLOBALS["ok"];', allowNetwork: true);
            self::assertTrue(self::returned($result));
            self::assertStart('booted', $result);
            self::assertStringContainsString('connection', $result->diagnostics['start_reason']);
        }
        fclose($server);
    }

    public function testALineOfALogIsNotThereInTheNextRun(): void
    {
        $this->booting('$log = fopen("$root/var/app.log", "a+");', ['var/app.log' => "begun\n"]);
        $snippet = 'fwrite($GLOBALS["log"], "line\n"); rewind($GLOBALS["log"]);'
            . ' return stream_get_contents($GLOBALS["log"]);';

        for ($call = 0; $call < 3; $call++) {
            self::assertSame("begun\nline\n", self::returned($this->ask($snippet)));
        }
        self::assertSame("begun\n", file_get_contents($this->application()->path('var/app.log')));
    }

    /** @dataProvider attempts */
    public function testWhatTheGuardsRefuseInABootEndsAsInAColdRun(string $boot, ?string $reason): void
    {
        $this->booting($boot);
        $snippet = 'return $GLOBALS["ok"] ?? null;';
        $cold = Answer::of($this->cold($snippet));

        for ($call = 0; $call < 3; $call++) {
            $result = $this->ask($snippet);
            self::assertSame($cold, Answer::of($result));
            if ($reason !== null) {
                self::assertStart('booted', $result);
                self::assertMatchesRegularExpression($reason, $result->diagnostics['start_reason']);
            }
        }
    }

    public static function attempts(): iterable
    {
        yield 'a process' => ['$ok = @exec("true") !== false;', '~process~'];
        yield 'a process of proc_open' => ['$ok = @proc_open(["true"], [], $pipes) !== false;', '~process~'];
        yield 'a fork' => ['try { $ok = @pcntl_fork() > 0; } catch (Error) { $ok = "error"; }', '~process~'];
        // A connection that was refused is none.
        yield 'a connection' => [
            '$ok = @stream_socket_client("tcp://127.0.0.1:9", $number, $error, 1) !== false;',
            null,
        ];
        yield 'shared memory' => ['$ok = @shmop_open(0x7a1e0001, "c", 0600, 64) !== false;', null];
        yield 'a semaphore' => ['$ok = @sem_get(0x7a1e0002) !== false;', null];
        yield 'a server' => ['$ok = @stream_socket_server("tcp://127.0.0.1:0") !== false;', null];
    }

    public function testWhatMustBeBootedInEachChildIsSoUntilItChanges(): void
    {
        $application = $this->booting('require "$root/more.php";', [
            'more.php' => '<?php $log = fopen(__DIR__ . "/app.log", "a"); $seen = "old";',
            'app.log' => '',
        ]);
        $read = fn (): EvalResult => $this->ask('return $GLOBALS["seen"];');
        self::assertStart('booted', $read());
        self::assertStart('booted', $read());

        $application->write('more.php', '<?php $seen = "new";');

        self::assertSame('new', self::returned($read()));
        self::assertSame('new', self::returned($this->warmed('return $GLOBALS["seen"];')));
    }

    /**
     * @return array<string, mixed>
     */
    private static function withoutGuards(EvalResult $result): array
    {
        $answer = Answer::of($result);
        unset($answer['diagnostics']['guards']);

        return $answer;
    }
}
