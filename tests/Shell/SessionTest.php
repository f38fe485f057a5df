<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Shell;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Shell;
use Altair\Eval\Tests\Support\ShellTestCase;

/**
 * `altair shell`: the session as a whole, from its boot to its end.
 */
final class SessionTest extends ShellTestCase
{
    private const BROKEN = '<?php throw new RuntimeException("no boot");';

    public function testABootThatFailsEndsTheShellWithTheReason(): void
    {
        $root = $this->application(['vendor/autoload.php' => self::BROKEN])->root;
        $shell = Command::run(['shell', "--root=$root"], input: "1\n");

        self::assertSame(1, $shell->exitCode, $shell->errors);
        self::assertStringStartsWith("✗ Boot failed: The autoloader threw.\n", $shell->output);
        self::assertStringContainsString("  RuntimeException: no boot\n", $shell->output);
        self::assertStringNotContainsString('int = 1', $shell->output);
    }

    public function testABootThatTakesTooLongIsEndedAtTheDeadline(): void
    {
        $root = $this->application(['vendor/autoload.php' => '<?php while (true);'])->root;
        $shell = Command::run(['shell', "--root=$root", self::SOON], input: "1\n");

        self::assertSame(1, $shell->exitCode, $shell->errors);
        self::assertStringStartsWith('✗ Timed out after ', $shell->output);
    }

    public function testABootThatFailsLaterIsToldByEachLineUntilItWorksAgain(): void
    {
        $application = $this->application();
        $works = (string) file_get_contents($application->path('vendor/autoload.php'));
        $shell = $this->shell();
        $shell->ask('$kept = 1;');
        $application->write('vendor/autoload.php', self::BROKEN);

        self::assertStringContainsString('$kept, $_ are lost', $shell->ask('posix_kill(getmypid(), SIGKILL);'));
        self::assertStringStartsWith('✗ Boot failed: The autoloader threw.', $shell->ask('1'));
        self::assertStringStartsWith('✗ Boot failed: The autoloader threw.', $shell->ask(':restart'));
        $application->write('vendor/autoload.php', $works);
        self::assertSame("✓ int = 1\n", $shell->ask('1'));
    }

    public function testAFileThatChangedIsNamedOnceBeforeTheNextAnswer(): void
    {
        $application = $this->application();
        $application->write('src/Greeter.php', '<?php namespace App; class Greeter { const SAYS = "hi"; }');
        $application->write('src/Other.php', '<?php namespace App; class Other { }');
        $shell = $this->shell();
        self::assertSame("✓ string = 'hi'\n", $shell->ask('App\Greeter::SAYS'));
        $application->write('src/Greeter.php', '<?php namespace App; class Greeter { const SAYS = "hello"; }');
        $application->write('src/Other.php', '<?php namespace App; class Other { const A = 1; }');

        self::assertSame(
            "altair: changed since the session has loaded it: src/Greeter.php; :restart boots anew\n"
                . "✓ string = 'hi'\n",
            $shell->ask('App\Greeter::SAYS'),
        );
        self::assertSame("✓ int = 1\n", $shell->ask('App\Other::A'));
        self::assertSame("booted anew; no variables are left\n", $shell->ask(':restart'));
        self::assertSame("✓ string = 'hello'\n", $shell->ask('App\Greeter::SAYS'));
    }

    public function testAFileThatIsGoneIsNamed(): void
    {
        $application = $this->application();
        $application->write('src/Greeter.php', '<?php namespace App; class Greeter { }');
        $shell = $this->shell();
        $shell->ask('new App\Greeter()');
        $application->remove('src/Greeter.php');

        self::assertStringStartsWith('altair: changed since the session has loaded it: src/Greeter', $shell->ask('1'));
    }

    public function testAThousandLinesLeaveNothingBehind(): void
    {
        $shell = $this->shell();
        $lines = static fn (int $count): string => implode('', array_map(
            static fn (int $n): string => "\$n = $n; str_repeat('x', $n)\nuse A\\B$n; function f$n() { return $n; }\n",
            range(1, $count),
        ));
        $child = $shell->child();
        $shell->ask($lines(20) . '1');
        $before = $this->footprint($shell, $child);
        $rest = preg_replace('/\bf(\d+)\(/', 'g$1(', $lines(500));
        $answer = $shell->ask($rest . '$n');
        $after = $this->footprint($shell, $child);

        self::assertSame(1001, substr_count($answer, '✓'), $answer);
        self::assertStringEndsWith("✓ int = 500\n", $answer);
        self::assertSame($before['descriptors'], $after['descriptors']);
        self::assertLessThan($before['shell'] + 4096, $after['shell'], 'the shell, in KB');
        self::assertLessThan($before['child'] + 8192, $after['child'], 'the session, in KB');
    }

    /** @return array{descriptors: array<int, list<int>>, shell: int, child: int} */
    private function footprint(Shell $shell, int $child): array
    {
        $resident = static fn (int $pid): int => (int) Processes::status($pid)['VmRSS'];

        return [
            'descriptors' => array_map(
                static fn (int $pid): array => array_keys(Processes::descriptors((string) $pid)),
                [$shell->pid(), $child],
            ),
            'shell' => $resident($shell->pid()),
            'child' => $resident($child),
        ];
    }

    public function testTheSessionEndsWithItsShell(): void
    {
        $shell = $this->shell();
        $child = $shell->child();
        exec('kill -KILL ' . $shell->pid());
        $shell->end();

        $until = microtime(true) + 10;
        while (Processes::stat($child) !== [] && microtime(true) < $until) {
            usleep(1000);
        }
        self::assertSame([], Processes::stat($child));
    }

    public function testTheDestructorsOfWhatIsLeftRunAtTheEnd(): void
    {
        $shell = $this->shell('--writes');
        $shell->ask('$d = new class { function __destruct() { file_put_contents("gone", "1"); } };');
        self::assertSame([0, ''], $shell->end());

        self::assertFileExists($this->application()->path('gone'));
    }

    public function testADestructorWithoutEndDoesNotKeepTheShell(): void
    {
        $shell = $this->shell(self::SOON);
        $shell->ask('$d = new class { function __destruct() { while (true) { sleep(60); } } };');
        $began = microtime(true);
        $shell->end();

        self::assertLessThan(5, microtime(true) - $began);
    }
}
