<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * Workers of Symfony's Messenger, each of which ends after some messages, as supervisors and `--limit` have it.
 */
final class MessengerTest extends PoolTestCase
{
    /** Evaluates in the worker's own application, and leaves what it was told beside the message. */
    private const HANDLER = <<<'PHP'
        <?php
        namespace App;

        class Handler
        {
            private \Altair\Eval\Evaluator $evaluator;

            public function __invoke(Message $message): void
            {
                $this->evaluator ??= new \Altair\Eval\Evaluator();
                $request = new \Altair\Eval\EvalRequest($message->body, dirname(__DIR__), 60000);
                $answer = $this->evaluator->evaluate($request);
                $told = [$answer->result['value'] ?? $answer->toArray(true), $answer->diagnostics['start'],
                    $answer->diagnostics['pool'] ?? false];
                $file = getenv('QUEUE') . "/$message->name.told";
                file_put_contents("$file.part", json_encode($told));
                rename("$file.part", $file);
            }
        }
        PHP;

    /** Where messages are. */
    private TemporaryApplication $queue;

    protected function setUp(): void
    {
        parent::setUp();
        $this->queue = new TemporaryApplication();
        $application = Library::messenger(['src/Handler.php' => self::HANDLER]);
        $application['vendor/autoload.php'] .= '$GLOBALS["seen"] = require __DIR__ . "/../seen.php";';
        foreach ($application as $path => $contents) {
            $this->shop->write($path, $contents);
        }
    }

    public function testAWorkerBootsForItselfUntilThereIsAPoolAndThenForAllAfterIt(): void
    {
        // The second message may find the template that boots after the first one, or come before that.
        $own = fn (): array => array_map(
            static fn (array $told): array => [$told[0], $told[1] === 'warm' ? 'first' : $told[1], $told[2]],
            $this->worker(2),
        );
        $expected = [['old hello', 'cold', false], ['old hello', 'first', false]];

        self::assertSame($expected, $own());
        self::assertNull($this->pool->state(), 'One worker is no reason for a process that stays.');
        self::assertSame($expected, $own());
        $pid = $this->pool->await(fn (): ?int => $this->pool->pid());
        self::assertSame([['old hello', 'first', true], ['old hello', 'warm', true]], $this->worker(2));
        self::assertSame([['old hello', 'warm', true], ['old hello', 'warm', true]], $this->worker(2));
        $this->assertOneTemplate(runs: 4);

        self::assertSame(
            [['old hello', 'warm', true], ['new hello', 'first', true], ['new hello', 'warm', true]],
            $this->worker(3, fn () => $this->edit('new')),
        );
        self::assertSame([['new hello', 'warm', true]], $this->worker(1));
        self::assertSame($pid, $this->pool->pid());
    }

    /**
     * A worker that handles some messages, one after another.
     *
     * @param callable|null $meanwhile is called after the first
     * @return list<mixed> what the worker was told in each
     */
    private function worker(int $messages, ?callable $meanwhile = null): array
    {
        $errors = $this->queue->path('errors');
        $console = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), $this->shop->path('bin/console')];
        $worker = proc_open(
            [...$console, 'messenger:consume', 'files', "--limit=$messages", '--sleep=0.01', '-vv'],
            [['file', '/dev/null', 'r'], ['file', $errors, 'w'], ['file', $errors, 'a']],
            $pipes,
            $this->shop->root,
            ['QUEUE' => $this->queue->root] + $this->environment(),
        );
        $told = [];
        for ($message = 1; $message <= $messages; $message++) {
            $file = $this->queue->path("$message.told");
            $this->queue->write('new', 'return $GLOBALS["seen"] . " " . container(App\Greeter::class)->hello();');
            rename($this->queue->path('new'), $this->queue->path("$message.message"));
            try {
                $this->pool->await(static fn (): bool => is_file($file));
            } catch (RuntimeException) {
                proc_terminate($worker);
                self::fail((string) file_get_contents($errors));
            }
            $told[] = json_decode((string) file_get_contents($file), true);
            unlink($file);
            if ($message === 1 && $meanwhile !== null) {
                $meanwhile();
            }
        }
        self::assertSame(0, proc_close($worker), (string) file_get_contents($errors));

        return $told;
    }
}
