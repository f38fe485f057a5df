<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * `diagnostics.blocked`: what PHP's own switches refused, in words, in the order in which it was tried, and what its
 * file functions could not have.
 */
final class BlockedTest extends EvaluationTestCase
{
    /** Runs each of the statements, whatever becomes of those before. */
    private const TRY_EACH = 'foreach ([%s] as $try) { try { $try(); } catch (Throwable) { } } return "done";';

    /**
     * @dataProvider connections
     */
    public function testAConnectionIsToldByItsTarget(string $what, string $code): void
    {
        $isService = preg_match('~^connect to ([\w.-]+|\[[0-9a-f:]+\]):\d+$|^connect to /~D', $what) === 1;
        $lift = $isService ? '--service=' . substr($what, strlen('connect to ')) : '--network';
        $this->assertBlocked([[$what, $lift]], $code);
    }

    public static function connections(): iterable
    {
        yield ['connect to 127.0.0.1:8443', 'fsockopen("127.0.0.1", 8443)'];
        yield ['connect to 127.0.0.1:8443', 'fsockopen(port: 8443, hostname: "127.0.0.1")'];
        yield ['connect to 127.0.0.1:8443', 'pfsockopen("ssl://127.0.0.1", 8443)'];
        yield ['connect to 127.0.0.1:8443', 'call_user_func_array("fsockopen", ["127.0.0.1", "8443"])'];
        yield ['connect to [::1]:8443', 'fsockopen("::1", 8443)'];
        yield ['connect to [::1]:8443', 'fsockopen("[::1]", 8443)'];
        yield ['connect to 127.0.0.1:8443', 'stream_socket_client("tcp://127.0.0.1:8443")'];
        yield ['connect to example.com:8443', 'stream_socket_client("tls://example.com:8443/path?query")'];
        yield ['connect to example.com?:1', 'fsockopen("example.com\n", 1)'];
        yield ['resolve example.com', 'gethostbyname("example.com")'];
        yield ['resolve example.com', 'gethostbynamel("example.com")'];
        yield ['resolve 127.0.0.1', 'gethostbyaddr("127.0.0.1")'];
        yield ['resolve example.com', 'dns_get_record("example.com")'];
        yield ['resolve example.com', 'checkdnsrr("example.com")'];
        yield ['connect to example.com', 'file_get_contents("http://example.com/path")'];
        yield ['connect to example.com:81', 'file_get_contents("https://user:secret@example.com:81/path")'];
        yield ['connect to example.com', 'copy("FTP://example.com/x", "/tmp/x")'];
        yield ['connect to example.com', 'new SplFileObject("http://example.com")'];
        yield ['connect to example.com', '@fopen("http://example.com", "r")'];
        yield ['connect to /run/x.sock', 'fsockopen("unix:///run/x.sock")'];
        yield ['connect to /run/x.sock', 'stream_socket_client("unix:///run/x.sock")'];
        yield ['send to 127.0.0.1:53', 'stream_socket_client("udp://127.0.0.1:53")'];
        yield ['fsockopen()', 'fsockopen()'];
        yield ['fsockopen()', 'fsockopen(new stdClass(), [])'];
        yield ['stream_socket_client()', 'stream_socket_client("")'];
        yield ['open a data: URL', 'file_get_contents("data:text/plain,x")'];
        yield from self::databases();
        if (extension_loaded('sockets')) {
            yield ['connect to 127.0.0.1:8443', 'socket_connect(null, "127.0.0.1", 8443)'];
            yield ['connect to /run/x.sock', 'socket_connect(null, "/run/x.sock")'];
            yield ['send to [::1]:53', 'socket_sendto(null, "x", 1, 0, "::1", 53)'];
            yield ['resolve example.com', 'socket_addrinfo_lookup("example.com", "1")'];
        }
        if (extension_loaded('ftp')) {
            yield ['connect to example.com:2121', 'ftp_connect("example.com", 2121)'];
        }
        if (extension_loaded('curl')) {
            yield ['connect to example.com:81', 'curl_exec(curl_init("http://user:secret@example.com:81/path"))'];
            yield ['curl_exec()', 'curl_exec(curl_init())'];
            yield ['curl_exec()', 'curl_exec(null)'];
        }
    }

    /** Clients that make connections of their own. */
    private static function databases(): iterable
    {
        if (extension_loaded('pdo_mysql')) {
            yield ['connect to 127.0.0.1:3399', 'new PDO("mysql:host=127.0.0.1;port=3399", "u", "p")'];
            yield ['connect to db:3306', 'new PDO("mysql:host=db", "u", "p")'];
            yield ['connect to /srv/db.sock', 'new PDO("mysql:unix_socket=/srv/db.sock", "u", "p")'];
        }
        if (extension_loaded('mysqli')) {
            yield ['connect to 127.0.0.1:3399', 'mysqli_connect("127.0.0.1", "u", "p", "d", 3399)'];
            yield ['connect to [::1]:3399', 'new mysqli("[::1]", "u", "p", "d", 3399)'];
        }
        if (extension_loaded('pdo_pgsql')) {
            yield ['connect to 127.0.0.1:5499', 'new PDO("pgsql:host=127.0.0.1;port=5499", "u", "p")'];
            yield ['connect to db:5432', 'new PDO("pgsql:dbname=x;host=db", "u", "p")'];
            yield ['connect to /srv/pg/.s.PGSQL.5433', 'new PDO("pgsql:host=/srv/pg port=5433", "u", "p")'];
            yield ['connect to db:5432', 'new class("pgsql:host=db") extends PDO { }'];
        }
        if (extension_loaded('pgsql')) {
            yield ['connect to db:5432', '@pg_connect("host=\'db\' password=secret")'];
            yield ['connect to db:5499', '@pg_pconnect("postgresql://u:secret@db:5499/x")'];
        }
        if (extension_loaded('redis')) {
            yield ['connect to 127.0.0.1:6399', '(new Redis())->connect("127.0.0.1", 6399)'];
            yield ['connect to cache:6379', '(new Redis())->pconnect("tls://cache")'];
            yield ['connect to /srv/redis.sock', '(new Redis())->connect("/srv/redis.sock")'];
        }
    }

    public function testEachHostOfAListIsTold(): void
    {
        if (!extension_loaded('pdo_pgsql')) {
            Skip::NotInstalled->because('There is no pdo_pgsql.');
        }
        $each = array_map(static fn (string $place): array => ["connect to $place", "--service=$place"], [
            'a:5432', 'b:5432', '/srv/pg/.s.PGSQL.5432',
        ]);
        $this->assertBlocked($each, 'new PDO("pgsql:host=a,b,/srv/pg")');
    }

    public function testAClientFailsAsItDoesWhereNobodyAnswers(): void
    {
        if (!extension_loaded('pdo_pgsql') || !extension_loaded('pdo_mysql')) {
            Skip::NotInstalled->because('There is no pdo_pgsql or no pdo_mysql.');
        }
        $connect = 'try { new PDO("%s:host=127.0.0.1;port=3399"); }'
            . ' catch (PDOException $e) { return $e->getMessage(); }';
        $told = $this->value(sprintf($connect, 'pgsql'));
        self::assertStringStartsWith('SQLSTATE[08006] [7] ', $told);
        self::assertStringContainsString('--service=127.0.0.1:3399 allows it', $told);
        self::assertStringStartsWith('SQLSTATE[HY000] [2002] ', $this->value(sprintf($connect, 'mysql')));
    }

    /**
     * @dataProvider othersThanConnections
     */
    public function testWhatOnlyAnUnsafeRunMayDoIsToldByItsName(string $what, string $code): void
    {
        $this->assertBlocked([[$what, '--unsafe']], $code);
    }

    public static function othersThanConnections(): iterable
    {
        yield ['shell_exec()', 'shell_exec("id")'];
        yield ['shell_exec()', '`id`'];
        yield ['exec()', 'exec("id")'];
        yield ['mail()', 'mail("root@localhost", "s", "b")'];
        yield ['error_log()', 'error_log("x", 1, "root@localhost")'];
        yield ['eval()', 'eval("1;")'];
        yield ['ini_set()', 'ini_set("precision", "1")'];
        yield ['dl()', 'dl("x.so")'];
        yield ['listen on 127.0.0.1:8443', 'stream_socket_server("tcp://127.0.0.1:8443")'];
        if (extension_loaded('FFI')) {
            yield ['FFI::cdef()', 'FFI::cdef("int getpid(void);")'];
            yield ['FFI::cdef()', '(new ReflectionMethod("FFI", "cdef"))->invoke(null, "int getpid(void);")'];
            yield ['FFI::cdef()', 'FFI::cdef(...)("int getpid(void);")'];
            yield ['FFI::load()', 'FFI::load("x.h")'];
            yield ['FFI::scope()', 'FFI::scope("x")'];
            yield ['FFI::new()', '@FFI::new("int[4]")'];
            yield ['FFI::cast()', '@FFI::cast("int", 1)'];
            yield ['FFI::type()', '@FFI::type("int")'];
        }
        if (extension_loaded('sockets')) {
            yield ['listen on 127.0.0.1:8443', 'socket_bind(null, "127.0.0.1", 8443)'];
        }
    }

    public function testNativeCodeIsRefusedWithAnErrorThatSaysSo(): void
    {
        if (!extension_loaded('FFI')) {
            self::assertFalse($this->value('class_exists("FFI")'));

            return;
        }
        $result = $this->evaluate('FFI::cdef("int system(const char *);")->system("id");');

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('FFI::cdef() is refused in a confined run; --unsafe allows it', $result->exception['message']);
        self::assertSame('', $result->stdout);
        self::assertTrue($this->value(
            'try { FFI::cdef(""); } catch (FFI\Exception $refusal) { return $refusal instanceof Error; }',
        ));
        self::assertIsInt($this->value('FFI::cdef("int getpid(void);")->getpid()', unsafe: true));
    }

    public function testEachThingStandsThereOnceInTheOrderInWhichItWasTriedFirst(): void
    {
        $this->assertBlocked(
            [
                ['shell_exec()', '--unsafe'],
                ['connect to 127.0.0.1:2', '--service=127.0.0.1:2'],
                ['connect to 127.0.0.1:1', '--service=127.0.0.1:1'],
                ['eval()', '--unsafe'],
                ['exec()', '--unsafe'],
            ],
            'shell_exec("a")',
            'fsockopen("127.0.0.1", 2)',
            'fsockopen("127.0.0.1", 1)',
            'eval("1;")',
            'fsockopen("127.0.0.1", 2)',
            'shell_exec("b")',
            'exec("a")',
        );
    }

    public function testThereAreTwentyAtMost(): void
    {
        $result = $this->evaluate('foreach (range(1, 100) as $port) {'
            . ' try { fsockopen("127.0.0.1", $port); } catch (Error) { } } return 1;');

        $expected = array_map(static fn (int $port): string => "connect to 127.0.0.1:$port", range(1, 20));
        self::assertSame($expected, array_column($result->diagnostics['blocked'], 'what'));
    }

    public function testALongTargetIsCut(): void
    {
        $result = $this->evaluate('fsockopen(str_repeat("a", 10000), 80);');

        self::assertSame('connect to ' . str_repeat('a', 200) . '...:80', $result->diagnostics['blocked'][0]['what']);
    }

    /**
     * @dataProvider ends
     */
    public function testItIsToldHoweverTheRunEnds(string $outcome, string $end): void
    {
        $result = $this->evaluate("try { shell_exec('id'); } catch (Error) { } $end", timeoutMs: self::SHORT_MS);

        self::assertSame($outcome, $result->diagnostics['outcome']);
        self::assertSame(['shell_exec()'], array_column($result->diagnostics['blocked'], 'what'));
    }

    public static function ends(): iterable
    {
        yield ['exited', 'exit(3);'];
        yield ['fatal', 'trigger_error("x", E_USER_ERROR);'];
        yield ['out_of_memory', 'str_repeat("x", 1 << 30);'];
        yield ['timed_out', 'while (true);'];
    }

    /**
     * @dataProvider reads
     */
    public function testAFileOfTheHostThatIsNotThereToBeReadIsTold(string $code): void
    {
        $elsewhere = new TemporaryApplication(['dir/file' => 'of the host']);
        [$file, $directory] = [$elsewhere->path('dir/file'), $elsewhere->path('dir')];
        $result = $this->evaluate("\$file = '$file'; \$dir = '$directory';"
            . " try { $code; } catch (Throwable) { } return 'done';");

        self::assertSame('done', $result->result['value'] ?? null, var_export($result->toArray(), true));
        $read = str_contains($code, '$dir') ? $directory : $file;
        self::assertSame(
            [['what' => "read $read", 'guard' => 'filesystem', 'lift' => "--read=$read"]],
            $result->diagnostics['blocked'],
        );
    }

    public static function reads(): iterable
    {
        yield 'file_get_contents' => ['@file_get_contents($file)'];
        yield 'fopen' => ['@fopen($file, "rb")'];
        yield 'SplFileObject' => ['new SplFileObject($file)'];
        yield 'file URL' => ['@file("file://$file")'];
        yield 'filter' => ['@readfile("php://filter/resource=$file")'];
        yield 'relative' => ['@file_get_contents("vendor/.." . str_repeat("/..", 9) . $file)'];
        yield 'copied from' => ['@copy($file, "copy")'];
        yield 'scandir' => ['@scandir($dir)'];
        yield 'opendir' => ['@opendir($dir)'];
        yield 'DirectoryIterator' => ['new DirectoryIterator($dir)'];
        yield 'twice' => ['@file_get_contents($file); @fopen($file, "r")'];
    }

    /**
     * @dataProvider writes
     */
    public function testAWriteOutsideOfTheProjectIsTold(string $path, string $code): void
    {
        $shown = new TemporaryApplication(['file' => 'x', 'empty/file' => 'x']);
        $shown->remove('empty/file');
        $result = $this->evaluate(
            '$shown = ' . var_export($shown->root, true) . "; $code; return 'done';",
            readablePaths: [$shown->root],
        );

        self::assertSame('done', $result->result['value'] ?? null, var_export($result->toArray(), true));
        self::assertSame(
            [['what' => "write $shown->root/$path", 'guard' => 'filesystem', 'lift' => '--unsafe']],
            $result->diagnostics['blocked'],
        );
        self::assertSame(['empty', 'file', 'vendor', 'vendor/autoload.php'], $shown->tree());
    }

    public static function writes(): iterable
    {
        yield 'file_put_contents' => ['new', '@file_put_contents("$shown/new", "x")'];
        yield 'fopen' => ['new', '@fopen("$shown/new", "x")'];
        yield 'touch' => ['new', '@touch("$shown/new")'];
        yield 'chmod' => ['file', '@chmod("$shown/file", 0600)'];
        yield 'unlink' => ['file', '@unlink("$shown/file")'];
        yield 'mkdir' => ['new', '@mkdir("$shown/new")'];
        yield 'rmdir' => ['empty', '@rmdir("$shown/empty")'];
        yield 'rename to' => ['new', '@rename("vendor/autoload.php", "$shown/new")'];
        yield 'copy to' => ['new', '@copy("vendor/autoload.php", "$shown/new")'];
    }

    public function testWhatIsSimplyNotThereIsNotTold(): void
    {
        $result = $this->evaluate('@file_get_contents("missing"); @fopen("/nowhere/at/all", "r"); @unlink("missing");'
            . ' @file_get_contents(sys_get_temp_dir() . "/missing"); @unlink(sys_get_temp_dir() . "/missing");'
            . ' file_put_contents($f = sys_get_temp_dir() . "/mine", "x"); chmod($f, 0); @fopen($f, "a");'
            . ' file_exists("/root"); is_dir("/root"); @include "missing.php"; @fopen("missing", "r", true);'
            . ' class_exists("App\Missing"); return file_get_contents("vendor/autoload.php") !== "";');

        self::assertTrue($result->result['value']);
        self::assertArrayNotHasKey('blocked', $result->diagnostics);
    }

    public function testBootIsNotToldOf(): void
    {
        $this->application(['vendor/autoload.php' => '<?php eval("1;"); ini_set("precision", "5");'
            . ' @file_get_contents("/nowhere/at/all");']);

        self::assertArrayNotHasKey('blocked', $this->evaluate('return 1;')->diagnostics);
    }

    public function testWhatAFunctionSaysOfOthersIsTrueToWhatTheyDo(): void
    {
        $this->application(['vendor/autoload.php' => '<?php class Boot { static array $made; }'
            . ' Boot::$made = [function_exists(...), is_callable(...), error_log(...)];']);

        self::assertSame([false, false, false, true, true], $this->value(
            'return [is_callable("shell_exec"), is_callable("\SHELL_EXEC"), function_exists("shell_exec"),'
            . ' is_callable("strlen"), is_callable(fn () => 1)];',
        ));
        self::assertSame([[false], [false]], $this->value(
            'return [array_map(Boot::$made[0], ["exec"]), array_map(Boot::$made[1], ["exec"])];',
        ));
        $mail = $this->evaluate('(Boot::$made[2])("x", 1, "root@localhost");');
        self::assertStringContainsString('refused', $mail->exception['message']);
    }

    /**
     * @param list<array{string, string}> $blocked what and how it is lifted, in order
     */
    private function assertBlocked(array $blocked, string ...$code): void
    {
        $snippet = sprintf(self::TRY_EACH, implode(', ', array_map(static fn (string $c) => "fn () => $c", $code)));
        $result = $this->evaluate($snippet);

        self::assertSame('done', $result->result['value'] ?? null, var_export($result->toArray(), true));
        self::assertSame(
            array_map(static fn (array $b): array => ['what' => $b[0], 'guard' => 'ini', 'lift' => $b[1]], $blocked),
            $result->diagnostics['blocked'] ?? [],
        );
    }
}
