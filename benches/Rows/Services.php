<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use RuntimeException;

/**
 * What a declared service costs: a connection that the host makes, and a run that has no service.
 */
final class Services
{
    /** Milliseconds of each of so many connections, as the snippet itself takes them. */
    private const CONNECT = <<<'PHP'
        for ($taken = []; count($taken) < %d;) {
            $began = hrtime(true);
            $connection = stream_socket_client('%s', $code, $why, 5);
            $taken[] = (hrtime(true) - $began) / 1e6;
            $connection ?: throw new RuntimeException($why);
        }
        return $taken;
        PHP;

    public static function measure(Setting $setting, Table $table): void
    {
        $tcp = stream_socket_server('tcp://127.0.0.1:0') ?: throw new RuntimeException('No listener.');
        $path = $setting->application->path('tmp') . '/service.sock';
        $local = stream_socket_server("unix://$path") ?: throw new RuntimeException('No listener.');
        chmod($path, 0777);
        $address = (string) stream_socket_get_name($tcp, false);
        $row = 'a connection to a declared service by TCP / without any guard';
        $table->difference($row, self::connections($setting, $tcp, "tcp://$address", $address), 0.5);
        $row = 'the same by a Unix socket';
        $table->difference($row, self::connections($setting, $local, "unix://$path", $path), 0.5);

        $evaluator = new Evaluator(warm: true);
        $times = static fn (?array $services): \Closure => static function (int $times) use (
            $evaluator,
            $setting,
            $services,
        ): array {
            $request = new EvalRequest(Setting::SNIPPET, $setting->shop, services: $services);
            for ($taken = []; count($taken) < $times;) {
                $began = hrtime(true);
                $result = $evaluator->evaluate($request);
                $taken[] = (hrtime(true) - $began) / 1e6;
                $result->ok() || throw new RuntimeException(json_encode($result->diagnostics) ?: 'It failed.');
            }

            return $taken;
        };
        $looks = Comparison::ofBlocks($times(null), $times([]), intdiv($setting->rounds, 2), 20);
        $table->difference('warm evaluate() that looks for services, and finds none / that has none', $looks, 0.1);
    }

    /**
     * @param resource $listener
     */
    private static function connections(Setting $setting, $listener, string $to, string $service): Comparison
    {
        $evaluator = new Evaluator(warm: true);
        $times = static fn (bool $unsafe): \Closure => static function (int $times) use (
            $evaluator,
            $setting,
            $listener,
            $to,
            $service,
            $unsafe,
        ): array {
            $snippet = sprintf(self::CONNECT, $times, $to);
            $result = $evaluator->evaluate(
                new EvalRequest($snippet, $setting->application->root, unsafe: $unsafe, services: [$service]),
            );
            $result->ok() || throw new RuntimeException(json_encode($result->toArray()) ?: 'It failed.');
            while (@stream_socket_accept($listener, 0) !== false) {
                // What waits to be accepted is not to fill the queue.
            }

            return array_map(static fn (array $taken): float => (float) $taken['value'], $result->result['value']);
        };

        return Comparison::ofBlocks($times(false), $times(true), max(4, intdiv($setting->rounds, 10)), 20);
    }
}
