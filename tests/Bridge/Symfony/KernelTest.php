<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Symfony;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A Symfony application gives its kernel's container, with no file for it.
 */
final class KernelTest extends WarmTestCase
{
    private const ENVIRONMENT = '[container("kernel")->getEnvironment(), container("kernel")->isDebug()]';

    public function testItsPublicServicesCanBeHad(): void
    {
        $this->application(Library::symfony());

        self::assertSame('hello', $this->value('container(App\Greeter::class)->hello()'));
        self::assertSame(['App\Kernel', true], $this->value(
            '[get_class(container("kernel")), container()->getParameter("kernel.project_dir") === getcwd()]',
        ));
        self::assertSame(['dev', true], $this->value(self::ENVIRONMENT));
        $private = $this->evaluate('container(App\Clock::class)');
        self::assertStringContainsString('ServiceNotFoundException', $private->exception['class'] ?? '');
    }

    public function testWithItsTestContainerPrivateServicesCanBeHadToo(): void
    {
        $this->application(Library::symfony());
        $this->setVariable('APP_ENV', 'test');

        self::assertSame('test', $this->value('container(App\Clock::class)->in'));
    }

    /**
     * @dataProvider environments
     *
     * @param array<string, string> $files
     * @param array<string, string> $variables
     * @param array{string, bool} $expected
     */
    public function testItsEnvironmentIsTheOneOfItsConsole(array $files, array $variables, array $expected): void
    {
        $this->application(Library::symfony($files));
        foreach ($variables as $name => $value) {
            $this->setVariable($name, $value);
        }

        self::assertSame($expected, $this->value(self::ENVIRONMENT));
    }

    /**
     * @return iterable<string, array{array<string, string>, array<string, string>, array{string, bool}}>
     */
    public static function environments(): iterable
    {
        $runtime = static fn (array $options): array => [
            'composer.json' => json_encode(['extra' => ['runtime' => $options]]),
        ];
        yield 'of the process' => [[], ['APP_ENV' => 'prod'], ['prod', false]];
        yield 'debugging' => [[], ['APP_ENV' => 'prod', 'APP_DEBUG' => 'true'], ['prod', true]];
        yield 'not debugging' => [[], ['APP_ENV' => 'dev', 'APP_DEBUG' => '0'], ['dev', false]];
        yield '.env' => [['.env' => 'APP_ENV=staging'], [], ['staging', true]];
        yield '.env and the process' => [['.env' => 'APP_ENV=staging'], ['APP_ENV' => 'prod'], ['prod', false]];
        yield '.env.local.php' => [['.env.local.php' => '<?php return ["APP_ENV" => "prod"];'], [], ['prod', false]];
        yield 'another file' => [
            ['settings' => 'STAGE=beta', '.env' => 'STAGE=x'] + $runtime([
                'env_var_name' => 'STAGE', 'debug_var_name' => 'DEBUGGING', 'dotenv_path' => 'settings',
                'prod_envs' => ['beta'],
            ]),
            ['APP_ENV' => 'other'],
            ['beta', false],
        ];
        yield 'no file' => [['.env' => 'APP_ENV=x'] + $runtime(['disable_dotenv' => true]), [], ['dev', true]];
        yield 'a file of its own' => [
            ['.env' => 'APP_ENV=x', 'config/bootstrap.php' => '<?php $_SERVER["APP_ENV"] = "own";'],
            [],
            ['own', true],
        ];
        yield 'of composer.json' => [
            ['.env' => 'APP_ENV=x'] + $runtime(['env' => 'staging', 'debug' => false]),
            [],
            ['staging', false],
        ];
        yield 'options of other types' => [
            $runtime(['env_var_name' => [], 'debug_var_name' => 1, 'dotenv_path' => ['x'], 'env' => 7]),
            [],
            ['dev', true],
        ];
        yield 'broken composer.json' => [['composer.json' => '{'], [], ['dev', true]];
    }

    public function testItIsFoundByTheNamespacesOfComposer(): void
    {
        $this->twoKernels();

        self::assertSame('Shop\Kernel', $this->value('get_class(container("kernel"))'));
        $this->setVariable('KERNEL_CLASS', 'App\Kernel');
        self::assertSame('App\Kernel', $this->value('get_class(container("kernel"))'));
    }

    public function testTheEnvironmentsFileNamesItToo(): void
    {
        $this->twoKernels();
        $this->application()->write('.env', 'APP_ENV=test');
        $this->application()->write('.env.test', 'KERNEL_CLASS=App\Kernel');

        self::assertSame('App\Kernel', $this->value('get_class(container("kernel"))'));
    }

    private function twoKernels(): void
    {
        $files = Library::symfony([
            'composer.json' => '{"autoload": {"psr-4": {"Shop\\\\": "shop/", "App\\\\": "src/"}}}',
        ]);
        $autoloader = 'spl_autoload_register(fn ($class) => $class === "Shop\Kernel" && require "shop/Kernel.php");';
        $this->application([
            'shop/Kernel.php' => '<?php namespace Shop; class Kernel extends \App\Kernel { }',
            'vendor/autoload.php' => $files['vendor/autoload.php'] . $autoloader,
        ] + $files);
    }

    public function testAClassThatIsNoKernelIsRefused(): void
    {
        $this->application(Library::symfony());
        foreach (['App\Missing', 'App\Clock', 'Symfony\Component\HttpKernel\Kernel'] as $class) {
            $this->setVariable('KERNEL_CLASS', $class);

            $result = $this->evaluate('return 1;');

            self::assertOutcome('boot_failed', $result, 2, exception: true);
            self::assertStringContainsString("KERNEL_CLASS is $class", $result->exception['message']);
        }
    }

    public function testAKernelThatCannotBootSaysWhyAndWhatElseToDo(): void
    {
        $this->application(Library::symfony(['src/Kernel.php' => '<?php namespace App;
            class Kernel extends \Symfony\Component\HttpKernel\Kernel {
                function registerBundles(): iterable { throw new \LogicException("no bundles"); }
                function registerContainerConfiguration($loader) { }
            }']));

        $result = $this->evaluate('return 1;');

        self::assertOutcome('boot_failed', $result, 2, exception: true);
        self::assertSame('no bundles', $result->exception['message']);
        self::assertStringContainsString('The Symfony kernel threw', $result->diagnostics['message']);
        self::assertStringContainsString('config/container.php', $result->diagnostics['message']);
        self::assertDoesNotMatchRegularExpression(
            '/\(altair\)|closure/',
            implode("\n", $result->exception['stack_trace']),
        );
    }

    public function testWhatItKeepsIsForOtherUsersAsItsConsoleWouldMakeIt(): void
    {
        $before = umask(022);
        try {
            $application = $this->application(Library::symfony(['.env' => 'APP_ENV=prod']));
            $this->evaluate('return 1;');
            self::assertDirectoryDoesNotExist($application->path('var'));
            (new Evaluator())->evaluate(new EvalRequest('return 1;', $application->root, allowWrites: true));
            self::assertSame(0755, fileperms($application->path('var/cache/prod')) & 0777);
        } finally {
            umask($before);
        }
    }

    public function testAFileForItComesFirst(): void
    {
        $this->application(Library::symfony([
            'config/container.php' => '<?php return new class { function get($id) { } function has($id) { } };',
        ]));

        self::assertFalse($this->value('class_exists("App\Kernel", false)'));
    }

    public function testAnApplicationWithoutAKernelIsNone(): void
    {
        $files = Library::symfony();
        unset($files['src/Kernel.php']);
        $this->application($files);

        self::assertSame('dev', $this->value('(new App\Clock("dev"))->in'));
        self::assertStringContainsString('has no', $this->value('method_exists(container(), "getParameter")
            ? "has" : "has no"'));
    }

    public function testItIsBootedOnceAndAnewWhenItHasChanged(): void
    {
        $this->application(Library::symfony(['.env' => 'APP_ENV=dev']));
        $this->warmed();

        $result = $this->ask(self::ENVIRONMENT);
        self::assertStart('warm', $result);
        self::assertSame(['dev', true], self::plain($result->result));
        $this->application()->write('.env', 'APP_ENV=prod');
        self::assertSame(['prod', false], self::plain($this->ask(self::ENVIRONMENT)->result));
    }

    /** Where there is a layer, what boot has written stays in the template's, and each run sees it below its own. */
    public function testItsContainerIsCompiledOnceForAllRuns(): void
    {
        $application = $this->application(Library::symfony());
        $this->warmed();
        $see = '[container(App\Greeter::class)->hello(), glob("var/cache/dev/Container*"), getenv("APP_CACHE_DIR"),
            (new ReflectionObject(container("kernel")->getContainer()))->getFileName()]';

        $seen = [];
        for ($call = 0; $call < 2; $call++) {
            $result = $this->ask($see);
            self::assertStart('warm', $result);
            $seen[] = self::plain($result->result);
        }

        self::assertSame($seen[0], $seen[1]);
        [$hello, $directories, $variable, $file] = $seen[0];
        self::assertSame(['hello', false], [$hello, $variable]);
        self::assertCount(1, $directories, 'The files of its services are there.');
        self::assertStringStartsWith("$application->root/$directories[0]/", $file);
        self::assertDirectoryDoesNotExist($application->path('var'));
    }
}
