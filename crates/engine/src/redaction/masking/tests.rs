#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::{Grammar, masked};

const ALL: usize = usize::MAX;

fn php(text: &str) -> String {
    masked(text, Grammar::Php, ALL)
}

#[test]
fn secret_looking_values_are_masked_and_nothing_else() {
    let table = [
        // options of commands
        ("--password=xyz", "--password=***"),
        ("--token xyz -v", "--token *** -v"),
        (
            "exec('tool --token xyz -v');",
            "exec('tool --token *** -v');",
        ),
        (
            r#"exec("tool --password='a b' -v");"#,
            r#"exec("tool --password='***' -v");"#,
        ),
        (
            r#"exec("tool --password=a;b&c -v");"#,
            r#"exec("tool --password=*** -v");"#,
        ),
        (
            r#"exec("tool --password=a'b c'd -v");"#,
            r#"exec("tool --password=*** -v");"#,
        ),
        (
            r#"exec("sh -c 'x --token=a' --secret 'b c'");"#,
            r#"exec("sh -c 'x --token=***' --secret '***'");"#,
        ),
        (
            "exec('a --no-token --password x');",
            "exec('a --no-token --password ***');",
        ),
        (
            "new Process(['a', '--token', 'x', 'y']);",
            "new Process(['a', '--token', '***', 'y']);",
        ),
        (
            "['--token', '--password', 'x'];",
            "['--token', '***', '***'];",
        ),
        // PHP
        (
            "login(password: 'x', user: 'y');",
            "login(password: '***', user: 'y');",
        ),
        ("$password = 'x'; echo 'y';", "$password = '***'; echo 'y';"),
        ("$password='x' . \"y\";", "$password='***' . \"***\";"),
        (
            "$password = 'x'\n . 'y';\necho 'z';",
            "$password = '***'\n . '***';\necho 'z';",
        ),
        ("$this->dbPass = 'it\\'s';", "$this->dbPass = '***';"),
        ("$a['api_key'] ??= 'x';", "$a['api_key'] ??= '***';"),
        (
            "[\"secret\" => \"x\", 'a' => 'b']",
            "[\"secret\" => \"***\", 'a' => 'b']",
        ),
        (
            "['tokens' => ['x', 'y'], 'a' => 'b']",
            "['tokens' => ['***', '***'], 'a' => 'b']",
        ),
        ("define('API_KEY', 'x');", "define('API_KEY', '***');"),
        ("const API_KEY = 'x';", "const API_KEY = '***';"),
        (
            "$user->setPassword('x')->setName('y');",
            "$user->setPassword('***')->setName('y');",
        ),
        (
            "if ($password == 'x') { echo 'y'; }",
            "if ($password == '***') { echo 'y'; }",
        ),
        (
            "$secret = base64_decode('eA==');",
            "$secret = base64_decode('***');",
        ),
        (
            "$secret = <<<EOT\nx\n  EOT;\necho 'y';",
            "$secret = <<<EOT\n***  EOT;\necho 'y';",
        ),
        (
            "$token = f(password: 12, a: g('x'));",
            "$token = f(password: *** a: g('***'));",
        ),
        ("$pwd = 1234; f(5678);", "$pwd = ***; f(5678);"),
        ("'password=' . 'x' . 'y';", "'password=' . '***' . '***';"),
        (
            "'password=x' . 'y'; f('z');",
            "'password=***' . '***'; f('z');",
        ),
        // files and messages
        ("API_KEY=xyz", "API_KEY=***"),
        (
            "putenv('DB_PASS=a;b'); f('c');",
            "putenv('DB_PASS=***'); f('c');",
        ),
        (
            "new PDO('mysql:host=h;password=x;dbname=d');",
            "new PDO('mysql:host=h;password=***;dbname=d');",
        ),
        ("get('/a?token=x&page=2');", "get('/a?token=***&page=2');"),
        ("// password: x\nf('y');", "// password: ***\nf('y');"),
        ("'token: Bearer x y'", "'token: *** y'"),
        (
            r#"'{"password":"x y","a":"b"}'"#,
            r#"'{"password":"***","a":"b"}'"#,
        ),
        (
            r#""{\"password\": \"x y\", \"a\": \"b\"}""#,
            r#""{\"password\": \"***\", \"a\": \"b\"}""#,
        ),
        (
            r#"q("ALTER USER u PASSWORD 'x y' LOGIN")"#,
            r#"q("ALTER USER u PASSWORD '***' LOGIN")"#,
        ),
        // headers
        ("Authorization: Bearer x", "Authorization: Bearer ***"),
        (
            "['Authorization: Basic x', 'A: b'];",
            "['Authorization: Basic ***', 'A: b'];",
        ),
        (
            "['Authorization' => 'Bearer x', 'A' => 'b'];",
            "['Authorization' => '***', 'A' => 'b'];",
        ),
        (
            "'Authorization: Bearer ' . 'x';",
            "'Authorization: ***' . '***';",
        ),
        (
            r#"exec("curl -H 'Authorization: Bearer x' -v");"#,
            r#"exec("curl -H 'Authorization: Bearer ***' -v");"#,
        ),
        ("Cookie: a=x; b=y\nAccept: z", "Cookie: ***\nAccept: z"),
        ("'X-Api-Key: x'", "'X-Api-Key: ***'"),
        // addresses
        ("mysql://u:p@h/d", "mysql://u:***@h/d"),
        (
            "f('redis://:p@h:6379/0', 'y');",
            "f('redis://:***@h:6379/0', 'y');",
        ),
        ("f('mysql://u:p@q/r@h/d');", "f('mysql://u:***@h/d');"),
        ("f('amqp://u:p/q@h');", "f('amqp://u:***@h');"),
        (
            "'http://u:p@h/?token=x&a=b'",
            "'http://u:***@h/?token=***&a=b'",
        ),
    ];
    for (given, wanted) in table {
        assert_eq!(php(given), wanted, "of {given}");
    }
}

#[test]
fn what_names_no_secret_stays_as_it_is() {
    for text in [
        "return User::count();",
        "$a = 'x'; echo \"y\";",
        "get('http://localhost:8080/users/a@b.c');",
        "get('https://example.test/a:b@c');",
        "'ssh://git@example.test/a.git'",
        "$token->value();",
        "return $password;",
        "$password = $input->get($name);",
        "return Token::parse($text);",
        "getenv('DB_PASSWORD');",
        "// the token is read here\n",
        "f($user, $password, 'x');",
        "exec('tool --token --verbose');",
        "",
        "'",
        "<<<",
        "#",
        "$password =",
        "'password",
        "--token",
        "https://",
    ] {
        assert_eq!(php(text), text);
    }
}

#[test]
fn an_error_message_is_masked_without_losing_its_class() {
    let given = "App\\InvalidTokenException: cannot reach mysql://u:p@h with password=x";
    let wanted = "App\\InvalidTokenException: cannot reach mysql://u:***@h with password=***";
    assert_eq!(masked(given, Grammar::Prose, ALL), wanted);
}

#[test]
fn a_cut_is_exact_and_keeps_characters_whole() {
    assert_eq!(masked("abcdef", Grammar::Php, 4), "abcd");
    assert_eq!(masked("abcdef", Grammar::Php, 6), "abcdef");
    assert_eq!(masked("abcé", Grammar::Php, 4), "abc");
    assert_eq!(masked("--token=xyz abc", Grammar::Php, 9), "--token=*");
}

#[test]
fn a_megabyte_of_names_quotes_and_addresses_is_read_in_linear_time() {
    // Quadratic reading takes minutes for these, linear milliseconds: a hung test, not a slow one.
    let repeated = [
        "password ",
        "token='",
        "a://b:",
        "$token=$",
        "'token',",
        "x=\"\\",
        "<<<A\n",
    ];
    for part in repeated {
        let text = part.repeat(1_000_000 / part.len());
        assert!(masked(&text, Grammar::Php, 4096).len() <= 4096, "of {part}");
    }
}

/// Texts with `@` in the place of a secret of letters and digits.
const PLACES: [&str; 22] = [
    "--password=@",
    "--api-key @ --next",
    "$password = '@';",
    "$secret = trim(\"@\");",
    "login(user: 'a', password: '@');",
    "['db' => ['password' => '@']]",
    "[\"client_secret\" => \"@\", 'b' => 1]",
    "define('API_KEY', '@');",
    "putenv('API_KEY=@');",
    "API_KEY=@",
    "'password=' . '@'",
    "'Authorization: Bearer @'",
    "'Authorization: Bearer ' . '@'",
    "['Authorization' => 'Bearer @']",
    "new PDO('mysql:host=h;password=@;dbname=d')",
    "$dsn = 'mysql://user:@\u{40}host/db';",
    "get('https://example.test/?access_token=@&page=2');",
    "exec(\"tool --token='@' -v\");",
    "'{\"password\":\"@\"}'",
    "\"{\\\"password\\\":\\\"@\\\"}\"",
    "/* the password: @ */",
    "$token = <<<'EOT'\n@\nEOT;",
];

fn planted(place: &str, secret: &str) -> String {
    // Only the first `@` is replaced; that of an address stays.
    place.replacen('@', secret, 1)
}

proptest! {
    #[test]
    fn a_planted_secret_never_appears(
        place in prop::sample::select(&PLACES[..]),
        secret in "[A-Za-z0-9]{6,40}Q9",
        before in "([a-z]{1,8} ?[=+(]? ?[$0-9]{0,2}; ?\n?){0,6}",
        after in "\\PC{0,60}",
        max in 0_usize..400,
    ) {
        let text = format!("{before}{}\n{after}", planted(place, &secret));
        prop_assume!(!before.contains(&secret) && !after.contains(&secret));
        let whole = masked(&text, Grammar::Php, ALL);
        prop_assert!(!whole.contains(&secret), "{text:?} became {whole:?}");
        // A cut is a prefix of what is masked whole, so that no part of a secret appears either.
        let cut = masked(&text, Grammar::Php, max);
        prop_assert!(cut.len() <= max && whole.starts_with(&cut));
        prop_assert!(max >= whole.len() || max - cut.len() < 4);
    }

    /// A stray quote may change how the text before the secret is read; the secret stays masked.
    #[test]
    fn a_misread_quote_does_not_uncover_a_secret(
        place in prop::sample::select(&PLACES[..10]),
        secret in "[A-Za-z0-9]{6,40}Q9",
        before in "[a-z '\"`/*#]{0,20}\n",
    ) {
        let text = format!("{before}{}", planted(place, &secret));
        let whole = masked(&text, Grammar::Php, ALL);
        prop_assert!(!whole.contains(&secret), "{text:?} became {whole:?}");
    }

    #[test]
    fn no_text_is_too_odd(text in "(\\PC|['\"`\\\\\n/*#?<>=:,;@(){}\\[\\]]|password|token=|://|<<<A){0,80}") {
        let whole = masked(&text, Grammar::Php, ALL);
        prop_assert!(whole.len() <= text.len() + 3 * text.len());
        masked(&text, Grammar::Prose, 16);
    }
}
