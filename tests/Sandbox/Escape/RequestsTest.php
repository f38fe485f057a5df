<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Sandbox\Tools;
use Altair\Eval\Tests\Support\Skip;

/**
 * What ioctl(2) asks of files and file systems that a command may only read.
 */
final class RequestsTest extends CommandEscapeTestCase
{
    /**
     * @param list<string> $lacking
     *
     * @dataProvider levels
     */
    public function testAFileThatMayOnlyBeReadKeepsItsAttributes(Caller $caller, array $lacking): void
    {
        $harm = static function (Ground $ground): array {
            [$attributes] = explode(' ', (string) exec('lsattr ' . escapeshellarg($ground->secretFile)));

            return str_contains($attributes, 'd') ? ["The file has the attributes $attributes"] : [];
        };
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['request', $ground->secretFile],
            ['--read=../outside'],
            $harm,
            lacking: $lacking,
        );
    }

    /**
     * @param list<string> $lacking
     *
     * @dataProvider levels
     */
    public function testAnEncryptedDirectoryIsNotLockedForTheMachine(Caller $caller, array $lacking): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can mount a file system with encryption.');
        }
        $mounted = Tools::shared()->directory . '/encrypted';
        $image = escapeshellarg("$mounted.image");
        Tools::run("mkdir $mounted && truncate --size=4M $image && mkfs.ext4 -q -O encrypt $image"
            . " && mount -o loop $image $mounted && chown {$caller->uid()} $mounted");
        try {
            $attack = Tools::shared()->attack();
            $as = implode(' ', $caller->setting()->command([$attack]));
            $key = exec("$as add-key $mounted");
            self::assertHeld(
                $caller,
                static function () use ($as, $mounted, $key): array {
                    // As it is before each attack.
                    exec("$as add-key $mounted");

                    return ['request', $mounted, $key];
                },
                ["--read=$mounted"],
                static fn (): array => exec("$attack has-key $mounted $key") === 'present' ? [] : ['The key is gone.'],
                lacking: $lacking,
            );
        } finally {
            Tools::run("umount $mounted && rm -rf $mounted $image");
        }
    }
}
