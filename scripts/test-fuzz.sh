#!/bin/sh
# Builds the fuzz targets of fuzz/ and runs each for some seconds. What one finds stays in fuzz/found/.
#
#   scripts/test-fuzz.sh [<seconds>] [<target>...]
set -eu

seconds=${1:-30}
[ $# -eq 0 ] || shift
cd -- "$(dirname -- "$0")/../fuzz"
mkdir -p found
# A stable compiler has the instrumentation, too; only the options for it are unstable.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS='--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table'
target=${CARGO_TARGET_DIR:-../target}/fuzz
# With a target named, build scripts are not instrumented.
triple=$(rustc -vV | sed -n 's/^host: //p')
cargo build --quiet --release --target "$triple" --target-dir "$target"
[ $# -gt 0 ] || set -- channel sql redaction dotenv installed arguments by_value
for name in "$@"; do
    echo "fuzz: $name"
    mkdir -p "$target/corpus/$name"
    "$target/$triple/release/$name" -max_total_time="$seconds" -artifact_prefix=found/ -print_final_stats=1 \
        -timeout=10 -rss_limit_mb=2048 "$target/corpus/$name" 2>"$target/$name.log" || {
        tail -n 40 "$target/$name.log" >&2
        exit 1
    }
    sed -n 's/^stat::number_of_executed_units: */  executed: /p' "$target/$name.log"
done
rmdir found 2>/dev/null || true
