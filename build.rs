//! Compiles the C shim against the headers of the PHP that `php-config` names.

use std::process::Command;

#[allow(dead_code)] // the engine needs all of it
#[path = "crates/engine/src/php_versions.rs"]
mod php_versions;

/// The shim, a file for each thing it does.
const SOURCES: [&str; 49] = [
    "src/zend/frames.c",
    "src/zend/values.c",
    "src/zend/by_value.c",
    "src/zend/objects.c",
    "src/zend/memory.c",
    "src/zend/own_data.c",
    "src/zend/rehearsal.c",
    "src/zend/older_patches.c",
    "src/zend/calls.c",
    "src/zend/child.c",
    "src/zend/temp_path.c",
    "src/zend/snippet.c",
    "src/zend/container.c",
    "src/zend/runtime.c",
    "src/zend/line_imports.c",
    "src/zend/fork_state.c",
    "src/zend/object_lifetime.c",
    "src/zend/refused_functions.c",
    "src/zend/compile.c",
    "src/zend/connection_target.c",
    "src/zend/connecting_clients.c",
    "src/zend/unreachable_files.c",
    "src/zend/refusal_queue.c",
    "src/zend/sought.c",
    "src/zend/database.c",
    "src/zend/database_mysqlnd.c",
    "src/zend/mysqlnd_session.c",
    "src/zend/mysqlnd_read_only.c",
    "src/zend/mysqlnd_rollback.c",
    "src/zend/mysqlnd_queries.c",
    "src/zend/database_libpq.c",
    "src/zend/libpq_session.c",
    "src/zend/libpq_texts.c",
    "src/zend/libpq_read_only.c",
    "src/zend/libpq_rollback.c",
    "src/zend/libpq_queries.c",
    "src/zend/database_pdo.c",
    "src/zend/database_sqlite.c",
    "src/zend/queries.c",
    "src/zend/interpose.c",
    "src/zend/tables.c",
    "src/zend/signature.c",
    "src/zend/streams.c",
    "src/zend/closure_rules.c",
    "src/zend/closure_form.c",
    "src/zend/closure_apart.c",
    "src/zend/closure_state.c",
    "src/zend/closure_walk.c",
    "src/zend/closure_source.c",
];

/// Functions that a patch release of PHP 8.2 added, which its headers' inline functions call, and what
/// the shim calls instead (src/zend/older_patches.c). An extension that calls them does not load in an
/// earlier patch release.
const LATER_FUNCTIONS: [(&str, &str); 8] = [
    ("_femalloc", "altair_femalloc"),
    ("_fecalloc", "altair_fecalloc"),
    ("_ferealloc", "altair_ferealloc"),
    ("_ferealloc2", "altair_ferealloc2"),
    ("_safe_femalloc", "altair_safe_femalloc"),
    ("_safe_ferealloc", "altair_safe_ferealloc"),
    ("smart_str_ferealloc", "altair_smart_str_ferealloc"),
    ("smart_str_frealloc", "altair_smart_str_frealloc"),
];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    for header in [
        "src/zend/shim.h",
        "src/zend/ast_children.h",
        "src/zend/confine.h",
        "src/zend/closure.h",
        "src/zend/closure_apart.h",
        "src/zend/database.h",
        "src/zend/database_mysqlnd.h",
        "src/zend/database_libpq.h",
    ] {
        println!("cargo:rerun-if-changed={header}");
    }
    println!("cargo:rerun-if-changed=php-versions.txt");
    println!("cargo:rerun-if-env-changed={}", php_versions::INSIST);
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-env-changed=PATH");
    let php_config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".into());
    let mut shim = cc::Build::new();
    shim.files(SOURCES).warnings(true).extra_warnings(true);
    if !is_tried(&php_config) {
        shim.define("ALTAIR_EVAL_UNTRIED_PHP", None);
    }
    for (later, instead) in LATER_FUNCTIONS {
        shim.define(later, instead);
    }
    for flag in ask(&php_config, "--includes").split_whitespace() {
        match flag.strip_prefix("-I") {
            // The engine's headers have warnings of their own under -Wextra.
            Some(dir) => shim.flag("-isystem").flag(dir),
            None => shim.flag(flag),
        };
    }
    shim.flag("-fvisibility=hidden").compile("altair_shim");
    // A thread that collects a process may still be in it when PHP unloads its extensions.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

/// Whether this was tried with that PHP; stops where it was not and nobody insists.
fn is_tried(php_config: &str) -> bool {
    let id = ask(php_config, "--vernum").trim().parse().unwrap_or(0);
    let is_tried = php_versions::is_tried(id);
    if !is_tried && std::env::var_os(php_versions::INSIST).is_none() {
        panic!(
            "Altair Eval was not tried with the PHP of `{php_config}` (PHP_VERSION_ID {id}), but with {}. PHP_CONFIG=<path> chooses another; {}=1 builds for this one all the same.",
            php_versions::tried(),
            php_versions::INSIST
        );
    }
    is_tried
}

fn ask(php_config: &str, option: &str) -> String {
    match Command::new(php_config).arg(option).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => panic!(
            "`{php_config} {option}` failed: install the PHP development files (Debian: php-dev) or set PHP_CONFIG"
        ),
    }
}
