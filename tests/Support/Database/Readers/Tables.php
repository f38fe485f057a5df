<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

/**
 * The tables that readers look into, with a few rows: a shop's own, and those of frameworks and of applications as far
 * as they are asked for. `users` is there already.
 */
final class Tables
{
    /** In words that both servers take, but for TIME, WORDS and BYTES. */
    private const COMMON = [
        'CREATE TABLE categories (id INT PRIMARY KEY, parent_id INT, name VARCHAR(100) NOT NULL, position INT)',
        "INSERT INTO categories VALUES (1, NULL, 'All', 1), (2, 1, 'Books', 1), (3, 1, 'Music', 2), (4, 2, 'SQL', 1)",
        'CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL REFERENCES users (id), category_id INT,'
            . ' title VARCHAR(200) NOT NULL, body TEXT, status VARCHAR(20) NOT NULL, views INT NOT NULL DEFAULT 0,'
            . ' price DECIMAL(10, 2), data WORDS, published_at TIME NULL, created_at TIME NULL, updated_at TIME NULL,'
            . ' deleted_at TIME NULL)',
        'CREATE INDEX posts_status ON posts (status, published_at)',
        "INSERT INTO posts VALUES (1, 1, 2, 'Reading only', 'How to read; it''s \"easy\" -- really', 'published', 10,"
            . " 9.50, '{\"lang\": \"en\", \"tags\": [\"sql\", \"php\"], \"meta\": {\"stars\": 5}}',"
            . " '2024-01-02 03:04:05', '2024-01-01 00:00:00', '2024-01-02 00:00:00', NULL),"
            . " (2, 1, 3, 'Writing', 'DELETE FROM users; DROP TABLE users', 'draft', 0, NULL,"
            . " '{\"lang\": \"de\", \"tags\": []}', NULL, '2024-01-03 00:00:00', '2024-01-03 00:00:00', NULL),"
            . " (3, 2, 4, 'Müller and 東京', 'say INTO OUTFILE, lo_import(1) and pg_notify()', 'published', 25, 19.99,"
            . " '{\"lang\": \"en\", \"tags\": [\"sql\"], \"meta\": {\"stars\": 3}}',"
            . " '2024-02-03 04:05:06', '2024-02-01 00:00:00', '2024-02-01 00:00:00', NULL)",
        'CREATE TABLE comments (id INT PRIMARY KEY, post_id INT NOT NULL REFERENCES posts (id), user_id INT,'
            . ' body TEXT, created_at TIME NULL, updated_at TIME NULL)',
        "INSERT INTO comments VALUES (1, 1, 2, 'first', '2024-01-05 10:00:00', NULL),"
            . " (2, 1, 1, 'second', '2024-01-06 10:00:00', NULL), (3, 3, 1, 'third', '2024-02-05 10:00:00', NULL)",
        'CREATE TABLE tags (id INT PRIMARY KEY, name VARCHAR(50) NOT NULL)',
        "INSERT INTO tags VALUES (1, 'sql'), (2, 'php'), (3, 'rust')",
        'CREATE TABLE post_tag (post_id INT NOT NULL, tag_id INT NOT NULL, PRIMARY KEY (post_id, tag_id))',
        'INSERT INTO post_tag VALUES (1, 1), (1, 2), (3, 1)',
        'CREATE TABLE orders (id INT PRIMARY KEY, user_id INT NOT NULL, status VARCHAR(20) NOT NULL,'
            . ' currency CHAR(3) NOT NULL, total DECIMAL(10, 2) NOT NULL, created_at TIME NOT NULL)',
        "INSERT INTO orders VALUES (1, 1, 'paid', 'EUR', 10.00, '2024-01-01 10:00:00'),"
            . " (2, 1, 'open', 'EUR', 20.50, '2024-01-15 11:00:00'),"
            . " (3, 2, 'paid', 'USD', 5.25, '2024-02-01 12:00:00'),"
            . " (4, 2, 'void', 'EUR', 99.99, '2024-02-20 13:00:00')",
        'CREATE TABLE order_items (order_id INT NOT NULL, sku VARCHAR(40) NOT NULL, quantity INT NOT NULL,'
            . ' price DECIMAL(10, 2) NOT NULL, PRIMARY KEY (order_id, sku))',
        "INSERT INTO order_items VALUES (1, 'A-1', 2, 5.00), (2, 'A-1', 1, 5.00), (2, 'B-2', 1, 15.50),"
            . " (3, 'C-3', 3, 1.75), (4, 'B-2', 6, 16.665)",
        'CREATE VIEW paid_orders AS SELECT id, user_id, total FROM orders WHERE status = \'paid\'',
        // Laravel's own.
        'CREATE TABLE migrations (id INT PRIMARY KEY, migration VARCHAR(191) NOT NULL, batch INT NOT NULL)',
        "INSERT INTO migrations VALUES (1, '2014_10_12_000000_create_users_table', 1), (2, '2024_01_01_posts', 2)",
        'CREATE TABLE cache (%skey%s VARCHAR(191) PRIMARY KEY, value TEXT NOT NULL, expiration INT NOT NULL)',
        "INSERT INTO cache VALUES ('shop_cache_plain', 's:5:\"hello\";', 2000000000),"
            . " ('shop_cache_based', 'czo1OiJoZWxsbyI7', 2000000000)",
        'CREATE TABLE jobs (id INT PRIMARY KEY, queue VARCHAR(191) NOT NULL, payload TEXT NOT NULL,'
            . ' attempts INT NOT NULL, reserved_at INT, available_at INT NOT NULL, created_at INT NOT NULL)',
        "INSERT INTO jobs VALUES (1, 'default', '{}', 0, NULL, 1, 1), (2, 'mail', '{}', 0, NULL, 1, 1)",
        'CREATE TABLE password_resets (email VARCHAR(191) NOT NULL, token VARCHAR(191) NOT NULL, created_at TIME NULL)',
        'CREATE TABLE web_sessions (id VARCHAR(191) PRIMARY KEY, user_id INT, ip_address VARCHAR(45),'
            . ' user_agent TEXT, payload TEXT NOT NULL, last_activity INT NOT NULL)',
        "INSERT INTO web_sessions VALUES ('abc', 1, '127.0.0.1', 'curl', 'YTowOnt9', 2000000000)",
        // Symfony's and Doctrine's own.
        'CREATE TABLE messenger_messages (id INT PRIMARY KEY, body TEXT NOT NULL, headers TEXT NOT NULL,'
            . ' queue_name VARCHAR(190) NOT NULL, created_at TIME NOT NULL, available_at TIME NOT NULL,'
            . ' delivered_at TIME NULL)',
        "INSERT INTO messenger_messages VALUES (1, '{}', '[]', 'default', '2024-01-01', '2024-01-01', NULL)",
        'CREATE TABLE sessions (sess_id VARCHAR(128) PRIMARY KEY, sess_data BYTES NOT NULL,'
            . ' sess_lifetime INT NOT NULL, sess_time INT NOT NULL)',
        "INSERT INTO sessions VALUES ('abc', 'a:0:{}', 2000000000, 1700000000)",
        'CREATE TABLE cache_items (item_id VARCHAR(191) PRIMARY KEY, item_data BYTES NOT NULL, item_lifetime INT,'
            . ' item_time INT NOT NULL)',
        "INSERT INTO cache_items VALUES ('greeting', 's:5:\"hello\";', 1000000000, 1700000000)",
        'CREATE TABLE lock_keys (key_id VARCHAR(64) PRIMARY KEY, key_token VARCHAR(44) NOT NULL,'
            . ' key_expiration INT NOT NULL)',
        'CREATE TABLE doctrine_migration_versions (version VARCHAR(191) PRIMARY KEY, executed_at TIME NULL,'
            . ' execution_time INT)',
        // Drupal's.
        'CREATE TABLE node_field_data (nid INT PRIMARY KEY, vid INT, type VARCHAR(32), langcode VARCHAR(12),'
            . ' status INT, uid INT, title VARCHAR(255), created INT, changed INT, promote INT, sticky INT,'
            . ' default_langcode INT)',
        "INSERT INTO node_field_data VALUES (1, 1, 'page', 'en', 1, 1, 'Welcome', 1, 1, 1, 0, 1),"
            . " (2, 2, 'article', 'en', 1, 1, 'News', 2, 2, 1, 1, 1)",
        'CREATE TABLE config (collection VARCHAR(191), name VARCHAR(191), data BYTES, PRIMARY KEY (collection, name))',
        "INSERT INTO config VALUES ('', 'system.site', 'a:0:{}'), ('', 'system.theme', 'a:0:{}')",
        'CREATE TABLE key_value (collection VARCHAR(128), name VARCHAR(128), value BYTES,'
            . ' PRIMARY KEY (collection, name))',
        "INSERT INTO key_value VALUES ('state', 'system.cron_last', 'i:1;')",
        'CREATE TABLE cache_default (cid VARCHAR(191) PRIMARY KEY, data BYTES, expire INT, created DECIMAL(14, 3),'
            . ' serialized INT, tags TEXT, checksum VARCHAR(191))',
        "INSERT INTO cache_default VALUES ('menu:1', 'x', -1, 1.5, 0, 'config:menu', '1')",
        'CREATE TABLE semaphore (name VARCHAR(191) PRIMARY KEY, value VARCHAR(191), expire DECIMAL(16, 6))',
        'CREATE TABLE router (name VARCHAR(191) PRIMARY KEY, path VARCHAR(191), pattern_outline VARCHAR(191), fit INT,'
            . ' route BYTES, number_parts INT)',
        "INSERT INTO router VALUES ('node.view', '/node/{node}', '/node/%%', 2, 'x', 2)",
        // Moodle's.
        'CREATE TABLE mdl_user (id INT PRIMARY KEY, username VARCHAR(100), firstname VARCHAR(100),'
            . ' lastname VARCHAR(100), email VARCHAR(100), deleted INT, suspended INT, mnethostid INT)',
        "INSERT INTO mdl_user VALUES (1, 'guest', 'Guest', '', 'root@localhost', 0, 0, 1),"
            . " (2, 'admin', 'Ada', 'Admin', 'ada@shop.example', 0, 0, 1)",
        'CREATE TABLE mdl_course (id INT PRIMARY KEY, category INT, fullname VARCHAR(254), shortname VARCHAR(191),'
            . ' visible INT, sortorder INT)',
        "INSERT INTO mdl_course VALUES (1, 0, 'Site', 'site', 1, 1), (2, 1, 'SQL 101', 'sql', 1, 2)",
        'CREATE TABLE mdl_context (id INT PRIMARY KEY, contextlevel INT, instanceid INT, path VARCHAR(191), depth INT)',
        "INSERT INTO mdl_context VALUES (1, 10, 0, '/1', 1), (2, 50, 2, '/1/2', 2)",
        'CREATE TABLE mdl_role_assignments (id INT PRIMARY KEY, roleid INT, contextid INT, userid INT)',
        'INSERT INTO mdl_role_assignments VALUES (1, 5, 2, 2)',
        'CREATE TABLE mdl_config_plugins (id INT PRIMARY KEY, plugin VARCHAR(100), name VARCHAR(100), value TEXT)',
        "INSERT INTO mdl_config_plugins VALUES (1, 'mod_quiz', 'version', '2024')",
        // MediaWiki's.
        'CREATE TABLE page (page_id INT PRIMARY KEY, page_namespace INT, page_title VARCHAR(191),'
            . ' page_is_redirect INT, page_latest INT, page_len INT, page_touched VARCHAR(14))',
        "INSERT INTO page VALUES (1, 0, 'Main_Page', 0, 1, 100, '20240101000000'),"
            . " (2, 0, 'Help', 0, 2, 50, '20240101000000')",
        'CREATE TABLE revision (rev_id INT PRIMARY KEY, rev_page INT, rev_actor INT, rev_timestamp VARCHAR(14),'
            . ' rev_len INT, rev_parent_id INT, rev_deleted INT)',
        "INSERT INTO revision VALUES (1, 1, 1, '20240101000000', 100, 0, 0), (2, 2, 1, '20240102000000', 50, 0, 0)",
        'CREATE TABLE categorylinks (cl_from INT, cl_to VARCHAR(191), cl_sortkey VARCHAR(191),'
            . ' PRIMARY KEY (cl_from, cl_to))',
        "INSERT INTO categorylinks VALUES (1, 'Start', 'MAIN'), (2, 'Start', 'HELP')",
        'CREATE TABLE objectcache (keyname VARCHAR(191) PRIMARY KEY, value BYTES, exptime VARCHAR(14))',
        "INSERT INTO objectcache VALUES ('wiki:messages:en', 'x', '20380101000000')",
    ];

    private const OF_MARIADB = [
        'ALTER TABLE posts ADD FULLTEXT KEY posts_words (title, body)',
        'CREATE TABLE odd (id INT PRIMARY KEY, dblink_id INT, `delete` INT, `call` INT, `copy` VARCHAR(20),'
            . ' lo_import INT, `into` INT, `outfile` VARCHAR(20), `select` INT, `set` INT, tx_read_only INT,'
            . ' `a``b` INT, `global` INT, `write` INT, `drop table` INT, `#x` INT, `--y` INT)',
        "INSERT INTO odd VALUES (1, 2, 3, 4, 'five', 6, 7, 'eight', 9, 10, 0, 12, 13, 14, 15, 16, 17)",
        'CREATE TABLE `order` (id INT PRIMARY KEY, `key` INT)',
        'INSERT INTO `order` VALUES (1, 2)',
        'CREATE TABLE élèves (id INT PRIMARY KEY, prénom VARCHAR(50))',
        "INSERT INTO élèves VALUES (1, 'Zoé')",
        'CREATE TABLE places (id INT PRIMARY KEY, at POINT NOT NULL)',
        'INSERT INTO places VALUES (1, POINT(1, 2)), (2, POINT(10, 20))',
        'CREATE FUNCTION with_tax(price DECIMAL(10, 2)) RETURNS DECIMAL(10, 2) DETERMINISTIC RETURN price * 1.2',
        'CREATE FUNCTION count_posts(of INT) RETURNS INT READS SQL DATA'
            . ' RETURN (SELECT COUNT(*) FROM posts WHERE user_id = of)',
        'CREATE PROCEDURE says_one() SELECT 1',
        'CREATE TRIGGER posts_look BEFORE UPDATE ON posts FOR EACH ROW SET NEW.views = NEW.views',
        'CREATE SEQUENCE numbers',
        // WordPress's.
        'CREATE TABLE wp_posts (ID BIGINT UNSIGNED PRIMARY KEY, post_author BIGINT, post_date DATETIME,'
            . ' post_content LONGTEXT, post_title TEXT, post_status VARCHAR(20), post_name VARCHAR(200),'
            . ' post_parent BIGINT, post_type VARCHAR(20), menu_order INT, comment_count BIGINT, post_mime_type TEXT,'
            . ' post_password VARCHAR(20))',
        "INSERT INTO wp_posts VALUES (1, 1, '2024-01-01', 'Welcome', 'Hello world!', 'publish', 'hello-world', 0,"
            . " 'post', 0, 1, '', ''),"
            . " (2, 1, '2024-01-02', 'About', 'Sample', 'publish', 'sample', 0, 'page', 0, 0, '', '')",
        'CREATE TABLE wp_postmeta (meta_id BIGINT PRIMARY KEY, post_id BIGINT, meta_key VARCHAR(191),'
            . ' meta_value LONGTEXT)',
        "INSERT INTO wp_postmeta VALUES (1, 1, '_edit_last', '1'), (2, 1, '_price', '19.5')",
        'CREATE TABLE wp_options (option_id BIGINT PRIMARY KEY, option_name VARCHAR(191), option_value LONGTEXT,'
            . ' autoload VARCHAR(20))',
        "INSERT INTO wp_options VALUES (1, 'siteurl', 'http://shop.example', 'yes'), (2, 'blogname', 'Shop', 'yes'),"
            . " (3, '_transient_doing_cron', '1', 'no')",
        'CREATE TABLE wp_terms (term_id BIGINT PRIMARY KEY, name VARCHAR(200), slug VARCHAR(200))',
        "INSERT INTO wp_terms VALUES (1, 'Uncategorized', 'uncategorized')",
        'CREATE TABLE wp_term_taxonomy (term_taxonomy_id BIGINT PRIMARY KEY, term_id BIGINT, taxonomy VARCHAR(32),'
            . ' description LONGTEXT, parent BIGINT, count BIGINT)',
        "INSERT INTO wp_term_taxonomy VALUES (1, 1, 'category', '', 0, 1)",
        'CREATE TABLE wp_term_relationships (object_id BIGINT, term_taxonomy_id BIGINT, term_order INT)',
        'INSERT INTO wp_term_relationships VALUES (1, 1, 0)',
        'CREATE TABLE wp_users (ID BIGINT PRIMARY KEY, user_login VARCHAR(60), user_email VARCHAR(100),'
            . ' user_nicename VARCHAR(50), display_name VARCHAR(250))',
        "INSERT INTO wp_users VALUES (1, 'admin', 'ada@shop.example', 'admin', 'Ada')",
        'CREATE TABLE wp_usermeta (umeta_id BIGINT PRIMARY KEY, user_id BIGINT, meta_key VARCHAR(191),'
            . ' meta_value LONGTEXT)',
        "INSERT INTO wp_usermeta VALUES (1, 1, 'wp_capabilities', 'a:1:{s:13:\"administrator\";b:1;}')",
        'CREATE TABLE wp_comments (comment_ID BIGINT PRIMARY KEY, comment_post_ID BIGINT, comment_author TINYTEXT,'
            . ' comment_date_gmt DATETIME, comment_approved VARCHAR(20), comment_type VARCHAR(20))',
        "INSERT INTO wp_comments VALUES (1, 1, 'A WordPress Commenter', '2024-01-01', '1', 'comment')",
        // Magento's.
        'CREATE TABLE catalog_product_entity (entity_id INT PRIMARY KEY, attribute_set_id INT, type_id VARCHAR(32),'
            . ' sku VARCHAR(64), created_at TIMESTAMP NULL)',
        "INSERT INTO catalog_product_entity VALUES (1, 4, 'simple', 'A-1', NULL), (2, 4, 'configurable', 'B-2', NULL)",
        'CREATE TABLE catalog_product_entity_varchar (value_id INT PRIMARY KEY, attribute_id INT, store_id INT,'
            . ' entity_id INT, value VARCHAR(255))',
        "INSERT INTO catalog_product_entity_varchar VALUES (1, 73, 0, 1, 'Bag'), (2, 73, 1, 1, 'Tasche')",
        'CREATE TABLE eav_attribute (attribute_id INT PRIMARY KEY, entity_type_id INT, attribute_code VARCHAR(191))',
        "INSERT INTO eav_attribute VALUES (73, 4, 'name')",
        'CREATE TABLE core_config_data (config_id INT PRIMARY KEY, scope VARCHAR(8), scope_id INT, path VARCHAR(191),'
            . ' value TEXT)',
        "INSERT INTO core_config_data VALUES (1, 'default', 0, 'web/unsecure/base_url', 'http://shop.example/')",
        'CREATE TABLE url_rewrite (url_rewrite_id INT PRIMARY KEY, request_path VARCHAR(191), target_path VARCHAR(191),'
            . ' store_id INT, entity_type VARCHAR(32))',
        "INSERT INTO url_rewrite VALUES (1, 'bag.html', 'catalog/product/view/id/1', 1, 'product')",
        'CREATE TABLE sales_order (entity_id INT PRIMARY KEY, state VARCHAR(32), status VARCHAR(32), store_id INT,'
            . ' grand_total DECIMAL(20, 4), created_at TIMESTAMP NULL)',
        "INSERT INTO sales_order VALUES (1, 'new', 'pending', 1, 12.5, '2024-01-01 00:00:00')",
        // What it has collected is what tells it how to ask. It answers with rows, so that nothing may follow.
        'ANALYZE TABLE users, posts, comments, tags, orders, page, categories',
    ];

    private const OF_POSTGRESQL = [
        'CREATE INDEX posts_data ON posts USING gin (data)',
        "CREATE INDEX posts_words ON posts USING gin (to_tsvector('english', title || ' ' || coalesce(body, '')))",
        'CREATE TABLE odd (id INT PRIMARY KEY, dblink_id INT, "delete" INT, "call" INT, copy VARCHAR(20),'
            . ' lo_import INT, lo_created INT, "into" INT, program VARCHAR(20), "select" INT, "set" INT,'
            . ' transaction_read_only INT, "a""b" INT, "write" INT, "drop table" INT, "--y" INT, menu INT, "mask" INT,'
            . ' crosstab INT)',
        "INSERT INTO odd VALUES (1, 2, 3, 4, 'five', 6, 7, 8, 'nine', 10, 11, 0, 13, 14, 15, 16, 6, 3, 17)",
        'CREATE TABLE "order" (id INT PRIMARY KEY, "Key" INT)',
        'INSERT INTO "order" VALUES (1, 2)',
        'CREATE TABLE élèves (id INT PRIMARY KEY, prénom VARCHAR(50))',
        "INSERT INTO élèves VALUES (1, 'Zoé')",
        'CREATE TABLE things (id INT PRIMARY KEY, labels TEXT[], span INT4RANGE, seen TIMESTAMPTZ, token UUID,'
            . ' address INET, raw BYTEA)',
        "INSERT INTO things VALUES (1, '{a,b}', '[1,5)', '2024-01-01 00:00:00+00',"
            . " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.1', '\\x00ff27'),"
            . " (2, '{c}', '[5,9)', NULL, NULL, NULL, NULL)",
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
        'CREATE DOMAIN positive AS int CHECK (VALUE > 0)',
        'CREATE SEQUENCE numbers START 5',
        'CREATE MATERIALIZED VIEW totals AS SELECT user_id, SUM(total) AS total FROM orders GROUP BY user_id',
        'CREATE FUNCTION with_tax(price numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT price * 1.2 $$',
        'CREATE FUNCTION count_posts(of int) RETURNS bigint LANGUAGE plpgsql STABLE AS'
            . ' $$ BEGIN RETURN (SELECT COUNT(*) FROM posts WHERE user_id = of); END $$',
        'CREATE PROCEDURE says_one() LANGUAGE sql AS $$ SELECT 1 $$',
        'CREATE EXTENSION tablefunc',
        'CREATE EXTENSION pg_trgm',
        'CREATE EXTENSION hstore',
        "SELECT lo_from_bytea(424242, 'a large object')",
        "COMMENT ON TABLE posts IS 'What is written'",
        'CREATE TABLE events (id INT, at DATE NOT NULL) PARTITION BY RANGE (at)',
        "CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
        "INSERT INTO events VALUES (1, '2024-05-06')",
        'CREATE SCHEMA other',
        'CREATE TABLE other.users (id INT PRIMARY KEY, name TEXT)',
        "INSERT INTO other.users VALUES (7, 'Other')",
        // What it has collected is what tells it how to ask.
        'ANALYZE',
    ];

    private function __construct()
    {
    }

    /**
     * @return list<string> the statements that make them
     */
    public static function of(string $driver): array
    {
        $common = array_map(
            static fn (string $sql): string => strtr($sql, $driver === 'mysql'
                ? ['%s' => '`', '%%' => '%', 'WORDS' => 'JSON', 'BYTES' => 'BLOB', ' TIME ' => ' DATETIME ']
                : ['%s' => '"', '%%' => '%', 'WORDS' => 'JSONB', 'BYTES' => 'BYTEA', ' TIME ' => ' TIMESTAMP ']),
            self::COMMON,
        );

        return [...$common, ...$driver === 'mysql' ? self::OF_MARIADB : self::OF_POSTGRESQL];
    }
}
