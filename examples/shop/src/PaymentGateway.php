<?php

declare(strict_types=1);

namespace Shop;

/**
 * Charges orders, on cards that never have more than a hundred.
 */
final class PaymentGateway
{
    /** What the card is good for, in cents. */
    public const LIMIT = 10_000;

    /** What a declined card answers, as in ISO 8583: insufficient funds. */
    private const INSUFFICIENT_FUNDS = 51;

    /**
     * @return string the reference of the payment
     * @throws PaymentFailed if the order is not open, or the card is declined
     */
    public function charge(Order $order): string
    {
        if ($order->status !== OrderStatus::Open) {
            throw new PaymentFailed(sprintf('Order %d is %s.', $order->id, $order->status->value));
        }
        try {
            return $this->authorise($order);
        } catch (CardDeclined $reason) {
            throw new PaymentFailed(sprintf('Order %d could not be charged.', $order->id), 402, $reason);
        }
    }

    private function authorise(Order $order): string
    {
        if ($order->total > self::LIMIT) {
            throw new CardDeclined('Insufficient funds.', self::INSUFFICIENT_FUNDS);
        }

        return sprintf('pay-%06d', $order->id);
    }
}
