#!/bin/bash
# Runs a database server for as long as the tests live, however they end: killed, too. It is nobody's
# child and in a session of its own, so the tests have neither a child nor a descriptor of it.
#
#   setsid --fork serve.sh <process id of the tests> <directory> <signal that ends the server> <command>...
#
# `pids` in the directory says who it is and who the server is; SIGTERM ends both. The directory goes with them.
set -u

tests=$1 directory=$2 signal=$3
shift 3

# What the tests had open is not held open by a server. 255 is bash's own.
for descriptor in /proc/self/fd/*; do
    descriptor=${descriptor##*/}
    if [ "$descriptor" -gt 2 ] && [ "$descriptor" -ne 255 ]; then eval "exec $descriptor>&-"; fi
done

# By itself it ends only should this one be killed.
setsid setpriv --pdeathsig "$signal" "$@" &
server=$!
tail --pid="$tests" --sleep-interval=0.1 -f /dev/null &
tail=$!
trap 'kill "$tail"' TERM
echo "$$ $server" >"$directory/pids.new"
mv "$directory/pids.new" "$directory/pids"

wait "$tail"
trap '' TERM
# It may have ended before, and its number be another's by now. What prepares it is in its group.
if grep -qx "PPid:[[:space:]]*$$" "/proc/$server/status"; then
    kill -s "$signal" -- "-$server"
    wait "$server"
fi
rm -rf -- "$directory"
