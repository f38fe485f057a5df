/* A loaded object calls functions of another through a table of its own (ELF gABI, "Dynamic
 * Linking": relocations with a symbol). Functions can only be replaced in these tables: PHP
 * loads its extensions with RTLD_DEEPBIND, so that each finds the functions of the libraries
 * that it was linked with, not ours. */

#define _GNU_SOURCE
#include "database.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_ADDRESS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#error "Relocations of this architecture are not known."
#endif

typedef struct {
	uintptr_t library; /* where the library itself is loaded */
	const altair_interposed *functions;
	size_t count;
	size_t found;
} work;

/* The dynamic section holds offsets with musl, and addresses with glibc. */
static const void *at(const struct dl_phdr_info *object, ElfW(Addr) place)
{
	return (const void *) (place < object->dlpi_addr ? place + object->dlpi_addr : place);
}

/* Whether the linker has made a slot read-only once it had bound it (PT_GNU_RELRO). Of the last page that has other data,
 * too, it leaves all writable. */
static bool is_relocated(const struct dl_phdr_info *object, const void *slot)
{
	uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
		uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
		if (segment->p_type == PT_GNU_RELRO && (uintptr_t) slot >= begin && (uintptr_t) slot < end) {
			return true;
		}
	}
	return false;
}

static void replace(work *work, const struct dl_phdr_info *object, const char *name, void **slot)
{
	for (size_t i = 0; i < work->count; i++) {
		if (strcmp(name, work->functions[i].name) != 0) {
			continue;
		}
		uintptr_t page = (uintptr_t) slot & ~((uintptr_t) sysconf(_SC_PAGESIZE) - 1);
		size_t length = (uintptr_t) (slot + 1) - page;
		bool is_protected = is_relocated(object, slot);
		if (is_protected && mprotect((void *) page, length, PROT_READ | PROT_WRITE) != 0) {
			return;
		}
		*slot = work->functions[i].with;
		work->found++;
		if (is_protected) {
			mprotect((void *) page, length, PROT_READ);
		}
		return;
	}
}

static int each_object(struct dl_phdr_info *object, size_t size, void *data)
{
	(void) size;
	work *mine = data;
	const ElfW(Dyn) *dynamic = NULL;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *) (object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
		}
	}
	if (dynamic == NULL || object->dlpi_addr == mine->library) {
		return 0;
	}
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	struct {
		const ElfW(Rela) *first;
		size_t bytes;
	} tables[2] = {{NULL, 0}, {NULL, 0}};
	for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
			case DT_SYMTAB: symbols = at(object, entry->d_un.d_ptr); break;
			case DT_STRTAB: strings = at(object, entry->d_un.d_ptr); break;
			case DT_JMPREL: tables[0].first = at(object, entry->d_un.d_ptr); break;
			case DT_PLTRELSZ: tables[0].bytes = entry->d_un.d_val; break;
			case DT_RELA: tables[1].first = at(object, entry->d_un.d_ptr); break;
			case DT_RELASZ: tables[1].bytes = entry->d_un.d_val; break;
			default: break;
		}
	}
	for (size_t i = 0; symbols != NULL && strings != NULL && i < 2; i++) {
		const ElfW(Rela) *one = tables[i].first;
		for (size_t left = one == NULL ? 0 : tables[i].bytes / sizeof *one; left > 0; left--, one++) {
			if (IS_ADDRESS(ELF64_R_TYPE(one->r_info)) && ELF64_R_SYM(one->r_info) != 0) {
				const char *name = strings + symbols[ELF64_R_SYM(one->r_info)].st_name;
				replace(mine, object, name, (void **) (object->dlpi_addr + one->r_offset));
			}
		}
	}
	return 0;
}

size_t altair_interpose(const void *library, const altair_interposed *functions, size_t count)
{
	Dl_info info;
	if (dladdr(library, &info) == 0) {
		return 0;
	}
	work work = {(uintptr_t) info.dli_fbase, functions, count, 0};
	dl_iterate_phdr(each_object, &work);
	return work.found;
}
