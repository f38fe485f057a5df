//! Compiles the C shim against the headers of the PHP that `php-config` names.

use std::process::Command;

/// The shim, a file for each thing it does.
const SOURCES: [&str; 18] = [
    "src/zend/shim.c",
    "src/zend/child.c",
    "src/zend/snippet.c",
    "src/zend/fresh.c",
    "src/zend/held.c",
    "src/zend/refuse.c",
    "src/zend/compile.c",
    "src/zend/target.c",
    "src/zend/connect.c",
    "src/zend/outside.c",
    "src/zend/blocked.c",
    "src/zend/database.c",
    "src/zend/database_mysqlnd.c",
    "src/zend/database_libpq.c",
    "src/zend/database_pdo.c",
    "src/zend/database_sqlite.c",
    "src/zend/queries.c",
    "src/zend/interpose.c",
];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    for header in [
        "src/zend/shim.h",
        "src/zend/confine.h",
        "src/zend/database.h",
    ] {
        println!("cargo:rerun-if-changed={header}");
    }
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-env-changed=PATH");
    let php_config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".into());
    let mut shim = cc::Build::new();
    shim.files(SOURCES).warnings(true).extra_warnings(true);
    for flag in ask(&php_config, "--includes").split_whitespace() {
        match flag.strip_prefix("-I") {
            // The engine's headers have warnings of their own under -Wextra.
            Some(dir) => shim.flag("-isystem").flag(dir),
            None => shim.flag(flag),
        };
    }
    shim.flag("-fvisibility=hidden").compile("altair_shim");
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
