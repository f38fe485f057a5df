//! Compiles the C shim against the headers of the PHP that `php-config` names.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/zend/shim.c");
    println!("cargo:rerun-if-changed=src/zend/child.c");
    println!("cargo:rerun-if-changed=src/zend/shim.h");
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-env-changed=PATH");
    let php_config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".into());
    let mut shim = cc::Build::new();
    shim.file("src/zend/shim.c")
        .file("src/zend/child.c")
        .warnings(true)
        .extra_warnings(true);
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
