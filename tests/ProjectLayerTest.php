<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;

/**
 * Writes of a confined run to the project and its temporary directory, wherever the project lies.
 */
final class ProjectLayerTest extends EvaluationTestCase
{
    /** Makes, changes, removes and renames; then looks at what it sees itself. */
    private const WRITES = <<<'PHP'
        mkdir('made');
        file_put_contents('made/new.txt', 'new');
        file_put_contents('kept.txt', 'more', FILE_APPEND);
        unlink('data/old.txt');
        rename('data/moved.txt', 'here.txt');
        touch('data/touched.txt');
        return [file_get_contents('kept.txt'), scandir('data'), file_get_contents(getcwd() . '/made/new.txt')];
        PHP;

    private const FILES = [
        'vendor/autoload.php' => '<?php',
        'kept.txt' => 'kept',
        'data/old.txt' => 'old',
        'data/moved.txt' => 'moved',
        'data/touched.txt' => 'touched',
    ];

    private const SUM = 'return (new PDO("sqlite:data/shop.sqlite"))->query("SELECT sum(x) FROM t")->fetchColumn();';

    private const CHANGES = [
        'created' => [
            ['path' => 'here.txt', 'size' => 5],
            ['path' => 'made/', 'size' => 0, 'type' => 'directory'],
            ['path' => 'made/new.txt', 'size' => 3],
        ],
        'modified' => [['path' => 'kept.txt', 'size' => 8]],
        'deleted' => [['path' => 'data/moved.txt', 'size' => 5], ['path' => 'data/old.txt', 'size' => 3]],
    ];

    public function testWritesSucceedAreToldAndAreGone(): void
    {
        $this->assertWritesAreThrownAway($this->application(self::FILES)->root);
    }

    public function testARootThatIsASymbolicLinkIsTheSameUnderBothNames(): void
    {
        $application = $this->application(self::FILES);
        $elsewhere = new TemporaryApplication();
        $link = $elsewhere->path('current');
        symlink($application->root, $link);
        $application->write('vendor/autoload.php', "<?php require '$link/src/helper.php';");
        $application->write('src/helper.php', '<?php function helper() { return __FILE__; }');

        $result = $this->assertWritesAreThrownAway($link);
        self::assertTrue($result->ok());
        self::assertSame(
            [$application->path('src/helper.php'), $application->root],
            $this->value("return [helper(), realpath('$link')];", projectRoot: $link),
        );
    }

    public function testLinksInsideTheProjectAreFollowedAndThoseOutOfItLeadNowhere(): void
    {
        $outside = new TemporaryApplication(['secret.txt' => 'secret']);
        $application = $this->application(self::FILES);
        symlink('kept.txt', $application->path('inside'));
        symlink($outside->path('secret.txt'), $application->path('outside'));
        symlink($outside->root, $application->path('directory'));

        self::assertSame(
            ['kept', false, false, false, false, 'written', 'written'],
            $this->value('return [
                file_get_contents("inside"), @file_get_contents("outside"), @file_get_contents("directory/secret.txt"),
                @file_put_contents("outside", "x"), @file_put_contents("directory/new", "x"),
                file_put_contents("inside", "written") ? file_get_contents("inside") : null,
                file_get_contents("kept.txt"),
            ];'),
        );
        self::assertSame('secret', file_get_contents($outside->path('secret.txt')));
        self::assertSame(['secret.txt', 'vendor', 'vendor/autoload.php'], $outside->tree());
        self::assertSame('kept', file_get_contents($application->path('kept.txt')));
    }

    public function testAProjectOnAnotherReadOnlyFileSystem(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can mount one.');
        }
        $application = $this->application(self::FILES);
        $quoted = escapeshellarg($application->path('mounted'));
        $evaluate = 'echo json_encode((new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest('
            . var_export(self::WRITES, true) . ', ' . var_export($application->path('mounted'), true)
            . '))->toArray(true));';
        mkdir($application->path('mounted'));
        foreach (['rw', 'ro'] as $mode) {
            [, $output, $errors] = Without::command([], ['unshare', '-m', 'sh', '-ec',
                "mount -t tmpfs x $quoted; cp -a " . escapeshellarg($application->root) . "/[dkv]* $quoted; "
                . "mount -o remount,$mode $quoted; exec " . escapeshellarg(PHP_BINARY) . ' -d extension='
                . escapeshellarg(Without::extension()) . ' -r ' . escapeshellarg($evaluate)]);
            $result = json_decode($output, true);
            self::assertSame('in force', $result['diagnostics']['guards']['filesystem'] ?? '', $output . $errors);
            self::assertSame(self::CHANGES, $result['diagnostics']['file_changes']);
        }
    }

    public function testATemporaryDirectoryIsPrivateAndGoneAfterwards(): void
    {
        $theirs = tempnam(sys_get_temp_dir(), 'altair-theirs-');
        file_put_contents($theirs, 'theirs');
        [$dir, $seen, $read, $file, $free] = $this->value("
            \$file = tempnam(sys_get_temp_dir(), 'mine');
            file_put_contents(\$file, 'mine');
            \$handle = tmpfile();
            fwrite(\$handle, 'x');
            return [
                sys_get_temp_dir(), scandir(sys_get_temp_dir()), @file_get_contents('$theirs'), \$file,
                disk_total_space('/tmp'),
            ];
        ");

        self::assertSame('/tmp', $dir);
        self::assertNotContains(basename($theirs), $seen);
        self::assertFalse($read);
        self::assertFileDoesNotExist($file);
        self::assertSame(64 << 20, (int) $free);
        self::assertSame([], $this->temporaryFiles());
        unlink($theirs);
    }

    public function testTheFirstHundredChangesAreNamedAndTheRestCounted(): void
    {
        $changes = $this->evaluate('for ($i = 100; $i < 250; $i++) { touch("file$i"); }')->diagnostics['file_changes'];

        self::assertCount(100, $changes['created']);
        self::assertSame(['path' => 'file100', 'size' => 0], $changes['created'][0]);
        self::assertSame(50, $changes['more']);
    }

    public function testARunThatChangesNothingSaysNothing(): void
    {
        $database = $this->application(self::FILES)->path('data/shop.sqlite');
        (new \PDO("sqlite:$database"))->exec('CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)');
        $before = filemtime($database);

        $result = $this->evaluate(self::SUM);
        self::assertSame(['type' => 'int', 'value' => 3], $result->result);
        self::assertArrayNotHasKey('file_changes', $result->diagnostics);

        $insert = '$db = new SQLite3("data/shop.sqlite"); $db->exec("INSERT INTO t VALUES (3)");
            return $db->querySingle("SELECT sum(x) FROM t");';
        $result = $this->evaluate($insert);
        self::assertSame(['type' => 'int', 'value' => 6], $result->result);
        self::assertSame('data/shop.sqlite', $result->diagnostics['file_changes']['modified'][0]['path']);
        self::assertSame($before, filemtime($database));
        self::assertSame(3, $this->value(self::SUM));
    }

    public function testWithWritesTheyAreRealAndTheAuditLogIsNot(): void
    {
        $application = $this->application(self::FILES);
        $snippet = 'file_put_contents("new.txt", "new");
            return [@file_put_contents(".altair/events.jsonl", "x"), @rename(".altair", "moved"), @rmdir(".altair"),
                @chmod(".altair", 0777), @file_put_contents(".altair/new", "x")];';
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $application->root, allowWrites: true));

        self::assertSame([false, false, false, false, false], self::plain($result->result));
        self::assertSame('new', file_get_contents($application->path('new.txt')));
        self::assertArrayNotHasKey('file_changes', $result->diagnostics);
        self::assertSame([], array_values(preg_grep('#^\.altair/#', $application->tree())));
    }

    public function testItsDirectoryBelongsToTheOwnerOfTheProject(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root runs as another user.');
        $application = $this->application(self::FILES);
        $application->giveTo(65534, 65534);
        (new Evaluator())->evaluate(new EvalRequest('1', $application->root, allowWrites: true));

        $made = stat($application->path('.altair')) ?: self::fail('It was not made.');
        self::assertSame([65534, 65534, '40755'], [$made['uid'], $made['gid'], decoct($made['mode'])]);
    }

    public function testAnAuditLogThatIsALinkIsNoWayToWriteElsewhere(): void
    {
        $target = new TemporaryApplication();
        $application = $this->application(self::FILES);
        symlink($target->root, $application->path('.altair'));
        $request = fn (bool $writes): EvalRequest => new EvalRequest(
            'return @file_put_contents(".altair/planted", "x");',
            $application->root,
            allowWrites: $writes,
        );

        self::assertFalse(self::plain((new Evaluator())->evaluate($request(false))->result));
        try {
            (new Evaluator())->evaluate($request(true));
            self::fail('It has run.');
        } catch (\Altair\Eval\Exception\LaunchException $exception) {
            self::assertStringContainsString('.altair cannot be protected from writes', $exception->getMessage());
        }
        self::assertSame(['vendor', 'vendor/autoload.php'], $target->tree());
    }

    public function testAProjectThatIsTheWholeDiskIsRefused(): void
    {
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('a confined run can read its whole project');

        (new Evaluator())->evaluate(new EvalRequest('return 1;', '/'));
    }

    private function assertWritesAreThrownAway(string $root): EvalResult
    {
        $before = $this->application()->tree();
        $result = (new Evaluator())->evaluate(new EvalRequest(self::WRITES, $root, self::LONG_MS));
        self::assertSame(
            ['keptmore', ['.', '..', 'touched.txt'], 'new'],
            self::plain($result->result ?? ['type' => 'array', 'value' => []]),
            var_export($result->toArray(), true),
        );
        self::assertSame(self::CHANGES, $result->diagnostics['file_changes']);
        self::assertSame($before, $this->application()->tree());
        self::assertSame('kept', file_get_contents($this->application()->path('kept.txt')));

        return $result;
    }
}
