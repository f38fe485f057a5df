#!/bin/sh
# Runs PHP with the extension of this checkout, also where `make install` has enabled another
# build for every PHP: the first one to load would win, and be what is tested.
#
#   EXTENSION=<absolute path of libaltair_eval.so> scripts/php.sh <script> [<argument>...]
set -eu

php=${PHP:-php}
if [ ! -f "$EXTENSION" ]; then
    echo "There is no $EXTENSION. Run \`make build\` first." >&2
    exit 1
fi

if "$php" -d display_startup_errors=0 -r 'exit(str_contains((string) php_ini_scanned_files(), "altair_eval.ini") ? 0 : 1);'; then
    # The same settings without that one file.
    # One for each of the suites that run side by side.
    scan_dir=${EXTENSION%/*}/php-conf.d${ALTAIR_TEST_USER:-}
    rm -rf -- "$scan_dir"
    mkdir -p -- "$scan_dir"
    # shellcheck disable=SC2016 # the variables are PHP's
    "$php" -d display_startup_errors=0 -r '
        foreach (array_map("trim", explode(",", php_ini_scanned_files())) as $file) {
            str_ends_with($file, "altair_eval.ini") || symlink($file, $argv[1] . "/" . basename($file));
        }' -- "$scan_dir"
    export PHP_INI_SCAN_DIR="$scan_dir"
fi

# What a test or a bench is about starts by itself; those of the pool have one of their own.
export ALTAIR_EVAL_POOL="${ALTAIR_EVAL_POOL:-off}"

exec "$php" -d extension="$EXTENSION" "$@"
