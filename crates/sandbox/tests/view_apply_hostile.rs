//! What a process leaves to disturb the host is applied as it is, or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::time::Instant;

use altair_sandbox::ApplyError;
use common::apply::{Site, as_each};

#[test]
fn odd_names_are_applied_and_links_are_not_followed() {
    as_each(|site| {
        site.place.write("outside", "outside");
        site.applies(
            "printf a > \"$(printf 'odd\\nname\\377')\"; mkdir \"$(printf '\\n')\"; echo x > \"$(printf '\\n/-rf')\"; \
             ln -s ../../outside link; ln -s /etc etc; ln -s .. up; rm file; ln -s ../outside file; \
             mkdir '...' '-n'; echo x > '...'/'*'; echo > \"$(printf '%0255d' 1)\"",
        );
        assert_eq!(site.place.read("outside"), "outside");
    });
}

#[test]
fn a_link_put_in_the_way_meanwhile_is_not_followed() {
    as_each(|site| {
        let left = site.run("echo x > dir/new; echo y > dir/one");
        site.outside("mkdir ../other 2>/dev/null || mkdir other; mv dir dir2; ln -s ../other dir");
        let before = site.state();
        assert!(matches!(left.apply(), Err(ApplyError::Changed { .. })));
        assert_eq!(site.state(), before);
    });
}

fn too_much(site: &Site, script: &str, limit: &str) {
    let left = site.run(script);
    let before = site.state();
    let result = left.apply();
    let Err(ApplyError::TooMuch { .. }) = &result else {
        panic!("{result:?}");
    };
    let text = result.unwrap_err().to_string();
    assert!(text.contains(limit), "{text}");
    assert_eq!(site.state(), before);
}

const DEEP: &str = "nest() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); mkdir d || exit 1; cd d || exit 1; done; }; ";

#[test]
fn deep_directories_are_applied_up_to_a_limit() {
    as_each(|site| {
        too_much(
            site,
            &format!("{DEEP} nest 200; echo x > x"),
            "more than 128 nested directories",
        );
        too_much(
            site,
            &format!("{DEEP} rm file; mkdir e; cd e; nest 128"),
            "more than 128 nested",
        );
        site.applies(&format!("{DEEP} nest 120; echo x > x"));
        site.applies("echo 2 >> $(find d -name x); rm -r dir");
        site.applies("rm -r d");
    });
}

#[test]
fn many_files_are_applied_at_once() {
    as_each(|site| {
        let script = "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo $i > f$i; done";
        let left = site.run(script);
        let began = Instant::now();
        left.apply().unwrap();
        eprintln!("10000 files in one directory: {:?}", began.elapsed());
        assert_eq!(fs::read_dir(site.app()).unwrap().count(), 10_002);
        assert_eq!(site.place.read("app/f777"), "777\n");
        let left = site.run("rm f*");
        left.apply().unwrap();
        assert_eq!(fs::read_dir(site.app()).unwrap().count(), 1);
    });
}

#[test]
fn a_thousand_files() {
    as_each(|site| {
        let script = "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); [ $((i%10)) = 1 ] && mkdir -p d$((i/100)); echo $i > d$((i/100))/f$i; done";
        let time = |script: &str| {
            let left = site.run(script);
            let began = Instant::now();
            left.apply().unwrap();
            let took = began.elapsed();
            assert_eq!(site.shows(), left.saw);
            took
        };
        let created = time(script);
        let modified = time("for f in d*/*; do echo x >> $f; done");
        let deleted = time("rm -r d*");
        eprintln!("1000 files created {created:?}, modified {modified:?}, deleted {deleted:?}");
    });
}

#[test]
fn the_sealed_directory_is_none_of_the_layers() {
    as_each(|site| {
        let left = site.run("echo x > x; echo y > .sealed/y 2>/dev/null; true");
        left.apply().unwrap();
        assert!(!site.path(".sealed").exists());
        site.outside("mkdir .sealed; echo s > .sealed/s");
        let left = site.run("rm -rf .sealed 2>/dev/null; echo x > y");
        left.apply().unwrap();
        assert_eq!(site.place.read("app/.sealed/s"), "s\n");
    });
}
