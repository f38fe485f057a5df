#!/bin/sh
# Puts the extension where one PHP looks for it, enables it for every SAPI of that PHP, and puts
# the native command on PATH; or takes all of that away.
#
#   EXTENSION=<.so> NATIVE=<altair> scripts/install.sh install|uninstall
#
# PREFIX (/usr/local), DESTDIR, PHP and PHP_CONFIG as usual.
set -eu

php=${PHP:-php}
php_config=${PHP_CONFIG:-php-config}
prefix=${PREFIX:-/usr/local}
destination=${DESTDIR-}

stop() {
    printf '%s\n' "$1" >&2
    exit 1
}

command -v "$php_config" >/dev/null || stop "There is no $php_config: \`scripts/setup.sh\` installs it, PHP_CONFIG=<path> names another."
series=$("$php_config" --version)
series=${series%.*}
library=$destination$("$php_config" --extension-dir)/altair_eval.so
command=$destination$prefix/bin/altair

# Debian keeps one file for each module, and a link to it for each SAPI; elsewhere all SAPIs of a
# PHP share one directory.
debian=/etc/php/$series
if [ -d "$debian/mods-available" ]; then
    ini=$debian/mods-available/altair_eval.ini
else
    # shellcheck disable=SC2016
    scan_dir=$("$php" -d display_startup_errors=0 -r 'echo explode(PATH_SEPARATOR, PHP_CONFIG_FILE_SCAN_DIR)[0];')
    ini=${scan_dir:+$scan_dir/20-altair_eval.ini}
fi

each_link() { # each_link <function>: for the link of each SAPI, below DESTDIR
    for sapi in "$debian"/*/conf.d; do
        if [ -d "$sapi" ]; then "$1" "$destination$sapi/20-altair_eval.ini"; fi
    done
}

enable_sapi() {
    mkdir -p -- "${1%/*}"
    ln -sfn -- "$ini" "$1"
}

disable_sapi() { rm -f -- "$1"; }

# Says what to do before anything is half done.
check_writable() {
    for target in "$library" "$command" "${ini:+$destination$ini}"; do
        directory=${target%/*}
        while [ -n "$directory" ] && [ ! -e "$directory" ]; do directory=${directory%/*}; done
        if [ -n "$target" ] && [ ! -w "${directory:-/}" ]; then
            stop "$directory cannot be written: run \`sudo make $1\`, or choose another PREFIX or DESTDIR."
        fi
    done
}

do_install() {
    for built in "$EXTENSION" "$NATIVE"; do
        [ -f "$built" ] || stop "There is no $built. Run \`make build\` first, not as root."
    done
    check_writable install
    mkdir -p -- "${library%/*}" "${command%/*}"
    install -m 644 -- "$EXTENSION" "$library"
    install -m 755 -- "$NATIVE" "$command"
    echo "$library"
    echo "$command"
    [ -n "$ini" ] || stop 'This PHP reads no directory of ini files: add "extension=altair_eval" to its php.ini.'
    mkdir -p -- "$destination${ini%/*}"
    printf '; priority=20\nextension=altair_eval.so\n' >"$destination$ini"
    each_link enable_sapi
    echo "$destination$ini"
    if [ -n "$destination" ]; then return 0; fi
    if ! "$php" -r 'exit(extension_loaded("altair_eval") ? 0 : 1);'; then
        stop "Installed, but $php ($("$php" -r 'echo PHP_VERSION;')) does not load it: was it built for PHP $series?"
    fi
    echo 'Servers that run PHP (FPM, Apache) load it when they are restarted.'
}

do_uninstall() {
    check_writable uninstall
    each_link disable_sapi
    rm -f -- ${ini:+"$destination$ini"} "$library" "$command"
}

case ${1-} in
    install) do_install ;;
    uninstall) do_uninstall ;;
    *) stop 'usage: scripts/install.sh install|uninstall' ;;
esac
