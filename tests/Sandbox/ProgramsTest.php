<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Sandbox\Tools;

/**
 * Ordinary programs do behind the guards what they do without: what is refused to them they do without.
 */
final class ProgramsTest extends CommandEscapeTestCase
{
    /** Where the system's own programs are. */
    private const ENVIRONMENT = ['PATH' => '/usr/local/bin:/usr/bin:/bin'];

    private const PROGRAMS = [
        'git' => 'git init -q . && echo text > file && git add file && git -c user.name=x -c user.email=x@x.test'
            . ' commit -qm first && git log --format=%s | cat && git status --short',
        'cp --reflink=auto' => 'echo text > from && cp --reflink=auto from to && cat to',
        'make' => 'printf \'all: a b\na b:; @echo made $@\n\' > Makefile && make -s -j2 | sort',
        'node' => 'node -e "const run = require(\'child_process\').execSync;'
            . ' console.log(run(\'echo child\').toString().trim(), process.stdout.isTTY === undefined)"',
        'python3' => 'python3 -c "import subprocess, sys;'
            . ' print(subprocess.run([\'echo\', \'child\'], capture_output=True).stdout, sys.stdin.isatty())"',
        'bash' => 'bash -c "set -o pipefail; seq 1000 | sort -rn | head -n 3 | tee copy; exec 3<>copy; read line <&3;'
            . ' echo \$line; (sleep 60 & kill \$!; wait \$!; echo \$?)"',
        'lsattr' => 'echo text > file && lsattr file | wc -l',
        'tar' => 'mkdir a && echo text > a/file && tar cf a.tar a && tar tf a.tar',
    ];

    /**
     * Those whose processes the kernel counts. Where the host does, a signal at the wrong moment can interrupt the
     * call that makes a process.
     *
     * @return iterable<string, array{Caller}>
     */
    public static function counted(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            if ($caller !== Caller::Root) {
                yield $name => [$caller];
            }
        }
    }

    /**
     * @dataProvider counted
     */
    public function testTheyDoTheSame(Caller $caller): void
    {
        foreach (self::PROGRAMS as $program => $script) {
            $shell = ['sh', '-c', $script];
            $free = new Ground($caller);
            $without = self::ran($free, $caller->setting()->command($shell));
            $ground = new Ground($caller);
            $confined = self::ran($ground, self::confined($ground, [], ['--write=.'], $shell));
            self::assertSame($without, $confined, $program);
        }
    }

    /**
     * @dataProvider counted
     */
    public function testAtATerminalTheyHaveOne(Caller $caller): void
    {
        $ground = new Ground($caller);
        $inside = 'stty size; stty -echo; stty echo; test -t 0 && test -t 1 && tty > /dev/null;'
            . ' bash -ic "jobs; sleep 60 & kill %1; wait %1" 2> /dev/null; echo text | less -FX; vim -N -u NONE -c q';
        $command = self::confined($ground, [], ['--write=.'], ['sh', '-c', $inside]);
        $line = 'stty rows 33 cols 77; ' . implode(' ', array_map(escapeshellarg(...), $command));
        [$output, $code] = self::ran($ground, ['script', '-qec', $line, '/dev/null']);

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('33 77', $output);
        self::assertStringContainsString("text\r\n", $output);
        self::assertStringNotContainsString('ioctl', $output);
    }

    /**
     * @param list<string> $lacking
     *
     * @dataProvider levels
     */
    public function testAServerServesWithTheNetworkOn(Caller $caller, array $lacking): void
    {
        $free = stream_socket_get_name(stream_socket_server('tcp://127.0.0.1:0'), false);
        $servers = [
            [PHP_BINARY, '-n', '-S', $free, '-t', '.'],
            ['python3', '-u', '-m', 'http.server', '--bind', '127.0.0.1', '0'],
        ];
        foreach ($servers as $server) {
            $ground = new Ground($caller);
            file_put_contents("$ground->place/file", 'served');
            $command = self::confined($ground, $lacking, ['--network'], $server);
            $streams = [['pipe', 'r'], ['pipe', 'w'], ['redirect', 1]];
            $process = proc_open($command, $streams, $pipes, $ground->place, self::ENVIRONMENT);
            $said = '';
            while (!preg_match('/127\.0\.0\.1(?::| port )(\d+)/', $said, $found)) {
                $line = fgets($pipes[1]);
                self::assertIsString($line, $said);
                $said .= $line;
            }
            self::assertSame('served', file_get_contents("http://127.0.0.1:$found[1]/file"));
            proc_terminate($process, SIGTERM);
            proc_close($process);
        }
    }

    /**
     * @dataProvider everyone
     */
    public function testALoopOverAListGoesOn(Caller $caller): void
    {
        $ground = new Ground($caller);
        file_put_contents("$ground->place/list", "one\ntwo\nthree\n");
        $command = implode(' ', array_map(escapeshellarg(...), self::confined($ground, [], [], ['cat'])));
        [$output] = self::ran($ground, ['sh', '-c', "while read line; do echo \$line; $command; done < list"]);

        self::assertSame("one\ntwo\nthree\ntwo\nthree\nthree\n", $output);
    }

    /**
     * @param list<string> $lacking
     * @param list<string> $options
     * @param list<string> $command
     * @return list<string>
     */
    private static function confined(Ground $ground, array $lacking, array $options, array $command): array
    {
        $command = [Tools::shared()->altair(), 'run', ...$options, '--', ...$command];

        return $lacking === []
            ? $ground->caller->setting()->hostCommand($command)
            : [...self::where($ground, $lacking), ...$command];
    }

    /**
     * @param list<string> $command
     * @return array{string, int} its output, and its exit code
     */
    private static function ran(Ground $ground, array $command): array
    {
        $environment = self::ENVIRONMENT + ['HOME' => $ground->place, 'TERM' => 'xterm'];
        $errors = ['file', "$ground->place/../errors", 'w'];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], $errors], $pipes, $ground->place, $environment);
        fclose($pipes[0]);
        $output = (string) stream_get_contents($pipes[1]);

        return [$output, proc_close($process)];
    }
}
