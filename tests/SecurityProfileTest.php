<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Runner\SecurityProfile;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Tests\Support\Refusals;
use Altair\Eval\Tests\Support\Script;
use Error;
use PHPUnit\Framework\TestCase;
use ReflectionClass;

/**
 * SecurityProfile: the switches of a plain `php`, and that a real one takes them.
 */
final class SecurityProfileTest extends TestCase
{
    use Refusals;

    /** The public contract; the first four stand first, in this order. */
    private const ALWAYS = [
        'exec', 'shell_exec', 'passthru', 'system', 'proc_open', 'proc_close', 'proc_terminate', 'proc_nice',
        'popen', 'pclose', 'pcntl_exec', 'assert', 'symlink', 'link', 'ini_set', 'ini_alter', 'ini_restore',
        'putenv', 'mail',
    ];

    private const NETWORK = ['fsockopen', 'pfsockopen', 'stream_socket_client', 'curl_exec', 'curl_multi_exec'];

    public function testTheFlagsAreSettingsForThePhpCommand(): void
    {
        $flags = $this->profile()->phpFlags('/srv/app');

        self::assertTrue(array_is_list($flags));
        self::assertSame(['-d', 'memory_limit=128M', '-d', 'open_basedir=/srv/app', '-d'], array_slice($flags, 0, 5));
        self::assertStringStartsWith('disable_functions=exec,shell_exec,passthru,system,', $flags[5]);
        foreach (array_chunk($flags, 2) as [$option, $setting]) {
            self::assertSame('-d', $option);
            self::assertMatchesRegularExpression('/^[a-z_.]+=/', $setting);
        }
    }

    public function testWhatStartsProcessesOrReconfiguresPhpIsAlwaysDisabled(): void
    {
        foreach ([false, true] as $network) {
            $disabled = $this->disabled($this->profile(allowNetwork: $network, allowWrites: true));

            self::assertSame([], array_diff(self::ALWAYS, $disabled));
            self::assertSame(array_unique($disabled), $disabled);
        }
    }

    public function testWhatConnectsIsDisabledUnlessTheNetworkIsOnOrAServiceIsDeclared(): void
    {
        foreach ([$this->profile(), $this->profile(services: [])] as $off) {
            self::assertSame([], array_diff(self::NETWORK, $this->disabled($off)));
            self::assertContains('allow_url_fopen=0', $off->phpFlags('/'));
        }
        foreach ([$this->profile(allowNetwork: true), $this->profile(services: ['127.0.0.1:1'])] as $on) {
            self::assertSame([], array_intersect(self::NETWORK, $this->disabled($on)));
            self::assertNotContains('allow_url_fopen=0', $on->phpFlags('/'));
            self::assertContains('stream_socket_server', $this->disabled($on));
        }
    }

    public function testTheMemoryLimitIsThatOfTheRequest(): void
    {
        self::assertSame('memory_limit=64M', $this->profile(memoryLimitMb: 64)->phpFlags('/')[1]);
        self::assertSame('memory_limit=512M', $this->profile(memoryLimitMb: 9999)->phpFlags('/')[1]);
    }

    public function testAnUnsafeRunHasNoFlags(): void
    {
        self::assertSame([], $this->profile(unsafe: true)->phpFlags('/srv'));
    }

    public function testTheVariablesTellWhatIsAllowed(): void
    {
        $names = ['ALTAIR_EVAL_ALLOW_WRITES', 'ALTAIR_EVAL_ALLOW_NETWORK', 'ALTAIR_EVAL_UNSAFE'];

        self::assertSame(array_combine($names, ['0', '0', '0']), $this->profile()->envVars());
        self::assertSame(array_combine($names, ['1', '0', '0']), $this->profile(allowWrites: true)->envVars());
        self::assertSame(array_combine($names, ['0', '1', '0']), $this->profile(allowNetwork: true)->envVars());
        self::assertSame(array_combine($names, ['0', '0', '1']), $this->profile(unsafe: true)->envVars());
    }

    public function testWhatTheHostHasDisabledStaysDisabled(): void
    {
        $script = new Script(
            'say((new Altair\Eval\Runner\SecurityProfile(request("1")))->phpFlags("/")[5]);',
            ['-d', 'disable_functions=strrev, exec ,md5'],
        );

        $disabled = explode(',', substr($script->line(), strlen('disable_functions=')));

        self::assertSame(array_slice(self::ALWAYS, 0, 4), array_slice($disabled, 0, 4));
        self::assertContains('strrev', $disabled);
        self::assertContains('md5', $disabled);
        self::assertCount(1, array_keys($disabled, 'exec', true));
    }

    public function testARealPhpTakesTheFlags(): void
    {
        $told = $this->told($this->profile(memoryLimitMb: 77), <<<'PHP'
            echo json_encode([
                'memory_limit' => ini_get('memory_limit'),
                'disabled' => array_values(array_filter(
                    ['exec', 'shell_exec', 'passthru', 'system', 'proc_open', 'popen', 'mail', 'link',
                        'ini_set', 'putenv', 'fsockopen', 'stream_socket_client'],
                    'function_exists',
                )),
                'basedir' => [@file_get_contents('/etc/hostname'), @is_readable('/etc')],
                'url' => ini_get('allow_url_fopen'),
                'ffi' => ini_get('ffi.enable') ?: '0',
                'dl' => ini_get('enable_dl'),
                'phar' => ini_get('phar.readonly') ?: '1',
            ]);
            PHP);

        self::assertSame('77M', $told['memory_limit']);
        self::assertSame([], $told['disabled'], 'None of these functions is left.');
        self::assertSame([false, false], $told['basedir']);
        self::assertSame(['0', '0', '0', '1'], [$told['url'], $told['ffi'], $told['dl'], $told['phar']]);
    }

    public function testARealPhpWithTheNetworkOnMayConnect(): void
    {
        $told = $this->told(
            $this->profile(allowNetwork: true),
            'echo json_encode([function_exists("fsockopen"), function_exists("exec"), ini_get("allow_url_fopen")]);',
        );

        self::assertSame([true, false, '1'], $told);
    }

    public function testItKeepsTheRequestItWasMadeFor(): void
    {
        $request = new EvalRequest('1', '/');
        $profile = new SecurityProfile($request);

        self::assertSame($request, $profile->request);
        $this->assertRefused(
            Error::class,
            'Cannot modify readonly property Altair\Eval\Runner\SecurityProfile::$request',
            static fn () => $profile->request = $request, // @phpstan-ignore-line
        );
    }

    public function testOneThatWasNeverConstructedSaysSo(): void
    {
        $hollow = (new ReflectionClass(SecurityProfile::class))->newInstanceWithoutConstructor();

        $this->assertRefused(
            Error::class,
            'The SecurityProfile was never constructed',
            static fn () => $hollow->phpFlags('/'),
        );
    }

    private function profile(mixed ...$options): SecurityProfile
    {
        return new SecurityProfile(new EvalRequest('return 1;', '/srv/app', ...$options));
    }

    /**
     * @return list<string>
     */
    private function disabled(SecurityProfile $profile): array
    {
        return explode(',', substr($profile->phpFlags('/')[5], strlen('disable_functions=')));
    }

    /** What a plain PHP that is started with the profile's flags prints as JSON. */
    private function told(SecurityProfile $profile, string $code): mixed
    {
        $result = (new SubprocessRunner())->run(
            [PHP_BINARY, ...$profile->phpFlags(sys_get_temp_dir()), '-r', $code],
            null,
            getenv(),
            60000,
        );
        self::assertSame([0, ''], [$result->exitCode, $result->stderr]);

        return json_decode($result->stdout, true, flags: JSON_THROW_ON_ERROR);
    }
}
