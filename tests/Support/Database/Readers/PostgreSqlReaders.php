<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

/**
 * What applications ask PostgreSQL, see Readers. A statement with values is a list that begins with it.
 */
final class PostgreSqlReaders
{
    /** @var array<string, list<string|list<int|string|null>>> each for one connection */
    public const GROUPS = [
        'plain' => [
            'SELECT 1', 'select * from users', 'SELECT * FROM "users" WHERE "users"."id" = 1 LIMIT 1',
            ['SELECT * FROM users WHERE email = ? AND id > ?', 'ada@shop.example', 0],
            ['SELECT * FROM users WHERE id IN (?, ?, ?) ORDER BY name DESC LIMIT ? OFFSET ?', 1, 2, 3, 10, 0],
            ["SELECT name FROM users WHERE name ILIKE ? ESCAPE '!'", 'a%'],
            'SELECT COUNT(*) AS aggregate FROM users',
            'SELECT EXISTS(SELECT * FROM users WHERE id = 1) AS "exists"',
            '(SELECT 1)', '((SELECT 1))', 'SELECT 1;', "\n\t  SELECT\n 1 \n;\n", 'SELECT', 'TABLE users',
            'TABLE ONLY users ORDER BY id LIMIT 1', "VALUES (1, 'a'), (2, 'b')",
            'SELECT DISTINCT ON (user_id) user_id, id FROM orders ORDER BY user_id, id DESC',
            'SELECT u.*, p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id ORDER BY u.id, p.id',
            'SELECT * FROM users u FULL OUTER JOIN orders o USING (id) ORDER BY id',
            'SELECT * FROM users NATURAL JOIN (SELECT 1 AS id) AS one',
            'SELECT u.name, l.title FROM users u LEFT JOIN LATERAL (SELECT title FROM posts p WHERE p.user_id = u.id'
                . ' ORDER BY p.id LIMIT 1) l ON true ORDER BY u.id',
            'SELECT u.name, (SELECT COUNT(*) FROM posts p WHERE p.user_id = u.id) AS posts FROM users u ORDER BY 1',
            'SELECT * FROM posts WHERE user_id = ANY (SELECT id FROM users) AND views >= ALL (ARRAY[0]) ORDER BY id',
            "SELECT * FROM orders WHERE (user_id, status) IN ((1, 'paid'), (2, 'void')) ORDER BY id",
            "SELECT CASE WHEN views > 10 THEN 'many' WHEN views > 0 THEN 'some' ELSE 'none' END FROM posts ORDER BY id",
            'SELECT COALESCE(NULL, 1), NULLIF(1, 1), LEAST(1, 2), GREATEST(1, 2), 1 IS DISTINCT FROM NULL',
            'SELECT 1 UNION SELECT 2 UNION ALL SELECT 2 ORDER BY 1 DESC LIMIT 2',
            '(SELECT id FROM users ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM posts ORDER BY id DESC LIMIT 1)',
            'SELECT 1 EXCEPT SELECT 2', 'SELECT 1 INTERSECT SELECT 1', 'SELECT * FROM paid_orders ORDER BY id',
            'SELECT * FROM totals ORDER BY user_id', 'SELECT with_tax(10), count_posts(1)', 'SELECT * FROM other.users',
            'SELECT shop.public.users.name FROM shop.public.users WHERE id = 1',
            'SELECT * FROM generate_series(1, 5) AS n',
            "SELECT * FROM generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day') AS day",
            'SELECT * FROM users FETCH FIRST 1 ROWS ONLY',
            'SELECT id FROM users ORDER BY id OFFSET 1 ROW FETCH NEXT ROW ONLY',
            'SELECT total FROM orders ORDER BY total FETCH FIRST 1 ROW WITH TIES',
            'SELECT id FROM users LIMIT 0',
            'SELECT id FROM users TABLESAMPLE BERNOULLI (100) ORDER BY id',
            "SELECT '2024-01-31'::date + INTERVAL '1 month', age('2024-02-01', '2024-01-01'), date_trunc('month',"
                . " TIMESTAMP '2024-05-06'), EXTRACT(YEAR FROM DATE '2024-05-06')",
            "SELECT to_char(created_at, 'YYYY-MM') AS month, SUM(total) FROM orders GROUP BY 1 ORDER BY 1",
            "SELECT TIMESTAMPTZ '2024-01-01 00:00+00' AT TIME ZONE 'Europe/Berlin'",
            "SELECT CAST('1' AS integer), '1'::int8, int4 '5', 7 / 2, 7 % 2, 2 ^ 3, |/ 4, @ -5, 1 << 3, 6 # 3, ~0",
            "SELECT 'a' ~ '^[a-z]\$', 'A' ~* 'a', 'a' !~ 'b', 'abc' SIMILAR TO '%(b|d)%', 'a' LIKE 'A'",
            "SELECT replace(name, 'a', 'b'), overlay(name placing 'x' from 1), left(name, 2), repeat('a', 3) FROM users"
                . ' ORDER BY id',
            'SELECT current_user, session_user, current_database(), current_schema, current_catalog, version()',
            "SELECT id, labels[1], labels[1 : 2], array_length(labels, 1), span @> 3, host(address), encode(raw, 'hex')"
                . ' FROM things ORDER BY id',
            "SELECT id FROM things WHERE labels && ARRAY['a', 'z'] OR 'c' = ANY (labels) ORDER BY id",
            'SELECT raw, token, seen FROM things ORDER BY id', 'SELECT unnest(labels), id FROM things ORDER BY 2, 1',
            'SELECT * FROM unnest(ARRAY[1, 2]) WITH ORDINALITY',
            "SELECT 'happy'::mood > 'sad', enum_range(NULL::mood), 5::positive",
            'SELECT (users).name, users FROM users ORDER BY id', "SELECT ROW(1, 'a'), (ROW(1, 2)).f1",
            'SELECT users.*::text FROM users ORDER BY id', 'SELECT last_value, is_called FROM numbers',
            "SELECT pg_get_serial_sequence('users', 'id')",
            "SELECT * FROM events WHERE at BETWEEN '2024-01-01' AND '2024-12-31'",
            'SELECT lo_get(424242)', "SELECT convert_from(lo_get(424242, 2, 5), 'UTF8')",
            'SELECT oid FROM pg_largeobject_metadata WHERE oid = 424242',
            'SELECT * FROM users, ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS g (a, b) ORDER BY 1, 4,'
                . ' 5',
            'SELECT MAX(id) FILTER (WHERE id < 3) FROM orders',
            'SELECT id FROM orders ORDER BY total USING > NULLS LAST',
        ],
        'aggregates, windows and common table expressions' => [
            'SELECT user_id, COUNT(*), SUM(total), AVG(total), MIN(total), MAX(total) FROM orders GROUP BY user_id'
                . ' HAVING SUM(total) > 1 ORDER BY user_id',
            "SELECT user_id, string_agg(DISTINCT status, '; ' ORDER BY status DESC), array_agg(id ORDER BY id) FROM"
                . ' orders GROUP BY user_id ORDER BY user_id',
            'SELECT user_id, status, SUM(total) FROM orders GROUP BY GROUPING SETS ((user_id), (status), ()) ORDER BY'
                . ' 1, 2',
            'SELECT user_id, status, GROUPING(user_id), SUM(total) FROM orders GROUP BY ROLLUP (user_id, status) ORDER'
                . ' BY 1, 2',
            'SELECT user_id, currency, COUNT(*) FROM orders GROUP BY CUBE (user_id, currency) ORDER BY 1, 2',
            'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total), mode() WITHIN GROUP (ORDER BY status) FROM'
                . ' orders',
            'SELECT bool_and(total > 1), every(total > 1), bit_or(id), stddev(total), corr(id, total) FROM orders',
            'SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY total DESC) AS n FROM orders ORDER BY id',
            'SELECT id, SUM(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM'
                . ' orders',
            'SELECT id, lag(total, 1) OVER w, lead(total) OVER w, first_value(id) OVER w, ntile(2) OVER w FROM orders'
                . ' WINDOW w AS (ORDER BY id)',
            'SELECT id, rank() OVER (ORDER BY status), dense_rank() OVER (ORDER BY status) FROM orders ORDER BY id',
            "WITH paid AS (SELECT * FROM orders WHERE status = 'paid') SELECT COUNT(*) FROM paid",
            'WITH a AS MATERIALIZED (SELECT 1 AS n), b (m) AS NOT MATERIALIZED (SELECT n + 1 FROM a) SELECT * FROM a,'
                . ' b',
            'WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 10) SELECT SUM(n)'
                . ' FROM numbers',
            'WITH RECURSIVE tree AS (SELECT id, name, 0 AS depth, ARRAY[position] AS path FROM categories WHERE'
                . ' parent_id IS NULL UNION ALL SELECT c.id, c.name, depth + 1, path || c.position FROM categories c'
                . ' JOIN tree ON c.parent_id = tree.id) SELECT * FROM tree ORDER BY path, id',
            'WITH RECURSIVE tree (id, parent_id) AS (SELECT id, parent_id FROM categories WHERE id = 1 UNION SELECT'
                . ' c.id, c.parent_id FROM categories c JOIN tree t ON c.parent_id = t.id) SEARCH BREADTH FIRST BY id'
                . ' SET o CYCLE id SET looped USING path SELECT id, looped FROM tree ORDER BY o',
            [
                'WITH latest AS (SELECT user_id, MAX(created_at) AS at FROM orders WHERE status <> ? GROUP BY user_id)'
                    . ' SELECT o.id FROM orders o JOIN latest l ON l.user_id = o.user_id AND l.at = o.created_at ORDER'
                    . ' BY o.id',
                'void',
            ],
            'WITH deleted AS (SELECT id FROM posts WHERE deleted_at IS NULL), "insert" AS (SELECT 1) SELECT * FROM'
                . ' deleted ORDER BY id',
            'WITH v (a, b) AS (VALUES (1, 2), (3, 4)) SELECT a + b FROM v ORDER BY 1',
        ],
        'JSON' => [
            "SELECT data->>'lang', data->'tags'->0, data#>>'{meta,stars}', data #> '{tags}' FROM posts ORDER BY id",
            'SELECT id FROM posts WHERE data @> \'{"lang": "en"}\' ORDER BY id',
            "SELECT id FROM posts WHERE data ?? 'meta' AND data->'tags' ??| array['sql', 'x'] AND data ??& '{lang}'"
                . ' ORDER BY id',
            ["SELECT id FROM posts WHERE data->>'lang' = ? AND data->'tags' ?? ? ORDER BY id", 'en', 'php'],
            ['SELECT id FROM posts WHERE ("data"->\'tags\')::jsonb @> ? ORDER BY id', '["sql"]'],
            "SELECT id FROM posts WHERE jsonb_path_exists(data, '\$.meta.stars ? (@ > 4)')",
            "SELECT id FROM posts WHERE data @@ '\$.meta.stars > 3'",
            "SELECT id FROM posts WHERE data @?? '\$.meta' ORDER BY 1",
            'SELECT jsonb_path_query_array(data, \'$.tags[*] ? (@ like_regex "^s")\') FROM posts ORDER BY id',
            "SELECT p.id, t.tag FROM posts p CROSS JOIN LATERAL jsonb_array_elements_text(p.data->'tags') AS t (tag)"
                . ' ORDER BY 1, 2',
            'SELECT key, value FROM posts, jsonb_each(data) WHERE id = 1 ORDER BY key',
            "SELECT jsonb_build_object('id', id, 'a', jsonb_build_array(1, 'b', NULL)), to_jsonb(users),"
                . ' row_to_json(users) FROM users ORDER BY id',
            'SELECT json_agg(name ORDER BY id), jsonb_object_agg(id, name) FROM users',
            "SELECT jsonb_set(data, '{lang}', '\"fr\"'), data - 'lang', data #- '{meta,stars}', data || '{\"x\": 1}',"
                . " jsonb_insert(data, '{tags,0}', '\"new\"'), jsonb_strip_nulls(data), jsonb_pretty(data) FROM posts"
                . ' ORDER BY id',
            'SELECT * FROM jsonb_to_recordset(\'[{"a": 1, "b": "x"}]\') AS t (a int, b text)',
            "SELECT jsonb_typeof(data), jsonb_array_length(data->'tags'), jsonb_object_keys(data) FROM posts ORDER BY"
                . ' 1, 2, 3',
            "SELECT ('{\"a\": [1, 2]}'::jsonb)['a'][0]",
        ],
        'full text' => [
            "SELECT id FROM posts WHERE to_tsvector('english', title) @@ to_tsquery('english', 'read & !draft')",
            [
                "SELECT id FROM posts WHERE to_tsvector('english', title || ' ' || coalesce(body, '')) @@"
                    . " plainto_tsquery('english', ?) ORDER BY id",
                'reading',
            ],
            'SELECT id, ts_rank(to_tsvector(body), websearch_to_tsquery(\'"drop table" or outfile -x\')) FROM posts'
                . ' ORDER BY id',
            "SELECT ts_headline('english', body, phraseto_tsquery('how to read'), 'StartSel=<b>, StopSel=</b>') FROM"
                . ' posts ORDER BY id',
            "SELECT setweight(to_tsvector(title), 'A') || to_tsvector(coalesce(body, '')) FROM posts ORDER BY id",
            "SELECT word, ndoc FROM ts_stat('SELECT to_tsvector(title) FROM posts') ORDER BY ndoc DESC, word LIMIT 5",
            "SELECT ts_rewrite('a & b'::tsquery, 'a'::tsquery, 'c'::tsquery)",
            "SELECT ts_rewrite(to_tsquery('english', 'music'), to_tsquery('music'), to_tsquery('song | music'))",
            "SELECT name, similarity(name, 'ada'), name % 'Ada', name <-> 'Ad' FROM users ORDER BY name <-> 'Ada'",
            "SELECT * FROM ts_debug('english', 'reads')",
            "SELECT to_tsquery('a <-> b'), numnode(to_tsquery('a & b'))",
        ],
        'extensions and XML' => [
            "SELECT * FROM crosstab('SELECT user_id, status, COUNT(*)::int FROM orders GROUP BY 1, 2 ORDER BY 1, 2',"
                . " 'SELECT DISTINCT status FROM orders ORDER BY 1') AS ct (user_id int, open int, paid int, void int)",
            'SELECT * FROM crosstab($$SELECT user_id, status, total FROM orders WHERE status <> \'void\' ORDER BY 1,'
                . ' 2$$) AS ct (user_id int, a numeric, b numeric)',
            "SELECT * FROM public.crosstab('SELECT user_id, status, total FROM orders WHERE status NOT LIKE ''v\\_%''"
                . " ORDER BY 1, 2'::text) AS ct (user_id int, a numeric, b numeric)",
            "SELECT * FROM connectby('categories', 'id', 'parent_id', '1', 0, '~') AS t (id int, parent_id int, level"
                . ' int, branch text)',
            "SELECT 'a=>1, b=>2'::hstore -> 'a', akeys('a=>1'::hstore), 'a=>1'::hstore ?? 'a'",
            'SELECT xmlelement(name users, xmlagg(xmlelement(name u, name) ORDER BY id)) FROM users',
            "SELECT query_to_xml('SELECT id FROM users ORDER BY id', true, false, '')",
            "SELECT table_to_xml('users', false, true, '')", "SELECT xpath('/a/b/text()', '<a><b>1</b></a>'::xml)",
        ],
        'literals' => [
            "SELECT 'it''s', E'it\\'s\\n', 'C:\\temp\\', U&'d\\0061t\\+000061', B'01', X'1F', N'n'",
            "SELECT '; DROP TABLE users; --', '/* no comment */', '-- none', '*/', '\"'",
            "SELECT 'SET default_transaction_read_only = off; COMMIT; DELETE FROM users'",
            "SELECT 'lo_import(''/etc/passwd'')', 'pg_notify(a, b)', 'dblink(c)', 'COPY x TO PROGRAM ''y'''",
            'SELECT $$it\'s; DROP TABLE users$$, $a$ $$ lo_creat(1) $$ $a$, $q$SELECT dblink(\'x\')$q$',
            "SELECT id FROM posts WHERE body LIKE '%lo_import(%' OR body ILIKE '%PG_NOTIFY()%' ORDER BY id",
            'SELECT id FROM posts WHERE body ~ \'(lo_import|dblink_exec|pg_notify)\s*\(\' ORDER BY id',
            "SELECT 'a'\n'b' AS ab", "SELECT 'Müller', '東京', '😀', 'é'",
            "SELECT * FROM posts WHERE title = 'Müller and 東京'",
            'SELECT 1.5e3, .5, 5., -1, +1, 1e-2, TRUE, FALSE, NULL',
            "SELECT DATE '2024-01-02', TIME '03:04:05', INTERVAL '1' DAY, '2 days'::interval",
            "SELECT '\$\$ not quoted \$\$', '\${x}', '%s', '%d', 'a\nb;\n-- c'",
            "SELECT E'\\\\', E'lo_unlink(1)\\'', 'pg_reload_conf()\\'",
            [
                'SELECT ?::text AS a, ?::text AS b, ?::text AS c',
                "'; COMMIT; DELETE FROM users; --", '$$ lo_unlink(1) $$', '\\',
            ],
            ['SELECT ?::text AS a, ?::text AS b', null, "/* pg_notify('a', 'b') */ dblink('x') \$\$ ; -- U&\"x\""],
            ['SELECT id FROM posts WHERE title LIKE ? OR body LIKE ? ORDER BY id', '%lo_import(1)%', "%'%"],
            "SELECT 2.5E-3, 1e-2, 'pg_notify()'",
            "SELECT '1'::text || 'pg_notify(' || quote_literal('x') || ')' AS call",
        ],
        'comments' => [
            "-- a comment\nSELECT 1", '/* a comment */ SELECT 1',
            '/* a /* nested */ one */ SELECT /* two */ 1 /* three */',
            'SELECT 1 -- SET default_transaction_read_only = off', "SELECT 1 /* lo_creat(1); dblink('x') */",
            "SELECT 1 -- pg_notify('a', 'b')\n, 2", 'SELECT /* it\'s "quoted */ 1', 'SELECT/**/1/**/+/**/1',
            'SELECT 1--1',
            '/* App\Http\Controllers\PostController::delete */ SELECT id FROM users ORDER BY id',
            "SELECT id FROM users ORDER BY id /* route='%2Fposts%2Fwrite',framework='laravel:8' */",
            'SELECT /*+ IndexScan(users) */ id FROM users ORDER BY id', 'SELECT 5*/* times */2',
            'BEGIN /* Wikimedia\Rdbms\Database::begin (write) */', 'SELECT 1 /* in it */', 'COMMIT /* done */',
            'START TRANSACTION READ ONLY -- PostController@write', 'COMMIT -- done',
            'SET TRANSACTION READ ONLY /* write nothing */',
        ],
        'names like keywords' => [
            'SELECT dblink_id, "delete", "call", copy, lo_import, lo_created FROM odd',
            'SELECT o.dblink_id, o."delete", o."call", o.copy, o.lo_created, o."into", o.program FROM odd o',
            'SELECT o.delete, o.call, o.into, o.set, o.select, o.write FROM odd o',
            'SELECT o.lo_import FROM odd o', 'SELECT o.crosstab FROM odd o', 'SELECT crosstab FROM odd',
            'SELECT "odd"."lo_import" FROM "odd"', 'SELECT odd.* FROM odd',
            'SELECT lo_import FROM odd WHERE lo_import = 6 ORDER BY lo_import',
            'SELECT 1 AS call, 2 AS "delete", 3 AS copy, 4 AS lo_import, 5 AS dblink, 6 AS pg_notify, 7 AS vacuum',
            'SELECT "a""b", "drop table", "--y" FROM odd', 'SELECT "set", "write", program FROM odd',
            'SELECT transaction_read_only FROM odd WHERE transaction_read_only = 0',
            'SELECT * FROM "order" WHERE "Key" = 2', 'SELECT "order"."Key" FROM "public"."order"',
            'SELECT prénom FROM élèves', 'SELECT "prénom" FROM "élèves"',
            "SELECT prénom, 'lo_import(1)' AS élément FROM élèves", 'SELECT menu&"mask" FROM odd',
            'SELECT 1 AS begin, 2 AS commit, 3 AS "end", 4 AS start, 5 AS listen, 6 AS checkpoint, 7 AS "do", 8 AS'
                . ' load',
            'SELECT copy.id FROM users AS copy ORDER BY 1', 'SELECT "load".id FROM users "load" ORDER BY 1',
            'SELECT dblink.id FROM (SELECT 1 AS id) AS dblink', 'SELECT d.n FROM (VALUES (1)) AS d (n)',
        ],
        'Laravel' => [
            "set names 'utf8'", "set time zone 'UTC'", 'set search_path to "public"', "set application_name to 'shop'",
            'set session characteristics as transaction isolation level read committed',
            [
                'select * from information_schema.tables where table_catalog = ? and table_schema = ? and table_name ='
                    . " ? and table_type = 'BASE TABLE'",
                'shop', 'public', 'users',
            ],
            [
                'select column_name from information_schema.columns where table_catalog = ? and table_schema = ? and'
                    . ' table_name = ? order by ordinal_position',
                'shop', 'public', 'posts',
            ],
            "select tablename, concat('\"', schemaname, '\".\"', tablename, '\"') as qualifiedname from"
                . " pg_catalog.pg_tables where schemaname in ('public') order by 1",
            "select viewname from pg_catalog.pg_views where schemaname in ('public')",
            'select distinct pg_type.typname from pg_type inner join pg_enum on pg_enum.enumtypid = pg_type.oid',
            'select c.relname as name, n.nspname as schema, pg_total_relation_size(c.oid) > 0 as size,'
                . " obj_description(c.oid, 'pg_class') as comment from pg_class c, pg_namespace n where c.relkind in"
                . " ('r', 'p') and n.oid = c.relnamespace and n.nspname not in ('pg_catalog', 'information_schema')"
                . ' order by 1, 2',
            'select a.attname as name, t.typname as type_name, format_type(a.atttypid, a.atttypmod) as type, (select'
                . ' tc.collcollate from pg_catalog.pg_collation tc where tc.oid = a.attcollation) as collation, not'
                . ' a.attnotnull as nullable, (select pg_get_expr(adbin, adrelid) from pg_attrdef where c.oid ='
                . ' pg_attrdef.adrelid and pg_attrdef.adnum = a.attnum) as default from pg_attribute a, pg_class c,'
                . " pg_type t where c.relname = 'posts' and a.attnum > 0 and a.attrelid = c.oid and a.atttypid = t.oid"
                . ' order by a.attnum',
            [
                'select * from "posts" where ("data"->>\'lang\')::text = ? and "deleted_at" is null order by "id" asc',
                'en',
            ],
            'select max("batch") as aggregate from "migrations"',
            'select "migration" from "migrations" order by "batch" asc, "migration" asc',
            ['select * from "cache" where "key" = ? limit 1', 'shop_cache_based'],
            ['select * from "web_sessions" where "id" = ? limit 1', 'abc'],
            ['select count(*) as aggregate from "jobs" where "queue" = ?', 'default'],
        ],
        'Symfony and Doctrine' => [
            'SELECT quote_ident(table_name) AS table_name, table_schema AS schema_name FROM information_schema.tables'
                . " WHERE table_schema NOT LIKE 'pg\\_%' AND table_schema != 'information_schema' AND table_type !="
                . " 'VIEW' ORDER BY 1, 2",
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT LIKE 'pg\\_%' AND schema_name !="
                . " 'information_schema' ORDER BY 1",
            'SELECT sequence_name AS relname, sequence_schema AS schemaname, minimum_value AS min_value, increment AS'
                . " increment_by FROM information_schema.sequences WHERE sequence_catalog = 'shop'",
            'SELECT a.attnum, quote_ident(a.attname) AS field, t.typname AS type, format_type(a.atttypid, a.atttypmod)'
                . " AS complete_type, (SELECT 't' FROM pg_index WHERE c.oid = pg_index.indrelid AND pg_index.indkey[0]"
                . " = a.attnum AND pg_index.indisprimary = 't') AS pri, (SELECT pg_description.description FROM"
                . ' pg_description WHERE pg_description.objoid = c.oid AND a.attnum = pg_description.objsubid) AS'
                . ' comment FROM pg_attribute a, pg_class c, pg_type t, pg_namespace n WHERE n.nspname ='
                . " ANY(current_schemas(false)) AND c.relname = 'posts' AND a.attnum > 0 AND a.attrelid = c.oid AND"
                . ' a.atttypid = t.oid AND n.oid = c.relnamespace ORDER BY a.attnum',
            'SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true) as condef FROM pg_catalog.pg_constraint r'
                . " WHERE r.conrelid = 'posts'::regclass AND r.contype = 'f'",
            'SELECT quote_ident(relname) as relname, pg_index.indisunique, pg_index.indisprimary, pg_index.indkey,'
                . ' pg_get_expr(indpred, indrelid) AS where FROM pg_class, pg_index WHERE oid IN (SELECT indexrelid'
                . " FROM pg_index si, pg_class sc WHERE sc.relname = 'posts' AND sc.oid = si.indrelid) AND"
                . ' pg_index.indexrelid = oid ORDER BY 1',
            'SELECT quote_ident(table_name) AS viewname, view_definition AS definition FROM information_schema.views'
                . " WHERE view_definition IS NOT NULL AND table_schema = 'public'",
            'SELECT datname FROM pg_database ORDER BY 1', 'SELECT CURRENT_DATABASE()', 'SHOW search_path',
            "SELECT min_value, increment_by FROM pg_sequences WHERE sequencename = 'numbers'",
            [
                'SELECT u0_.id AS id_0, u0_.name AS name_1, p1_.id AS id_2 FROM users u0_ INNER JOIN posts p1_ ON'
                    . ' u0_.id = p1_.user_id AND (p1_.status = ?) WHERE u0_.id IN (?, ?) ORDER BY p1_.id ASC',
                'published', 1, 2,
            ],
            'SELECT DISTINCT id_0, MIN(sclr_1) AS dctrn_minrownum FROM (SELECT u0_.id AS id_0, ROW_NUMBER() OVER(ORDER'
                . ' BY u0_.id DESC) AS sclr_1 FROM users u0_) dctrn_result GROUP BY id_0 ORDER BY dctrn_minrownum ASC'
                . ' LIMIT 5',
            [
                'SELECT m.* FROM messenger_messages m WHERE (m.queue_name = ?) AND (m.delivered_at is null OR'
                    . ' m.delivered_at < ?) AND (m.available_at <= ?) ORDER BY available_at ASC LIMIT 1',
                'default', '2024-06-01 00:00:00', '2024-06-01 00:00:00',
            ],
            'LISTEN "messenger_messages"', 'UNLISTEN "messenger_messages"', 'UNLISTEN *',
            ['SELECT sess_data, sess_lifetime, sess_time FROM sessions WHERE sess_id = ?', 'abc'],
            [
                'SELECT 1 FROM lock_keys WHERE key_id=? AND key_token=? AND key_expiration > CAST(EXTRACT(epoch FROM'
                    . ' NOW()) AS INT)',
                'a', 'b',
            ],
            'SELECT pg_try_advisory_lock(42)', 'SELECT pg_try_advisory_lock_shared(7, 8)',
            'SELECT pg_advisory_unlock(42)', 'SELECT pg_advisory_unlock_all()', 'SELECT pg_advisory_lock(1)',
            'SELECT pg_advisory_unlock(1)',
        ],
        'Drupal' => [
            'SELECT VERSION()', 'SHOW standard_conforming_strings', "SET client_min_messages TO 'warning'",
            'SELECT "name", "route", "fit" FROM "router" WHERE "pattern_outline" IN (\'/node/1\', \'/node/%\') AND'
                . ' "number_parts" >= 2',
            'SELECT "cid", "data", "created", "expire" FROM "cache_default" WHERE "cid" IN ( \'menu:1\' ) ORDER BY'
                . ' "cid"',
            [
                'SELECT "collection", "name", "data" FROM "config" WHERE "collection" = ? AND "name" IN (?, ?) ORDER BY'
                    . ' "name"',
                '', 'system.site', 'system.theme',
            ],
            'SELECT "base_table"."vid" AS "vid", "base_table"."nid" AS "nid" FROM "node_field_data" "base_table" WHERE'
                . ' ("base_table"."title"::text ILIKE \'w%\') ORDER BY "base_table"."created" DESC LIMIT 10 OFFSET 0',
            'SELECT COUNT(*) AS "expression" FROM (SELECT 1 AS "expression" FROM "node_field_data" "nfd") "subquery"',
            'SELECT "name", "value" FROM "key_value" WHERE "collection" = \'state\'',
            'SELECT column_name, data_type, column_default FROM information_schema.columns WHERE table_schema ='
                . " 'public' AND table_name = 'router' AND ( data_type = 'bytea' OR ( numeric_precision IS NOT NULL AND"
                . " column_default::text LIKE '%nextval%' ) )",
            'SELECT 1 FROM pg_class c INNER JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname ='
                . " 'posts_status' AND c.relkind = 'i'",
            "SELECT conname FROM pg_constraint WHERE conname ~ '^posts' ORDER BY 1",
            "SELECT setting FROM pg_settings WHERE name = 'server_version_num'",
            "SELECT 1 FROM pg_proc WHERE proname = 'rand'", 'BEGIN', 'SAVEPOINT mimic_implicit_commit', 'SELECT 1',
            'RELEASE SAVEPOINT mimic_implicit_commit', 'COMMIT',
        ],
        'Moodle' => [
            "SET NAMES 'UTF8'", 'SET search_path = public',
            'SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace as ns ON ns.oid = c.relnamespace'
                . " WHERE c.relname LIKE 'mdl\\_%' ESCAPE '\\' AND c.relkind = 'r' AND (ns.nspname = current_schema()"
                . ' OR ns.oid = pg_my_temp_schema()) ORDER BY 1',
            "SELECT i.* FROM pg_catalog.pg_indexes i WHERE i.tablename = 'mdl_user'",
            [
                'SELECT u.id, u.username FROM mdl_user u JOIN (SELECT DISTINCT ra.userid FROM mdl_role_assignments ra'
                    . ' WHERE ra.roleid = ?) x ON x.userid = u.id WHERE u.deleted = 0',
                5,
            ],
            "SELECT 'x' FROM mdl_user WHERE lower(firstname) LIKE '%a%' ESCAPE '\\' LIMIT 1",
            'BEGIN ISOLATION LEVEL READ COMMITTED; ',
            'DECLARE moodle_crs1 NO SCROLL CURSOR FOR SELECT * FROM mdl_course ORDER BY id',
            'FETCH 1 FROM moodle_crs1', 'FETCH FORWARD 100 FROM moodle_crs1', 'FETCH ALL moodle_crs1',
            'CLOSE moodle_crs1', 'COMMIT',
            "SELECT name, value FROM mdl_config_plugins WHERE plugin = 'mod_quiz'",
            "SELECT relname, reltuples >= 0 FROM pg_class WHERE relname = 'mdl_user'",
        ],
        'MediaWiki' => [
            "SET client_encoding='UTF8'", "SET datestyle = 'ISO, YMD'", "SET timezone = 'GMT'",
            'SET standard_conforming_strings = on', "SET bytea_output = 'escape'", 'SELECT raw FROM things ORDER BY id',
            "SET bytea_output = 'hex'", 'SELECT current_schemas(false)',
            'SELECT /* WikiPage::pageData (write) */  page_id,page_title FROM "page" WHERE page_namespace = 0 AND'
                . " page_title = 'Main_Page'  LIMIT 1",
            'SELECT /* CategoryViewer */ page_id,cl_sortkey FROM "page" INNER JOIN "categorylinks" ON ((cl_from ='
                . " page_id)) WHERE cl_to = 'Start' ORDER BY cl_sortkey LIMIT 201",
            "SELECT keyname,value,exptime FROM \"objectcache\" WHERE keyname IN ('wiki:messages:en','wiki:x')",
            "SELECT pg_catalog.pg_table_is_visible(c.oid) FROM pg_catalog.pg_class c WHERE c.relname = 'page'",
            "SELECT (CASE(pg_is_in_recovery()) WHEN 'f' THEN 1 ELSE 0 END) AS ok",
            'SHOW server_encoding', "SELECT EXTRACT(EPOCH FROM TIMESTAMP '2024-01-01')",
            'EXPLAIN SELECT page_id FROM "page"',
        ],
        'phpPgAdmin and psql' => [
            'SELECT pdb.datname AS datname, pr.rolname AS datowner, pg_encoding_to_char(encoding) AS datencoding FROM'
                . ' pg_catalog.pg_database pdb LEFT JOIN pg_catalog.pg_roles pr ON (pdb.datdba = pr.oid) WHERE NOT'
                . ' pdb.datistemplate ORDER BY pdb.datname',
            'SELECT c.relname, pg_catalog.pg_get_userbyid(c.relowner) AS relowner, pg_catalog.obj_description(c.oid,'
                . " 'pg_class') AS relcomment FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid ="
                . " c.relnamespace WHERE c.relkind = 'r' AND nspname='public' ORDER BY c.relname",
            'SELECT n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_arguments(p.oid) FROM'
                . ' pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname'
                . " = 'public' AND p.prolang <> 13 ORDER BY 1, 2, 3",
            "SELECT pg_get_functiondef('with_tax'::regproc)", "SELECT pg_get_viewdef('paid_orders', true)",
            "SELECT pg_get_indexdef('posts_status'::regclass)", 'SELECT pg_catalog.format_type(23, NULL)',
            "SELECT col_description('posts'::regclass, 1), obj_description('posts'::regclass)",
            'SELECT usename, usesuper FROM pg_user ORDER BY 1', 'SELECT rolname FROM pg_roles ORDER BY 1',
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg@_%' ESCAPE '@' ORDER BY 1",
            "SELECT has_table_privilege('users', 'SELECT'), has_schema_privilege('public', 'CREATE'),"
                . " has_database_privilege('shop', 'CONNECT')",
            'SELECT extname FROM pg_extension ORDER BY 1',
            "SELECT name, default_version FROM pg_available_extensions WHERE name = 'plpgsql'",
            'SELECT spcname FROM pg_tablespace ORDER BY 1', "SELECT collname FROM pg_collation WHERE collname = 'C'",
            'SELECT tgname FROM pg_trigger WHERE NOT tgisinternal',
            "SELECT * FROM pg_rules WHERE schemaname = 'public'", "SELECT typname FROM pg_type WHERE typtype = 'e'",
            'SELECT lanname FROM pg_language ORDER BY 1',
            "SELECT castsource::regtype FROM pg_cast WHERE casttarget = 'xml'::regtype ORDER BY 1::text",
            'SELECT inhrelid::regclass FROM pg_inherits ORDER BY 1', 'SELECT * FROM pg_policies',
            'SELECT * FROM pg_matviews',
            "SELECT cfgname FROM pg_ts_config WHERE cfgname = 'english'",
            'SELECT conname FROM pg_conversion WHERE false',
            'SELECT pg_tablespace_location(oid) FROM pg_tablespace ORDER BY 1',
            "SELECT * FROM pg_partition_tree('events')",
            "SELECT grantee, privilege_type FROM information_schema.role_table_grants WHERE table_name = 'users' ORDER"
                . ' BY 2',
            "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'public' AND routine_name LIKE"
                . " '%tax'",
            'SELECT trigger_name FROM information_schema.triggers',
            'SELECT tc.constraint_name, kcu.column_name, ccu.table_name AS foreign_table FROM'
                . ' information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu USING'
                . ' (constraint_name) JOIN information_schema.constraint_column_usage AS ccu USING (constraint_name)'
                . " WHERE tc.constraint_type = 'FOREIGN KEY' ORDER BY 1",
            "SELECT 'users'::regclass::oid > 0, to_regclass('nothing'), 'int4'::regtype",
            'SHOW work_mem',
        ],
        'a dump' => [
            'SET statement_timeout = 0', 'SET lock_timeout = 0', 'SET idle_in_transaction_session_timeout = 0',
            "SET client_encoding = 'UTF8'", "SELECT pg_catalog.set_config('search_path', '', false)",
            'SET check_function_bodies = false', 'SET xmloption = content', 'SET row_security = off',
            'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY',
            'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY', 'SET LOCAL extra_float_digits TO 3',
            "SELECT c.tableoid, c.oid > 0, c.relname FROM pg_catalog.pg_class c WHERE c.relname = 'users'",
            'DECLARE _pg_dump_cursor CURSOR FOR SELECT * FROM ONLY public.users ORDER BY id',
            'FETCH 100 FROM _pg_dump_cursor', 'CLOSE _pg_dump_cursor', 'COMMIT',
        ],
        'transactions' => [
            'BEGIN', 'SELECT COUNT(*) FROM users', 'COMMIT', 'BEGIN WORK', 'ROLLBACK WORK', 'START TRANSACTION',
            'SAVEPOINT trans2', 'SELECT 1', 'ROLLBACK TO SAVEPOINT trans2', 'ROLLBACK', 'BEGIN TRANSACTION READ ONLY',
            'SELECT 2', 'COMMIT AND CHAIN', 'SELECT 3', 'ROLLBACK AND NO CHAIN', 'END', 'ABORT',
            'START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE',
            'SELECT name FROM users ORDER BY id', 'END TRANSACTION', 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
            'SHOW transaction_isolation', 'ABORT WORK', 'BEGIN', 'RESET search_path', 'SHOW search_path', 'COMMIT',
            'BEGIN', 'SET TRANSACTION READ ONLY', 'SET CONSTRAINTS ALL DEFERRED', 'SHOW transaction_read_only',
            "SET LOCAL statement_timeout = '5s'", 'SELECT txid_current_if_assigned()', 'COMMIT',
            'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY', 'SET default_transaction_read_only = on',
            "SET default_transaction_read_only TO 'true'", 'SET default_transaction_read_only = on -- a replica',
            "SET SESSION default_transaction_isolation = 'serializable'",
            'SELECT 4',
        ],
        'cursors' => [
            'BEGIN',
            'DECLARE a SCROLL CURSOR WITHOUT HOLD FOR SELECT id FROM posts ORDER BY id',
            'FETCH NEXT FROM a', 'FETCH a', 'FETCH PRIOR FROM a', 'FETCH FIRST FROM a', 'FETCH LAST FROM a',
            'FETCH ABSOLUTE 2 FROM a', 'FETCH RELATIVE -1 IN a', 'MOVE FORWARD 1 FROM a', 'FETCH BACKWARD ALL FROM a',
            'CLOSE a', 'COMMIT',
            "DECLARE held BINARY CURSOR WITH HOLD FOR SELECT 'x'::text",
            'SELECT name, is_holdable FROM pg_cursors', 'FETCH ALL FROM held', 'CLOSE ALL', 'BEGIN',
            'DECLARE b INSENSITIVE CURSOR FOR VALUES (1), (2)', 'MOVE ALL IN b', 'FETCH BACKWARD 1 FROM b', 'ROLLBACK',
        ],
        'prepared in words' => [
            'PREPARE one AS SELECT 1', 'EXECUTE one',
            'PREPARE find (int, text) AS SELECT * FROM users WHERE id = $1 OR name = $2',
            "EXECUTE find(1, 'x')", 'EXPLAIN (COSTS OFF) EXECUTE one',
            "SELECT name, statement FROM pg_prepared_statements WHERE name = 'one'",
            'DEALLOCATE one', 'DEALLOCATE PREPARE find', 'PREPARE all_of AS TABLE users', 'DEALLOCATE ALL',
            'DISCARD PLANS', 'DISCARD SEQUENCES', 'DISCARD TEMP', 'DISCARD ALL',
        ],
        'settings' => [
            'SET search_path TO public, other', 'SET search_path = "$user", public',
            'SET SESSION search_path TO DEFAULT', 'RESET search_path', "SET statement_timeout = '30s'",
            'SET statement_timeout TO 30000', 'SHOW statement_timeout', 'RESET statement_timeout',
            'SET lock_timeout = 1000', "SET TIME ZONE 'Europe/Berlin'", 'SHOW TIME ZONE', 'SET TIME ZONE LOCAL',
            "SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE", "SET SESSION TIME ZONE 'UTC'", "SET NAMES 'UTF8'",
            'SET client_encoding TO UTF8', 'SET DateStyle TO ISO, DMY', 'SET IntervalStyle = postgres',
            "SET application_name = 'write'", 'SHOW application_name', 'SET extra_float_digits = 3',
            "SET work_mem = '4MB'", 'SET enable_seqscan = off', 'RESET enable_seqscan', 'SET jit = off',
            'SET plan_cache_mode = force_custom_plan', 'SET random_page_cost = 1.1',
            "SET default_text_search_config = 'pg_catalog.english'", 'SET seed = 0.5',
            'SET SESSION AUTHORIZATION DEFAULT', 'SET ROLE NONE', 'RESET ROLE', 'RESET SESSION AUTHORIZATION',
            'SET synchronous_commit = off', 'SET xmlbinary = hex', "SET shop.user_id = '7'",
            "SELECT current_setting('shop.user_id', true)", "SELECT current_setting('shop.nothing', true)",
            "SELECT set_config('shop.user_id', '8', true)", 'SET gin_fuzzy_search_limit = 0',
            'SET backslash_quote = on', 'SET escape_string_warning = off', 'SET standard_conforming_strings = off',
            "SELECT 'it\\'s lo_unlink(1)', 'b\\\\'", 'SET standard_conforming_strings = on',
            'SET client_min_messages = error', 'SHOW client_min_messages', 'SET tcp_keepalives_idle = 60',
            'SHOW server_version', 'SHOW is_superuser', 'RESET ALL', "SET SCHEMA 'public'",
            "SET LOCAL work_mem = '8MB'", "SET log_statement = 'none'", 'SET session_replication_role = DEFAULT',
            "SET temp_buffers = '1MB'", 'SET cursor_tuple_fraction = 1',
        ],
        'explanations' => [
            'EXPLAIN SELECT * FROM posts WHERE user_id = 1', 'EXPLAIN (FORMAT JSON) SELECT * FROM users WHERE id = 1',
            'EXPLAIN (VERBOSE, COSTS OFF) SELECT 1', 'EXPLAIN VERBOSE SELECT 1',
            'EXPLAIN (COSTS OFF, SETTINGS) TABLE users', "EXPLAIN UPDATE users SET name = 'x' WHERE id = 1",
            'EXPLAIN DELETE FROM comments WHERE id = 1', "EXPLAIN INSERT INTO users VALUES (9, 'x', 'y')",
            'EXPLAIN (COSTS OFF) INSERT INTO tags SELECT id + 10, name FROM users ON CONFLICT DO NOTHING',
            'EXPLAIN MERGE INTO tags t USING users u ON t.id = u.id WHEN MATCHED THEN DELETE',
            'EXPLAIN WITH gone AS (DELETE FROM comments RETURNING *) SELECT * FROM gone',
            'EXPLAIN DECLARE x CURSOR FOR SELECT 1',
            'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT 1',
            'EXPLAIN SELECT * FROM users FOR UPDATE',
        ],
        'other applications' => [
            'SELECT * FROM "posts" AS "Posts" WHERE ("Posts"."id" = 1 AND NOT ("Posts"."deleted_at" IS NOT NULL)) LIMIT'
                . ' 20',
            'SELECT "f"."id" FROM "posts" "f" WHERE ("f"."title" ILIKE \'%read%\') ORDER BY "f"."id" ASC LIMIT 100',
            "SELECT s.sess_id, u.name FROM sessions s CROSS JOIN users u WHERE s.sess_id = 'abc' AND u.id = 1",
            'SELECT d.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name, COALESCE(td.typname,'
                . ' tb.typname, t.typname) AS data_type, CASE WHEN COALESCE(td.typtype, tb.typtype, t.typtype) ='
                . " 'e'::char THEN array_to_string((SELECT array_agg(enumlabel) FROM pg_enum WHERE enumtypid ="
                . " COALESCE(td.oid, tb.oid, a.atttypid))::varchar[], ',') ELSE NULL END AS enum_values FROM pg_class c"
                . ' LEFT JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN'
                . " pg_type tb ON (a.attndims > 0 OR t.typcategory='A') AND t.typelem > 0 AND t.typelem = tb.oid LEFT"
                . ' JOIN pg_type td ON t.typndims > 0 AND t.typbasetype > 0 AND tb.typelem = td.oid LEFT JOIN'
                . " pg_namespace d ON d.oid = c.relnamespace WHERE a.attnum > 0 AND t.typname != '' AND NOT"
                . " a.attisdropped AND c.relname = 'posts' ORDER BY a.attnum",
            'SELECT setval FROM (SELECT 1 AS setval) AS x', 'SELECT nextval.n FROM (SELECT 1 AS n) AS nextval',
            "SELECT md5('a'), encode(sha256('a'), 'hex'), translate('abc', 'b', 'x'), split_part('a.b', '.', 2),"
                . " regexp_replace('abc', 'b', 'x', 'g'), format('%I %L %s', 'a b', 'c', 'd'), quote_nullable(NULL)",
            'SELECT pg_typeof(1), pg_column_size(1), pg_size_pretty(10240::bigint), pg_client_encoding(),'
                . ' inet_client_port() > 0',
            "SELECT * FROM users WHERE name = 'x' OR '1' = '1' -- ' AND password = 'x'",
            "SELECT id, point(1, 2) <-> point(id, id), box '(1,1),(0,0)' && box '(2,2),(0,0)' FROM users ORDER BY 1",
            "SELECT daterange('2024-01-01', '2024-02-01') && daterange('2024-01-15', NULL), '{1,2}'::int[] @> '{1}'",
            'SELECT pg_sleep(0)', 'SELECT pg_export_snapshot() IS NOT NULL', 'SELECT pg_is_in_recovery()',
        ],
    ];

    /** Whose rows are others each time, or others in a session that only reads: that they are answered is all. */
    public const CHANGING = [
        'SELECT NOW(), CURRENT_TIMESTAMP, LOCALTIME, clock_timestamp(), statement_timestamp(), timeofday()',
        'SELECT gen_random_uuid(), random(), pg_backend_pid(), pg_postmaster_start_time(), txid_current_snapshot()',
        'SELECT * FROM users ORDER BY RANDOM() LIMIT 1', 'SHOW ALL', 'SHOW transaction_read_only',
        'SHOW default_transaction_read_only', 'SELECT * FROM pg_settings', 'SELECT * FROM pg_stat_activity',
        'SELECT * FROM pg_locks', 'SELECT * FROM pg_stat_user_tables', 'SELECT * FROM pg_statio_user_indexes',
        'SELECT * FROM pg_stat_database', 'SELECT * FROM pg_stat_bgwriter',
        'SELECT pg_database_size(current_database())',
        "SELECT pg_relation_size('users'), pg_table_size('users'), pg_indexes_size('users')",
        'SELECT pid, query, state FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
        'SELECT pg_current_wal_lsn(), pg_current_wal_insert_lsn()', 'SELECT * FROM pg_stat_replication',
        'SELECT pg_blocking_pids(pg_backend_pid()), inet_server_addr(), inet_client_addr()',
        'EXPLAIN ANALYZE SELECT * FROM users',
        'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT COUNT(*) FROM posts',
        'SELECT ctid, xmin, tableoid FROM users', "SELECT pg_ls_dir('.') LIMIT 1", "SELECT pg_read_file('PG_VERSION')",
        'SELECT * FROM pg_file_settings', 'SELECT txid_current()', 'SELECT pg_stat_get_snapshot_timestamp()',
    ];
}
