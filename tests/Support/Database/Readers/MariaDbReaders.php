<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

/**
 * What applications ask MySQL and MariaDB, see Readers. A statement with values is a list that begins with it.
 */
final class MariaDbReaders
{
    /** @var array<string, list<string|list<int|string|null>>> each for one connection */
    public const GROUPS = [
        'plain' => [
            'SELECT 1', 'select * from users', 'SELECT * FROM `users` WHERE `users`.`id` = 1 LIMIT 1',
            ['SELECT * FROM users WHERE email = ? AND id > ?', 'ada@shop.example', 0],
            ['SELECT * FROM users WHERE id IN (?, ?, ?) ORDER BY name DESC LIMIT ? OFFSET ?', 1, 2, 3, 10, 0],
            ["SELECT name FROM users WHERE name LIKE ? ESCAPE '!'", 'A%'],
            'SELECT COUNT(*) AS aggregate FROM users',
            'SELECT EXISTS(SELECT * FROM users WHERE id = 1) AS `exists`',
            '(SELECT 1)', '((SELECT 1))', 'SELECT 1;', "\n\t  SELECT\n 1 \n;\n",
            'SELECT DISTINCT status FROM posts ORDER BY 1',
            'SELECT u.*, p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id ORDER BY u.id, p.id',
            'SELECT * FROM users NATURAL JOIN (SELECT 1 AS id) AS one',
            'SELECT * FROM users CROSS JOIN tags ORDER BY users.id, tags.id',
            'SELECT * FROM users u RIGHT OUTER JOIN orders o USING (id) ORDER BY o.id',
            'SELECT u.name, (SELECT COUNT(*) FROM posts p WHERE p.user_id = u.id) AS posts FROM users u ORDER BY 1',
            'SELECT * FROM posts WHERE user_id = ANY (SELECT id FROM users) AND views >= ALL (SELECT 0) ORDER BY id',
            "SELECT * FROM orders WHERE (user_id, status) IN ((1, 'paid'), (2, 'void')) ORDER BY id",
            "SELECT CASE WHEN views > 10 THEN 'many' WHEN views THEN 'some' ELSE 'none' END FROM posts ORDER BY id",
            'SELECT IF(1, 2, 3), IFNULL(NULL, 1), NULLIF(1, 1), COALESCE(NULL, NULL, 4), LEAST(1, 2), GREATEST(1, 2)',
            'SELECT 1 UNION SELECT 2 UNION ALL SELECT 2 ORDER BY 1 DESC LIMIT 2',
            '(SELECT id FROM users ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM posts ORDER BY id DESC LIMIT 1)',
            'SELECT 1 EXCEPT SELECT 2', 'SELECT 1 INTERSECT SELECT 1', "VALUES (1, 'a'), (2, 'b')",
            'SELECT * FROM paid_orders ORDER BY id', 'SELECT with_tax(10), count_posts(1)',
            'SELECT SQL_NO_CACHE HIGH_PRIORITY STRAIGHT_JOIN id FROM users ORDER BY id',
            "SELECT * FROM posts USE INDEX (posts_status) IGNORE INDEX FOR ORDER BY (PRIMARY) WHERE status = 'draft'",
            'SELECT * FROM posts FORCE INDEX FOR JOIN (PRIMARY) WHERE id = 1',
            'SELECT shop.users.name FROM shop.users WHERE shop.users.id = 1',
            'SELECT seq FROM seq_1_to_5', 'SELECT id INTO @found FROM users WHERE id = 2',
            'SELECT @found, @found := @found + 1, @found',
            'SELECT id, name FROM users WHERE id = 1 INTO @found, @name',
            'SET @rank = 0',
            'SELECT @rank := @rank + 1 AS position, name FROM users ORDER BY name',
            'SELECT * FROM users PROCEDURE ANALYSE(10, 2000)',
            'SELECT id FROM users ORDER BY id OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY',
            'SELECT id FROM users LIMIT 0', 'SELECT * FROM users LOCK IN SHARE MODE', 'SELECT 1 FROM DUAL WHERE 1 = 0',
            "SELECT '2024-01-31' + INTERVAL 1 MONTH, DATE_SUB('2024-01-01', INTERVAL '1:30' HOUR_MINUTE)",
            "SELECT DATE_FORMAT(created_at, '%Y-%m') AS month, SUM(total) FROM orders GROUP BY month WITH ROLLUP",
            "SELECT EXTRACT(YEAR_MONTH FROM created_at), YEAR(created_at), TIMESTAMPDIFF(DAY, created_at, '2024-03-01')"
                . ' FROM orders ORDER BY id',
            "SELECT CAST(1.5 AS SIGNED), CONVERT('1', UNSIGNED INTEGER), CONVERT('a' USING latin1), BINARY 'a' = 'A'",
            'SELECT 7 DIV 2, 7 MOD 2, 7 % 2, 1 << 3, 6 & 3, 6 | 3, 6 ^ 3, ~0, 5 -- -1',
            'SELECT 1 <=> NULL, NULL IS NULL, 1 IS NOT UNKNOWN, 2 BETWEEN 1 AND 3, NOT 1, ! 0, 1 XOR 1, 1 && 0 || 1',
            "SELECT 'a' REGEXP '^[a-z]\$', 'a' RLIKE 'b', 'abc' NOT LIKE '%d', 'a' SOUNDS LIKE 'a'",
            "SELECT REPLACE(name, 'a', 'b'), INSERT(name, 1, 1, 'x'), TRUNCATE(1.999, 1), REPEAT('a', 3) FROM users",
            "SELECT USER(), CURRENT_USER(), SESSION_USER(), DATABASE(), SCHEMA(), VERSION(), CHARSET('a')",
            "SELECT INET_ATON('10.0.0.1'), HEX('a'), MD5('a'), SHA2('a', 256), TO_BASE64('a'), CRC32('a')",
            'SELECT ST_AsText(at), ST_Distance(at, POINT(0, 0)) < 3 FROM places ORDER BY id',
            "SELECT id FROM places WHERE MBRContains(ST_GeomFromText('POLYGON((0 0,5 0,5 5,0 5,0 0))'), at)",
            'SELECT LASTVAL(numbers)',
        ],
        'aggregates, windows and common table expressions' => [
            'SELECT user_id, COUNT(*), SUM(total), AVG(total), MIN(total), MAX(total) FROM orders GROUP BY user_id'
                . ' HAVING SUM(total) > 1 ORDER BY user_id',
            "SELECT user_id, GROUP_CONCAT(DISTINCT status ORDER BY status DESC SEPARATOR '; ') FROM orders GROUP BY"
                . ' user_id ORDER BY user_id',
            'SELECT COUNT(DISTINCT user_id, status), BIT_OR(id), STDDEV(total), VARIANCE(total) FROM orders',
            "SELECT status, SUM(status = 'paid') AS paid FROM orders GROUP BY status ORDER BY status",
            'SELECT id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY total DESC) AS n FROM orders ORDER BY id',
            'SELECT id, SUM(total) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM orders',
            'SELECT id, LAG(total, 1) OVER w, LEAD(total) OVER w, FIRST_VALUE(id) OVER w, NTILE(2) OVER w FROM orders'
                . ' WINDOW w AS (ORDER BY id)',
            'SELECT id, RANK() OVER (ORDER BY status), DENSE_RANK() OVER (ORDER BY status), PERCENT_RANK() OVER (ORDER'
                . ' BY status), CUME_DIST() OVER (ORDER BY status) FROM orders ORDER BY id',
            'SELECT DISTINCT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY total) OVER (PARTITION BY currency) FROM'
                . ' orders',
            "WITH paid AS (SELECT * FROM orders WHERE status = 'paid') SELECT COUNT(*) FROM paid",
            'WITH a AS (SELECT 1 AS n), b (m) AS (SELECT n + 1 FROM a) SELECT * FROM a, b',
            'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10) SELECT SUM(n)'
                . ' FROM numbers',
            'WITH RECURSIVE tree AS (SELECT id, name, 0 AS depth, CAST(name AS CHAR(500)) AS path FROM categories WHERE'
                . " parent_id IS NULL UNION ALL SELECT c.id, c.name, depth + 1, CONCAT(path, ' > ', c.name) FROM"
                . ' categories c JOIN tree ON c.parent_id = tree.id) SELECT * FROM tree ORDER BY path',
            [
                'WITH latest AS (SELECT user_id, MAX(created_at) AS at FROM orders WHERE status <> ? GROUP BY user_id)'
                    . ' SELECT o.id FROM orders o JOIN latest l ON l.user_id = o.user_id AND l.at = o.created_at ORDER'
                    . ' BY o.id',
                'void',
            ],
            'WITH deleted AS (SELECT id FROM posts WHERE deleted_at IS NULL), updated AS (SELECT 1) SELECT * FROM'
                . ' deleted ORDER BY id',
        ],
        'JSON' => [
            'SELECT JSON_EXTRACT(data, \'$.lang\'), JSON_UNQUOTE(JSON_EXTRACT(data, \'$."lang"\')) FROM posts ORDER BY'
                . ' id',
            "SELECT id FROM posts WHERE JSON_VALUE(data, '\$.meta.stars') > 3",
            "SELECT id FROM posts WHERE JSON_CONTAINS(data, '\"sql\"', '\$.tags') ORDER BY id",
            ['SELECT id FROM posts WHERE JSON_CONTAINS(`data`, ?, \'$."tags"\') ORDER BY id', '"php"'],
            "SELECT JSON_LENGTH(data, '\$.tags'), JSON_KEYS(data), JSON_TYPE(data), JSON_VALID(data) FROM posts ORDER"
                . ' BY id',
            "SELECT JSON_SEARCH(data, 'one', 'sql'), JSON_EXISTS(data, '\$.meta') FROM posts ORDER BY id",
            "SELECT JSON_OBJECT('id', id, 'a', JSON_ARRAY(1, 'b', NULL)) FROM users ORDER BY id",
            'SELECT JSON_ARRAYAGG(name ORDER BY id), JSON_OBJECTAGG(id, name) FROM users',
            "SELECT t.* FROM posts p, JSON_TABLE(p.data, '\$.tags[*]' COLUMNS (n FOR ORDINALITY, tag VARCHAR(20) PATH"
                . " '\$')) AS t WHERE p.id = 1",
            "SELECT JSON_SET(data, '\$.x', 1), JSON_REMOVE(data, '\$.lang'), JSON_REPLACE(data, '\$.lang', 'fr'),"
                . " JSON_INSERT(data, '\$.y', 2), JSON_MERGE_PATCH(data, '{\"z\":3}') FROM posts ORDER BY id",
            "SELECT COLUMN_GET(COLUMN_CREATE('a', 1), 'a' AS INT)",
        ],
        'full text' => [
            "SELECT id FROM posts WHERE MATCH (title, body) AGAINST ('reading')",
            "SELECT id, MATCH (title, body) AGAINST ('+outfile -draft' IN BOOLEAN MODE) AS score FROM posts ORDER BY"
                . ' id',
            [
                'SELECT id FROM posts WHERE MATCH (title, body) AGAINST (? IN NATURAL LANGUAGE MODE) ORDER BY id',
                'writing',
            ],
            'SELECT id FROM posts WHERE MATCH (title, body) AGAINST (\'"read it" @4\' IN BOOLEAN MODE)',
            "SELECT id FROM posts WHERE MATCH (title, body) AGAINST ('reading' WITH QUERY EXPANSION) ORDER BY id",
        ],
        'literals' => [
            'SELECT \'it\'\'s\', \'it\\\'s\', "say ""x""", "say \"x\"", \'a\\\\\', \'\0\n\t\%\_\'',
            "SELECT '; DROP TABLE users; --', '/* no comment */', '# none', '-- none', '*/'",
            "SELECT 'SET SESSION TRANSACTION READ WRITE; COMMIT; DELETE FROM users'",
            "SELECT 'SELECT * INTO OUTFILE \\'/tmp/x\\' FROM users'", 'SELECT "SELECT 1 INTO OUTFILE \'/tmp/x\'"',
            "SELECT id FROM posts WHERE body LIKE '%INTO OUTFILE%' OR body LIKE '%into dumpfile%' ORDER BY id",
            "SELECT id FROM posts WHERE body REGEXP 'union[[:space:]]+select|into\\\\s+(out|dump)file' ORDER BY id",
            "SELECT id FROM posts WHERE body REGEXP 'into +outfile' ORDER BY id",
            "SELECT 'CALL says_one()', 'FLUSH TABLES', 'KILL 1', 'LOCK TABLES x WRITE'",
            "SELECT 'a' 'b' \"c\" AS abc, N'n', _utf8mb4'x' COLLATE utf8mb4_bin, _binary 'y', X'4142', 0x41, b'01',"
                . ' 0b11',
            "SELECT 'Müller', '東京', '😀', 'é'", "SELECT * FROM posts WHERE title = 'Müller and 東京'",
            'SELECT 1.5e3, .5, 5., -1, +1, 1e-2, TRUE, FALSE, NULL, \N',
            "SELECT {d '2024-01-02'}, {t '03:04:05'}, {ts '2024-01-02 03:04:05'}, DATE '2024-01-02'",
            "SELECT '\$\$ not quoted \$\$', '\${x}', '\$1', ':name', '%s', '%d'",
            "SELECT 'C:\\\\Program Files\\\\x', 'a\\\\'';--', '\\\\\\\\'",
            "SELECT 'a\nb\r\nc;\n-- d\n' AS `lines`",
            ['SELECT ? AS a, ? AS b, ? AS c', "'; SET SESSION TRANSACTION READ WRITE; --", '" INTO OUTFILE "/x', '\\'],
            ['SELECT ? AS a, ? AS b', null, '/*!50000 CALL says_one() */ # $$ `;` -- x'],
            ['SELECT id FROM posts WHERE title LIKE ? OR body LIKE ? ORDER BY id', '%into outfile%', "%OUTFILE'%"],
            'SELECT id FROM posts WHERE body LIKE "%say \"into outfile\"%"',
            'SELECT id FROM posts WHERE body LIKE "%it\\\'s INTO OUTFILE%" ORDER BY id',
            "SELECT /*!40001 SQL_NO_CACHE */ id FROM posts WHERE body LIKE '%into outfile%'",
            "SELECT /*+ NO_ICP(posts) */ id FROM posts WHERE body LIKE '%into outfile%'",
        ],
        'comments and hints' => [
            "-- a comment\n             SELECT 1", "# a comment\nSELECT 1", '/* a comment */ SELECT 1',
            '/* one *//* two */ SELECT /* three */ 1 /* four */', 'SELECT 1 -- SET SESSION TRANSACTION READ WRITE',
            'SELECT 1 # ; CALL says_one()', "SELECT 1 /* INTO OUTFILE '/tmp/x' */",
            "SELECT 1 -- INTO OUTFILE '/tmp/x'\n, 2", 'SELECT /* it\'s "quoted */ 1',
            '/* App\Http\Controllers\PostController::delete */ SELECT id FROM users ORDER BY id',
            "SELECT id FROM users ORDER BY id /* route='%2Fposts%2Fwrite',framework='laravel:8' */",
            '/*!40101 SET NAMES utf8mb4 */', '/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */',
            'SELECT /*!40001 SQL_NO_CACHE */ * FROM users',
            'SELECT /*! STRAIGHT_JOIN */ u.id FROM users u JOIN posts p ON p.user_id = u.id ORDER BY p.id',
            'SELECT 1 /*!99999 + 1 */ AS one, 1 /*!50000 + 1 */ AS two',
            'SELECT /*M!100100 1 + */ 1', '/*!50001 SELECT 1 */',
            '/* shop */ SELECT /*!40001 SQL_NO_CACHE */ id FROM users ORDER BY id',
            "-- shop: report\nSELECT /*! STRAIGHT_JOIN */ id FROM users /* all */ ORDER BY id",
            'SELECT /*+ MAX_EXECUTION_TIME(1000) */ * FROM users',
            'SELECT /*+ NO_ICP(users) BKA(users) */ id FROM users ORDER BY id',
            'SELECT/**/1/**/+/**/1', 'SELECT 1--1', 'SELECT 5*/* times */2',
        ],
        'names like keywords' => [
            'SELECT dblink_id, `delete`, `call`, `copy`, lo_import FROM odd',
            'SELECT o.dblink_id, o.`delete`, o.`call`, o.`copy`, o.lo_import, o.`into`, o.outfile FROM odd o',
            'SELECT o.delete, o.call, o.into, o.set, o.select, o.write FROM odd o',
            "SELECT `outfile` FROM odd WHERE `outfile` = 'eight'", 'SELECT `into`, `outfile` FROM odd',
            'SELECT 1 AS `into outfile`',
            'SELECT 1 AS `call`, 2 AS `delete`, 3 AS copy, 4 AS lo_import, 5 AS `drop`, 6 AS flush, 7 AS shutdown',
            'SELECT `a``b`, `drop table`, `#x`, `--y` FROM odd', 'SELECT `set`, `global`, `write` FROM odd',
            'SELECT tx_read_only FROM odd WHERE tx_read_only = 0', 'SELECT * FROM `order` WHERE `key` = 2',
            'SELECT `order`.`key` FROM `shop`.`order`', 'SELECT prénom FROM élèves', 'SELECT `prénom` FROM `élèves`',
            "SELECT prénom, 'into outfile' AS élément FROM élèves",
            'SELECT 1 AS begin, 2 AS commit, 3 AS `end`, 4 AS start, 5 AS xa, 6 AS handler, 7 AS `lock`, 8 AS `kill`',
            'SELECT `copy`.`id` FROM users AS `copy` ORDER BY 1', 'SELECT `load`.id FROM users `load` ORDER BY 1',
        ],
        'WordPress' => [
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'", 'SELECT @@SESSION.sql_mode',
            "SET SESSION sql_mode='ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION'",
            "SELECT option_name, option_value FROM wp_options WHERE autoload IN ( 'yes', 'on', 'auto-on', 'auto' )",
            "SELECT option_value FROM wp_options WHERE option_name = '_site_transient_timeout_theme_roots' LIMIT 1",
            "SELECT   wp_posts.*\n                 FROM wp_posts\n                 WHERE 1=1  AND wp_posts.post_type ="
                . " 'post' AND ((wp_posts.post_status = 'publish'))\n                 ORDER BY wp_posts.post_date"
                . " DESC\n                 LIMIT 0, 10",
            'SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID FROM wp_posts  LEFT JOIN wp_term_relationships ON (wp_posts.ID ='
                . ' wp_term_relationships.object_id) WHERE 1=1  AND (wp_term_relationships.term_taxonomy_id IN (1)) AND'
                . " wp_posts.post_type = 'post' GROUP BY wp_posts.ID ORDER BY wp_posts.post_date DESC LIMIT 0, 1",
            'SELECT FOUND_ROWS()',
            'SELECT post_id, meta_key, meta_value FROM wp_postmeta WHERE post_id IN (1,2) ORDER BY meta_id ASC',
            'SELECT  t.*, tt.* FROM wp_terms AS t  INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id WHERE'
                . " tt.taxonomy IN ('category') AND tt.count > 0 ORDER BY t.name ASC",
            'SELECT user_id, meta_key, meta_value FROM wp_usermeta WHERE user_id IN (1) ORDER BY umeta_id ASC',
            "SELECT * FROM wp_users WHERE user_login = 'admin' LIMIT 1",
            'SELECT COUNT(NULLIF(`meta_value` LIKE \'%\"administrator\"%\', false)), COUNT(*) FROM wp_usermeta INNER'
                . " JOIN wp_users ON user_id = ID WHERE meta_key = 'wp_capabilities'",
            'SELECT comment_approved, COUNT( * ) AS total FROM wp_comments GROUP BY comment_approved',
            'SELECT wp_posts.ID FROM wp_posts INNER JOIN wp_postmeta ON ( wp_posts.ID = wp_postmeta.post_id ) WHERE 1=1'
                . " AND ( ( wp_postmeta.meta_key = '_price' AND CAST(wp_postmeta.meta_value AS DECIMAL(10,2)) BETWEEN"
                . " '10' AND '20' ) )",
            "SELECT wp_posts.ID FROM wp_posts WHERE (((wp_posts.post_title LIKE '{a1b2}into outfile{a1b2}') OR"
                . " (wp_posts.post_content LIKE '{a1b2}it\\'s{a1b2}'))) AND (wp_posts.post_password = '')",
            'SELECT DISTINCT YEAR( post_date ) AS year, MONTH( post_date ) AS month FROM wp_posts WHERE post_type ='
                . " 'post' AND post_status != 'auto-draft' ORDER BY post_date DESC",
            "SELECT post_status, COUNT( * ) AS num_posts FROM wp_posts WHERE post_type = 'page' GROUP BY post_status",
            "SELECT p.ID FROM wp_posts AS p  WHERE p.post_date < '2024-06-01 00:00:00' AND p.post_type = 'post' AND ("
                . " p.post_status = 'publish' OR p.post_status = 'private' ) ORDER BY p.post_date DESC LIMIT 1",
            "SHOW TABLES LIKE 'wp\\_%'", 'SHOW FULL COLUMNS FROM `wp_posts`', 'DESCRIBE wp_options;',
            "SHOW VARIABLES LIKE 'sql_mode'", 'SHOW VARIABLES LIKE "character_set_database"',
        ],
        'Drupal' => [
            'SET NAMES utf8mb4 COLLATE utf8mb4_general_ci', "SET SESSION sql_mode = 'ANSI,TRADITIONAL'",
            'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', 'SELECT VERSION()',
            'SELECT "name", "route", "fit" FROM "router" WHERE "pattern_outline" IN (\'/node/1\', \'/node/%\') AND'
                . ' "number_parts" >= 2',
            'SELECT "cid", "data", "created", "expire", "serialized", "tags", "checksum" FROM "cache_default" WHERE'
                . ' "cid" IN ( \'menu:1\' ) ORDER BY "cid"',
            [
                'SELECT "collection", "name", "data" FROM "config" WHERE "collection" = ? AND "name" IN (?, ?) ORDER BY'
                    . ' "name"',
                '', 'system.site', 'system.theme',
            ],
            'SELECT "base_table"."vid" AS "vid", "base_table"."nid" AS "nid" FROM "node_field_data" "base_table" INNER'
                . ' JOIN "users" "u" ON "u"."id" = "base_table"."uid" WHERE ("base_table"."status" = \'1\') ORDER BY'
                . ' "base_table"."sticky" DESC, "base_table"."created" DESC LIMIT 10 OFFSET 0',
            'SELECT COUNT(*) AS "expression" FROM (SELECT 1 AS "expression" FROM "node_field_data" "nfd" WHERE "type"'
                . " LIKE 'art%' ESCAPE '\\\\') \"subquery\"",
            'SELECT "name", "value" FROM "key_value" WHERE "collection" = \'state\'',
            'SELECT "expire", "value" FROM "semaphore" WHERE "name" = \'cron\'',
            'SELECT 1 AS "expression" FROM "sessions" "s" WHERE ("sess_id" = \'abc\') AND ("sess_lifetime" > 1)',
            'SELECT "say ""into outfile""" FROM (SELECT 1 AS "say ""into outfile""") AS "x"',
            'START TRANSACTION', 'SAVEPOINT savepoint_1', 'RELEASE SAVEPOINT savepoint_1', 'COMMIT',
        ],
        'Magento' => [
            "SET SQL_MODE=''", 'SET NAMES utf8mb4', "SET time_zone = '+00:00'",
            "SELECT `main_table`.* FROM `core_config_data` AS `main_table` WHERE (`path` LIKE 'web/%')",
            'SELECT `e`.*, IF(at_name.value_id > 0, at_name.value, at_name_default.value) AS `name` FROM'
                . ' `catalog_product_entity` AS `e` LEFT JOIN `catalog_product_entity_varchar` AS `at_name_default` ON'
                . " (`at_name_default`.`entity_id` = `e`.`entity_id`) AND (`at_name_default`.`attribute_id` = '73') AND"
                . ' `at_name_default`.`store_id` = 0 LEFT JOIN `catalog_product_entity_varchar` AS `at_name` ON'
                . ' (`at_name`.`entity_id` = `e`.`entity_id`) AND (`at_name`.`store_id` = 1) ORDER BY `e`.`entity_id`',
            "SELECT `eav_attribute`.* FROM `eav_attribute` WHERE (`eav_attribute`.`attribute_code`='name') AND"
                . " (entity_type_id = '4')",
            "SELECT `u`.* FROM `url_rewrite` AS `u` WHERE (`u`.`request_path` IN ('bag.html', 'bag.html/')) AND"
                . " (`u`.`store_id` IN ('1', 0))",
            ['SELECT COUNT(*) FROM `sales_order` WHERE (state NOT IN (?)) AND (`store_id` = ?)', 'canceled', 1],
            "SELECT GET_LOCK('magento.index', 0)",
            "SELECT IS_USED_LOCK('magento.index') = CONNECTION_ID(), IS_FREE_LOCK('other')",
            "SELECT RELEASE_LOCK('magento.index')", "SHOW TABLE STATUS LIKE 'eav_attribute'",
            'SHOW INDEX FROM `sales_order`', 'SHOW CREATE TABLE `url_rewrite`',
        ],
        'Symfony and Doctrine' => [
            'SELECT t0.id AS id_1, t0.email AS email_2, t0.name AS name_3 FROM users t0 WHERE t0.email ='
                . " 'ada@shop.example' LIMIT 1",
            [
                'SELECT u0_.id AS id_0, u0_.name AS name_1, p1_.id AS id_2 FROM users u0_ INNER JOIN posts p1_ ON'
                    . ' u0_.id = p1_.user_id AND (p1_.status = ?) WHERE u0_.id IN (?, ?) ORDER BY p1_.id ASC',
                'published', 1, 2,
            ],
            'SELECT DISTINCT id_0 FROM (SELECT u0_.id AS id_0 FROM users u0_) dctrn_result ORDER BY id_0 ASC LIMIT 5',
            'SELECT count(DISTINCT u0_.id) AS sclr_0 FROM users u0_ LEFT JOIN posts p1_ ON u0_.id = p1_.user_id',
            [
                'SELECT m.* FROM messenger_messages m WHERE (m.queue_name = ?) AND (m.delivered_at is null OR'
                    . ' m.delivered_at < ?) AND (m.available_at <= ?) ORDER BY available_at ASC LIMIT 1',
                'default', '2024-06-01 00:00:00', '2024-06-01 00:00:00',
            ],
            "SELECT COUNT(m.id) AS cnt FROM messenger_messages m WHERE m.queue_name = 'default'",
            ['SELECT sess_data, sess_lifetime, sess_time FROM sessions WHERE sess_id = ?', 'abc'],
            ['SELECT 1 FROM lock_keys WHERE key_id=? AND key_token=? AND key_expiration > UNIX_TIMESTAMP()', 'a', 'b'],
            [
                'SELECT item_id, CASE WHEN item_lifetime IS NULL OR item_lifetime + item_time > ? THEN item_data ELSE'
                    . ' NULL END FROM cache_items WHERE item_id IN (?)',
                1, 'greeting',
            ],
            'SELECT version, executed_at, execution_time FROM doctrine_migration_versions',
            'SELECT DATABASE()', "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'",
            'SELECT SCHEMA_NAME AS `Database` FROM information_schema.SCHEMATA ORDER BY 1',
            'SELECT COLUMN_NAME AS field, COLUMN_TYPE AS type, IS_NULLABLE AS `null`, COLUMN_KEY AS `key`,'
                . ' COLUMN_DEFAULT AS `default`, EXTRA AS extra, COLUMN_COMMENT AS comment FROM'
                . " information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'posts' ORDER BY"
                . ' ORDINAL_POSITION',
            'SELECT DISTINCT k.`CONSTRAINT_NAME`, k.`COLUMN_NAME`, k.`REFERENCED_TABLE_NAME`,'
                . ' k.`REFERENCED_COLUMN_NAME` /*!50116 , c.update_rule, c.delete_rule */ FROM'
                . ' information_schema.key_column_usage k /*!50116 INNER JOIN'
                . ' information_schema.referential_constraints c ON c.constraint_name = k.constraint_name AND'
                . " c.table_name = 'posts' */ WHERE k.table_name = 'posts' AND k.table_schema = 'shop' /*!50116 AND"
                . " c.constraint_schema = 'shop' */ AND k.`REFERENCED_COLUMN_NAME` is not NULL",
            'SELECT ENGINE, AUTO_INCREMENT, TABLE_COLLATION, TABLE_COMMENT, CREATE_OPTIONS FROM'
                . " information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA = 'shop' AND TABLE_NAME"
                . " = 'posts'",
            'SELECT NON_UNIQUE AS Non_Unique, INDEX_NAME AS Key_name, COLUMN_NAME AS Column_Name FROM'
                . " information_schema.STATISTICS WHERE TABLE_SCHEMA = 'shop' ORDER BY TABLE_NAME, INDEX_NAME,"
                . ' SEQ_IN_INDEX',
            "SELECT * FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop'",
        ],
        'Moodle' => [
            'SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci', "SET SESSION sql_mode='ANSI_QUOTES,STRICT_ALL_TABLES'",
            "SELECT name, value FROM mdl_config_plugins WHERE plugin = 'mod_quiz'",
            [
                'SELECT u.id, u.username, u.firstname FROM mdl_user u JOIN (SELECT DISTINCT ra.userid FROM'
                    . ' mdl_role_assignments ra WHERE ra.roleid = ?) x ON x.userid = u.id WHERE u.deleted = 0',
                5,
            ],
            'SELECT c.id, c.fullname, ctx.id AS ctxid, ctx.path AS ctxpath FROM mdl_course c LEFT JOIN mdl_context ctx'
                . ' ON (ctx.instanceid = c.id AND ctx.contextlevel = 50) WHERE c.id <> 1 ORDER BY c.sortorder ASC',
            "SELECT COUNT('x') FROM mdl_user WHERE (lower(firstname) LIKE '%a%' COLLATE utf8mb4_bin ESCAPE '\\\\')",
            "SELECT id FROM mdl_user WHERE CONCAT(firstname, ' ', lastname) REGEXP '^A' LIMIT 0, 100",
            'SHOW TABLES', 'SHOW INDEXES FROM mdl_user',
            'SELECT column_name, data_type, character_maximum_length, numeric_precision FROM information_schema.columns'
                . " WHERE table_name = 'mdl_course' AND table_schema = 'shop' ORDER BY ordinal_position",
            "SHOW VARIABLES LIKE 'innodb_file_per_table'", 'SELECT @@storage_engine',
        ],
        'MediaWiki' => [
            "SET @@sql_mode = ''",
            'SELECT /* Wikimedia\Rdbms\DatabaseMySQL::doSelectDomain  */ 1',
            'BEGIN /* Wikimedia\Rdbms\Database::begin (WikiPage::doDeleteUpdates) */',
            'SELECT /* WikiPage::pageData (write) */  page_id,page_namespace,page_title,page_touched  FROM `page`'
                . "    WHERE page_namespace = 0 AND page_title = 'Main_Page'  LIMIT 1",
            'SELECT /* CategoryViewer */ page_id,cl_sortkey  FROM `page` INNER JOIN `categorylinks` FORCE INDEX'
                . " (PRIMARY) ON ((cl_from = page_id))   WHERE cl_to = 'Start'  ORDER BY cl_sortkey LIMIT 201",
            'SELECT rev_id,rev_timestamp FROM `revision` WHERE rev_page = 1 AND (rev_deleted & 4) = 0 ORDER BY'
                . ' rev_timestamp DESC,rev_id DESC LIMIT 51',
            "SELECT keyname,value,exptime FROM `objectcache` WHERE keyname IN ('wiki:messages:en','wiki:x')",
            "SELECT MASTER_POS_WAIT('x', 1, 0) IS NULL OR TRUE", "SHOW STATUS LIKE 'wsrep_%'",
            'COMMIT /* Wikimedia\Rdbms\Database::commit */',
            'EXPLAIN SELECT page_id FROM `page` WHERE page_namespace = 0',
            "SELECT GROUP_CONCAT(cl_to SEPARATOR '|') FROM `categorylinks` WHERE cl_from = 1",
        ],
        'phpMyAdmin' => [
            'SELECT @@version, @@version_comment', "SET collation_connection = 'utf8mb4_unicode_ci'",
            "SET lc_messages = 'en_US'", 'SHOW DATABASES', 'USE information_schema', 'USE `shop`',
            'SHOW FULL TABLES FROM `shop`', 'SHOW FULL COLUMNS FROM `posts` FROM `shop`',
            'SHOW INDEXES FROM `posts` FROM `shop`', 'SHOW KEYS FROM `users`', 'SHOW CREATE VIEW `paid_orders`',
            'SHOW CREATE DATABASE `shop`', 'SHOW CREATE FUNCTION `with_tax`', 'SHOW CREATE PROCEDURE `says_one`',
            'SHOW CREATE TRIGGER `posts_look`', 'SHOW CREATE SEQUENCE `numbers`', 'SHOW TRIGGERS FROM `shop`',
            'SHOW EVENTS FROM `shop`', "SHOW PROCEDURE STATUS WHERE `Db` = 'shop'", "SHOW FUNCTION STATUS LIKE 'with%'",
            'SHOW ENGINES', 'SHOW PLUGINS', 'SHOW CHARACTER SET', "SHOW COLLATION WHERE Charset = 'utf8mb4'",
            'SHOW PRIVILEGES', 'SHOW STORAGE ENGINES', 'SHOW MASTER STATUS', 'SHOW SLAVE STATUS',
            'SHOW ALL SLAVES STATUS', 'SHOW AUTHORS', 'SHOW CONTRIBUTORS', 'SHOW CREATE USER', 'SHOW COUNT(*) WARNINGS',
            "SHOW SESSION VARIABLES LIKE 'character%'",
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('port', 'datadir')",
            "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = '''shop''@''%''' AND PRIVILEGE_TYPE ="
                . " 'CREATE USER'",
            'SELECT *, `TABLE_SCHEMA` AS `Db`, `TABLE_NAME` AS `Name`, `TABLE_TYPE` AS `TABLE_TYPE` FROM'
                . " `information_schema`.`TABLES` t WHERE `TABLE_SCHEMA` COLLATE utf8_bin IN ('shop') AND `TABLE_NAME`"
                . " = 'paid_orders'",
            "SELECT COUNT(*) FROM `shop`.`posts` WHERE `body` LIKE '%delete%'",
            "SELECT `TABLE_NAME`, `PARTITION_NAME` FROM `information_schema`.`PARTITIONS` WHERE TABLE_SCHEMA = 'shop'"
                . ' ORDER BY 1',
            "SELECT `ROUTINE_NAME`, `ROUTINE_TYPE` FROM `information_schema`.`ROUTINES` WHERE ROUTINE_SCHEMA = 'shop'"
                . ' ORDER BY 1',
            'SELECT `CONSTRAINT_NAME`, `TABLE_NAME` FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA ='
                . " 'shop' ORDER BY 2, 1",
            'SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS ORDER BY 2',
            'DESC users', 'DESCRIBE `posts` `title`', 'EXPLAIN users', 'CHECKSUM TABLE users, posts', "HELP 'SELECT'",
            'UNLOCK TABLES', 'SET SQL_QUOTE_SHOW_CREATE=1', 'SET profiling = 1', 'SET profiling = 0',
            "SELECT * FROM mysql.help_topic WHERE name = 'nothing'",
            "SELECT User, Host FROM mysql.user WHERE User = 'shop'", "SHOW GRANTS FOR 'shop'@'%' ",
        ],
        'a dump' => [
            'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ',
            'START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */', 'SAVEPOINT sp', 'show fields from `users`',
            'SELECT /*!40001 SQL_NO_CACHE */ `id`, `email`, `name` FROM `users` ORDER BY id',
            'ROLLBACK TO SAVEPOINT sp', 'RELEASE SAVEPOINT sp', 'COMMIT',
        ],
        'transactions' => [
            'BEGIN', 'SELECT COUNT(*) FROM users', 'COMMIT', 'BEGIN WORK', 'ROLLBACK WORK', 'START TRANSACTION',
            'SAVEPOINT trans2', 'SELECT 1', 'ROLLBACK TO trans2', 'ROLLBACK', 'START TRANSACTION READ ONLY', 'SELECT 2',
            'COMMIT AND CHAIN', 'SELECT 3', 'ROLLBACK AND NO CHAIN',
            'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY', 'SELECT name FROM users ORDER BY id',
            'COMMIT NO RELEASE', 'SET autocommit = 0', 'SELECT 4', 'COMMIT', 'SET autocommit = 1',
            'SET TRANSACTION READ ONLY', 'SELECT 5',
            'SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ ONLY',
            'SELECT 6', 'START TRANSACTION READ ONLY /* PostController@write */', 'COMMIT',
            'SET SESSION TRANSACTION READ ONLY /* no write */', 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE', 'BEGIN',
            'SELECT COUNT(*) FROM posts',
            'SELECT trx_isolation_level FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = CONNECTION_ID()',
            'SELECT @@tx_isolation', 'COMMIT',
        ],
        'settings' => [
            'SET NAMES utf8', 'SET NAMES latin1', "SET NAMES 'utf8mb4'", 'SET CHARACTER SET utf8mb4',
            'SET CHARSET utf8mb4', "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'", "set time_zone='+00:00'",
            "set session sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'",
            "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
            'SELECT "id" FROM "users" ORDER BY "id"', "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SELECT 'C:\\temp\\', 'into outfile'", 'SET SESSION sql_mode = DEFAULT',
            'SET SESSION sql_mode = @@GLOBAL.sql_mode', 'SET SESSION group_concat_max_len = 1000000',
            'SET SESSION group_concat_max_len = @@global.group_concat_max_len',
            "SET @old_mode := @@sql_mode, @@session.sql_mode = ''", 'SET sql_mode = @old_mode',
            'SET SESSION wait_timeout = 28800, interactive_timeout = 28800',
            'SET max_statement_time = 10', 'SET SESSION sql_big_selects = 1', 'SET SQL_SAFE_UPDATES = 0',
            'SET foreign_key_checks = 0', 'SET SESSION innodb_lock_wait_timeout = 5',
            'SET SESSION lock_wait_timeout = 10', 'SET sort_buffer_size = 262144',
            'SET tmp_table_size = 16777216, max_heap_table_size = 16777216',
            "SET optimizer_switch = 'mrr=on'", 'SET SESSION optimizer_search_depth = 62', 'SET SQL_SELECT_LIMIT = 100',
            'SET SQL_SELECT_LIMIT = DEFAULT', 'SET sql_auto_is_null = 0', 'SET SESSION query_cache_type = OFF',
            'SET default_week_format = 1', "SET lc_time_names = 'de_DE'", 'SET SESSION div_precision_increment = 6',
            'SET LOCAL net_read_timeout = 30', 'SET SESSION net_write_timeout = 60',
            'SET @@session.time_zone = "SYSTEM"', 'SET SESSION binlog_format = ROW',
            "SET tx_isolation = 'READ-COMMITTED'", 'SET ROLE NONE', 'SET tx_read_only = 1',
            'SET tx_read_only = 1 /* a replica */', 'SET SESSION tx_read_only = ON',
            'SET @@session.tx_read_only = TRUE', "SET @a = 1, @b = 'two', @c := 3.0", "SET @`a b` = 'x'",
            'SET @ids = (SELECT GROUP_CONCAT(id) FROM users)', 'SET @debug = 1', "SET @scope = 'global'",
            'SET @persist := 0', "SET @word = 'read write'",
            'SET STATEMENT max_statement_time = 10 FOR SELECT COUNT(*) FROM users',
            "SET STATEMENT join_cache_level = 2, optimizer_switch = 'mrr=on' FOR SELECT id FROM users ORDER BY id",
            'SET STATEMENT max_statement_time = 10 FOR SELECT /* ApiQuery::execute */ page_id FROM page ORDER BY'
                . ' page_id',
            'SET /* ApiQuery::execute */ STATEMENT max_statement_time = 10 FOR SELECT page_id FROM page ORDER BY'
                . ' page_id',
            "SET STATEMENT max_statement_time = 10 FOR SELECT id FROM posts WHERE title = 'Müller and 東京'",
            "SET STATEMENT max_statement_time = 10 FOR SELECT id FROM posts WHERE title LIKE '%waiting for books%'",
            "SET STATEMENT max_statement_time = 10 FOR SELECT id FROM posts WHERE title = '#1 -- really'",
            'SET STATEMENT max_statement_time = 10 FOR WITH a AS (SELECT 1 AS n) SELECT * FROM a',
            'SET SESSION character_set_results = NULL', 'SET character_set_client = utf8mb4',
            'SET @saved_cs_client = @@character_set_client', 'SET LOCAL sql_warnings = 1', 'SET timestamp = 1700000000',
            'SELECT NOW(), UNIX_TIMESTAMP()', 'SET timestamp = DEFAULT', 'SET rand_seed1 = 1, rand_seed2 = 2',
            'SET insert_id = 5', 'SET SESSION profiling_history_size = 5',
        ],
        'character sets' => [
            'SET NAMES latin1', 'SELECT 1', 'SET NAMES utf8mb4', "SELECT '東京', 'into outfile'",
        ],
        'what the last statement said' => [
            "SELECT 1 / 0, CAST('x' AS SIGNED)", 'SHOW WARNINGS', "SELECT CAST('y' AS SIGNED)", 'SHOW WARNINGS LIMIT 1',
            "SELECT CAST('z' AS SIGNED)", 'SHOW COUNT(*) WARNINGS', "SELECT CAST('z' AS SIGNED)",
            'SELECT @@warning_count', 'SHOW ERRORS',
            'SELECT SQL_CALC_FOUND_ROWS id FROM posts ORDER BY id LIMIT 1',
            'SELECT FOUND_ROWS()', 'SELECT id FROM posts', 'SELECT FOUND_ROWS()', 'SELECT LAST_INSERT_ID(5)',
            'SELECT LAST_INSERT_ID()', 'SELECT @@identity, @@last_insert_id, @@insert_id', 'SELECT id FROM users',
            "SELECT CAST('q' AS SIGNED)", 'GET DIAGNOSTICS @count = NUMBER', 'SELECT @count',
            'SELECT @@error_count', "DO CAST('w' AS SIGNED)", 'SHOW WARNINGS', 'SELECT @@in_transaction, @@autocommit',
            'SELECT SUM(views) FROM posts JOIN users ON users.id = user_id',
            "SHOW STATUS LIKE 'Last_query_cost'", 'SET profiling = 1', 'SELECT COUNT(*) FROM users',
            'SET profiling = 0',
        ],
        'explanations' => [
            'EXPLAIN SELECT * FROM posts WHERE user_id = 1', 'EXPLAIN EXTENDED SELECT * FROM users', 'SHOW WARNINGS',
            'EXPLAIN PARTITIONS SELECT * FROM users', 'EXPLAIN FORMAT=JSON SELECT * FROM users WHERE id = 1',
            'EXPLAIN FORMAT=TRADITIONAL SELECT 1', 'DESC SELECT * FROM users', 'DESCRIBE SELECT 1 UNION SELECT 2',
            'EXPLAIN WITH a AS (SELECT 1 AS n) SELECT * FROM a',
        ],
        'locks and other functions' => [
            "SELECT GET_LOCK('a', 1)", "SELECT RELEASE_LOCK('a')", 'SELECT RELEASE_ALL_LOCKS()', "DO RELEASE_LOCK('a')",
            'DO SLEEP(0)', 'DO 1, 2', 'SELECT BENCHMARK(10, MD5(1))', 'SELECT SLEEP(0)', "SELECT NAME_CONST('a', 1)",
            "SELECT ELT(2, 'a', 'b'), FIELD('b', 'a', 'b'), FIND_IN_SET('b', 'a,b')",
            "SELECT LENGTH(COMPRESS('a')), UNCOMPRESS(COMPRESS('a')), HEX(AES_ENCRYPT('a', 'k'))",
            "SELECT ExtractValue('<a><b>1</b></a>', '/a/b'), UpdateXML('<a>1</a>', '/a', '<b>2</b>')",
            "SELECT REGEXP_REPLACE('abc', 'b', 'x'), REGEXP_SUBSTR('abc', '[bc]+'), REGEXP_INSTR('abc', 'c')",
            "SELECT CONCAT_WS(', ', 'a', NULL, 'b'), LPAD('a', 3, '-'), SUBSTRING_INDEX('a.b.c', '.', 2), TRIM(BOTH 'x'"
                . " FROM 'xax'), POSITION('b' IN 'abc'), FORMAT(1234.5, 2), CHAR(65, 66 USING utf8mb4)",
        ],
        'other applications' => [
            "SELECT `a`.`id`,`a`.`title` FROM `posts` AS `a` WHERE `a`.`status` IN ('published') AND"
                . " (`a`.`published_at` IS NULL OR `a`.`published_at` <= '2024-06-01') ORDER BY a.id DESC",
            "SELECT s.sess_id, u.name FROM (sessions s CROSS JOIN users u) WHERE s.sess_id = 'abc' AND u.id = 1",
            'SELECT `uid` FROM (SELECT nid AS uid, 0 AS `deleted`, 0 AS `hidden` FROM node_field_data) `pages` WHERE'
                . ' ((`pages`.`deleted` = 0) AND (`pages`.`hidden` = 0)) ORDER BY `uid`',
            "SELECT `f`.`id`, `f`.`title` FROM `posts` `f` WHERE (`f`.`title` COLLATE utf8mb4_general_ci LIKE '%read%')"
                . " OR (`f`.`status` IN ('x', 'y')) ORDER BY `f`.`id` ASC LIMIT 100",
            'SELECT COUNT(distinct log.user_id) AS `1`, CASE WHEN MAX(log.total) > 0 THEN 1 ELSE 0 END AS `2` FROM'
                . " orders AS log WHERE log.created_at >= '2024-01-01' AND log.status IN ('paid') /* trigger ="
                . ' CronArchive */',
            'SELECT SQL_CALC_FOUND_ROWS p.`id`, pl.`name` , IF(p.views > 5, 1, 0) AS new FROM `posts` p LEFT JOIN'
                . ' `users` pl ON (pl.`id` = p.`user_id`) WHERE 1 ORDER BY p.`id` ASC LIMIT 0, 1',
            'SELECT Posts.id AS Posts__id, Users.name AS Users__name FROM posts Posts INNER JOIN users Users ON'
                . ' Users.id = (Posts.user_id) WHERE (Posts.id = 1 AND NOT (Posts.deleted_at IS NOT NULL)) LIMIT 20',
            'SELECT `kcu`.`CONSTRAINT_NAME` AS `constraint_name` FROM `information_schema`.`REFERENTIAL_CONSTRAINTS` AS'
                . ' `rc` JOIN `information_schema`.`KEY_COLUMN_USAGE` AS `kcu` ON (`kcu`.`CONSTRAINT_CATALOG` ='
                . ' `rc`.`CONSTRAINT_CATALOG` OR (`kcu`.`CONSTRAINT_CATALOG` IS NULL)) AND `kcu`.`CONSTRAINT_SCHEMA` ='
                . ' `rc`.`CONSTRAINT_SCHEMA` AND `kcu`.`CONSTRAINT_NAME` = `rc`.`CONSTRAINT_NAME` LIMIT 5',
            'SELECT *, ( 6371 * acos( cos( radians(37) ) * cos( radians( id ) ) ) ) AS distance FROM users HAVING'
                . ' distance < 99999 ORDER BY id',
            'select table_name as `name`, (data_length + index_length) as `size` from information_schema.tables where'
                . " table_schema = 'shop' and table_type = 'SEQUENCE'",
            'SELECT TRUNCATE(SUM(total), 0) AS `truncate`, MAX(created_at) AS `last update` FROM orders',
            "SELECT * FROM `users` WHERE `name` = 'x' OR '1' = '1' -- ' AND `password` = 'x'",
        ],
    ];

    /** Whose rows are others each time, or others in a session that only reads: that they are answered is all. */
    public const CHANGING = [
        'SELECT NOW(), SYSDATE(), CURDATE(), CURRENT_TIMESTAMP, UTC_TIMESTAMP(6), UNIX_TIMESTAMP()',
        'SELECT UUID(), UUID_SHORT(), RAND(), CONNECTION_ID(), SYS_GUID()',
        'SELECT * FROM users WHERE id > 0 ORDER BY RAND() LIMIT 1',
        'SELECT @@tx_read_only, @@hostname, @@port, @@global.read_only, @@timestamp, @@pseudo_thread_id',
        'SHOW VARIABLES', 'SHOW SESSION STATUS', "SHOW GLOBAL STATUS LIKE 'Threads_%'", 'SHOW STATUS',
        'SHOW PROCESSLIST', 'SHOW FULL PROCESSLIST', 'SHOW ENGINE INNODB STATUS', 'SHOW OPEN TABLES FROM `mysql`',
        'SHOW GRANTS', 'SHOW TABLE STATUS', "SHOW TABLE STATUS FROM `shop` WHERE Name = 'users'",
        'SHOW INDEX FROM posts', 'SHOW PROFILES', 'SHOW PROFILE', 'SHOW ENGINE INNODB MUTEX', 'SHOW INDEX_STATISTICS',
        'SHOW USER_STATISTICS', 'SHOW GLOBAL VARIABLES', 'SELECT * FROM information_schema.PROCESSLIST',
        'SELECT * FROM information_schema.GLOBAL_STATUS', 'SELECT * FROM information_schema.SESSION_VARIABLES',
        "SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'",
        'SELECT * FROM information_schema.INNODB_METRICS LIMIT 5', "SHOW SESSION STATUS LIKE 'Handler_read%'",
        'ANALYZE SELECT * FROM users',
        'ANALYZE FORMAT=JSON SELECT * FROM posts WHERE user_id = 1',
        'SELECT table_schema, SUM(data_length + index_length) / 1024 / 1024 AS mb FROM information_schema.tables GROUP'
            . ' BY table_schema',
        "SELECT INSTR(LOAD_FILE('/etc/passwd'), 'root')",
    ];
}
