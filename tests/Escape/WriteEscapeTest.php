<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Run;
use Closure;

/**
 * A run changes nothing, by PHP's functions and streams: not outside, and not in the project either.
 */
final class WriteEscapeTest extends EscapeTestCase
{
    /** Ways to change something in the directory `$d`, or its file `$f`. */
    private const CALLS = [
        'file_put_contents' => 'file_put_contents("$d/new", "x");',
        'file_put_contents of a file that is there' => 'file_put_contents($f, "x");',
        'appending' => 'file_put_contents($f, "x", FILE_APPEND);',
        'fopen' => 'fwrite(fopen("$d/new", "x"), "x");',
        'truncation by fopen' => 'fopen($f, "w");',
        'ftruncate' => 'ftruncate(fopen($f, "r+"), 1);',
        'SplFileObject' => '(new SplFileObject("$d/new", "w"))->fwrite("x");',
        'touch' => 'touch("$d/new");',
        'the time of a file' => 'touch($f, 1);',
        'unlink' => 'unlink($f);',
        'rename' => 'rename($f, "$d/renamed");',
        'rename into it' => '$p = tempnam(sys_get_temp_dir(), "p"); rename($p, "$d/new");',
        'copy' => 'copy($f, "$d/new");',
        'mkdir' => 'mkdir("$d/new");',
        'tempnam' => '$p = tempnam($d, "p"); if (dirname($p) !== $d) { unlink($p); }',
        'chmod' => 'chmod($f, 0777 & ~fileperms($f) | 0400);',
        'set-user-id' => 'chmod($f, 04755);',
        'symlink' => 'symlink("/", "$d/new");',
        'link' => 'link($f, "$d/new");',
        'a pipe' => 'posix_mkfifo("$d/new", 0666);',
        'posix_mknod' => 'posix_mknod("$d/new", POSIX_S_IFREG | 0666);',
        'a Unix socket' => 'stream_socket_server("unix://$d/new");',
        'error_log' => 'error_log("x", 3, "$d/new");',
        'gzopen' => 'gzwrite(gzopen("$d/new.gz", "w"), "x");',
        'a zlib stream' => 'file_put_contents("compress.zlib://$d/new.gz", "x");',
        'a filter' => 'file_put_contents("php://filter/write=string.rot13/resource=$d/new", "x");',
        'PDO SQLite' => '(new PDO("sqlite:$d/new.db"))->exec("CREATE TABLE t (v)");',
        'SQLite3' => '(new SQLite3("$d/new.db"))->exec("CREATE TABLE t (v)");',
        'SQLite ATTACH' => '(new PDO("sqlite::memory:"))->exec("ATTACH \'$d/new.db\' AS a; CREATE TABLE a.t (v)");',
        'SQLite VACUUM INTO' => '(new PDO("sqlite::memory:"))->exec("CREATE TABLE t (v); VACUUM INTO \'$d/new.db\'");',
        'DOM' => '(new DOMDocument())->save("$d/new.xml");',
        'SimpleXML' => '(new SimpleXMLElement("<r/>"))->asXML("$d/new.xml");',
        'XMLWriter' => '$x = new XMLWriter(); $x->openUri("$d/new.xml"); $x->text("x"); $x->flush();',
        'a stylesheet' => '$x = new DOMDocument(); $x->loadXML("<x:stylesheet'
            . ' xmlns:x=\"http://www.w3.org/1999/XSL/Transform\" version=\"1.0\"><x:template match=\"/\">x'
            . '</x:template></x:stylesheet>"); $t = new XSLTProcessor(); $t->importStylesheet($x);'
            . ' $t->transformToUri(new DOMDocument(), "$d/new.txt");',
        'PharData' => '$p = new PharData("$d/new.tar"); $p["a"] = "x";',
        'a session' => 'session_save_path($d); session_start(["use_cookies" => 0]); $_SESSION["a"] = 1;'
            . ' session_write_close();',
        'openssl' => '$o = ["private_key_type" => OPENSSL_KEYTYPE_EC, "private_key_bits" => 2048,'
            . ' "curve_name" => "prime256v1", "config" => "/dev/null"];'
            . ' openssl_pkey_export_to_file(openssl_pkey_new($o), "$d/new.pem", null, $o);',
        'an output handler' => 'ob_start(static fn ($b) => (string) file_put_contents("$d/new", $b));'
            . ' echo "x"; ob_end_flush();',
        'a shutdown function' => 'register_shutdown_function(static fn () => file_put_contents("$d/new", "x"));',
        'a copy of a stream' => 'stream_copy_to_stream(fopen("data:,x", "r"), fopen("$d/new", "w"));',
    ];

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $name => $snippet) {
            yield new Attack(
                $name,
                'foreach ([[$s->outside, $s->file], [$s->project, "$s->project/data.txt"]] as [$d, $f]) {'
                    . " try { $snippet } catch (Throwable) { } }",
                self::both(),
            );
        }
        yield from self::throughTheProject();
        yield from self::elsewhere();
    }

    /** What has changed; nothing unless it is both in the project and outside. */
    private static function both(): Closure
    {
        return static function (Run $run): array {
            $changes = [Harm::outside()($run), Harm::project()($run)];

            return in_array([], $changes, true) ? [] : array_merge(...$changes);
        };
    }

    /** With writes on, a link of the project leads nowhere that it would not lead to without one. */
    private static function throughTheProject(): iterable
    {
        $calls = [
            'a link of the project' => 'file_put_contents("link", "x");',
            'a link of the project to a directory' => 'file_put_contents("directory-link/new", "x");',
            'a link that the snippet makes' => 'symlink($s->outside, "made"); file_put_contents("made/new", "x");',
            'the parent of the project' => 'file_put_contents("../new", "x");',
            'a file beside the project' => 'file_put_contents($s->sibling, "x");',
            'the time of a file by a link' => 'touch("link", 1);',
            'the mode of a file by a link' => 'chmod("link", 0600);',
            'a link that is another each time that it is written' =>
                'for ($i = 0; $i < 300; $i++) { file_put_contents("r", "x"); is_file("r"); unlink("r");'
                . ' symlink($s->file, "r"); @file_put_contents("r", "x"); unlink("r"); }',
            'a directory that becomes a link' =>
                'for ($i = 0; $i < 300; $i++) { @mkdir("r"); file_put_contents("r/new", "x"); rename("r", "r$i");'
                . ' symlink($s->outside, "r"); @file_put_contents("r/new", "x"); unlink("r"); }',
            'a hard link that the snippet makes' =>
                'link($s->sibling, "made"); file_put_contents("made", "x");',
            'moving a file out' => 'rename("data.txt", "$s->outside/moved");',
            'moving the project' => 'rename($s->project, "$s->outside/moved");'
                . ' rename("$s->outside/moved", $s->project);',
        ];
        $apart = stat(sys_get_temp_dir())['dev'] === stat('/var/tmp')['dev'] ? '' : 'it is on another file system';
        foreach ($calls as $name => $snippet) {
            $unproven = $name === 'moving the project' ? $apart : '';
            foreach (['' => [], ', with writes on' => ['allowWrites' => true]] as $suffix => $options) {
                yield new Attack("$name$suffix", $snippet, Harm::outside(), options: $options, unproven: $unproven);
            }
        }
    }

    private static function elsewhere(): iterable
    {
        $removed = static fn (string $path): array => is_file($path) && unlink($path) ? ["$path was written"] : [];
        $scratch = array_filter(['/tmp', '/var/tmp', '/dev/shm'], is_dir(...));
        foreach ([...$scratch, '/etc', '/usr/share', '/opt', '/run'] as $place) {
            $name = 'altair-escape-' . bin2hex(random_bytes(6));
            yield new Attack(
                "a file in $place",
                "file_put_contents('$place/$name', 'x');",
                static fn (Run $run): array => $removed("$place/$name"),
                // Unconfined it would be the system's own directory that is written to.
                unproven: in_array($place, $scratch, true) ? '' : 'the test leaves what is not its own alone',
            );
        }
        yield new Attack(
            'the memory of a bystander',
            '$m = fopen("/proc/$s->bystander/mem", "r+"); fseek($m, $s->environment); fwrite($m, "SECRET=changed");',
            Harm::bystander(),
        );
        yield new Attack(
            'a setting of the kernel',
            'file_put_contents("/proc/$s->bystander/oom_score_adj", "500");',
            Harm::bystander(),
        );
        yield new Attack(
            'another owner',
            'chown($s->file, 12345); chgrp($s->file, 12345);',
            Harm::outside(),
            needsRoot: true,
        );
        yield new Attack(
            'another owner in the project, with writes on',
            'chown("data.txt", 12345);',
            Harm::project(),
            options: ['allowWrites' => true],
            needsRoot: true,
        );
    }
}
