<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Altair\Eval\Tests\Support\Database\Readers\Models\Comment;
use Altair\Eval\Tests\Support\Database\Readers\Models\Post;
use Altair\Eval\Tests\Support\Database\Readers\Models\Tag;
use Altair\Eval\Tests\Support\Database\Readers\Models\User;
use Closure;
use Illuminate\Auth\DatabaseUserProvider;
use Illuminate\Cache\DatabaseStore;
use Illuminate\Database\Connection;
use Illuminate\Database\ConnectionResolver;
use Illuminate\Database\Migrations\DatabaseMigrationRepository;
use Illuminate\Database\MySqlConnection;
use Illuminate\Database\Query\Builder;
use Illuminate\Database\Query\JoinClause;
use Illuminate\Hashing\BcryptHasher;
use Illuminate\Queue\DatabaseQueue;
use Illuminate\Session\DatabaseSessionHandler;
use Illuminate\Validation\DatabasePresenceVerifier;

/**
 * How an application on Laravel reads: by its connection, its query builder, Eloquent, and what is Laravel's own.
 */
final class LaravelReaders
{
    private function __construct()
    {
    }

    /**
     * @return iterable<string, Closure>
     */
    public static function each(Connection $db): iterable
    {
        yield from self::ofConnection($db);
        yield from self::ofBuilder($db);
        yield from self::ofPages($db);
        yield from self::ofSubqueries($db);
        yield from self::ofEloquent();
        yield from self::ofServices($db);
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofConnection(Connection $db): iterable
    {
        yield 'select()' => fn () => $db->select('select * from users where id = ?', [1]);
        yield 'names' => fn () => $db->select('select * from users where id = :id and name = :n', [
            'id' => 1, 'n' => 'Ada',
        ]);
        yield 'selectOne()' => fn () => $db->selectOne('select count(*) as n from posts');
        yield 'cursor()' => fn () => iterator_to_array($db->cursor('select id from posts order by id'));
        yield 'statement()' => fn () => $db->statement('select 1');
        yield 'unprepared()' => fn () => $db->unprepared($db instanceof MySqlConnection ? 'set @a = 1'
            : 'set search_path to public');
        yield 'raw()' => fn () => $db->table('users')->select($db->raw('count(*) as n'))->get();
        yield 'selectFromWriteConnection()' => fn () => $db->selectFromWriteConnection('select 1 as one');
        yield 'transaction()' => fn () => $db->transaction(
            static fn (): array => [$db->transactionLevel(), $db->transaction(
                static fn (): array => [$db->transactionLevel(), $db->table('users')->count()],
            )],
        );
        yield 'rollBack()' => static function () use ($db): array {
            $db->beginTransaction();
            $db->beginTransaction();
            $names = $db->table('users')->pluck('name')->all();
            $db->rollBack();
            $db->rollBack();

            return $names;
        };
        yield 'pretend()' => fn () => array_column($db->pretend(
            static fn () => $db->table('users')->delete(),
        ), 'query');
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofBuilder(Connection $db): iterable
    {
        $posts = static fn (): Builder => $db->table('posts')->orderBy('id');
        $orders = static fn (): Builder => $db->table('orders')->orderBy('id');
        yield 'get()' => fn () => $posts()->get();
        yield 'first()' => fn () => $posts()->first(['id', 'title as name']);
        yield 'find()' => fn () => $db->table('users')->find(2);
        yield 'value()' => fn () => $posts()->value('title');
        yield 'pluck()' => fn () => $posts()->pluck('title', 'id');
        yield 'implode()' => fn () => $posts()->implode('title', '; ');
        yield 'exists()' => fn () => [$posts()->where('id', 1)->exists(), $posts()->where('id', 9)->doesntExist()];
        yield 'distinct()' => fn () => $db->table('posts')->distinct()->orderBy('status')->get(['status']);
        yield 'count()' => fn () => [$posts()->count(), $db->table('posts')->distinct()->count('status')];
        yield 'aggregates' => fn () => [
            $db->table('orders')->sum('total'), $db->table('orders')->avg('total'), $db->table('orders')->min('total'),
            $db->table('orders')->max('created_at'), $db->table('orders')->average('id'),
        ];
        yield 'where()' => fn () => $posts()->where('views', '>=', 10)->where('status', '<>', 'draft')->get();
        yield 'where() of several' => fn () => $posts()->where([['views', '>', 5], ['status', 'published']])->get();
        yield 'orWhere()' => fn () => $posts()->where('id', 1)->orWhere(
            static fn (Builder $q): Builder => $q->where('id', 2)->where('status', 'draft'),
        )->get();
        yield 'where() with texts' => fn () => $posts()->where('body', 'like', '%INTO OUTFILE%')
            ->orWhere('title', "it's; -- \\ \" $$")->orWhere('body', 'like', '%pg_notify()%')->get();
        yield 'whereIn()' => fn () => $posts()->whereIn('id', [1, 3])->whereNotIn('id', [2])->get();
        yield 'whereIntegerInRaw()' => fn () => $posts()->whereIntegerInRaw('id', [1, 2])->get();
        yield 'whereNull()' => fn () => $posts()->whereNull('price')->whereNotNull('title')->get();
        yield 'whereBetween()' => fn () => $orders()->whereBetween('total', [6, 50])
            ->whereNotBetween('id', [7, 9])->get();
        yield 'whereBetweenColumns()' => fn () => $posts()->whereBetweenColumns('created_at', [
            'created_at', 'updated_at',
        ])->get();
        yield 'whereDate()' => fn () => $orders()->whereDate('created_at', '2024-01-15')->get();
        yield 'whereTime()' => fn () => $orders()->whereTime('created_at', '>', '11:30:00')->get();
        yield 'whereYear()' => fn () => $orders()->whereYear('created_at', 2024)->whereMonth('created_at', 2)
            ->whereDay('created_at', '>', 10)->get();
        yield 'whereColumn()' => fn () => $posts()->whereColumn('created_at', '<', 'updated_at')->get();
        yield 'whereRaw()' => fn () => $posts()->whereRaw('lower(title) like ? or views > ?', ['%read%', 20])->get();
        yield 'whereExists()' => fn () => $db->table('users')->whereExists(
            static fn (Builder $q): Builder => $q->select($db->raw(1))->from('posts')
                ->whereColumn('posts.user_id', 'users.id'),
        )->whereNotExists(static fn (Builder $q) => $q->from('comments')->where('id', 99))->orderBy('id')->get();
        yield 'whereRowValues()' => fn () => $orders()->whereRowValues(['user_id', 'status'], '=', [1, 'paid'])->get();
        yield 'whereJsonContains()' => fn () => $posts()->whereJsonContains('data->tags', ['sql'])->get();
        yield 'whereJsonDoesntContain()' => fn () => $posts()->whereJsonDoesntContain('data->tags', 'php')->get();
        yield 'whereJsonLength()' => fn () => $posts()->whereJsonLength('data->tags', '>', 0)->get();
        yield 'a path of JSON' => fn () => $posts()->where('data->lang', 'en')->where('data->meta->stars', '>', 3)
            ->get(['id', 'data->lang as lang']);
        yield 'whereFullText()' => fn () => $posts()->whereFullText(['title', 'body'], 'reading')->get();
        yield 'when()' => fn () => $posts()->when(true, static fn (Builder $q) => $q->where('id', 1))->get();
        yield 'groupBy()' => fn () => $db->table('orders')->select('user_id', $db->raw('sum(total) as total'))
            ->groupBy('user_id')->having('user_id', '>', 0)->orderBy('user_id')->get();
        yield 'havingRaw()' => fn () => $db->table('orders')->selectRaw('status, count(*) as n, ? as x', ['a'])
            ->groupByRaw('status')->havingRaw('count(*) >= ?', [1])->orderByRaw('status desc')->get();
        yield 'orderBy()' => fn () => $db->table('posts')->orderByDesc('views')->orderBy('id')->skip(1)->take(1)
            ->get();
        yield 'latest()' => fn () => [
            $db->table('orders')->latest()->first(), $db->table('orders')->oldest()->first(),
        ];
        yield 'inRandomOrder()' => fn () => $db->table('posts')->inRandomOrder()->get()->count();
        yield 'join()' => fn () => $posts()->reorder('posts.id')->join('users', 'users.id', '=', 'posts.user_id')
            ->select('posts.*', 'users.name')->get();
        yield 'leftJoin()' => fn () => $db->table('users')->leftJoin('orders', function (JoinClause $join) {
            $join->on('orders.user_id', '=', 'users.id')->where('orders.status', 'paid')->whereNotNull('orders.total');
        })->orderBy('users.id')->orderBy('orders.id')->get();
        yield 'rightJoin()' => fn () => $db->table('users')->rightJoin('tags', 'tags.id', '=', 'users.id')
            ->orderBy('tags.id')->get();
        yield 'crossJoin()' => fn () => $db->table('users')->crossJoin('tags')->orderBy('users.id')
            ->orderBy('tags.id')->get();
        yield 'columns like keywords' => fn () => $db->table('odd')
            ->get(['dblink_id', 'delete', 'call', 'copy', 'select', 'set', 'into', 'write', 'drop table', '--y']);
        yield 'columns like functions' => fn () => $db->table('odd')->select('odd.dblink_id', 'odd.lo_import')
            ->where('odd.lo_import', 6)->get();
        yield 'explain()' => fn () => $db->table('posts')->where('id', 1)->explain();
        yield 'toSql()' => fn () => [$posts()->toSql(), $posts()->where('id', 1)->getBindings()];
        if ($db instanceof MySqlConnection) {
            yield 'sharedLock()' => fn () => $posts()->sharedLock()->get();
        }
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofPages(Connection $db): iterable
    {
        $posts = static fn (): Builder => $db->table('posts')->orderBy('id');
        yield 'paginate()' => fn () => $posts()->paginate(2, ['*'], 'page', 2)->items();
        yield 'simplePaginate()' => fn () => $posts()->simplePaginate(2, ['*'], 'page', 1)->items();
        yield 'cursorPaginate()' => fn () => $posts()->cursorPaginate(2)->items();
        yield 'paginate() of groups' => fn () => $db->table('orders')->select('status')->groupBy('status')
            ->orderBy('status')->paginate(2, ['status'], 'page', 1)->total();
        yield 'forPage()' => fn () => [
            $posts()->forPage(2, 1)->get(), $posts()->reorder()->forPageAfterId(1, 1)->get(),
        ];
        yield 'chunk()' => static function () use ($posts): array {
            $ids = [];
            $posts()->chunk(2, static function ($rows) use (&$ids): void {
                $ids[] = $rows->pluck('id')->all();
            });
            $posts()->reorder()->chunkById(1, static function ($rows) use (&$ids): void {
                $ids[] = $rows->pluck('id')->all();
            });

            return $ids;
        };
        yield 'each()' => static function () use ($posts): array {
            $ids = [];
            $posts()->each(static function (object $row) use (&$ids): void {
                $ids[] = $row->id;
            }, 1);

            return $ids;
        };
        yield 'lazy()' => fn () => [$posts()->lazy(1)->pluck('id')->all(), $posts()->reorder()->lazyById(1)->count()];
        yield 'cursor() of a builder' => fn () => $posts()->cursor()->map(static fn ($row) => $row->id)->all();
        yield 'chunkMap()' => fn () => $posts()->chunkMap(static fn ($row) => $row->title, 2);
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofSubqueries(Connection $db): iterable
    {
        $totals = static fn (): Builder => $db->table('orders')->select('user_id')->selectRaw('sum(total) as total')
            ->where('status', '<>', 'void')->groupBy('user_id');
        yield 'union()' => fn () => $db->table('users')->select('id')->where('id', 1)
            ->union($db->table('posts')->select('id')->where('id', 3))
            ->unionAll($db->table('tags')->select('id')->where('id', 2))->orderBy('id')->get();
        yield 'union() of pages' => fn () => $db->table('users')->select('id')
            ->union($db->table('posts')->select('id'))->orderBy('id')->paginate(2)->total();
        yield 'fromSub()' => fn () => $db->query()->fromSub($totals(), 't')->orderBy('user_id')->get();
        yield 'joinSub()' => fn () => $db->table('users')->joinSub($totals(), 't', 't.user_id', '=', 'users.id')
            ->orderBy('users.id')->get();
        yield 'leftJoinSub()' => fn () => $db->table('tags')->leftJoinSub($totals(), 't', 't.user_id', '=', 'tags.id')
            ->orderBy('tags.id')->get();
        yield 'selectSub()' => fn () => $db->table('users')->select('name')->selectSub(
            $db->table('posts')->selectRaw('count(*)')->whereColumn('user_id', 'users.id'),
            'posts',
        )->orderBy('id')->get();
        yield 'addSelect()' => fn () => $db->table('users')->addSelect(['id', 'latest' => $db->table('orders')
            ->select('id')->whereColumn('user_id', 'users.id')->latest()->limit(1)])->orderBy('id')->get();
        yield 'whereIn() of a query' => fn () => $db->table('posts')->whereIn('user_id', $db->table('users')
            ->select('id')->where('name', 'Ada'))->orderBy('id')->get();
        yield 'where() of a query' => fn () => $db->table('orders')->where(
            static fn (Builder $q): Builder => $q->selectRaw('count(*)')->from('posts')
                ->whereColumn('posts.user_id', 'orders.user_id'),
            '>',
            1,
        )->orderBy('id')->get();
        yield 'orderBy() of a query' => fn () => $db->table('users')->orderBy(
            $db->table('orders')->selectRaw('max(total)')->whereColumn('user_id', 'users.id'),
            'desc',
        )->get();
        yield 'fromRaw()' => fn () => $db->query()->fromRaw('(select ? as a) as t', ['x; --'])->get();
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofEloquent(): iterable
    {
        yield 'all()' => fn () => User::all();
        yield 'findOrFail()' => fn () => Post::findOrFail(1);
        yield 'findMany()' => fn () => Post::findMany([1, 3]);
        yield 'firstWhere()' => fn () => User::firstWhere('email', 'ada@shop.example');
        yield 'a scope' => fn () => Post::published()->orderBy('id')->get();
        yield 'withTrashed()' => fn () => [Post::withTrashed()->count(), Post::onlyTrashed()->get()->all()];
        yield 'with()' => fn () => Post::with(['user:id,name', 'comments', 'tags'])->orderBy('id')->get();
        yield 'load()' => fn () => User::find(1)->load('posts.comments')->loadCount('posts')
            ->loadMissing('comments');
        yield 'withCount()' => fn () => User::withCount(['posts', 'posts as drafts' => fn ($query) => $query->where([
            'status' => 'draft',
        ])])->withSum('posts', 'views')->withMax('posts', 'price')->withExists('comments')->orderBy('id')->get();
        yield 'has()' => fn () => User::has('posts', '>', 1)->orHas('comments')->doesntHave('posts', 'or')->get();
        yield 'whereHas()' => fn () => Post::whereHas('tags', static function ($query): void {
            $query->where('name', 'sql');
        })->whereDoesntHave('comments', static function ($query): void {
            $query->where('body', 'second');
        })->get();
        yield 'whereRelation()' => fn () => Comment::whereRelation('post', 'status', 'published')
            ->orderBy('id')->get();
        yield 'latestOfMany()' => fn () => User::with('latestPost')->orderBy('id')->get();
        yield 'relations' => fn () => [
            User::find(1)->posts()->where('views', '>', 5)->get()->toArray(), User::find(1)->comments->toArray(),
            Post::find(1)->tags()->orderBy('tags.id')->pluck('name')->all(), Tag::find(1)->posts->modelKeys(),
            Comment::find(1)->post->user->name,
        ];
        yield 'fresh()' => fn () => User::find(1)->refresh()->fresh('posts');
        yield 'pages of models' => fn () => Post::with('user')->orderBy('id')->paginate(2)->items()[1]->user->name;
        yield 'cursor() of models' => fn () => Post::orderBy('id')->cursor()->map->title->all();
        yield 'lazyById() of models' => fn () => Post::lazyById(1)->map->id->all();
        yield 'sole()' => fn () => Post::where('status', 'draft')->sole();
        yield 'firstOr()' => fn () => Post::where('id', 99)->firstOr(static fn (): string => 'none');
        yield 'firstOrNew()' => fn () => Post::firstOrNew(['id' => 99]);
    }

    /**
     * @return iterable<string, Closure>
     */
    private static function ofServices(Connection $db): iterable
    {
        $schema = $db->getSchemaBuilder();
        $migrations = new DatabaseMigrationRepository(new ConnectionResolver(['' => $db]), 'migrations');
        $migrations->setSource('');
        $verifier = new DatabasePresenceVerifier(new ConnectionResolver(['' => $db]));
        yield 'hasTable()' => fn () => [$schema->hasTable('posts'), $schema->hasTable('nothing')];
        yield 'getColumnListing()' => fn () => $schema->getColumnListing('posts');
        yield 'hasColumns()' => fn () => [
            $schema->hasColumns('posts', ['id', 'title']), $schema->hasColumn('odd', 'x'),
        ];
        yield 'getAllTables()' => fn () => $schema->getAllTables();
        yield 'getAllViews()' => fn () => $schema->getAllViews();
        yield 'getColumnType()' => fn () => $schema->getColumnType('users', 'name');
        yield 'getDoctrineSchemaManager()' => fn () => array_keys(
            $db->getDoctrineSchemaManager()->listTableColumns('tags'),
        );
        yield 'migrations' => fn () => [
            $migrations->repositoryExists(), $migrations->getRan(), $migrations->getLast(),
            $migrations->getMigrations(1), $migrations->getMigrationBatches(), $migrations->getNextBatchNumber(),
        ];
        yield 'the cache' => fn () => [
            (new DatabaseStore($db, 'cache', 'shop_cache_'))->get($db instanceof MySqlConnection ? 'plain' : 'based'),
            (new DatabaseStore($db, 'cache', ''))->get('nothing'),
        ];
        yield 'sessions' => fn () => [(new DatabaseSessionHandler($db, 'web_sessions', 120))->read('abc')];
        yield 'the queue' => fn () => [
            (new DatabaseQueue($db, 'jobs'))->size(), (new DatabaseQueue($db, 'jobs'))->size('mail'),
        ];
        yield 'users' => fn () => [
            (new DatabaseUserProvider($db, new BcryptHasher(), 'users'))->retrieveById(1)->name,
            (new DatabaseUserProvider($db, new BcryptHasher(), 'users'))->retrieveByCredentials([
                'email' => 'grace@shop.example', 'password' => 'x',
            ])->name,
        ];
        yield 'validation' => fn () => [
            $verifier->getCount('users', 'email', 'ada@shop.example', 2, 'id', ['name' => 'NOT_NULL']),
            $verifier->getMultiCount('users', 'id', [1, 2, 3]),
        ];
    }
}
