<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Support\HumanOutput;
use Altair\Eval\Support\Json;
use Error;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use stdClass;

/**
 * EvalResult: its properties, when it is ok, and its public JSON shape.
 */
final class EvalResultTest extends TestCase
{
    private const KEYS = [
        'ok', 'result', 'stdout', 'stderr', 'exception',
        'duration_ms', 'memory_peak_bytes', 'exit_code', 'timed_out', 'diagnostics',
    ];

    public function testEveryParameterIsAPropertyOfThatName(): void
    {
        $given = [
            'result' => ['type' => 'int', 'value' => 1],
            'stdout' => 'out',
            'stderr' => 'err',
            'exception' => ['class' => 'E'],
            'durationMs' => 12,
            'memoryPeakBytes' => 2097152,
            'exitCode' => 3,
            'timedOut' => true,
            'diagnostics' => ['outcome' => 'exited'],
        ];

        self::assertSame($given, get_object_vars(new EvalResult(...array_values($given))));
        self::assertSame($given, get_object_vars(new EvalResult(...array_reverse($given))));
    }

    public function testDiagnosticsMayBeLeftOut(): void
    {
        self::assertSame([], $this->resultWith()->diagnostics);
    }

    public function testItIsOkWithoutTimeoutExceptionAndExitCode(): void
    {
        self::assertTrue($this->resultWith()->ok());
        self::assertTrue($this->resultWith(['stderr' => 'PHP Warning: …', 'diagnostics' => ['blocked' => []]])->ok());
        self::assertFalse($this->resultWith(['timedOut' => true])->ok());
        self::assertFalse($this->resultWith(['exception' => ['class' => 'E']])->ok());
        self::assertFalse($this->resultWith(['exception' => []])->ok());
        self::assertFalse($this->resultWith(['exitCode' => 1])->ok());
        self::assertFalse($this->resultWith(['exitCode' => -1])->ok());
    }

    public function testToArrayHasExactlyThePublicKeysInOrder(): void
    {
        $result = $this->resultWith([
            'result' => ['type' => 'int', 'value' => 1],
            'stdout' => 'o',
            'stderr' => 'e',
            'durationMs' => 12,
            'memoryPeakBytes' => 34,
            'exitCode' => 5,
            'timedOut' => true,
            'diagnostics' => ['outcome' => 'exited'],
        ]);

        self::assertSame(
            array_combine(self::KEYS, [
                false, ['type' => 'int', 'value' => 1], 'o', 'e', null, 12, 34, 5, true, ['outcome' => 'exited'],
            ]),
            $result->toArray(),
        );
    }

    public function testEmptyDiagnosticsAreAJsonObject(): void
    {
        self::assertStringContainsString('"diagnostics":{}', (string) json_encode($this->resultWith()->toArray()));
        self::assertStringEndsWith("\"diagnostics\": {}\n}\n", Json::encode($this->resultWith()->toArray()));
    }

    public function testToArrayOfARealRunPrintsEmptyMapsAsObjects(): void
    {
        $evaluator = new Evaluator();
        $root = dirname(__DIR__) . '/examples/shop';
        $result = $evaluator->evaluate(new EvalRequest('return [new stdClass(), []];', $root));

        $array = $result->toArray(verbose: true);
        $json = json_decode(Json::encode($array), false);

        self::assertSame(self::KEYS, array_keys($array));
        self::assertTrue($array['ok']);
        self::assertEquals(new stdClass(), $json->result->value[0]->properties);
        self::assertSame([], $json->result->value[1]->value);
        self::assertInstanceOf(stdClass::class, $json->diagnostics);
        self::assertSame('returned', $json->diagnostics->outcome);
        self::assertInstanceOf(stdClass::class, $json->diagnostics->guards);
        foreach (['start', 'boot', 'snippet', 'encode', 'total'] as $step) {
            self::assertIsFloat($array['diagnostics']['timings_ms'][$step], $step);
        }
    }

    public function testWhatIsAsItShouldBeIsLeftOutOfTheArray(): void
    {
        $diagnostics = [
            'outcome' => 'exited',
            'timings_ms' => ['total' => 1.5],
            'start' => 'warm',
            'blocked' => [],
            'file_changes' => ['created' => [['path' => 'a', 'size' => 1]], 'modified' => [], 'deleted' => []],
            'guards' => ['ini' => 'in force', 'seccomp' => 'missing: old'],
            'queries' => [],
        ];
        $result = $this->resultWith(['diagnostics' => $diagnostics]);

        self::assertSame(
            [
                'outcome' => 'exited',
                'file_changes' => ['created' => [['path' => 'a', 'size' => 1]]],
                'guards' => ['seccomp' => 'missing: old'],
            ],
            $result->toArray()['diagnostics'],
        );
        self::assertSame($diagnostics, $result->toArray(true)['diagnostics']);
        self::assertSame($diagnostics, $result->diagnostics);
        self::assertSame(self::KEYS, array_keys($result->toArray()));
    }

    public function testAStartIsToldWhereItWasNotExpected(): void
    {
        $start = fn (array $diagnostics): array => $this->resultWith(['diagnostics' => $diagnostics])
            ->toArray()['diagnostics'];
        foreach (['warm', 'first', 'cold'] as $expected) {
            self::assertSame(['outcome' => 'exited'], $start(['outcome' => 'exited', 'start' => $expected]));
        }
        foreach (['booted', 'cold'] as $unexpected) {
            $told = ['start' => $unexpected, 'start_reason' => 'it has a thread'];
            self::assertSame($told, $start($told));
        }
    }

    public function testValuesThatStayAreTheSame(): void
    {
        $object = (object) ['empty' => [], 'full' => 1];
        $odd = ['object' => $object, 7 => "\xff", 'nested' => [[[]]], 'guards' => 'all', 'timings_ms' => 1];
        $kept = $this->resultWith(['diagnostics' => $odd])->toArray()['diagnostics'];

        unset($odd['timings_ms']);
        self::assertSame($odd, $kept);
    }

    public function testAnUnknownGuardLosesNoOtherRefusal(): void
    {
        $blocked = static fn (string $guard): array => ['what' => "by $guard", 'guard' => $guard, 'lift' => null];
        $result = $this->resultWith(['diagnostics' => ['blocked' => [$blocked('moat'), $blocked('ini')]]]);

        self::assertStringContainsString('refused: by ini', HumanOutput::render($result));
    }

    public function testItIsReadonly(): void
    {
        $result = $this->resultWith();
        $this->expectException(Error::class);
        $this->expectExceptionMessage('Cannot modify readonly property Altair\Eval\EvalResult::$stdout');

        $result->stdout = 'forged'; // @phpstan-ignore-line
    }

    public function testChangingACopyOfAnArrayDoesNotChangeIt(): void
    {
        $diagnostics = ['a' => [1]];
        $result = $this->resultWith(['diagnostics' => $diagnostics]);
        $copy = $result->diagnostics;
        $copy['a'][] = 2;
        $diagnostics['a'] = null;

        self::assertSame(['a' => [1]], $result->diagnostics);
    }

    public function testItIsNotConstructedTwice(): void
    {
        $this->expectException(Error::class);
        $this->expectExceptionMessage('Cannot modify readonly property Altair\Eval\EvalResult::$result');

        $this->resultWith()->__construct(null, '', '', null, 1, 1, 1, true);
    }

    public function testOneThatWasNeverConstructedHasNoArray(): void
    {
        $hollow = (new ReflectionClass(EvalResult::class))->newInstanceWithoutConstructor();

        self::assertFalse($hollow->ok());
        $this->expectException(Error::class);
        $this->expectExceptionMessage('The EvalResult was never constructed');
        $hollow->toArray();
    }

    /**
     * @param array<string, mixed> $with
     */
    private function resultWith(array $with = []): EvalResult
    {
        return new EvalResult(...$with + [
            'result' => null,
            'stdout' => '',
            'stderr' => '',
            'exception' => null,
            'durationMs' => 0,
            'memoryPeakBytes' => 0,
            'exitCode' => 0,
            'timedOut' => false,
        ]);
    }
}
