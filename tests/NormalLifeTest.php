<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Escape\Host;
use Altair\Eval\Tests\Support\Escape\RealProject;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * What a snippet may expect of PHP and of the machine is there behind all guards, as root and as an ordinary user.
 */
final class NormalLifeTest extends TestCase
{
    /** Snippets whose value is the same here and in a run: the test evaluates them itself. */
    private const SAME_AS_HERE = [
        'a time zone' => '(new DateTime("2026-07-01 12:00", new DateTimeZone("America/New_York")))->format("c T")',
        'every time zone' => 'md5(implode(array_map(static fn (string $z): string =>'
            . ' (new DateTime("2026-01-15", new DateTimeZone($z)))->format("c T"), DateTimeZone::listIdentifiers())))',
        'changes of a time zone' => 'count((new DateTimeZone("Europe/Berlin"))->getTransitions())',
        'the place of a time zone' => '(new DateTimeZone("Asia/Tokyo"))->getLocation()["country_code"]',
        'the default time zone' => 'date_default_timezone_get()',
        'numbers of a language' =>
            '(new NumberFormatter("de_DE", NumberFormatter::CURRENCY))->formatCurrency(1234.5, "EUR")',
        'dates of a language' =>
            '(new IntlDateFormatter("fr_FR", 0, 0, "Europe/Paris"))->format(1700000000)',
        'sorting in a language' => '(new Collator("sv_SE"))->compare("z", "ö")',
        'transliteration' => 'transliterator_transliterate("Any-Latin; Latin-ASCII", "Ελλάδα")',
        'normal forms' => 'bin2hex(Normalizer::normalize("é", Normalizer::FORM_D))',
        'messages of a language' =>
            'MessageFormatter::formatMessage("en", "{n, plural, one{# dog} other{# dogs}}", ["n" => 3])',
        'encodings by mbstring' => 'bin2hex(mb_convert_encoding("日本語", "SJIS", "UTF-8"))',
        'upper case' => 'mb_strtoupper("straße é")',
        'encodings by iconv' => 'array_map(static fn (string $e): string =>'
            . ' bin2hex((string) iconv("UTF-8", $e, "日本é")),'
            . ' ["UTF-16LE", "EUC-JP//IGNORE", "ISO-8859-1//IGNORE", "UTF-7"])',
        'transliteration by iconv' => 'setlocale(LC_CTYPE, "C.UTF-8") . iconv("UTF-8", "ASCII//TRANSLIT", "café – ok")',
        'a locale' => 'setlocale(LC_ALL, "C.UTF-8", "C.utf8")',
        'JSON' => 'json_encode(json_decode("{\"a\":[1,2.5,null,\"\\u00e9\"]}"), JSON_UNESCAPED_UNICODE)',
        'JIT of regular expressions' => 'ini_get("pcre.jit") . preg_match("/^(?:(a|ab)(c|bcd)(d*))+$/", "abcdabcd")',
        'long regular expressions' => 'preg_match_all("/\b(\w+)\b.*?\1/su", str_repeat("one two three one ", 500))',
        'hashes' => 'array_map(static fn (string $a): string => hash($a, "x"),'
            . ' ["sha256", "sha3-512", "xxh128", "crc32c"])',
        'hashes of openssl' => 'openssl_digest("x", "sha512")',
        'verifying a password' => 'password_verify("x",'
            . ' \'$2y$04$bKC2cjp82Pg6EXX2Ao7ZfOoWyqFTJPVSxmZSWImPJtdH21/A8kfvS\')',
        'the host\'s name' => 'gethostname()',
        'the kernel\'s name' => 'php_uname("s") . php_uname("m") . php_uname("n")',
        'the version' => 'phpversion() . PHP_OS_FAMILY . PHP_INT_SIZE . php_sapi_name()',
        'the versions of extensions' => 'phpversion("intl") . phpversion("pdo_sqlite") . INTL_ICU_DATA_VERSION',
        'an environment variable' => 'getenv("PATH")',
        'tokens' => 'count(token_get_all("<?php fn (\$x) => \$x + 1;"))',
        'kinds of files' => '(new finfo(FILEINFO_MIME_TYPE))->buffer("GIF89a" . str_repeat("\0", 20))',
        'calendars' => 'cal_days_in_month(CAL_GREGORIAN, 2, 2028) . jdtojewish(2461000)',
        'XML' => '(static function () { $d = new DOMDocument(); $d->loadXML("<a><b>1</b><b>2</b></a>");'
            . ' return (new DOMXPath($d))->evaluate("sum(//b)"); })()',
        'stylesheets' => '(static function () { $x = new DOMDocument(); $x->loadXML(\'<x:stylesheet version="1.0"'
            . ' xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:output method="text"/><x:template match="/">'
            . '<x:value-of select="count(//*)"/></x:template></x:stylesheet>\'); $t = new XSLTProcessor();'
            . ' $t->importStylesheet($x); return $t->transformToXml(new SimpleXMLElement("<a><b/></a>")); })()',
        'compression' => 'gzuncompress(gzcompress(str_repeat("x", 1000))) === str_repeat("x", 1000)',
        'SQLite in memory' => '(static function () { $p = new PDO("sqlite::memory:"); $p->exec("CREATE TABLE t (v)");'
            . ' $p->exec("INSERT INTO t VALUES (1), (2), (3)");'
            . ' return $p->query("SELECT group_concat(v) FROM t")->fetchColumn(); })()',
        'the full-text search of SQLite' => '(static function () { $p = new PDO("sqlite::memory:");'
            . ' $p->exec("CREATE VIRTUAL TABLE t USING fts5(v)"); $p->exec("INSERT INTO t VALUES (\'a word\')");'
            . ' return $p->query("SELECT v FROM t WHERE t MATCH \'word\'")->fetchColumn(); })()',
        'a generator' => 'array_sum(iterator_to_array((static function () { yield 1; yield from [2, 3]; })(), false))',
        'a fiber' => '(static function () { $f = new Fiber(static fn () => Fiber::suspend(1) + 1); $f->start();'
            . ' $f->resume(41); return $f->getReturn(); })()',
        'serialisation' => 'unserialize(serialize(new ArrayObject([1, 2])))->count()',
        'a stream in memory' => '(static function () { $f = fopen("php://memory", "w+"); fwrite($f, "abc"); rewind($f);'
            . ' return fread($f, 10); })()',
        'a stream that grows beyond memory' => '(static function () { $f = fopen("php://temp/maxmemory:1024", "w+");'
            . ' fwrite($f, str_repeat("x", 100000)); rewind($f); return strlen(stream_get_contents($f)); })()',
        'a pair of sockets' => '(static function () { $p = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);'
            . ' fwrite($p[0], "abc"); $r = [$p[1]]; $n = null; stream_select($r, $n, $n, 5);'
            . ' return fread($p[1], 3); })()',
        'a signal to itself' => '(static function () { pcntl_async_signals(true); $got = 0;'
            . ' pcntl_signal(SIGUSR1, static function (int $n) use (&$got) { $got = $n; });'
            . ' posix_kill(getmypid(), SIGUSR1); pcntl_signal_dispatch(); return $got; })()',
        'no session' => 'function_exists("session_status") ? session_status() : PHP_SESSION_NONE',
    ];

    /** Snippets that work in a project => what they give. */
    private const IN_THE_PROJECT = [
        'lines of a file' => [
            '$f = new SplFileObject("lines.csv"); $f->setFlags(SplFileObject::READ_CSV); return [...$f][1][1];',
            'two',
        ],
        'a filter of streams' => [
            'return file_get_contents("php://filter/read=string.rot13|convert.base64-encode/resource=config.php");',
            'PD9jdWMgZXJnaGVhIFsieHJsIiA9PiAiaW55aHIiXTs=',
        ],
        'including a file' => ['return (include "config.php")["key"];', 'value'],
        'writing, and reading what was written' => [
            'file_put_contents("new.txt", "x"); return [file_get_contents("new.txt"), is_writable("lines.csv"),'
                . ' filesize("new.txt")];',
            ['x', true, 1],
        ],
        'directories' => [
            'mkdir("a/b", 0755, true); touch("a/b/c"); rename("a/b", "a/d"); $n = scandir("a/d"); unlink("a/d/c");'
                . ' rmdir("a/d"); rmdir("a"); return [$n, is_dir("a")];',
            [['.', '..', 'c'], false],
        ],
        'appending to a file that is there' => [
            'file_put_contents("lines.csv", "3,three\n", FILE_APPEND | LOCK_EX); return count(file("lines.csv"));',
            3,
        ],
        'removing a file that is there' => ['unlink("config.php"); return file_exists("config.php");', false],
        'a database' => [
            '$p = new SQLite3("data.db"); $p->exec("INSERT INTO t VALUES (2)");'
                . ' return $p->querySingle("SELECT sum(v) FROM t");',
            3,
        ],
        'an archive' => ['return file_get_contents("phar://archive.phar/inside.txt");', 'inside'],
        'code of an archive' => ['return require "phar://archive.phar/code.php";', 42],
        'names by a pattern' => ['return count(glob("many/d1*/f1*.txt"));', 11 * 11],
        'XML of a file' => ['return (string) simplexml_load_file("doc.xml")->a;', 'text'],
        'an entity of the project' => [
            '$d = new DOMDocument(); $d->load("entity.xml", LIBXML_NOENT | LIBXML_DTDLOAD);'
                . ' return trim($d->textContent);',
            'inside the project',
        ],
        'where it is' => ['return getcwd() === realpath(getcwd());', true],
        'temporary files' => [
            '$n = tempnam(sys_get_temp_dir(), "x"); file_put_contents($n, "y"); $f = tmpfile(); fwrite($f, "z");'
                . ' rewind($f);'
                . ' return [file_get_contents($n), fread($f, 1), dirname($n) === sys_get_temp_dir(), unlink($n)];',
            ['y', 'z', true, true],
        ],
        'random numbers' => [
            '$r = new Random\Randomizer(); return [random_int(5, 5), strlen(random_bytes(16)), $r->getInt(3, 3),'
                . ' strlen(openssl_random_pseudo_bytes(8)), mt_rand(7, 7), random_bytes(16) === random_bytes(16)];',
            [5, 16, 3, 8, 7, false],
        ],
        'secret boxes' => [
            '$k = sodium_crypto_secretbox_keygen(); $n = random_bytes(SODIUM_CRYPTO_SECRETBOX_NONCEBYTES);'
                . ' return sodium_crypto_secretbox_open(sodium_crypto_secretbox("x", $n, $k), $n, $k);',
            'x',
        ],
        'signatures' => [
            '$k = openssl_pkey_new(["private_key_type" => OPENSSL_KEYTYPE_EC, "curve_name" => "prime256v1"]);'
                . ' openssl_sign("x", $s, $k, "sha256");'
                . ' return openssl_verify("x", $s, openssl_pkey_get_details($k)["key"], "sha256");',
            1,
        ],
        'encryption' => [
            '$c = openssl_encrypt("x", "aes-256-gcm", str_repeat("k", 32), 0, str_repeat("i", 12), $tag);'
                . ' return openssl_decrypt($c, "aes-256-gcm", str_repeat("k", 32), 0, str_repeat("i", 12), $tag);',
            'x',
        ],
        'passwords' => [
            'return password_verify("x", password_hash("x", PASSWORD_BCRYPT, ["cost" => 4]))'
                . ' && (!defined("PASSWORD_ARGON2ID") || password_verify("x", password_hash("x", PASSWORD_ARGON2ID)));',
            true,
        ],
        'certificates of authorities' => [
            '$l = openssl_get_cert_locations(); return is_readable($l["default_cert_file"])'
                . ' || count(glob($l["default_cert_dir"] . "/*")) > 1;',
            true,
        ],
        'the load' => ['return array_map(is_float(...), sys_getloadavg());', [true, true, true]],
        'memory' => [
            'return memory_get_usage() > 100000 && memory_get_peak_usage(true) >= memory_get_usage(true);',
            true,
        ],
        'what it has used' => ['return getrusage()["ru_maxrss"] > 1000;', true],
        'clocks' => ['return [hrtime(true) > 0, abs(time() - microtime(true)) < 2, usleep(1)];', [true, true, null]],
        'classes by PSR-4' => ['return (new Life\Mapped\Deep())->name();', 'Life\Mapped\Deep'],
        'classes by a class map' => ['return (new UnmappedByName())->name();', 'UnmappedByName'],
        'functions of a file that is always loaded' => ['return Life\helper();', 'helped'],
        'closures, enumerations, weak maps' => [
            'enum Suit: string { case Hearts = "h"; } $m = new WeakMap(); $o = new stdClass(); $m[$o] = 1;'
                . ' return [Suit::from("h")->name, count($m), array_map(fn ($x) => $x * 2, [1, 2])];',
            ['Hearts', 1, [2, 4]],
        ],
        'an error handler' => [
            'set_error_handler(static fn (int $n, string $m) => throw new ErrorException($m));'
                . ' try { echo $undefined; } catch (ErrorException $e) { return $e->getMessage(); }',
            'Undefined variable $undefined',
        ],
    ];

    /** @var array<string, Host> */
    private static array $hosts = [];

    /** @var array<string, RealProject> of the user of each setting: what it writes goes to a layer */
    private static array $projects = [];

    private static ?TemporaryApplication $files = null;

    public static function setUpBeforeClass(): void
    {
        self::$files = new TemporaryApplication();
        mkdir(self::$files->path('tmp'));
        chmod(self::$files->path('tmp'), 01777);
        copy(__DIR__ . '/Support/Escape/evaluating-host.php', self::$files->path('evaluating-host.php'));
        if (getenv('EXTENSION') !== false) {
            copy(getenv('EXTENSION'), self::$files->path('altair_eval.so'));
        }
    }

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        self::$projects = [];
        self::$files = null;
        gc_collect_cycles();
    }

    /**
     * @dataProvider sameAsHere
     */
    public function testItIsAsOutside(string $expression, Setting $setting): void
    {
        $here = (static fn (): mixed => eval("return $expression;"))();

        self::assertSame($here, $this->value("return $expression;", $setting));
    }

    public static function sameAsHere(): iterable
    {
        foreach (self::SAME_AS_HERE as $name => $expression) {
            foreach (self::settings() as $setting) {
                yield "$name: $setting->value" => [$expression, $setting];
            }
        }
    }

    /**
     * @dataProvider inTheProject
     */
    public function testItWorksInAProject(string $snippet, mixed $expected, Setting $setting): void
    {
        self::assertSame($expected, $this->value($snippet, $setting));
    }

    public static function inTheProject(): iterable
    {
        foreach (self::IN_THE_PROJECT as $name => [$snippet, $expected]) {
            foreach (self::settings() as $setting) {
                yield "$name: $setting->value" => [$snippet, $expected, $setting];
            }
        }
    }

    /**
     * @dataProvider users
     */
    public function testTenThousandFilesAreRead(Setting $setting): void
    {
        $snippet = '$all = ""; for ($d = 0; $d < ' . RealProject::DIRECTORIES . '; $d++) { for ($f = 0; $f < '
            . RealProject::FILES_EACH . '; $f++) { $all .= file_get_contents("many/d$d/f$f.txt"); } }'
            . ' $n = iterator_count(new RecursiveIteratorIterator(new RecursiveDirectoryIterator("many",'
            . ' FilesystemIterator::SKIP_DOTS))); return [md5($all), $n];';

        $read = $this->value($snippet, $setting);
        self::assertSame(
            [self::$projects[$setting->value]->digest, RealProject::DIRECTORIES * RealProject::FILES_EACH],
            $read,
        );
    }

    /**
     * @dataProvider users
     */
    public function testTheSameExtensionsAreThere(Setting $setting): void
    {
        $there = $this->value('return implode(",", get_loaded_extensions());', $setting);

        // What changes how code runs is left out of every run.
        $here = array_diff(get_loaded_extensions(), ['Zend OPcache', 'xdebug', 'pcov', 'altair_eval']);
        self::assertSame([], array_values(array_diff($here, explode(',', $there))));
    }

    /**
     * @dataProvider users
     */
    public function testTheUserHasItsNameAndItsGroup(Setting $setting): void
    {
        $name = posix_getpwuid($setting->uid())['name'] ?? null;
        $group = posix_getgrgid($setting->gid())['name'] ?? null;

        self::assertSame([$name, $group], $this->value(
            'return [posix_getpwuid(posix_geteuid())["name"] ?? null,'
                . ' posix_getgrgid(posix_getegid())["name"] ?? null];',
            $setting,
        ));
    }

    /**
     * @dataProvider users
     */
    public function testWhatIsPrintedAndWhatRunsAtTheEndIsKept(Setting $setting): void
    {
        $answer = $this->answer(
            'register_shutdown_function(static function () { echo "at the end"; });'
                . ' $o = new class { public function __destruct() { echo "destroyed, "; } };'
                . ' ob_start(); echo "buffered, "; ob_end_flush(); error_log("logged");'
                . ' printf("%05.1f, ", 3.14159); return 1;',
            $setting,
        );

        self::assertSame('buffered, 003.1, destroyed, at the end', $answer['stdout']);
        self::assertSame("logged\n", $answer['stderr']);
        self::assertSame(['type' => 'int', 'value' => 1], $answer['result']);
    }

    public static function users(): iterable
    {
        foreach (self::settings() as $setting) {
            yield $setting->value => [$setting];
        }
    }

    /**
     * @return list<Setting>
     */
    private static function settings(): array
    {
        $settings = [Setting::AllAsRoot, Setting::AllAsUser];

        return array_values(array_filter($settings, static fn (Setting $setting): bool => $setting->isPossible()));
    }

    private function value(string $snippet, Setting $setting): mixed
    {
        $answer = $this->answer($snippet, $setting);
        self::assertSame('returned', $answer['diagnostics']['outcome'], var_export($answer, true));

        return self::plain($answer['result']);
    }

    private static function plain(array $encoded): mixed
    {
        return $encoded['type'] === 'array'
            ? array_map(self::plain(...), (array) $encoded['value'])
            : $encoded['value'] ?? null;
    }

    /**
     * @return array<string, mixed>
     */
    private function answer(string $snippet, Setting $setting): array
    {
        $host = self::$hosts[$setting->value]
            ??= new Host($setting, self::$files->root, self::$files->path('tmp'));
        $project = self::$projects[$setting->value] ??= new RealProject($setting);
        $host->ask(['snippet' => $snippet, 'projectRoot' => $project->root(), 'timeoutMs' => 60000]);
        do {
            $answer = $host->answer();
        } while (!isset($answer['result']) && !isset($answer['failure']));
        self::assertArrayNotHasKey('failure', $answer, $answer['failure'] ?? '');

        return $answer['result'];
    }
}
