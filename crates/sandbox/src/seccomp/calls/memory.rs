//! Memory. All mappings must be counted by the limit for data (setrlimit(2), `RLIMIT_DATA`).

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::Kernel;
use crate::seccomp::call::Refuse::{AsAbsent, Quietly, Told};
use crate::seccomp::call::When::Args;
use crate::seccomp::call::{Call, Rules, at_least, at_most, bits, calls};
use crate::syscall_numbers::{SYS_map_shadow_stack, SYS_mseal};

/// Mappings that the limit for data does not count: growing stacks, and huge pages, which come from
/// a machine-wide pool.
const UNCOUNTED: u32 = (MAP_GROWSDOWN | MAP_HUGETLB) as u32;
const ANONYMOUS: u32 = MAP_ANONYMOUS as u32;
/// A bit that is set in both kinds of shared mapping, and in no other kind (mman.h: `MAP_SHARED` 1,
/// `MAP_PRIVATE` 2, `MAP_SHARED_VALIDATE` 3, `MAP_DROPPABLE` 8).
const SHARED: u32 = MAP_SHARED as u32;

/// Shared anonymous memory is not counted either. Shared mappings of files count as disk space.
pub(super) const MMAP: Rules = &[
    &[bits(3, UNCOUNTED | ANONYMOUS, 0)],
    &[bits(3, UNCOUNTED | SHARED, 0)],
];

/// `madvise`: hints. Not those that merge pages with other processes' (`MADV_MERGEABLE`, which
/// reveals their contents) or break hardware pages (`MADV_HWPOISON`, `MADV_SOFT_OFFLINE`), nor
/// those that drop file pages from the machine's page cache (`MADV_COLD` 20, `MADV_PAGEOUT` 21).
const MADVISE: Rules = &[
    // NORMAL 0 to DONTNEED 4.
    &[at_most(2, MADV_DONTNEED as u32)],
    // FREE 8, REMOVE 9, DONTFORK 10, DOFORK 11.
    &[
        at_least(2, MADV_FREE as u32),
        at_most(2, MADV_DOFORK as u32),
    ],
    // HUGEPAGE 14 to KEEPONFORK 19: with NOHUGEPAGE, DONTDUMP, DODUMP, WIPEONFORK.
    &[
        at_least(2, MADV_HUGEPAGE as u32),
        at_most(2, MADV_KEEPONFORK as u32),
    ],
    // POPULATE_READ 22 to COLLAPSE 25: with POPULATE_WRITE, DONTNEED_LOCKED.
    &[
        at_least(2, MADV_POPULATE_READ as u32),
        at_most(2, MADV_COLLAPSE as u32),
    ],
    // GUARD_INSTALL 102, GUARD_REMOVE 103: below the stacks of threads.
    &[at_least(2, 102), at_most(2, 103)],
];

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_brk: Allow, "malloc()";
    SYS_mmap: AllowIf(Args(MMAP), Quietly), "memory and files; only mappings that the limit counts";
    SYS_munmap: Allow, "every program";
    SYS_mremap: Allow, "realloc()";
    SYS_mprotect: Allow, "loading libraries, guard pages, PCRE's JIT";
    SYS_madvise: AllowIf(Args(MADVISE), Quietly), "malloc(), PHP's memory manager";
    SYS_msync: Allow, "SQLite's shared memory file";
    SYS_mincore: Refuse(AsAbsent), "reveals which pages of its user's files others have read recently";
    SYS_mlock: Allow, "sodium; RLIMIT_MEMLOCK bounds it";
    SYS_munlock: Allow, "sodium";
    SYS_membarrier: Allow, "C libraries with threads";
    SYS_mlockall: Refuse(Quietly), "would lock all memory of the process";
    SYS_memfd_create: Refuse(AsAbsent), "memory that the limit does not count; libraries take a file instead";
    SYS_memfd_secret: Refuse(AsAbsent), "memory that the limit does not count";
    SYS_map_shadow_stack: Refuse(AsAbsent), "C libraries probe for it";
    SYS_mseal: Refuse(AsAbsent), "C libraries probe for it";
    SYS_pkey_alloc: Refuse(AsAbsent), "libraries probe for it";
    SYS_pkey_free: Refuse(AsAbsent), "needs pkey_alloc";
    SYS_pkey_mprotect: Refuse(AsAbsent), "needs pkey_alloc";
    SYS_get_mempolicy: Refuse(AsAbsent), "libnuma probes for it";
    SYS_set_mempolicy: Refuse(AsAbsent), "memory placement is the machine's decision";
    SYS_mbind: Refuse(AsAbsent), "memory placement is the machine's decision";
    SYS_migrate_pages: Refuse(Quietly), "moves the memory of other processes";
    SYS_move_pages: Refuse(Quietly), "moves the memory of other processes";
    SYS_remap_file_pages: Refuse(Quietly), "nothing has used it for decades";
    SYS_userfaultfd: Refuse(Told(Kernel)), "lets a process stall the kernel in the middle of a call";
    SYS_shmget: Refuse(Quietly), "memory that the limit does not count, and that outlives the process";
    SYS_shmat: Refuse(Quietly), "needs shmget, or reaches the memory of others";
    SYS_shmctl: Refuse(Quietly), "reaches the memory of others";
    SYS_shmdt: Refuse(Quietly), "needs shmat";
};
