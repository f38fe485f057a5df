<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Asked;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Closure;

/**
 * A run that is forked from a template is as if its process had started and booted itself just then: it sees nothing
 * of another run, nor that the boot was not its own. Where that makes sense, a cold run is the measure.
 */
final class FreshRunTest extends EvaluationTestCase
{
    /** What boot does => an expression that gives something else in each run. */
    private const DIFFERENT = [
        'mt_rand()' => ['mt_rand();', '[mt_rand(), mt_rand()]'],
        'rand()' => ['rand();', '[rand(), rand()]'],
        'mt_rand() that boot did not use' => ['', '[mt_rand(), mt_rand()]'],
        'mt_rand() seeded by nothing' => ['mt_srand(42); mt_srand(); mt_rand();', '[mt_rand(), mt_rand()]'],
        'shuffle()' => ['mt_rand();', '(static function () { $a = range(1, 99); shuffle($a); return $a; })()'],
        'str_shuffle()' => ['mt_rand();', 'str_shuffle(str_repeat(implode(range("a", "z")), 4))'],
        'array_rand()' => ['mt_rand();', 'array_rand(range(1, 999), 20)'],
        'lcg_value()' => ['lcg_value();', '[lcg_value(), lcg_value()]'],
        'the entropy of uniqid()' => ['uniqid("", true);', 'substr(uniqid("", true), 13)'],
        'random_int()' => ['random_int(0, 9);', 'random_int(0, PHP_INT_MAX)'],
        'random_bytes()' => ['random_bytes(9);', 'bin2hex(random_bytes(16))'],
        'tempnam()' => ['unlink(tempnam(sys_get_temp_dir(), "x"));', 'tempnam(sys_get_temp_dir(), "x")'],
        'a Randomizer' => ['$r = new Random\Randomizer();', '$GLOBALS["r"]->getInt(0, PHP_INT_MAX)'],
        'an engine' => [
            '$e = new Random\Engine\Mt19937();',
            'bin2hex($GLOBALS["e"]->generate() . $GLOBALS["e"]->generate())',
        ],
        'an engine of a Randomizer' => [
            '$r = new Random\Randomizer(new Random\Engine\Xoshiro256StarStar());',
            '$GLOBALS["r"]->getInt(0, PHP_INT_MAX)',
        ],
        'an engine that was made twice' => [
            '$e = new Random\Engine\PcgOneseq128XslRr64(1); $e->__construct();',
            'bin2hex($GLOBALS["e"]->generate())',
        ],
        'openssl_random_pseudo_bytes()' => [
            'openssl_random_pseudo_bytes(16);',
            'bin2hex(openssl_random_pseudo_bytes(16))',
        ],
        'keys of sodium' => ['sodium_crypto_secretbox_keygen();', 'bin2hex(sodium_crypto_secretbox_keygen())'],
        'random() of SQLite' => [
            '$p = new PDO("sqlite::memory:"); $p->query("SELECT random()")->fetchColumn();',
            '$GLOBALS["p"]->query("SELECT random()")->fetchColumn()',
        ],
    ];

    private const GMP = [
        'gmp_random_bits()' => ['gmp_random_bits(9);', 'gmp_strval(gmp_random_bits(60))'],
        'gmp_random_range()' => ['gmp_random_range(0, 9);', 'gmp_strval(gmp_random_range(0, PHP_INT_MAX))'],
    ];

    /** What boot does => an expression that gives the same in each run, cold or warm. */
    private const SAME = [
        'mt_srand()' => ['mt_srand(42); mt_rand();', '[mt_rand(), rand(), array_rand(range(1, 999), 20)]'],
        'srand()' => ['srand(42);', '[mt_rand(), rand()]'],
        'mt_srand() as a closure' => ['$f = mt_srand(...); $f(42);', '[mt_rand(), rand()]'],
        'mt_srand() with a mode' => ['mt_srand(42, 1);', '[mt_rand(), rand()]'],
        'mt_srand() after use' => ['mt_rand(); mt_srand(); mt_srand(42);', '[mt_rand(), rand()]'],
        'an engine' => ['$e = new Random\Engine\Mt19937(42);', 'bin2hex($GLOBALS["e"]->generate())'],
        'an engine that was made twice' => [
            '$e = new Random\Engine\PcgOneseq128XslRr64(); $e->__construct(42);',
            'bin2hex($GLOBALS["e"]->generate())',
        ],
        'a request time that boot has set' => ['$_SERVER["REQUEST_TIME"] = 5;', '$_SERVER["REQUEST_TIME"]'],
        'the last error' => ['@trigger_error("of boot");', 'error_get_last()["message"]'],
        'output buffers' => ['ob_start();', 'ob_get_level()'],
        'the place of what boot left' => ['chdir("/");', 'getcwd()'],
        'the session of processes' => ['', '[posix_getsid(0) === getmypid(), posix_getpgid(0) === getmypid()]'],
        'descriptors' => [
            '',
            '(static fn () => array_values(array_filter(range(0, 50), static fn (int $n): bool =>'
                . ' @fopen("php://fd/$n", "r") !== false || @fopen("php://fd/$n", "w") !== false)))()',
        ],
        'ids of objects' => ['$o = new stdClass();', 'spl_object_id(new stdClass())'],
        'ids of resources' => ['', 'get_resource_id(fopen("php://memory", "r"))'],
        'ini settings' => ['', 'ini_get_all(null, false)'],
        'the environment' => ['', 'array_keys(getenv())'],
        'files that boot included' => ['', 'get_included_files()'],
        'what boot wrote into the temp directory' => [
            'file_put_contents(sys_get_temp_dir() . "/of-boot", "booted");',
            '[scandir(sys_get_temp_dir()), file_get_contents(sys_get_temp_dir() . "/of-boot")]',
        ],
        'what boot wrote into the project' => [
            'file_put_contents(__DIR__ . "/../of-boot", "booted");',
            'file_get_contents("of-boot")',
        ],
    ];

    private const GMP_SEEDED = [
        'gmp_random_seed()' => ['gmp_random_bits(9); gmp_random_seed(42);', 'gmp_strval(gmp_random_bits(60))'],
    ];

    /** What boot does, what a run leaves, an expression that sees it: what it gives in a run without is the measure. */
    private const LEFT = [
        'a variable' => ['', '$GLOBALS["left"] = 1;', 'isset($GLOBALS["left"])'],
        'a variable of boot' => ['$v = 1;', '$GLOBALS["v"] = 2;', '$GLOBALS["v"]'],
        'a static property' => ['class Shelf { public static $n = []; }', 'Shelf::$n[] = 1;', 'Shelf::$n'],
        'a static variable' => ['function counted() { static $n = 0; return ++$n; }', 'counted();', 'counted()'],
        'a property of an object' => ['$o = new stdClass(); $o->p = 1;', '$GLOBALS["o"]->p = 2;', '$GLOBALS["o"]->p'],
        'an id of an object' => ['', '$left = new stdClass();', 'spl_object_id(new stdClass())'],
        // These two are refused to a snippet's own code.
        'an ini setting' => ['function f() { ini_set("precision", "5"); }', 'f();', 'ini_get("precision")'],
        'a variable of the environment' => ['function f() { putenv("LEFT=1"); }', 'f();', 'getenv("LEFT")'],
        'a locale' => ['', 'setlocale(LC_ALL, "C.UTF-8");', 'setlocale(LC_ALL, "0")'],
        'a time zone' => ['', 'date_default_timezone_set("Asia/Tokyo");', 'date_default_timezone_get()'],
        'an encoding' => ['', 'mb_internal_encoding("ISO-8859-1");', 'mb_internal_encoding()'],
        'a directory' => ['', 'chdir("vendor");', 'getcwd()'],
        'a mask' => ['', 'umask(0123);', 'umask()'],
        'an error handler' => ['', 'set_error_handler("strlen");', 'set_error_handler(null)'],
        'an exception handler' => ['', 'set_exception_handler("strlen");', 'set_exception_handler(null)'],
        'an autoloader' => ['', 'spl_autoload_register(static fn () => 1);', 'count(spl_autoload_functions())'],
        'a class' => ['', 'class Left {}', 'class_exists("Left")'],
        'a function' => ['', 'function left() {}', 'function_exists("left")'],
        'a constant' => ['', 'define("LEFT", 1);', 'defined("LEFT")'],
        'a stream wrapper' => ['', 'stream_wrapper_register("left", "stdClass");', 'stream_get_wrappers()'],
        'a stream filter' => ['', 'stream_filter_register("left", "php_user_filter");', 'stream_get_filters()'],
        'an included file' => ['', 'include "included.php";', 'count(get_included_files())'],
        'the last error' => ['', '@trigger_error("left");', 'error_get_last()["message"] ?? null'],
        'an output buffer' => ['', 'ob_start();', 'ob_get_level()'],
        'a time limit' => ['', 'set_time_limit(1000);', 'ini_get("max_execution_time")'],
        'the collector switched off' => ['', 'gc_disable();', 'gc_enabled()'],
        'a signal handler' => ['', 'pcntl_signal(SIGUSR2, SIG_IGN);', 'pcntl_signal_get_handler(SIGUSR2)'],
        'a blocked signal' => [
            '',
            'pcntl_sigprocmask(SIG_BLOCK, [SIGUSR2]);',
            '(static function () { pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1], $old); return $old; })()',
        ],
        'a token' => ['', 'strtok("a b c", " ");', 'strtok(" ")'],
        'a session id' => ['', 'session_id("left");', 'session_id()'],
        'a temporary file' => ['', 'touch(sys_get_temp_dir() . "/left");', 'scandir(sys_get_temp_dir())'],
        'a changed temporary file of boot' => [
            'file_put_contents(sys_get_temp_dir() . "/of-boot", "booted");',
            'file_put_contents(sys_get_temp_dir() . "/of-boot", "left");',
            'file_get_contents(sys_get_temp_dir() . "/of-boot")',
        ],
        'a file' => ['', 'touch("left");', 'scandir(".")'],
        'a changed file' => ['', 'file_put_contents("included.php", "left");', 'file_get_contents("included.php")'],
        'a changed file of boot' => [
            'file_put_contents(__DIR__ . "/../of-boot", "booted");',
            'file_put_contents("of-boot", "left");',
            'file_get_contents("of-boot")',
        ],
        'a removed file' => ['', 'unlink("included.php");', 'is_file("included.php")'],
        'a row of a database in memory' => [
            '$p = new PDO("sqlite::memory:"); $p->exec("CREATE TABLE t (v)");',
            '$GLOBALS["p"]->exec("INSERT INTO t VALUES (1)");',
            '$GLOBALS["p"]->query("SELECT count(*) FROM t")->fetchColumn()',
        ],
    ];

    private ?TemporaryApplication $booting = null;

    /** @dataProvider different */
    public function testNoTwoRunsDrawTheSame(string $boot, string $expression): void
    {
        $run = $this->template($boot);

        $drawn = [$run("return $expression;"), $run("return $expression;"), $run("return $expression;")];

        self::assertCount(3, array_unique($drawn, SORT_REGULAR), var_export($drawn, true));
    }

    public static function different(): array
    {
        return self::DIFFERENT + (extension_loaded('gmp') ? self::GMP : []);
    }

    /** @dataProvider same */
    public function testWhatBootHasMadeIsAsInAColdRun(string $boot, string $expression): void
    {
        $cold = $this->cold($boot, "return $expression;");
        $run = $this->template($boot);

        self::assertSame([$cold, $cold], [$run("return $expression;"), $run("return $expression;")]);
    }

    public static function same(): array
    {
        return self::SAME + (extension_loaded('gmp') ? self::GMP_SEEDED : []);
    }

    /** @dataProvider left */
    public function testWhatARunLeavesIsNotThereInTheNext(string $boot, string $leave, string $look): void
    {
        $without = $this->cold($boot, "return $look;");
        $run = $this->template($boot);

        self::assertNotSame($without, $run("$leave return $look;"), 'The run itself sees it.');
        self::assertSame($without, $run("return $look;"));
    }

    public static function left(): array
    {
        return self::LEFT;
    }

    public function testEachRunIsAProcessOfItsOwn(): void
    {
        $run = $this->template('$pid = getmypid();');

        $processes = $run('return [$GLOBALS["pid"], getmypid()];');
        [$processes[], $parent] = $run('return [getmypid(), posix_getppid()];');
        $processes[] = $run('return posix_getpid();');

        self::assertCount(4, array_unique($processes), var_export($processes, true));
        self::assertNotContains($parent, $processes, 'The template is not the parent: its end is not seen.');
    }

    /** @dataProvider boots */
    public function testTheTimeOfTheRequestIsThatOfTheRun(string $boot): void
    {
        $run = $this->template($boot);
        $run('return 1;');

        $before = microtime(true);
        [$seconds, $exact, $now] = $run(
            'return [$_SERVER["REQUEST_TIME"], $_SERVER["REQUEST_TIME_FLOAT"], microtime(true)];',
        );

        self::assertGreaterThanOrEqual($before, $exact);
        self::assertLessThanOrEqual($now, $exact);
        self::assertSame((int) $exact, $seconds);
    }

    public static function boots(): iterable
    {
        yield 'boot has not asked' => [''];
        yield 'boot has asked' => ['$asked = $_SERVER["REQUEST_TIME_FLOAT"];'];
        yield 'boot has changed something else' => ['$_SERVER["ELSE"] = 1; $reference = &$_SERVER["REQUEST_TIME"];'];
    }

    public function testThePeakOfMemoryIsThatOfTheRun(): void
    {
        $run = $this->template('$s = str_repeat("x", 40 << 20); unset($s);');
        $run('return 1;');

        self::assertLessThan(4 << 20, $run('return memory_get_peak_usage() - memory_get_usage();'));
        self::assertGreaterThan(8 << 20, $run(
            '$s = str_repeat("x", 10 << 20); unset($s); return memory_get_peak_usage() - memory_get_usage();',
        ));
    }

    public function testTheTimeUsedIsThatOfTheRun(): void
    {
        $used = '(static fn (array $u): int => $u["ru_utime.tv_sec"] * 1000000 + $u["ru_utime.tv_usec"])(getrusage())';
        $run = $this->template("while (($used) < 300000) { md5('x'); }");
        $run('return 1;');

        self::assertLessThan(300000, $run("return $used;"));
    }

    public function testPathsThatBootHasResolvedAreResolvedAgain(): void
    {
        $run = $this->template('realpath("/usr/share");');

        self::assertSame([false, false], [
            $run('return isset(realpath_cache_get()["/usr/share"]);'),
            $run('return isset(realpath_cache_get()["/usr/share"]);'),
        ]);
    }

    public function testARunIsAtTheProjectsRootWhereverBootWent(): void
    {
        $run = $this->template('chdir(sys_get_temp_dir());');
        $at = $run('return getcwd();');
        $root = $this->booting('')->root;

        self::assertSame($root, $at);
        self::assertTrue($run("touch('relative'); return is_file('$root/relative');"));
        self::assertFalse($run('return file_exists("relative");'));
    }

    public function testATimeLimitThatBootHasSetHolds(): void
    {
        $run = $this->template('set_time_limit(1);', whole: true);
        $run('return 1;');

        $result = $run('for (;;) { }');

        self::assertOutcome('fatal', $result, 255);
        self::assertStringContainsString('Maximum execution time of 1 second', $result->diagnostics['message']);
    }

    public function testOutputAndExceptionsAreThoseOfAColdRun(): void
    {
        $boot = 'echo "from boot\n"; error_log("logged by boot"); register_shutdown_function(fn () => print("no"));'
            . ' class Loud { public function __destruct() { echo "no"; } } $loud = new Loud();'
            . ' function thrower() { throw new LogicException("thrown"); }';
        $snippet = 'echo "from the run\n"; error_log("logged"); thrower();';
        $seen = static fn (EvalResult $result): array => [$result->stdout, $result->stderr, $result->exception];

        $cold = $seen($this->ask(new Evaluator(warm: false), $boot, $snippet, 'cold'));
        $run = $this->template($boot, whole: true);

        self::assertSame('thrown', $cold[2]['message']);
        self::assertSame([$cold, $cold], [$seen($run($snippet)), $seen($run($snippet))]);
    }

    /**
     * A template of an application that does `$boot`: runs snippets in forks of it, for as long as it is held.
     *
     * @return Closure(string): mixed the value that a snippet gives; the whole result where `$whole` says so
     */
    private function template(string $boot, bool $whole = false): Closure
    {
        $evaluator = new Evaluator(warm: true);
        $start = 'first';

        return function (string $snippet) use ($evaluator, $boot, $whole, &$start): mixed {
            $result = $this->ask($evaluator, $boot, $snippet, $start);
            $start = 'warm';

            return $whole ? $result : self::returned($result);
        };
    }

    private function cold(string $boot, string $snippet): mixed
    {
        return self::returned($this->ask(new Evaluator(warm: false), $boot, $snippet, 'cold'));
    }

    private function ask(Evaluator $evaluator, string $boot, string $snippet, string $start): EvalResult
    {
        $application = $this->booting($boot);
        if ($start === 'first') {
            Asked::before($evaluator, ['projectRoot' => $application->root]);
        }
        $before = $application->tree();
        $result = $evaluator->evaluate(new EvalRequest($snippet, $application->root, self::LONG_MS));
        self::assertSame($start, $result->diagnostics['start'], var_export($result->toArray(), true));
        self::assertSame($before, $application->tree(), 'Nothing was written into the application.');

        return $result;
    }

    private function booting(string $boot): TemporaryApplication
    {
        return $this->booting ??= $this->application([
            'vendor/autoload.php' => "<?php\n$boot\n",
            'included.php' => "<?php\n",
        ]);
    }

    private static function returned(EvalResult $result): mixed
    {
        self::assertSame('returned', $result->diagnostics['outcome'], var_export($result->toArray(), true));

        return self::plain($result->result);
    }
}
