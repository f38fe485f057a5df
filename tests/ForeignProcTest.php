<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * A host whose /proc is that of another pid namespace, as in a container that has its host's: it knows processes by
 * other ids there, so it must neither take them for those of a run nor promise to find these.
 */
final class ForeignProcTest extends TestCase
{
    /** Starts a process that leaves the run's session, and leaves a mark. */
    private const STARTS_ANOTHER = 'exec("setsid sleep %s >/dev/null 2>&1 </dev/null &"); touch("it-ran");';

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can have a pid namespace and the /proc of another.');
        }
        $this->application = new TemporaryApplication();
    }

    public function testAnUnsafeRunIsRefusedThatCouldNotBeEnded(): void
    {
        // A number that is no other process's argument.
        $snippet = sprintf(self::STARTS_ANOTHER, $number = (string) random_int(10 ** 8, 10 ** 9));

        [$status, $output] = $this->altair('--mount-proc', 'eval', '--unsafe', $snippet);
        self::assertSame(0, $status, $output);
        self::assertFileExists($this->application->path('it-ran'), 'With the right one it runs,');
        self::assertSame([], $this->sleeping($number), 'and leaves nothing.');
        $this->application->remove('it-ran');

        [$status, $output] = $this->altair('', 'eval', '--unsafe', $snippet);
        self::assertSame(2, $status, $output);
        self::assertStringContainsString('/proc is that of another pid namespace', $output);
        self::assertStringContainsString('mount -t proc proc /proc', $output);
        self::assertFileDoesNotExist($this->application->path('it-ran'));
        self::assertSame([], $this->sleeping($number));

        [$status, $output] = $this->altair('', 'run', '--driver=host', '--', 'touch', 'it-ran');
        self::assertSame(125, $status, $output);
        self::assertFileDoesNotExist($this->application->path('it-ran'));
    }

    public function testAConfinedRunIsAnsweredAndTheDoctorNamesTheCause(): void
    {
        [$status, $output] = $this->altair('', 'eval', '--format=json', 'return 7;');
        $answer = json_decode($output, true) ?? self::fail($output);
        self::assertSame([0, 7], [$status, $answer['result']['value']]);
        self::assertStringContainsString('another pid namespace', $answer['diagnostics']['guards']['deadline']);

        [, $output] = $this->altair('', 'doctor', '--format=json');
        $report = json_decode($output, true) ?? self::fail($output);
        $guards = array_column($report['guards'], null, 'name');
        self::assertSame('degraded', $guards['deadline']['state']);
        self::assertStringContainsString('--mount-proc', $guards['deadline']['remedies'][0]['how']);
        // What it sees by other ids is no sign that another guard gives way.
        $verdicts = array_map(static fn (array $guard): string => $guard['self_test']['verdict'], $guards);
        self::assertSame(['deadline'], array_keys($verdicts, 'failed', true));
    }

    /**
     * @return array{int, string}
     */
    private function altair(string $option, string ...$arguments): array
    {
        $command = array_map(escapeshellarg(...), [dirname(__DIR__) . '/bin/altair', ...$arguments]);
        $root = escapeshellarg($this->application->root);
        $inside = "cd $root && unshare --pid --fork --kill-child $option";
        exec("$inside " . implode(' ', $command) . ' 2>&1', $lines, $status);

        return [$status, implode("\n", $lines)];
    }

    /** @return list<string> */
    private function sleeping(string $number): array
    {
        exec('pgrep --full --exact ' . escapeshellarg("sleep $number"), $found);

        return $found;
    }
}
