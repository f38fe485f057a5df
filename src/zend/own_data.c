/* A fork's own pages of what its run will write to.
 *
 * The kernel gives a fork no entry to write to a page that its parent has, too. A run would meet dozens of such
 * faults, of one or two microseconds each. A fork that waits for its task has them dealt with meanwhile. What may be
 * done with the memory stays as the dynamic linker has left it. */

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

/* Where a segment's data begins that can be written to: after the head that the linker has made read-only once it had
 * relocated it (PT_GNU_RELRO). */
static uintptr_t writable_from(const struct dl_phdr_info *object, pages segment)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *other = &object->dlpi_phdr[i];
		if (other->p_type == PT_GNU_RELRO && pages_of(object, other).begin == segment.begin) {
			/* As the linker does, which leaves a page writable that has other data, too. */
			return (object->dlpi_addr + other->p_vaddr + other->p_memsz) & ~(page_bytes() - 1);
		}
	}
	return segment.begin;
}

/* Failure, as before Linux 5.14, costs only time. */
static int own_object(struct dl_phdr_info *object, size_t size, void *data)
{
	(void) size;
	if (!is_executed(object, data)) {
		return 0;
	}
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W)) {
			pages whole = pages_of(object, segment);
			uintptr_t begin = writable_from(object, whole);
			if (begin < whole.end) {
				madvise((void *) begin, whole.end - begin, MADV_POPULATE_WRITE);
			}
		}
	}
	return 0;
}

void altair_own_data(void)
{
	executed by_every_run = {base_of((const void *) altair_own_data), base_of((const void *) getpid)};
	dl_iterate_phdr(own_object, &by_every_run);
}
