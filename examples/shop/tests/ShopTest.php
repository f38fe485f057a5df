<?php

declare(strict_types=1);

namespace Shop\Tests;

use Altair\Eval\Testing\EvaluatesSnippets;
use PHPUnit\Framework\TestCase;
use Shop\PaymentFailed;

final class ShopTest extends TestCase
{
    use EvaluatesSnippets;

    public function testAnUnknownAddressIsNobodys(): void
    {
        $this->assertSnippetReturns(null, 'container(Shop\UserRepository::class)->findByEmail("nobody@shop.example")');
    }

    public function testAnExpensiveOrderIsDeclined(): void
    {
        $this->assertSnippetThrows(
            PaymentFailed::class,
            'container(Shop\PaymentGateway::class)->charge(container(Shop\OrderRepository::class)->find(9))',
            'could not be charged',
        );
    }

    public function testNoMailLeavesATest(): void
    {
        $this->assertSnippetIsBlocked('container(Shop\Mailer::class)->greet()');
    }

    public function testTheReportIsSlow(): void
    {
        $this->assertSnippetTimesOut('container(Shop\ReportService::class)->slow()', timeoutMs: 500);
    }
}
