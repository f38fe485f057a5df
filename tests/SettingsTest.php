<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Who may change which ini setting. Those that confine can be made stricter by an application, and nothing of them
 * taken back.
 */
final class SettingsTest extends TestCase
{
    /** What an application may set. */
    private const OF_THE_APPLICATION = ['altair_eval.idle', 'altair_eval.warm'];

    /** What it may add to. */
    private const STRICTER = ['altair_eval.require', 'altair_eval.unsafe'];

    /** What only php.ini, a switch of PHP's and the configuration of php-fpm set. */
    private const OF_THE_SYSTEM = [
        'altair_eval.channel', 'altair_eval.omit', 'altair_eval.pool', 'altair_eval.programs',
    ];

    public function testEachSettingIsChangedByThoseWhoMayChangeIt(): void
    {
        $access = array_map(static fn (array $entry): int => $entry['access'], ini_get_all('altair_eval'));

        $expected = array_fill_keys([...self::OF_THE_APPLICATION, ...self::STRICTER], INI_ALL)
            + array_fill_keys(self::OF_THE_SYSTEM, INI_SYSTEM);
        ksort($expected);
        self::assertSame($expected, $access);
        foreach (self::OF_THE_SYSTEM as $name) {
            self::assertFalse(ini_set($name, '/x'), $name);
        }
    }

    public function testTheReadmeHasThemAll(): void
    {
        preg_match_all('/^\| `(altair_eval\.\w+)` \|/m', file_get_contents(dirname(__DIR__) . '/README.md'), $found);

        $own = array_diff(array_keys(ini_get_all('altair_eval')), ['altair_eval.channel']);
        sort($found[1]);
        self::assertSame(array_values($own), $found[1]);
    }

    /**
     * @return iterable<string, array{string, string, string}> what php.ini requires, what the application sets, and
     *     which guard a run lacks
     */
    public static function required(): iterable
    {
        yield 'nothing is taken from it' => ['landlock', '', 'landlock'];
        yield 'nor replaced' => ['landlock', 'process', 'landlock'];
        yield 'an application adds to it' => ['', 'landlock', 'landlock'];
        yield 'and the rest stays' => ['landlock', 'filesystem', 'landlock'];
    }

    /**
     * @dataProvider required
     */
    public function testAnApplicationRequiresMoreGuardsAndNotFewer(string $ini, string $set, string $guard): void
    {
        $code = "ini_set('altair_eval.require', '$set');";

        $message = $this->refusal(['landlock'], ["altair_eval.require=$ini"], $code);

        self::assertStringContainsString("the guard `$guard` is needed and is missing", $message);
    }

    public function testAnApplicationCannotAcceptThatOnlyPhpGuardsIt(): void
    {
        $code = 'ini_set("altair_eval.require", "ini");';

        self::assertStringContainsString('the guard `seccomp` is needed', $this->refusal(['seccomp'], [], $code));
        $accepted = $this->refusal(['seccomp'], ['altair_eval.require=ini'], '');
        self::assertSame('It ran.', $accepted, 'Whoever starts PHP can.');
    }

    public function testAnApplicationTurnsUnsafeRunsOffAndNotOn(): void
    {
        $unsafe = 'unsafe: true';
        $refusal = 'No run may be unsafe here (altair_eval.unsafe=0).';

        $off = 'ini_set("altair_eval.unsafe", "0");';
        self::assertSame($refusal, $this->refusal([], [], $off, $unsafe));
        $on = 'ini_set("altair_eval.unsafe", "1");';
        self::assertSame($refusal, $this->refusal([], ['altair_eval.unsafe=0'], $on, $unsafe));
        self::assertSame('It ran.', $this->refusal([], [], $off . $on, $unsafe), 'Its own word is its own.');
    }

    /**
     * Real writes without mounts are only for those who have no unsafe runs, ever: an application would have them again
     * after such a write.
     */
    public function testAnApplicationThatTurnsUnsafeRunsOffGetsNothingForIt(): void
    {
        $off = 'ini_set("altair_eval.unsafe", "0");';

        $refusal = $this->refusal(['mounts'], [], $off, 'allowWrites: true');

        self::assertStringContainsString('in PHP, the ini setting altair_eval.unsafe=0', $refusal);
    }

    /** What cannot be done is not what allows something. */
    public function testARefusalNamesNoUnsafeRunWhereThereIsNone(): void
    {
        $code = <<<'PHP'
            $blocked = (new Evaluator())->evaluate(request('exec("true");'))->diagnostics['blocked'];
            say(array_column($blocked, 'lift'));
            PHP;

        self::assertSame('["--unsafe"]', (new Script($code))->line());
        self::assertSame('[null]', (new Script($code, ['-d', 'altair_eval.programs=confined']))->line());
    }

    /**
     * @param list<string> $without
     * @param list<string> $settings of the start
     */
    private function refusal(array $without, array $settings, string $first, string $option = ''): string
    {
        $code = $first . ' try { (new Altair\Eval\Evaluator(warm: false))->evaluate(new Altair\Eval\EvalRequest('
            . '"return 1;", ' . var_export(dirname(__DIR__) . '/examples/shop', true) . ", 60000, $option));"
            . ' echo "It ran."; } catch (Altair\Eval\Exception\LaunchException $e) { echo $e->getMessage(); }';
        $options = [];
        foreach ($settings as $setting) {
            array_push($options, '-d', $setting);
        }
        [, $output, $errors] = Without::php($without, $code, $options);

        return $output . $errors;
    }
}
