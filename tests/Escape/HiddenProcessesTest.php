<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Altair\Eval\Tests\Support\Escape\Start;
use Altair\Eval\Tests\Support\Escape\WrappedHost;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * The threads of a run are counted also where `/proc` does not show it to its host (`hidepid=2`, proc(5)): there, an
 * ordinary user's run had as many as it liked, 3,000 and more.
 */
final class HiddenProcessesTest extends TestCase
{
    private const MOST_THREADS = 64;

    private const THREADS = '$c = FFI::cdef("typedef struct { long w[8]; } attr; int pthread_attr_init(attr *);'
        . ' int pthread_attr_setstacksize(attr *, size_t); void *dlsym(void *, const char *);'
        . ' int pthread_create(unsigned long *, attr *, void *, void *);"); $a = $c->new("attr");'
        . ' $c->pthread_attr_init(FFI::addr($a)); $c->pthread_attr_setstacksize(FFI::addr($a), 16384);'
        . ' $t = FFI::new("unsigned long"); $pause = $c->dlsym(null, "pause");'
        . ' for ($i = 0; $i < 500; $i++) {'
        . ' if ($c->pthread_create(FFI::addr($t), FFI::addr($a), $pause, null) !== 0) { break; } }'
        . ' posix_kill(getmypid(), SIGSTOP); return 1;';

    /** A /proc of its own: options of the machine's would be everybody's. */
    private const WRAPPER = [
        'unshare', '--mount', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', 'sh',
    ];

    /**
     * @dataProvider starts
     *
     * @param list<string> $omitted
     */
    public function testThreadsAreCounted(array $omitted, Start $start): void
    {
        exec(implode(' ', array_map(escapeshellarg(...), [...self::WRAPPER, 'true'])) . ' 2>&1', $output, $code);
        if ($code !== 0) {
            Skip::LacksKernel->because('There is no other /proc to be had: ' . implode("\n", $output));
        }
        $host = new WrappedHost(Setting::KernelAsUser, self::WRAPPER, $omitted);
        $threads = null;
        $result = $host->evaluate(self::THREADS, $start, static function () use ($host, &$threads): void {
            $snapshot = Snapshot::take($host->pid);
            if ($snapshot !== null) {
                $threads = (int) $snapshot->status['Threads'];
                $snapshot->release();
            }
        });

        self::assertSame('returned', $result['diagnostics']['outcome'], json_encode($result));
        self::assertSame($start->value, $result['diagnostics']['start'], json_encode($result));
        // Where the run hides itself, and the machine what is hidden, there are none that could be counted.
        self::assertGreaterThan($omitted === ['ini', 'filesystem'] ? 0 : 1, $threads);
        self::assertLessThanOrEqual(self::MOST_THREADS, $threads);
    }

    public static function starts(): iterable
    {
        yield 'in no private root' => [['ini', 'filesystem'], Start::Cold];
        yield 'in a private root' => [['ini'], Start::Cold];
        yield 'in a private root, warm' => [['ini'], Start::Warm];
    }
}
