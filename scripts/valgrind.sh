#!/bin/sh
# Runs the extension under Valgrind's memcheck, first in a host, then in children. Fails on any
# invalid access or use of uninitialised memory, and on memory lost that grows with the number of
# evaluations (host) or of what a snippet does (child).
#
#   EXTENSION=<absolute path of libaltair_eval.so> NATIVE=<altair> scripts/valgrind.sh
#
# What is lost once, when the module starts, is the same for any number and passes. There are no
# suppressions: PHP without its ini files gives memcheck no cause for any.
set -eu

here=$(cd -P -- "$(dirname -- "$0")" && pwd)
php=$(command -v "${PHP:-php}")
few=10
many=40

command -v valgrind >/dev/null || {
    echo "There is no valgrind: \`scripts/setup.sh valgrind\` installs it." >&2
    exit 1
}
if [ ! -f "$EXTENSION" ] || [ ! -x "$NATIVE" ]; then
    echo "There is no $EXTENSION or $NATIVE. Run \`make build\` first." >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM
# For children that run as the owner of the project, and write their logs here.
chmod 755 "$work"
mkdir -m 1777 "$work/logs"
mkdir -p "$work/application"
cp -R "$here/../examples/shop/." "$work/application"

# The modules that the workloads need, where they are not part of this PHP itself.
modules=
for module in posix pdo pdo_sqlite; do
    if ! "$php" -n -r "exit(extension_loaded('$module') ? 0 : 1);"; then
        modules="$modules -d extension=$module"
    fi
done

# Every allocation is malloc's, so that memcheck sees each; modules stay mapped, so that stacks
# have names.
export USE_ZEND_ALLOC=0 ZEND_DONT_UNLOAD_MODULES=1
memcheck='valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=none --num-callers=40'

# A `php` for children. Its environment is filtered, so the two variables are set again here.
cat >"$work/php" <<END
#!/bin/sh
USE_ZEND_ALLOC=0 ZEND_DONT_UNLOAD_MODULES=1 exec $memcheck \\
    --log-file="$work/logs/child.%p" "$php" -n -d pcre.jit=0$modules "\$@"
END
chmod 755 "$work/php"

failed=0
fail() {
    echo "valgrind: $1" >&2
    # Valgrind 3.19 says of pidfd calls that it does not know them; there is another way then.
    sed -e '/^--/d' -e 's/^/    /' "$2" >&2
    failed=1
}

# Bytes definitely lost, the indirectly lost ones with them, as the records of one log add up.
lost() {
    sed -n 's/^==[0-9]*== \([0-9,]*\) .*bytes in .* definitely lost .*/\1/p' "$1" |
        tr -d , | awk '{ sum += $1 } END { print sum + 0 }'
}

check_errors() { # check_errors <log>
    if grep -Eq '^==[0-9]+== (Invalid|Conditional|Use of|Syscall param|Mismatched|Source and dest|Argument|Jump|Process terminating)' "$1"; then
        fail "memory errors" "$1"
    fi
}

check_growth() { # check_growth <what> <log of few> <log of many>
    lost_few=$(lost "$2")
    lost_many=$(lost "$3")
    echo "$1: lost $lost_few bytes with $few, $lost_many bytes with $many"
    if [ "$lost_many" -gt "$lost_few" ]; then
        fail "$1 leaks" "$3"
    fi
}

# --- The host: everything that a host's side does, children run outside of Valgrind -----------

# Valgrind 3.19 lets a process lower its soft limit of descriptors only; a host whose own is below
# the child's leaves the hard one alone.
host() { # host <number of evaluations>
    (
        # Every shell in use knows -n.
        # shellcheck disable=SC3045
        ulimit -n 200
        # Two variables hold several words.
        # shellcheck disable=SC2086
        $memcheck --child-silent-after-fork=yes --log-file="$work/host.$1" \
            "$php" -n -d pcre.jit=0 $modules -d extension="$EXTENSION" \
            "$here/valgrind/host.php" "$work/application" "$php" "$1"
    ) || fail "the host failed with $1" "$work/host.$1"
    check_errors "$work/host.$1"
}

host $few
host $many
check_growth 'host, evaluations' "$work/host.$few" "$work/host.$many"

# --- The child: one run for each way of ending, then one that does the same more often --------

child() { # child <name> [<number>]: the log is left as logs/<name>
    # Valgrind itself needs what the kernel's guards refuse: files of its own, /proc, calls.
    # shellcheck disable=SC2086 # several words
    "$php" -n $modules -d extension="$EXTENSION" \
        -d altair_eval.omit=filesystem,landlock,seccomp \
        "$here/valgrind/child.php" "$work/application" "$work/php" "$@" ||
        failed=1
    for log in "$work"/logs/child.*; do
        if [ -f "$log" ]; then
            check_errors "$log"
            mv -- "$log" "$work/logs/$1${2-}"
        else
            echo "valgrind: the child of $1 left no log" >&2
            failed=1
        fi
    done
}

for name in $("$php" -n -d extension="$EXTENSION" "$here/valgrind/child.php"); do
    child "$name"
done
child many-times $few
child many-times $many
check_growth 'child, calls of the snippet' "$work/logs/many-times$few" "$work/logs/many-times$many"

# The command links the same engine, but no PHP.
$memcheck --log-file="$work/command" "$NATIVE" completions bash >/dev/null || fail 'the command failed' "$work/command"
check_errors "$work/command"

if [ $failed -eq 0 ]; then echo 'valgrind: no invalid access, no growing leak'; fi
exit $failed
