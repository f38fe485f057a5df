<?php

/**
 * Makes and fills the tables in the database that DATABASE_URL names:
 *
 *     DATABASE_URL=mysql://shop:password@127.0.0.1:3306/shop php fill-database.php
 */

declare(strict_types=1);

use Shop\Database;

require __DIR__ . '/vendor/autoload.php';

$url = getenv('DATABASE_URL') ?: exit("DATABASE_URL names no database.\n");
Database::fill(Database::open($url));
