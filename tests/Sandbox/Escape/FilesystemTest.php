<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Sandbox\Tools;
use Altair\Eval\Tests\Support\Skip;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Sandbox;

/**
 * Files outside, those that root's commands could read, and what a command leaves behind.
 */
final class FilesystemTest extends CommandEscapeTestCase
{
    /**
     * @dataProvider everyone
     */
    public function testFilesOutsideAreNotRead(Caller $caller): void
    {
        self::assertHeld($caller, static fn (Ground $ground): array => [
            'steal', $ground->secretFile, (string) fileinode($ground->secretFile),
        ], ['--write=.']);
    }

    /**
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function waysToWrite(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            yield "$name: a writable path" => [$caller, ['--write=.', '--read=../outside']];
            yield "$name: a layer that is applied" => [$caller, ['--layer=.', '--apply=yes', '--read=../outside']];
        }
    }

    /**
     * @param list<string> $options
     *
     * @dataProvider waysToWrite
     */
    public function testFilesOutsideStayAsTheyAre(Caller $caller, array $options): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['harm', $ground->secretFile],
            $options,
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testTheFileThatIsReadFromStaysAsItIs(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (): array => ['input'],
            ['--write=.'],
            input: static fn (Ground $ground): array => ['file', $ground->secretFile, 'r'],
        );
    }

    /**
     * @param list<string> $options
     *
     * @dataProvider waysToWrite
     */
    public function testNoProgramGetsItsOwnersRights(Caller $caller, array $options): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['set-id', $ground->place],
            $options,
            static function (Ground $ground): array {
                clearstatcache();

                return array_values(array_filter(
                    glob("$ground->place/*"),
                    static fn (string $path): bool => (fileperms($path) & 06000) !== 0
                        || !in_array(filetype($path), ['file', 'dir'], true),
                ));
            },
        );
    }

    public function testACommandOfRootsReadsNoneOfRootsSecrets(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root has them.');
        }
        $hash = strtok((string) file_get_contents('/etc/shadow'), "\n");
        self::assertHeld(
            Caller::Root,
            static fn (): array => ['steal', '/etc/shadow'],
            harm: static fn (Ground $ground, string $output): array =>
                str_contains($output, $hash) ? ['a line of /etc/shadow came out'] : [],
        );
    }

    public function testTheWorkDirectoryIsGoneWhateverIsInIt(): void
    {
        $base = self::base();
        foreach ([['mess'], ['mess', 'names']] as $attack) {
            $policy = ExecutionPolicy::in($base)->withReadablePaths(Tools::shared()->directory)->withTimeout(30);
            $result = Sandbox::native($policy)->execute([Tools::shared()->attack(), ...$attack]);
            self::assertStringContainsString('write: 1', $result->stdout());
            self::assertSame([], array_diff(scandir($base), ['.', '..']));
        }
        rmdir($base);
    }

    public function testWhatIsPutInThePlaceOfTheWorkDirectoryStays(): void
    {
        $base = self::base();
        $victim = self::base();
        file_put_contents("$victim/kept", '');
        $policy = ExecutionPolicy::in($base)->withReadablePaths(Tools::shared()->directory);
        $swapped = [];
        [$input, $end] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $result = Sandbox::native($policy)->execute(
            [Tools::shared()->attack(), 'stay'],
            $input,
            static function () use ($base, $victim, $end, &$swapped): void {
                foreach (glob("$base/sandbox-*") as $path) {
                    rename($path, "$base/moved");
                    $swapped[] = symlink($victim, $path);
                }
                // It stays until its input ends.
                stream_socket_shutdown($end, STREAM_SHUT_WR);
            },
        );
        self::assertSame([0, [true]], [$result->exitCode(), $swapped]);
        self::assertFileExists("$victim/kept");
        self::assertSame(posix_geteuid(), fileowner($victim));
        Tools::run('rm -rf ' . escapeshellarg($base) . ' ' . escapeshellarg($victim));
    }

    private static function base(): string
    {
        $base = '/var/tmp/altair-base-' . bin2hex(random_bytes(6));
        mkdir($base);

        return $base;
    }
}
