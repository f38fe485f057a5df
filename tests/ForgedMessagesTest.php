<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Forgery\ForgeryTestCase;
use Altair\Eval\Tests\Support\Forgery\ForgingApplication;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Native code in a snippet that has the run's secret says what it likes on the channel. What the host and the kernel
 * know better stays as it is: that the snippet was run, behind which guards, how it ended and how long it took.
 */
final class ForgedMessagesTest extends ForgeryTestCase
{
    /** How long a snippet takes whose time is measured, and what a clock has to show of it. */
    private const TAKES_MS = 300;
    private const SHOWN_MS = 250;

    /** Runs side by side, and how long each goes on after it has reported. */
    private const AT_A_TIME = 2;
    private const REQUESTS = 6;
    private const GOES_ON_MS = 200;

    // ---- that it was run ----

    /**
     * Before: "Nothing was run", of a snippet that had written a file for good.
     *
     * @dataProvider refusalsToRun
     */
    public function testASnippetThatWasRunCannotSayThatNothingWas(string $start, string $message): void
    {
        $this->assertWasRun($start, "wire()->say($message);");
    }

    /**
     * Before: the same, with a report besides.
     *
     * @dataProvider starts
     */
    public function testNorCanOneThatHasReported(string $start): void
    {
        $this->assertWasRun($start, self::report('returned("1")') . ' wire()->say(Messages::unable("forged"));');
    }

    /**
     * @dataProvider refusalsToRun
     */
    public function testWhatItReturnsAfterwardsIsTrue(string $start, string $message): void
    {
        $result = $this->forge($start, "wire()->say($message); return 'the truth';");

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('the truth', $result->result['value']);
    }

    public static function refusalsToRun(): iterable
    {
        yield from self::eachStart([
            'unable' => ['Messages::unable("forged")'],
            'a second thread' => ['Messages::secondThread(1)'],
            'a second thread of the host' => ['Messages::secondThread(' . getmypid() . ')'],
            'a guard that it may not do without' => ['Messages::guarded(["seccomp" => "missing: forged"])'],
            'the same once it is ready' => ['Messages::ready(["seccomp" => "missing: forged"])'],
        ]);
    }

    // ---- its guards ----

    /**
     * Before: what was forged stood in the place of the real state, or beside it.
     *
     * @dataProvider guards
     */
    public function testTheGuardsAreThoseOfAnHonestRun(string $start, string $messages): void
    {
        $honest = $this->forge($start, 'return 1;')->diagnostics['guards'];

        foreach (['return 1;', 'wire()->leave(0);'] as $ending) {
            $result = $this->forge($start, "wire()->say($messages); $ending");
            self::assertSame($honest, $result->diagnostics['guards']);
        }
    }

    public static function guards(): iterable
    {
        $states = [
            'one of its own' => '["landlock" => "degraded to x"]',
            'one that there is not' => '["made-up" => "in force"]',
            'one of the host' => '["filesystem" => "missing: x", "process" => "missing: x"]',
            'none' => '[]',
        ];
        foreach ($states as $name => $state) {
            yield from self::eachStart([
                "$name, guarded" => ["Messages::guarded($state)"],
                "$name, ready" => ["Messages::ready($state)"],
                "$name, begun anew" => [
                    "Messages::entered(1), Messages::guarded($state), Messages::ready($state, 1, 1)",
                ],
            ]);
        }
    }

    // ---- how it ended ----

    /**
     * Before: the report was believed, whatever the process had ended with.
     *
     * @dataProvider contradictions
     */
    public function testAReportThatTheExitStatusContradictsIsNone(
        string $start,
        string $ending,
        int $status,
        int $exitCode,
    ): void {
        $result = $this->forge($start, self::report($ending) . " wire()->leave($status);");

        self::assertOutcome('no_report', $result, $exitCode);
    }

    public static function contradictions(): iterable
    {
        yield from self::eachStart([
            'returned, 99' => ['returned("1")', 99, 99],
            'returned, 1' => ['returned("1")', 1, 1],
            'threw, 0' => ['threw("{}")', 0, 1],
            'threw, 255' => ['threw("{}")', 255, 255],
            'exited 3, 5' => ['exited(3)', 5, 5],
            'exited 0, 1' => ['exited(0)', 1, 1],
            'fatal, 0' => ['fatal("forged")', 0, 1],
            'fatal, 2' => ['fatal("forged")', 2, 2],
            'out of memory, 0' => ['outOfMemory("forged")', 0, 1],
        ]);
    }

    /**
     * Before: "boot_failed", of a snippet that was run.
     *
     * @dataProvider starts
     */
    public function testBootHasNotFailedOnceTheSnippetHasBegun(string $start): void
    {
        $result = $this->forge($start, self::report('bootFailed("forged")', 'Messages::BOOT') . ' wire()->leave(2);');

        self::assertOutcome('no_report', $result, 2);
        self::assertNotSame('boot', $result->diagnostics['phase'] ?? null);
    }

    /**
     * Before: the last one counted.
     *
     * @dataProvider starts
     */
    public function testTheFirstReportCounts(string $start): void
    {
        $forged = static fn (string $value): string => self::report("returned(Messages::string('$value'))");

        $left = $this->forge($start, $forged('first') . $forged('second') . ' wire()->leave(0);');
        $returned = $this->forge($start, $forged('first') . ' return "second";');

        self::assertSame('first', $left->result['value'] ?? null);
        self::assertSame('first', $returned->result['value'] ?? null);
    }

    /**
     * Before: the phase was what the report said, though boot was over.
     *
     * @dataProvider starts
     */
    public function testAReportOfASnippetIsNotOfBoot(string $start): void
    {
        foreach (['threw("{}")' => 1, 'fatal("x")' => 255, 'exited(7)' => 7] as $ending => $status) {
            $result = $this->forge($start, self::report($ending, 'Messages::BOOT') . " wire()->leave($status);");
            self::assertNotSame('boot', $result->diagnostics['phase'] ?? null, $ending);
        }
    }

    /**
     * Before: the same of where the deadline met it.
     *
     * @dataProvider starts
     */
    public function testTheDeadlineDidNotMeetASnippetInBoot(string $start): void
    {
        $result = $this->forge(
            $start,
            'pcntl_sigprocmask(SIG_BLOCK, range(34, 64)); wire()->say(Messages::stopped(Messages::BOOT)); for (;;);',
            timeoutMs: self::SHORT_MS,
        );

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertNotSame('boot', $result->diagnostics['phase'] ?? null);
    }

    /**
     * @dataProvider starts
     */
    public function testHintsAreFewAndInOneLine(string $start): void
    {
        $returned = 'returned(Messages::string("x"))';
        $many = '1, 1, 1, 1, array_fill(0, 6, "forged")';
        $result = $this->forge($start, self::report($returned, $many) . ' wire()->leave(0);');
        self::assertOutcome('no_report', $result, 1);

        $long = '1, 1, 1, 1, [str_repeat("a\\n\\x1b", 9999), "", "b\\u{2028}", "b\\u{2028}"]';
        $result = $this->forge($start, self::report($returned, $long) . ' wire()->leave(0);');
        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame([str_repeat('a??', 128) . 'a?...(truncated)', 'b?'], $result->diagnostics['hints']);
    }

    // ---- how long it took ----

    /**
     * Before: as long as the report said, nothing at all.
     *
     * @dataProvider momentsOfReport
     */
    public function testASnippetThatTookLongCannotSayThatItDidNot(string $start, string $snippet): void
    {
        $result = $this->forge($start, $snippet);

        self::assertGreaterThanOrEqual(self::SHOWN_MS, $result->durationMs);
        self::assertGreaterThanOrEqual(self::SHOWN_MS, $result->diagnostics['timings_ms']['snippet'] ?? null);
    }

    public static function momentsOfReport(): iterable
    {
        $takes = 'usleep(' . self::TAKES_MS * 1000 . ');';
        $report = self::report('returned("1")', 'Messages::SNIPPET, 0, 0');

        yield from self::eachStart([
            'at its end' => ["$takes $report wire()->leave(0);"],
            'as it begins' => ["$report $takes wire()->leave(0);"],
        ]);
    }

    /**
     * Before: an hour, of a call that took milliseconds.
     *
     * @dataProvider longTimes
     */
    public function testNoPartOfARunTookLongerThanAllOfIt(string $start, string $messages): void
    {
        $before = hrtime(true);
        $result = $this->forge($start, "wire()->say($messages); wire()->leave(0);");
        $elapsed = (hrtime(true) - $before) / 1e6;

        self::assertLessThanOrEqual($elapsed, $result->durationMs);
        foreach ($result->diagnostics['timings_ms'] as $part => $took) {
            self::assertLessThanOrEqual($elapsed, $took, $part);
        }
    }

    public static function longTimes(): iterable
    {
        $hour = 3600 * 1_000_000;
        $report = static fn (string $took): string
            => "Messages::report(Messages::returned('1'), Messages::SNIPPET, $took)";

        yield from self::eachStart([
            'the snippet' => [$report("$hour, 1")],
            'the snippet, beyond all clocks' => [$report('-1, 1')],
            'encoding' => [$report("1, $hour")],
            'boot' => ["Messages::ready([], $hour), " . $report('1, 1')],
            'the start' => ["Messages::entered(hrtime(true) + $hour * 1000), " . $report('1, 1')],
        ]);
    }

    // ---- whose turn it is ----

    /**
     * Before: who had reported gave its turn away, and went on; all of them ran at once.
     */
    public function testAnEarlyReportFreesNoTurn(): void
    {
        $mark = static fn (int $by): string
            => "file_put_contents('marks', hrtime(true) . \" $by\\n\", FILE_APPEND | LOCK_EX);";
        $snippet = $mark(1) . self::report('returned("1")') . 'usleep(' . self::GOES_ON_MS * 1000 . ');' . $mark(-1)
            . 'wire()->leave(0);';
        $this->warmed(allowWrites: true);
        $request = new EvalRequest($snippet, $this->application()->root, self::LONG_MS, allowWrites: true);
        $results = $this->evaluator->evaluateMany(array_fill(0, self::REQUESTS, $request), self::AT_A_TIME);

        self::assertCount(self::REQUESTS, array_map(
            static fn (EvalResult $result): string => $result->diagnostics['outcome'],
            iterator_to_array($results),
        ));
        $marks = file($this->application()->path('marks'), FILE_IGNORE_NEW_LINES);
        self::assertCount(2 * self::REQUESTS, $marks);
        sort($marks, SORT_NATURAL);
        [$running, $most] = [0, 0];
        foreach ($marks as $at) {
            $running += (int) explode(' ', $at)[1];
            $most = max($most, $running);
        }
        self::assertLessThanOrEqual(self::AT_A_TIME, $most);
    }

    // ---- which process it is ----

    /**
     * Before: the host looked at the process that the message named, and told what that has open.
     */
    public function testATemplateThatNamesAnotherProcessHasTheHostLookAtNone(): void
    {
        $outside = new TemporaryApplication(['of-another-process' => '']);
        $file = ['file', $outside->path('of-another-process'), 'r'];
        $null = ['file', '/dev/null', 'w'];
        $other = proc_open(['cat'], [['pipe', 'r'], $null, $null, 4 => $file, 5 => $file], $pipes);
        $pid = proc_get_status($other)['pid'];
        $boot = "foreach (\$secrets = wire()->secretsInMemory() as \$secret) {
                wire()->under(\$secret)->say(Messages::booted($pid, 'forged'));
            }
            echo \$secrets === [] ? 'no secret' : 'said';";
        $this->application(ForgingApplication::files($boot));

        try {
            $results = [$this->ask('return 1;'), $this->ask('return 1;')];
        } finally {
            fclose($pipes[0]);
            proc_close($other);
        }

        foreach ($results as $result) {
            self::assertStringContainsString('said', $result->stdout, 'Else this shows nothing.');
            self::assertStringNotContainsString('of-another-process', $result->diagnostics['start_reason'] ?? '');
            self::assertStringNotContainsString('of-another-process', json_encode($result->toArray(verbose: true)));
        }
    }

    private function assertWasRun(string $start, string $says): void
    {
        $result = $this->forge(
            $start,
            "file_put_contents('written', 'x'); $says wire()->leave(70);",
            allowWrites: true,
        );

        self::assertFileExists($this->application()->path('written'));
        self::assertOutcome('no_report', $result, 70);
    }
}
