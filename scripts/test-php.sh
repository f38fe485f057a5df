#!/bin/sh
# Runs the test suites of phpunit.xml in two processes, which takes little more than half of the time: most tests wait.
# The first shows its progress; what the second says follows. The last lines name what failed.
#
#   EXTENSION=… PHP=… PHPUNIT=… LOGS=<directory> scripts/test-php.sh
set -eu

mkdir -p -- "$LOGS"
# Appended to: a program that shares the descriptor may rewind it.
rm -f -- "$LOGS/evaluations.log" "$LOGS/others.log"
run() {
    exec "$(dirname -- "$0")/php.sh" "$PHPUNIT" --log-junit "$LOGS/$1.xml" --testsuite "$2" >>"$LOGS/$1.log" 2>&1
}

ALTAIR_TEST_USER=54399 run others 'templates and attacks' &
others=$!
run evaluations 'evaluations,isolated PHP' &
evaluations=$!
trap 'kill "$others" "$evaluations" 2>/dev/null || true' EXIT

tail --pid="$evaluations" --sleep-interval=1 --follow=name --retry --lines=+1 -- "$LOGS/evaluations.log" 2>/dev/null || true
code=0
wait "$evaluations" || code=$?
echo
echo "The suite \"templates and attacks\", which ran beside it:"
wait "$others" || code=$?
trap - EXIT
cat -- "$LOGS/others.log"

if [ "$code" -ne 0 ]; then
    echo
    echo "What failed (all of it is in $LOGS):"
    # PHPUnit numbers them. A PHP warning is the line behind; the reason of others may stand behind a long story.
    awk 'FNR == 1 { n = 0 }
        /^[0-9]+\) / { n = 8; print substr($0, 1, 200); next }
        n == 8 && NF || n && /^(Failed|[+-] |[A-Za-z\\]*(Exception|Error): )/ { n--; print "    " substr($0, 1, 400) }
    ' "$LOGS/evaluations.log" "$LOGS/others.log"
fi
exit "$code"
