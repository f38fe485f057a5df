//! The rare forms of a secret.

use std::time::{Duration, Instant};

use super::super::{Finder, SHORTEST};
use super::{SECRET, found, redacted, secrets};

/// Contains every character that JSON or HTML may escape.
const SPECIAL: &str = "p\"a'<&>/sé";

#[test]
fn a_secret_is_replaced_in_json_for_html_and_in_json_inside_of_json() {
    let special = secrets(&[("DB_PASSWORD", SPECIAL)]);
    for form in [
        // JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT, as Symfony's JsonResponse
        r"p\u0022a\u0027\u003C\u0026\u003E\/s\u00e9",
        r"p\u0022a\u0027\u003C\u0026\u003E/sé",
        // JSON_HEX_TAG, JSON_HEX_APOS | JSON_HEX_QUOT
        r#"p\"a'\u003C&\u003E\/s\u00e9"#,
        r"p\u0022a\u0027<&>\/s\u00e9",
        // Go's
        r#"p\"a'\u003c\u0026\u003e/sé"#,
        // json_encode(json_encode(…)), with slashes escaped in both, in the inner one, in none
        r#"p\\\"a'<&>\\\/s\\u00e9"#,
        r#"p\\\"a'<&>\\/s\\u00e9"#,
        r#"p\\\"a'<&>/sé"#,
        r"p\\u0022a\\u0027\\u003C\\u0026\\u003E\\\/s\\u00e9",
        // htmlspecialchars() with ENT_QUOTES, ENT_COMPAT, ENT_NOQUOTES, ENT_QUOTES | ENT_HTML5
        "p&quot;a&#039;&lt;&amp;&gt;/sé",
        "p&quot;a'&lt;&amp;&gt;/sé",
        "p\"a'&lt;&amp;&gt;/sé",
        "p&quot;a&apos;&lt;&amp;&gt;/sé",
        // Numbers, as other languages write them
        "p&#34;a&#39;&lt;&amp;&gt;/sé",
        "p&#x22;a&#x27;&lt;&amp;&gt;/sé",
        // htmlspecialchars(json_encode(…))
        r"p\&quot;a&#039;&lt;&amp;&gt;\/s\u00e9",
    ] {
        assert_eq!(
            special.redacted(&format!("<{form}>")),
            "<[redacted:DB_PASSWORD]>",
            "{form}"
        );
    }
    // A line feed is escaped too.
    assert_eq!(
        redacted(&format!("{:?}", serde_json::to_string(SECRET).unwrap())),
        "\"\\\"[redacted:DB_PASSWORD]\\\"\""
    );
}

#[test]
fn a_key_of_several_lines_is_secret_line_by_line() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\nab\n-----END PRIVATE KEY-----\n";
    let lines = ["MIIEvQIBADANBg", "kqhkiG9w0BAQ=="];
    let values = |name: &str, value: &str| {
        let all = found(&[(name, value)]);
        all.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    for written in [
        key.to_owned(),
        key.replace('\n', "\\n"),
        key.replace('\n', "\r\n"),
    ] {
        let all = values("SIGNING_KEY", &written);
        assert!(
            lines.iter().all(|line| all.iter().any(|it| it == line)),
            "{all:?}"
        );
        assert!(
            !all.iter()
                .any(|it| it.starts_with("-----B") && !it.contains("MII")),
            "{all:?}"
        );
        // Lines come after whole values.
        let end: Vec<&str> = all[all.len() - 2..].iter().map(String::as_str).collect();
        assert_eq!(end, lines);
    }
    let shown = secrets(&[("SIGNING_KEY", key)]).redacted("a\n  kqhkiG9w0BAQ==\nb");
    assert_eq!(shown, "a\n  [redacted:SIGNING_KEY]\nb");
    // Words, lines that contain spaces, and JSON are not secret line by line.
    assert_eq!(
        values("A_TOKEN", "secret\nvisible\nx y z w"),
        ["secret\nvisible\nx y z w"]
    );
    let json = "{\n\"a\":\"b\"\n}";
    assert_eq!(values("A_TOKEN", json), [json]);
    assert_eq!(values("A_NAME", key), Vec::<String>::new());
    // Whole secrets go before the lines of others.
    let long: String = (0..2000).map(|line| format!("line-{line:04}\n")).collect();
    let all = found(&[("A_KEY", &long), ("B_TOKEN", "7f3a9cb2")]);
    assert!(all.iter().any(|(_, value)| value == "7f3a9cb2"));
    assert_eq!(all.len(), 1000);
}

#[test]
fn forms_of_very_many_secrets_are_bounded() {
    // 256 KiB of values with the most forms.
    let values: Vec<String> = (0..1000)
        .map(|n| format!("{n:06}{}", "\"'<&>/é".repeat(30)))
        .collect();
    let started = Instant::now();
    let finder = Finder::new(values.iter().map(|value| value.as_bytes()).enumerate());
    assert!(started.elapsed() < Duration::from_secs(20));
    let bytes: usize = finder.sizes().sum();
    let own: usize = values.iter().map(String::len).sum();
    // Each value has at most thirty usual forms, each at most six times its length.
    assert!(bytes <= own * 6 * 30 + (4 << 20), "{bytes}");
    assert!(values.iter().all(|value| value.len() >= SHORTEST));
    assert_eq!(
        finder.spans(values[999].as_bytes(), false, None).unwrap()[0].1,
        999
    );
}
