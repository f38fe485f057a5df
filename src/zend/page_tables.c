/* The page table entries of a template's forks.
 *
 * The kernel gives a fork none of its parent's entries for a file's pages, since it can find them again, and
 * no entry to write to a page that both have. A run would meet a hundred such faults, of one or two
 * microseconds each: half of its time. */

#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* glibc 2.35 */
# define MADV_POPULATE_WRITE 23
#endif

/* Works on a segment of an object: all of its code, or of its data that can be written to. */
typedef void (*segment_work)(uintptr_t begin, uintptr_t end);

typedef struct {
	/* The objects that every run executes, besides the program. */
	uintptr_t library; /* this extension */
	uintptr_t libc;
	segment_work code;
	segment_work data;
} work;

static uintptr_t base_of(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) == 0 ? 0 : (uintptr_t) info.dli_fbase;
}

/* Has forks take over the entries of code that has been executed. The kernel copies those of a mapping in which a page
 * was written to (vma_needs_copy, mm/memory.c). So this writes what is there already, to one byte. For that moment the
 * code can be written to, and executed all the time. Where a policy forbids that, nothing changes: a fork meets its
 * faults. */
static void share_code(uintptr_t begin, uintptr_t end)
{
	volatile char *last = (volatile char *) (end - 1);
	if (mprotect((void *) begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
		*last = *last;
		mprotect((void *) begin, end - begin, PROT_READ | PROT_EXEC);
	}
}

/* Gives a fork its own pages. Failure, as before Linux 5.14, costs only time. */
static void own_data(uintptr_t begin, uintptr_t end)
{
	madvise((void *) begin, end - begin, MADV_POPULATE_WRITE);
}

static int each_object(struct dl_phdr_info *object, size_t size, void *data)
{
	(void) size;
	const work *mine = data;
	bool is_program = object->dlpi_name == NULL || object->dlpi_name[0] == '\0';
	if (!is_program && object->dlpi_addr != mine->library && object->dlpi_addr != mine->libc) {
		return 0;
	}
	uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
	uintptr_t read_only_end = 0; /* of what the linker made so after relocation */
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type == PT_GNU_RELRO) {
			read_only_end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		}
	}
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
		uintptr_t end = (begin + segment->p_memsz + page - 1) & ~(page - 1);
		if (segment->p_type != PT_LOAD) {
			continue;
		}
		if ((segment->p_flags & PF_W) && mine->data != NULL) {
			bool is_partly = read_only_end > begin && read_only_end < end;
			begin = is_partly ? (read_only_end + page - 1) : begin;
			mine->data(begin & ~(page - 1), end);
		} else if (segment->p_flags == (PF_R | PF_X) && mine->code != NULL) {
			mine->code(begin & ~(page - 1), end);
		}
	}
	return 0;
}

static void on_segments(segment_work code, segment_work data)
{
	work mine = {base_of((const void *) altair_share_code), base_of((const void *) getpid), code, data};
	dl_iterate_phdr(each_object, &mine);
}

void altair_share_code(void)
{
	on_segments(share_code, NULL);
}

void altair_own_data(void)
{
	on_segments(NULL, own_data);
}
