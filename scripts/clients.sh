#!/bin/sh
# Installs the MCP clients that the tests drive the server with, into one directory, once.
#
#   scripts/clients.sh <directory>      then <directory>/venv/bin/python and <directory>/inspector run them
#
# The official Python SDK comes from PyPI and the official inspector, with the Node.js that it needs,
# from npm, through whatever these tools are set up to use.
set -eu

here=$(cd -P -- "$(dirname -- "$0")/.." && pwd)
directory=$1
inspector=2.12.0
node=22.22.0

say() { printf 'clients: %s\n' "$1" >&2; }

wanted="$(cat "$here/tests/mcp/requirements.txt") $inspector $node"
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

say 'installing the inspector'
npm install --prefix "$directory/npm" --no-fund --no-audit --no-package-lock --ignore-scripts --loglevel=error \
    "node-linux-$machine@$node" "@modelcontextprotocol/inspector@$inspector" >&2
cat >"$directory/inspector" <<INSPECTOR
#!/bin/sh
exec "$directory/npm/node_modules/node-linux-$machine/bin/node" \\
    "$directory/npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli "\$@"
INSPECTOR
chmod +x "$directory/inspector"
printf '%s\n' "$wanted" >"$directory/installed"
