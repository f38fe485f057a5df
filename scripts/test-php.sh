#!/bin/sh
# Runs the two test suites of phpunit.xml side by side, which takes little more than half of the time: most tests wait.
# The first shows its progress; what the second says follows.
#
#   EXTENSION=… PHP=… PHPUNIT=… LOGS=<directory> scripts/test-php.sh
set -eu

mkdir -p -- "$LOGS"
# Appended to: a program that shares the descriptor may rewind it.
rm -f -- "$LOGS/others.log"
run() {
    "$(dirname -- "$0")/php.sh" "$PHPUNIT" --log-junit "$LOGS/$1.xml" --testsuite "$2"
}

ALTAIR_TEST_USER=54399 run others 'templates and attacks' >>"$LOGS/others.log" 2>&1 &
others=$!
trap 'kill "$others" 2>/dev/null || true' EXIT

evaluations=0
run evaluations 'evaluations' || evaluations=$?
echo
echo "The suite \"templates and attacks\", which ran beside it:"
code=0
wait "$others" || code=$?
trap - EXIT
cat -- "$LOGS/others.log"
if [ "$evaluations" -ne 0 ]; then exit "$evaluations"; fi
exit "$code"
