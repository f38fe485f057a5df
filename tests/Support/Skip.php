<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use PHPUnit\Framework\Assert;

/**
 * Why a test may be left out, and where. A reason that does not hold here fails the test: nothing is left out unseen.
 */
enum Skip
{
    /** It needs root, and a root who may set up the machine: not a container's. */
    case NeedsRoot;

    /** It needs an ordinary user. */
    case NeedsUser;

    /** The kernel that runs lacks something that `make setup` cannot install. */
    case LacksKernel;

    /** It changes settings of the whole machine; ALTAIR_TEST_MACHINE=1 allows it. */
    case ChangesMachine;

    /** Something is missing that `make setup` installs; ALTAIR_TEST_INCOMPLETE=1 does without. */
    case NotInstalled;

    /** It is about what a later PHP has. */
    case OlderPhp;

    /** It does something that a container's profile refuses to everybody, guards or not. */
    case RefusedToAll;

    /** Leaves the test out, or fails it where it should have run. */
    public function because(string $why): never
    {
        $this->holds()
            ? Assert::markTestSkipped($why)
            : Assert::fail("$why This test is not left out here ($this->name).");
    }

    /** Whether it is a reason here. */
    public function holds(): bool
    {
        return match ($this) {
            self::NeedsRoot => posix_geteuid() !== 0 || !is_writable('/proc/sys/kernel/core_pattern'),
            self::NeedsUser => posix_geteuid() === 0,
            self::LacksKernel => true,
            self::OlderPhp => PHP_VERSION_ID < 80400,
            self::RefusedToAll => (Processes::status(getmypid())['Seccomp'] ?? '0') !== '0',
            self::ChangesMachine => getenv('ALTAIR_TEST_MACHINE') !== '1',
            self::NotInstalled => getenv('ALTAIR_TEST_INCOMPLETE') === '1',
        };
    }
}
