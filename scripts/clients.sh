#!/bin/sh
# Installs the MCP clients that the tests drive the server with, into one directory, once.
#
#   scripts/clients.sh <directory>      then <directory>/venv/bin/python, <directory>/inspector and
#                                       <directory>/conformance release|alpha run them
#
# The official Python SDK comes from PyPI and the official inspector and conformance suite, with the
# Node.js that they need, from npm, through whatever these tools are set up to use.
set -eu

here=$(cd -P -- "$(dirname -- "$0")/.." && pwd)
directory=$1
inspector=2.12.0
# The release, and the alpha for the newest revision of the protocol.
conformance=0.1.16
conformance_alpha=0.2.0-alpha.12
node=22.22.0

say() { printf 'clients: %s\n' "$1" >&2; }

wanted="$(cat "$here/tests/mcp/requirements.txt") $inspector $conformance $conformance_alpha $node"
if [ "$(cat "$directory/installed" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
case $(uname -m) in
    x86_64) machine=x64 ;;
    aarch64) machine=arm64 ;;
    *) say "there is no Node.js for $(uname -m) on npm" && exit 1 ;;
esac
rm -rf -- "$directory"
mkdir -p -- "$directory/npm"

say 'installing the Python SDK'
python3 -m venv "$directory/venv"
"$directory/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/tests/mcp/requirements.txt"

say 'installing the inspector and the conformance suite'
npm install --prefix "$directory/npm" --no-fund --no-audit --no-package-lock --ignore-scripts --loglevel=error \
    "node-linux-$machine@$node" "@modelcontextprotocol/inspector@$inspector" \
    "conformance-release@npm:@modelcontextprotocol/conformance@$conformance" \
    "conformance-alpha@npm:@modelcontextprotocol/conformance@$conformance_alpha" >&2
cat >"$directory/inspector" <<INSPECTOR
#!/bin/sh
exec "$directory/npm/node_modules/node-linux-$machine/bin/node" \\
    "$directory/npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli "\$@"
INSPECTOR
cat >"$directory/conformance" <<CONFORMANCE
#!/bin/sh
version=\$1
shift
exec "$directory/npm/node_modules/node-linux-$machine/bin/node" \\
    "$directory/npm/node_modules/conformance-\$version/dist/index.js" "\$@"
CONFORMANCE
chmod +x "$directory/inspector" "$directory/conformance"
printf '%s\n' "$wanted" >"$directory/installed"
