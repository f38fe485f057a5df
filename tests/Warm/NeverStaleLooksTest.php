<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\Change;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;
use SQLite3;

/**
 * Whatever function the boot has looked at a file with: a change that it would see makes the template stale.
 */
final class NeverStaleLooksTest extends WarmTestCase
{
    private const TIME = 1_000_000_000;

    private const FILES = [
        'data.txt' => 'old',
        'data.ini' => 'v = old',
        'data.xml' => '<v>old</v>',
        'data.php' => "<?php return 'old';",
        '.env' => "V=old\n",
        'list/a' => '',
        'list/b/c' => '',
        'empty/.keep' => '',
        'second/found' => '',
    ];

    private const MORE_DATA = 'other';

    /** An expression of boot that reads `data.txt`. */
    private const CONTENTS = [
        'file_get_contents()' => 'file_get_contents("$root/data.txt")',
        'file_get_contents() of a relative path' => '[chdir($root), file_get_contents("data.txt")]',
        'file_get_contents() of a part' => 'file_get_contents("$root/data.txt", false, null, 1, 2)',
        'file_get_contents() by the include path' => '[set_include_path($root), file_get_contents("data.txt", true)]',
        'file()' => 'file("$root/data.txt")',
        'fopen()' => '[$f = fopen("$root/data.txt", "r"), fgets($f), fclose($f)][1]',
        'fopen() to read and write' => '[$f = fopen("$root/data.txt", "r+"), fgets($f), fclose($f)][1]',
        'file://' => 'file_get_contents("file://$root/data.txt")',
        'php://filter' => 'file_get_contents("php://filter/read=string.toupper/resource=$root/data.txt")',
        'compress.zlib://' => 'file_get_contents("compress.zlib://$root/data.txt")',
        'readfile()' => '[ob_start(), readfile("$root/data.txt"), ob_get_clean()]',
        'fpassthru()' => '[$f = fopen("$root/data.txt", "r"), ob_start(), fpassthru($f), fclose($f), '
            . 'ob_get_clean()][4]',
        'SplFileObject' => '(new SplFileObject("$root/data.txt"))->fgets()',
        'md5_file()' => 'md5_file("$root/data.txt")',
        'hash_file()' => 'hash_file("sha256", "$root/data.txt")',
        'sha1_file()' => 'sha1_file("$root/data.txt")',
        'copy()' => '[copy("$root/data.txt", "$root/copy.txt"), file_get_contents("$root/copy.txt")]',
        'copy() to another place' => '[copy("$root/data.txt", "/tmp/copy"), file_get_contents("/tmp/copy")]',
        'filesize()' => 'filesize("$root/data.txt")',
        'stat()' => 'stat("$root/data.txt")["size"]',
        'fstat()' => '[$f = fopen("$root/data.txt", "r"), fstat($f)["size"], fclose($f)][1]',
        'SplFileInfo' => '(new SplFileInfo("$root/data.txt"))->getSize()',
        'gzfile()' => 'gzfile("$root/data.txt")',
        'finfo' => '[(new finfo())->file("$root/data.txt"), filesize("$root/data.txt")]',
        'written, and read before' => '[$v = file_get_contents("$root/data.txt"), '
            . 'file_put_contents("$root/data.txt", "mine")][0]',
        'appended to, and read' => '[file_put_contents("$root/data.txt", "+", FILE_APPEND), '
            . 'file_get_contents("$root/data.txt")]',
        'moved, and read' => '[rename("$root/data.txt", "$root/moved.txt"), file_get_contents("$root/moved.txt")]',
        'a generator' => 'iterator_to_array((static fn () => yield from file("$root/data.txt"))())',
        'a stream that is read in pieces' => '[$f = fopen("$root/data.txt", "r"), fseek($f, 1), fread($f, 9), '
            . 'fclose($f)][2]',
    ];

    /** @dataProvider contents */
    public function testContents(string $expression): void
    {
        $this->assertShows($expression, Change::write('data.txt', self::MORE_DATA));
    }

    /** @dataProvider contents */
    public function testContentsThatAreReplaced(string $expression): void
    {
        $this->assertShows($expression, Change::together(
            Change::add('data.new', self::MORE_DATA),
            Change::rename('data.new', 'data.txt'),
        ));
    }

    public static function contents(): array
    {
        return array_map(static fn (string $expression): array => [$expression], self::CONTENTS);
    }

    /** @dataProvider looks */
    public function testLooks(string $expression, Closure $change): void
    {
        $this->assertShows($expression, $change);
    }

    public static function looks(): iterable
    {
        yield 'a .env' => ['file_get_contents("$root/.env")', Change::write('.env', "V=new\n")];
        yield 'parse_ini_file()' => ['parse_ini_file("$root/data.ini")', Change::write('data.ini', 'v = new')];
        yield 'DOMDocument' => [
            '[$d = new DOMDocument(), $d->load("$root/data.xml"), $d->textContent][2]',
            Change::write('data.xml', '<v>new</v>'),
        ];
        yield 'simplexml_load_file()' => [
            '(string) simplexml_load_file("$root/data.xml")',
            Change::write('data.xml', '<v>new</v>'),
        ];
        yield 'php_strip_whitespace()' => [
            'php_strip_whitespace("$root/data.php")',
            Change::write('data.php', '<?php 1;'),
        ];

        foreach (
            [
                'scandir()' => 'scandir("$root/list")',
                'glob()' => 'glob("$root/list/*")',
                'DirectoryIterator' => 'iterator_count(new DirectoryIterator("$root/list"))',
                'GlobIterator' => 'iterator_count(new GlobIterator("$root/list/*"))',
                'glob://' => 'iterator_count(new DirectoryIterator("glob://$root/list/*"))',
                'opendir()' => '(static function () use ($root) { for ($d = opendir("$root/list"), $n = 0;'
                    . ' readdir($d) !== false; $n++) { } closedir($d); return $n; })()',
                'dir()' => '[$d = dir("$root/list"), $n = 0, (static function () use ($d, &$n) {'
                    . ' while ($d->read() !== false) { $n++; } $d->close(); })(), $n][3]',
                'a recursive iterator' => 'iterator_count(new RecursiveIteratorIterator('
                    . 'new RecursiveDirectoryIterator("$root/list", FilesystemIterator::SKIP_DOTS)))',
                'scandir() after a file of its own' => '[touch("$root/list/own"), scandir("$root/list")]',
            ] as $name => $expression
        ) {
            yield "$name, a file is made" => [$expression, Change::add('list/new')];
            yield "$name, a file is deleted" => [$expression, Change::delete('list/a')];
            yield "$name, a file comes from elsewhere" => [$expression, Change::rename('data.txt', 'list/d')];
        }
        yield 'scandir(), a file is renamed' => ['scandir("$root/list")', Change::rename('list/a', 'list/z')];
        yield 'glob() of nothing' => ['glob("$root/list/*.php")', Change::add('list/new.php')];
        yield 'glob() at several levels' => ['glob("$root/*/*/c")', Change::add('second/deep/c')];
        yield 'a recursive iterator, deep down' => [
            'iterator_count(new RecursiveIteratorIterator(new RecursiveDirectoryIterator("$root/list", 4096)))',
            Change::add('list/b/d'),
        ];

        foreach (
            [
                'file_exists()', 'is_file()', 'is_readable()', 'is_dir()', 'is_link()', 'realpath()', 'filemtime()',
                'stat()', 'lstat()', 'fileperms()', 'filetype()', 'stream_resolve_include_path()', 'is_writable()',
            ] as $function
        ) {
            $look = '(bool) @' . str_replace('()', '("$root/later")', $function);
            yield "$function of what is made" => [$look, match ($function) {
                'is_dir()' => static fn (TemporaryApplication $of): bool => mkdir($of->path('later')),
                'is_link()' => static fn (TemporaryApplication $of): bool => symlink('data.txt', $of->path('later')),
                default => Change::add('later'),
            }];
        }
        yield 'file_exists() below what is not there' => [
            'file_exists("$root/no/such/file")',
            Change::add('no/such/file'),
        ];
        yield 'file_exists() of what is deleted' => ['file_exists("$root/data.txt")', Change::delete('data.txt')];
        yield 'is_dir() of what becomes a file' => [
            'is_dir("$root/empty")',
            Change::together(Change::delete('empty'), Change::add('empty')),
        ];
        yield 'is_readable() of what is closed' => ['is_readable("$root/data.txt")', Change::chmod('data.txt', 0)];
        yield 'is_executable()' => ['is_executable("$root/data.txt")', Change::chmod('data.txt', 0755)];
        yield 'fileperms() of a directory' => ['fileperms("$root/empty")', Change::chmod('empty', 0700)];
        yield 'filemtime()' => ['filemtime("$root/data.txt")', Change::touch('data.txt', self::TIME)];
        yield 'filemtime() of a directory' => ['filemtime("$root/empty")', Change::touch('empty', self::TIME)];
        yield 'realpath()' => ['realpath("$root/link/a")', Change::relink('link', 'second')];
        yield 'readlink()' => ['readlink("$root/link")', Change::relink('link', 'second')];
        yield 'lstat() of a link' => ['lstat("$root/link")["size"]', Change::relink('link', 'second')];
        yield 'linkinfo()' => ['linkinfo("$root/link") > 0', Change::delete('link')];
        yield 'stream_resolve_include_path()' => [
            '[set_include_path("$root/empty:$root/second"), stream_resolve_include_path("found")][1]',
            Change::add('empty/found'),
        ];
        yield 'a lock that is opened' => [
            '[$f = @fopen("$root/maintenance", "r"), $f !== false, $f && fclose($f)][1]',
            Change::add('maintenance'),
        ];
        yield 'a cache that boot makes' => [
            'is_file("$root/cache.php") ? include "$root/cache.php" : '
                . '[file_put_contents("$root/cache.php", "<?php return 1;"), include "$root/cache.php"][1]',
            Change::add('cache.php', '<?php return 2;'),
        ];
        yield 'a cache that boot makes again where it is old' => [
            'filemtime("$root/data.txt") > filemtime("$root/data.php") ? "made again" : include "$root/data.php"',
            Change::touch('data.php', self::TIME),
        ];
        yield 'what boot removes' => ['[@unlink("$root/lock")][0]', Change::add('lock')];
        yield 'a directory that boot removes' => ['@rmdir("$root/lock")', static function (TemporaryApplication $of) {
            mkdir($of->path('lock'));
        }];
        yield 'a directory that boot makes' => ['@mkdir("$root/var")', static function (TemporaryApplication $of) {
            mkdir($of->path('var'));
        }];
    }

    /** @dataProvider databases */
    public function testADatabase(string $boot): void
    {
        $change = static function (TemporaryApplication $application): void {
            $database = new SQLite3($application->path('app.db'));
            $database->exec('UPDATE t SET v = "new"');
            $database->close();
        };
        $application = $this->booting($boot, ['var/.keep' => '']);
        $database = new SQLite3($application->path('app.db'));
        $database->exec('CREATE TABLE t (v); INSERT INTO t VALUES ("old")');
        $database->close();

        $this->assertChangesTheAnswer($change, $application);
    }

    public static function databases(): iterable
    {
        yield 'PDO' => ['$p = new PDO("sqlite:$root/app.db"); $seen = $p->query("SELECT v FROM t")->fetchColumn();'
            . ' unset($p);'];
        yield 'SQLite3' => ['$p = new SQLite3("$root/app.db"); $seen = $p->querySingle("SELECT v FROM t");'
            . ' $p->close(); unset($p);'];
        yield 'SQLite3, to read' => ['$p = new SQLite3("$root/app.db", SQLITE3_OPEN_READONLY);'
            . ' $seen = $p->querySingle("SELECT v FROM t"); $p->close(); unset($p);'];
    }

    private function assertShows(string $expression, Closure $change): void
    {
        $application = $this->booting("\$seen = $expression; unset(\$f, \$d);", self::FILES);
        symlink('list', $application->path('link'));
        $this->assertChangesTheAnswer($change, $application);
    }
}
