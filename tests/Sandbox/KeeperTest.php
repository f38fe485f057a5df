<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Without;
use FFI;

/**
 * The keeper of a command under `native`: a program of its own, for which the host's memory is shared for a moment and
 * never copied.
 */
final class KeeperTest extends SandboxTestCase
{
    private const PRCTL = '$libc = FFI::cdef("int prctl(int, long, long, long, long);");';

    protected function setUp(): void
    {
        parent::setUp();
        if ((posix_getrlimit()['hard core'] ?? 0) === 0) {
            Skip::LacksKernel->because('No core file may be forbidden by a limit here, so each keeper is a copy.');
        }
    }

    public function testTheKeeperHasNothingOfTheHost(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root may look into a keeper.');
        $known = self::children();
        $maps = '';
        $descriptors = $names = [];
        $look = function () use ($known, &$maps, &$descriptors, &$names): void {
            foreach (array_diff(self::children(), $known) as $child) {
                $names[] = trim((string) file_get_contents("/proc/$child/comm"));
                $maps .= file_get_contents("/proc/$child/maps");
                $descriptors = array_map('readlink', glob("/proc/$child/fd/*") ?: []);
            }
        };
        $this->sh('native', 'echo x; sleep 0.5', onOutput: $look);

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
        $libc = FFI::cdef('int prctl(int, long, long, long, long);');
        // A thread that collects a keeper has a stack, and so mappings.
        $look = static fn (): array => [
            'children' => Processes::children(),
            'dumpable' => $libc->prctl(3 /* PR_GET_DUMPABLE */, 0, 0, 0, 0),
            'filter of core files' => file_get_contents('/proc/self/coredump_filter'),
            // Not those that are queued: they are counted for the whole user.
            'signals' => preg_grep('/^Sig(Blk|Ign|Cgt)|^Cap/', file('/proc/self/status') ?: []),
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

    /**
     * What /proc shows of a process belongs to root where its own user may not look into it. Tells most where the host
     * is an ordinary user ({@see OrdinaryUserTest}).
     */
    public function testNobodyMayLookIntoIt(): void
    {
        $known = self::children();
        $owners = [];
        $output = $this->sh(
            'native',
            'for f in mem maps environ auxv stack; do cat /proc/1/$f 2>/dev/null && echo "read $f"; done;'
                . ' readlink /proc/1/exe /proc/1/fd/3 && echo linked; echo x; sleep 0.5',
            onOutput: function () use ($known, &$owners): void {
                foreach (array_diff(self::children(), $known) as $child) {
                    $owners[] = fileowner("/proc/$child/environ");
                }
            },
        )->stdout();

        self::assertSame("x\n", $output);
        self::assertSame([0], array_values(array_unique($owners)));
    }

    /** Its host cannot prevent core files by a limit, and must not change the filter that it would share. */
    public function testWithoutALimitOfCoreFilesTheKeeperIsACopy(): void
    {
        self::assertSame(['hello 3', 'program'], $this->asked(''));
        self::assertSame(['hello 3', 'copy'], $this->asked('posix_setrlimit(POSIX_RLIMIT_CORE, 0, 0);'));
    }

    /** As a host is that has changed its user (prctl(2), PR_SET_DUMPABLE). */
    public function testAHostThatNobodyMayLookIntoSharesNothing(): void
    {
        self::assertSame(['hello 3', 'copy'], $this->asked(self::PRCTL . '$libc->prctl(4, 0, 0, 0, 0);'));
    }

    public function testItHoldsNoFileOfTheHost(): void
    {
        $files = 'for ($i = 0; $i < 12; $i++) { $held[] = fopen("/dev/zero", "r"); }';
        self::assertSame(['hello 3', 'program'], $this->asked($files));
        self::assertSame(['hello 3', 'copy'], $this->asked($files . 'posix_setrlimit(POSIX_RLIMIT_CORE, 0, 0);'));
    }

    /** The kernel then keeps no status of a program that ends (wait(2)). */
    public function testAHostThatIgnoresEndsOfProgramsLearnsExitCodesAllTheSame(): void
    {
        self::assertSame(['hello 3', 'program'], $this->asked('pcntl_signal(SIGCHLD, SIG_IGN);'));
        $first = 'Altair\Sandbox\Sandbox::host(Altair\Sandbox\Config\ExecutionPolicy::in("/tmp"))->execute(["true"]);';
        self::assertSame(['hello 3', 'program'], $this->asked($first . 'pcntl_signal(SIGCHLD, SIG_IGN);'));
    }

    /**
     * A process that cannot make its namespaces ends at once, before its keeper is a program or after. Either way the
     * host learns why, and runs the command without them.
     */
    public function testAProcessThatFailsEarlyIsHeardHoweverEarly(): void
    {
        if (posix_geteuid() === 0) {
            $this->base->giveTo(65534, 65534);
        }
        $base = var_export($this->base->root, true);
        [$code, $output, $errors] = Without::php(['unshare'], <<<PHP
            \$sandbox = Altair\Sandbox\Sandbox::native(Altair\Sandbox\Config\ExecutionPolicy::in($base));
            for (\$i = 0; \$i < 200; \$i++) {
                echo \$sandbox->execute(['echo', '-n', '.'])->stdout();
            }
            PHP);

        self::assertSame([0, str_repeat('.', 200)], [$code, $output], $errors);
    }

    /**
     * @return list<string> what a command said in a host that did this first, and what its keeper was
     */
    private function asked(string $before): array
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root may look into a keeper.');
        $base = var_export($this->base->root, true);
        $script = new Script($before . <<<PHP
            \$maps = '';
            \$look = function () use (&\$maps): void {
                foreach (glob('/proc/self/task/*/children') as \$list) {
                    foreach (preg_split('/ /', file_get_contents(\$list), flags: PREG_SPLIT_NO_EMPTY) as \$id) {
                        \$maps .= file_get_contents("/proc/\$id/maps");
                        \$open = array_map('readlink', glob("/proc/\$id/fd/*"));
                        in_array('/dev/zero', \$open) && say('It holds a file of the host.');
                    }
                }
            };
            \$policy = Altair\Sandbox\Config\ExecutionPolicy::in($base);
            \$result = Altair\Sandbox\Sandbox::native(\$policy)
                ->execute(['sh', '-c', 'echo hello; sleep 0.5; exit 3'], onOutput: \$look);
            say(trim(\$result->stdout()) . ' ' . \$result->exitCode());
            say(str_contains(\$maps, 'memfd') ? 'program' : 'copy');
            PHP);
        [$exitCode, $output, $errors] = $script->end();
        self::assertSame(0, $exitCode, $errors);

        return explode("\n", trim($output));
    }

    /** @return list<int> */
    private static function children(): array
    {
        $lists = array_map(file_get_contents(...), glob('/proc/self/task/*/children') ?: []);

        return array_map(intval(...), preg_split('/ +/', implode(' ', $lists), flags: PREG_SPLIT_NO_EMPTY) ?: []);
    }
}
