<?php

declare(strict_types=1);

namespace Shop;

use DateTimeImmutable;

/**
 * What the shop sells.
 */
final class Catalog
{
    /**
     * The root category. Children know their parent, so the graph has circles.
     */
    public function tree(): Category
    {
        $since = new DateTimeImmutable('2026-01-01T00:00:00+00:00');
        $root = new Category('Everything', $since);
        $home = $root->add(new Category('Home', $since->modify('+1 day')));
        $kitchen = $home->add(new Category('Kitchen', $since->modify('+2 days')));
        $pots = $kitchen->add(new Category('Pots', $since->modify('+3 days')));
        $kitchen->products[] = new Product('Whisk', 450, static fn (int $price): int => $price);
        $pots->products[] = new Product('Stockpot', 4900, static fn (int $price): int => intdiv($price * 90, 100));
        $root->add(new Category('Garden', $since->modify('+4 days')));

        return $root;
    }
}
