<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Script;
use PHPUnit\Framework\TestCase;

/**
 * Hosts that fork: what runs belongs to the process that started it, and a fork evaluates by itself.
 */
final class HostForkTest extends TestCase
{
    public function testAForkNeitherUsesNorEndsTheRunsOfItsParent(): void
    {
        $script = new Script(<<<'PHP'
            $results = (new Evaluator())->evaluateMany(
                ['first' => request('return 1;'), 'second' => request('usleep(300000); return 2;')],
                2,
            );
            $results->rewind();
            if (pcntl_fork() === 0) {
                unset($results); // must neither end the second run nor wait for it
                exit(0);
            }
            pcntl_wait($status);
            say([pcntl_wifexited($status), $results->key()]);
            $results->next();
            say([$results->key(), $results->current()->result]);
            PHP);

        self::assertSame(
            [0, "[true,\"first\"]\n[\"second\",{\"type\":\"int\",\"value\":2}]\n", ''],
            $script->end(),
        );
        self::assertSame([], $script->left());
    }

    public function testAForkThatWaitsForItsParentsRunsIsToldAndDoesNotHang(): void
    {
        $script = new Script(<<<'PHP'
            $results = (new Evaluator())->evaluateMany([request('return 1;'), request('usleep(300000); return 2;')], 2);
            $results->rewind();
            if (pcntl_fork() === 0) {
                try {
                    $results->next();
                    say($results->valid() ? 'a result' : 'no result');
                } catch (Altair\Eval\Exception\LaunchException $e) {
                    say('refused: ' . $e->getMessage());
                }
                exit(0);
            }
            pcntl_wait($status);
            $results->next();
            say($results->current()->result);
            PHP);

        self::assertMatchesRegularExpression('/^refused: .*(fork|process)/i', $script->line());
        self::assertSame('{"type":"int","value":2}', $script->line());
        self::assertSame([0, '', ''], $script->end());
    }

    public function testAForkEvaluatesByItself(): void
    {
        $script = new Script(<<<'PHP'
            $evaluator = new Evaluator();
            say($evaluator->evaluate(request('return 1;'), fn () => null)->result['value']);
            for ($i = 2; $i < 5; $i++) {
                if (pcntl_fork() === 0) {
                    $result = $evaluator->evaluate(request("echo 'x'; return $i;"), fn () => null);
                    exit($result->result['value']);
                }
            }
            $codes = [];
            while (pcntl_wait($status) > 0) {
                $codes[] = pcntl_wexitstatus($status);
            }
            sort($codes);
            say($codes);
            say($evaluator->evaluate(request('return 9;'))->result['value']);
            PHP);

        self::assertSame([0, "1\n[2,3,4]\n9\n", ''], $script->end());
        self::assertSame([], $script->left());
    }

    public function testAForkMadeWhileACallbackRunsDoesNotDisturbTheRun(): void
    {
        $script = new Script(<<<'PHP'
            $fork = function () {
                if (pcntl_fork() === 0) {
                    posix_kill(getmypid(), SIGKILL); // ends without a word
                }
                pcntl_wait($status);
            };
            say((new Evaluator())->evaluate(request('echo "x"; return 5;'), $fork)->result['value']);
            PHP);

        self::assertSame([0, "5\n", ''], $script->end());
        self::assertSame([], $script->left());
    }

    public function testAForkThatLeavesTheCallbackByAnExceptionDoesNotEndTheRun(): void
    {
        $script = new Script(<<<'PHP'
            $parent = getmypid();
            $fork = function () use ($parent) {
                if (pcntl_fork() === 0) {
                    throw new LogicException('in the fork');
                }
                pcntl_wait($status);
                say('the fork ended with ' . pcntl_wexitstatus($status));
            };
            try {
                $request = request('echo "x"; usleep(200000); return 5;');
                say((new Evaluator())->evaluate($request, $fork)->result['value']);
            } catch (LogicException $e) {
                exit(getmypid() === $parent ? 1 : 6);
            }
            PHP);

        self::assertSame([0, "the fork ended with 6\n5\n", ''], $script->end());
        self::assertSame([], $script->left());
    }

    /** @dataProvider waits */
    public function testAForkThatASignalHandlerMakesDuringAWaitIsToldAndDoesNotHang(string $wait): void
    {
        $script = new Script(str_replace('WAIT', $wait, <<<'PHP'
            pcntl_async_signals(true);
            $parent = getmypid();
            pcntl_signal(SIGALRM, function () {
                pcntl_fork();
            });
            pcntl_alarm(1);
            try {
                $said = WAIT;
                pcntl_wait($status);
                say([$said, pcntl_wexitstatus($status)]);
            } catch (Altair\Eval\Exception\LaunchException $e) {
                exit(getmypid() === $parent ? 1 : 6);
            }
            PHP));

        self::assertSame([0, "[5,6]\n", ''], $script->end());
        self::assertSame([], $script->left());
    }

    public static function waits(): iterable
    {
        $request = 'request("usleep(2500000); return 5;")';
        yield 'for one run' => ["(new Evaluator())->evaluate($request, fn () => null)->result['value']"];
        $several = "iterator_to_array((new Evaluator())->evaluateMany([$request, $request], 2))";
        yield 'for several' => ["{$several}[1]->result['value']"];
    }

    public function testWhatWasNotBegunIsForTheForkToBegin(): void
    {
        $script = new Script(<<<'PHP'
            $requests = [request('return 1;'), request('return 2;'), request('return 3;')];
            $results = (new Evaluator())->evaluateMany($requests, 2);
            $values = function () use ($results) {
                foreach ($results as $key => $result) {
                    $values[$key] = $result->result['value'];
                }
                ksort($values);
                return $values;
            };
            if (pcntl_fork() === 0) {
                exit($values() === [1, 2, 3] ? 6 : 1);
            }
            pcntl_wait($status);
            say([pcntl_wexitstatus($status), $values()]);
            PHP);

        self::assertSame([0, "[6,[1,2,3]]\n", ''], $script->end());
        self::assertSame([], $script->left());
    }
}
