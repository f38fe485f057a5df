# Altair Eval. `make try` and `make test` do everything on a fresh machine; `make help` lists the rest.

# Where Cargo builds, as an absolute path. bin/altair looks in ./target, so a CARGO_TARGET_DIR of the user's is not followed.
TARGET_DIR ?= $(CURDIR)/target
PREFIX ?= /usr/local
PHP ?= php
PHP_CONFIG ?= php-config
PHPUNIT ?= $(shell command -v phpunit)

EXTENSION := $(TARGET_DIR)/release/libaltair_eval.so
NATIVE := $(TARGET_DIR)/release/altair
WITH_EXTENSION = EXTENSION='$(EXTENSION)' PHP='$(PHP)' scripts/php.sh
INSTALL = EXTENSION='$(EXTENSION)' NATIVE='$(NATIVE)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' \
	PHP='$(PHP)' PHP_CONFIG='$(PHP_CONFIG)' scripts/install.sh
SHOP := examples/shop/vendor/autoload.php

export CARGO_TARGET_DIR := $(TARGET_DIR)
ifneq ($(TARGET_DIR),$(CURDIR)/target)
export ALTAIR_NATIVE := $(NATIVE)
endif

# Quick checks first, and one apt-get at a time; Cargo and xargs use every core by themselves.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help try test build bench containers fuzz fuzz-sql pool-load headers install uninstall valgrind clean setup lint test-rust test-ext test-php test-container test-mcp test-fuzz deny

help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

try: build $(SHOP) ## set up, build, and evaluate a snippet against examples/shop
	bin/altair eval --root=examples/shop 'container(Shop\UserRepository::class)->findByEmail("ada@shop.example")'

test: setup lint build test-rust test-ext test-php test-mcp ## set up, build, and run every check and test

build: setup ## build the extension and the native command
	cargo build --release --workspace

# What is measured are copies, as `make install` makes them. What a linker has written lies in small pieces in the page
# cache, and a start maps them one by one: that is a seventh of `altair eval`. A run that misses a limit leaves the chart
# as it is.
bench: build $(SHOP) ## measure, as ratios against plain PHP, and draw docs/bench.svg
	@mkdir -p '$(TARGET_DIR)/bench' && cp -- '$(EXTENSION)' '$(NATIVE)' '$(TARGET_DIR)/bench/'
	EXTENSION='$(TARGET_DIR)/bench/libaltair_eval.so' ALTAIR_NATIVE='$(TARGET_DIR)/bench/altair' PHP='$(PHP)' \
		scripts/php.sh benches/bench.php
	@mkdir -p docs
	cargo run --quiet --release --locked --manifest-path benches/chart/Cargo.toml -- benches/results.json docs/bench.svg

containers: build ## show what works in containers, by a Docker engine that it starts itself; as root
	@scripts/setup.sh databases
	@scripts/setup.sh frameworks
	@scripts/setup.sh drivers
	$(WITH_EXTENSION) benches/containers.php

fuzz: build $(SHOP) ## send a host what a hostile child may say, for 10 minutes (SECONDS=600, SEED=1)
	$(WITH_EXTENSION) scripts/fuzz-channel.php $(or $(SECONDS),600) $(or $(SEED),1)

fuzz-sql: build $(SHOP) ## say to databases what may write, behind the guards, for 10 minutes (SECONDS=600, SEED=1, SERVER=mariadb)
	@scripts/setup.sh databases
	$(WITH_EXTENSION) scripts/fuzz-sql.php --seconds=$(or $(SECONDS),600) --seed=$(or $(SEED),1) $(if $(SERVER),--server=$(SERVER))

pool-load: build $(SHOP) ## have eight processes ask one pool at once, and look what it holds then (CALLS=10000)
	$(WITH_EXTENSION) scripts/pool-load.php $(or $(CALLS),10000)

headers: ## compile the C files with the headers of each PHP that Debian has, which are downloaded
	@scripts/headers.sh '$(TARGET_DIR)/headers'

valgrind: build $(SHOP) ## run the extension under Valgrind
	scripts/setup.sh valgrind
	EXTENSION='$(EXTENSION)' NATIVE='$(NATIVE)' scripts/valgrind.sh

# Under sudo nothing is built: Cargo is seldom root's, and root's files in target would stay.
install: $(if $(SUDO_USER),,build) ## install into PREFIX and the system's PHP, for every SAPI
	@$(INSTALL) install

uninstall: ## undo `make install`
	@$(INSTALL) uninstall

clean: ## remove what was built
	cargo clean
	rm -rf examples/shop/vendor .phpunit.result.cache

setup: ## install what this machine lacks
	@scripts/setup.sh

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps
	@scripts/setup.sh style
	scripts/check-php.sh

test-fuzz: ## build the fuzz targets and run each for 30 s (SECONDS=30)
	scripts/test-fuzz.sh $(or $(SECONDS),30)

deny: ## check licences, sources and duplicates of crates
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check licenses bans sources

test-rust: build
	cargo test --workspace

test-ext: build
	@scripts/phpize.sh '$(TARGET_DIR)/phpize'

test-php: build $(SHOP)
	@scripts/setup.sh frameworks
	@scripts/setup.sh databases
	@scripts/setup.sh drivers
	EXTENSION='$(EXTENSION)' PHP='$(PHP)' PHPUNIT='$(PHPUNIT)' LOGS='$(TARGET_DIR)/phpunit' scripts/test-php.sh

test-container: build $(SHOP) ## run tests/Escape in a container under Docker's default profile; as root
	@scripts/setup.sh drivers
	ALTAIR_NATIVE='$(NATIVE)' $(WITH_EXTENSION) scripts/container-tests.php

# What is tested starts by itself; tests of the pool have one of their own.
test-rust test-ext test-php test-container test-mcp: export ALTAIR_EVAL_POOL = off

test-mcp: build $(SHOP)
	@scripts/clients.sh '$(TARGET_DIR)/clients'
	ALTAIR_NATIVE='$(NATIVE)' INSPECTOR='$(TARGET_DIR)/clients/inspector' CONFORMANCE='$(TARGET_DIR)/clients/conformance' \
		'$(TARGET_DIR)/clients/venv/bin/python' -W error::ResourceWarning -m unittest discover -s tests/mcp

$(SHOP): examples/shop/composer.json | setup
	cd examples/shop && COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1 composer --no-interaction --quiet dump-autoload
	@touch $@
