<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Escape\Daemon;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * The pool is told who declares a service: what counts is the environment that its host was started with, and not its
 * own. It looks who listens as the host would.
 */
final class ProjectsServicesTest extends PoolTestCase
{
    private ?Daemon $daemon = null;

    protected function setUp(): void
    {
        parent::setUp();
        $place = '/var/tmp/altair-daemon-' . bin2hex(random_bytes(4));
        $this->daemon = new Daemon(posix_geteuid(), $place, ['tcp://127.0.0.1:0']);
        $this->pool->start();
    }

    protected function endHosts(): void
    {
        $this->daemon = null;
    }

    /**
     * What runs of a host have got from the daemon, the last of them warm, by the pool.
     *
     * @param array<string, string> $environment that the host is started with
     * @return array{list<string>, string} what the daemon was told, what the host says
     */
    private function tell(array $environment = [], string $before = ''): array
    {
        $snippet = sprintf(
            '$to = @stream_socket_client("tcp://%s", $c, $w, 5); $to && fwrite($to, "make it\n") && fgets($to);',
            $this->daemon->services[0],
        );
        $code = $before . 'do { ' . $this->asking($snippet . ' return 1;') . ' $all[] = $told; }'
            . ' while (count($all) < 6 && end($all)[1] !== "warm"); echo json_encode(end($all));';
        $host = [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', $code];
        $said = Command::of($host, environment: $environment + $this->environment());
        self::assertSame([1, 'warm', true, ''], json_decode($said->output, true), $said->output . $said->errors);

        return [$this->daemon->told(), $said->output];
    }

    public function testTheUserHasTheWordAndNoProjectNorWhatItHasSet(): void
    {
        [$address] = $this->daemon->services;
        $extra = ['altair-eval' => ['services' => [$address]]];
        $this->shop->write('composer.json', json_encode(['extra' => $extra], JSON_THROW_ON_ERROR));
        self::assertSame([], $this->tell()[0], 'composer.json');

        $this->shop->write('composer.json', '{}');
        $url = "mysql://shop@$address/shop";
        $this->shop->write('.env', "DATABASE_URL=$url\n");
        self::assertSame([], $this->tell()[0], '.env');
        self::assertSame([], $this->tell(before: "putenv('DATABASE_URL=$url'); ")[0], 'putenv()');
        self::assertSame([$address], $this->tell(['DATABASE_URL' => $url])[0]);
        self::assertSame([], $this->tell(before: "putenv('DATABASE_URL=$url'); ")[0], 'a template of the user\'s word');
    }
}
