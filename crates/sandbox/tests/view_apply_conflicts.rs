//! What has changed since the process began is not overwritten, and nothing is written then.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use altair_sandbox::ApplyError;
use common::apply::{Site, as_each};

/// The layer of `script`, applied after `meanwhile`, conflicts at `path`, and writes nothing.
fn conflicts(site: &Site, script: &str, meanwhile: &str, path: &str) {
    site.outside(
        "chmod -R u+rwX . 2>/dev/null; rm -rf * && printf content > file && mkdir dir dir/sub && printf 1 > dir/one && \
         printf 22 > dir/two && echo s > dir/sub/s && ln -s file way && mkfifo pipe && mkdir empty",
    );
    let left = site.run(script);
    site.outside(meanwhile);
    let before = site.state();
    let result = left.apply();
    match &result {
        Err(ApplyError::Changed { path: found }) => {
            assert_eq!(found, &site.path(path), "{script} | {meanwhile}");
            let text = result.unwrap_err().to_string();
            assert!(
                text.contains("has changed since the command began"),
                "{text}"
            );
        }
        other => panic!("{script} | {meanwhile}: {other:?}"),
    }
    assert_eq!(site.state(), before, "{script} | {meanwhile}");
}

#[test]
fn a_changed_file_that_has_changed_is_not_overwritten() {
    as_each(|site| {
        let write = "echo x > a-new; echo more >> file";
        conflicts(site, write, "echo other > file", "file");
        conflicts(site, write, "chmod 600 file", "file");
        conflicts(site, write, "touch -d 2001-01-01 file", "file");
        conflicts(site, write, "rm file", "file");
        conflicts(
            site,
            write,
            "echo x > f; touch -r file f; mv f file",
            "file",
        );
        conflicts(site, write, "rm file; mkdir file", "file");
        conflicts(site, write, "mv file file2; ln -s file2 file", "file");
        conflicts(site, "echo x > dir/sub/s", "rm -r dir", "dir");
        conflicts(site, "echo x > dir/sub/s", "rm dir/sub/s", "dir/sub/s");
        conflicts(site, "chmod 600 file", "echo >> file", "file");
        conflicts(site, "chmod 600 file", "rm file", "file");
        conflicts(site, "ln -sf dir way", "ln -sf other way", "way");
        conflicts(site, "rm pipe; echo x > pipe", "chmod 600 pipe", "pipe");
    });
}

#[test]
fn what_exists_by_now_is_not_replaced() {
    as_each(|site| {
        conflicts(site, "echo x > a; echo y > new", "echo z > new", "new");
        conflicts(site, "mkdir new", "mkdir new", "new");
        conflicts(site, "mkdir new", "mkdir -p new/x", "new");
        conflicts(site, "mkdir new", "echo x > new", "new");
        conflicts(site, "ln -s x new", "mkdir new", "new");
        conflicts(site, "echo x > new", "cp -a file f; mv f new", "new");
        conflicts(site, "echo x > dir/new", "ln file dir/new", "dir/new");
    });
}

#[test]
fn what_has_changed_is_not_deleted() {
    as_each(|site| {
        conflicts(site, "rm file", "echo other > file", "file");
        conflicts(site, "rm file", "rm file", "file");
        conflicts(site, "rm -r dir", "rm -r dir", "dir");
        conflicts(site, "rm -r dir", "echo x > dir/new", "dir");
        conflicts(site, "rm -r dir", "echo x >> dir/one", "dir/one");
        conflicts(site, "rm -r dir", "echo x >> dir/sub/s", "dir/sub/s");
        conflicts(site, "rm -r dir", "touch dir/sub/new", "dir/sub");
        conflicts(site, "rm -r dir", "chmod 700 dir/sub", "dir/sub");
        conflicts(
            site,
            "rm -r dir; mkdir dir",
            "echo x >> dir/sub/s",
            "dir/sub/s",
        );
        conflicts(site, "rm -r dir; echo x > dir", "rm dir/two", "dir");
        conflicts(site, "rmdir empty", "touch empty/x", "empty");
        conflicts(site, "mv file moved", "rm file", "file");
        conflicts(
            site,
            "mv file dir/moved",
            "echo x > file; touch dir/n",
            "file",
        );
    });
}

#[test]
fn what_a_directory_has_is_changed_only_if_nobody_else_has_changed_it() {
    as_each(|site| {
        conflicts(site, "chmod 700 dir", "chmod 711 dir", "dir");
        conflicts(site, "chmod 700 .", "chmod 711 .", "");
        // A time that was shown to be set, and would hide theirs.
        conflicts(
            site,
            "touch dir/new; touch -d 2001-01-01 dir",
            "touch dir/n",
            "dir",
        );
    });
}

#[test]
fn another_directory_in_place_of_the_one_that_was_changed_is_noticed() {
    if !common::is_root() {
        return; // with a user namespace overlayfs does not tell
    }
    let site = Site::new(None, None);
    let swap = "cp -a dir other; mv dir gone; mv other dir";
    conflicts(&site, "echo x > dir/new", swap, "dir");
}

/// The layer of `script` is applied although there was a change meanwhile.
fn goes_well(site: &Site, script: &str, meanwhile: &str, then: &str) {
    site.outside(
        "rm -rf * && echo content > file && mkdir dir && echo 1 > dir/one && echo 22 > dir/two",
    );
    let left = site.run(script);
    site.outside(meanwhile);
    left.apply()
        .unwrap_or_else(|e| panic!("{script} | {meanwhile}: {e}"));
    site.outside(then);
    site.has_nothing_left();
}

#[test]
fn changes_beside_are_no_conflict() {
    as_each(|site| {
        goes_well(
            site,
            "echo 2 >> dir/one",
            "echo x > dir/two",
            "grep -q 2 dir/one && grep -q x dir/two",
        );
        goes_well(
            site,
            "echo 2 >> dir/one",
            "touch dir/n; rm dir/two",
            "test -e dir/n -a ! -e dir/two",
        );
        goes_well(
            site,
            "touch dir/new",
            "touch dir/n; rm dir/two",
            "test -e dir/n -a -e dir/new",
        );
        goes_well(
            site,
            "rm dir/one; mkdir dir/d",
            "touch dir/n",
            "test ! -e dir/one -a -d dir/d -a -e dir/n",
        );
        // Renamed in a directory from which something may have gone.
        goes_well(
            site,
            "mv dir/one dir/uno",
            "touch dir/n",
            "test ! -e dir/one -a -e dir/uno",
        );
        goes_well(
            site,
            "mv dir/one uno; rm -r dir",
            "touch n",
            "test ! -e dir -a -e uno",
        );
        goes_well(
            site,
            "ln dir/one dir/uno",
            "touch dir/n",
            "test dir/one -ef dir/uno",
        );
        // What was made by the process and is no file of before.
        goes_well(
            site,
            "cp -a dir/one dir/uno; ln -s one dir/l; mkfifo dir/p",
            "touch dir/n",
            "test -e dir/uno",
        );
    });
}

#[test]
fn a_layer_is_applied_once() {
    as_each(|site| {
        let left = site.run("echo x > new; rm file");
        left.apply().unwrap();
        let before = site.state();
        assert!(matches!(left.apply(), Err(ApplyError::Changed { .. })));
        assert_eq!(site.state(), before);
    });
}
