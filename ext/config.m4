dnl Builds the extension as PHP people do: phpize, ./configure, make, make install. Cargo does the work.

PHP_ARG_ENABLE([altair-eval],
  [whether to enable Altair Eval],
  [AS_HELP_STRING([--disable-altair-eval], [Do not build Altair Eval])],
  [yes], [yes])

if test "$PHP_ALTAIR_EVAL" != "no"; then
  case $host_os in
    linux*) ;;
    *) AC_MSG_ERROR([Altair Eval confines with the kernel's own means, and they are Linux's: $host_os has others.]) ;;
  esac
  AC_PATH_PROG([CARGO], [cargo], [no])
  if test "$CARGO" = "no"; then
    AC_MSG_ERROR([cargo is missing. Install Rust, with rustup (https://rustup.rs) for one, and have it on PATH.])
  fi
  PHP_SUBST([CARGO])
  PHP_SUBST([PHP_CONFIG])
  PHP_ADD_MAKEFILE_FRAGMENT([$abs_srcdir/Makefile.frag])
  PHP_MODULES="$PHP_MODULES \$(phplibdir)/altair_eval.la"
fi
