<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * An application's own casters: `extra.altair-eval.casters` in composer.json.
 */
final class CastersTest extends WarmTestCase
{
    private const CLASSES = [
        'src/classes.php' => '<?php
            namespace App;
            interface Priced { }
            class Money implements Priced { function __construct(private int $cents = 250) { } }
            class Gift extends Money { }
            class Plain { public $shown = 1; }',
        'vendor/autoload.php' => '<?php require_once __DIR__ . "/../src/classes.php";',
    ];

    private const MONEY = 'App\Money::class => fn (App\Money $money) => [
        "text" => Closure::bind(fn () => $this->cents, $money, App\Money::class)() / 100 . " EUR"]';

    private function declare(string $file, mixed $name = 'casters.php', array $files = []): void
    {
        $this->application($files + self::CLASSES + [
            'casters.php' => $file,
            'composer.json' => json_encode(['extra' => ['altair-eval' => ['casters' => $name]]]),
        ]);
    }

    private function shown(string $snippet): array
    {
        $result = $this->evaluate($snippet);
        self::assertOutcome('returned', $result, 0, value: true);

        return $result->result;
    }

    public function testTheirFieldsStandInPlaceOfTheProperties(): void
    {
        $this->declare('<?php return [' . self::MONEY . '];');

        $shown = $this->shown('[new App\Money(), new App\Gift(500), new App\Plain()]')['value'];

        self::assertSame(['text' => ['type' => 'string', 'value' => '2.5 EUR']], $shown[0]['properties']);
        self::assertArrayNotHasKey('private', $shown[0]);
        self::assertSame('5 EUR', $shown[1]['properties']['text']['value'], 'Also for a class below.');
        self::assertSame(['shown'], array_keys($shown[2]['properties']));
    }

    public function testTheCasterOfTheClassItselfComesFirst(): void
    {
        $this->declare('<?php return [App\Priced::class => fn () => ["by" => "interface"],
            "\App\Gift" => fn () => ["by" => "class"]];');

        $shown = $this->shown('[new App\Money(), new App\Gift()]')['value'];

        self::assertSame(['interface', 'class'], array_map(
            static fn (array $object): string => $object['properties']['by']['value'],
            $shown,
        ));
    }

    public function testTheyAreLoadedAtTheFirstObjectOnlyAndAnewInATemplatesFork(): void
    {
        $this->declare('<?php echo "loaded "; return [' . self::MONEY . '];');
        $this->warmed();

        self::assertSame('', $this->ask('return [1, "x"];')->stdout);
        self::assertSame('loaded ', $this->ask('[new App\Money(), new App\Money()]')->stdout);
        $this->application()->write('casters.php', '<?php return [App\Money::class => fn () => ["new" => 1]];');
        $result = $this->ask('new App\Money()');
        self::assertStart('warm', $result);
        self::assertSame(['new'], array_keys($result->result['properties']));
    }

    public function testOneThatThrowsIsAnErrorAtItsPlace(): void
    {
        $this->declare('<?php return [App\Money::class => fn () => throw new DomainException("boom")];');

        [$money, $plain] = $this->shown('[new App\Money(), new App\Plain()]')['value'];

        self::assertSame(['class' => 'DomainException', 'message' => 'boom'], $money['error']);
        self::assertArrayNotHasKey('error', $plain);
    }

    public function testOneThatLoopsEndsAtTheDeadline(): void
    {
        $this->declare('<?php return [App\Money::class => function () { while (true) { } }];');

        $result = $this->evaluate('new App\Money()', timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame('encode', $result->diagnostics['phase']);
    }

    public function testOneThatExitsEndsTheRun(): void
    {
        foreach (['return [App\Money::class => function () { exit(3); }];', 'exit(3);'] as $code) {
            $this->declare("<?php $code");

            $result = $this->evaluate('new App\Money()');

            self::assertOutcome('exited', $result, 3);
            self::assertSame('encode', $result->diagnostics['phase']);
        }
    }

    public function testItRunsUnderTheGuardsOfTheRun(): void
    {
        $this->declare('<?php return [App\Money::class => fn () => ["written" => @file_put_contents("/etc/x", "x"),
            "run" => shell_exec("id")]];');

        $shown = $this->shown('new App\Money()');

        self::assertTrue(isset($shown['error']) || $shown['properties']['written']['value'] === false);
        self::assertFileDoesNotExist('/etc/x');
    }

    public function testWhatItReturnsIsBoundAndHiddenLikeAnyOtherValue(): void
    {
        $this->declare('<?php return [App\Money::class => fn ($m) => [
            "apiToken" => "abc", "self" => $m, "again" => new App\Money(), "long" => str_repeat("x", 20000)]];');

        $shown = $this->shown('new App\Money()')['properties'];

        self::assertSame('[hidden]', $shown['apiToken']['value']);
        self::assertSame('reference', $shown['self']['type']);
        self::assertTrue($shown['again']['properties']['again']['properties']['again']['truncated']);
        self::assertSame(20000, $shown['long']['length']);
    }

    /**
     * @dataProvider unusable
     */
    public function testAFileThatCannotBeUsedIsAnErrorAtTheFirstObjectWhichIsShownAllTheSame(
        string $expected,
        string $file,
        mixed $name = 'casters.php',
    ): void {
        $this->declare($file, $name);

        [$money, $plain] = $this->shown('[new App\Money(), new App\Plain()]')['value'];

        self::assertStringContainsString($expected, $money['error']['message']);
        self::assertSame(250, $money['private']['cents']['value']);
        self::assertArrayNotHasKey('error', $plain);
        self::assertSame(1, $plain['properties']['shown']['value']);
    }

    public static function unusable(): iterable
    {
        yield 'missing' => ['missing.php does not exist', '', 'missing.php'];
        yield 'a directory' => ['src is not a file', '', 'src'];
        yield 'no path' => ['has to be the path of a PHP file', '', ['casters.php']];
        yield 'above' => ['has to be in the project', '', '../casters.php'];
        yield 'absolute' => ['has to be in the project', '', '/etc/passwd'];
        yield 'a NUL' => ['has to be in the project', '', "a\0b"];
        yield 'no array' => ['returns no array', '<?php return 7;'];
        yield 'nothing' => ['returns no array', '<?php '];
        yield 'a list' => ['whose key is no class', '<?php return [fn () => []];'];
        yield 'no PHP' => ['unexpected', '<?php return [;'];
        yield 'throws' => ['in the file', '<?php throw new LogicException("in the file");'];
    }

    public function testOneThatIsNoneIsAnErrorAtItsPlace(): void
    {
        $this->declare('<?php return ["App\Money" => "no such", App\Plain::class => fn () => 7];');

        $errors = array_column($this->shown('[new App\Money(), new App\Plain()]')['value'], 'error');

        self::assertSame(
            ['The caster of App\Money cannot be called.', 'The caster of App\Plain returned no array.'],
            array_column($errors, 'message'),
        );
    }

    public function testALinkOutOfTheProjectIsNotFollowed(): void
    {
        $this->declare('', 'link.php');
        $outside = tempnam(sys_get_temp_dir(), 'casters');
        file_put_contents($outside, '<?php return ["App\Money" => fn () => ["from" => "outside"]];');
        symlink($outside, $this->application()->root . '/link.php');
        try {
            $shown = $this->shown('new App\Money()');
        } finally {
            unlink($outside);
        }

        self::assertStringContainsString('link.php', $shown['error']['message']);
        self::assertSame(250, $shown['private']['cents']['value']);
    }
}
