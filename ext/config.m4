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
  altair_vernum=`$PHP_CONFIG --vernum`
  altair_series=`expr $altair_vernum / 10000`.`expr $altair_vernum / 100 % 100`
  altair_tried=`cat $abs_srcdir/../php-versions.txt`
  case " $altair_tried " in
    *" $altair_series "*) ;;
    *)
      if test -z "$ALTAIR_EVAL_UNTRIED_PHP"; then
        AC_MSG_ERROR([Altair Eval was not tried with PHP $altair_series, but with $altair_tried. ALTAIR_EVAL_UNTRIED_PHP=1 builds for this one all the same.])
      fi ;;
  esac
  PHP_SUBST([CARGO])
  PHP_SUBST([PHP_CONFIG])
  PHP_ADD_MAKEFILE_FRAGMENT([$abs_srcdir/Makefile.frag])
  PHP_MODULES="$PHP_MODULES \$(phplibdir)/altair_eval.la"
fi
