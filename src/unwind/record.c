/* SPDX-License-Identifier: MIT */
#include "unwind/record.h"

#include <errno.h>
#include <string.h>

enum {
	MAX_AUGMENTATION = 16, /* letters; no compiler writes more than a few */

	/* DW_EH_PE_*: the low bits are the format, then what it is relative to */
	PE_FORMAT_MASK = 0x0f,
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_BASE_MASK = 0x70,
	PE_ABSOLUTE = 0x00,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
	PE_INDIRECT = 0x80,
};

/* Where a record lies, once its length and identity have been read. */
struct header {
	uint64_t next; /* offset of the record after it */
	bool is_cie;
	uint64_t cie_offset; /* of an FDE's CIE */
	struct cursor body;  /* after the identity; its start is that of the section */
};

static bool read_format(struct cursor *c, unsigned word, uint8_t encoding, uint64_t *out)
{
	switch (encoding & PE_FORMAT_MASK) {
	case PE_ABSPTR:
	case PE_SIGNED:
		*out = cursor_uint(c, word);
		break;
	case PE_UDATA8:
	case PE_SDATA8:
		*out = cursor_u64(c);
		break;
	case PE_ULEB128:
		*out = cursor_uleb(c);
		break;
	case PE_SLEB128:
		*out = (uint64_t)cursor_sleb(c);
		break;
	case PE_UDATA2:
		*out = cursor_u16(c);
		break;
	case PE_UDATA4:
		*out = cursor_u32(c);
		break;
	case PE_SDATA2:
		*out = (uint64_t)cursor_sint(c, 2);
		break;
	case PE_SDATA4:
		*out = (uint64_t)cursor_sint(c, 4);
		break;
	default:
		c->bad = true;
	}
	return !c->bad;
}

bool record_read_pointer(struct cursor *c, unsigned word, uint8_t encoding, uint64_t address, uint64_t base, uint64_t *out)
{
	uint64_t here = address + cursor_offset(c);
	uint64_t value;

	/*
	 * The value of an indirect pointer is in the target's memory, filled in by its loader: never used for code
	 * ranges.
	 */
	if (encoding & PE_INDIRECT) {
		c->bad = true;
		return false;
	}
	switch (encoding & PE_BASE_MASK) {
	case PE_ABSOLUTE:
		here = 0;
		break;
	case PE_PCREL:
		break;
	case PE_TEXTREL:
		if (!base) {
			c->bad = true;
			return false;
		}
		here = base;
		break;
	case PE_DATAREL:
		here = base;
		break;
	default:
		c->bad = true;
		return false;
	}
	if (!read_format(c, word, encoding, &value))
		return false;
	*out = here + value;
	return true;
}

/* Skips a pointer whose value does not matter (the personality routine): only its size does. */
static void skip_pointer(struct cursor *c, unsigned word, uint8_t encoding, uint64_t address)
{
	uint64_t value;

	if (encoding == PE_OMIT)
		return;
	if ((encoding & PE_BASE_MASK) == PE_ALIGNED) {
		cursor_skip(c, -(address + cursor_offset(c)) % word);
		encoding = PE_ABSPTR;
	}
	read_format(c, word, encoding, &value);
}

/* False at the end: of the bytes, or marked by a length of 0 (.eh_frame), or when a length makes no sense. */
static bool read_header(const struct cfi_section *section, uint64_t offset, struct header *out)
{
	struct cursor c = cursor_init(section->bytes.data, section->bytes.len);
	bool eh_frame = section->kind == CFI_EH_FRAME;
	bool is_64bit;
	uint64_t len, id, id_offset;

	if (!cursor_seek(&c, offset))
		return false;
	len = cursor_u32(&c);
	is_64bit = len == 0xffffffff;
	if (is_64bit)
		len = cursor_u64(&c);
	if (c.bad || len == 0 || len > cursor_left(&c))
		return false;
	c.end = c.p + len;
	out->next = cursor_offset(&c) + len;

	/* In .eh_frame the identity has 4 bytes even with a 64-bit length, and counts backwards from itself. */
	id_offset = cursor_offset(&c);
	id = eh_frame || !is_64bit ? cursor_u32(&c) : cursor_u64(&c);
	if (eh_frame) {
		out->is_cie = id == 0;
		out->cie_offset = id_offset - id;
	} else {
		out->is_cie = id == (is_64bit ? UINT64_MAX : UINT32_MAX);
		out->cie_offset = id;
	}
	out->body = c;
	return true;
}

/* The letters after 'z', each with its bytes in the augmentation data. */
static void read_augmentation(struct cie *cie, unsigned word, const char *letters, struct cursor data, uint64_t address)
{
	for (; *letters && !data.bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cursor_u8(&data);
			break;
		case 'P':
			skip_pointer(&data, word, cursor_u8(&data), address);
			break;
		case 'L':
			cursor_u8(&data);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* return addresses are signed with the B key: they are stripped whatever the key */
		case 'G': /* the stack is tagged */
			break;
		default: /* unknown: the rest cannot be told apart, but its length is known */
			return;
		}
	}
}

static bool read_cie(const struct cfi_section *section, uint64_t offset, struct cie *out)
{
	const unsigned word = section->arch->word;
	struct header header;
	struct cursor *c = &header.body;
	char augmentation[MAX_AUGMENTATION];
	uint8_t version;

	if (!read_header(section, offset, &header) || !header.is_cie)
		return false;
	*out = (struct cie){.pointer_encoding = PE_ABSPTR};
	version = cursor_u8(c);
	if (!cursor_string(c, augmentation, sizeof(augmentation)) || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cursor_u8(c) != word || cursor_u8(c) != 0)) /* address and segment size */
		return false;
	if (strcmp(augmentation, "eh") == 0) { /* from gcc 2: a pointer to what is now the augmentation data */
		cursor_skip(c, word);
		augmentation[0] = '\0';
	}
	out->code_align = cursor_uleb(c);
	out->data_align = cursor_sleb(c);
	out->ra_reg = version == 1 ? cursor_u8(c) : (uint32_t)cursor_uleb(c);
	if (augmentation[0] == 'z') {
		struct cursor data = cursor_take(c, cursor_uleb(c));

		/* Offsets count from the section's start, as everywhere, so that addresses can be told. */
		data.start = c->start;
		out->has_augmentation_data = true;
		read_augmentation(out, word, augmentation + 1, data, section->bytes.vaddr);
	} else if (augmentation[0]) {
		return false;
	}
	if (c->bad || out->ra_reg >= ARCH_MAX_DWARF_REGS)
		return false;
	out->program = *c;
	return true;
}

static bool read_fde(const struct cfi_section *section, const struct header *header, struct fde *out)
{
	struct cursor c = header->body;
	uint64_t range;

	if (!read_cie(section, header->cie_offset, &out->cie))
		return false;
	if (!record_read_pointer(&c, section->arch->word, out->cie.pointer_encoding, section->bytes.vaddr, section->text, &out->start) ||
	    !read_format(&c, section->arch->word, out->cie.pointer_encoding, &range))
		return false;
	if (out->cie.has_augmentation_data)
		cursor_skip(&c, cursor_uleb(&c));
	/* Linkers leave address 0 for functions that they dropped. */
	if (c.bad || range == 0 || range > INT64_MAX || out->start == 0 || out->start + range < out->start)
		return false;
	out->end = out->start + range;
	out->program = c;
	return true;
}

int record_next(const struct cfi_section *section, uint64_t *offset, struct fde *out)
{
	struct header header;

	if (!read_header(section, *offset, &header))
		return -ENOENT;
	*offset = header.next;
	return !header.is_cie && read_fde(section, &header, out);
}
