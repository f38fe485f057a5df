//! What Tab offers.

use altair_engine::shell::{Completion, Name, NameKind};

use super::super::completion::{OFFERED, offers};

fn completion(from: usize, names: &[(&str, NameKind)]) -> Option<Completion> {
    let names = names.iter().map(|(text, kind)| Name {
        text: (*text).into(),
        kind: *kind,
    });
    Some(Completion {
        from,
        names: names.collect(),
    })
}

fn texts(text: &str, names: &[(&str, NameKind)]) -> (usize, Vec<(String, String)>) {
    let (from, offers) = offers(text, |_| completion(0, names));
    let pairs = offers.into_iter().map(|offer| (offer.text, offer.shown));
    (from, pairs.collect())
}

#[test]
fn names_are_listed_by_what_they_are_and_typed_as_they_are() {
    let named = [
        ("mail", NameKind::Function),
        ("mailer", NameKind::ContainerId),
        ("Mailer", NameKind::Class),
    ];
    let pair = |typed: &str, shown: &str| (typed.to_owned(), shown.to_owned());
    let expected = vec![
        pair("mail", "mail()"),
        pair("mailer", "mailer (container)"),
        pair("Mailer", "Mailer"),
    ];
    assert_eq!(texts("mai", &named), (0, expected));
}

#[test]
fn no_name_reaches_the_terminal_that_it_would_act_on() {
    let named = [
        ("\u{1b}]0;title\u{7}", NameKind::ContainerId),
        ("\u{202e}x", NameKind::Variable),
        ("a\nb", NameKind::ContainerId),
        ("é", NameKind::Variable),
    ];
    let (_, offered) = texts("x", &named);
    assert_eq!(offered, [("é".to_owned(), "é".to_owned())]);
}

#[test]
fn a_place_that_is_none_and_a_session_that_cannot_say_offer_nothing() {
    let named = [("x", NameKind::Variable)];
    for from in [1, 7] {
        let (_, offered) = offers("é", |_| completion(from, &named));
        assert_eq!(offered, [], "{from}");
    }
    assert_eq!(offers("x", |_| None).1, []);
}

#[test]
fn the_number_of_offers_is_bounded() {
    let names = vec![("x", NameKind::Constant); OFFERED + 1];
    assert_eq!(texts("x", &names).1.len(), OFFERED);
}

#[test]
fn at_the_beginning_of_a_further_line_tab_indents() {
    let (from, offered) = offers("if (x) {\n  ", |_| unreachable!("nobody is asked"));
    assert_eq!((from, offered[0].text.as_str()), (11, "    "));
}
