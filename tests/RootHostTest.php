<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\PeerListener;
use Altair\Eval\Tests\Support\Racer;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;

/**
 * A host with more rights than the project's owner, who changes the project while the host looks at it. Whatever stands
 * under a name when the host comes to it, nothing of the host's own is changed, shown or given away.
 */
final class RootHostTest extends EvaluationTestCase
{
    /** Who owns the project, and the directory that it is in; the user of no other test's host. */
    private const OWNER = 54322;

    /** Whom the host runs as where it is not root. */
    private const HOST = 12346;

    /** How often a race is run: several times as often as it took to win it. */
    private const ROUNDS = 100;

    /** Seconds that a host may wait for starts that are stopped: one of a template, one of a run. */
    private const HELD_UP = 15;

    /** Templates that are started. */
    private const STARTS = 40;

    /** Directories that a project lies in. */
    private const DEPTH = 300;

    /** What must not be seen. */
    private const SECRET = 'the secret of the host';

    /** The project's owner's directory. */
    private TemporaryApplication $home;

    /** What the project's owner cannot enter; below it everything may be read. */
    private TemporaryApplication $closed;

    private ?Racer $racer = null;

    private ?string $inMemory = null;

    /** How often a run was asked for, and how often that showed something: there was one, or the owner was faster. */
    private int $attempts = 0;
    private int $telling = 0;

    protected function setUp(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can be a host of another user\'s project.');
        }
        parent::setUp();
        $this->home = new TemporaryApplication([
            'app/vendor/autoload.php' => '<?php',
            'app/marker' => 'the owner\'s',
        ]);
        $this->closed = new TemporaryApplication(['below/key' => self::SECRET]);
        chmod($this->closed->root, 0700);
    }

    protected function assertPostConditions(): void
    {
        if ($this->racer !== null) {
            self::assertTrue($this->racer->isAtWork(), 'Nothing was raced: the racer has ended.');
            $this->racer->stop();
        }
        // One may be refused for what it found; all of them show nothing.
        self::assertGreaterThanOrEqual(intdiv($this->attempts, 10), $this->telling);
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->racer?->stop();
        if ($this->inMemory !== null) {
            exec('rm -rf ' . escapeshellarg($this->inMemory));
        }
        parent::tearDown();
    }

    /** A directory of the owner's in which names change places faster than on a disk. */
    private function inMemory(): string
    {
        $place = is_dir('/dev/shm') ? '/dev/shm' : $this->home->root;
        mkdir($this->inMemory = "$place/altair-owners-" . bin2hex(random_bytes(6)));
        chown($this->inMemory, self::OWNER);

        return $this->inMemory;
    }

    private function app(string $path = ''): string
    {
        return rtrim($this->home->path("app/$path"), '/');
    }

    /** Lets the project's owner go to work. */
    private function race(string $code, string $directory = ''): void
    {
        $directory = str_starts_with($directory, '/') ? $directory : $this->home->path($directory);
        $this->racer = new Racer(self::OWNER, $directory, $code);
    }

    /** What a run in the owner's project came to; null where it was refused. */
    private function attempt(string $snippet, mixed ...$options): ?EvalResult
    {
        $options += ['projectRoot' => $this->app(), 'timeoutMs' => self::LONG_MS];
        $this->attempts++;
        try {
            $result = (new Evaluator(warm: false))->evaluate(new EvalRequest($snippet, ...$options));
            $this->telling++;

            return $result;
        } catch (EvalException) {
            return null;
        }
    }

    /** The plain value of such a run; null where there is none. */
    private function seen(string $snippet, mixed ...$options): mixed
    {
        $result = $this->attempt($snippet, ...$options);

        return ($result?->result ?? null) === null ? null : self::plain($result->result);
    }

    /**
     * @return iterable<string, array{string, int}>
     */
    public static function kinds(): iterable
    {
        yield 'a file' => ['below/key', 0600];
        yield 'a directory' => ['below', 0700];
    }

    /**
     * The directory of the audit log is made before a run whose writes are real. It was given to the project's owner by
     * its name, and so was what that owner had put there meanwhile.
     *
     * @dataProvider kinds
     */
    public function testALinkInPlaceOfTheNewDirectoryOfTheAuditLogGivesNothingAway(string $target, int $mode): void
    {
        $target = $this->closed->path($target);
        chmod($target, $mode);
        // The longer the way to the project, the more time there is between one look and the next.
        $project = str_repeat('d/', self::DEPTH) . 'app';
        $this->home->write("$project/vendor/autoload.php", '<?php');
        [$made, $link] = [$this->home->path("$project/.altair"), $this->home->path("$project/link")];
        symlink($target, $link);
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->race(Racer::once('.altair', 'link'), $project);
        for ($round = 1; $round <= 20; $round++) {
            $this->attempt('return 1;', projectRoot: $this->home->path($project), allowWrites: true);
            clearstatcache();
            $state = [fileowner($target), decoct(fileperms($target) & 07777)];
            self::assertSame([0, decoct($mode)], $state, "in round $round");
            $isSwapped = is_link($made);
            $this->telling += (int) $isSwapped;
            @rmdir($isSwapped ? $link : $made);
            $isSwapped && rename($made, $link);
        }
    }

    /**
     * The log of unsafe runs makes its directory, opens it, and gives it to the project's owner: before, whichever
     * directory it had opened.
     */
    public function testADirectoryInPlaceOfTheNewOneOfTheAuditLogIsNotGivenAway(): void
    {
        $project = $this->inMemory();
        [$made, $root] = ["$project/.altair", "$project/root"];
        mkdir($root, 0700);
        $inode = fileinode($root);
        $this->race(Racer::once('.altair', 'root'), $project);
        // What is no PHP: the log is all that is looked at, many times a second.
        $request = new EvalRequest('return 1;', $project, unsafe: true);
        $evaluator = new Evaluator(phpBinary: '/bin/true');
        for ($round = 1; $round <= 1500; $round++) {
            try {
                $evaluator->evaluate($request);
            } catch (EvalException) {
            }
            $isSwapped = $this->isSwapped($root, $inode, $made);
            $found = $isSwapped ? $made : $root;
            self::assertSame([$inode, 0], [fileinode($found), fileowner($found)], "in round $round");
            foreach ([$root, $made] as $directory) {
                @unlink("$directory/events.jsonl");
            }
            @rmdir($isSwapped ? $root : $made);
            $isSwapped && rename($found, $root);
        }
    }

    /** Whether the racer has put another directory in this one's place, which it does where there is another. */
    private function isSwapped(string $directory, int $inode, string $other): bool
    {
        $until = microtime(true) + 5;
        do {
            clearstatcache();
            $isSwapped = fileinode($directory) !== $inode;
        } while (!$isSwapped && file_exists($other) && microtime(true) < $until);

        return $isSwapped;
    }

    /** A package of Composer's in the owner's directory, and a link in the same place that leads elsewhere. */
    private function pathPackage(string $target): void
    {
        $this->home->write('.git/HEAD', '');
        $this->home->write('package/composer.json', '{}');
        symlink($target, $this->home->path('other'));
        $this->home->write('app/vendor/composer/installed.json', json_encode(['packages' => [
            ['dist' => ['type' => 'path'], 'install-path' => $this->home->path('package')],
        ]], JSON_THROW_ON_ERROR));
        $this->home->giveTo(self::OWNER, self::OWNER);
    }

    /**
     * What a package of Composer's is was looked at by name, more than once, and then mounted by name.
     */
    public function testAPackageInWhosePlaceALinkComesShowsNothingOfTheHosts(): void
    {
        $this->pathPackage($this->closed->path('below'));
        $this->race(Racer::to('package', 'other'));
        $read = $this->reading($this->home->path('package/key'), $this->closed->path('below/key'));
        for ($round = 1; $round <= self::ROUNDS; $round++) {
            self::assertNotContains(self::SECRET, $this->seen($read) ?? [], "in round $round");
        }
    }

    /** Code that returns what is in files, each under its name. */
    private function reading(string ...$files): string
    {
        return 'return array_map(fn ($file) => @file_get_contents($file), ' . var_export($files, true) . ');';
    }

    /**
     * The same for a host that is another ordinary user.
     */
    public function testAnOrdinaryUsersHostShowsNothingOfItsOwnInPlaceOfAPackage(): void
    {
        $this->pathPackage($this->closed->path('below'));
        $this->closed->giveTo(self::HOST, self::HOST);
        $this->race(Racer::to('package', 'other'));
        $read = $this->reading($this->home->path('package/key'), $this->closed->path('below/key'));
        [, $output, $errors] = Without::php(['user=' . self::HOST], sprintf(
            '$request = new Altair\Eval\EvalRequest(%s, %s, timeoutMs: 60000);'
            . ' for ($round = 1; $round <= %d; $round++) { try {'
            . ' echo json_encode((new Altair\Eval\Evaluator(warm: false))->evaluate($request)->result), "\n";'
            . ' } catch (Altair\Eval\Exception\EvalException $e) { echo $e->getMessage(), "\n"; } }',
            var_export($read, true),
            var_export($this->app(), true),
            self::ROUNDS,
        ));

        self::assertSame(self::ROUNDS, substr_count($output, "\n"), $output . $errors);
        $rounds = array_keys(preg_grep('/' . self::SECRET . '/', explode("\n", $output)));
        self::assertSame([], $rounds, 'the rounds in which it was read');
    }

    /** A directory of the owner's that the project lies in, and a link beside it that leads to a project of root's. */
    private function projectOfRoots(): void
    {
        $this->home->write('user/app/vendor/autoload.php', '<?php');
        $this->home->write('user/app/marker', 'the owner\'s');
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->closed->write('open/app/vendor/autoload.php', '<?php');
        $this->closed->write('open/app/marker', 'root\'s');
        chmod($this->closed->root, 0755);
        symlink($this->closed->path('open'), $this->home->path('roots'));
    }

    /**
     * Whom the run is to be was asked of the project by its name, and the project was mounted by its name afterwards.
     */
    public function testTheOwnersCodeIsNeverRunAsRoot(): void
    {
        $this->projectOfRoots();
        $this->race(Racer::to('user', 'roots'));
        $ask = 'return [posix_getuid(), @file_get_contents("marker")];';
        for ($round = 1; $round <= self::ROUNDS; $round++) {
            $seen = $this->seen($ask, projectRoot: $this->home->path('user/app'));
            self::assertNotSame([0, 'the owner\'s'], $seen, "in round $round");
        }
    }

    /**
     * A service that asks the kernel who it is that connects took such a run for root.
     */
    public function testTheOwnersCodeNeverConnectsAsRoot(): void
    {
        $this->projectOfRoots();
        $listener = new PeerListener($this->closed->path('peers.sock'));
        $this->race(Racer::to('user', 'roots'));
        $connect = 'if (@file_get_contents("marker") === "the owner\'s") {'
            . " @stream_socket_client('unix://$listener->path', \$code, \$why, 5); } return 1;";
        for ($round = 1; $round <= self::ROUNDS; $round++) {
            $this->seen($connect, projectRoot: $this->home->path('user/app'), services: [$listener->path]);
            self::assertNotContains(0, $listener->users(), "in round $round");
        }
    }

    /**
     * The name by which the request knows the project was followed once more, for links to it: to wherever it led then.
     */
    public function testALinkToTheProjectThatComesToLeadElsewhereShowsNothingOfTheHosts(): void
    {
        symlink($this->app(), $this->home->path('current'));
        symlink($this->closed->path('below'), $this->home->path('other'));
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->race(Racer::to('current', 'other'));
        $read = $this->reading('marker', $this->home->path('current/key'), $this->closed->path('below/key'));
        for ($round = 1; $round <= self::ROUNDS; $round++) {
            $seen = $this->seen($read, projectRoot: $this->home->path('current')) ?? [];
            // Where it leads elsewhere from the start, that is the project.
            if (($seen[0] ?? null) === 'the owner\'s') {
                self::assertSame(['the owner\'s', false, false], $seen, "in round $round");
            }
        }
    }

    /**
     * A root host shows what the request names, and not what the project's owner has put there to be shown.
     */
    public function testALinkOfTheOwnersInAReadablePathShowsNothingOfTheHosts(): void
    {
        symlink($this->closed->path('below'), $this->home->path('shared'));
        $this->home->giveTo(self::OWNER, self::OWNER);
        $read = $this->reading($this->home->path('shared/key'), $this->closed->path('below/key'));
        $seen = $this->seen($read, readablePaths: [$this->home->path('shared')]);

        self::assertNotContains(self::SECRET, $seen ?? []);
    }

    /**
     * What a run has left in its directory for temporary files was made removable by name: what could not be unlinked
     * was no link, and was one by the time that its mode was changed. Where there is no private root, that directory is
     * on disk, and is the project's owner's.
     */
    public function testWhatARunHasLeftIsRemovedAndNothingElseIsChanged(): void
    {
        $target = $this->closed->path('below/key');
        chmod($target, 0640);
        $this->home->giveTo(self::OWNER, self::OWNER);
        $place = $this->inMemory();
        chmod($place, 01777);
        // Goes from pair to pair as they are removed.
        $this->race(sprintf(<<<'PHP'
            for ($seen = []; ; $seen = [...$seen, ...$found]) {
                while (($found = array_diff(glob("$directory/altair-*"), $seen)) === []) {
                }
                // It is root's for a moment.
                while (!@chdir(end($found)) && is_dir(end($found))) {
                    clearstatcache();
                }
                for ($pair = 1000; $pair < 1000 + %1$d; $pair++) {
                    mkdir("d$pair");
                    symlink(%2$s, "s$pair");
                }
                touch('made');
                for ($pair = 1000; $pair < 1000 + %1$d; $pair++) {
                    for ($times = 0; $times < 100000 && $swap("d$pair", "s$pair"); $times++) {
                    }
                }
            }
            PHP, 500, var_export($target, true)), $place);
        $host = <<<'PHP'
            $wait = 'for ($i = 0; $i < 100000 && !file_exists(sys_get_temp_dir() . "/made"); $i++) { usleep(100); }'
                . ' return file_exists(sys_get_temp_dir() . "/made");';
            $request = new Altair\Eval\EvalRequest($wait, %s, timeoutMs: 60000);
            for ($round = 1; $round <= 25; $round++) {
                $made = (new Altair\Eval\Evaluator(warm: false))->evaluate($request)->result['value'] ?? null;
                clearstatcache();
                echo $round, ' ', json_encode($made), ' ', decoct(fileperms(%s) & 07777), "\n";
            }
            PHP;
        [, $output, $errors] = Without::command(
            [],
            [
                PHP_BINARY, '-d', 'extension=' . Without::extension(), '-d', 'altair_eval.omit=filesystem', '-r',
                sprintf($host, var_export($this->app(), true), var_export($target, true)),
            ],
            ['TMPDIR' => $place],
        );
        self::assertTrue($this->racer->isAtWork());
        $this->racer = null;

        $expected = implode('', array_map(static fn (int $round): string => "$round true 640\n", range(1, 25)));
        self::assertSame($expected, $output, $errors);
    }

    /** A directory of the project, a link in the same place that leads elsewhere, and much that stands beside it. */
    private function projectWithADirectory(): void
    {
        foreach (range(1, 1000) as $i) {
            $this->home->write("app/x$i", '');
        }
        $this->home->write('app/dir/key', strtoupper(self::SECRET));
        symlink($this->closed->path('below'), $this->app('other'));
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->race(Racer::to('dir', 'other'), 'app');
    }

    /** Touches much that has to be compared, too, before what `$change` has changed. */
    private static function changing(string $change): string
    {
        return "$change foreach (glob('x*') as \$file) { touch(\$file, 1); } return is_dir('dir') && !is_link('dir');";
    }

    /**
     * After a run its layer is compared with the project, which was done by name: what a directory hides that the run
     * has made anew was listed, wherever that name led then.
     */
    public function testALinkInPlaceOfADirectoryThatARunHasMadeAnewTellsNoNameOfTheHosts(): void
    {
        $this->closed->write('below/' . self::SECRET, '');
        $this->projectWithADirectory();
        $snippet = self::changing('@unlink("dir/key"); @rmdir("dir"); @mkdir("dir");');
        for ($round = 1; $round <= 60; $round++) {
            $changes = json_encode($this->attempt($snippet)?->diagnostics['file_changes'] ?? []);
            self::assertStringNotContainsString(self::SECRET, $changes, "in round $round");
        }
    }

    /**
     * And a file was compared with whatever it was then: one with the right guess in it was no change.
     */
    public function testALinkInPlaceOfADirectoryWithAChangedFileTellsNoContentOfTheHosts(): void
    {
        $this->projectWithADirectory();
        $write = sprintf('if (@file_put_contents("dir/key", "%s") !== %d) { return false; }', ...[
            self::SECRET,
            strlen(self::SECRET),
        ]);
        for ($round = 1; $round <= 60; $round++) {
            $result = $this->attempt(self::changing($write));
            if (($result?->result['value'] ?? false) === true) {
                $changes = json_encode($result->diagnostics['file_changes'] ?? [], JSON_UNESCAPED_SLASHES);
                self::assertStringContainsString('dir/key', $changes, "in round $round");
            }
        }
    }

    /**
     * Until it executes PHP the process of a template had the host's memory, and was its owner's to look into: what the
     * host knew of others, and a way to become root.
     */
    public function testTheOwnerDoesNotLookIntoTheHostsMemory(): void
    {
        $found = $this->home->path('found');
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->racer = new Racer(self::OWNER, $this->home->root, sprintf(<<<'PHP'
            while (true) {
                // The last process that was made.
                $last = (int) substr(strrchr(file_get_contents('/proc/loadavg'), ' '), 1);
                foreach ([$last, $last - 1] as $pid) {
                    $isKeeper = fn (): bool => @file_get_contents("/proc/$pid/comm") === "altair-keeper\n";
                    if ($isKeeper() && ($memory = @fopen("/proc/$pid/mem", 'r')) && $isKeeper()) {
                        touch(%s);
                    }
                }
            }
            PHP, var_export($found, true)));
        for ($round = 0; $round < self::STARTS; $round++) {
            $request = new EvalRequest('return 1;', $this->home->path('app'), timeoutMs: self::LONG_MS);
            $evaluator = new Evaluator(warm: true);
            // The first call is cold.
            $evaluator->evaluate($request);
            $result = $evaluator->evaluate($request);
            self::assertSame('first', $result->diagnostics['start'], json_encode($result->toArray()));
            self::assertFileDoesNotExist($found, "in round $round");
        }
    }

    /** The links of /proc led past the directories that the owner cannot enter: to the host's own working directory. */
    public function testNoLinkOfTheKernelsLeadsPastTheOwnersRights(): void
    {
        foreach (['autoload.php' => '<?php', 'composer/installed.json' => '{"packages": []}'] as $name => $content) {
            $this->closed->write("below/$name", $content);
        }
        $vendor = '/proc/self/cwd/below';
        $this->home->write('app/composer.json', json_encode(['config' => ['vendor-dir' => $vendor]]));
        $this->home->giveTo(self::OWNER, self::OWNER);
        $before = getcwd();
        chdir($this->closed->root);
        try {
            self::assertFalse($this->seen("return @file_get_contents('$vendor/key');"));
        } finally {
            chdir($before);
        }
    }

    /** A start that its owner had stopped was waited for without end. */
    public function testTheOwnerDoesNotHoldTheHostUp(): void
    {
        $this->home->giveTo(self::OWNER, self::OWNER);
        $this->racer = new Racer(self::OWNER, $this->home->root, <<<'PHP'
            while (true) {
                $last = (int) substr(strrchr(file_get_contents('/proc/loadavg'), ' '), 1);
                foreach ([$last, $last - 1] as $pid) {
                    if (@file_get_contents("/proc/$pid/comm") === "altair-keeper\n") {
                        posix_kill($pid, SIGSTOP);
                    }
                }
            }
            PHP);
        $began = hrtime(true);
        try {
            $request = new EvalRequest('return 1;', $this->home->path('app'), timeoutMs: 2000);
            (new Evaluator(warm: true))->evaluate($request);
        } catch (EvalException) {
            // It could not be started.
        }
        self::assertLessThan(self::HELD_UP, (hrtime(true) - $began) / 1e9);
    }
}
