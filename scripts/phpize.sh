#!/bin/sh
# Builds, tests and installs the extension as PHP people do, in a copy of ext/, and checks that what was installed loads.
#
#   scripts/phpize.sh <directory>
#
# PHPIZE, PHP and PHP_CONFIG as usual; CARGO_TARGET_DIR is where Cargo builds.
set -eu

here=$(cd -P -- "$(dirname -- "$0")/.." && pwd)
mkdir -p -- "$1"
directory=$(cd -P -- "$1" && pwd)
php=${PHP:-php}
php_config=${PHP_CONFIG:-php-config}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}"
# As `make build` does: what it has built is not built again.
export ALTAIR_EVAL_PACKAGES=--workspace

# The copy is where ext/ is in a project: what lies beside it is the project's.
rm -rf -- "$directory"
mkdir -p -- "$directory/ext"
cp -R -- "$here/ext/." "$directory/ext"
for entry in "$here"/*; do
    case ${entry##*/} in ext | target) ;; *) ln -s -- "$entry" "$directory/" ;; esac
done

report() {
    cat -- "$directory/log" >&2
    exit 1
}

cd -- "$directory/ext"
{
    "${PHPIZE:-phpize}" && ./configure --with-php-config="$(command -v "$php_config")" && make &&
        NO_INTERACTION=1 REPORT_EXIT_STATUS=1 make test && make install INSTALL_ROOT="$directory/root"
} >"$directory/log" 2>&1 || report
sed -n 's/^Tests passed *: *\([0-9]*\).*/phpize: \1 tests passed/p' "$directory/log"
"$php" -d extension="$directory/root$("$php_config" --extension-dir)/altair_eval.so" \
    -r 'exit((int) !class_exists("Altair\\Eval\\Evaluator"));'
