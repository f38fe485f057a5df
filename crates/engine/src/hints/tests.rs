#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn nearest(wanted: &str, names: &[&str]) -> Vec<String> {
    let mut nearest = Nearest::to(wanted.as_bytes());
    names.iter().for_each(|name| nearest.offer(name.as_bytes()));
    nearest.names()
}

#[test]
fn names_that_differ_a_little_are_near() {
    let names = ["id", "name", "created_at", "updated_at", "e-mail"];
    assert_eq!(nearest("creatd_at", &names), ["created_at"]);
    assert_eq!(nearest("cretaed_at", &names), ["created_at"]);
    assert_eq!(nearest("createdAt", &names), ["created_at"]);
    assert_eq!(nearest("nmae", &names), ["name"]);
    assert_eq!(nearest("Email", &names), ["e-mail"]);
    assert_eq!(nearest("ID", &names), ["id"]);
}

#[test]
fn names_that_have_little_in_common_are_not() {
    assert!(nearest("x", &["y", "z", "xy"]).is_empty());
    assert!(nearest("it", &["id", "if"]).is_empty());
    assert!(nearest("total", &["name", "count", "t"]).is_empty());
    assert!(nearest("", &["", "a"]).is_empty());
}

#[test]
fn the_nearest_three_are_kept_whatever_comes_first() {
    let names = ["value4", "valueXY", "values", "value", "valu", "other"];
    assert_eq!(nearest("value", &names), ["value", "valu", "value4"]);
    let reversed: Vec<&str> = names.into_iter().rev().collect();
    assert_eq!(nearest("value", &reversed), ["value", "valu", "value4"]);
    // Twice is once.
    assert_eq!(nearest("value", &["values", "values"]), ["values"]);
}

#[test]
fn a_part_counts_only_where_nothing_is_near() {
    let part = |names: &[&str]| {
        let mut nearest = Nearest::to(b"cache").or_a_part();
        names.iter().for_each(|name| nearest.offer(name.as_bytes()));
        nearest.names()
    };
    let found = part(&["cache.system", "cache.app", "mailer"]);
    assert_eq!(found, ["cache.app", "cache.system"]);
    assert_eq!(part(&["cache.app", "caches"]), ["caches"]);
    assert!(nearest("cache", &["cache.app"]).is_empty());
}

#[test]
fn long_and_binary_names_do_no_harm() {
    let long = "a".repeat(1 << 20);
    assert!(nearest(&long, &[&long]).is_empty());
    assert!(nearest("aaaa", &[&long]).is_empty());
    let mut nearest = Nearest::to(b"na\xFFme");
    nearest.offer(b"na\xFEme");
    nearest.offer(b"na\nm\x1be");
    let names = nearest.names();
    assert!(
        names.iter().all(|name| !name.contains(char::is_control)),
        "{names:?}"
    );
}

proptest! {
    #[test]
    fn the_first_look_rules_nothing_out_that_is_near(a in "[a-cA-C_.]{0,9}", b in "[a-cA-C_.]{1,9}") {
        let plain = |name: &str| name.replace('_', "").to_lowercase();
        let (x, y) = (plain(&a), plain(&b));
        let most = match x.len() { 0..=2 => 0, 3..=5 => 1, 6..=8 => 2, _ => 3 };
        let is_near = !x.is_empty() && strsim::osa_distance(&x, &y) <= most;
        prop_assert_eq!(nearest(&a, &[&b]).len() == 1, is_near);
    }

    #[test]
    fn hints_are_few_and_in_one_line(hints in proptest::collection::vec("\\PC*|[\\x00-\\x7f\u{2028}]{0,900}", 0..9)) {
        let bounded = bounded(hints);
        prop_assert!(bounded.len() <= HINTS_MAX);
        for hint in bounded {
            prop_assert!(hint.len() <= HINT_MAX_BYTES && !hint.contains(char::is_control));
        }
    }

    #[test]
    fn the_line_of_an_error_can_be_read_again(snippet in proptest::collection::vec(any::<u8>(), 0..400), at in 0_usize..500) {
        let line = ParseErrorLine::of(&snippet, at);
        prop_assert_eq!(ParseErrorLine::read(&line.to_string()), Some(line.clone()));
        prop_assert!(line.before() <= line.text.chars().count());
        prop_assert!(line.to_string().len() <= 8 * 62 + 60);
        prop_assert!(!line.text.contains(char::is_control));
    }
}

#[test]
fn messages_name_what_does_not_exist() {
    let method = |class: &str, name: &str| {
        let (class, name) = (class.into(), name.into());
        Some(Subject::Method { class, name })
    };
    let of = Subject::of_exception;
    assert_eq!(
        of("Call to undefined function a\\b()"),
        Some(Subject::Function("a\\b".into()))
    );
    assert_eq!(
        of("Call to undefined method A\\B::c()"),
        method("A\\B", "c")
    );
    assert_eq!(of("Method A\\B::c does not exist."), method("A\\B", "c"));
    assert_eq!(of("Method A\\B::c() does not exist"), method("A\\B", "c"));
    let callback = "array_map(): Argument #1 ($callback) must be a valid callback, ";
    let callback = |why| of(&format!("{callback}{why}"));
    assert_eq!(
        callback("class A does not have a method \"b\""),
        method("A", "b")
    );
    assert_eq!(
        callback("function \"b\" not found or invalid function name"),
        Some(Subject::Function("b".into()))
    );
    assert_eq!(
        callback("class \"A\" not found"),
        Some(Subject::Class("A".into()))
    );
    let or_null = "array_map(): Argument #1 ($callback) must be a valid callback or null, ";
    assert_eq!(
        of(&format!("{or_null}class A does not have a method \"b\"")),
        method("A", "b")
    );
    for kind in ["Class", "Interface", "Trait"] {
        assert_eq!(
            of(&format!("{kind} \"A\\B\" not found")),
            Some(Subject::Class("A\\B".into()))
        );
    }
    assert_eq!(
        of("Undefined constant \"A\\B\""),
        Some(Subject::Constant("A\\B".into()))
    );
    let (class, name) = ("A".into(), "B".into());
    assert_eq!(
        of("Undefined constant A::B"),
        Some(Subject::ClassConstant { class, name })
    );
    let (class, name) = ("A".into(), "b".into());
    assert_eq!(
        of("Access to undeclared static property A::$b"),
        Some(Subject::StaticProperty { class, name })
    );
    for other in [
        "",
        "boom",
        "Class \"\" not found",
        "Method of: a::b does not exist.",
    ] {
        assert_eq!(of(other), None, "{other}");
    }
    let of = Subject::of_warning;
    assert_eq!(
        of("Undefined variable $a"),
        Some(Subject::Variable("a".into()))
    );
    assert_eq!(
        of("compact(): Undefined variable $a"),
        Some(Subject::Variable("a".into()))
    );
    assert_eq!(
        of("Undefined array key \"a\""),
        Some(Subject::Key("a".into()))
    );
    assert_eq!(of("Undefined array key -3"), Some(Subject::Index(-3)));
    let (class, name) = ("A".into(), "b".into());
    assert_eq!(
        of("Undefined property: A::$b"),
        Some(Subject::Property { class, name })
    );
    assert_eq!(of("Undefined array key "), None);
}

#[test]
fn hints_say_what_they_are_about_where_there_are_several() {
    let one = Hint::did_you_mean("a", &["b".into()]).unwrap();
    let two = Hint::did_you_mean("c", &["d".into(), "e".into(), "f".into()]).unwrap();
    assert_eq!(told(std::slice::from_ref(&one)), ["did you mean b?"]);
    assert_eq!(
        told(&[one, two]),
        ["a: did you mean b?", "c: did you mean d, e or f?"]
    );
    assert_eq!(Hint::did_you_mean("a", &[]), None);
    let names: Vec<String> = (0..90).map(|n| format!("method{n}()")).collect();
    let list = told(&[Hint::list("a", "A has", &names).unwrap()]);
    assert!(
        list[0].starts_with("A has: method0(), method1(), "),
        "{list:?}"
    );
    assert!(list[0].ends_with("), ..."), "{list:?}");
}

#[test]
fn a_parse_error_shows_its_line() {
    let shown = |snippet: &str, at: usize| {
        let line = ParseErrorLine::of(snippet.as_bytes(), at);
        let caret = " ".repeat(line.before()) + "^";
        (line.to_string(), caret)
    };
    let (hint, caret) = shown("$a = 1;\nforeach ($a as $b {\n}", 26);
    assert_eq!(hint, "line 2, column 19: foreach ($a as $b {");
    assert_eq!(caret, "                  ^");
    // At the end, and with CRLF, tabs and characters of several bytes.
    assert_eq!(shown("foo(\n\n  ", 8).0, "line 1, column 5: foo(");
    assert_eq!(shown("a;\r\n\tb c;\r\n", 7).0, "line 2, column 4:  b c;");
    assert_eq!(shown("'äöü' x", 9).0, "line 1, column 7: 'äöü' x");
    assert_eq!(shown("", 3).0, "line 1, column 1: ");
    // A long line: what is around the place.
    let long = format!("{}]{}", "a".repeat(5000), "b".repeat(5000));
    let (hint, caret) = shown(&long, 5000);
    let text = format!("…{}]{}…", "a".repeat(59), "b".repeat(59));
    assert_eq!(hint, format!("line 1, column 5001: {text}"));
    assert_eq!(text.chars().position(|c| c == ']'), caret.find('^'));
    // At the border, where nothing is cut.
    let (hint, caret) = shown(&format!("{}]", "a".repeat(60)), 60);
    assert_eq!(hint, format!("line 1, column 61: {}]", "a".repeat(60)));
    assert_eq!(caret.len(), 61);
}
