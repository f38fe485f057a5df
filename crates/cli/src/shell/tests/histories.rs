//! The file of lines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proptest::prelude::*;

use super::super::history::HistoryFile;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn it_is_made_with_its_directory_for_its_user_alone() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("a/altair/shell_history");
    let file = HistoryFile::at(path.clone());
    assert_eq!(file.load(), Ok(Vec::new()));
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    file.append("one()").unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn what_looks_like_a_secret_is_not_written() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("shell_history");
    let file = HistoryFile::at(path.clone());
    file.append("$password = 'hunter22'; login($password);")
        .unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text, "$password = '***'; login($password);\n");
}

#[test]
fn a_file_that_has_grown_too_long_keeps_its_end() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("shell_history");
    let entry = "x".repeat(99) + "\n";
    fs::write(&path, entry.repeat(30_000) + "last()\n").unwrap();
    let entries = HistoryFile::at(path.clone()).load().unwrap();
    assert_eq!(entries.last().unwrap(), "last()");
    assert!(entries.iter().rev().skip(1).all(|entry| entry.len() == 99));
    let length = fs::metadata(&path).unwrap().len();
    assert!((1_000_000..=1 << 20).contains(&length), "{length}");
    assert_eq!(HistoryFile::at(path).load().unwrap(), entries);
}

#[test]
fn what_is_no_file_is_neither_waited_for_nor_written() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("shell_history");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let why = HistoryFile::at(path).load().unwrap_err();
    assert!(why.ends_with("it is no file"), "{why}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn entries_come_back_as_they_were(entries in prop::collection::vec("[a-z\\\\n\n ]{1,9}", 1..5)) {
        let state = tempfile::tempdir().unwrap();
        let file = HistoryFile::at(state.path().join("shell_history"));
        for entry in &entries {
            file.append(entry).unwrap();
        }
        prop_assert_eq!(file.load().unwrap(), entries);
    }
}
