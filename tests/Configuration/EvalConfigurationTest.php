<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Configuration;

use Altair\Configuration\Contracts\ConfigurationInterface;
use Altair\Container\Container;
use Altair\Eval\Configuration\EvalConfiguration;
use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Support\Json;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Wrapper\WrapperBuilder;
use PHPUnit\Framework\TestCase;
use ReflectionClass;

/**
 * The package in the Univeros framework's container, and the native classes in place of the framework's own.
 */
final class EvalConfigurationTest extends TestCase
{
    private const SHOP = __DIR__ . '/../../examples/shop';

    public static function setUpBeforeClass(): void
    {
        require_once dirname(__DIR__) . '/Support/Framework/framework.php';
    }

    public function testTheContainerSharesOneEvaluator(): void
    {
        $container = new Container();
        $configuration = new EvalConfiguration();
        $configuration->apply($container);

        $evaluator = $container->bound(Evaluator::class);

        self::assertInstanceOf(ConfigurationInterface::class, $configuration);
        self::assertInstanceOf(Evaluator::class, $evaluator);
        self::assertSame($evaluator, $container->bound(Evaluator::class));
        self::assertSame('php', $evaluator->phpBinary);
        self::assertSame(42, $evaluator->evaluate(new EvalRequest('6 * 7', self::SHOP))->result['value']);
    }

    public function testTheInterpreterCanBeNamed(): void
    {
        $container = new Container();

        (new EvalConfiguration('/opt/php/bin/php'))->apply($container);

        self::assertSame('/opt/php/bin/php', $container->bound(Evaluator::class)->phpBinary);
    }

    public function testWithoutTheFrameworkThereIsNoSuchClass(): void
    {
        $script = new Script('require "$root/../../tests/bootstrap.php";
            say(class_exists(Altair\Eval\Configuration\EvalConfiguration::class));');

        self::assertSame([0, "false\n", ''], $script->end());
    }

    public function testNativeClassesTakeThePlaceOfTheFrameworksOwn(): void
    {
        $script = new Script('
            $asked = [];
            spl_autoload_register(function (string $class) use (&$asked) { $asked[] = $class; });
            $native = ["Evaluator", "EvalRequest", "EvalResult", "Runner\SecurityProfile", "Runner\SubprocessRunner",
                "Runner\SubprocessResult", "Encoder\ValueEncoder", "Encoder\ExceptionEncoder", "Support\Json"];
            foreach ($native as $class) {
                $reflection = new ReflectionClass("Altair\Eval\\\\$class");
                say([$reflection->isInternal(), $reflection->getExtensionName()]);
            }
            say($asked);
        ');

        self::assertSame([0, str_repeat("[true,\"altair_eval\"]\n", 9) . "[]\n", ''], $script->end());
    }

    public function testAnEvaluatorTakesWhatTheFrameworkPasses(): void
    {
        self::assertFalse((new ReflectionClass(WrapperBuilder::class))->isInternal());
        $evaluator = new Evaluator(new SubprocessRunner(), new WrapperBuilder(), PHP_BINARY);

        $result = $evaluator->evaluate(new EvalRequest('return ["a" => 1];', self::SHOP));

        self::assertInstanceOf(EvalResult::class, $result);
        self::assertTrue($result->ok());
        self::assertSame($result->toArray()['result'], json_decode(Json::encode($result->toArray()), true)['result']);
    }
}
