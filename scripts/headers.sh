#!/bin/sh
# Compiles the C files with the headers of each PHP in php-versions.txt that a suite of Debian has: what a version has
# taken away is seen in seconds, and without it installed. What the code does is seen only where that PHP runs.
#
#   scripts/headers.sh <a directory for what is downloaded>
set -eu

root=$(cd -P -- "$(dirname -- "$0")/.." && pwd)
mkdir -p -- "$1"
at=$(cd -P -- "$1" && pwd)
suites='bookworm trixie sid experimental'

say() { printf 'headers: %s\n' "$1" >&2; }

# The mirror and the key that this machine has for its own suite.
# shellcheck disable=SC2016 # the variable is apt's
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1)
if [ -z "$mirror" ]; then
    say 'this machine has no packages of Debian: apt-get update, on Debian'
    exit 1
fi
mkdir -p -- "$at/lists/partial" "$at/cache/archives/partial"
: >"$at/status"
for suite in $suites; do
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$mirror" "$suite"
done >"$at/sources.list"

# apt-get with these suites, and without the machine's state.
apt() {
    apt-get -qq -o "Dir::Etc::sourcelist=$at/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$at/lists" \
        -o "Dir::State::status=$at/status" -o "Dir::Cache=$at/cache" -o APT::Sandbox::User=root "$@"
}
apt update

failed='' seen=''
for version in $(cat -- "$root/php-versions.txt"); do
    rm -rf -- "$at/$version"
    mkdir -p -- "$at/$version"
    if ! (cd -- "$at/$version" && apt download "php$version-dev" 2>/dev/null); then
        say "PHP $version: no suite has it ($suites)"
        continue
    fi
    dpkg-deb -x "$at/$version"/*.deb "$at/$version"
    api=$(echo "$at/$version"/usr/include/php/*)
    # As build.rs has them: warnings are those of these files.
    set --
    for directory in . main TSRM Zend ext ext/date/lib; do
        set -- "$@" -isystem "$api/$directory"
    done
    result='all of src/zend compiles'
    for file in "$root"/src/zend/*.c; do
        cc -fsyntax-only -Wall -Wextra -Werror "$@" "$file" || {
            result='see above'
            failed=1
        }
    done
    seen=1
    say "PHP $version ($(sed -n 's/^#define PHP_VERSION "\(.*\)"/\1/p' "$api/main/php_version.h")): $result"
done
[ -n "$seen" ] && [ -z "$failed" ]
