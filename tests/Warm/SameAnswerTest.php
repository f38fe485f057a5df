<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\Warm\Answer;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A snippet has the same answer from a process of its own and from forks of a template.
 */
final class SameAnswerTest extends WarmTestCase
{
    private const BOOT = <<<'PHP'
        spl_autoload_register(static function (string $class) use ($root): void {
            if (is_file($file = "$root/src/" . strtr(substr($class, 4), '\\', '/') . '.php')) {
                require $file;
            }
        });
        file_put_contents("$root/var/cache", "of boot");
        file_put_contents("$root/var/kept", "changed by boot");
        @unlink("$root/var/gone");
        @mkdir("$root/var/made");
        final class Loud
        {
            public function __construct(private string $name) {}
            public function __destruct() { echo $this->name, ' ends. '; }
        }
        $loud = new Loud('of boot');
        register_shutdown_function(static function (): void { echo 'shutdown of boot. '; });
        function thrower(int $n): never
        {
            throw new DomainException("thrown at $n", $n, new LogicException('before'));
        }
        function deep(int $n): int
        {
            return $n === 0 ? thrower($n) : deep($n - 1);
        }
        PHP;

    private const FILES = [
        'config/container.php' => <<<'PHP'
            <?php
            return new class {
                private array $made = [];
                public function has($id) { return $id === 'clock' || $id === 'list'; }
                public function get($id)
                {
                    if (!$this->has($id)) {
                        throw new OutOfBoundsException("No $id.");
                    }
                    return $this->made[$id] ??= $id === 'clock' ? new ArrayObject([1]) : [1, 2];
                }
            };
            PHP,
        'src/Model.php' => "<?php\nnamespace App;\nclass Model\n{\n    public function __construct(public int \$id = 7,"
            . " protected array \$tags = ['a'], private ?Model \$next = null)\n    {\n    }\n}\n",
        'src/Broken.php' => "<?php\nnamespace App;\nclass Broken {\n",
        'var/kept' => 'as it was',
        'var/gone' => 'as it was',
    ];

    private const SNIPPETS = [
        'nothing' => ';',
        'an int' => 'return 1 + 1;',
        'an expression' => '1 + 1',
        'a float' => 'return 0.1 + 0.2;',
        'null' => 'return null;',
        'a string' => 'return str_repeat("é", 9);',
        'a long string' => 'return str_repeat("x", 20000);',
        'bytes' => 'return "\xff\x00";',
        'an array' => 'return ["a" => [1, 2.5, true, null], 3 => []];',
        'a deep array' => 'return [[[[[[[1]]]]]]];',
        'a reference to itself' => '$a = [1]; $a[] = &$a; return $a;',
        'an object' => 'return new App\Model(1, ["x"], new App\Model());',
        'an enum' => 'enum Suit: string { case Hearts = "h"; } return Suit::Hearts;',
        'a closure' => 'return fn (int $a): int => $a;',
        'a generator' => 'return (function () { yield 1; yield 2; })();',
        'a resource' => 'return fopen("php://memory", "r");',
        'a date' => 'return new DateTimeImmutable("2020-01-02 03:04:05 UTC");',
        'an iterator that throws' => 'return new IteratorIterator((function () { yield 1; thrower(3); })());',
        'ids of objects' => 'return [spl_object_id(new stdClass()), new stdClass(), new App\Model()];',
        'container()' => 'return container();',
        'a service' => 'return container("clock");',
        'another service' => 'return container("list");',
        'no service' => 'return container("nothing");',
        'a throw' => 'throw new LogicException("here", 5);',
        'a throw of boot' => 'thrower(4);',
        'a deep throw' => 'return deep(50);',
        'an error' => 'return strlen();',
        'a type error' => 'return deep("x");',
        'no such class' => 'return new App\Nothing();',
        'a parse error' => "\nreturn 1 +;",
        'a parse error of a class' => 'return new App\Broken();',
        'a compile error' => 'class A { abstract function f(); }',
        'a class that there is' => 'class Loud {}',
        'a function that there is' => 'function deep() {}',
        'a warning' => 'echo $nothing; return 1;',
        'a fatal error' => 'trigger_error("gone", E_USER_ERROR);',
        'no memory' => '$s = ""; while (true) { $s .= str_repeat("x", 1 << 20); }',
        'no memory, in small pieces' => '$a = []; while (true) { $a[] = new stdClass(); }',
        'no stack' => 'function f($n) { return f($n + 1) . "x"; } return f(0);',
        'exit' => 'exit;',
        'exit with a status' => 'echo "bye"; exit(3);',
        'exit with a message' => 'exit("message");',
        'exit in a function of shutdown' => 'register_shutdown_function(fn () => exit(4)); return 1;',
        'output' => 'echo "out"; fwrite(STDERR, "err"); print "put"; return 1;',
        'a flood' => 'for ($i = 0; $i < 5000; $i++) { echo "line $i\n"; } return 1;',
        'a flood of errors' => 'for ($i = 0; $i < 5000; $i++) { fwrite(STDERR, "line $i\n"); } return 1;',
        'a buffer' => 'ob_start(); echo "held"; return ob_get_level();',
        'a buffer that changes' => 'ob_start(fn ($s) => strtoupper($s)); echo "held";',
        'a logged error' => 'error_log("logged"); return 1;',
        'functions of shutdown' => 'register_shutdown_function(function () { echo "first. ";'
            . ' register_shutdown_function(fn () => print("second. ")); }); echo "run. "; return 1;',
        'a function of shutdown that throws' => 'register_shutdown_function(fn () => thrower(1)); return 1;',
        'a function of shutdown after a throw' => 'register_shutdown_function(fn () => print("end")); thrower(1);',
        'a destructor' => '$GLOBALS["mine"] = new Loud("of the run"); return 1;',
        'a destructor of a service' => 'container("clock")[] = new Loud("in a service"); return 1;',
        'a destructor after exit' => '$l = new Loud("of the run"); exit(2);',
        'a destructor that throws' => 'class T { function __destruct() { thrower(1); } } $GLOBALS["t"] = new T(); 1;',
        'a cycle' => '$a = new Loud("in a cycle"); $a->self = $a; unset($a); return gc_collect_cycles();',
        'a handler of errors' => 'set_error_handler(fn ($n, $m) => print("[$m]")); echo $nothing; return 1;',
        'a handler of exceptions' => 'set_exception_handler(fn ($e) => print($e->getMessage())); thrower(9);',
        'what boot wrote' => 'return array_map(fn ($f) => @file_get_contents("var/$f"), ["cache", "kept", "gone"]);',
        'what is in a directory of boot' => 'return scandir("var");',
        'writes' => 'file_put_contents("new", "x"); file_put_contents("var/kept", "y"); unlink("src/Model.php"); 1;',
        'writes over what boot wrote' => 'file_put_contents("var/cache", "mine"); rmdir("var/made"); return 1;',
        'takes back what boot wrote' => 'unlink("var/cache"); file_put_contents("var/kept", "as it was");'
            . ' file_put_contents("var/gone", "as it was"); return 1;',
        'a file in a directory of boot' => 'file_put_contents("var/made/x", "y"); return scandir("var/made");',
        'a directory is moved' => 'return [@rename("src", "sources"), is_dir("src")];',
        'a temporary file' => 'file_put_contents(sys_get_temp_dir() . "/x", "y"); return scandir(sys_get_temp_dir());',
        'a refused function' => 'return exec("id");',
        'a refused function, as a callable' => 'return array_map("system", ["id"]);',
        'a refused connection' => 'return @fsockopen("127.0.0.1", 9, $n, $m, 1);',
        'a refused name' => 'return gethostbyname("example.org");',
        'a refused file' => 'return @file_get_contents("/etc/shadow");',
        'a refused signal' => 'return posix_kill(1, 0);',
        'a refused limit' => 'ini_set("memory_limit", "-1"); return ini_get("memory_limit");',
        'a kill' => 'posix_kill(getmypid(), SIGKILL); sleep(9);',
        'a crash' => 'posix_kill(getmypid(), SIGSEGV); sleep(9);',
        'an abort' => 'echo "before"; posix_kill(getmypid(), SIGABRT); sleep(9);',
        'a term' => 'posix_kill(getmypid(), SIGTERM); sleep(9);',
        'an alarm' => 'pcntl_alarm(1); sleep(9); return "slept";',
        'standard input' => 'return [stream_get_contents(STDIN), feof(STDIN)];',
        'where it is' => 'return [getcwd(), __FILE__, __LINE__, __DIR__, get_included_files(), $_SERVER["argv"]];',
        'variables' => 'return [array_keys(get_defined_vars()), isset($loud), isset($GLOBALS["loud"]), isset($root)];',
        'the environment' => '$e = getenv(); ksort($e); return $e;',
        'settings' => 'return array_slice(ini_get_all(null, false), 0, 50);',
        'more settings' => 'return array_slice(ini_get_all(null, false), 50);',
        'a backtrace' => 'return array_map(fn ($f) => array_diff_key($f, ["object" => 1]), debug_backtrace());',
        'classes' => 'return array_slice(get_declared_classes(), -5);',
        'functions' => 'return get_defined_functions()["user"];',
        'constants' => 'return get_defined_constants(true)["user"] ?? [];',
        'who it is' => 'return [posix_getuid(), posix_getgid(), posix_getgroups(), umask()];',
        'where it stands' => 'return ['
            . 'posix_getsid(0) === getmypid(), posix_getpgid(0) === getmypid(), posix_ttyname(0)];',
        'limits' => 'return posix_getrlimit();',
        'signals' => 'pcntl_sigprocmask(SIG_BLOCK, [], $mask); return [$mask, pcntl_signal_get_handler(SIGCHLD)];',
        'its status' => 'return array_values(preg_grep("/^(Cap|NoNewPrivs|Seccomp:|Shd|Sig[BIC])/",'
            . ' @file("/proc/self/status") ?: []));',
        'what it sees of the system' => 'return [@scandir("/"), @scandir("/proc/self/fd"), @scandir("/dev")];',
    ];

    /** @dataProvider snippets */
    public function testIt(string $snippet): void
    {
        $application = $this->booting(self::BOOT, self::FILES);
        $before = $application->tree();
        $this->warmed();

        $cold = Answer::of($this->cold($snippet));

        for ($call = 0; $call < 2; $call++) {
            $result = $this->ask($snippet);
            self::assertSame($cold, Answer::of($result));
            self::assertStart('warm', $result);
        }
        self::assertSame($before, $application->tree());
    }

    public static function snippets(): array
    {
        return array_map(static fn (string $snippet): array => [$snippet], self::SNIPPETS + [
            'a broken end' => '<?php return 1; ?>',
            'an opening tag' => '<?php return 1;',
        ]);
    }

    /** @dataProvider timeouts */
    public function testATimeout(string $snippet): void
    {
        $this->booting(self::BOOT, self::FILES);
        $this->warmed();
        $cold = Answer::of($this->cold($snippet, timeoutMs: self::SHORT_MS));
        self::assertTrue($cold['timed_out']);

        $result = $this->ask($snippet, timeoutMs: self::SHORT_MS);

        self::assertSame($cold, Answer::of($result));
        self::assertStart('warm', $result);
    }

    public static function timeouts(): iterable
    {
        yield 'that computes' => ["\n\nfor (;;);"];
        yield 'that sleeps' => ["echo 'before';\nsleep(60);"];
        yield 'in a function' => ["function f() {\n    while (true) {\n        usleep(100);\n    }\n}\nf();"];
        yield 'in the application' => ['(new ReflectionFunction("usleep"))->invoke(60000000);'];
        yield 'in a destructor' => ['class T { function __destruct() { for (;;); } } $GLOBALS["t"] = new T();'];
        yield 'in a function of shutdown' => ['register_shutdown_function(function () { for (;;); }); return 1;'];
        yield 'that ignores its signals' => [
            'pcntl_async_signals(true);'
                . ' foreach ([1, 2, 3, 10, 12, 13, 14, 15, 25, 26, 27] as $n) { pcntl_signal($n, SIG_IGN); } for (;;);',
        ];
    }
}
