//! Weak secrets: where they are replaced, and where the word stays.

use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::common_words::is_weak;
use super::super::variables::weak;
use super::{EvalResult, found, later, result, secrets, streamed, variables};

/// Laravel's Sail.
const SAIL: [(&str, &str); 3] = [
    ("DB_PASSWORD", "password"),
    ("MAIL_PASSWORD", "!ChangeMe!"),
    ("ADMIN_PASSWORD", "root"),
];

#[test]
fn words_known_defaults_and_short_texts_of_one_kind_are_weak() {
    for value in [
        "password",
        "Password",
        "PASSWORD",
        "root",
        "sail",
        "admin",
        "guest",
        "test",
        "secret",
        "laravel",
        "symfony",
        "postgres",
        "!ChangeMe!",
        "%21ChangeMe%21",
        "change_me",
        "P@ssw0rd",
        "secret123",
        "admin!",
        "test1234",
        "administrator",
        "correcthorse",
        "банан",
        "123456",
        "20240101",
        "1234",
        " password\n",
    ] {
        assert!(is_weak(value.as_bytes()), "{value}");
    }
    for value in [
        "correcthorses",
        "bluFfing",
        "qzJxkvbp",
        "p4ssphrase",
        "secret-8f3a2c",
        "secret12345",
        "123456789",
        "12345a",
        "user_id",
        "a.b.c.d",
        "correct horse",
        "base64:password",
        "abcdefghijklmnop",
    ] {
        assert!(!is_weak(value.as_bytes()), "{value}");
    }
    assert!(!is_weak(b"p\xe4ssword"));
}

#[test]
fn a_word_stays_one_in_texts_and_keys() {
    let sail = secrets(&SAIL);
    for text in [
        "SELECT password FROM users",
        "the root of it: a password",
        "hashed_password",
        "Illuminate\\Auth\\Passwords\\password",
        "mailto:root@example.org",
        "To:root@example.org",
        "key=password",
        "password=passwords",
        "password=password-reset",
        "https://example.org/a:password@b",
        "https://example.org/reset?next=password",
        "password",
        "\"password\"",
    ] {
        assert_eq!(sail.redacted(text), text);
    }
    let rows = json!({"type": "array", "is_list": false, "count": 4, "value": {
        "password": {"type": "null", "value": null},
        "hashed_password": {"type": "string", "value": "password"},
        "name": {"type": "string", "value": "password"},
        "reset_password": {"type": "string", "value": "the password"},
    }});
    let shown = redacted(&SAIL, rows.clone());
    // The name marks a secret, and the value equals it.
    assert_eq!(
        shown["value"]["hashed_password"]["value"],
        "[redacted:DB_PASSWORD]"
    );
    assert_eq!(shown["value"]["name"], rows["value"]["name"]);
    assert_eq!(
        shown["value"]["reset_password"],
        rows["value"]["reset_password"]
    );
    let keys = |value: &Value| {
        value["value"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&shown), keys(&rows));
}

fn redacted(of: &[(&str, &str)], value: Value) -> Value {
    let mut all = EvalResult {
        result: Some(value),
        ..result()
    };
    secrets(of).redact(&mut all, later());
    all.result.unwrap()
}

#[test]
fn a_word_is_replaced_as_the_value_of_a_key_that_names_a_secret() {
    let string = |text: &str| json!({"type": "string", "value": text});
    let config = json!({"type": "object", "class": "C", "id": 1, "properties": {
        "password": string("password"),
        "dbPass": string("root"),
        "connections": {"type": "array", "is_list": false, "count": 2, "value": {
            "DB_PASSWORD": string("!ChangeMe!"),
            "pin_token": {"type": "int", "value": 123456},
        }},
        "port": {"type": "int", "value": 123456},
        "options": {"type": "iterable", "class": "I", "preview": [
            {"key": "api_token", "value": string("root")},
            {"key": "user", "value": string("root")},
        ]},
    }});
    let shown = redacted(&[&SAIL[..], &[("A_PIN_TOKEN", "123456")]].concat(), config);

    let all = &shown["properties"];
    assert_eq!(all["password"]["value"], "[redacted:DB_PASSWORD]");
    assert_eq!(all["dbPass"]["value"], "[redacted:ADMIN_PASSWORD]");
    let inner = &all["connections"]["value"];
    assert_eq!(inner["DB_PASSWORD"]["value"], "[redacted:MAIL_PASSWORD]");
    assert_eq!(inner["pin_token"]["value"], "[redacted:A_PIN_TOKEN]");
    assert_eq!(all["port"]["value"], 123456);
    let preview = &all["options"]["preview"];
    assert_eq!(preview[0]["value"]["value"], "[redacted:ADMIN_PASSWORD]");
    assert_eq!(preview[1]["value"]["value"], "root");
}

#[test]
fn a_word_is_replaced_as_the_password_of_a_url_or_a_dsn() {
    let sail = secrets(&SAIL);
    for (text, shown) in [
        ("mysql://sail:password@mysql/x", "mysql://sail:|@mysql/x"),
        ("at (redis://:root@cache).", "at (redis://:|@cache)."),
        ("redis://root@cache", "redis://|@cache"),
        ("rediss://root@cache", "rediss://|@cache"),
        ("https://root@example.org", "https://root@example.org"),
        (
            "amqp://a:root@one,amqp://b:password@two",
            "amqp://a:|@one,amqp://b:|@two",
        ),
        ("smtp://me:!ChangeMe!@mail", "smtp://me:|@mail"),
        ("smtp://me:%21ChangeMe%21@mail", "smtp://me:|@mail"),
        (
            "{\"u\":\"mysql:\\/\\/a:root@b\"}",
            "{\"u\":\"mysql:\\/\\/a:|@b\"}",
        ),
        (
            "\"mysql:\\\\\\/\\\\\\/a:root@b\"",
            "\"mysql:\\\\\\/\\\\\\/a:|@b\"",
        ),
        (
            "pgsql:host=db;password=password",
            "pgsql:host=db;password=|",
        ),
        (
            "host=db password='root' port=1",
            "host=db password='|' port=1",
        ),
        ("Driver=x;UID=sa;PWD=root;", "Driver=x;UID=sa;PWD=|;"),
        ("DB_PASSWORD=password\nA=b", "DB_PASSWORD=|\nA=b"),
        (
            "{\"dsn\":\"x;pass=\\\"root\\\"\"}",
            "{\"dsn\":\"x;pass=\\\"|\\\"\"}",
        ),
        (
            "?token=root&password=password&user=root",
            "?token=|&password=|&user=root",
        ),
    ] {
        let of = ["DB_PASSWORD", "MAIL_PASSWORD", "ADMIN_PASSWORD"];
        let plain = of.iter().fold(sail.redacted(text), |text, name| {
            text.replace(&format!("[redacted:{name}]"), "|")
        });
        assert_eq!(plain, shown, "{text}");
    }
}

#[test]
fn of_a_word_that_a_cut_has_shortened_nothing_is_left_either() {
    let sail = secrets(&SAIL);
    assert_eq!(
        sail.redacted("mysql://sail:passw...(truncated)"),
        "mysql://sail:[redacted:DB_PASSWORD]...(truncated)"
    );
    assert_eq!(
        sail.redacted("a passw...(truncated)"),
        "a passw...(truncated)"
    );
}

#[test]
fn a_word_and_a_secret_beside_each_other_are_both_replaced() {
    let both = secrets(&[("DB_PASSWORD", "password"), ("A_TOKEN", "mysql-7f3a9c")]);
    assert_eq!(
        both.redacted("x://mysql-7f3a9c:password@mysql-7f3a9c"),
        "x://[redacted:A_TOKEN]:[redacted:DB_PASSWORD]@[redacted:A_TOKEN]"
    );
    // A secret that contains the other one.
    let nested = secrets(&[("DB_PASSWORD", "password"), ("URL_TOKEN", "a:password@b")]);
    assert_eq!(
        nested.redacted("x://a:password@b"),
        "x://[redacted:URL_TOKEN]"
    );
}

#[test]
fn settings_of_secrets_are_none_and_tokens_by_other_names_are() {
    for (name, value) in [
        ("PASSWORD_TIMEOUT", "108000"),
        ("AUTH_PASSWORD_TIMEOUT", "10800"),
        ("COOKIE_DOMAIN", ".shop.example"),
        ("SESSION_COOKIE_DOMAIN", ".shop.example"),
        ("TOKEN_ENDPOINT", "https://id.example/token"),
        ("OAUTH_TOKEN_URL", "https://id.example/token"),
        ("ROUTE_KEY", "user_id"),
        ("HASH_KEY", "user_id"),
        ("AUTH_PASSWORD_RESET_TOKEN_TABLE", "password_reset_tokens"),
    ] {
        assert_eq!(found(&[(name, value)]), [], "{name}");
    }
    for (name, value) in [
        ("GITHUB_PAT", "ghp_0123456789"),
        ("SLACK_WEBHOOK", "https://hooks.example/T0/B0/x"),
        ("SLACK_WEBHOOK_URL", "https://hooks.example/T0/B0/x"),
        ("APP_HASH_KEY", "a1b2c3d4"),
    ] {
        assert_eq!(found(&[(name, value)]), [(name.into(), value.into())]);
    }
}

#[test]
fn the_names_of_variables_with_words_for_secrets_are_told() {
    let all = variables(&[
        ("DB_PASSWORD", "password"),
        ("A_PASSWORD", "root"),
        ("DATABASE_URL", "mysql://sail:password@mysql/x"),
        ("OTHER_URL", "mysql://sail:7f3a9cb2@mysql/x"),
        ("API_TOKEN", "7f3a9cb2"),
        ("APP_NAME", "password"),
        ("SHORT_TOKEN", "ab"),
        ("DB_PASSWORD", "secret"),
    ]);
    assert_eq!(weak(&all), ["DB_PASSWORD", "A_PASSWORD", "DATABASE_URL"]);
    let many: Vec<String> = (0..100).map(|n| format!("S{n}_PASSWORD")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "root")).collect();
    assert_eq!(weak(&variables(&many)).len(), 20);
}

#[test]
fn a_text_of_places_for_passwords_is_looked_through_in_time() {
    let sail = secrets(&SAIL);
    for unit in [
        "@",
        "=",
        ":",
        "a@",
        "a=",
        "=password",
        "password=",
        ":password@",
        "://a:password@",
        "redis://root@",
        "password=passwor",
        "mysql://aaaaaaaaaaaaaaaaaaaaaaaaaaaa:",
        "\\",
        "=\\'",
    ] {
        let text = unit.repeat((1 << 20) / unit.len());
        let started = Instant::now();
        let shown = sail.redacted(&text);
        assert!(
            !shown.is_empty() && started.elapsed().as_secs() < 5,
            "{unit}"
        );
    }
}

proptest! {
    #[test]
    fn in_whatever_pieces_a_password_comes_it_is_replaced(
        text in "(a|:|/|://|x://u:|password=|PWD='|root|pass|word|@| |;|\n){0,14}",
        cuts in prop::collection::vec(0usize..60, 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();

        let shown = String::from_utf8(streamed(&SAIL, &chunks)).unwrap();
        prop_assert_eq!(shown, secrets(&SAIL).redacted(&text));
    }
}
