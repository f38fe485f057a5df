<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Sandbox\Tools;

/**
 * What of a layer becomes real: what was listed, and nothing that gives rights to others.
 */
final class ApplyTest extends CommandEscapeTestCase
{
    private const FILES = ['stored', 'linked', 'timed', 'marked', 'shared', 'directory/one', 'deleted'];

    private Ground $ground;

    /**
     * Lets a command change everything that can be changed, and applies that.
     *
     * @return array{array<string, array<string, mixed>>, array<string, string>, array<string, string>} what was listed,
     *     by path, with its kind; and what there was before and afterwards
     */
    private function applied(Caller $caller): array
    {
        $this->ground = new Ground($caller);
        $place = $this->ground->place;
        mkdir("$place/directory");
        foreach (self::FILES as $file) {
            file_put_contents("$place/$file", 'before');
            chmod("$place/$file", 0644);
        }
        foreach ([...self::FILES, 'directory'] as $file) {
            $this->ground->giveAway("$place/$file");
        }
        foreach (['stored', 'linked'] as $file) {
            link("$place/$file", dirname($this->ground->secretFile) . "/$file");
        }
        $before = $this->described();

        $tools = Tools::shared();
        $options = ['run', "--read=$tools->directory", '--layer=.', '--apply=yes', '--format=json', '--'];
        $command = [$tools->altair(), ...$options, $tools->attack(), 'change-quietly'];
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']];
        $process = proc_open($caller->setting()->hostCommand($command), $streams, $pipes, $place);
        self::assertIsResource($process);
        $output = (string) stream_get_contents($pipes[1]);
        $errors = stream_get_contents($pipes[2]);
        self::assertSame(0, proc_close($process), $output . $errors);
        $result = json_decode($output, true, flags: JSON_THROW_ON_ERROR);
        self::assertTrue($result['applied'], $output);

        $listed = [];
        foreach (['created', 'modified', 'deleted'] as $kind) {
            foreach ($result['file_changes'][$kind] as $change) {
                $listed[$change['path']] = ['kind' => $kind] + $change;
            }
        }

        return [$listed, $before, $this->described()];
    }

    /**
     * @return array<string, string> everything in the directory, by path
     */
    private function described(): array
    {
        exec('cd ' . escapeshellarg($this->ground->place) . ' && ' . Tools::shared()->attack() . ' describe', $lines);
        $described = [];
        foreach ($lines as $line) {
            [$path, $is] = explode("\t", $line, 2);
            $described[preg_replace('~^\./~', '', $path)] = $is;
        }
        self::assertArrayHasKey('.', $described);

        return $described;
    }

    /**
     * @dataProvider everyone
     */
    public function testOnlyWhatWasListedBecomesReal(Caller $caller): void
    {
        [$listed, $before, $after] = $this->applied($caller);

        $changed = array_keys(array_diff_assoc($before, $after) + array_diff_assoc($after, $before));
        $name = static fn (string $path): string => $path === './' ? '.' : rtrim($path, '/');
        $names = array_map($name, array_keys($listed));
        sort($changed);
        sort($names);
        self::assertSame($names, $changed);
        self::assertContains('deep/' . str_repeat('d/', 100) . 'hidden', $names);
    }

    /**
     * @dataProvider everyone
     */
    public function testNothingGivesRightsToOthersButAModeThatWasListed(Caller $caller): void
    {
        [$listed, , $after] = $this->applied($caller);

        foreach ($after as $path => $is) {
            self::assertStringNotContainsString('posix_acl', $is, $path);
            self::assertSame(0, octdec(explode(' ', $is)[0]) & 06000, "$path $is");
        }
        self::assertSame('755 → 777', $listed['./']['mode']);
        self::assertSame('644 → 666', $listed['stored']['mode']);
        // A list has the rights of the owner and of others in it.
        self::assertSame('644 → 775', $listed['shared']['mode']);
        self::assertStringContainsString('access list', implode(', ', $listed['shared']['notes'] ?? []));
        self::assertStringContainsString('access list', implode(', ', $listed['directory/']['notes']));
        // The filter of system calls refuses set-ID bits, too.
    }

    /**
     * @dataProvider everyone
     */
    public function testWhatChangesIsSaid(Caller $caller): void
    {
        [$listed] = $this->applied($caller);

        self::assertSame(
            ['kind' => 'created', 'path' => 'away', 'size' => 11, 'type' => 'link', 'target' => '/etc/passwd'],
            $listed['away'],
        );
        self::assertSame('pipe', $listed['pipe']['type']);
        self::assertSame('directory', $listed['deep/']['type']);
        self::assertStringContainsString('user.mark', implode(', ', $listed['marked']['notes']));
        self::assertStringContainsString('time', implode(', ', $listed['timed']['notes']));
        self::assertContains('linked elsewhere: replaced', $listed['linked']['notes']);
        self::assertContains('linked elsewhere: replaced', $listed['stored']['notes']);
    }

    /**
     * @dataProvider everyone
     */
    public function testOtherNamesOfAFileOutsideStayAsTheyAre(Caller $caller): void
    {
        $this->applied($caller);

        $outside = dirname($this->ground->secretFile);
        clearstatcache();
        foreach (['stored', 'linked'] as $file) {
            self::assertSame('before', file_get_contents("$outside/$file"), $file);
            self::assertSame(0644, fileperms("$outside/$file") & 07777, $file);
            self::assertNotSame(fileinode("$outside/$file"), fileinode("{$this->ground->place}/$file"), $file);
        }
        self::assertSame('changed', file_get_contents("{$this->ground->place}/linked"));
    }
}
