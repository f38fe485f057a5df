<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * Nothing of a run is there for the next one: each fork of a template finds what the one before it found.
 */
final class CarriedOverTest extends TestCase
{
    /** Prints what a run finds. */
    private const FOUND = <<<'PHP'

        $found = ['descriptors' => [], 'signals' => '', 'limits' => ''];
        // F_GETFD 1, F_GETFL 3, F_GETOWN 9, F_GETSIG 11, and the offset.
        for ($f = 0; $f < 64; $f++) {
            $found['descriptors'][] = raw('fcntl', $f, 1) < 0 ? 'none' : implode(' ', [
                raw('fcntl', $f, 1), raw('fcntl', $f, 3), raw('fcntl', $f, 9), raw('fcntl', $f, 11),
                raw('lseek', $f, 0, 1),
            ]);
        }
        $room = buf(64);
        for ($n = 1; $n <= 64; $n++) {
            FFI::memset($room, 0, 64);
            raw('rt_sigaction', $n, 0, $room, 8);
            $found['signals'] .= md5(FFI::string($room, 32));
        }
        raw('rt_sigprocmask', 0, 0, $room, 8);
        $found['mask'] = bin2hex(FFI::string($room, 8));
        for ($n = 0; $n < 16; $n++) {
            raw('prlimit64', 0, $n, 0, $room);
            $found['limits'] .= bin2hex(FFI::string($room, 16));
        }
        FFI::memset($room, 0, 64);
        raw('prctl', 16, $room);
        $found['name'] = FFI::string($room, 16);
        foreach (['/', '/tmp', sys_get_temp_dir(), '/dev', '/etc', '/.altair-backstage', $root, "$root/vendor"] as $d) {
            $found[$d] = @scandir($d);
        }
        $found['data'] = [@file_get_contents("$root/data.txt"), @fileperms("$root/data.txt"),
            @filemtime("$root/data.txt"), @md5_file("$root/vendor/autoload.php")];
        $lock = fopen("$root/data.txt", 'r');
        $found['lock'] = flock($lock, LOCK_EX | LOCK_NB);
        umask($mask = umask());
        $found += ['umask' => $mask, 'cwd' => getcwd(), 'environment' => getenv(),
            'ini' => md5(serialize(ini_get_all())),
            'functions' => count(get_defined_functions()['user']), 'classes' => count(get_declared_classes()),
            'files' => get_included_files(), 'filters' => stream_get_filters(), 'wrappers' => stream_get_wrappers(),
            'locale' => setlocale(LC_ALL, '0'), 'zone' => date_default_timezone_get()];
        echo "\n", json_encode($found, JSON_INVALID_UTF8_SUBSTITUTE);
        PHP;

    /** What its own run finds otherwise than before. */
    private const SEEN = [
        'flags of standard input' => 'raw("fcntl", 0, 4, 04000);',
        'an offset of standard input' => 'raw("lseek", 0, 1 << 20, 0); raw("fcntl", 0, 4, 02000);',
        'flags of output' => 'raw("fcntl", 1, 4, 04000);',
        'flags of errors' => 'raw("fcntl", 2, 4, 04000);',
        'flags of its channel' => 'raw("fcntl", 3, 4, 04000);',
        'flags of descriptors' => 'raw("fcntl", 0, 2, 1); raw("fcntl", 1, 2, 1);',
        'a closed standard input' => 'raw("close", 0);',
        'another standard input' => 'raw("dup3", 2, 0, 0);',
        'a descriptor' => '$GLOBALS["kept"] = fopen("$root/data.txt", "r");',
        'a temporary file' => 'file_put_contents(sys_get_temp_dir() . "/new", "x");',
        'a temporary directory' => 'mkdir(sys_get_temp_dir() . "/new");',
        'a lock on a file of the project' =>
            '$GLOBALS["lock"] = fopen("$root/data.txt", "r"); flock($GLOBALS["lock"], 2);',
        'the mask of modes' => 'umask(0);',
        'the working directory' => 'chdir("/");',
        'the environment' => 'putenv("LD_PRELOAD=/x"); putenv("ALTERED=1");',
        'settings' => 'ini_set("precision", "3"); ini_set("include_path", "/x");',
        'limits' => 'raw("prlimit64", 0, 7, pack("PP", 70, 70), 0);',
        'blocked signals' => 'raw("rt_sigprocmask", 0, str_repeat("\xff", 8), 0, 8);',
        'ignored signals' => 'pcntl_signal(SIGTERM, SIG_IGN); pcntl_signal(SIGUSR1, SIG_IGN);',
        'a handler of signals' => 'pcntl_signal(SIGUSR1, static fn () => 1);',
        'its name' => 'raw("prctl", 15, "other");',
        'a function' => 'eval("function planted() {}");',
        'a class' => 'eval("class Planted {}");',
        'a stream wrapper' => 'stream_wrapper_register("planted", "ArrayObject");',
        'no stream wrapper' => 'stream_wrapper_unregister("file");',
        'a time zone' => 'date_default_timezone_set("Asia/Tokyo");',
        'a locale' => 'setlocale(LC_ALL, "C.UTF-8", "C.utf8") && setlocale(LC_NUMERIC, "C");',
    ];

    /** The same in the project: its layer is its own. */
    private const WRITTEN = [
        'a file in the project' => 'file_put_contents("$root/new", "x");',
        'a file of the project with other content' => 'file_put_contents("$root/data.txt", "other");',
        'a file of the project with another mode' => 'chmod("$root/data.txt", 0600);',
        'a file of the project with another time' => 'touch("$root/data.txt", 1);',
        'a file of the project that is gone' => 'unlink("$root/data.txt");',
        'code that boot has read' => 'file_put_contents("$root/vendor/autoload.php", "<?php exit(1);");',
        'code that boot has read and that is gone' => 'unlink("$root/vendor/autoload.php"); rmdir("$root/vendor");',
    ];

    /** What would go on, or stay, after it. */
    private const LINGERING = [
        'threads that wait' => '$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, void *);'
            . ' void *dlsym(void *, const char *);"); $t = FFI::new("unsigned long"); $p = $c->dlsym(null, "pause");'
            . ' for ($i = 0; $i < 60; $i++) { $c->pthread_create(FFI::addr($t), null, $p, null); }',
        'a child' => 'if (raw("clone", 17, 0, 0, 0, 0) === 0) { while (true) { sleep(100); } }',
        'a child of its keeper' => '$b = buf(8); if (raw("clone", 0x1209000, 0, $b, $b, $b) === 0) {'
            . ' while (true) { sleep(100); } }',
        'a timer' => 'raw(' . self::SETITIMER . ', 0, pack("P4", 0, 1, 0, 1), 0);',
        'a file in memory' => '$m = raw("memfd_create", "m", 0); raw("write", $m, "x", 1);',
        'System V objects' =>
            'raw("shmget", 4242, 4096, 01666); raw("msgget", 4242, 01666); raw("semget", 4242, 1, 01666);',
        'a message queue' => 'raw("mq_open", "altair-escape", 0102, 0666, 0);',
        'an abstract socket' => '$l = raw("socket", 1, 1, 0); raw("bind", $l, pack("v", 1) . "\0altair-escape", 16);',
        'a file in shared memory' => 'file_put_contents("/dev/shm/altair-escape", "x");',
        'mounts' => 'raw("mount", "x", "/tmp", "tmpfs", 0, 0); raw("umount2", $root, 2);'
            . ' raw("umount2", "/.altair-backstage", 2); raw("umount2", "/tmp", 2); raw("unshare", 0x20000);',
        'files behind the cover' => 'file_put_contents("/.altair-backstage/new", "x");'
            . ' mkdir("/.altair-backstage/.run"); rmdir("/.altair-backstage");'
            . ' file_put_contents("/.altair-backstage/.run/upper0/new", "x");'
            . ' rename("/.altair-backstage", "/moved"); symlink($root, "/.altair-backstage/link");',
        'files in the root' => 'file_put_contents("/new", "x"); mkdir("/dev/new"); file_put_contents("/etc/new", "x");'
            . ' @unlink("/dev/null"); chmod("/dev/null", 0);',
        'a shutdown function' => 'register_shutdown_function(static fn () => file_put_contents("/tmp/new", "x"));',
        'its end by a signal' => 'posix_kill(getmypid(), SIGKILL);',
        'its end by a fault' => 'FFI::string(FFI::cast("char *", 16), 1);',
    ];

    private const SETITIMER = 'php_uname("m") === "x86_64" ? 38 : 103';

    /** @var array<string, WarmHost> by setting */
    private static array $hosts = [];

    /** @var array<string, array<string, mixed>> what a run finds, by setting */
    private static array $first = [];

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider written
     */
    public function testWhatARunHasWrittenIsAsBeforeInTheNext(string $snippet, Setting $setting): void
    {
        [$first, $now, $next] = $this->inTurn($snippet, $setting);

        Place::hasMounts()
            ? self::assertNotSame($first, $now, 'It has changed nothing.')
            : self::assertSame($first, $now, 'Without a layer, nothing can be written.');
        self::assertSame($first, $next);
    }

    /**
     * @dataProvider seen
     */
    public function testWhatARunHasChangedIsAsBeforeInTheNext(string $snippet, Setting $setting): void
    {
        [$first, $now, $next] = $this->inTurn($snippet, $setting);

        self::assertNotSame($first, $now, 'It has changed nothing.');
        self::assertSame($first, $next);
    }

    /**
     * @dataProvider lingering
     */
    public function testNothingOfARunGoesOn(string $snippet, Setting $setting): void
    {
        [$first, , $next] = $this->inTurn($snippet, $setting);

        self::assertSame($first, $next);
    }

    public static function written(): iterable
    {
        return self::inEachSetting(self::WRITTEN);
    }

    public static function seen(): iterable
    {
        return self::inEachSetting(self::SEEN);
    }

    public static function lingering(): iterable
    {
        return self::inEachSetting(self::LINGERING);
    }

    /**
     * @param array<string, string> $snippets
     */
    private static function inEachSetting(array $snippets): iterable
    {
        foreach ($snippets as $name => $snippet) {
            foreach (Setting::NATIVE as $setting) {
                if ($setting->isPossible()) {
                    yield "$name: $setting->value" => [$snippet, $setting];
                }
            }
        }
    }

    /**
     * @return list<array<string, mixed>> what was found before the snippet, after it in its own run, and in the next
     */
    private function inTurn(string $snippet, Setting $setting): array
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $found = '$root = ' . var_export($host->project, true) . "; %s\n" . self::FOUND;
        self::$first[$setting->value] ??= self::printed($host->evaluateWarm(sprintf($found, '')));
        $processes = $host->processes();
        $descriptors = $host->descriptors();

        $run = $host->evaluate(strtr($found, ['%s' => "try { $snippet } catch (Throwable) { }"]));
        $next = $host->evaluate(strtr($found, ['%s' => '']));

        self::assertSame(['warm', 'warm'], [$run['diagnostics']['start'], $next['diagnostics']['start']]);
        self::assertSame('returned', $next['diagnostics']['outcome'], json_encode($next));
        self::assertSame([$processes, $descriptors], [$host->processes(), $host->descriptors()]);

        return [self::$first[$setting->value], self::printed($run), self::printed($next)];
    }

    /**
     * @param array<string, mixed> $result
     * @return array<string, mixed> what it has printed last
     */
    private static function printed(array $result): array
    {
        return json_decode((string) strrchr($result['stdout'], "\n"), true) ?? ['printed' => $result['stdout']];
    }
}
