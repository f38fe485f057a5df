<?php

declare(strict_types=1);

use Shop\Container;
use Shop\Database;
use Shop\Mailer;

// Every other class is wired by its constructor's types; nothing is opened before it is asked for.
return new Container([
    PDO::class => static fn (): PDO => Database::open(getenv('DATABASE_URL') ?: null),
    Mailer::class => static fn (): Mailer => new Mailer(getenv('SHOP_MAIL') ?: Mailer::DEFAULT_SERVER),
]);
