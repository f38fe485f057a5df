<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * `altair doctor`: what it says of this machine, of one that lacks something, and of one that is strange.
 */
final class DoctorTest extends TestCase
{
    private const GUARDS = [
        'process', 'environment', 'ini', 'limits', 'privileges', 'filesystem', 'landlock', 'seccomp', 'deadline',
    ];

    /** What cannot be left out has no run without it to compare with, but for descriptors. */
    private const ALWAYS_ON = ['process', 'deadline'];

    private const NOBODY = 65534;

    private TemporaryApplication $elsewhere;

    protected function setUp(): void
    {
        $this->elsewhere = new TemporaryApplication();
        mkdir($this->elsewhere->path('tmp'));
        chmod($this->elsewhere->path('tmp'), 01777);
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function users(): iterable
    {
        yield 'as this user' => [[]];
        if (posix_geteuid() === 0) {
            yield 'as an ordinary user' => [['user=' . self::NOBODY]];
        }
    }

    /**
     * @dataProvider users
     * @param list<string> $user
     */
    public function testEveryGuardIsInForceAndHoldsWhatGetsThroughWithoutIt(array $user): void
    {
        [$code, $report] = $this->examine($user);

        self::assertSame([0, true, []], [$code, $report['ok'], $report['problems']], self::shown($report));
        self::assertSame(self::GUARDS, array_column($report['guards'], 'name'));
        foreach ($report['guards'] as $guard) {
            $test = $guard['self_test'];
            self::assertSame(
                ['in_force', 'passed', null, []],
                [$guard['state'], $test['verdict'], $test['reason'], $guard['remedies']],
                self::shown($guard),
            );
            self::assertNotSame([], $test['attacks'], $guard['name']);
            foreach ($test['attacks'] as $attack) {
                self::assertTrue($attack['held']);
                self::assertNotSame($attack['seen'], $attack['without']);
            }
            $compared = array_filter(array_column($test['attacks'], 'without'), is_string(...));
            if (!in_array($guard['name'], self::ALWAYS_ON, true)) {
                self::assertCount(count($test['attacks']), $compared, $guard['name']);
            }
        }
        self::assertSame(count($user) === 0 ? posix_geteuid() : self::NOBODY, $report['user']['uid']);
        self::assertSame(
            [PHP_VERSION, 'cli', (bool) PHP_ZTS, (bool) PHP_DEBUG, null],
            [
                $report['php']['version'], $report['php']['sapi'], $report['php']['thread_safe'],
                $report['php']['debug'], $report['php']['problem'],
            ],
        );
        self::assertSame(
            ['path' => Without::extension(), 'version' => phpversion('altair_eval'), 'problem' => null],
            $report['extension'],
        );
        self::assertSame(
            [php_uname('r'), php_uname('m')],
            [$report['kernel']['release'], $report['kernel']['architecture']],
        );
        self::assertMatchesRegularExpression('/^ABI \d+$/', self::guard($report, 'landlock')['version']);
        self::assertSame(
            [
                ['name' => 'layer', 'works' => true, 'problem' => null],
                ['name' => 'template', 'works' => true, 'problem' => null],
            ],
            $report['abilities'],
        );
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function placesOfServices(): iterable
    {
        yield 'as it is' => [[]];
        yield 'behind an outer listener' => [['listener']];
    }

    /**
     * @dataProvider placesOfServices
     * @param list<string> $without
     */
    public function testItConnectsToEachServiceAsARunDoes(array $without): void
    {
        // A database's default port, at an address that no other test uses.
        $address = sprintf('127.%d.%d.%d', random_int(1, 254), random_int(0, 254), random_int(1, 254));
        $server = stream_socket_server("tcp://$address:3306");
        $services = ["$address:3306", "$address:5432", 'nowhere.invalid:1'];
        $this->declare($services);

        [, $report] = $this->examine($without, ["--root={$this->elsewhere->root}"]);

        self::assertSame($services, array_column($report['services'], 'service'));
        self::assertSame([true, false, null], array_column($report['services'], 'reached'));
        self::assertNull($report['services'][0]['problem']);
        self::assertStringContainsString('Connection refused', $report['services'][1]['problem']);
        self::assertNotFalse(@stream_socket_accept($server, 0), 'The server has seen the connection.');
        self::assertSame(['project', 'project', 'project'], array_column($report['services'], 'by'));
        self::assertCount(1, $report['services'][0]['listeners']);
        self::assertSame([null, null, null], array_column($report['services'], 'allow'));
    }

    /**
     * @param list<string> $services
     */
    private function declare(array $services): void
    {
        $extra = ['altair-eval' => ['services' => $services]];
        $this->elsewhere->write('composer.json', json_encode(['extra' => $extra], JSON_THROW_ON_ERROR));
    }

    public function testWhatNeedsTheUsersWordHasNoTickButTheLineThatGivesIt(): void
    {
        $debugger = stream_socket_server('tcp://127.0.0.1:0');
        $daemon = stream_socket_server('unix://' . $path = $this->elsewhere->path('daemon.sock'));
        $address = stream_socket_get_name($debugger, false);
        $services = [$address, $path, '169.254.169.254:80', '[fd00:ec2::254]:80', '[64:ff9b::a9fe:a9fe]:80'];
        $this->declare($services);
        $root = $this->elsewhere->root;

        [, $report] = $this->examine([], ["--root=$root"]);

        $quoted = array_map(
            static fn (string $one): string => str_contains($one, '[') ? "'$one'" : $one,
            $services,
        );
        $lines = array_map(static fn (string $one): string => "altair allow --root=$root --service=$one", $quoted);
        self::assertSame($lines, array_column($report['services'], 'allow'));
        self::assertSame(array_fill(0, 5, null), array_column($report['services'], 'reached'));
        self::assertStringContainsString("the run's own user listens there", $report['services'][0]['problem']);
        self::assertStringContainsString('in this place', $report['services'][1]['problem']);
        self::assertStringContainsString('clouds give keys', $report['services'][2]['problem']);
        self::assertFalse(@stream_socket_accept($debugger, 0));
        fclose($daemon);
    }

    /**
     * @dataProvider users
     * @param list<string> $user
     */
    public function testItLeavesNothing(array $user): void
    {
        $mark = bin2hex(random_bytes(12));

        $this->examine($user, environment: ['ALTAIR_TEST_MARK' => $mark]);

        self::assertSame([], Processes::leftOf($mark));
        self::assertSame([], array_values(array_diff(scandir($this->elsewhere->path('tmp')), ['.', '..'])));
    }

    /**
     * @dataProvider users
     * @param list<string> $user
     */
    public function testPeopleReadARowForEachGuardAndAConclusion(array $user): void
    {
        [$code, $output, $errors] = $this->doctor($user);

        self::assertSame([0, ''], [$code, $errors], $output);
        foreach (self::GUARDS as $guard) {
            self::assertMatchesRegularExpression("/^✓ $guard +in force/mu", $output);
        }
        self::assertStringStartsWith('php          ' . PHP_VERSION, $output);
        self::assertStringEndsWith("\nEvery guard is in force and held when it was attacked.\n", $output);
        self::assertStringNotContainsString("\e", $output);
    }

    /**
     * @return iterable<string, array{list<string>, array<string, string>, string}>
     */
    public static function lacks(): iterable
    {
        $lacks = [
            'mounts' => [['mounts'], ['filesystem' => 'missing'], 'unshare, clone, mount'],
            'Landlock' => [['landlock'], ['landlock' => 'missing'], 'landlock_create_ruleset'],
            'a Landlock of today' => [['landlock=1'], ['landlock' => 'degraded'], ''],
            'seccomp' => [['seccomp'], ['seccomp' => 'missing'], 'seccomp'],
            'mounts and Landlock' => [
                ['mounts', 'landlock'], ['filesystem' => 'missing', 'landlock' => 'missing'], 'unshare',
            ],
        ];
        foreach ($lacks as $what => [$without, $states, $advice]) {
            foreach (self::users() as $who => [$user]) {
                yield "$what, $who" => [[...$without, ...$user], $states, $advice];
            }
        }
    }

    /**
     * @dataProvider lacks
     * @param list<string> $what
     * @param array<string, string> $states
     */
    public function testWhatIsMissingIsNamedWithWhatToDo(array $what, array $states, string $advice): void
    {
        [$code, $report] = $this->examine($what);
        [$humanCode, $human] = $this->doctor($what);

        self::assertSame([1, 1, false], [$code, $humanCode, $report['ok']], self::shown($report));
        $advised = '';
        foreach ($report['guards'] as $guard) {
            $state = $states[$guard['name']] ?? 'in_force';
            self::assertSame($state, $guard['state'], self::shown($guard));
            self::assertSame($state === 'in_force', $guard['remedies'] === []);
            self::assertSame($state === 'in_force', $guard['detail'] === null);
            self::assertSame($state === 'missing' ? 'not_tried' : 'passed', $guard['self_test']['verdict']);
            foreach ($guard['remedies'] as $remedy) {
                self::assertNotSame('', $remedy['because']);
                $advised .= $remedy['how'];
                self::assertStringContainsString("→ {$remedy['how']}\n", $human);
            }
        }
        if ($report['kernel']['container'] !== null) {
            // It is under a filter, whose profile has all of these calls.
            $advice = $advice === '' ? '' : '-profile';
        }
        self::assertStringContainsString($advice, $advised);
        $works = array_column($report['abilities'], 'works', 'name');
        self::assertSame(!isset($states['filesystem']), $works['layer'], self::shown($report['abilities']));
        self::assertStringEndsWith("\nNot in force: " . implode(', ', array_keys($states)) . ".\n", $human);
    }

    public function testAFilterWithoutAListenerIsStillInForce(): void
    {
        [$code, $report] = $this->examine(['listener']);

        self::assertSame([0, 'in_force'], [$code, self::guard($report, 'seccomp')['state']], self::shown($report));
    }

    public function testWithoutProcTwoGuardsAreLessAndNothingIsLeftAllTheSame(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can hide /proc from a command.');
        }
        $mark = bin2hex(random_bytes(12));
        $hide = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$0" "$@"'];

        [$code, $report] = $this->examine([], [], ['ALTAIR_TEST_MARK' => $mark], $hide);
        [, $human] = $this->doctor([], [], [], $hide);

        self::assertSame([1, null], [$code, $report['kernel']['release']]);
        foreach ($report['guards'] as $guard) {
            $state = in_array($guard['name'], ['deadline', 'limits'], true) ? 'degraded' : 'in_force';
            self::assertSame($state, $guard['state'], self::shown($guard));
            // That nobody counts locks does not lift the limits of the kernel's.
            $verdict = $guard['name'] === 'deadline' ? 'failed' : 'passed';
            self::assertSame($verdict, $guard['self_test']['verdict']);
            if ($state === 'degraded') {
                self::assertStringContainsString('mount -t proc', $guard['remedies'][0]['how']);
            }
        }
        self::assertStringEndsWith("\nNot in force: limits, deadline.\n", $human);
        self::assertSame([], Processes::leftOf($mark));
    }

    /**
     * @return iterable<string, array{list<string>, array<string, string>, string, string}>
     */
    public static function strange(): iterable
    {
        yield 'no PHP' => [['--php=/nowhere/php'], [], 'php', '/nowhere/php does not exist'];
        yield 'no PHP on PATH' => [[], ['PATH' => '/nowhere'], 'php', 'no executable `php` on PATH'];
        yield 'no program' => [['--php=' . __FILE__], [], 'php', __FILE__ . ' is not executable'];
        yield 'another program' => [['--php=/bin/cat'], [], 'php', '/bin/cat is no PHP command line'];
        yield 'a program that says nothing' => [['--php=/bin/true'], [], 'php', 'ended with status 0'];
        yield 'no extension' => [[], ['ALTAIR_EVAL_EXTENSION' => '/nowhere.so'], 'extension', '/nowhere.so'];
        yield 'another file' => [[], ['ALTAIR_EVAL_EXTENSION' => __FILE__], 'extension', __FILE__];
    }

    /**
     * @dataProvider strange
     * @param list<string> $arguments
     * @param array<string, string> $environment
     */
    public function testAStrangeMachineIsALineThatSaysSo(
        array $arguments,
        array $environment,
        string $part,
        string $problem,
    ): void {
        [$code, $report] = $this->examine([], $arguments, $environment);
        [$humanCode, $human, $errors] = $this->doctor([], $arguments, $environment);

        self::assertSame([1, 1, '', false], [$code, $humanCode, $errors, $report['ok']]);
        self::assertStringContainsString($problem, $report[$part]['problem'], self::shown($report));
        self::assertMatchesRegularExpression('/^  ✗ .*' . preg_quote($problem, '/') . '/mu', $human);
        self::assertSame(self::GUARDS, array_column($report['guards'], 'name'));
    }

    public function testAnUnusableTemporaryDirectoryIsNamed(): void
    {
        [$code, $report] = $this->examine([], [], ['TMPDIR' => '/nowhere']);

        self::assertSame([1, false], [$code, $report['ok']]);
        self::assertCount(1, $report['problems']);
        self::assertStringContainsString('/nowhere', $report['problems'][0]);
        self::assertStringContainsString('TMPDIR', $report['problems'][0]);
    }

    public function testAPathWithControlCharactersIsNotPrintedRaw(): void
    {
        foreach (['human', 'json'] as $format) {
            [, $output] = $this->doctor([], ["--format=$format", "--php=/no\e[2J\u{9b}php\xff"]);

            self::assertDoesNotMatchRegularExpression('/[\x00-\x09\x0b-\x1f\x7f]/', $output);
            self::assertTrue(mb_check_encoding($output, 'UTF-8'));
        }
    }

    public function testWrongUsageIsALine(): void
    {
        foreach ([['--fromat=json'], ['--format=xml'], ['now']] as $arguments) {
            $command = Command::run(['doctor', ...$arguments]);

            self::assertSame([2, ''], [$command->exitCode, $command->output]);
            self::assertMatchesRegularExpression("/^altair: [^\n]+ \(see altair doctor --help\)\n$/", $command->errors);
        }
    }

    public function testItsHelpNamesTheKeysForPrograms(): void
    {
        $help = Command::run(['doctor', '--help'])->output;
        [, $report] = $this->examine([]);

        foreach (self::keys($report) as $key) {
            self::assertMatchesRegularExpression("/\b$key\b/", $help);
        }
    }

    /**
     * @param array<mixed> $value
     * @return list<string>
     */
    private static function keys(array $value): array
    {
        $keys = array_filter(array_keys($value), is_string(...));
        foreach (array_filter($value, is_array(...)) as $inner) {
            $keys = [...$keys, ...self::keys($inner)];
        }

        return array_values(array_unique($keys));
    }

    /**
     * @param array<string, mixed> $report
     * @return array<string, mixed>
     */
    private static function guard(array $report, string $name): array
    {
        return array_column($report['guards'], null, 'name')[$name];
    }

    /**
     * @param list<string> $without
     * @param list<string> $arguments
     * @param array<string, string> $environment
     * @param list<string> $by a command that executes it
     * @return array{int, array<string, mixed>} exit code and report
     */
    private function examine(array $without, array $arguments = [], array $environment = [], array $by = []): array
    {
        [$code, $output, $errors] = $this->doctor($without, ['--format=json', ...$arguments], $environment, $by);
        self::assertSame('', $errors);

        return [$code, json_decode($output, true, flags: JSON_THROW_ON_ERROR)];
    }

    /**
     * @param list<string> $without what is taken away from the machine
     * @param list<string> $arguments
     * @param array<string, string> $environment
     * @param list<string> $by a command that executes it
     * @return array{int, string, string} exit code, output, errors
     */
    private function doctor(array $without, array $arguments = [], array $environment = [], array $by = []): array
    {
        return Without::command(
            $without,
            [...$by, dirname(__DIR__) . '/bin/altair', 'doctor', ...$arguments],
            $environment + [
                'ALTAIR_EVAL_EXTENSION' => Without::extension(),
                'TMPDIR' => $this->elsewhere->path('tmp'),
            ],
        );
    }

    private static function shown(mixed $what): string
    {
        return (string) json_encode($what, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
    }
}
