<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\Warm\LockedRuns;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Generator;
use LogicException;

/**
 * `evaluateMany()` on templates that ends early: the runs end and the template stays, or the other way round.
 */
final class ManyEndTest extends WarmTestCase
{
    use LockedRuns;

    private const FOREVER = 'echo getmypid(); while (true) { sleep(1); }';

    public function testLeavingTheLoopEndsWhatRunsAndNotTheTemplate(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        $requests = [$this->request('return 1;'), $this->request(self::FOREVER), $this->request(self::FOREVER)];

        foreach ($this->evaluator->evaluateMany($requests, 3) as $result) {
            self::assertSame(1, self::returned($result));
            break;
        }
        unset($result);

        self::waitUntil(
            static fn (): bool => self::templates() === [$template] && self::forks() <= self::processors(),
            'Only the template is left, and what waits for a run.',
        );
        self::assertStart('warm', $this->ask('return 1;'));
        self::assertSame($template, self::template());
    }

    public function testAnExceptionOfTheCallerEndsWhatRunsAndNotTheTemplate(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        $requests = function (): Generator {
            yield $this->request(self::FOREVER);
            throw new LogicException('no more');
        };

        try {
            iterator_to_array($this->evaluator->evaluateMany($requests(), 2));
            self::fail('It goes on to the caller.');
        } catch (LogicException $thrown) {
            self::assertSame('no more', $thrown->getMessage());
        }

        self::waitUntil(
            static fn (): bool => self::templates() === [$template] && self::forks() <= self::processors(),
            'Only the template is left, and what waits for a run.',
        );
        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testWhatRunsOutlivesItsEvaluator(): void
    {
        $locks = $this->locks(['slow']);
        $requests = [$this->request('return 1;'), $this->request($this->wait('slow'))];
        $results = $this->evaluator->evaluateMany($requests, 2);
        $results->rewind();
        $this->evaluator = null;

        flock($locks['slow'], LOCK_UN);
        $results->next();

        self::assertSame(1, self::returned($results->current()));
        unset($results);
        array_map(fclose(...), $locks);
    }

    public function testWhatRunsOutlivesItsTemplate(): void
    {
        $locks = $this->locks(['slow']);
        $results = $this->evaluator->evaluateMany([
            $this->request($this->wait('slow')),
            $this->request('return 2;'),
        ], 2);
        $results->rewind();
        self::assertSame(1, $results->key());

        // Of what the host's keeper holds, the template is the one that started first.
        $templates = self::templates();
        sort($templates);
        posix_kill($templates[0], SIGKILL);
        self::waitUntil(static fn (): bool => self::hasEnded($templates[0]), 'It is killed.');
        self::assertStart('first', $this->ask('return 3;'));
        flock($locks['slow'], LOCK_UN);
        $results->next();

        self::assertSame([0, 1], [$results->key(), self::returned($results->current())]);
        $results->next();
        self::assertFalse($results->valid());
        unset($results);
        array_map(fclose(...), $locks);
    }

    public function testARequestThatCanNeverRunIsToldOnceTheOthersAreThroughAndDoesNotEndTheTemplate(): void
    {
        $this->booting('');
        $this->warmed();
        $template = self::template();
        $short = $this->request('usleep(100000);');
        $requests = [$short, new EvalRequest('1', '/nowhere'), $this->request('return 1;')];

        try {
            iterator_to_array($this->evaluator->evaluateMany($requests, 2));
            self::fail('It is told.');
        } catch (InvalidRequestException $thrown) {
            self::assertStringContainsString('/nowhere', $thrown->getMessage());
        }

        self::waitUntil(
            static fn (): bool => self::templates() === [$template] && self::forks() <= self::processors(),
            'Only the template is left, and what waits for a run.',
        );
        self::assertStart('warm', $this->ask('return 1;'));
    }
}
