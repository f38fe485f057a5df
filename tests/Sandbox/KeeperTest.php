<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\SandboxTestCase;
use FFI;

/**
 * The keeper of a command under `native`: a program of its own, for which the host's memory is shared for a moment and
 * never copied.
 */
final class KeeperTest extends SandboxTestCase
{
    private const PR_GET_DUMPABLE = 3;

    public function testTheKeeperHasNothingOfTheHost(): void
    {
        $mine = getmypid();
        $maps = '';
        $descriptors = $names = [];
        $this->sh('native', 'echo x', onOutput: function () use ($mine, &$maps, &$descriptors, &$names): void {
            foreach (self::children($mine) as $child) {
                $names[] = trim((string) file_get_contents("/proc/$child/comm"));
                $maps .= file_get_contents("/proc/$child/maps");
                $descriptors = array_map('readlink', glob("/proc/$child/fd/*") ?: []);
            }
        });

        self::assertSame(['altair-keeper'], $names);
        self::assertStringContainsString('/memfd:altair-keeper', $maps);
        self::assertStringNotContainsString('php', $maps);
        self::assertStringNotContainsString('[heap]', $maps);
        sort($descriptors);
        $kinds = array_map(static fn (string $to): string => (string) preg_replace('/:.*/', '', $to), $descriptors);
        self::assertSame(['/dev/null', '/dev/null', '/dev/null', 'anon_inode', 'anon_inode', 'socket'], $kinds);
    }

    public function testTheHostIsAsItWas(): void
    {
        $libc = FFI::cdef('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);');
        $look = static fn (): array => [
            'dumpable' => $libc->prctl(self::PR_GET_DUMPABLE, 0, 0, 0, 0),
            'filter of core files' => file_get_contents('/proc/self/coredump_filter'),
            'blocked, ignored and caught signals' => preg_grep('/^Sig|^Cap/', file('/proc/self/status') ?: []),
            'memory that grows with each command' => substr_count((string) file_get_contents('/proc/self/maps'), "\n"),
            'limits' => file_get_contents('/proc/self/limits'),
            'directory' => getcwd(),
            'mask' => umask(),
            'oom' => file_get_contents('/proc/self/oom_score_adj'),
            'session' => posix_getsid(0),
        ];
        $this->sh('native', 'true');

        $before = $look();
        $this->sh('native', 'true');
        $this->sh('native', 'kill -9 $$');
        self::assertSame($before, $look());
        self::assertSame(1, $before['dumpable']);
    }

    /** The kernel's owner of what /proc shows of it: root, where nobody may look at it. */
    public function testNobodyMayLookIntoIt(): void
    {
        $mine = getmypid();
        $owners = [];
        $output = $this->sh(
            'native',
            'for f in mem maps environ auxv stack; do cat /proc/1/$f 2>/dev/null && echo "read $f"; done;'
                . ' readlink /proc/1/exe /proc/1/fd/3 && echo linked; echo x',
            onOutput: function () use ($mine, &$owners): void {
                foreach (self::children($mine) as $child) {
                    $owners[] = fileowner("/proc/$child/environ");
                }
            },
        )->stdout();

        self::assertSame("x\n", $output);
        self::assertSame([0], array_values(array_unique($owners)));
    }

    /** Its host can neither prevent core files by a limit alone, nor change the filter that it shares. */
    public function testWithoutALimitOfCoreFilesTheKeeperIsACopy(): void
    {
        $script = <<<'PHP'
            use Altair\Sandbox\Config\ExecutionPolicy;
            use Altair\Sandbox\Sandbox;

            $maps = '';
            $result = Sandbox::native(ExecutionPolicy::in($argv[1]))->execute(
                ['sh', '-c', 'echo hello; exit 3'],
                onOutput: function () use (&$maps): void {
                    foreach (explode(' ', trim(file_get_contents('/proc/self/task/' . getmypid() . '/children'))) as $id) {
                        $maps .= file_get_contents("/proc/$id/maps");
                    }
                },
            );
            echo $result->stdout(), $result->exitCode(), ' ', str_contains($maps, 'memfd') ? 'program' : 'copy';
            PHP;
        $php = Command::php(['-r', $script, '--', $this->base->root]);
        self::assertSame("hello\n3 program", Command::run($php)->stdout);
        $limited = ['sh', '-c', 'ulimit -c 0 && exec "$@"', 'sh', ...$php];
        self::assertSame("hello\n3 copy", Command::run($limited)->stdout);
    }

    /** As a host is that has changed its user (prctl(2), PR_SET_DUMPABLE). */
    public function testAHostThatNobodyMayLookIntoStaysOne(): void
    {
        $script = <<<'PHP'
            use Altair\Sandbox\Config\ExecutionPolicy;
            use Altair\Sandbox\Sandbox;

            $libc = FFI::cdef('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);');
            $libc->prctl(4, 0, 0, 0, 0);
            $seen = [];
            $result = Sandbox::native(ExecutionPolicy::in($argv[1]))->execute(
                ['sh', '-c', 'echo hello'],
                onOutput: function () use (&$seen, $libc): void {
                    $seen[] = $libc->prctl(3, 0, 0, 0, 0);
                },
            );
            echo $result->stdout(), implode(' ', $seen), ' ', $libc->prctl(3, 0, 0, 0, 0);
            PHP;
        self::assertSame("hello\n0 0", Command::run(Command::php(['-r', $script, '--', $this->base->root]))->stdout);
    }

    /** @return list<int> */
    private static function children(int $process): array
    {
        $list = trim((string) file_get_contents("/proc/$process/task/$process/children"));

        return $list === '' ? [] : array_map('intval', explode(' ', $list));
    }
}
