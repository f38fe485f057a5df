<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Secrets that are words, as examples and containers for development have them: an answer shows the word wherever it
 * is one, and not where it stands as a password.
 */
final class WeakSecretsTest extends EvaluationTestCase
{
    private const ENVIRONMENT = [
        'DB_CONNECTION=mysql',
        'DB_USERNAME=sail',
        'DB_PASSWORD=password',
        'ADMIN_SECRET="!ChangeMe!"',
        'MAIL_PASSWORD=null',
        'DATABASE_URL=mysql://root:root@mysql/laravel',
        'API_TOKEN=%s',
    ];

    private string $token = '';

    /** Evaluates with what Laravel's Sail ships, and one secret that is none of it. */
    private function answer(string $snippet, ?callable $onOutput = null): EvalResult
    {
        foreach (['DB_PASSWORD', 'DATABASE_URL', 'API_TOKEN', 'ADMIN_SECRET'] as $name) {
            $this->setVariable($name, null);
        }
        $this->token = bin2hex(random_bytes(9));
        $environment = sprintf(implode("\n", self::ENVIRONMENT), $this->token);
        $root = $this->application(['.env' => "$environment\n"])->root;

        return (new Evaluator())->evaluate(new EvalRequest($snippet, $root), $onOutput);
    }

    public function testRowsKeysAndStatementsAreShownAsTheyAre(): void
    {
        $rows = [
            'hashed_password' => '$2y$10$abc',
            'password_reset' => ['password', 'root'],
            'name' => 'password',
            'sql' => 'select `password` from `users` where `root` = ?',
            'class' => 'Illuminate\Auth\Passwords\password',
            'mail' => 'mailto:root@example.org',
        ];
        $result = $this->answer('echo "password root"; return ' . var_export($rows, true) . ';');

        self::assertSame($rows, self::plain($result->result));
        self::assertSame('password root', $result->stdout);
        self::assertArrayNotHasKey('redacted', $result->diagnostics);
    }

    public function testAPasswordIsReplacedWhereItStandsAsOne(): void
    {
        $result = $this->answer(<<<'PHP'
            echo 'mysql://root:root@mysql/laravel and mysql:host=db;password=password';
            return [
                'password' => 'password',
                'user' => 'password',
                'database' => ['db_pass' => 'root', 'admin_secret' => '!ChangeMe!'],
                'object' => (object) ['db_pass' => 'root', 'admin_secret' => '', 'user' => 'x'],
                'url' => 'https://a:!ChangeMe!@example.org/password',
            ];
            PHP);

        self::assertSame('mysql://root:[redacted:DATABASE_URL]@mysql/laravel and mysql:host=db;'
            . 'password=[redacted:DB_PASSWORD]', $result->stdout);
        $shown = $result->result['value'];
        self::assertSame('[redacted:DB_PASSWORD]', $shown['password']['value']);
        self::assertSame('password', $shown['user']['value']);
        $inner = array_column($shown['database']['value'], 'value');
        self::assertSame(['[redacted:DATABASE_URL]', '[redacted:ADMIN_SECRET]'], $inner);
        self::assertSame(['[hidden]', '', 'x'], array_column($shown['object']['properties'], 'value'));
        self::assertSame('https://a:[redacted:ADMIN_SECRET]@example.org/password', $shown['url']['value']);
        self::assertSame(['ADMIN_SECRET', 'DATABASE_URL', 'DB_PASSWORD'], $result->diagnostics['redacted']);
    }

    public function testAPasswordIsReplacedInWhateverPiecesItIsWritten(): void
    {
        $said = '';
        $this->answer(
            'foreach (str_split("a password, mysql://root:root@x/root;password=password") as $byte) {
                echo $byte; flush(); usleep(200);
            }',
            static function (string $type, string $chunk) use (&$said): void {
                $said .= $chunk;
            },
        );

        $shown = 'a password, mysql://root:[redacted:DATABASE_URL]@x/root;password=[redacted:DB_PASSWORD]';
        self::assertSame($shown, $said);
    }

    public function testAnotherSecretIsReplacedEverywhereAllTheSame(): void
    {
        $this->answer('return 1;');
        $snippet = 'return ["k" => trim(substr(file_get_contents(".env"), -19))];';
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $this->application()->root));

        self::assertSame('[redacted:API_TOKEN]', $result->result['value']['k']['value']);
    }

    public function testALineOfAKeyIsReplacedAsTheWholeIs(): void
    {
        $lines = [base64_encode(random_bytes(48)), base64_encode(random_bytes(48)), base64_encode(random_bytes(20))];
        $key = "-----BEGIN PRIVATE KEY-----\n" . implode("\n", $lines) . "\n-----END PRIVATE KEY-----\n";
        $this->setVariable('SHOP_SIGNING_KEY', $key);
        $root = $this->application()->root;
        $snippet = 'return array_slice(explode("\n", getenv("SHOP_SIGNING_KEY")), 0, 4);';
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $root));

        $replaced = array_fill(0, 3, '[redacted:SHOP_SIGNING_KEY]');
        self::assertSame(['-----BEGIN PRIVATE KEY-----', ...$replaced], self::plain($result->result));
    }

    public function testSettingsOfSecretsAreShown(): void
    {
        $settings = [
            'PASSWORD_TIMEOUT' => '108000',
            'COOKIE_DOMAIN' => '.shop.example',
            'TOKEN_ENDPOINT' => 'https://id.example/token',
            'ROUTE_KEY' => 'user_id',
            'HASH_KEY' => 'order_id',
        ];
        foreach ($settings as $name => $value) {
            $this->setVariable($name, $value);
        }
        $root = $this->application()->root;
        $snippet = 'return array_map(getenv(...), ' . var_export(array_keys($settings), true) . ');';
        $result = (new Evaluator())->evaluate(new EvalRequest($snippet, $root));

        self::assertSame(array_values($settings), self::plain($result->result));
    }

    public function testTheDoctorSaysThatSuchAPasswordProtectsNothing(): void
    {
        $this->answer('return 1;');
        $shown = Command::run(['doctor', '--root=' . $this->application()->root]);
        $report = Command::run(['doctor', '--root=' . $this->application()->root, '--format=json'])->json();

        foreach (['DB_PASSWORD', 'ADMIN_SECRET', 'DATABASE_URL'] as $name) {
            self::assertMatchesRegularExpression("/^! The secret in $name is .* protects nothing/m", $shown->output);
            self::assertCount(1, preg_grep("/in $name is /", $report['warnings']));
        }
        self::assertCount(3, preg_grep('/API_TOKEN|DB_USERNAME|MAIL_PASSWORD/', $report['warnings'], PREG_GREP_INVERT));
        self::assertDoesNotMatchRegularExpression('/ChangeMe|API_TOKEN is/', $shown->output);
        self::assertStringNotContainsString($this->token, $shown->output);
    }
}
