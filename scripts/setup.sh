#!/bin/sh
# Installs what this machine lacks to build, try and test Altair Eval, from the distribution's
# packages. Does nothing, quickly, where nothing is missing.
#
#   scripts/setup.sh              what `make try` and `make test` need
#   scripts/setup.sh valgrind     that, and what `make valgrind` needs
#   scripts/setup.sh style        that, and what checks the style of PHP files
#   scripts/setup.sh frameworks   that, and the PHP frameworks of which some tests make applications
#   scripts/setup.sh databases    that, and the database servers, with PHP's drivers, that some tests
#                                 start for themselves; none of them runs as a service afterwards
#   scripts/setup.sh drivers      that, and the programs that run commands under a policy; no service either
set -eu

root=$(cd -P -- "$(dirname -- "$0")/.." && pwd)
php=${PHP:-php}
php_config=${PHP_CONFIG:-php-config}
tried_php=$(cat -- "$root/php-versions.txt")
with=${1-}

say() { printf 'setup: %s\n' "$1" >&2; }
stop() {
    say "$1"
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# --- What there is -------------------------------------------------------------------------

# PHP's version as a number and as X.Y, and its extensions; all empty without PHP.
ask_php() {
    php_id=0 php_series='' extensions=''
    if has "$php"; then
        facts=$("$php" -d display_startup_errors=0 -r '
            echo PHP_VERSION_ID, " ", PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION, " ",
                strtolower(implode(" ", get_loaded_extensions()));')
        php_id=${facts%% *} facts=${facts#* }
        php_series=${facts%% *} extensions=" ${facts#* } "
    fi
}

check_php() {
    case " $tried_php " in
        *" ${php_series:-${tried_php%% *}} "*) ;;
        *)
            if [ -z "${ALTAIR_EVAL_UNTRIED_PHP:-}" ]; then
                stop "PHP $php_series ($(command -v "$php")) was not tried: $tried_php were. PHP=<path> and PHP_CONFIG=<path> choose another; ALTAIR_EVAL_UNTRIED_PHP=1 goes on with this one."
            fi ;;
    esac
}

has_extension() {
    case $extensions in *" $1 "*) ;; *) return 1 ;; esac
}

has_headers() {
    has "$php_config" || return 1
    case $("$php_config" --version) in "$php_series".*) ;; *) return 1 ;; esac
    [ -f "$("$php_config" --include-dir)/main/php.h" ]
}

# Distributions package PHP's libraries with an autoloader each, on the include path.
has_library() {
    # shellcheck disable=SC2016 # the variable is PHP's
    "$php" -d display_startup_errors=0 -r 'exit((int) !stream_resolve_include_path("$argv[1]/autoload.php"));' "$1"
}

first_exists() {
    for path; do
        if [ -e "$path" ]; then return 0; fi
    done
    return 1
}

# bindgen opens the library itself, and needs the compiler's own headers (stddef.h) beside it.
has_libclang() {
    first_exists "${LIBCLANG_PATH:-/nonexistent}" "${LIBCLANG_PATH:-/nonexistent}"/libclang.so* \
        /usr/lib/llvm*/lib/libclang.so* /usr/lib/llvm*/lib/libclang-[0-9]*.so* \
        /usr/lib*/libclang.so* /usr/lib*/*/libclang.so* /usr/lib*/*/libclang-[0-9]*.so* || return 1
    first_exists /usr/lib/llvm*/lib/clang/*/include/stddef.h /usr/lib*/clang/*/include/stddef.h \
        /usr/local/lib/clang/*/include/stddef.h
}

# --- What is missing -----------------------------------------------------------------------

# One line each: what it is for, the Debian package (@ stands for PHP's own prefix).
list_missing() {
    has cc || echo 'a C compiler with the C library headers: gcc libc6-dev'
    has "$php" || echo "PHP's command line ($tried_php): @-cli"
    has_headers || echo "PHP's headers and php-config, of the same version: @-dev"
    has_libclang || echo "libclang and the compiler's headers, for bindgen: clang"
    has composer || echo 'Composer, for the example: composer'
    has_extension pdo_sqlite || echo "PHP's SQLite driver, for the example: @-sqlite3"
    has_extension mbstring || echo "PHP's mbstring, for PHPUnit: @-mbstring"
    { has_extension dom && has_extension xmlwriter; } || echo "PHP's XML extensions, for PHPUnit: @-xml"
    has phpunit || echo 'PHPUnit, for the tests: phpunit'
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo 'Python with venv, for an MCP client in the tests: python3-venv'
    has node || echo 'Node.js, for a decoder in the tests: nodejs'
    has npm || echo 'npm, for an MCP client in the tests: npm'
    [ "$with" != valgrind ] || has valgrind || echo 'Valgrind, for the memory check: valgrind'
    if ! has rustup && has cargo; then
        cargo fmt --version >/dev/null 2>&1 || echo 'rustfmt: rustfmt'
        cargo clippy --version >/dev/null 2>&1 || echo 'clippy: rust-clippy'
    fi
}

# The same for what the checks and tests can do without: not every distribution has a package of each.
list_style() {
    has phpcs || echo 'PHP_CodeSniffer: php-codesniffer'
}

list_frameworks() {
    has_library Symfony/Bundle/FrameworkBundle && has_library Symfony/Component/Console &&
        has_library Symfony/Component/Dotenv && has_library Symfony/Component/Messenger ||
        echo 'Symfony: php-symfony-framework-bundle php-symfony-console php-symfony-dotenv php-symfony-messenger'
    has_library Illuminate || echo 'Laravel: php-laravel-framework'
    has_library Doctrine/DBAL && has_library Doctrine/ORM || echo 'Doctrine: php-doctrine-dbal php-doctrine-orm'
    has_library Symfony/Component/Uid && has_library GuzzleHttp/Psr7 && has_library Nyholm/Psr7 &&
        has_library Ramsey/Uuid && has_library Carbon ||
        echo 'UUIDs, dates and HTTP messages: php-symfony-uid php-guzzlehttp-psr7 php-nyholm-psr7 php-ramsey-uuid php-nesbot-carbon'
}

# Packages of the programs alone, where there are any. redis-check-rdb is the server by its other name.
list_databases() {
    { has mariadbd || first_exists /usr/sbin/mariadbd; } && has mariadb-install-db && has my_print_defaults ||
        echo 'MariaDB: mariadb-server-core mariadb-client-core'
    has initdb || first_exists /usr/lib/postgresql/*/bin/initdb || echo 'PostgreSQL: postgresql'
    has redis-server || has redis-check-rdb || echo 'Redis: redis-tools'
    has_extension pdo_mysql && has_extension mysqli || echo "PHP's MySQL drivers: @-mysql"
    has_extension pdo_pgsql && has_extension pgsql || echo "PHP's PostgreSQL drivers: @-pgsql"
    has_extension redis || echo "PHP's Redis driver: @-redis"
}

# Docker's is the engine, too; its image is made of BusyBox, which needs no library then.
list_drivers() {
    has bwrap || echo 'bubblewrap: bubblewrap'
    first_exists "/usr/sbin/php-fpm$(php_prefix | sed 's/^php//')" ||
        echo 'php-fpm, a server whose workers share the pool: @-fpm'
    first_exists "/usr/lib/apache2/modules/lib$(php_prefix).so" ||
        echo 'Apache with mod_php, another: libapache2-mod-@'
    first_exists /lib/systemd/systemd || echo 'systemd, which a test starts in namespaces of its own: systemd'
    has firejail || echo 'firejail: firejail'
    { has docker && { has dockerd || first_exists /usr/sbin/dockerd; } && has busybox; } ||
        echo 'Docker: docker.io busybox-static'
}

# Debian's names carry PHP's version; where a release has another, its unversioned names do.
php_prefix() {
    if apt-cache show "php${php_series:-${tried_php%% *}}-cli" >/dev/null 2>&1; then
        echo "php${php_series:-${tried_php%% *}}"
    else
        echo php
    fi
}

# Debian 13 has Docker's client in a package of its own.
docker_client() {
    if apt-cache show docker-cli >/dev/null 2>&1; then echo ' docker-cli'; fi
}

packages_for() {
    printf '%s\n' "$1" | sed -e 's/.*: //' -e "s/@/$(php_prefix)/g" -e "s/docker\.io/&$(docker_client)/" | paste -s -d ' ' -
}

# --- Installing ----------------------------------------------------------------------------

# The words that make a command root's, or nothing and a failure.
find_sudo() {
    sudo=''
    if [ "$(id -u)" -eq 0 ]; then return 0; fi
    has sudo || return 1
    if sudo -n true 2>/dev/null; then
        sudo='sudo -n'
    elif [ -t 0 ] && sudo -v; then
        sudo='sudo'
    else
        return 1
    fi
}

install_missing() {
    if ! has apt-get; then
        say 'this platform has no apt-get. Please install:'
        printf '%s\n' "$1" | sed 's/^\(.*\): .*/  - \1/' >&2
        exit 1
    fi
    if ! find_sudo; then
        say 'some packages are missing, and neither root nor sudo is to be had. Please run as root:'
        printf '  apt-get update && apt-get install --yes --no-install-recommends %s\n' "$(packages_for "$1")" >&2
        exit 1
    fi
    $sudo apt-get update -qq
    apt_install "$(packages_for "$1")"
}

apt_install() {
    say "installing $1"
    # shellcheck disable=SC2086 # both are lists of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-remove --no-install-recommends \
        -o Dpkg::Use-Pty=0 $1
}

# What the tests can do without: what this system has no package of, or only one that is in the way
# of another, is left out.
install_optional() {
    if ! has apt-get || ! find_sudo; then
        printf '%s\n' "$1" | sed 's/^/setup: not installed, so what needs it is skipped: /' >&2
        return
    fi
    $sudo apt-get update -qq
    packages=$(printf '%s\n' "$1" | while read -r line; do
        packages=$(packages_for "$line")
        # shellcheck disable=SC2086 # a list of words
        if apt-get install --simulate --no-remove --no-install-recommends $packages >/dev/null 2>&1; then
            echo "$packages"
        else
            say "this system's packages do not provide ${line%%:*}: what needs it is skipped"
        fi
    done | paste -s -d ' ' -)
    [ -z "$packages" ] || apt_install "$packages"
}

# Debian's PostgreSQL makes a cluster as it is installed, which runs from then on and at every boot,
# unless it is told not to: as long as this script runs, it is.
keep_from_clusters() {
    if ! has apt-get || ! find_sudo; then return 0; fi
    no_cluster=/etc/postgresql-common/createcluster.d/altair-eval.conf
    trap '$sudo rm -f "$no_cluster"' EXIT
    trap 'exit 1' HUP INT TERM
    $sudo mkdir -p "${no_cluster%/*}"
    echo 'create_main_cluster = false' | $sudo tee "$no_cluster" >/dev/null
}

# Debian's Docker and php-fpm start as they are installed and at every boot, unless the machine's policy forbids it:
# as long as this script runs, it does. Then what was enabled, and was not there before, is disabled.
keep_from_services() {
    if ! has apt-get || ! find_sudo; then return 0; fi
    services='' services_policy=/usr/sbin/policy-rc.d
    for service in docker.service docker.socket containerd.service "$(php_prefix)-fpm.service"; do
        [ -e "/lib/systemd/system/$service" ] || services="$services $service"
    done
    [ ! -e "$services_policy" ] || services_policy=''
    trap forbid_services_no_longer EXIT
    trap 'exit 1' HUP INT TERM
    if [ -n "$services_policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee "$services_policy" >/dev/null
        $sudo chmod 755 "$services_policy"
    fi
}

forbid_services_no_longer() {
    [ -z "$services_policy" ] || $sudo rm -f "$services_policy"
    for service in $services; do
        ! has systemctl || $sudo systemctl --quiet disable "$service" || :
    done
}

check_rust() {
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    has cargo || stop "cargo is missing. Please install Rust $needed or later, with rustup for one."
    found=$(cargo --version)
    found=${found#cargo }
    found=${found%%[ -]*}
    if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
        stop "cargo $found is too old: Rust $needed or later is needed, from rustup for one."
    fi
    if has rustup; then
        cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
        cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
    fi
}

check_rust
ask_php
check_php
missing=$(list_missing)
if [ -n "$missing" ]; then
    install_missing "$missing"
    ask_php
    check_php
    missing=$(list_missing)
    if [ -n "$missing" ]; then
        say 'still missing after the installation:'
        printf '%s\n' "$missing" | sed 's/^\(.*\): .*/  - \1/' >&2
        exit 1
    fi
fi

case $with in
    style) missing=$(list_style) ;;
    frameworks) missing=$(list_frameworks) ;;
    databases) missing=$(list_databases) ;;
    drivers) missing=$(list_drivers) ;;
esac
case $missing in *'PostgreSQL: '*) keep_from_clusters ;; esac
case $missing in *'Docker: '*) keep_from_services ;; esac
[ -z "$missing" ] || install_optional "$missing"
