<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\PlantedLibrary;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Escape\Setting;

/**
 * A run starts no process, by PHP's functions, and becomes no other program.
 */
final class ProcessEscapeTest extends EscapeTestCase
{
    /** What a fork does: it stays, so that it is seen. */
    private const LINGER = 'while (true) { sleep(100); }';

    private const CALLS = [
        'exec' => 'exec("$s->program >&2");',
        'shell_exec' => 'shell_exec("$s->program >&2");',
        'backticks' => '`$s->program >&2`;',
        'passthru' => 'passthru("$s->program >&2");',
        'system' => 'system("$s->program >&2");',
        'popen' => 'pclose(popen("$s->program >&2", "r"));',
        'proc_open of a shell command' => 'proc_close(proc_open($s->program, [], $pipes));',
        'proc_open without a shell' => 'proc_close(proc_open([$s->program], [], $pipes));',
        'pcntl_exec' => 'pcntl_exec($s->program);',
        'pcntl_fork' => 'if (pcntl_fork() === 0) { ' . self::LINGER . ' }',
        'pcntl_fork twice and a session of its own' =>
            'if (pcntl_fork() === 0) { posix_setsid(); if (pcntl_fork() === 0) { ' . self::LINGER . ' }'
            . ' posix_kill(getmypid(), SIGKILL); }',
        'mail' => 'mail("nobody@localhost", "s", "m");',
        'mb_send_mail' => 'mb_send_mail("nobody@localhost", "s", "m");',
        'error_log by mail' => 'error_log("m", 1, "nobody@localhost");',
        'a callback that is a name' => 'array_map("system", ["$s->program >&2"]);',
        'a callback in upper case with a namespace' => 'call_user_func("\\\\SYSTEM", "$s->program >&2");',
        'a closure of the function' =>
            '(static fn (string $c) => (Closure::fromCallable("system"))($c))("$s->program >&2");',
        'a first-class callable' => '$f = passthru(...); $f("$s->program >&2");',
        'reflection' => '(new ReflectionFunction("system"))->invoke("$s->program >&2");',
        'a sorting callback' => '$a = ["$s->program >&2", "$s->program >&2"]; usort($a, "passthru");',
        'an output callback' => 'ob_start("exec"); echo "$s->program >&2"; ob_end_flush();',
        'a shutdown function' => 'register_shutdown_function("system", "$s->program >&2");',
        'a destructor' => '$GLOBALS["d"] = new class ("$s->program >&2") {'
            . ' public function __construct(private string $c) {} public function __destruct() { system($this->c);'
            . ' } };',
        'a fiber' => '(new Fiber("system"))->start("$s->program >&2");',
        'a tick function' => 'register_tick_function("system", "$s->program >&2");'
            . ' file_put_contents("t.php", "<?php declare(ticks=1); \$i = 1;"); include "t.php"; unlink("t.php");',
        'a file that the snippet wrote' => 'file_put_contents("x.php", "<?php system(\"$s->program >&2\");");'
            . ' include "x.php"; unlink("x.php");',
        'a planted program in the temporary directory' => '$p = tempnam(sys_get_temp_dir(), "p");'
            . ' copy($s->program, $p); chmod($p, 0755); proc_close(proc_open([$p], [], $pipes)); unlink($p);',
    ];

    private const LIBRARIES = [
        'FFI' => 'FFI::cdef("int unused;", "$s->project/planted.so");',
        'FFI of a header' => 'file_put_contents("p.h", "#define FFI_LIB \"$s->project/planted.so\"\nint unused;\n");'
            . ' FFI::load("p.h");',
        'SQLite3' => 'copy("planted.so", "$s->configuration/planted.so");'
            . ' @(new SQLite3(":memory:"))->loadExtension("planted.so");',
    ];

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $name => $snippet) {
            yield new Attack($name, $snippet, Harm::process());
        }
        // Where native code is let, loading it is no escape: what holds here are PHP's own switches.
        foreach (self::LIBRARIES as $name => $snippet) {
            yield new Attack(
                "a planted library by $name",
                $snippet,
                Harm::process(),
                settings: Setting::WITH_INI,
                unproven: PlantedLibrary::bytes() === null ? 'there is no C compiler to make the library with' : '',
                prepare: static function (Scene $scene): void {
                    file_put_contents("$scene->project/planted.so", (string) PlantedLibrary::bytes());
                },
            );
        }
    }
}
