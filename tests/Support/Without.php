<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * Runs PHP with the extension on a system that lacks something; see without.c for what can be taken away.
 */
final class Without
{
    private static ?TemporaryApplication $place = null;

    /**
     * @param list<string> $what to take away
     * @param list<string> $options of the `php` command
     * @return array{int, string, string} exit code, output, errors
     */
    public static function php(array $what, string $code, array $options = []): array
    {
        return self::command($what, [
            PHP_BINARY, '-d', 'extension=' . self::extension(), '-d', 'display_errors=stderr', ...$options, '-r', $code,
        ]);
    }

    /**
     * @param list<string> $what to take away
     * @param list<string> $command
     * @param array<string, string> $environment in addition to the test's own
     * @return array{int, string, string} exit code, output, errors
     */
    public static function command(array $what, array $command, array $environment = []): array
    {
        $streams = [['file', '/dev/null', 'r'], self::file(), self::file()];
        $command = [...self::under($what), ...$command];
        $process = proc_open($command, $streams, $pipes, '/', $environment + getenv());
        $code = proc_close($process ?: throw new RuntimeException('No process.'));
        $texts = [];
        foreach ([1, 2] as $stream) {
            rewind($streams[$stream]);
            $texts[] = (string) stream_get_contents($streams[$stream]);
        }

        return [$code, ...$texts];
    }

    /**
     * The command that becomes the one which follows it, with its arguments.
     *
     * @param list<string> $what to take away
     * @return list<string>
     */
    public static function under(array $what): array
    {
        return [self::tool(), ...$what, '--'];
    }

    /**
     * Evaluates and gives what EvalResult::toArray(true) gives, or `['thrown' => message]`.
     *
     * @param list<string> $what to take away
     * @param array<string, mixed> $request the parameters of EvalRequest
     * @param array<string, string> $settings of php.ini
     * @return array<string, mixed>
     */
    public static function evaluate(array $what, array $request, array $settings = []): array
    {
        $code = 'try { $result = (new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest('
            . '...json_decode(' . var_export(json_encode($request, JSON_THROW_ON_ERROR), true)
            . ', true)))->toArray(true); }'
            . ' catch (Altair\Eval\Exception\LaunchException $e) { $result = ["thrown" => $e->getMessage()]; }'
            . ' echo json_encode($result);';
        $options = [];
        foreach ($settings as $name => $value) {
            array_push($options, '-d', "$name=$value");
        }
        [, $output, $errors] = self::php($what, $code, $options);

        return json_decode($output, true) ?? throw new RuntimeException($output . $errors);
    }

    /** A copy of the extension that every user can read. */
    public static function extension(): string
    {
        return self::place()->path('altair_eval.so');
    }

    private static function tool(): string
    {
        return self::place()->path('without');
    }

    private static function place(): TemporaryApplication
    {
        if (self::$place === null) {
            $place = new TemporaryApplication();
            $extension = getenv('EXTENSION') ?: throw new RuntimeException('EXTENSION names no extension.');
            copy($extension, $place->path('altair_eval.so'));
            chmod($place->path('altair_eval.so'), 0755);
            exec('cc -Wall -Werror -O1 -o ' . escapeshellarg($place->path('without')) . ' '
                . escapeshellarg(__DIR__ . '/without.c') . ' 2>&1', $said, $code);
            if ($code !== 0) {
                throw new RuntimeException(implode("\n", $said));
            }
            self::$place = $place;
        }

        return self::$place;
    }

    /** @return resource */
    private static function file()
    {
        return tmpfile() ?: throw new RuntimeException('No temporary file.');
    }
}
