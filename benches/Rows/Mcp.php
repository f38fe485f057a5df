<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\McpClient;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Way;

/**
 * A call over the Model Context Protocol, and the evaluation that is in it.
 */
final class Mcp
{
    public static function measure(Setting $setting, Table $table): void
    {
        $altair = getenv('ALTAIR_NATIVE') ?: $setting->repository . '/target/release/altair';
        $client = new McpClient(Setting::SNIPPET, $altair, $setting->shop);
        $host = new Host(Setting::SNIPPET, $setting->shop, Way::Warm);
        $compared = Comparison::ofBlocks($client->times(...), $host->times(...), intdiv($setting->rounds, 2), 20);
        $table->difference('tools/call over stdio, client included / warm evaluate()', $compared, 3.0);
    }
}
