/* The mappings of a template's program and libraries, and their page table entries in its forks.
 *
 * A fork copies each mapping of its parent, of which PHP with its extensions has 500, and its end undoes each: half of
 * the time of both. The dynamic linker makes five of a library (its headers, code, constants, relocated data and data),
 * of which two do.
 *
 * The kernel gives a fork none of its parent's entries for a file's pages, since it can find them again, and
 * no entry to write to a page that both have. A run would meet a hundred such faults, of one or two
 * microseconds each: half of its time. */

#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* glibc 2.35 */
# define MADV_POPULATE_WRITE 23
#endif

/* The objects that every run executes, besides the program. */
typedef struct {
	uintptr_t library; /* this extension */
	uintptr_t libc;
} executed;

static uintptr_t base_of(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) == 0 ? 0 : (uintptr_t) info.dli_fbase;
}

static executed executed_by_every_run(void)
{
	return (executed) {base_of((const void *) altair_settle_memory), base_of((const void *) getpid)};
}

static bool is_executed(const struct dl_phdr_info *object, const executed *by_every_run)
{
	/* By its headers: musl names it, and glibc does not. */
	bool is_program = object->dlpi_phdr == (const void *) getauxval(AT_PHDR);
	return is_program || object->dlpi_addr == by_every_run->library || object->dlpi_addr == by_every_run->libc;
}

static uintptr_t page_bytes(void)
{
	return (uintptr_t) sysconf(_SC_PAGESIZE);
}

/* The pages of a segment, from its first byte's to its last byte's. */
typedef struct {
	uintptr_t begin;
	uintptr_t end;
} pages;

static pages pages_of(const struct dl_phdr_info *object, const ElfW(Phdr) *segment)
{
	uintptr_t page = page_bytes();
	uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
	return (pages) {begin & ~(page - 1), (begin + segment->p_memsz + page - 1) & ~(page - 1)};
}

/* The pages of a segment's head that the linker has made read-only after it relocated them (PT_GNU_RELRO). None if
 * that is all of the segment. */
static pages relocated_head(const struct dl_phdr_info *object, const ElfW(Phdr) *segment)
{
	pages whole = pages_of(object, segment);
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *other = &object->dlpi_phdr[i];
		if (other->p_type == PT_GNU_RELRO) {
			/* As the linker does, which leaves a page writable that has other data, too. */
			uintptr_t end = (object->dlpi_addr + other->p_vaddr + other->p_memsz) & ~(page_bytes() - 1);
			if (pages_of(object, other).begin == whole.begin && end > whole.begin && end < whole.end) {
				return (pages) {whole.begin, end};
			}
		}
	}
	return (pages) {whole.begin, whole.begin};
}

static void protect(pages range, int protection)
{
	/* Where a policy forbids it, nothing changes: forks take longer. */
	mprotect((void *) range.begin, range.end - range.begin, protection);
}

/* Has forks take over the entries of code that has been executed. The kernel copies those of a mapping in which a page
 * was written to (vma_needs_copy, mm/memory.c). So this writes what is there already, to one byte. For that moment the
 * code can be written to, and executed all the time. Where a policy forbids that, nothing changes: a fork meets its
 * faults. */
static void share_code(pages code)
{
	volatile char *last = (volatile char *) (code.end - 1);
	if (mprotect((void *) code.begin, code.end - code.begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
		*last = *last;
		protect(code, PROT_READ | PROT_EXEC);
	}
}

/* Makes one mapping of an object's headers, code and constants: the kernel joins neighbours of one file that are alike.
 * Constants can be executed from now on. */
static void join_code(const struct dl_phdr_info *object)
{
	pages joined = {0, 0};
	const ElfW(Phdr) *last = NULL;
	bool has_code = false, has_other = false;
	for (size_t i = 0; i <= object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = i < object->dlpi_phnum ? &object->dlpi_phdr[i] : NULL;
		if (segment != NULL && segment->p_type != PT_LOAD) {
			continue;
		}
		bool is_next = segment != NULL && !(segment->p_flags & PF_W) && last != NULL
			&& pages_of(object, segment).begin == joined.end
			&& segment->p_vaddr - segment->p_offset == last->p_vaddr - last->p_offset;
		/* No linker is known to have writable data begin in the last page, from which this would take it. */
		bool is_whole = segment == NULL || pages_of(object, segment).begin >= joined.end;
		if (!is_next && has_code && has_other && is_whole) {
			protect(joined, PROT_READ | PROT_EXEC);
		}
		if (!is_next) {
			has_code = has_other = false;
			last = NULL;
		}
		if (segment == NULL || (segment->p_flags & PF_W)) {
			continue;
		}
		pages own = pages_of(object, segment);
		joined = (pages) {is_next ? joined.begin : own.begin, own.end};
		has_code |= (segment->p_flags & PF_X) != 0;
		has_other |= (segment->p_flags & PF_X) == 0;
		last = segment;
	}
}

/* Joins mappings, and shares the code that every run executes. The constants of that code stay apart: forks would take
 * over their entries, too. */
static int settle_object(struct dl_phdr_info *object, size_t size, void *data)
{
	(void) size;
	bool is_shared = is_executed(object, data);
	if (!is_shared) {
		join_code(object);
	}
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD) {
			continue;
		}
		pages relocated = relocated_head(object, segment);
		if ((segment->p_flags & PF_W) && relocated.end > relocated.begin) {
			/* One mapping with the data that follows. */
			protect(relocated, PROT_READ | PROT_WRITE);
		} else if (is_shared && segment->p_flags == (PF_R | PF_X)) {
			share_code(pages_of(object, segment));
		}
	}
	return 0;
}

void altair_settle_memory(void)
{
	executed by_every_run = executed_by_every_run();
	dl_iterate_phdr(settle_object, &by_every_run);
}

/* Gives a fork its own pages of what its run may write to; not of what was relocated, which nothing writes to. Failure,
 * as before Linux 5.14, costs only time. */
static int own_object(struct dl_phdr_info *object, size_t size, void *data)
{
	(void) size;
	if (!is_executed(object, data)) {
		return 0;
	}
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W)) {
			uintptr_t begin = relocated_head(object, segment).end;
			uintptr_t end = pages_of(object, segment).end;
			madvise((void *) begin, end - begin, MADV_POPULATE_WRITE);
		}
	}
	return 0;
}

void altair_own_data(void)
{
	executed by_every_run = executed_by_every_run();
	dl_iterate_phdr(own_object, &by_every_run);
}
