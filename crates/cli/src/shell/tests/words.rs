//! What the shell says of its session.

use std::path::{Path, PathBuf};

use altair_engine::FileChanges;
use altair_engine::shell::Standing;

use super::super::lines::sentence;
use super::super::told;
use super::play::setting;
use crate::human::Theme;

#[test]
fn what_is_lost_is_named_as_far_as_it_can_be_read() {
    let restarted = |lost: &[String]| {
        let (lost, why) = (lost.to_vec(), "the deadline passed".into());
        told::standing(&Standing::Restarted { lost, why }).unwrap()
    };
    let begun = "the session began anew: the deadline passed; ";
    assert_eq!(restarted(&[]), format!("{begun}nothing was lost"));
    assert_eq!(restarted(&["a".into()]), format!("{begun}$a is lost"));
    let many: Vec<String> = (0..25).map(|n| format!("v{n}")).collect();
    assert!(restarted(&many).ends_with("$v19 and 5 more are lost"));
}

#[test]
fn a_name_that_a_terminal_would_act_on_is_written_out() {
    let lost = vec!["\u{1b}[2J".into()];
    let why = String::new();
    let told = told::standing(&Standing::Restarted { lost, why }).unwrap();
    assert!(sentence(&told, &setting()).contains("$\\x1b[2J is lost"));
}

#[test]
fn files_of_the_project_are_named_by_their_path_in_it() {
    let root = Path::new("/srv/shop");
    assert_eq!(told::changed_files(&[], root), None);
    let files: [PathBuf; 1] = ["/srv/shop/src/A.php".into()];
    let told = told::changed_files(&files, root).unwrap();
    assert!(
        told.ends_with("it: src/A.php; :restart boots anew"),
        "{told}"
    );
}

#[test]
fn that_nothing_was_written_or_refused_is_an_answer_too() {
    let theme = Theme::new(false);
    let none = FileChanges::default();
    assert_eq!(
        told::changes(Some(&none), false, theme),
        "  nothing was written\n"
    );
    assert!(told::changes(None, true, theme).contains("--writes"));
    assert_eq!(told::blocked(&[], theme), "  nothing was refused\n");
}
