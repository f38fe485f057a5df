# Cargo itself knows what is out of date.
.PHONY: altair-eval-cargo

ALTAIR_EVAL_TARGET = $${CARGO_TARGET_DIR:-$(abspath $(top_srcdir)/..)/target}

# `make test` reads the name of the module from this file, and `make install` removes it.
$(phplibdir)/altair_eval.la: altair-eval-cargo
	@mkdir -p $(phplibdir)
	@echo "dlname='altair_eval.so'" >$@

altair-eval-cargo:
	cd $(top_srcdir)/.. && CARGO_TARGET_DIR="$(ALTAIR_EVAL_TARGET)" PHP="$(PHP_EXECUTABLE)" PHP_CONFIG="$$(command -v "$(PHP_CONFIG)")" \
		$(CARGO) build --release --package altair-eval
	@mkdir -p $(phplibdir)
	cp "$(ALTAIR_EVAL_TARGET)/release/libaltair_eval.so" $(phplibdir)/altair_eval.so
