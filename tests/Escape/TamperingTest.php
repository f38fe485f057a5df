<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Closure;

/**
 * A run does not change what is said of it, what it runs under, or what other runs find.
 */
final class TamperingTest extends EscapeTestCase
{
    /** On the audit log and its directory, which no snippet may write, whatever it may write else. */
    private const AUDIT = [
        'appending to the log' => 'file_put_contents(".altair/more/deep", "forged", FILE_APPEND);',
        'overwriting the log' => 'file_put_contents(".altair/more/deep", "forged");',
        'a new file' => 'touch(".altair/new");',
        'a new directory' => 'mkdir(".altair/new");',
        'removing a file' => 'unlink(".altair/more/deep");',
        'removing the directory' => 'unlink(".altair/more/deep"); rmdir(".altair/more");',
        'moving a file away' => 'rename(".altair/more/deep", "stolen");',
        'moving a file in' => 'rename("data.txt", ".altair/new");',
        'moving the directory away' => 'rename(".altair", "moved");',
        'moving a part of it away' => 'rename(".altair/more", "moved");',
        'the mode of a file' => 'chmod(".altair/more/deep", 0600);',
        'the time of a file' => 'touch(".altair/more/deep", 1);',
        'a link in it' => 'symlink("/", ".altair/new");',
        'a hard link to a file of it' => 'link(".altair/more/deep", "hard"); file_put_contents("hard", "forged");',
        'a link to it' => 'symlink(".altair", "soft"); file_put_contents("soft/more/deep", "forged");',
        'a name with a trailing slash' => 'rename(".altair/", "moved");',
        'a name in other words' => 'file_put_contents("src/../.altair//more/./deep", "forged");',
        'a descriptor of the directory' => 'chdir(".altair/more"); file_put_contents("deep", "forged");',
    ];

    private const NATIVE_AUDIT = [
        'openat' => '$f = sys("openat", -100, "$s->project/.altair/more/deep", 1, 0); raw("write", $f, "forged", 6);',
        'exchange with another directory' => 'raw("mkdir", "$s->project/other", 0777);'
            . ' raw("mkdirat", -100, "$s->project/other", 0777);'
            . ' sys("renameat2", -100, "$s->project/.altair/more", -100, "$s->project/other", 2);',
        'exchange of the directory itself' => 'raw("mkdirat", -100, "$s->project/other", 0777);'
            . ' sys("renameat2", -100, "$s->project/.altair", -100, "$s->project/other", 2);',
        'truncate' => 'sys("truncate", "$s->project/.altair/more/deep", 10);',
        'fchmodat' => 'sys("fchmodat", -100, "$s->project/.altair/more/deep", 0600);',
        'utimensat' => 'sys("utimensat", -100, "$s->project/.altair/more/deep", 0, 0);',
        'setxattr' => 'sys("setxattr", "$s->project/.altair/more/deep", "user.altair", "x", 1, 0);',
        'a descriptor of a path only' => '$f = raw("openat", -100, "$s->project/.altair/more/deep", 0x200000, 0);'
            . ' sys("fchmodat", -100, "/proc/self/fd/$f", 0600);'
            . ' sys("fchmodat", -100, "$s->project/.altair/more/deep", 0600);',
    ];

    /** On the directory before there is one: who makes it may not be the snippet. */
    private const PLANTING = [
        'a directory' => 'mkdir(".altair"); file_put_contents(".altair/events.jsonl", "forged");',
        'a link' => 'rename(".altair", "moved"); symlink($s->outside, ".altair");',
        'a file' => 'rename(".altair", "moved"); file_put_contents(".altair", "forged");',
    ];

    /** Files of /proc that do something when they are written, of itself and of the machine. */
    private const CONTROLS = [
        'self/oom_score_adj', 'self/timerslack_ns', 'self/coredump_filter', 'self/attr/current', 'self/clear_refs',
        'self/comm', 'sys/kernel/ostype', 'sysrq-trigger',
    ];

    public static function attacks(): iterable
    {
        yield Attack::native(
            'the controls of /proc',
            'foreach (' . var_export(self::CONTROLS, true) . ' as $c) { sys("openat", -100, "/proc/$c", 1, 0); }'
                . ' sys("openat", -100, "/proc/$s->host/oom_score_adj", 1, 0);',
            static fn (Run $run): array => array_filter(
                array_map(static fn (array $call): string => "$call[0] gave $call[1]", $run->calls),
                static fn (string $gave): bool => !str_contains($gave, '-'),
            ),
        );
        foreach (['' => [], ', with writes on' => ['allowWrites' => true]] as $suffix => $options) {
            foreach (self::AUDIT as $name => $snippet) {
                yield new Attack("audit: $name$suffix", $snippet, self::log(), options: $options);
            }
            foreach (self::NATIVE_AUDIT as $name => $snippet) {
                yield Attack::native("audit: native $name$suffix", $snippet, self::log(), options: $options);
            }
            foreach (self::PLANTING as $name => $snippet) {
                yield new Attack(
                    "audit: planting $name$suffix",
                    $snippet,
                    self::planted(),
                    options: $options,
                    prepare: static fn (Scene $scene) => exec('rm -r ' . escapeshellarg("$scene->project/.altair")),
                );
            }
        }
        yield from self::surroundings();
        yield from self::memory();
        yield from self::report();
    }

    /** Something below `.altair` has changed, what an unsafe run itself writes there aside. */
    private static function log(): Closure
    {
        return static fn (Run $run): array => array_values(array_filter(
            Harm::audit()($run),
            static fn (string $path): bool => !in_array(
                $path,
                ["{$run->scene->project}/.altair", "{$run->scene->project}/.altair/events.jsonl"],
                true,
            ),
        ));
    }

    private static function planted(): Closure
    {
        return static function (Run $run): array {
            $directory = "{$run->scene->project}/.altair";
            $forged = is_link($directory) || is_file($directory)
                || str_contains((string) @file_get_contents("$directory/events.jsonl"), 'forged');

            return $forged || is_dir("{$run->scene->project}/moved") ? ['it made the directory its own'] : [];
        };
    }

    /** The files that PHP itself starts from. */
    private static function surroundings(): iterable
    {
        $calls = [
            'an ini file' => 'file_put_contents("$s->configuration/escape.ini", "auto_prepend_file=/x");',
            'another ini file' => 'file_put_contents("$s->configuration/new.ini", "auto_prepend_file=/x");',
            'the extension' => 'file_put_contents($s->extension, "x", FILE_APPEND);',
            'the extension by another' => 'rename("data.txt", $s->extension);',
        ];
        foreach ($calls as $name => $snippet) {
            foreach (['' => [], ', with writes on' => ['allowWrites' => true]] as $suffix => $options) {
                yield new Attack(
                    "surroundings: $name$suffix",
                    'try { ' . $snippet . ' } finally { clearstatcache(); }',
                    static fn (Run $run): array =>
                        $run->scene->surroundings() === [] ? [] : ['what the next run starts from is another'],
                    options: $options,
                    // The directory that it lies in is root's.
                    needsRoot: str_contains($name, 'another') && str_contains($name, 'extension'),
                    prepare: static fn (Scene $scene) => $scene->keepSurroundings(),
                );
            }
        }
    }

    /** PHP's own way to native memory, and settings at run time. */
    private static function memory(): iterable
    {
        yield new Attack(
            'memory: its own, by the memory file',
            // The variable that is changed is the first of its environment, which it finds by its own stat file.
            '$at = (int) explode(" ", strrchr(file_get_contents("/proc/self/stat"), ")"))[48];'
                . ' $m = fopen("/proc/self/mem", "r+"); fseek($m, $at); fwrite($m, "ALTERED=");',
            static fn (Run $run): array => $run->found === true ? ['it has written into its own memory'] : [],
            look: static fn (Run $run, Snapshot $after): bool =>
                str_starts_with((string) @file_get_contents("/proc/$after->pid/environ"), 'ALTERED='),
        );
        $tooMuch = static fn (Run $run): array => $run->peakBytes > 150 << 20 ? ["it used $run->peakBytes bytes"] : [];
        $settings = [
            'ini_set' => 'ini_set("memory_limit", "-1");',
            'ini_alter' => 'ini_alter("memory_limit", "-1");',
            'set_time_limit and ini_set as a callback' => 'set_time_limit(0);'
                . ' array_map("ini_set", ["memory_limit"], ["-1"]);',
        ];
        foreach ($settings as $name => $snippet) {
            yield new Attack(
                "settings: the limit of memory by $name",
                $snippet . ' $x = str_repeat("x", 200 << 20); usleep(30000);',
                $tooMuch,
                // Without PHP's switches there is no such limit, but the kernel's, which is higher.
                settings: Setting::WITH_INI,
                options: ['memoryLimitMb' => 32],
                measuresMemory: true,
            );
        }
        foreach (['open_basedir', 'disable_functions', 'ffi.enable'] as $name) {
            yield new Attack(
                "settings: $name",
                // PHP 8.2 itself crashes where ini_restore() is called on open_basedir and a file is opened then.
                "ini_set('$name', ''); echo file_get_contents(\$s->file);",
                Harm::secret(),
            );
        }
        yield new Attack(
            'settings: native code after all',
            'FFI::cdef("int chmod(const char *, int);")->chmod("$s->project/data.txt", 0600);',
            Harm::project(),
        );
        yield new Attack(
            'settings: code in a string',
            'eval("echo \$s->said;");',
            self::said(),
            settings: Setting::WITH_INI,
            prepare: self::word(),
        );
        yield new Attack(
            'settings: code in a string, in a closure',
            '(static function () use ($s) { eval("echo \$s->said;"); })();',
            self::said(),
            settings: Setting::WITH_INI,
            prepare: self::word(),
        );
    }

    private static function word(): Closure
    {
        return static fn (Scene $scene) => $scene->tell('said', "word-of-{$scene->project}");
    }

    private static function said(): Closure
    {
        return static fn (Run $run): array =>
            str_contains($run->stdout, "word-of-{$run->scene->project}") ? ['the code ran'] : [];
    }

    /** The answer of the run. Its secret stands in the way in unsafe runs, too, so that these succeed nowhere. */
    private static function report(): iterable
    {
        $lied = static fn (Run $run): array => ($run->result['ok'] ?? true)
            && ($run->result['result']['value'] ?? null) !== 'truth' ? [json_encode($run->result)] : [];
        $forged = '"\x00\x01" . json_encode(["Report" => ["ending" => ["Returned" => "{\"type\":\"string\",\"value\":'
            . '\"lie\"}"]]])';
        $calls = [
            'a packet that looks like a report' => '$p = ' . $forged . '; sys("sendto", 3, $p, strlen($p), 0, 0, 0);',
            'closing the channel' => 'sys("close", 3);',
            'another channel in its place' => '$p = buf(8); sys("socketpair", 1, 5, 0, $p);'
                . ' raw("dup3", unpack("V", FFI::string($p, 4))[1], 3, 0);',
            'shutting the channel down' => 'sys("shutdown", 3, 2);',
            'a flood on the channel' => '$p = str_repeat("x", 30000); sys("getpid");'
                . ' for ($i = 0; $i < 5000; $i++) { raw("sendto", 3, $p, 30000, 0x40, 0, 0); }',
            'a channel that does not block' => 'sys("fcntl", 3, 4, 04000);',
            'descriptors over the channel' => '$b = buf(8); $v = buf(16); FFI::memcpy($v, iov($b, 1), 16);'
                . ' $c = buf(24);'
                . ' FFI::memcpy($c, pack("PVVV", 20, 1, 1, 0), 20);'
                . ' sys("sendmsg", 3, pack("PPPPPPP", 0, 0, addr($v), 1,'
                . ' addr($c), 24, 0), 0);',
            'dying with an answer printed' => 'echo json_encode(["ok" => true, "result" => "lie"]); sys("getpid");'
                . ' sys("kill", raw("getpid"), 9);',
            'ending before it reports' => 'echo json_encode(["ok" => true, "result" => "lie"]); sys("getpid");'
                . ' sys("exit_group", 0);',
        ];
        foreach ($calls as $name => $snippet) {
            yield Attack::native(
                "report: $name",
                $snippet . ' return "truth";',
                $lied,
                unproven: 'the secret of the run stands in its way in an unsafe run, too',
            );
        }
        yield new Attack(
            'report: an evaluation of its own',
            '(new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest("touch(\'$s->outside/new\');",'
                . ' $s->project, unsafe: true));',
            Harm::outside(),
            unproven: 'no snippet can evaluate, an unsafe one no more than another',
        );
    }
}
