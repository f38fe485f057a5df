//! What is found, in which forms, and what is left alone.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::common_words::is_weak;
use super::output::tests::streamed;
use super::{Secrets, Used, Variable};
use crate::{Diagnostics, EvalResult, Outcome};

mod forms;
mod words;

const PATIENCE: Duration = Duration::from_secs(60);

fn later() -> Instant {
    Instant::now() + PATIENCE
}

const SECRET: &str = "pä/ss+w0rd \"&\n";

fn variables(variables: &[(&str, &str)]) -> Vec<Variable> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    variables
        .iter()
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect()
}

fn secrets(all: &[(&str, &str)]) -> Arc<Secrets> {
    Secrets::of(&variables(all)).unwrap()
}

fn redacted(text: &str) -> String {
    secrets(&[("DB_PASSWORD", SECRET)]).redacted(text)
}

fn found(all: &[(&str, &str)]) -> Vec<(String, String)> {
    super::variables::secrets(&variables(all))
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8(value).unwrap()))
        .collect()
}

#[test]
fn names_tell_which_variables_are_secret() {
    for name in [
        "DB_PASSWORD",
        "APP_SECRET",
        "GITHUB_TOKEN",
        "STRIPE_KEY",
        "app_key",
        "MY_CREDENTIALS_2",
        "db_pass",
    ] {
        assert_eq!(found(&[(name, "123456")]), [(name.into(), "123456".into())]);
    }
    for (name, value) in [
        ("DB_PASSWORD", "1x345"),
        ("PATH", "/usr/bin:/bin"),
        ("KEYBOARD", "qwerty"),
        ("MONKEY", "banana"),
        ("OLDPWD", "/home/you"),
        ("JWT_PUBLIC_KEY", "config/public.pem"),
        ("DB_PASSWORD_FILE", "/run/secrets/db"),
        ("MAX_TOKENS", "128000"),
        ("SESSION_COOKIE", "laravel_session"),
        ("HOME", "/home/token"),
    ] {
        assert_eq!(found(&[(name, value)]), []);
    }
}

#[test]
fn passwords_inside_of_urls_and_dsns_are_secret() {
    for (value, secret) in [
        ("mysql://shop:s3cr3t!@db:3306/shop?charset=utf8", "s3cr3t!"),
        ("redis://:s3cr3t!@localhost", "s3cr3t!"),
        ("amqp://a:s3cr3t!@one,amqp://a:s3cr3t!@two", "s3cr3t!"),
        ("pgsql:host=db;user=shop;password=s3cr3t!", "s3cr3t!"),
        ("host=db password='s3cr3t!'", "s3cr3t!"),
        ("https://example.org/hook?token=s3cr3t!&a=b", "s3cr3t!"),
        ("mysql://u:s3cr3t!@db/x?from=me@example.org", "s3cr3t!"),
        (
            "amqp://a:s3cr3t!@one,amqp://a:0therS3cret@two",
            "0therS3cret",
        ),
        ("Driver=x;UID=sa;PWD=s3cr3t!;", "s3cr3t!"),
        ("redis://s3cr3t!@localhost", "s3cr3t!"),
        (
            "https://ghp_0123456789abcdef6h@github.com/x",
            "ghp_0123456789abcdef6h",
        ),
        ("mysql://u:s3/cr@3t!@db/x", "s3/cr@3t!"),
    ] {
        let all = found(&[("DATABASE_URL", value)]);
        assert!(
            all.iter().any(|(_, found)| found == secret),
            "{value}: {all:?}"
        );
        assert!(
            all.iter().all(|(_, found)| !found.contains("shop")),
            "{value}: {all:?}"
        );
    }
    // Percent-encoded, or meant literally.
    let both = found(&[("X_URL", "mysql://u:a%2Fb%2Fc%2Fd@h/d")]);
    let values: Vec<&str> = both.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["a%2Fb%2Fc%2Fd", "a/b/c/d"]);
    assert_eq!(found(&[("APP_URL", "http://localhost:8080/users/@me")]), []);
}

#[test]
fn a_secret_is_looked_for_as_applications_use_it() {
    let values = |value| {
        let all = found(&[("A_KEY", value)]);
        all.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };

    assert_eq!(values(" padded\n"), [" padded\n", "padded"]);
    assert_eq!(values("line1\\nline2"), ["line1\\nline2", "line1\nline2"]);
    assert_eq!(
        values("base64:c2l4IGJ5dGVz"),
        ["base64:c2l4IGJ5dGVz", "c2l4IGJ5dGVz", "six bytes"]
    );
    let json = r#"{"github-oauth": {"github.com": "abcdef6h"}, "n": [1, "ijkl_nop"]}"#;
    assert_eq!(values(json), [json, "abcdef6h", "ijkl_nop"]);
    let long = "0123456789".repeat(1000);
    let text = secrets(&[("A_KEY", &long)]).redacted(&format!("<{long}>"));
    assert_eq!(text.replace("[redacted:A_KEY]", ""), "<>");
}

#[test]
fn a_secret_is_replaced_in_every_usual_form() {
    let json = serde_json::to_string(SECRET).unwrap();
    let inside = json[1..json.len() - 1].to_owned();
    for form in [
        SECRET.to_owned(),
        inside.clone(),
        inside.replace('/', "\\/"),
        inside.replace('/', "\\/").replace('ä', "\\u00e4"),
        "p%C3%A4%2Fss%2Bw0rd%20%22%26%0A".into(),
        "p%c3%a4%2fss%2bw0rd+%22%26%0a".into(),
        STANDARD.encode(SECRET),
        SECRET.replace('"', "\\\""),
        SECRET.replace('&', "&amp;").replace('"', "&quot;"),
    ] {
        assert_eq!(
            redacted(&format!("<{form}>{form}")),
            "<[redacted:DB_PASSWORD]>[redacted:DB_PASSWORD]"
        );
    }
}

#[test]
fn of_a_longer_text_in_base64_the_secret_is_gone_wherever_it_begins() {
    for before in 0..7 {
        for after in 0..4 {
            let text = format!("{}{SECRET}{}", "b".repeat(before), "a".repeat(after));
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let shown = redacted(&encoded);
                assert!(
                    shown.contains("[redacted:DB_PASSWORD]"),
                    "{before} {after}: {shown}"
                );
                // On either side, less than one byte of it can be derived from what is left.
                let left = shown.replace("[redacted:DB_PASSWORD]", "");
                let used = (before * 8).div_ceil(6) + (after * 8).div_ceil(6) + 3 + 2;
                assert!(left.len() <= used, "{before} {after}: {left}");
            }
        }
    }
}

#[test]
fn secrets_that_overlap_are_gone_altogether() {
    let both = secrets(&[("A_TOKEN", "abcdef6h"), ("B_TOKEN", "ef6hijkl")]);

    assert_eq!(both.redacted("xabcdef6hijkly"), "x[redacted:A_TOKEN]y");
    assert_eq!(
        both.redacted("ef6hijklabcdef6h"),
        "[redacted:B_TOKEN][redacted:A_TOKEN]"
    );
    // One secret inside of another.
    let nested = secrets(&[("SHORT_KEY", "cdef6h"), ("LONG_KEY", "abcdef6hij")]);
    assert_eq!(
        nested.redacted("-abcdef6hij-cdef6h-"),
        "-[redacted:LONG_KEY]-[redacted:SHORT_KEY]-"
    );
}

#[test]
fn what_a_cut_has_left_of_a_secret_is_replaced() {
    let secrets = secrets(&[("A_TOKEN", "abcdef6hij")]);
    let text = |text: &str, is_cut| {
        let mut text = text.to_owned();
        secrets.text(&mut text, is_cut, &mut Used::for_ever());
        text
    };

    assert_eq!(
        text("so: abcdef6...(truncated)", false),
        "so: [redacted:A_TOKEN]...(truncated)"
    );
    assert_eq!(
        text("so: abcdef6\n...(truncated)", false),
        "so: [redacted:A_TOKEN]\n...(truncated)"
    );
    assert_eq!(text("so: abc", true), "so: [redacted:A_TOKEN]");
    assert_eq!(text("so: abcdef6", false), "so: abcdef6");
    assert_eq!(text("so: ab", true), "so: ab");
    let start = &STANDARD.encode("xabcdef6hij")[..10];
    assert_eq!(text(start, true), "eG[redacted:A_TOKEN]");
    for (cut, left) in [
        ("xxabcdef", "eHh"),
        ("xabcdef", "eG"),
        ("abcdef", ""),
        ("xxabcde", "eHh"),
    ] {
        assert_eq!(
            text(&STANDARD.encode(cut), true),
            format!("{left}[redacted:A_TOKEN]")
        );
    }
}

fn result() -> EvalResult {
    EvalResult {
        result: None,
        stdout: String::new(),
        stderr: String::new(),
        exception: None,
        duration_ms: 0,
        memory_peak_bytes: 0,
        exit_code: 0,
        timed_out: false,
        diagnostics: Diagnostics::of(Outcome::Returned),
    }
}

#[test]
fn no_part_of_a_result_says_it() {
    let secrets = secrets(&[("PIN_TOKEN", "8264190375"), ("OTHER_SECRET", "unseen")]);
    let mut all = EvalResult {
        result: Some(json!({
            "type": "array", "is_list": false, "count": 4,
            "value": {
                "8264190375": {"type": "int", "value": 8_264_190_375_u64},
                "a 8264190375": {"type": "float", "value": 0.5},
                "cut": {"type": "string", "encoding": "base64", "value": &STANDARD.encode("8264190375")[..6], "truncated": true},
                "[redacted:PIN_TOKEN]": {"type": "null", "value": null},
            },
        })),
        stdout: "out 8264190375".into(),
        stderr: "err 8264190375".into(),
        exception: Some(json!({"class": "E", "message": "m 8264190375", "stack_trace": ["f (8264190375:1)"]})),
        diagnostics: serde_json::from_value::<BTreeMap<String, serde_json::Value>>(json!({
            "outcome": "threw", "message": "8264190375", "start_reason": "8264190375",
            "location": {"file": "8264190375", "line": 1, "stack_trace": ["8264190375"]},
            "blocked": [{"what": "open 8264190375", "guard": "ini", "lift": "--service=8264190375:1"}],
            "file_changes": {"created": [{"path": "8264190375", "size": 1}], "modified": [], "deleted": []},
            "guards": {"ini": "why 8264190375"},
        }))
        .map(|told| EvalResult::from_json(json!({"diagnostics": told})).diagnostics)
        .unwrap(),
        ..result()
    };
    secrets.redact(&mut all, later());

    let said = all.to_json().to_string();
    assert!(!said.contains("8264190375"), "{said}");
    assert!(
        !said.contains(&STANDARD.encode("8264190375")[..12]),
        "{said}"
    );
    assert_eq!(all.diagnostics.redacted, ["PIN_TOKEN"]);
    let value = all.result.unwrap()["value"].clone();
    assert_eq!(
        value["[redacted:PIN_TOKEN]"]["value"],
        "[redacted:PIN_TOKEN]"
    );
    assert_eq!(value["[redacted:PIN_TOKEN] (2)"]["type"], "null");
    assert_eq!(value.as_object().unwrap().len(), 4);
}

#[test]
fn the_shape_of_an_answer_stays_whatever_a_secret_equals() {
    let words = secrets(&[
        ("A_TOKEN", "base64"),
        ("B_TOKEN", "is_list"),
        ("C_TOKEN", "stack_trace"),
        ("D_TOKEN", "826419037"),
    ]);
    let mut shaped = EvalResult {
        result: Some(json!({
            "type": "string", "encoding": "base64", "value": "a base64", "length": 8264190371_u64,
            "truncated": true, "is_list": "826419037",
        })),
        exception: Some(
            json!({"class": "E", "stack_trace": "a stack_trace", "code": 8264190371_u64}),
        ),
        ..result()
    };
    words.redact(&mut shaped, later());

    assert_eq!(
        shaped.result.unwrap(),
        json!({
            "type": "string", "encoding": "base64", "value": "a [redacted:A_TOKEN]",
            "length": 8264190371_u64, "truncated": true, "is_list": "826419037",
        }),
    );
    assert_eq!(
        shaped.exception.unwrap(),
        json!({"class": "E", "stack_trace": "a [redacted:C_TOKEN]", "code": 8264190371_u64}),
    );
}

#[test]
fn nothing_is_changed_where_no_secret_is() {
    let secrets = secrets(&[("A_TOKEN", "abcdef6hij")]);
    let mut clean = EvalResult {
        result: Some(json!({"type": "string", "value": "abc", "n": [1.5, -3, null]})),
        stdout: "abcdef6hi...(truncate".into(),
        ..result()
    };
    let before = clean.clone();
    secrets.redact(&mut clean, later());

    assert_eq!(clean, before);
    assert!(Secrets::of(&variables(&[("HOME", "/home/you")])).is_none());
}

#[test]
fn its_values_are_not_in_what_a_developer_prints() {
    assert_eq!(
        format!("{:?}", secrets(&[("A_TOKEN", "abcdef6hij")])),
        "Secrets([\"A_TOKEN\"])"
    );
}

#[test]
fn what_there_was_no_time_to_look_through_is_not_shown() {
    let secrets = secrets(&[("DB_PASSWORD", SECRET)]);
    let mut late = result();
    late.stdout = "harmless".into();
    secrets.redact(&mut late, Instant::now());
    assert!(late.stdout.starts_with("[not shown"), "{}", late.stdout);
    let mut in_time = result();
    in_time.stdout = "harmless".into();
    secrets.redact(&mut in_time, later());
    assert_eq!(in_time.stdout, "harmless");
}

#[test]
fn a_number_that_there_was_no_time_to_look_at_is_not_shown() {
    let secrets = secrets(&[("PIN_SECRET", "8264190375")]);
    let number = || {
        let mut result = result();
        result.result = Some(serde_json::json!(8_264_190_375_u64));
        result
    };
    let mut late = number();
    secrets.redact(&mut late, Instant::now());
    let shown = late.result.unwrap();
    assert!(shown.as_str().unwrap().starts_with("[not shown"), "{shown}");
    let mut in_time = number();
    secrets.redact(&mut in_time, later());
    assert_eq!(in_time.result.unwrap(), "[redacted:PIN_SECRET]");
}

proptest! {
    #[test]
    fn in_whatever_pieces_it_comes_no_secret_is_passed_on(
        text in "[a_]{0,60}",
        cuts in prop::collection::vec(0usize..60, 0..6),
        secret in "_[a_]{5,7}",
        more in "[a_]{0,6}",
        is_nested in any::<bool>(),
        other in "_[a_]{5,7}",
    ) {
        let other = if is_nested { format!("{secret}{more}") } else { other };
        let variables = [("A_TOKEN", secret.as_str()), ("B_TOKEN", other.as_str())];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();

        let shown = String::from_utf8(streamed(&variables, &chunks)).unwrap();

        prop_assert!(!shown.contains(&secret) && !shown.contains(&other), "{}", shown);
        let apart = shown.replace("[redacted:A_TOKEN]", "|").replace("[redacted:B_TOKEN]", "|");
        // The remaining text is that of the whole text.
        let whole = secrets(&variables).redacted(&text);
        let whole = whole.replace("[redacted:A_TOKEN]", "|").replace("[redacted:B_TOKEN]", "|");
        let left = |text: &str| text.replace('|', "");
        prop_assert_eq!(left(&apart), left(&whole));
    }

    #[test]
    fn what_is_found_is_what_looking_everywhere_finds(
        text in "[abc]{0,80}",
        values in prop::collection::vec("[abc]{6,9}", 1..6),
    ) {
        let finder = super::Finder::new(values.iter().map(|value| value.as_bytes()).enumerate());
        let mut hidden = vec![false; text.len()];
        for value in &values {
            for at in 0..text.len() {
                if text[at..].starts_with(value.as_str()) {
                    hidden[at..at + value.len()].fill(true);
                }
            }
        }
        let mut found = vec![false; text.len()];
        let mut end = 0;
        for (span, _) in finder.spans(text.as_bytes(), false, None).unwrap() {
            prop_assert!(span.start >= end && span.end > span.start);
            end = span.end;
            found[span].fill(true);
        }
        prop_assert_eq!(found, hidden);
    }

    #[test]
    fn any_text_can_be_looked_through(text in any::<String>(), value in any::<String>()) {
        if let Some(secrets) = Secrets::of(&variables(&[("A_TOKEN", &value)]))
            && !is_weak(value.as_bytes())
        {
            let shown = secrets.redacted(&format!("{text}{value}{text}"));
            prop_assert!(shown.contains("[redacted:A_TOKEN]"));
        }
    }
}
