<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Laravel;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Library;

/**
 * Eloquent's models, collections and queries: shown as they are stored, and nothing is loaded for it.
 */
final class ModelTest extends EvaluationTestCase
{
    private const TABLES = '
        create table users (id integer primary key, name text, email text, password text, age int, ratio real,
            active int, remember_token text, created_at text, updated_at text);
        create table posts (id integer primary key, user_id int, title text);';

    protected function setUp(): void
    {
        parent::setUp();
        $this->application(Library::laravel([
            'src/Provider.php' => '<?php namespace App;
                class Provider extends \Illuminate\Support\ServiceProvider {
                    function boot() {
                        $database = new \Illuminate\Database\Capsule\Manager($this->app);
                        $database->addConnection(["driver" => "sqlite", "database" => ":memory:"]);
                        $database->bootEloquent();
                    }
                }',
            'src/User.php' => '<?php namespace App; class User extends \Illuminate\Database\Eloquent\Model {
                protected $guarded = []; protected $hidden = ["email"];
                function posts() { return $this->hasMany(Post::class); }
                function getNameAttribute() { throw new \LogicException("An accessor is the application\'s."); } }',
            'src/Post.php' => '<?php namespace App; class Post extends \Illuminate\Database\Eloquent\Model {
                protected $guarded = []; public $timestamps = false;
                function user() { return $this->belongsTo(User::class); } }',
        ]));
    }

    /** The value, and how many SELECTs ran. */
    private function shown(string $snippet, int $selects, mixed ...$options): array
    {
        $begin = sprintf(
            'App\User::resolveConnection()->getPdo()->exec(%s);
            App\User::create(["name" => "Ada", "email" => "ada@example.org", "password" => "hash", "age" => 36,
                "ratio" => 1.5, "active" => 1]);
            App\Post::create(["user_id" => 1, "title" => "Notes"]);',
            var_export(self::TABLES, true),
        );
        $result = $this->evaluate("$begin return $snippet;", ...$options + ['queries' => true]);
        self::assertOutcome('returned', $result, 0, value: true);
        $ran = array_filter(
            $result->diagnostics['queries'],
            static fn (array $query): bool => str_starts_with($query['sql'], 'select'),
        );
        self::assertSame($selects, array_sum(array_column($ran, 'times')), 'Looking asks the database nothing.');

        return $result->result;
    }

    public function testAModelShowsItsAttributesAndTheRelationsThatAreLoaded(): void
    {
        $user = $this->shown('App\User::with("posts")->find(1)->setAttribute("age", 37)', 2);

        $shown = $user['properties'];
        self::assertSame(['key', 'exists', 'attributes', 'changed', 'relations'], array_keys($shown));
        self::assertSame([1, true], [$shown['key']['value'], $shown['exists']['value']]);
        $attributes = array_map(static fn (array $value): mixed => $value['value'], $shown['attributes']['value']);
        self::assertCount(10, $attributes);
        self::assertSame('Ada', $attributes['name']);
        self::assertSame([37, 1.5, 1, null], [
            $attributes['age'], $attributes['ratio'], $attributes['active'], $attributes['remember_token'],
        ]);
        self::assertSame(['[hidden]', '[hidden]'], [$attributes['email'], $attributes['password']]);
        self::assertSame(['age'], array_column($shown['changed']['value'], 'value'));
        $posts = $shown['relations']['value']['posts'];
        self::assertSame('Illuminate\Database\Eloquent\Collection', $posts['class']);
        $post = $posts['preview'][0]['value']['properties']['attributes']['value'];
        self::assertSame('Notes', $post['title']['value']);
        self::assertLessThan(1400, strlen((string) json_encode($user)));
    }

    public function testARelationThatIsNotLoadedIsNotThere(): void
    {
        $post = $this->shown('App\Post::first()', 1)['properties'];

        self::assertSame(['key', 'exists', 'attributes'], array_keys($post));
    }

    public function testWhatIsHiddenIsShownWhereTheRequestSaysSo(): void
    {
        $attributes = $this->shown('App\User::first()', 1, redact: false)['properties']['attributes']['value'];

        self::assertSame('ada@example.org', $attributes['email']['value']);
        self::assertSame('hash', $attributes['password']['value']);
    }

    public function testCollectionsAndPagesShowTheirItems(): void
    {
        $users = $this->shown('App\User::all()', 1);
        self::assertSame(['iterable', 1, true], [$users['type'], $users['size_hint'], $users['exhausted']]);
        $page = $this->shown('App\User::paginate(5)', 2)['properties'];

        self::assertSame([1, 5], [$page['total']['value'], $page['per_page']['value']]);
        self::assertSame('App\User', $page['items']['preview'][0]['value']['class']);
        $collection = $this->shown('collect(["a" => 1])', 0);
        self::assertSame('a', $collection['preview'][0]['key']['value']);
    }

    public function testAQueryShowsItsPartsAndRunsNot(): void
    {
        $query = $this->shown('App\User::where("age", ">", 3)->orderBy("name")->limit(2)', 0)['properties'];

        self::assertSame(['App\User', 'users', 2], [
            $query['model']['value'], $query['from']['value'], $query['limit']['value'],
        ]);
        self::assertSame([3], array_column($query['bindings']['value'], 'value'));
        self::assertSame('age', $query['wheres']['value'][0]['value']['column']['value']);
        self::assertSame('users', $this->shown('App\User::query()->toBase()', 0)['properties']['from']['value']);
    }
}
