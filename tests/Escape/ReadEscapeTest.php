<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Skip;
use Closure;

/**
 * A run reads nothing that is not there for it, by PHP's functions and streams.
 */
final class ReadEscapeTest extends EscapeTestCase
{
    /** Ways to read a file that everybody may read. */
    private const CALLS = [
        'file_get_contents' => 'echo file_get_contents($s->file);',
        'file_get_contents beside the project' => 'echo file_get_contents($s->sibling);',
        'a path with dots' => 'echo file_get_contents("src/../../sibling.txt");',
        'a path with dots from the root' => 'echo file_get_contents(str_repeat("../", 20) . $s->file);',
        'a link of the project' => 'echo file_get_contents("link");',
        'a link of the project to a directory' => 'echo file_get_contents("directory-link/secret.txt");',
        'a link that the snippet makes' => 'symlink($s->file, "made"); echo file_get_contents("made"); unlink("made");',
        'a hard link that the snippet makes' =>
            '$p = sys_get_temp_dir() . "/hard"; link($s->sibling, $p); echo file_get_contents($p); unlink($p);',
        'fopen' => 'echo fread(fopen($s->file, "r"), 100);',
        'file' => 'echo implode(file($s->file));',
        'readfile' => 'readfile($s->file);',
        'SplFileObject' => 'echo (new SplFileObject($s->file))->fgets();',
        'include' => 'echo include $s->script;',
        'include along include_path' => 'set_include_path($s->outside); echo include "secret.php";',
        'auto-loading' => 'spl_autoload_register(static fn () => print include $s->script); class_exists("Not\There");',
        'copy into the project' => 'copy($s->file, "copied"); echo file_get_contents("copied"); unlink("copied");',
        'rename into the project' =>
            'rename($s->file, "moved"); echo file_get_contents("moved"); rename("moved", $s->file);',
        'highlight_file' => 'highlight_file($s->file);',
        'php_strip_whitespace' => 'echo php_strip_whitespace($s->script);',
        'parse_ini_file' => 'echo key(parse_ini_file($s->ini));',
        'fgetcsv' => 'echo implode(fgetcsv(fopen($s->file, "r")));',
        'a file URL' => 'echo file_get_contents("file://$s->file");',
        'a stream filter' =>
            'echo strrev(strrev(file_get_contents("php://filter/read=string.tolower/resource=$s->file")));',
        'the name of a directory\'s entry' => 'echo implode(scandir($s->outside));',
        'DirectoryIterator' => 'foreach (new DirectoryIterator($s->outside) as $f) { echo $f; }',
        'glob' => 'echo implode(glob("$s->outside/*"));',
        'the stream of glob' => 'foreach (new DirectoryIterator("glob://$s->outside/*") as $f) { echo $f; }',
        'GlobIterator' => 'foreach (new GlobIterator("$s->outside/*") as $f) { echo $f; }',
        'dir' => '$d = dir($s->outside); while (($f = $d->read()) !== false) { echo $f; }',
        'opendir by a link' => 'echo implode(scandir("directory-link"));',
        'a zlib stream' => 'readfile("compress.zlib://$s->outside/secret.gz");',
        'gzopen' => 'gzpassthru(gzopen("$s->outside/secret.gz", "r"));',
        'a phar stream' => 'readfile("phar://$s->outside/secret.tar/inside.txt");',
        'PharData' => 'echo (new PharData("$s->outside/secret.tar"))["inside.txt"]->getContent();',
        'PDO SQLite' => 'echo (new PDO("sqlite:$s->outside/secret.db"))->query("SELECT v FROM t")->fetchColumn();',
        'SQLite3' => 'echo (new SQLite3("$s->outside/secret.db"))->querySingle("SELECT v FROM t");',
        'SQLite ATTACH' => '$p = new PDO("sqlite::memory:"); $p->exec("ATTACH \'$s->outside/secret.db\' AS a");'
            . ' echo $p->query("SELECT v FROM a.t")->fetchColumn();',
        'SQLite ATTACH of a URI' => '$p = new PDO("sqlite:file::memory:");'
            . ' $p->exec("ATTACH \'file:$s->outside/secret.db?mode=ro&immutable=1\' AS a");'
            . ' echo $p->query("SELECT v FROM a.t")->fetchColumn();',
        'DOM' => 'echo (static function ($d) use ($s) { $d->load("$s->outside/secret.xml"); return $d->textContent; })'
            . '(new DOMDocument());',
        'SimpleXML' => 'echo simplexml_load_file("$s->outside/secret.xml");',
        'XMLReader' => '$x = XMLReader::open("$s->outside/secret.xml"); while ($x->read()) { echo $x->value; }',
        'an external entity' => '$d = new DOMDocument(); $d->loadXML("<!DOCTYPE r [<!ENTITY e SYSTEM \"$s->file\">]>'
            . '<r>&e;</r>", LIBXML_NOENT | LIBXML_DTDLOAD); echo $d->textContent;',
        'XInclude' => '$d = new DOMDocument(); $d->loadXML("<r xmlns:x=\"http://www.w3.org/2001/XInclude\">'
            . '<x:include href=\"$s->file\" parse=\"text\"/></r>"); $d->xinclude(); echo $d->textContent;',
        'a stylesheet\'s document()' => '$x = new DOMDocument(); $x->loadXML("<x:stylesheet'
            . ' xmlns:x=\"http://www.w3.org/1999/XSL/Transform\" version=\"1.0\"><x:template match=\"/\"><x:copy-of'
            . ' select=\"document(\'$s->outside/secret.xml\')\"/></x:template></x:stylesheet>");'
            . ' $t = new XSLTProcessor(); $t->importStylesheet($x);'
            . ' echo $t->transformToXml(new SimpleXMLElement("<r/>"));',
        'chdir' => 'chdir($s->outside); echo file_get_contents("secret.txt");',
        'the root of the process' => 'echo file_get_contents("/proc/self/root$s->file");',
        'the working directory of the process' =>
            'echo file_get_contents("/proc/self/cwd/" . str_repeat("../", 20) . $s->file);',
        'the root of a thread' => 'echo file_get_contents("/proc/thread-self/root$s->file");',
        'the root of the host' => 'echo file_get_contents("/proc/$s->host/root$s->file");',
        'the working directory of the host' => 'echo file_get_contents("/proc/$s->host/cwd/$s->file");',
        'the root of a bystander' => 'echo file_get_contents("/proc/$s->bystander/root$s->file");',
        'the environment of a bystander' => 'echo file_get_contents("/proc/$s->bystander/environ");',
        'the memory of a bystander' => '$m = fopen("/proc/$s->bystander/mem", "r");'
            . ' fseek($m, $s->environment); echo fread($m, 4096);',
        'the host\'s directory for temporary files' => 'echo implode(scandir($s->hostTemp));',
    ];

    /** The target of a link. */
    private const POINTERS = [
        'readlink' => 'echo readlink("$s->outside/pointer");',
        'realpath' => 'echo realpath("$s->outside/pointer");',
    ];

    public static function attacks(): iterable
    {
        // Landlock does not govern what a path says of itself, so that it is permitted where it stands alone
        // (SECURITY.md).
        $hasMounts = Place::hasMounts();
        foreach (self::CALLS + ($hasMounts ? self::POINTERS : []) as $name => $snippet) {
            yield new Attack($name, $snippet, Harm::secret(), prepare: self::secrets());
        }
        yield new Attack(
            'the root of the first process',
            'echo file_get_contents("/proc/1/root$s->file");',
            Harm::secret(),
            needsRoot: true,
            unproven: match (true) {
                Skip::RefusedToAll->holds() => 'in a container, its root has no right to that',
                file_exists('/proc/1/root' . __FILE__) => '',
                default => 'the first process has another root than the test',
            },
        );
        yield new Attack(
            'the classic way around open_basedir',
            'mkdir("a/b/c/d", 0777, true); symlink("a/b/c/d", "dummy");'
                . ' symlink("dummy/../../../../../../../../..$s->outside", "exploit"); unlink("dummy"); mkdir("dummy");'
                . ' echo file_get_contents("exploit/secret.txt");',
            Harm::secret(),
        );
        yield new Attack(
            'a link that is another each time that it is read',
            'for ($i = 0; $i < 300; $i++) { file_put_contents("r", "x"); is_file("r"); unlink("r");'
                . ' symlink($s->file, "r");'
                . ' echo @file_get_contents("r"); unlink("r"); }',
            Harm::secret(),
        );
        yield from $hasMounts ? self::whatIsThere() : [];
    }

    /** What may not even be known of a file that cannot be read. */
    private static function whatIsThere(): iterable
    {
        $calls = [
            'stat' => 'echo "inode=", stat($s->file)["ino"], ";";',
            'lstat' => 'echo "inode=", lstat($s->file)["ino"], ";";',
            'fileinode' => 'echo "inode=", fileinode($s->file), ";";',
            'SplFileInfo' => 'echo "inode=", (new SplFileInfo($s->file))->getInode(), ";";',
            'stat by a link' => 'echo "inode=", stat("link")["ino"], ";";',
        ];
        foreach ($calls as $name => $snippet) {
            yield new Attack($name, $snippet, static function (Run $run): array {
                $inode = fileinode($run->scene->outside . '/secret.txt');

                return str_contains($run->stdout, "inode=$inode;") ? ['it knows the inode'] : [];
            });
        }
    }

    /** Puts the secret into files of every kind. */
    private static function secrets(): Closure
    {
        return static function (Scene $scene): void {
            $put = static function (string $name, string $content) use ($scene): string {
                file_put_contents("$scene->outside/$name", $content);
                chmod("$scene->outside/$name", 0666);

                return "$scene->outside/$name";
            };
            $scene->tell('ini', $put('secret.ini', "$scene->secret=1\n"));
            $put($scene->secret, '');
            $put('secret.xml', "<r>$scene->secret</r>");
            $put('secret.gz', (string) gzencode($scene->secret));
            $tar = new \PharData("$scene->outside/secret.tar");
            $tar['inside.txt'] = $scene->secret;
            unset($tar);
            chmod("$scene->outside/secret.tar", 0666);
            $database = new \PDO("sqlite:$scene->outside/secret.db");
            $database->exec("CREATE TABLE t (v); INSERT INTO t VALUES ('$scene->secret')");
            chmod("$scene->outside/secret.db", 0666);
            symlink("$scene->outside/$scene->secret", "$scene->outside/pointer");
            file_put_contents("$scene->hostTemp/$scene->secret", '');
        };
    }
}
