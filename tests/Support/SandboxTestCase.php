<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Data\ExecResult;
use Altair\Sandbox\Sandbox;
use Throwable;

/**
 * Runs commands with the real drivers. After each test it checks from outside that none of them has left a process, a
 * container, a mount, or anything in its base directory.
 */
abstract class SandboxTestCase extends EvaluationTestCase
{
    use Refusals {
        assertRefused as protected;
    }

    /** Seconds until the deadline of a command that is not to meet it. */
    protected const PATIENCE = 60;

    protected TemporaryApplication $base;

    /** Is in the arguments or the environment of every process of a command. */
    protected string $commandMark;

    protected function setUp(): void
    {
        $this->base = new TemporaryApplication();
        $this->base->remove('vendor');
        // Whoever a command of root's runs as.
        chmod($this->base->root, 0755);
        $this->commandMark = 'altair-command-' . bin2hex(random_bytes(8));
        parent::setUp();
    }

    protected function assertPostConditions(): void
    {
        self::assertSame([], Processes::startedWith($this->commandMark), 'No process of a command is left.');
        self::assertSame([], self::workDirectories($this->base->root), 'No work directory is left.');
        self::assertSame([], $this->mounts(), 'No mount is left.');
        if (getenv('DOCKER_HOST') !== false) {
            self::assertSame([], DockerEngine::shared()->containers(), 'No container is left.');
        }
        parent::assertPostConditions();
    }

    /**
     * The drivers that run here for real. Podman is none of them: it needs more of a kernel than a container has.
     *
     * @return iterable<string, array{string}>
     */
    public static function drivers(): iterable
    {
        yield from self::localDrivers();
        yield 'docker' => ['docker'];
    }

    /**
     * Those whose commands see the programs of this machine.
     *
     * @return iterable<string, array{string}>
     */
    public static function localDrivers(): iterable
    {
        yield 'host' => ['host'];
        yield from self::confiningLocalDrivers();
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function confiningDrivers(): iterable
    {
        yield from self::confiningLocalDrivers();
        yield 'docker' => ['docker'];
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function confiningLocalDrivers(): iterable
    {
        foreach (['native', 'bubblewrap', 'firejail'] as $driver) {
            yield $driver => [$driver];
        }
    }

    protected function policy(): ExecutionPolicy
    {
        return ExecutionPolicy::in($this->base->root)
            ->withTimeout(self::PATIENCE)
            ->withEnv(['MARK' => $this->commandMark]);
    }

    protected function sandbox(string $driver, ?ExecutionPolicy $policy = null): CanExecuteCommand
    {
        $policy ??= $this->policy();
        if ($driver === 'docker') {
            $this->useEngine();

            return Sandbox::docker($policy, DockerEngine::IMAGE);
        }
        $program = ['bubblewrap' => 'bwrap', 'firejail' => 'firejail'][$driver] ?? 'sh';
        exec("command -v $program", result_code: $missing);
        if ($missing !== 0) {
            Skip::NotInstalled->because("$program is not installed. `scripts/setup.sh drivers` would.");
        }

        return Sandbox::fromPolicy($policy)->using($driver);
    }

    /** Lets Docker's client find the engine of the tests. */
    protected function useEngine(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can start a Docker engine.');
        }
        $why = DockerEngine::whyMissing();
        if ($why !== null) {
            Skip::NotInstalled->because($why);
        }
        $this->setVariable('DOCKER_HOST', DockerEngine::shared()->host());
    }

    /** Runs a shell script. */
    protected function sh(
        string $driver,
        string $script,
        ?ExecutionPolicy $policy = null,
        mixed $stdin = null,
        ?callable $onOutput = null,
    ): ExecResult {
        return $this->sandbox($driver, $policy)->execute($this->shell($script), $stdin, $onOutput);
    }

    /**
     * @return non-empty-list<string>
     */
    protected function shell(string $script): array
    {
        return ['sh', '-c', $script, $this->commandMark];
    }

    /** What the script printed that ended well. */
    protected function printed(string $driver, string $script, ?ExecutionPolicy $policy = null): string
    {
        $result = $this->sh($driver, $script, $policy);
        self::assertTrue($result->success(), var_export($result->toArray(), true));

        return $result->stdout();
    }

    /**
     * @return list<string> the processes of commands that there are now, zombies included
     */
    protected function commandProcesses(): array
    {
        $found = array_map(intval(...), Processes::startedWith($this->commandMark));
        foreach (Processes::all() as $pid) {
            if (str_contains((string) @file_get_contents("/proc/$pid/cmdline"), $this->commandMark)) {
                $found[] = (int) $pid;
            }
        }

        return array_map(strval(...), array_unique($found));
    }

    /**
     * @return list<string>
     */
    protected static function workDirectories(string $base): array
    {
        return array_map(basename(...), glob("$base/sandbox-*") ?: []);
    }

    /**
     * @return list<string> what is mounted below the base directory
     */
    private function mounts(): array
    {
        return array_values(array_filter(
            file('/proc/self/mountinfo') ?: [],
            fn (string $mount): bool => str_contains($mount, $this->base->root),
        ));
    }

    /** What `$what` throws. */
    protected static function thrownBy(callable $what): ?Throwable
    {
        try {
            $what();
        } catch (Throwable $thrown) {
            return $thrown;
        }

        return null;
    }
}
