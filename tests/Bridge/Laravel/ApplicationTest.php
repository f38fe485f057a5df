<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Laravel;

use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A Laravel application is the container, booted as its `artisan` boots it, with no file for it.
 */
final class ApplicationTest extends WarmTestCase
{
    public function testItIsBootedAndTheContainer(): void
    {
        $this->application(Library::laravel());

        self::assertSame('hello from unnamed', $this->value('container("greeting")'));
        self::assertSame([true, true, true, 'local'], $this->value(
            '[container() === app(), container()->isBooted(), container()->runningInConsole(), app()->environment()]',
        ));
        self::assertTrue($this->value('defined("LARAVEL_START")'));
    }

    public function testItReadsItsEnvironment(): void
    {
        $this->application(Library::laravel(['.env' => "APP_NAME=shop\nAPP_ENV=staging"]));

        self::assertSame('hello from shop', $this->value('container("greeting")'));
        self::assertSame('staging', $this->value('app()->environment()'));
        $this->setVariable('APP_ENV', 'production');
        self::assertSame('production', $this->value('app()->environment()'));
    }

    public function testWhatItCannotMakeIsTheSnippetsException(): void
    {
        $this->application(Library::laravel());

        $result = $this->evaluate('container("missing")');

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertStringContainsString('EntryNotFoundException', $result->exception['class']);
    }

    public function testAProviderThatThrowsSaysWhyAndWhatElseToDo(): void
    {
        $this->application(Library::laravel(['src/Provider.php' => '<?php namespace App;
            class Provider extends \Illuminate\Support\ServiceProvider {
                function boot() { throw new \LogicException("no provider"); }
            }']));

        $result = $this->evaluate('return 1;');

        self::assertOutcome('boot_failed', $result, 2, exception: true);
        self::assertSame('no provider', $result->exception['message']);
        self::assertStringContainsString('The Laravel application threw', $result->diagnostics['message']);
        self::assertStringContainsString('config/container.php', $result->diagnostics['message']);
    }

    public function testAFileThatGivesNoApplicationIsRefused(): void
    {
        $this->application(Library::laravel(['bootstrap/app.php' => '<?php $app = 1;']));

        $result = $this->evaluate('return 1;');

        self::assertOutcome('boot_failed', $result, 2, exception: true);
        self::assertStringContainsString('bootstrap/app.php returned int', $result->exception['message']);
    }

    public function testAFileForItComesFirst(): void
    {
        $this->application(Library::laravel([
            'config/container.php' => '<?php return new class { function get($id) { } function has($id) { } };',
        ]));

        self::assertFalse($this->value('class_exists("Illuminate\Foundation\Application", false)'));
    }

    public function testAFileOfTheSameNameInAnotherApplicationIsLeftAlone(): void
    {
        $this->application(['bootstrap/app.php' => '<?php throw new LogicException("not Laravel");']);

        self::assertSame(1, $this->value('return 1;'));
    }

    public function testItIsBootedOnceAndAnewWhenItHasChanged(): void
    {
        $this->application(Library::laravel(['.env' => 'APP_NAME=shop']));
        $this->warmed();

        $result = $this->ask('container("greeting")');
        self::assertStart('warm', $result);
        self::assertSame('hello from shop', self::plain($result->result));
        $this->application()->write('.env', 'APP_NAME=market');
        self::assertSame('hello from market', self::plain($this->ask('container("greeting")')->result));
    }
}
