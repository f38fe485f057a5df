<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * What becomes of a run where the kernel lacks a guard: the mechanism is taken away, and the run tries what it stopped.
 */
final class DegradationTest extends TestCase
{
    private const NOBODY = 65534;

    /** Tries what the guards stop; each answer is what the attempt gave. */
    private const ATTEMPTS = <<<'PHP'
        $secret = getenv('ALTAIR_TEST_SECRET');
        return [
            'read outside' => @file_get_contents($secret),
            'write project' => @file_put_contents('new', 'x'),
            'change mode' => @chmod('kept', 0600),
            'write temp' => file_put_contents(sys_get_temp_dir() . '/x', 'x'),
            'read temp' => file_get_contents(sys_get_temp_dir() . '/x'),
            'temp' => @readlink(sys_get_temp_dir()) ?: realpath(sys_get_temp_dir()),
            'connect' => @stream_socket_client(getenv('ALTAIR_TEST_ADDRESS'), $code, $message, 5) !== false,
            'fork' => pcntl_fork() > 0,
        ];
        PHP;

    private TemporaryApplication $application;

    private TemporaryApplication $outside;

    /** @var resource */
    private $listener;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->application->write('kept', 'kept', 0644);
        $this->outside = new TemporaryApplication();
        $secret = $this->outside->write('secret', 'the secret', 0644);
        $this->listener = stream_socket_server('tcp://127.0.0.1:0') ?: self::fail('No listener.');
        putenv("ALTAIR_TEST_SECRET=$secret");
        putenv('ALTAIR_TEST_ADDRESS=tcp://' . stream_socket_get_name($this->listener, false));
        mkdir($this->outside->path('tmp'));
        chmod($this->outside->path('tmp'), 01777);
        putenv('TMPDIR=' . $this->outside->path('tmp'));
    }

    protected function tearDown(): void
    {
        $left = array_values(array_diff(scandir($this->outside->path('tmp')), ['.', '..']));
        putenv('ALTAIR_TEST_SECRET');
        putenv('ALTAIR_TEST_ADDRESS');
        putenv('ALTAIR_TEST_OTHER');
        putenv('TMPDIR');
        self::assertSame([], $left, 'No temporary file is left.');
    }

    /** The kernel's guards alone, so that nothing but them can refuse. */
    private const KERNEL_ONLY = ['altair_eval.omit' => 'ini'];

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function users(): iterable
    {
        yield 'as this user' => [[]];
        if (posix_geteuid() === 0) {
            yield 'as an ordinary user' => [['user=' . self::NOBODY]];
            yield 'as root without the right to mount' => [['capability']];
        }
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testNothingIsLackingHere(array $user): void
    {
        $result = $this->attempt($user);

        self::assertHeld($result);
        self::assertSame('in force', $result['diagnostics']['guards']['filesystem']);
        self::assertSame('in force', $result['diagnostics']['guards']['landlock']);
        self::assertSame('in force', $result['diagnostics']['guards']['seccomp']);
        self::assertSame(1, $this->value($result, 'write project'));
        self::assertTrue($this->value($result, 'change mode'));
        self::assertSame('/tmp', $this->value($result, 'temp'));
        self::assertSame(['new'], array_column($result['diagnostics']['file_changes']['created'], 'path'));
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testWithoutMountsLandlockAndSeccompCarryTheRules(array $user): void
    {
        $result = $this->attempt(['mounts', ...$user]);

        self::assertHeld($result);
        $guards = $result['diagnostics']['guards'];
        self::assertStringStartsWith('missing: the kernel does not let the process', $guards['filesystem']);
        self::assertSame('in force', $guards['landlock']);
        self::assertSame('in force', $guards['seccomp']);
        self::assertFalse($this->value($result, 'write project'), 'The project is read-only.');
        self::assertFalse($this->value($result, 'change mode'), 'What Landlock does not govern, seccomp refuses.');
        self::assertStringStartsWith($this->outside->path('tmp') . '/', $this->value($result, 'temp'));
        self::assertArrayNotHasKey('file_changes', $result['diagnostics']);
        self::assertSame('0644', substr(sprintf('%o', fileperms($this->application->path('kept'))), -4));
    }

    public function testWithoutMountsNoSwitchIsNamedThatWouldBeRefused(): void
    {
        $request = ['snippet' => '@file_put_contents("new", "x");'];
        [$blocked] = $this->attempt(['mounts'], $request, [])['diagnostics']['blocked'];

        self::assertSame(
            ['what' => 'write ' . $this->application->path('new'), 'guard' => 'filesystem', 'lift' => '--unsafe'],
            $blocked,
        );
    }

    public function testWithoutMountsWritesCannotBeAllowed(): void
    {
        $result = $this->attempt(['mounts'], ['allowWrites' => true]);

        self::assertStringContainsString('Writes cannot be allowed here: only a private root', $result['thrown'] ?? '');
        self::assertFileDoesNotExist($this->application->path('new'));
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testWithoutLandlockThePrivateRootAndSeccompRemain(array $user): void
    {
        $result = $this->attempt(['landlock', ...$user]);

        self::assertHeld($result);
        $guards = $result['diagnostics']['guards'];
        self::assertSame('in force', $guards['filesystem']);
        self::assertStringStartsWith('missing: ', $guards['landlock']);
        self::assertSame('in force', $guards['seccomp']);
        self::assertSame(1, $this->value($result, 'write project'));
    }

    /**
     * @return iterable<string, array{int, bool}>
     */
    public static function versions(): iterable
    {
        foreach ([1, 2, 3, 4, 5, 6, 7] as $version) {
            yield "version $version" => [$version];
        }
    }

    /**
     * @dataProvider versions
     */
    public function testAnOlderLandlockDoesWhatItCan(int $version): void
    {
        $result = $this->attempt(["landlock=$version", 'mounts']);

        self::assertHeld($result);
        $state = $result['diagnostics']['guards']['landlock'];
        if ($version < 3) {
            self::assertStringStartsWith('degraded to ', $state);
        } else {
            self::assertSame('in force', $state);
        }
    }

    /**
     * @return iterable<string, array{list<string>, string}>
     */
    public static function notEnough(): iterable
    {
        yield 'neither a private root nor Landlock' => [['mounts', 'landlock'], 'landlock'];
        yield 'no seccomp' => [['seccomp'], 'seccomp'];
    }

    /**
     * @param list<string> $what
     * @dataProvider notEnough
     */
    public function testWithLessNothingRunsUnlessTheCallerSaysSo(array $what, string $guard): void
    {
        $refused = $this->attempt($what, settings: []);
        self::assertStringContainsString("the guard `$guard` is needed and is missing", $refused['thrown'] ?? '');
        self::assertStringContainsString('--require=ini', $refused['thrown']);

        $result = $this->attempt($what, ['snippet' => 'return 1;'], ['altair_eval.require' => 'ini']);
        self::assertSame('returned', $result['diagnostics']['outcome']);
        self::assertStringStartsWith('missing: ', $result['diagnostics']['guards'][$guard]);
        self::assertSame('in force', $result['diagnostics']['guards']['ini']);
    }

    /**
     * @return iterable<string, array{list<string>, string}>
     */
    public static function required(): iterable
    {
        yield 'filesystem' => [['mounts'], 'filesystem'];
        yield 'landlock' => [['landlock'], 'landlock'];
        yield 'landlock of an old kernel' => [['landlock=2'], 'landlock'];
        yield 'seccomp' => [['seccomp'], 'seccomp'];
    }

    /**
     * @param list<string> $what
     * @dataProvider required
     */
    public function testAGuardThatIsRequiredAndLackingIsNamed(array $what, string $guard): void
    {
        // What boots, and may connect, would be seen here.
        $this->application->write(
            'vendor/autoload.php',
            '<?php stream_socket_client(getenv("ALTAIR_TEST_ADDRESS"));',
        );
        $request = ['snippet' => 'return 1;', 'allowNetwork' => true];
        $this->attempt([], $request);
        self::assertTrue($this->isReached(), 'Where nothing is lacking, it runs.');
        while ($this->isReached()) {
            // A boot that connects is booted once more, in a process of its own.
        }
        $result = $this->attempt($what, $request, ['altair_eval.require' => "ini,$guard"]);

        self::assertStringContainsString("the guard `$guard` is needed", $result['thrown'] ?? '');
        self::assertFalse($this->isReached(), 'Nothing has run.');
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function guards(): iterable
    {
        foreach (['environment', 'ini', 'limits', 'privileges', 'filesystem', 'landlock', 'seccomp'] as $guard) {
            yield $guard => [$guard];
        }
    }

    /**
     * @dataProvider guards
     */
    public function testWhereOneGuardAloneIsOffTheOthersHold(string $guard): void
    {
        $attempts = preg_replace('/=> (@?)(.+),$/m', '=> attempt(fn () => $1$2),', self::ATTEMPTS)
            . ' function attempt(callable $do) { try { return $do(); } catch (Error $refused) { return false; } }';
        $result = $this->attempt([], ['snippet' => $attempts], ['altair_eval.omit' => $guard]);

        self::assertHeld($result);
        foreach ($result['diagnostics']['guards'] as $name => $state) {
            self::assertSame($name === $guard ? 'left out: altair_eval.omit' : 'in force', $state, $name);
        }
    }

    public function testAnOuterFilterWithAListenerCostsOnlyTheReport(): void
    {
        $result = $this->attempt(['listener']);

        self::assertHeld($result);
        self::assertSame('in force', $result['diagnostics']['guards']['seccomp']);
    }

    /** Whether a run connects to the listener, and to another port of the same address. */
    private const CONNECTS = 'return array_map(fn ($to) => @stream_socket_client($to, $code, $message, 5) !== false,'
        . ' [getenv("ALTAIR_TEST_ADDRESS"), getenv("ALTAIR_TEST_OTHER")]);';

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function withServices(): iterable
    {
        foreach (self::users() as $user => [$what]) {
            yield "as it is, $user" => [$what];
            yield "without mounts, $user" => [['mounts', ...$what]];
            yield "without Landlock, $user" => [['landlock', ...$what]];
            yield "behind an outer listener, $user" => [['listener', ...$what]];
        }
    }

    /**
     * @param list<string> $what
     * @dataProvider withServices
     */
    public function testADeclaredServiceIsReachedWhereAGuardIsLackingAndNoOther(array $what): void
    {
        [$service, $other] = $this->addresses();
        $result = $this->attempt($what, ['snippet' => self::CONNECTS, 'services' => [$service]]);

        self::assertSame([true, false], $this->values($result));
        self::assertTrue($this->isReached());
        self::assertFalse($this->isReached($other));
        self::assertContains('--service=' . stream_socket_get_name($other, false), $this->lifts($result));
    }

    public function testWithoutSeccompLandlockOpensTheDeclaredPortAlone(): void
    {
        [$service, $other] = $this->addresses();
        $request = ['snippet' => self::CONNECTS, 'services' => [$service]];
        $result = $this->attempt([], $request, ['altair_eval.omit' => 'ini,seccomp']);

        self::assertSame([true, false], $this->values($result));
        self::assertFalse($this->isReached($other));
        // The attack is one: with Landlock left out as well, it succeeds.
        $settings = ['altair_eval.omit' => 'ini,seccomp,landlock', 'altair_eval.require' => 'ini'];
        $result = $this->attempt([], $request, ['altair_eval.require' => ''] + $settings);
        self::assertSame([true, true], $this->values($result));
    }

    /**
     * @return array{string, resource} the address of the listener, and another one, which the run finds, too
     */
    private function addresses(): array
    {
        $other = stream_socket_server('tcp://127.0.0.1:0') ?: self::fail('No listener.');
        putenv('ALTAIR_TEST_OTHER=tcp://' . stream_socket_get_name($other, false));

        return [(string) stream_socket_get_name($this->listener, false), $other];
    }

    /**
     * @param array<string, mixed> $result
     * @return list<mixed>
     */
    private function values(array $result): array
    {
        return array_column($result['result']['value'] ?? self::fail(var_export($result, true)), 'value');
    }

    /**
     * @param array<string, mixed> $result
     * @return list<?string>
     */
    private function lifts(array $result): array
    {
        return array_column($result['diagnostics']['blocked'] ?? [], 'lift');
    }

    public function testAFileOfAnotherUserIsNotCopiedIntoTheLayerOfAnOrdinaryUserAndThatIsSaid(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can make a file of another user.');
        }
        $request = ['snippet' => 'return @file_put_contents("theirs", "x");'];
        $this->application->giveTo(self::NOBODY, self::NOBODY);
        $theirs = $this->application->write('theirs', 'theirs', 0666);
        chown($theirs, 12345);
        $result = Without::evaluate(
            ['user=' . self::NOBODY],
            $request + ['projectRoot' => $this->application->root, 'timeoutMs' => 60000],
        );

        self::assertFalse($result['result']['value'], var_export($result, true));
        [$blocked] = $result['diagnostics']['blocked'];
        self::assertStringContainsString('theirs: it belongs to another user', $blocked['what']);
        self::assertSame(['filesystem', '--writes'], [$blocked['guard'], $blocked['lift']]);
        self::assertSame('theirs', file_get_contents($theirs));
    }

    public function testAProjectWithAMountBelowItIsReadOnlyForAnOrdinaryUser(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can mount something below the project to begin with.');
        }
        mkdir($this->application->path('volume'));
        $inner = 'mount -t tmpfs x ' . escapeshellarg($this->application->path('volume'))
            . ' && echo kept > ' . escapeshellarg($this->application->path('volume/kept'))
            . ' && exec setpriv --reuid=65534 --regid=65534 --clear-groups '
            . escapeshellarg(PHP_BINARY) . ' -d extension=' . escapeshellarg(Without::extension())
            . ' -r ' . escapeshellarg('echo json_encode((new Altair\Eval\Evaluator())->evaluate('
                . 'new Altair\Eval\EvalRequest('
                . '"return [file_get_contents(\"volume/kept\"), @file_put_contents(\"new\", 1)];", '
                . var_export($this->application->root, true) . '))->toArray(true));');
        [, $output, $errors] = Without::command([], ['unshare', '-m', 'sh', '-c', $inner]);
        $result = json_decode($output, true);

        self::assertSame("kept\n", $result['result']['value'][0]['value'] ?? null, $output . $errors);
        self::assertFalse($result['result']['value'][1]['value']);
        $state = $result['diagnostics']['guards']['filesystem'];
        self::assertStringStartsWith('degraded to a read-only project: ', $state);
        self::assertArrayNotHasKey('file_changes', $result['diagnostics']);
    }

    /**
     * @param list<string> $what
     * @param array<string, mixed> $request
     * @param array<string, string> $settings
     * @return array<string, mixed>
     */
    private function attempt(array $what, array $request = [], array $settings = self::KERNEL_ONLY): array
    {
        if (in_array('user=' . self::NOBODY, $what, true)) {
            $this->application->giveTo(self::NOBODY, self::NOBODY);
        }
        $request += ['snippet' => self::ATTEMPTS, 'projectRoot' => $this->application->root, 'timeoutMs' => 60000];

        return Without::evaluate($what, $request, $settings);
    }

    /**
     * @param array<string, mixed> $result
     */
    private function value(array $result, string $attempt): mixed
    {
        return $result['result']['value'][$attempt]['value'];
    }

    /** Whether somebody has connected since the last time. */
    private function isReached(mixed $listener = null): bool
    {
        return @stream_socket_accept($listener ?? $this->listener, 0) !== false;
    }

    /**
     * What has to hold whatever is lacking, from inside and outside.
     *
     * @param array<string, mixed> $result
     */
    private function assertHeld(array $result): void
    {
        $seen = var_export($result, true);
        self::assertSame('returned', $result['diagnostics']['outcome'] ?? $result['thrown'] ?? '', $seen);
        self::assertFalse($this->value($result, 'read outside'), $seen);
        self::assertFalse($this->value($result, 'connect'), $seen);
        self::assertFalse($this->value($result, 'fork'), $seen);
        self::assertSame(1, $this->value($result, 'write temp'), $seen);
        self::assertSame('x', $this->value($result, 'read temp'), $seen);
        self::assertFalse($this->isReached(), 'Nobody has connected.');
        self::assertFileDoesNotExist($this->application->path('new'));
    }
}
