use crate::doctor::attacks::{Attempt, Seen};
use crate::doctor::report::Verdict;
use crate::doctor::self_test::judge;

fn attempt(tried: &str, seen: Seen) -> Attempt {
    Attempt {
        tried: tried.into(),
        seen,
    }
}

fn through() -> Seen {
    Seen::Through("reached".into())
}

fn stopped() -> Seen {
    Seen::Stopped("not reached".into())
}

#[test]
fn a_guard_that_holds_what_would_get_through_has_passed() {
    let test = judge(vec![attempt("a", stopped())], &[attempt("a", through())]);
    assert_eq!((test.verdict, test.reason), (Verdict::Passed, None));
    assert_eq!(test.attacks[0].seen, "not reached");
    assert_eq!(test.attacks[0].without.as_deref(), Some("reached"));
    assert!(test.attacks[0].held);
}

#[test]
fn one_attack_that_gets_through_fails_the_guard() {
    let test = judge(
        vec![attempt("a", stopped()), attempt("b", through())],
        &[attempt("a", through()), attempt("b", through())],
    );
    assert_eq!(test.verdict, Verdict::Failed);
    let held: Vec<_> = test.attacks.iter().map(|attack| attack.held).collect();
    assert_eq!(held, [true, false]);
    // Even if the same attempt did not get through without the guard.
    let test = judge(vec![attempt("a", through())], &[attempt("a", stopped())]);
    assert_eq!(test.verdict, Verdict::Failed);
}

#[test]
fn an_attack_that_never_works_shows_nothing() {
    let test = judge(vec![attempt("a", stopped())], &[attempt("a", stopped())]);
    assert_eq!(test.verdict, Verdict::NotTried);
    assert_eq!(
        test.reason.as_deref(),
        Some("a: not reached, without the guard too")
    );
    let impossible = || Seen::Impossible("no loopback".into());
    let test = judge(
        vec![attempt("a", impossible()), attempt("b", stopped())],
        &[attempt("a", impossible()), attempt("b", through())],
    );
    assert_eq!(test.verdict, Verdict::Passed);
    assert_eq!(test.reason.as_deref(), Some("a: no loopback"));
    assert_eq!(test.attacks.len(), 1);
}

#[test]
fn what_cannot_be_left_out_is_judged_by_itself() {
    let test = judge(vec![attempt("a", stopped())], &[]);
    assert_eq!(test.verdict, Verdict::Passed);
    assert_eq!(test.attacks[0].without, None);
}
