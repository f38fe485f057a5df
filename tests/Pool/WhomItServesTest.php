<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * The pool is no way out of a sandbox: a host that may do less than the pool, or something else, evaluates by itself.
 *
 * What the pool says to one that comes nevertheless, with a protocol of its own, crates/pool/tests/whom_it_serves/
 * tells.
 */
final class WhomItServesTest extends TestCase
{
    private const NOBODY = 65534;

    /** A group of a test's own in the hierarchy of version 2, where there is one. */
    private const GROUPS = ['/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/unified/cgroup.procs'];

    private ?PoolProcess $pool = null;

    /** @var resource|null keeps a namespace of mounts */
    private $holder = null;

    private ?string $group = null;

    /** @var list<string> directories that a host makes for itself */
    private array $made = [];

    protected function tearDown(): void
    {
        $this->pool?->end();
        if ($this->holder !== null) {
            proc_terminate($this->holder, SIGKILL);
            proc_close($this->holder);
        }
        if ($this->group !== null) {
            self::assertTrue(rmdir($this->group));
        }
        foreach ($this->made as $directory) {
            array_map(unlink(...), glob("$directory/*") ?: []);
            @rmdir($directory);
        }
    }

    /**
     * @return iterable<string, array{list<string>}> a command that makes a sandbox
     */
    public static function sandboxes(): iterable
    {
        yield 'no new privileges' => [['setpriv', '--no-new-privs']];
        yield 'a further filter' => [Without::under(['privileges', 'filter'])];
        yield 'Landlock' => [Without::under(['privileges', 'landlocked'])];
        yield 'a tracer' => [Without::under(['traced'])];
        yield 'a user namespace' => [['unshare', '--user', '--map-current-user']];
        yield 'bwrap' => [['bwrap', '--unshare-user', '--dev-bind', '/', '/']];
        yield 'bwrap, all namespaces' => [['bwrap', '--unshare-all', '--dev-bind', '/', '/', '--proc', '/proc']];
    }

    /**
     * @return iterable<string, array{list<string>}> a command that makes a sandbox
     */
    public static function sandboxesOfRoot(): iterable
    {
        foreach (['mount', 'net', 'ipc', 'uts', 'cgroup'] as $namespace) {
            yield "a namespace: $namespace" => [['unshare', "--$namespace"]];
        }
        yield 'a namespace: pid' => [['unshare', '--pid', '--fork', '--mount-proc']];
        yield 'a namespace: time' => [['unshare', '--time', '--fork', '--boottime', '9']];
        yield 'a namespace: user' => [['unshare', '--user', '--map-root-user']];
        yield 'a further filter alone' => [Without::under(['filter'])];
        yield 'Landlock alone' => [Without::under(['landlocked'])];
        yield 'a smaller bounding set' => [['setpriv', '--bounding-set', '-chown']];
        yield 'inheritable capabilities' => [['setpriv', '--inh-caps', '+chown']];
        yield 'no capabilities' => [Without::under(['capabilities'])];
        yield 'another group' => [['setpriv', '--regid', (string) self::NOBODY, '--keep-groups']];
        yield 'another real group' => [['setpriv', '--rgid', (string) self::NOBODY, '--keep-groups']];
        yield 'a supplementary group' => [['setpriv', '--groups', (string) self::NOBODY]];
        yield 'another user' => [Without::under(['user=' . self::NOBODY])];
    }

    /**
     * @param list<string> $inside
     * @dataProvider sandboxes
     */
    public function testAHostInASandboxEvaluatesByItself(array $inside): void
    {
        // Not every system lets a user make namespaces.
        if (in_array($inside[0], ['bwrap', 'unshare'], true) && Command::of([...$inside, 'true'])->exitCode !== 0) {
            Skip::LacksKernel->because('This sandbox cannot be made here.');
        }

        $this->assertNotServed(new PoolProcess(), $inside);
    }

    /**
     * @param list<string> $inside
     * @dataProvider sandboxesOfRoot
     */
    public function testAHostInASandboxOfRootEvaluatesByItself(array $inside): void
    {
        self::needsRoot();
        foreach (['/tmp', '/dev/shm'] as $place) {
            $directory = "$place/altair-" . self::NOBODY;
            array_push($this->made, ...(file_exists($directory) ? [] : [$directory]));
        }

        $this->assertNotServed(new PoolProcess(), $inside);
    }

    public function testAHostWithAnotherRootEvaluatesByItself(): void
    {
        self::needsRoot();
        $beside = $this->mounts();
        $pool = new PoolProcess($beside);
        mkdir("$pool->directory/root");
        // The same directory, and another mount of it: read-only, for example.
        $inside = 'mount --rbind / "$0" && exec chroot "$0" "$@"';

        $this->assertNotServed($pool, ['sh', '-c', $inside, "$pool->directory/root"]);
    }

    public function testAHostInAnotherControlGroupEvaluatesByItself(): void
    {
        self::needsRoot();
        $list = current(array_filter(self::GROUPS, is_file(...)));
        $group = dirname((string) $list) . '/altair-test-' . bin2hex(random_bytes(4));
        if ($list === false || !@mkdir($group)) {
            Skip::LacksKernel->because('No control group can be made.');
        }
        $this->group = $group;

        $inside = ['sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', $group];
        $this->assertNotServed(new PoolProcess(), $inside);
    }

    /**
     * @param list<string> $inside
     */
    private function assertNotServed(PoolProcess $pool, array $inside): void
    {
        $this->pool = $pool;
        $pool->start();
        $application = new TemporaryApplication();
        $ask = static fn (array $inside = []): array
            => $pool->evaluate($application, 'return 6 * 7;', through: $inside);
        self::assertServed(true, $ask());

        self::assertServed(false, $ask($inside));

        self::assertSame(1, $pool->told()['served']);
        self::assertServed(true, $ask());
    }

    /**
     * @param array<string, mixed> $answer
     */
    private static function assertServed(bool $isServed, array $answer): void
    {
        self::assertSame(42, $answer['result']['value'] ?? null, (string) json_encode($answer));
        self::assertSame($isServed, $answer['diagnostics']['pool'] ?? false);
        self::assertSame($isServed, array_key_exists('pool', $answer['diagnostics']));
    }

    private static function needsRoot(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can make this sandbox.');
        }
    }

    /**
     * @return list<string> a command that runs another one in a namespace of mounts of this test's own
     */
    private function mounts(): array
    {
        $command = ['unshare', '--mount', '--propagation=private', 'sh', '-c', 'echo ready; exec sleep 300'];
        $this->holder = proc_open($command, [1 => ['pipe', 'w']], $pipes) ?: self::fail('No process.');
        self::assertSame("ready\n", fgets($pipes[1]));
        $pid = proc_get_status($this->holder)['pid'];

        return ['nsenter', '--target', (string) $pid, '--mount'];
    }
}
