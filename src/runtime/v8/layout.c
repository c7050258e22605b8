/* SPDX-License-Identifier: MIT */
#include "runtime/v8/layout.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elf/exported.h"

enum {
	OLDEST = 10,           /* of V8: names that older ones gave were wrong */
	MOST_NAMES = 3,        /* that one fact has had over the years */
	FUNCTION_TYPES = 17,   /* kinds of functions, where their last is not told */
	MAX_FIELD = 512,       /* no object that is read has a field farther in */
	MAX_SLOT = 64,
	MAX_TYPE = 0xffff,
	MAX_FRAME_OFFSET = 256,
	WHOLE_SMI_SHIFT = 31,
};

struct constant {
	enum v8_fact fact;
	const char *names[MOST_NAMES]; /* the first that is there counts */
};

/* Fields: multiples of their size within an object. */
static const struct constant fields[] = {
	{V8_MAP_TYPE, {"v8dbg_class_Map__instance_type__uint16_t"}},
	{V8_FUNCTION_SHARED, {"v8dbg_class_JSFunction__shared__SharedFunctionInfo"}},
	{V8_SHARED_NAME,
	 {"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
	  "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	  "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"}},
	{V8_SHARED_SCRIPT,
	 {"v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	  "v8dbg_class_SharedFunctionInfo__raw_script__Tagged_Object_",
	  "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_"}},
	{V8_SCRIPT_NAME, {"v8dbg_class_Script__name__Object"}},
	{V8_SCRIPT_SOURCE, {"v8dbg_class_Script__source__Object"}},
	{V8_STRING_LENGTH, {"v8dbg_class_String__length__int32_t"}},
	{V8_SEQ_ONE_BYTE_CHARS, {"v8dbg_class_SeqOneByteString__chars__char"}},
	{V8_SEQ_TWO_BYTE_CHARS, {"v8dbg_class_SeqTwoByteString__chars__char"}},
	{V8_CONS_FIRST, {"v8dbg_class_ConsString__first__String"}},
	{V8_CONS_SECOND, {"v8dbg_class_ConsString__second__String"}},
	{V8_SLICED_PARENT, {"v8dbg_class_SlicedString__parent__String"}},
	{V8_SLICED_OFFSET, {"v8dbg_class_SlicedString__offset__SMI"}},
	{V8_THIN_ACTUAL, {"v8dbg_class_ThinString__actual__String"}},
	{V8_EXTERNAL_RESOURCE, {"v8dbg_class_ExternalString__resource__Object"}},
	{V8_ARRAY_LENGTH, {"v8dbg_class_FixedArrayBase__length__SMI"}},
	{V8_ARRAY_DATA, {"v8dbg_class_FixedArray__data__uintptr_t"}},
	{V8_BYTECODE_DATA, {"v8dbg_class_BytecodeArray__data__uintptr_t"}},
};

static const struct constant optional_fields[] = {
	{V8_SHARED_DATA, {"v8dbg_class_SharedFunctionInfo__function_data__Object"}},
	{V8_BYTECODE_WRAPPER, {"v8dbg_class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_"}},
	{V8_STREAM_START,
	 {"v8dbg_class_InstructionStream__instruction_start__uintptr_t", "v8dbg_class_Code__instruction_start__uintptr_t"}},
	{V8_CODE_STREAM, {"v8dbg_class_Code__instruction_stream__Tagged_InstructionStream_"}},
};

static const struct constant optional_halves[] = {
	{V8_CODE_FLAGS, {"v8dbg_class_Code__flags__uint32_t"}},
	{V8_CODE_SIZE, {"v8dbg_class_Code__instruction_size__int"}},
};

static const struct constant frame_slots[] = {
	{V8_FP_CONTEXT, {"v8dbg_off_fp_context_or_frame_type", "v8dbg_off_fp_context"}},
	{V8_FP_FUNCTION, {"v8dbg_off_fp_function"}},
	{V8_FP_BYTECODE, {"v8dbg_off_fp_bytecode_array"}},
	{V8_FP_BYTECODE_OFFSET, {"v8dbg_off_fp_bytecode_offset"}},
};

static const struct constant scope_slots[] = {
	{V8_SCOPE_LOCALS, {"v8dbg_scopeinfo_idx_ncontextlocals"}},
	{V8_SCOPE_FIRST_VARS, {"v8dbg_scopeinfo_idx_first_vars"}},
};

static const struct constant types[] = {
	{V8_TYPE_FUNCTION_FIRST, {"v8dbg_FirstJSFunctionType", "v8dbg_type_JSFunction__JS_FUNCTION_TYPE"}},
	{V8_TYPE_SHARED, {"v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"}},
	{V8_TYPE_SCOPE, {"v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE"}},
	{V8_TYPE_SCRIPT, {"v8dbg_type_Script__SCRIPT_TYPE"}},
	{V8_TYPE_BYTECODE, {"v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE"}},
	{V8_TYPE_BYTES, {"v8dbg_type_ByteArray__BYTE_ARRAY_TYPE"}},
	{V8_TYPE_ODDBALL, {"v8dbg_type_Oddball__ODDBALL_TYPE"}},
	{V8_TYPE_NO_STRING, {"v8dbg_FirstNonstringType"}},
	{V8_STRING_REPRESENTATION, {"v8dbg_StringRepresentationMask"}},
	{V8_STRING_ENCODING, {"v8dbg_StringEncodingMask"}},
	{V8_TAG_CONS, {"v8dbg_ConsStringTag"}},
	{V8_TAG_EXTERNAL, {"v8dbg_ExternalStringTag"}},
	{V8_TAG_SLICED, {"v8dbg_SlicedStringTag"}},
	{V8_TAG_THIN, {"v8dbg_ThinStringTag"}},
	{V8_TAG_ONE_BYTE, {"v8dbg_OneByteStringTag"}},
};

static const struct constant optional_types[] = {
	{V8_TYPE_FUNCTION_LAST, {"v8dbg_LastJSFunctionType"}},
	{V8_TYPE_TRUSTED_BYTES, {"v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE"}},
	{V8_KIND_BASELINE, {"v8dbg_CodeKindBaseline"}},
	{V8_TYPE_CODE, {"v8dbg_type_Code__CODE_TYPE"}},
	{V8_TYPE_STREAM, {"v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE"}},
	{V8_TYPE_INTERPRETER_DATA, {"v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE"}},
	{V8_TYPE_SHARED_WRAPPER, {"v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE"}},
	{V8_TYPE_ARRAY, {"v8dbg_type_FixedArray__FIXED_ARRAY_TYPE"}},
	{V8_TYPE_WEAK_ARRAY, {"v8dbg_type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE"}},
	{V8_TYPE_TRUSTED_ARRAY, {"v8dbg_type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE"}},
	{V8_TYPE_TRUSTED_WEAK_ARRAY, {"v8dbg_type_TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY_TYPE"}},
	{V8_TYPE_PROTECTED_ARRAY, {"v8dbg_type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE"}},
};

static const struct constant versions[] = {
	{V8_MAJOR, {"_ZN2v88internal7Version6major_E"}},
	{V8_MINOR, {"_ZN2v88internal7Version6minor_E"}},
	{V8_BUILD, {"_ZN2v88internal7Version6build_E"}},
	{V8_SMI_SHIFT, {"v8dbg_SmiShiftSize"}},
};

/* What is shown of them is their name without the beginning. */
static const struct constant kinds[] = {
	{V8_FRAME_ENTRY, {"v8dbg_frametype_EntryFrame"}},
	{V8_FRAME_CONSTRUCT_ENTRY, {"v8dbg_frametype_ConstructEntryFrame"}},
	{V8_FRAME_EXIT, {"v8dbg_frametype_ExitFrame"}},
	{V8_FRAME_STUB, {"v8dbg_frametype_StubFrame"}},
	{V8_FRAME_INTERNAL, {"v8dbg_frametype_InternalFrame"}},
	{V8_FRAME_CONSTRUCT, {"v8dbg_frametype_ConstructFrame"}},
	{V8_FRAME_FAST_CONSTRUCT, {"v8dbg_frametype_FastConstructFrame"}},
	{V8_FRAME_BUILTIN_EXIT, {"v8dbg_frametype_BuiltinExitFrame"}},
	{V8_FRAME_API_CALLBACK_EXIT, {"v8dbg_frametype_ApiCallbackExitFrame"}},
	{V8_FRAME_API_ACCESSOR_EXIT, {"v8dbg_frametype_ApiAccessorExitFrame"}},
	{V8_FRAME_CONTINUATION, {"v8dbg_frametype_BuiltinContinuationFrame"}},
	{V8_FRAME_JS_CONTINUATION, {"v8dbg_frametype_JavaScriptBuiltinContinuationFrame"}},
	{V8_FRAME_JS_CATCHING_CONTINUATION, {"v8dbg_frametype_JavaScriptBuiltinContinuationWithCatchFrame"}},
	{V8_FRAME_IRREGEXP, {"v8dbg_frametype_IrregexpFrame"}},
	{V8_FRAME_WASM, {"v8dbg_frametype_WasmFrame"}},
	{V8_FRAME_JS_TO_WASM, {"v8dbg_frametype_JsToWasmFrame"}},
	{V8_FRAME_WASM_TO_JS, {"v8dbg_frametype_WasmToJsFrame"}},
};

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

struct table {
	const struct constant *data;
	size_t len;
	int64_t min, max; /* what is outside cannot be */
	unsigned align;
	bool is_needed;
};

static const struct table tables[] = {
	{fields, LEN(fields), 1, MAX_FIELD, 1, true},
	{optional_fields, LEN(optional_fields), 1, MAX_FIELD, 8, false},
	{optional_halves, LEN(optional_halves), 1, MAX_FIELD, 4, false},
	{frame_slots, LEN(frame_slots), -MAX_FRAME_OFFSET, MAX_FRAME_OFFSET, 8, true},
	{scope_slots, LEN(scope_slots), 0, MAX_SLOT, 1, true},
	{types, LEN(types), 1, MAX_TYPE, 1, true},
	{optional_types, LEN(optional_types), 1, MAX_TYPE, 1, false},
	{versions, LEN(versions), 0, MAX_TYPE, 1, true},
	{kinds, LEN(kinds), 1, MAX_SLOT, 1, false},
};

/* An int of its data; one that is 0 may take no room in the file. */
static bool read_constant(struct image *image, const char *name, uint64_t *out)
{
	struct span bytes;
	Elf64_Sym sym;
	uint32_t value;

	if (!exported_find(image, name, &sym))
		return false;
	bytes = image_bytes_at(image, sym.st_value);
	if (bytes.len < sizeof(value)) {
		*out = 0;
		return true;
	}
	memcpy(&value, bytes.data, sizeof(value));
	*out = (uint64_t)(int64_t)(int32_t)le32toh(value);
	return true;
}

bool v8_layout_is_in(struct image *image)
{
	Elf64_Sym sym;

	return exported_find(image, fields[1].names[0], &sym);
}

static void set_absent(struct v8_layout *layout)
{
	for (size_t i = 0; i < V8_FACT_COUNT; i++)
		layout->facts[i] = V8_ABSENT;
}

/* Versions that do not tell it have as many kinds as those that do, or one less. */
static void complete(struct v8_layout *layout)
{
	if (v8_has(layout, V8_TYPE_FUNCTION_FIRST) && !v8_has(layout, V8_TYPE_FUNCTION_LAST))
		layout->facts[V8_TYPE_FUNCTION_LAST] = layout->facts[V8_TYPE_FUNCTION_FIRST] + FUNCTION_TYPES - 1;
}

void v8_layout_read(struct image *image, struct v8_layout *out)
{
	set_absent(out);
	for (size_t i = 0; i < LEN(tables); i++)
		for (size_t k = 0; k < tables[i].len; k++) {
			const struct constant *c = &tables[i].data[k];

			for (size_t n = 0; n < MOST_NAMES && c->names[n]; n++)
				if (read_constant(image, c->names[n], &out->facts[c->fact]))
					break;
		}
	complete(out);
}

void v8_layout_load(const uint64_t *facts, uint32_t n, struct v8_layout *out)
{
	set_absent(out);
	for (uint32_t i = 0; i < n && i < V8_FACT_COUNT; i++)
		out->facts[i] = facts[i];
}

static int check_constant(const struct table *table, const struct v8_layout *layout, const struct constant *c,
			  struct err *err)
{
	int64_t value = (int64_t)layout->facts[c->fact];

	if (!v8_has(layout, c->fact))
		return table->is_needed ? err_set(err, ENOTSUP, "its file does not export %s", c->names[0]) : 0;
	if (value < table->min || value > table->max || value % (int64_t)table->align)
		return err_set(err, ENOTSUP, "%s is %" PRId64 ", which cannot be", c->names[0], value);
	return 0;
}

int v8_layout_check(const struct v8_layout *layout, struct err *err)
{
	const uint64_t *facts = layout->facts;

	if (v8_has(layout, V8_MAJOR) && facts[V8_MAJOR] < OLDEST)
		return err_set(err, ENOTSUP, "it is older than version %d", OLDEST);
	for (size_t i = 0; i < LEN(tables); i++)
		for (size_t k = 0; k < tables[i].len; k++) {
			int rc = check_constant(&tables[i], layout, &tables[i].data[k], err);

			if (rc < 0)
				return rc;
		}
	if (facts[V8_SMI_SHIFT] != WHOLE_SMI_SHIFT)
		return err_set(err, ENOTSUP, "it compresses its pointers");
	if (facts[V8_TYPE_FUNCTION_LAST] < facts[V8_TYPE_FUNCTION_FIRST] ||
	    facts[V8_TYPE_NO_STRING] > facts[V8_TYPE_SHARED])
		return err_set(err, ENOTSUP, "what it says of its types cannot be");
	return 0;
}

const char *v8_frame_kind(const struct v8_layout *layout, uint64_t kind)
{
	static const char prefix[] = "v8dbg_frametype_";

	for (size_t i = 0; i < LEN(kinds); i++)
		if (layout->facts[kinds[i].fact] == kind)
			return kinds[i].names[0] + strlen(prefix);
	return NULL;
}
