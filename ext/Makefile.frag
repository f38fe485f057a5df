# Cargo itself knows what is out of date.
.PHONY: altair-eval-cargo

ALTAIR_EVAL_TARGET = $${CARGO_TARGET_DIR:-$(abspath $(top_srcdir)/..)/target}

# `make test` reads the name of the module from this file, and `make install` removes it.
$(phplibdir)/altair_eval.la: altair-eval-cargo
	@mkdir -p $(phplibdir)
	@echo "dlname='altair_eval.so'" >$@

# PHP and PHP_CONFIG choose the PHP. Where `php` and `php-config` are these already, they are not set: Cargo would build
# everything anew for the change of a variable. It would for another path to the project, too, and for another choice of
# packages, which ALTAIR_EVAL_PACKAGES is.
altair-eval-cargo:
	cd $(top_srcdir)/.. && \
		is() { [ "$$(readlink -f "$$(command -v "$$1")")" = "$$(readlink -f "$$(command -v "$$2")")" ]; } && \
		if is "$(PHP_EXECUTABLE)" php && is "$(PHP_CONFIG)" php-config; then unset PHP PHP_CONFIG; \
		else export PHP="$(PHP_EXECUTABLE)" PHP_CONFIG="$$(command -v "$(PHP_CONFIG)")"; fi && \
		CARGO_TARGET_DIR="$(ALTAIR_EVAL_TARGET)" $(CARGO) build --release \
			--manifest-path "$$(readlink -f Cargo.toml)" $${ALTAIR_EVAL_PACKAGES:---package altair-eval}
	@mkdir -p $(phplibdir)
	cp "$(ALTAIR_EVAL_TARGET)/release/libaltair_eval.so" $(phplibdir)/altair_eval.so
