<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Mcp\Contracts\McpToolInterface;

/*
 * PHP's own MCP SDK discovers the tool where there is no Univeros framework, so the tool must not need its interface.
 */
if (interface_exists(McpToolInterface::class)) {
    /**
     * A tool of the Univeros framework.
     *
     * @internal
     */
    interface ToolContract extends McpToolInterface
    {
    }
} else {
    /**
     * What a tool of the Univeros framework is, where there is none.
     *
     * @internal
     */
    interface ToolContract
    {
        /**
         * @param array<string, mixed> $input
         * @return array<string, mixed>
         */
        public function call(array $input): array;
    }
}
