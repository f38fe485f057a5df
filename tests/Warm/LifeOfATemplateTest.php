<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A template lives as long as who keeps it, and its end harms nobody.
 */
final class LifeOfATemplateTest extends WarmTestCase
{
    private const WARM = <<<'PHP'
        $evaluator = new Evaluator(warm: true);
        $start = static fn (string $snippet = 'return 1;'): string
            => $evaluator->evaluate(request($snippet))->diagnostics['start'];
        for ($call = 0; $call < 5 && ($last ?? '') !== 'warm'; $call++) {
            $last = $start();
        }
        say($last);
        PHP;

    public function testItEndsWithTheEvaluator(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        self::assertFalse(self::hasEnded($template));

        $this->evaluator = null;

        // The host does not wait for it.
        self::waitUntil(static fn (): bool => self::hasEnded($template), 'The template has ended.');
        self::waitUntil(static fn (): bool => Processes::children() === [], 'Its keeper is collected.');
    }

    public function testEachEvaluatorHasItsOwn(): void
    {
        $this->booting('');
        $this->warmed();
        $other = new Evaluator(warm: true);

        self::assertStart('first', $this->askOf($other, 'return 1;'));
        self::assertCount(2, self::templates());
        unset($other);

        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testItEndsWithTheHost(): void
    {
        $script = new Script(self::WARM . ' for (;;) { sleep(60); }');
        self::assertSame('warm', $script->line());
        self::assertGreaterThanOrEqual(2, count($script->processes()), 'The keeper and the template.');

        $script->signal(SIGKILL);

        self::waitUntil(static fn (): bool => $script->processes() === [], 'Nothing of the host is left.');
    }

    public function testItEndsWithAHostThatReturns(): void
    {
        $script = new Script(self::WARM);
        self::assertSame('warm', $script->line());

        self::assertSame([0, '', ''], $script->end());

        self::waitUntil(static fn (): bool => $script->processes() === [], 'Nothing of the host is left.');
    }

    public function testAForkOfTheHostNeitherUsesNorEndsIt(): void
    {
        $script = new Script(self::WARM . <<<'PHP'
            $parent = $evaluator->evaluate(request('return posix_getppid();'))->result['value'];
            if (pcntl_fork() === 0) {
                $result = $evaluator->evaluate(request('return posix_getppid();'));
                say([$result->diagnostics['start'], is_int($result->result['value']),
                    $result->result['value'] === $parent]);
                for ($call = 0; $call < 5 && ($last = $start()) !== 'warm'; $call++) {
                }
                say($last);
                unset($result, $start, $evaluator);
                exit(0);
            }
            pcntl_wait($status);
            say(pcntl_wexitstatus($status));
            say($start());
            PHP);

        self::assertSame('warm', $script->line());
        self::assertSame('["cold",true,false]', $script->line());
        self::assertSame('warm', $script->line(), 'The fork has a template of its own.');
        self::assertSame('0', $script->line());
        self::assertSame('warm', $script->line(), 'The template of the host is there still.');
        self::assertSame([0, '', ''], $script->end());
        self::waitUntil(static fn (): bool => $script->processes() === [], 'Nothing of the host is left.');
    }

    public function testAForkOfTheHostThatDoesNothingOrIsKilledDoesNotEndIt(): void
    {
        $script = new Script(self::WARM . <<<'PHP'
            foreach (['exit(0);', 'posix_kill(getmypid(), SIGKILL);', 'throw new LogicException();'] as $end) {
                if (pcntl_fork() === 0) {
                    ini_set('display_errors', '0');
                    eval($end);
                }
                pcntl_wait($status);
                say($start());
            }
            PHP);

        self::assertSame([0, "warm\nwarm\nwarm\nwarm\n", ''], $script->end());
    }

    public function testItIsKilledWhileARunGoesOn(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        $kill = static function () use ($template): void {
            posix_kill($template, SIGKILL);
            self::waitUntil(static fn (): bool => self::hasEnded($template), 'It is killed.');
        };
        $running = $this->askOf($this->evaluator, 'echo "x"; for ($i = 0; $i < 20; $i++) { usleep(5000); }'
            . ' return 7;', self::atFirst($kill));

        self::assertSame(7, self::returned($running));
        self::assertStart('warm', $running);
        self::assertStart('first', $this->ask('return 1;'));
        $this->warmed();
    }

    public function testItIsKilledBetweenTwoCalls(): void
    {
        $this->booting('');
        $this->warmed();

        for ($round = 0; $round < 3; $round++) {
            $killed = self::template();
            posix_kill($killed, SIGKILL);
            $next = $this->ask('return 7;');
            self::assertSame(7, self::returned($next));
            // A fork that was waiting for it may have taken it, before that template's end was seen.
            self::assertContains($next->diagnostics['start'], ['warm', 'first']);
            // The kernel may still be freeing the killed one.
            $isThere = fn (): bool => $this->warmed() && array_diff(self::templates(), [$killed]) !== [];
            self::waitUntil($isThere, 'There is another one.');
            self::waitUntil(static fn (): bool => self::hasEnded($killed), 'The killed one is gone.');
        }
    }

    public function testItsKeeperIsKilled(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        [$keeper] = array_map(intval(...), Processes::children());

        posix_kill($keeper, SIGKILL);

        self::waitUntil(static fn (): bool => self::hasEnded($template), 'The template ends with its keeper.');
        $next = $this->ask('return 7;');
        self::assertSame(7, self::returned($next));
        self::assertStart('first', $next);
        $this->warmed();
    }

    public function testItsKeeperIsKilledWhileARunGoesOn(): void
    {
        $this->booting('');
        $this->warmed();
        [$keeper] = array_map(intval(...), Processes::children());
        $child = null;
        $kill = static function (string $type, string $chunk) use ($keeper, &$child): void {
            $child = (int) $chunk;
            posix_kill($keeper, SIGKILL);
        };

        $running = $this->askOf($this->evaluator, 'echo getmypid(); sleep(60);', self::atFirst($kill));

        // Nothing runs without a keeper, which would end it with the host.
        self::assertOutcome('signalled', $running, 128 + SIGKILL);
        self::waitUntil(static fn (): bool => self::hasEnded($child), 'The run has ended.');
        self::assertSame(7, self::returned($this->ask('return 7;')));
    }

    public function testItIsStopped(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        posix_kill($template, SIGSTOP);

        // A fork was ready for this one.
        self::assertSame(7, self::returned($this->ask('return 7;')));
        // Half a second passes until the template is given up.
        $next = $this->ask('return 7;', timeoutMs: 4 * self::SHORT_MS);

        self::assertContains($next->diagnostics['outcome'], ['returned', 'timed_out']);
        if ($next->timedOut) {
            self::assertStringContainsString('template', $next->diagnostics['message'] ?? '');
        }
        self::waitUntil(static fn (): bool => self::hasEnded($template), 'It is not kept.');
        self::assertSame(7, self::returned($this->ask('return 7;')));
        $this->warmed();
    }

    public function testItIsStoppedWhileARunGoesOn(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        $stop = self::atFirst(static fn () => posix_kill($template, SIGSTOP));

        self::assertSame(7, self::returned($this->askOf($this->evaluator, 'echo "x"; return 7;', $stop)));

        posix_kill($template, SIGCONT);
        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testItIsLeftAloneByATerminalsSignals(): void
    {
        $script = new Script('posix_setsid(); pcntl_async_signals(true); pcntl_signal(SIGINT, fn () => say("int"));'
            . self::WARM . ' posix_kill(-getmypid(), SIGINT); say($start());');

        self::assertSame([0, "warm\nint\nwarm\n", ''], $script->end());
    }

    /** @dataProvider off */
    public function testItIsSwitchedOff(string $evaluator, array $options): void
    {
        $code = "\$evaluator = $evaluator; say(\$evaluator->warm);"
            . ' for ($i = 0; $i < 3; $i++) { $result = $evaluator->evaluate(request("return 1;"));'
            . ' say([$result->diagnostics["start"], isset($result->diagnostics["start_reason"])]); }'
            . ' say(file_get_contents("/proc/self/task/" . getmypid() . "/children"));';
        $script = new Script($code, $options);

        self::assertSame([0, 'false' . str_repeat("\n[\"cold\",false]", 3) . "\n\n", ''], $script->end());
    }

    public static function off(): iterable
    {
        yield 'by the argument' => ['new Evaluator(warm: false)', []];
        yield 'by the argument, over the setting' => ['new Evaluator(warm: false)', ['-d', 'altair_eval.warm=1']];
        yield 'by the setting' => ['new Evaluator()', ['-d', 'altair_eval.warm=0']];
        yield 'by the setting, in words' => ['new Evaluator()', ['-d', 'altair_eval.warm=off']];
    }

    public function testTheArgumentIsStrongerThanTheSettingThatSwitchesItOff(): void
    {
        $script = new Script(self::WARM, ['-d', 'altair_eval.warm=0']);

        self::assertSame([0, "warm\n", ''], $script->end());
    }

    private static function atFirst(callable $what): callable
    {
        return static function (string $type, string $chunk) use ($what, &$done): void {
            if (!$done) {
                $done = true;
                $what($type, $chunk);
            }
        };
    }
}
