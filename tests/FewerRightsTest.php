<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Hosts in containers, which may do less: a run needs of the rights that an engine can give what it must, and no more.
 */
final class FewerRightsTest extends TestCase
{
    private const NOBODY = 65534;

    /** Evaluates three times with one template, and prints the last answer. */
    private const THREE_TIMES = <<<'PHP'
        $evaluator = new Altair\Eval\Evaluator(warm: true);
        foreach ([1, 2, 3] as $round) {
            $last = $evaluator->evaluate(new Altair\Eval\EvalRequest(%s, %s, 60000))->toArray(true);
        }
        echo json_encode($last);
        PHP;

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->application->write('kept', 'kept', 0644);
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function users(): iterable
    {
        yield 'as this user' => [[]];
        if (posix_geteuid() === 0) {
            yield 'as an ordinary user' => [['user=' . self::NOBODY]];
        }
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testWherePivotRootAloneIsRefusedNothingIsLacking(array $user): void
    {
        if ($user !== []) {
            $this->application->giveTo(self::NOBODY, self::NOBODY);
        }
        $outside = new TemporaryApplication();
        $secret = $outside->write('secret', 'the secret', 0644);
        $snippet = sprintf('return json_encode([
            @file_get_contents(%s), file_put_contents("new", "x"), file_put_contents("/tmp/x", "x"),
            array_intersect(["root", "home", "var"], scandir("/")),
        ]);', var_export($secret, true));
        $root = $this->application->root;
        $code = sprintf(self::THREE_TIMES, var_export($snippet, true), var_export($root, true));

        [, $output, $errors] = Without::php(['pivot', ...$user], $code);

        $result = json_decode($output, true) ?? self::fail($output . $errors);
        self::assertSame('[false,1,1,[]]', $result['result']['value'] ?? $output);
        self::assertSame(['in force'], array_values(array_unique($result['diagnostics']['guards'])));
        self::assertSame('warm', $result['diagnostics']['start'], $result['diagnostics']['start_reason'] ?? '');
        self::assertSame(['new'], array_column($result['diagnostics']['file_changes']['created'], 'path'));
        self::assertFileDoesNotExist($this->application->path('new'));
    }

    public function testRootWithoutCapabilitiesEvaluatesAsItself(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('It is about root.');
        }
        $this->application->giveTo(self::NOBODY, self::NOBODY);
        chown($this->application->write('closed', 'closed', 0600), self::NOBODY);
        $request = [
            'snippet' => 'return json_encode([
                posix_geteuid(), file_get_contents("kept"), @file_get_contents("closed"),
            ]);',
            'projectRoot' => $this->application->root,
            'timeoutMs' => 60000,
        ];

        // With its capabilities root becomes the owner, who can read all of it.
        $result = Without::evaluate([], $request);
        self::assertSame('[65534,"kept","closed"]', $result['result']['value'] ?? $result['thrown']);

        foreach ([['mounts', 'capabilities'], ['capabilities']] as $lacking) {
            $result = Without::evaluate($lacking, $request);
            self::assertSame('[0,"kept",false]', $result['result']['value'] ?? $result['thrown']);
            self::assertSame('in force', $result['diagnostics']['guards']['privileges']);
            self::assertSame('in force', $result['diagnostics']['guards']['landlock']);
        }
    }
}
