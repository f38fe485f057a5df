//! Numbers that the C library's bindings do not have for every architecture. From 424 on they are
//! the same everywhere (Linux, `scripts/syscall.tbl`).
#![allow(non_upper_case_globals)]

use nix::libc::c_long;

pub(crate) const SYS_cachestat: c_long = 451;
pub(crate) const SYS_fchmodat2: c_long = 452;
pub(crate) const SYS_map_shadow_stack: c_long = 453;
pub(crate) const SYS_futex_wake: c_long = 454;
pub(crate) const SYS_futex_wait: c_long = 455;
pub(crate) const SYS_futex_requeue: c_long = 456;
pub(crate) const SYS_statmount: c_long = 457;
pub(crate) const SYS_listmount: c_long = 458;
pub(crate) const SYS_lsm_get_self_attr: c_long = 459;
pub(crate) const SYS_lsm_set_self_attr: c_long = 460;
pub(crate) const SYS_lsm_list_modules: c_long = 461;
pub(crate) const SYS_mseal: c_long = 462;
pub(crate) const SYS_setxattrat: c_long = 463;
pub(crate) const SYS_getxattrat: c_long = 464;
pub(crate) const SYS_listxattrat: c_long = 465;
pub(crate) const SYS_removexattrat: c_long = 466;
pub(crate) const SYS_open_tree_attr: c_long = 467;
pub(crate) const SYS_file_getattr: c_long = 468;
pub(crate) const SYS_file_setattr: c_long = 469;
