/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/file_pin.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The file was not changed since it was read, nor is this a copy of it. */
static bool is_as_read(int fd, const struct image *image)
{
	struct stat st;

	return fstat(fd, &st) == 0 && image_identity_of(&st) == image_identity(image);
}

static void pin_file(struct file_pin *pin, struct offcpu_probe *probe, int fd, const struct image *image)
{
	void *page = mmap(NULL, page_bytes(), PROT_READ, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED)
		return;
	pin->page = page;
	pin->known = offcpu_probe_identify(probe, page, &pin->file) == 0 && is_as_read(fd, image);
}

/* All 64-bit processes have the same one, and so do we. */
static bool is_vdso(const struct image *image, const struct map_entry *entry)
{
	return strcmp(entry->path, "[vdso]") == 0 && image_is_64bit(image);
}

void file_pin_init(struct file_pin *pin, struct offcpu_probe *probe, int fd, const struct image *image,
		   const struct map_entry *entry)
{
	const unsigned long vdso = getauxval(AT_SYSINFO_EHDR);

	*pin = (struct file_pin){0};
	if (!offcpu_probe_finds_code(probe))
		return;
	if (fd >= 0)
		pin_file(pin, probe, fd, image);
	else if (vdso && is_vdso(image, entry))
		pin->known = offcpu_probe_identify(probe, (const void *)vdso, &pin->file) == 0;
}

void file_pin_deinit(struct file_pin *pin)
{
	if (pin->page)
		munmap(pin->page, page_bytes());
	*pin = (struct file_pin){0};
}

bool file_pin_is_of(const struct file_pin *pin, const struct offcpu_file *file)
{
	return pin->known && pin->file.inode == file->inode && pin->file.changed_s == file->changed_s &&
	       pin->file.changed_ns == file->changed_ns;
}

static struct offcpu_file file_at(const struct file_pin *pin, uint64_t offset)
{
	struct offcpu_file file = pin->file;

	file.page = offset / page_bytes();
	return file;
}

void file_pin_tell(const struct file_pin *pin, struct offcpu_probe *probe, uint64_t offset,
		   const struct offcpu_file_code *code)
{
	const struct offcpu_file file = file_at(pin, offset);

	if (pin->known)
		offcpu_probe_set_file(probe, &file, code); /* if there is no room, the maps of processes are read */
}

void file_pin_forget(const struct file_pin *pin, struct offcpu_probe *probe, uint64_t offset)
{
	const struct offcpu_file file = file_at(pin, offset);

	if (pin->known)
		offcpu_probe_forget_file(probe, &file);
}
