<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * What stands around an attack: which guards, and as whom the host runs.
 */
enum Setting: string
{
    case AllAsRoot = 'all guards, as root';
    case AllAsUser = 'all guards, as a user';
    /** Every switch of PHP's is off and FFI is on: what a snippet calls natively is really called. */
    case KernelAsRoot = 'kernel guards only, as root';
    case KernelAsUser = 'kernel guards only, as a user';
    /** What root's host runs for a project of somebody else runs as that one. */
    case KernelAsRootForAUser = 'kernel guards only, as root for a project of a user';

    /** What must hold with PHP's switches and without them. */
    public const ALL = [self::AllAsRoot, self::AllAsUser, self::KernelAsRoot, self::KernelAsUser];

    /** Native code, which PHP's switches do not let run at all: what holds is the kernel's doing. */
    public const NATIVE = [self::KernelAsRoot, self::KernelAsUser, self::KernelAsRootForAUser];

    /** Where PHP's own switches are what holds. */
    public const WITH_INI = [self::AllAsRoot, self::AllAsUser];

    /**
     * Where attacks are made in a process of their own, too: with PHP's switches and without, as root and as a user.
     * As a fork, which costs a tenth of that, they are made everywhere.
     */
    private const COLD = [self::AllAsUser, self::KernelAsRoot, self::KernelAsUser];

    /** Where one of these is left out, `diagnostics.start_reason` says so, and no setting above does. */
    public const NO_TEMPLATE_WITHOUT = ['privileges', 'filesystem', 'seccomp'];

    /**
     * A user that no system has, so that nothing else of the machine's is its. Tests that run beside others have one of
     * their own: the kernel counts what a user has.
     */
    private const ORDINARY_USER = 54321;

    public function isNative(): bool
    {
        return in_array($this, self::NATIVE, true);
    }

    /**
     * @return list<string> the guards that it leaves out
     */
    public function omitted(): array
    {
        return $this->isNative() ? ['ini'] : [];
    }

    /**
     * How attacks are made in it: a run that lacks one of some guards has no template to be kept from.
     *
     * @return list<Start>
     */
    public function starts(): array
    {
        return match (true) {
            array_intersect(self::NO_TEMPLATE_WITHOUT, $this->omitted()) !== [] => [Start::Cold],
            in_array($this, self::COLD, true) => [Start::Cold, Start::Warm],
            default => [Start::Warm],
        };
    }

    public function isRoot(): bool
    {
        return !in_array($this, [self::AllAsUser, self::KernelAsUser], true);
    }

    /** Only root can become another user. */
    public function isPossible(): bool
    {
        return !$this->isRoot() || posix_geteuid() === 0;
    }

    /** Whose the project is, and as whom its runs run. */
    public function uid(): int
    {
        if (posix_geteuid() !== 0) {
            return posix_geteuid();
        }

        return $this === self::AllAsRoot || $this === self::KernelAsRoot
            ? 0
            : (int) (getenv('ALTAIR_TEST_USER') ?: self::ORDINARY_USER);
    }

    public function gid(): int
    {
        return posix_geteuid() === 0 ? $this->uid() : posix_getegid();
    }

    /**
     * @param list<string> $command
     * @return list<string> the command that runs it as the user whose the project is
     */
    public function command(array $command): array
    {
        if ($this->uid() === posix_geteuid()) {
            return $command;
        }

        return ['setpriv', '--reuid=' . $this->uid(), '--regid=' . $this->gid(), '--clear-groups', '--', ...$command];
    }

    /**
     * @param list<string> $command
     * @return list<string> the command that runs it as the one who is the host in this setting
     */
    public function hostCommand(array $command): array
    {
        // In a container, the tests have a right that its hosts must not have: to look at others' processes.
        return match (true) {
            !$this->isRoot() => $this->command($command),
            getenv('ALTAIR_TEST_WATCHES') === '1' => ['setpriv', '--bounding-set=-sys_ptrace', '--', ...$command],
            default => $command,
        };
    }
}
