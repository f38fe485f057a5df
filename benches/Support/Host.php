<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use RuntimeException;

/**
 * Another PHP process with the extension and settings of its own, which evaluates one snippet each time it is asked;
 * by the extension, or as plain PHP does it.
 */
final class Host
{
    private const PROGRAM = <<<'PHP'
        [, $snippet, $root, $timeout] = $argv;
        $evaluator = new Altair\Eval\Evaluator(warm: false);
        $request = new Altair\Eval\EvalRequest($snippet, $root, (int) $timeout);
        while (fgets(STDIN) !== false) {
            $result = $evaluator->evaluate($request);
            fwrite(STDOUT, json_encode([$result->ok(), $result->diagnostics['guards']]) . "\n");
        }
        PHP;

    private const PLAIN_PROGRAM = <<<'PHP'
        [, $snippet, $root, $timeout, $reference] = $argv;
        require $reference;
        while (fgets(STDIN) !== false) {
            $result = Altair\Eval\Benches\Reference\evaluate($snippet, $root, (int) $timeout);
            fwrite(STDOUT, json_encode([$result['ok'], ['deadline' => 'in force']]) . "\n");
        }
        PHP;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    /**
     * @param list<string> $without guards that are left out
     */
    public function __construct(
        string $snippet,
        string $root,
        int $timeoutMs,
        private readonly array $without = [],
        bool $plain = false,
    ) {
        $command = [
            PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-d', 'altair_eval.omit=' . implode(',', $without),
            '-r', $plain ? self::PLAIN_PROGRAM : self::PROGRAM, '--', $snippet, $root, (string) $timeoutMs,
            dirname(__DIR__) . '/reference/evaluate.php',
        ];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']], $this->pipes);
        $this->process = $process ?: throw new RuntimeException('No process.');
    }

    public function __destruct()
    {
        array_map(fclose(...), $this->pipes);
        proc_close($this->process);
    }

    public function evaluate(): void
    {
        fwrite($this->pipes[0], "\n");
        [$ok, $guards] = json_decode((string) fgets($this->pipes[1]), true) ?? [false, []];
        foreach ($guards as $guard => $state) {
            // What is measured is what is said: nothing that is degraded, nothing that is left in.
            $ok = $ok && ($state === 'in force') === !in_array($guard, $this->without, true);
        }
        if (!$ok || $guards === []) {
            throw new RuntimeException('Not what is to be measured: ' . json_encode($guards));
        }
    }
}
