<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Mcp\Contracts\McpToolInterface;

/*
 * PHP's own MCP SDK also uses the tool without the Univeros framework, so the tool must not need its interface.
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
     * Replaces the interface of the Univeros framework if that is missing.
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
