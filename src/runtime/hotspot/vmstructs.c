/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/vmstructs.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/dynsym.h"

enum {
	MAX_ENTRIES = 8192,
	MAX_STRIDE = 256,
	CHUNK = 256, /* entries that are read at once */
	MAX_NAME = 128,
};

/* What is needed only here comes after the facts that are kept. Static fields give their address. */
enum {
	AT_HEAP = HS_FACT_COUNT, /* 8 has one, */
	AT_HEAPS,                /* and later releases a list */
	AT_CALL_RETURN,
	AT_JDK_VERSION,
	AT_VM_MAJOR,
	AT_VM_MINOR,
	AT_VM_RELEASE,
	AT_CLASS_THREAD,
	AT_CLASS_FIELD_HOLDER,
	AT_CLASS_STRING,
	AT_NARROW_OOP_BASE,
	AT_NARROW_OOP_SHIFT,
	AT_NARROW_KLASS_BASE,
	AT_NARROW_KLASS_SHIFT,
	AT_INTERPRETER,
	AT_HEAP_OBJECT,
	AT_OPTIONS,
	ARRAY_LEN,
	ARRAY_DATA,
	HEAP_MEMORY,
	HEAP_SEGMAP,
	HEAP_LOG2,
	SPACE_LOW,
	SPACE_HIGH,
	SPACE_LIMIT,
	QUEUE_BUFFER,
	QUEUE_LIMIT,
	JDK_MAJOR,
	OPTION_NAME,
	OPTION_ADDRESS,
	OPTION_SIZE,
	NVALUES,
};

struct wanted {
	unsigned id;
	const char *type;
	const char *name;
	uint8_t size; /* where the type's is not told; 0: it is a structure */
	bool is_static;
};

#define OLD_CLASS(name) "_well_known_klasses[SystemDictionary::" name "_klass_knum]"
#define NEW_CLASS(name) "_klasses[static_cast<int>(vmClassID::" name "_klass_knum)]"

/* Of several with one id, releases have one. */
static const struct wanted fields[] = {
	{HS_AT_THREADS_LIST, "ThreadsSMRSupport", "_java_thread_list", 8, true},
	{HS_AT_FIRST_THREAD, "Threads", "_thread_list", 8, true},
	{AT_CLASS_THREAD, "SystemDictionary", OLD_CLASS("Thread"), 8, true},
	{AT_CLASS_THREAD, "vmClasses", NEW_CLASS("Thread"), 8, true},
	{AT_CLASS_FIELD_HOLDER, "vmClasses", NEW_CLASS("Thread_FieldHolder"), 8, true},
	{AT_CLASS_STRING, "SystemDictionary", OLD_CLASS("String"), 8, true},
	{AT_CLASS_STRING, "vmClasses", NEW_CLASS("String"), 8, true},
	{AT_NARROW_OOP_BASE, "Universe", "_narrow_oop._base", 8, true},
	{AT_NARROW_OOP_BASE, "CompressedOops", "_narrow_oop._base", 8, true},
	{AT_NARROW_OOP_BASE, "CompressedOops", "_base", 8, true},
	{AT_NARROW_OOP_SHIFT, "Universe", "_narrow_oop._shift", 4, true},
	{AT_NARROW_OOP_SHIFT, "CompressedOops", "_narrow_oop._shift", 4, true},
	{AT_NARROW_OOP_SHIFT, "CompressedOops", "_shift", 4, true},
	{AT_NARROW_KLASS_BASE, "Universe", "_narrow_klass._base", 8, true},
	{AT_NARROW_KLASS_BASE, "CompressedKlassPointers", "_narrow_klass._base", 8, true},
	{AT_NARROW_KLASS_BASE, "CompressedKlassPointers", "_base", 8, true},
	{AT_NARROW_KLASS_SHIFT, "Universe", "_narrow_klass._shift", 4, true},
	{AT_NARROW_KLASS_SHIFT, "CompressedKlassPointers", "_narrow_klass._shift", 4, true},
	{AT_NARROW_KLASS_SHIFT, "CompressedKlassPointers", "_shift", 4, true},
	{HS_KLASS_CONSTANTS, "InstanceKlass", "_constants", 8, false},
	{HS_KLASS_FIELDS, "InstanceKlass", "_fields", 8, false},
	{HS_KLASS_FIELD_COUNT, "InstanceKlass", "_java_fields_count", 2, false},
	{HS_KLASS_FIELD_STREAM, "InstanceKlass", "_fieldinfo_stream", 8, false},
	{HS_LIST_LENGTH, "ThreadsList", "_length", 4, false},
	{HS_LIST_THREADS, "ThreadsList", "_threads", 8, false},
	{HS_THREAD_NEXT, "JavaThread", "_next", 8, false},
	{HS_THREAD_STACK_BASE, "JavaThread", "_stack_base", 8, false},
	{HS_THREAD_STACK_BASE, "Thread", "_stack_base", 8, false},
	{HS_THREAD_STACK_SIZE, "JavaThread", "_stack_size", 8, false},
	{HS_THREAD_STACK_SIZE, "Thread", "_stack_size", 8, false},
	{HS_THREAD_OBJECT, "JavaThread", "_threadObj", 0, false},
	{HS_THREAD_OS, "JavaThread", "_osthread", 8, false},
	{HS_THREAD_OS, "Thread", "_osthread", 8, false},
	{HS_OS_THREAD_ID, "OSThread", "_thread_id", 4, false},
	{HS_THREAD_PENDING, "JavaThread", "_current_pending_monitor", 8, false},
	{HS_THREAD_PENDING, "Thread", "_current_pending_monitor", 8, false},
	{HS_THREAD_WAITING, "JavaThread", "_current_waiting_monitor", 8, false},
	{HS_THREAD_WAITING, "Thread", "_current_waiting_monitor", 8, false},
	{HS_THREAD_OWNER_ID, "JavaThread", "_monitor_owner_id", 8, false},
	{HS_THREAD_LOCKS, "JavaThread", "_lock_stack", 0, false},
	{HS_THREAD_CURRENT, "JavaThread", "_vthread", 0, false},
	{HS_LOCKS_TOP, "LockStack", "_top", 4, false},
	{HS_LOCKS_BASE, "LockStack", "_base[0]", 0, false},
	{HS_LOCKS_BASE, "LockStack", "_base", 0, false},
	{HS_MONITOR_OBJECT, "ObjectMonitor", "_object", 8, false},
	{HS_MONITOR_OWNER, "ObjectMonitor", "_owner", 8, false},
	{HS_MONITOR_RECURSIONS, "ObjectMonitor", "_recursions", 8, false},
	{HS_KLASS_SUPER, "Klass", "_super", 8, false},
	{HS_HEAP_COLLECTIONS, "CollectedHeap", "_total_collections", 4, false},
	{HS_HEAP_ACTIVE, "CollectedHeap", "_is_gc_active", 1, false},
	{HS_HEAP_ACTIVE, "CollectedHeap", "_is_stw_gc_active", 1, false},
	{AT_HEAP_OBJECT, "Universe", "_collectedHeap", 8, true},
	{AT_OPTIONS, "JVMFlag", "flags", 8, true},
	{AT_OPTIONS, "Flag", "flags", 8, true},
	{OPTION_NAME, "JVMFlag", "_name", 8, false},
	{OPTION_NAME, "Flag", "_name", 8, false},
	{OPTION_ADDRESS, "JVMFlag", "_addr", 8, false},
	{OPTION_ADDRESS, "Flag", "_addr", 8, false},
	{AT_HEAP, "CodeCache", "_heap", 8, true},
	{AT_HEAPS, "CodeCache", "_heaps", 8, true},
	{AT_CALL_RETURN, "StubRoutines", "_call_stub_return_address", 8, true},
	{AT_JDK_VERSION, "JDK_Version", "_current", 0, true},
	{AT_VM_MAJOR, "Abstract_VM_Version", "_vm_major_version", 4, true},
	{AT_VM_MINOR, "Abstract_VM_Version", "_vm_minor_version", 4, true},
	{AT_VM_RELEASE, "Abstract_VM_Version", "_s_vm_release", 8, true},
	{ARRAY_LEN, "GrowableArrayBase", "_len", 4, false},
	{ARRAY_LEN, "GenericGrowableArray", "_len", 4, false},
	{ARRAY_DATA, "GrowableArray<int>", "_data", 8, false},
	{HEAP_MEMORY, "CodeHeap", "_memory", 0, false},
	{HEAP_SEGMAP, "CodeHeap", "_segmap", 0, false},
	{HEAP_LOG2, "CodeHeap", "_log2_segment_size", 4, false},
	{SPACE_LOW, "VirtualSpace", "_low", 8, false},
	{SPACE_HIGH, "VirtualSpace", "_high", 8, false},
	{SPACE_LIMIT, "VirtualSpace", "_high_boundary", 8, false},
	{AT_INTERPRETER, "AbstractInterpreter", "_code", 8, true},
	{QUEUE_BUFFER, "StubQueue", "_stub_buffer", 8, false},
	{QUEUE_LIMIT, "StubQueue", "_buffer_limit", 4, false},
	{JDK_MAJOR, "JDK_Version", "_major", 1, false},
	{HS_BLOB_NAME, "CodeBlob", "_name", 8, false},
	{HS_BLOB_SIZE, "CodeBlob", "_size", 4, false},
	{HS_BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", 4, false},
	{HS_BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset", 4, false},
	{HS_BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", 8, false},
	{HS_BLOB_CODE_END, "CodeBlob", "_code_end", 8, false},
	{HS_BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", 4, false},
	{HS_BLOB_DATA_OFFSET, "CodeBlob", "_data_offset", 4, false},
	{HS_BLOB_MUTABLE_DATA, "CodeBlob", "_mutable_data", 8, false},
	{HS_BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size", 4, false},
	{HS_NM_METHOD, "CompiledMethod", "_method", 8, false},
	{HS_NM_METHOD, "nmethod", "_method", 8, false},
	{HS_NM_COMP_LEVEL, "nmethod", "_comp_level", 4, false},
	{HS_NM_COMPILE_ID, "nmethod", "_compile_id", 4, false},
	{HS_NM_ORIG_PC_OFFSET, "nmethod", "_orig_pc_offset", 4, false},
	{HS_NM_DEOPT_HANDLER, "CompiledMethod", "_deopt_handler_begin", 8, false},
	{HS_NM_DEOPT_HANDLER_OFFSET, "nmethod", "_deoptimize_offset", 4, false},
	{HS_NM_DEOPT_HANDLER_OFFSET, "nmethod", "_deopt_handler_offset", 4, false},
	{HS_NM_METADATA_OFFSET, "nmethod", "_metadata_offset", 4, false},
	{HS_NM_SCOPES_PCS_OFFSET, "nmethod", "_scopes_pcs_offset", 4, false},
	{HS_NM_SCOPES_DATA_OFFSET, "nmethod", "_scopes_data_offset", 4, false},
	{HS_NM_SCOPES_DATA_BEGIN, "CompiledMethod", "_scopes_data_begin", 8, false},
	{HS_NM_DEPENDENCIES_OFFSET, "nmethod", "_dependencies_offset", 4, false},
	{HS_NM_IMMUTABLE_DATA, "nmethod", "_immutable_data", 8, false},
	{HS_NM_IMMUTABLE_DATA_SIZE, "nmethod", "_immutable_data_size", 4, false},
	{HS_PC_DESC_PC_OFFSET, "PcDesc", "_pc_offset", 4, false},
	{HS_PC_DESC_SCOPE_OFFSET, "PcDesc", "_scope_decode_offset", 4, false},
	{HS_METHOD_CONST, "Method", "_constMethod", 8, false},
	{HS_METHOD_ACCESS_FLAGS, "Method", "_access_flags", 4, false},
	{HS_CONST_CONSTANTS, "ConstMethod", "_constants", 8, false},
	{HS_CONST_FLAGS, "ConstMethod", "_flags", 2, false},
	{HS_CONST_FLAGS, "ConstMethod", "_flags._flags", 4, false},
	{HS_CONST_CODE_SIZE, "ConstMethod", "_code_size", 2, false},
	{HS_CONST_NAME_INDEX, "ConstMethod", "_name_index", 2, false},
	{HS_POOL_HOLDER, "ConstantPool", "_pool_holder", 8, false},
	{HS_POOL_LENGTH, "ConstantPool", "_length", 4, false},
	{HS_POOL_SOURCE_FILE, "ConstantPool", "_source_file_name_index", 2, false},
	{HS_KLASS_SOURCE_FILE, "InstanceKlass", "_source_file_name_index", 2, false},
	{HS_KLASS_NAME, "Klass", "_name", 8, false},
	{HS_SYMBOL_LENGTH, "Symbol", "_length", 2, false},
	{HS_SYMBOL_LENGTH_AND_REFCOUNT, "Symbol", "_length_and_refcount", 4, false},
	{HS_SYMBOL_BODY, "Symbol", "_body", 0, false},
	{HS_SYMBOL_BODY, "Symbol", "_body[0]", 0, false},
};

enum { NFIELDS = sizeof(fields) / sizeof(fields[0]) };

static const struct {
	unsigned id;
	const char *name;
} types[] = {
	{HS_SIZE_HEAP_BLOCK, "HeapBlock"},
	{HS_SIZE_CONST_METHOD, "ConstMethod"},
	{HS_SIZE_CONSTANT_POOL, "ConstantPool"},
	{HS_SIZE_PC_DESC, "PcDesc"},
	{OPTION_SIZE, "JVMFlag"},
	{OPTION_SIZE, "Flag"},
};

/* The exported variables: two tables, and how their entries are laid out. */
enum {
	STRUCTS,
	STRUCT_TYPE,
	STRUCT_FIELD,
	STRUCT_TYPE_STRING,
	STRUCT_IS_STATIC,
	STRUCT_OFFSET,
	STRUCT_ADDRESS,
	STRUCT_STRIDE,
	TYPES,
	TYPE_NAME,
	TYPE_IS_INTEGER,
	TYPE_IS_UNSIGNED,
	TYPE_SIZE,
	TYPE_STRIDE,
	NEXPORTS,
};

static const char *const exports[NEXPORTS] = {
	[STRUCTS] = "gHotSpotVMStructs",
	[STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[STRUCT_TYPE_STRING] = "gHotSpotVMStructEntryTypeStringOffset",
	[STRUCT_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[TYPES] = "gHotSpotVMTypes",
	[TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[TYPE_IS_INTEGER] = "gHotSpotVMTypeEntryIsIntegerTypeOffset",
	[TYPE_IS_UNSIGNED] = "gHotSpotVMTypeEntryIsUnsignedOffset",
	[TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

struct reading {
	struct target *target;
	struct image *image;
	uint64_t bias;
	uint64_t exports[NEXPORTS]; /* addresses of the variables, then their values */
	uint64_t values[NVALUES];
	uint64_t offsets[NFIELDS];      /* of those that are not static; HS_ABSENT: there is none */
	const char *type_names[NFIELDS]; /* in the image */
};

static bool read_live(struct reading *r, uint64_t address, void *buf, size_t len)
{
	struct memory_job job = {.address = address, .len = len, .dst = buf};

	return memory_copy(&r->target->memory, &job, 1) == 0 && job.done == len;
}

static bool read_number(struct reading *r, uint64_t address, unsigned size, uint64_t *out)
{
	uint64_t value = 0;

	if (!address || !read_live(r, address, &value, size))
		return false;
	*out = le64toh(value);
	return true;
}

/* A string of the file; NULL: it is elsewhere, or longer than any that is looked for. */
static const char *string_at(const struct reading *r, uint64_t address)
{
	struct span bytes = address ? image_bytes_at(r->image, address - r->bias) : (struct span){0};
	size_t most = bytes.len < MAX_NAME ? bytes.len : MAX_NAME;

	return bytes.data && memchr(bytes.data, '\0', most) ? (const char *)bytes.data : NULL;
}

static bool visit_export(void *ctx, const Elf64_Sym *sym, const char *name, size_t len)
{
	struct reading *r = ctx;

	if (sym->st_shndx == SHN_UNDEF || len < 8 || memcmp(name, "gHotSpot", 8) != 0)
		return true;
	for (size_t i = 0; i < NEXPORTS; i++)
		if (len == strlen(exports[i]) && memcmp(name, exports[i], len) == 0)
			r->exports[i] = r->bias + sym->st_value;
	return true;
}

static bool read_exports(struct reading *r)
{
	dynsym_read(r->image, visit_export, r);
	for (size_t i = 0; i < NEXPORTS; i++)
		if (!r->exports[i] || !read_number(r, r->exports[i], 8, &r->exports[i]))
			return false;
	for (size_t i = STRUCT_TYPE; i < STRUCT_STRIDE; i++)
		if (r->exports[i] > MAX_STRIDE || r->exports[i] + 8 > r->exports[STRUCT_STRIDE])
			return false;
	for (size_t i = TYPE_NAME; i < TYPE_STRIDE; i++)
		if (r->exports[i] > MAX_STRIDE || r->exports[i] + 8 > r->exports[TYPE_STRIDE])
			return false;
	return r->exports[STRUCT_STRIDE] <= MAX_STRIDE && r->exports[TYPE_STRIDE] <= MAX_STRIDE;
}

static uint64_t word_in(const uint8_t *entry, uint64_t offset)
{
	uint64_t word;

	memcpy(&word, entry + offset, sizeof(word));
	return le64toh(word);
}

static uint32_t int_in(const uint8_t *entry, uint64_t offset)
{
	uint32_t word;

	memcpy(&word, entry + offset, sizeof(word));
	return le32toh(word);
}

/* Calls `visit` for each entry of a table, which ends with one that has no name. */
static bool visit_table(struct reading *r, uint64_t table, uint64_t stride, uint64_t name,
			void (*visit)(struct reading *r, const uint8_t *entry))
{
	_cleanup_free_ uint8_t *chunk = calloc(CHUNK, MAX_STRIDE);

	for (size_t n = 0; chunk && n < MAX_ENTRIES; n += CHUNK) {
		struct memory_job job = {.address = table + n * stride, .len = CHUNK * stride, .dst = chunk};
		size_t got;

		memory_copy(&r->target->memory, &job, 1);
		got = (size_t)(job.done / stride);
		for (size_t i = 0; i < got; i++) {
			if (!word_in(chunk + i * stride, name))
				return true;
			visit(r, chunk + i * stride);
		}
		if (got < CHUNK)
			return false;
	}
	return false;
}

static void visit_field(struct reading *r, const uint8_t *entry)
{
	const char *type = string_at(r, word_in(entry, r->exports[STRUCT_TYPE])), *name = NULL;

	for (size_t i = 0; type && i < NFIELDS; i++) {
		const struct wanted *f = &fields[i];
		bool is_static = int_in(entry, r->exports[STRUCT_IS_STATIC]);

		if (f->type[0] != type[0] || strcmp(f->type, type) != 0)
			continue;
		if (!name && !(name = string_at(r, word_in(entry, r->exports[STRUCT_FIELD]))))
			return;
		if (strcmp(f->name, name) != 0 || is_static != f->is_static)
			continue;
		if (f->is_static)
			r->values[f->id] = word_in(entry, r->exports[STRUCT_ADDRESS]);
		else
			r->offsets[i] = word_in(entry, r->exports[STRUCT_OFFSET]);
		r->type_names[i] = string_at(r, word_in(entry, r->exports[STRUCT_TYPE_STRING]));
		return;
	}
}

static bool is_pointer(const char *type)
{
	return type[0] && type[strlen(type) - 1] == '*';
}

static void visit_type(struct reading *r, const uint8_t *entry)
{
	const char *name = string_at(r, word_in(entry, r->exports[TYPE_NAME]));
	uint64_t size = word_in(entry, r->exports[TYPE_SIZE]);
	bool is_integer = int_in(entry, r->exports[TYPE_IS_INTEGER]);
	bool is_signed = is_integer && !int_in(entry, r->exports[TYPE_IS_UNSIGNED]);

	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(name, types[i].name) == 0)
			r->values[types[i].id] = size;
	for (size_t i = 0; name && i < NFIELDS; i++)
		if (fields[i].size && r->offsets[i] != HS_ABSENT && r->type_names[i] && r->type_names[i][0] == name[0] &&
		    strcmp(r->type_names[i], name) == 0 && size <= 8)
			r->values[fields[i].id] = layout_pack_field(r->offsets[i], (unsigned)size, is_signed);
}

/* Those whose type has no entry: pointers, structures, and what the release does not say more of. */
static void settle_fields(struct reading *r)
{
	for (size_t i = 0; i < NFIELDS; i++) {
		const struct wanted *f = &fields[i];

		if (f->is_static || r->offsets[i] == HS_ABSENT || r->values[f->id] != HS_ABSENT)
			continue;
		r->values[f->id] = layout_pack_field(
			r->offsets[i], !f->size || (r->type_names[i] && is_pointer(r->type_names[i])) ? 8 : f->size, false);
	}
}

static uint64_t offset_of(const struct reading *r, unsigned id)
{
	return r->values[id] == HS_ABSENT ? 0 : (uint32_t)r->values[id];
}

/* Their lowest and highest addresses in use. */
static bool read_space(struct reading *r, uint64_t space, uint64_t *low, uint64_t *high)
{
	return read_number(r, space + offset_of(r, SPACE_LOW), 8, low) &&
	       read_number(r, space + offset_of(r, SPACE_HIGH), 8, high);
}

static bool read_heap(struct reading *r, uint64_t heap, uint64_t out[5])
{
	return read_space(r, heap + offset_of(r, HEAP_MEMORY), &out[0], &out[1]) &&
	       read_space(r, heap + offset_of(r, HEAP_SEGMAP), &out[2], &out[3]) &&
	       read_number(r, heap + offset_of(r, HEAP_LOG2), 4, &out[4]);
}

/* How far both may grow. What does not say is taken to stay as it is. */
static void read_limits(struct reading *r, uint64_t heap, uint64_t out[2])
{
	if (r->values[SPACE_LIMIT] == HS_ABSENT)
		return;
	read_number(r, heap + offset_of(r, HEAP_MEMORY) + offset_of(r, SPACE_LIMIT), 8, &out[0]);
	read_number(r, heap + offset_of(r, HEAP_SEGMAP) + offset_of(r, SPACE_LIMIT), 8, &out[1]);
}

static bool has_heap_fields(const struct reading *r)
{
	return r->values[HEAP_MEMORY] != HS_ABSENT && r->values[HEAP_SEGMAP] != HS_ABSENT &&
	       r->values[HEAP_LOG2] != HS_ABSENT && r->values[SPACE_LOW] != HS_ABSENT &&
	       r->values[SPACE_HIGH] != HS_ABSENT;
}

/* Where the pointers to the heaps are, and how many. */
static bool find_heaps(struct reading *r, uint64_t *at, uint64_t *n)
{
	uint64_t array;

	if (r->values[AT_HEAPS] == HS_ABSENT) {
		*at = r->values[AT_HEAP];
		*n = 1;
		return *at != HS_ABSENT;
	}
	return r->values[ARRAY_LEN] != HS_ABSENT && r->values[ARRAY_DATA] != HS_ABSENT &&
	       read_number(r, r->values[AT_HEAPS], 8, &array) && array &&
	       read_number(r, array + offset_of(r, ARRAY_LEN), 4, n) &&
	       read_number(r, array + offset_of(r, ARRAY_DATA), 8, at) && *n && *n <= HS_MAX_HEAPS;
}

static bool read_heaps(struct reading *r)
{
	uint64_t at, n, heap;

	if (!has_heap_fields(r) || !find_heaps(r, &at, &n))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!read_number(r, at + 8 * i, 8, &heap) || !heap || !read_heap(r, heap, &r->values[HS_HEAPS + 5 * i]))
			return false;
		read_limits(r, heap, &r->values[HS_HEAP_LIMITS + 2 * i]);
	}
	r->values[HS_NHEAPS] = n;
	return true;
}

/* The values of variables that do not change once it has started. What a release does not have stays absent. */
static void read_values(struct reading *r)
{
	static const struct {
		unsigned at, id;
		uint8_t size;
	} values[] = {
		{AT_CLASS_THREAD, HS_CLASS_THREAD, 8},
		{AT_CLASS_FIELD_HOLDER, HS_CLASS_FIELD_HOLDER, 8},
		{AT_CLASS_STRING, HS_CLASS_STRING, 8},
		{AT_NARROW_OOP_BASE, HS_NARROW_OOP_BASE, 8},
		{AT_NARROW_OOP_SHIFT, HS_NARROW_OOP_SHIFT, 4},
		{AT_NARROW_KLASS_BASE, HS_NARROW_KLASS_BASE, 8},
		{AT_NARROW_KLASS_SHIFT, HS_NARROW_KLASS_SHIFT, 4},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (r->values[values[i].at] != HS_ABSENT)
			read_number(r, r->values[values[i].at], values[i].size, &r->values[values[i].id]);
	for (size_t i = 0; i < NFIELDS; i++)
		if (fields[i].id == HS_THREAD_OBJECT && r->offsets[i] != HS_ABSENT)
			r->values[HS_THREAD_OBJECT_IS_HANDLE] = r->type_names[i] && strcmp(r->type_names[i], "OopHandle") == 0;
}

static void read_interpreter(struct reading *r)
{
	uint64_t queue, start, size;

	if (r->values[AT_INTERPRETER] == HS_ABSENT || r->values[QUEUE_BUFFER] == HS_ABSENT || r->values[QUEUE_LIMIT] == HS_ABSENT ||
	    !read_number(r, r->values[AT_INTERPRETER], 8, &queue) || !queue ||
	    !read_number(r, queue + offset_of(r, QUEUE_BUFFER), 8, &start) ||
	    !read_number(r, queue + offset_of(r, QUEUE_LIMIT), 4, &size))
		return;
	r->values[HS_INTERPRETER] = start;
	r->values[HS_INTERPRETER_SIZE] = size;
}

/* Collectors that move objects while Java's threads run. */
static void visit_option(struct reading *r, const uint8_t *entry)
{
	const char *text = string_at(r, word_in(entry, offset_of(r, OPTION_NAME)));
	uint64_t is_set;

	if (text && (strcmp(text, "UseZGC") == 0 || strcmp(text, "UseShenandoahGC") == 0) &&
	    (!read_number(r, word_in(entry, offset_of(r, OPTION_ADDRESS)), 1, &is_set) || is_set))
		r->values[HS_HEAP_MOVES] = true;
}

static bool has_options(const struct reading *r)
{
	const uint64_t size = r->values[OPTION_SIZE];

	return r->values[AT_OPTIONS] != HS_ABSENT && r->values[OPTION_NAME] != HS_ABSENT && r->values[OPTION_ADDRESS] != HS_ABSENT && size >= 16 &&
	       size <= MAX_STRIDE && offset_of(r, OPTION_NAME) + 8 <= size && offset_of(r, OPTION_ADDRESS) + 8 <= size;
}

/* What tells whether objects were moved. Without it, they may have been. */
static void read_collector(struct reading *r)
{
	uint64_t table;

	if (r->values[AT_HEAP_OBJECT] != HS_ABSENT)
		read_number(r, r->values[AT_HEAP_OBJECT], 8, &r->values[HS_HEAP]);
	r->values[HS_HEAP_MOVES] = false;
	if (!has_options(r) || !read_number(r, r->values[AT_OPTIONS], 8, &table) ||
	    !visit_table(r, table, r->values[OPTION_SIZE], offset_of(r, OPTION_NAME), visit_option))
		r->values[HS_HEAP_MOVES] = true;
}

/* The first thread of Java is there when stubs and interpreter are made. Some of what is read changes until then. */
static bool has_started(struct reading *r)
{
	uint64_t list, n = 1;

	if (!r->values[HS_CALL_RETURN])
		return false;
	if (r->values[HS_AT_THREADS_LIST] != HS_ABSENT && r->values[HS_LIST_LENGTH] != HS_ABSENT)
		return read_number(r, r->values[HS_AT_THREADS_LIST], 8, &list) &&
		       read_number(r, list + offset_of(r, HS_LIST_LENGTH), 4, &n) && n;
	return r->values[HS_AT_FIRST_THREAD] == HS_ABSENT || (read_number(r, r->values[HS_AT_FIRST_THREAD], 8, &n) && n);
}

/* "17.0.15+6-Debian-1" is 17.0.15, "25.432-b06" is 8u432. */
static void read_version(struct reading *r, char version[VMSTRUCTS_VERSION])
{
	uint64_t release, minor, major = 0;
	char text[VMSTRUCTS_VERSION] = "";

	if (r->values[AT_JDK_VERSION] != HS_ABSENT && r->values[JDK_MAJOR] != HS_ABSENT)
		read_number(r, r->values[AT_JDK_VERSION] + offset_of(r, JDK_MAJOR), 1, &major);
	if (!major && r->values[AT_HEAPS] != HS_ABSENT && r->values[AT_VM_MAJOR] != HS_ABSENT)
		read_number(r, r->values[AT_VM_MAJOR], 4, &major);
	if (!major && r->values[AT_HEAPS] == HS_ABSENT)
		major = 8;
	if (major)
		r->values[HS_FEATURE] = major;
	if (major == 8 && r->values[AT_VM_MINOR] != HS_ABSENT && read_number(r, r->values[AT_VM_MINOR], 4, &minor)) {
		snprintf(version, VMSTRUCTS_VERSION, "8u%u", (unsigned)minor);
		return;
	}
	if (r->values[AT_VM_RELEASE] != HS_ABSENT && read_number(r, r->values[AT_VM_RELEASE], 8, &release) &&
	    read_live(r, release, text, sizeof(text) - 1))
		snprintf(version, VMSTRUCTS_VERSION, "%.*s", (int)strspn(text, "0123456789."), text);
}

const char *vmstructs_read(struct target *target, const struct module *module, uint64_t bias, struct layout *out,
			   char version[VMSTRUCTS_VERSION])
{
	struct reading r = {.target = target, .image = module->image, .bias = bias};

	version[0] = '\0';
	memset(r.values, 0xff, sizeof(r.values));
	memset(r.offsets, 0xff, sizeof(r.offsets));
	if (!read_exports(&r))
		return "its libjvm.so has no description of its own layout (gHotSpotVMStructs)";
	if (!visit_table(&r, r.exports[STRUCTS], r.exports[STRUCT_STRIDE], r.exports[STRUCT_TYPE], visit_field) ||
	    !visit_table(&r, r.exports[TYPES], r.exports[TYPE_STRIDE], r.exports[TYPE_NAME], visit_type))
		return "the description of its layout (gHotSpotVMStructs) cannot be read";
	settle_fields(&r);
	read_version(&r, version);
	read_values(&r);
	if (!read_heaps(&r) || r.values[AT_CALL_RETURN] == HS_ABSENT ||
	    !read_number(&r, r.values[AT_CALL_RETURN], 8, &r.values[HS_CALL_RETURN]) || !has_started(&r))
		return "it has not started yet, or its code cannot be found";
	read_interpreter(&r);
	read_collector(&r);
	layout_load(out, r.values, HS_FACT_COUNT);
	return layout_problem(out);
}
