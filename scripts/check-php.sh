#!/bin/sh
# Parses every PHP file and checks its style: PSR-12, which PER-CS extends, is the nearest standard
# that distributions package.
set -eu

cd -- "$(dirname -- "$0")/.."
set -- php-src php-sandbox stubs tests benches examples/shop/config examples/shop/src examples/shop/tests
for directory; do
    shift
    if [ -d "$directory" ]; then set -- "$@" "$directory"; fi
done

# One file a call, and silent unless it does not parse: PHP 8.2 lints only the first that it is given.
# shellcheck disable=SC2016 # the variables are the inner shell's
find "$@" -name '*.php' -print0 | xargs -0 -r -n 1 -P "$(nproc)" sh -c '
    report=$("$0" -n -d display_errors=1 -l "$1" 2>&1) || { printf "%s\n" "$report" >&2; exit 1; }' "${PHP:-php}"

if ! command -v phpcs >/dev/null 2>&1; then
    echo 'check-php: there is no phpcs (PHP_CodeSniffer), so the style is not checked' >&2
    exit 0
fi

# SideEffects: it takes `readonly class` for a side effect, and a test bootstrap is one.
# MultipleClasses: stubs of one namespace stand together.
phpcs --standard=PSR12 --extensions=php -p \
    --exclude=PSR1.Files.SideEffects,PSR1.Classes.ClassDeclaration "$@"
