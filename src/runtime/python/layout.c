/* SPDX-License-Identifier: MIT */
#include "runtime/python/layout.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

enum {
	FIRST_MINOR = 8,
	FIRST_WITH_OFFSETS = 13,
	LAST_MINOR = 15,
	MAX_OFFSET = 256 << 10, /* in any structure: an interpreter's state is the largest, with some 200 KiB */
	MAX_MEMBERS = 64,
	MEMBER_SIZE = 40, /* PyMemberDef */
	MAX_OFFSET_WORDS = 160,
};

/* PyTypeObject, the same since 3.0 */
enum { TYPE_MEMBERS = 240 };

struct setting {
	enum python_word word;
	uint64_t value;
};

/* What the headers of these versions say, in the order of the table in docs/internals.md. */
static const struct setting v3_8[] = {
	{PY_FRAMES, PY_FRAMES_OBJECTS}, {PY_RUNTIME_INTERPRETERS, 32}, {PY_RUNTIME_GIL, 1152}, {PY_INTERP_THREADS, 8},
	{PY_INTERP_MODULES, 56},
	{PY_TSTATE_FRAME, 24}, {PY_TSTATE_THREAD, 176}, {PY_FRAME_PREVIOUS, 24}, {PY_FRAME_CODE, 32}, {PY_FRAME_INSTR, 104},
	{PY_FRAME_LOCALS, 360}, {PY_FRAME_STACK, 72}, {PY_GEN_FRAME, 16}, {PY_STR_ASCII, 48}, {PY_STR_OTHER, 72}, {0, 0},
};

static const struct setting v3_9[] = {
	{PY_FRAMES, PY_FRAMES_OBJECTS}, {PY_RUNTIME_INTERPRETERS, 32}, {PY_RUNTIME_GIL, 352}, {PY_RUNTIME_CURRENT, 568},
	{PY_INTERP_THREADS, 8}, {PY_INTERP_MODULES, 856}, {PY_TSTATE_FRAME, 24}, {PY_TSTATE_THREAD, 176},
	{PY_FRAME_PREVIOUS, 24}, {PY_FRAME_CODE, 32}, {PY_FRAME_INSTR, 104}, {PY_FRAME_LOCALS, 360}, {PY_FRAME_STACK, 72},
	{PY_GEN_FRAME, 16}, {PY_STR_ASCII, 48}, {PY_STR_OTHER, 72}, {0, 0},
};

static const struct setting v3_10[] = {
	{PY_FRAMES, PY_FRAMES_OBJECTS}, {PY_RUNTIME_INTERPRETERS, 32}, {PY_RUNTIME_GIL, 352}, {PY_RUNTIME_CURRENT, 568},
	{PY_INTERP_THREADS, 8}, {PY_INTERP_MODULES, 856}, {PY_TSTATE_FRAME, 24}, {PY_TSTATE_THREAD, 176},
	{PY_FRAME_PREVIOUS, 24}, {PY_FRAME_CODE, 32}, {PY_FRAME_INSTR, 96}, {PY_FRAME_LOCALS, 352}, {PY_FRAME_STACK, 80},
	{PY_GEN_FRAME, 16}, {PY_GEN_STATE, 108}, {PY_STR_ASCII, 48}, {PY_STR_OTHER, 72}, {0, 0},
};

static const struct setting v3_11[] = {
	{PY_FRAMES, PY_FRAMES_CFRAME}, {PY_RUNTIME_INTERPRETERS, 40}, {PY_RUNTIME_GIL, 360}, {PY_RUNTIME_CURRENT, 576},
	{PY_INTERP_THREADS, 16}, {PY_INTERP_MODULES, 888}, {PY_TSTATE_FRAME, 56}, {PY_TSTATE_THREAD, 152},
	{PY_TSTATE_NATIVE, 160}, {PY_CFRAME_FRAME, 8}, {PY_CFRAME_PREVIOUS, 16}, {PY_FRAME_CODE, 32},
	{PY_FRAME_PREVIOUS, 48}, {PY_FRAME_INSTR, 56}, {PY_FRAME_OWNER, 68}, {PY_FRAME_LOCALS, 72}, {PY_CODE_VARIABLES, 96},
	{PY_GEN_FRAME, 80}, {PY_GEN_STATE, 75}, {PY_FRAME_STACK, 64}, {PY_STR_ASCII, 48}, {PY_STR_OTHER, 72}, {0, 0},
};

static const struct setting v3_12[] = {
	{PY_FRAMES, PY_FRAMES_SHIM}, {PY_RUNTIME_INTERPRETERS, 40}, {PY_INTERP_THREADS, 72}, {PY_INTERP_MODULES, 944},
	{PY_INTERP_GIL, 384}, {PY_TSTATE_FRAME, 56}, {PY_TSTATE_THREAD, 136}, {PY_TSTATE_NATIVE, 144},
	{PY_CFRAME_FRAME, 0}, {PY_CFRAME_PREVIOUS, 8}, {PY_FRAME_CODE, 0}, {PY_FRAME_PREVIOUS, 8}, {PY_FRAME_INSTR, 56},
	{PY_FRAME_OWNER, 70}, {PY_FRAME_LOCALS, 72}, {PY_CODE_VARIABLES, 96}, {PY_GEN_FRAME, 72}, {PY_GEN_STATE, 67},
	{PY_FRAME_STACK, 64}, {PY_STR_ASCII, 40}, {PY_STR_OTHER, 56}, {0, 0},
};

static const struct setting *const tables[] = {v3_8, v3_9, v3_10, v3_11, v3_12};

/* Which word of _Py_DebugOffsets says it; the words before these are the cookie, the version and "free-threaded". */
static const struct setting v3_13[] = {
	{PY_RUNTIME_INTERPRETERS, 5}, {PY_INTERP_NEXT, 8}, {PY_INTERP_THREADS, 9}, {PY_INTERP_MODULES, 11},
	{PY_INTERP_GIL, 14}, {PY_TSTATE_NEXT, 21}, {PY_TSTATE_INTERP, 22}, {PY_TSTATE_FRAME, 23}, {PY_TSTATE_THREAD, 24},
	{PY_TSTATE_NATIVE, 25}, {PY_FRAME_PREVIOUS, 29}, {PY_FRAME_CODE, 30}, {PY_FRAME_INSTR, 31}, {PY_FRAME_LOCALS, 32},
	{PY_FRAME_OWNER, 33}, {PY_CODE_FILENAME, 35}, {PY_CODE_NAME, 36}, {PY_CODE_QUALNAME, 37}, {PY_CODE_LINES, 38},
	{PY_CODE_FIRSTLINE, 39}, {PY_CODE_VARIABLES, 41}, {PY_CODE_BYTES, 43}, {0, 0},
};

static const struct setting v3_14[] = {
	{PY_RUNTIME_INTERPRETERS, 5}, {PY_INTERP_NEXT, 8}, {PY_INTERP_THREADS, 9}, {PY_INTERP_MODULES, 12},
	{PY_INTERP_GIL, 15}, {PY_TSTATE_NEXT, 24}, {PY_TSTATE_INTERP, 25}, {PY_TSTATE_FRAME, 26}, {PY_TSTATE_THREAD, 27},
	{PY_TSTATE_NATIVE, 28}, {PY_FRAME_PREVIOUS, 32}, {PY_FRAME_CODE, 33}, {PY_FRAME_INSTR, 34}, {PY_FRAME_LOCALS, 35},
	{PY_FRAME_OWNER, 36}, {PY_CODE_FILENAME, 40}, {PY_CODE_NAME, 41}, {PY_CODE_QUALNAME, 42}, {PY_CODE_LINES, 43},
	{PY_CODE_FIRSTLINE, 44}, {PY_CODE_VARIABLES, 46}, {PY_CODE_BYTES, 48}, {0, 0},
};

static const struct setting v3_15[] = {
	{PY_RUNTIME_INTERPRETERS, 5}, {PY_INTERP_NEXT, 8}, {PY_INTERP_THREADS, 9}, {PY_INTERP_MODULES, 12},
	{PY_INTERP_GIL, 15}, {PY_TSTATE_NEXT, 24}, {PY_TSTATE_INTERP, 25}, {PY_TSTATE_FRAME, 26}, {PY_TSTATE_THREAD, 30},
	{PY_TSTATE_NATIVE, 31}, {PY_FRAME_PREVIOUS, 40}, {PY_FRAME_CODE, 41}, {PY_FRAME_INSTR, 42}, {PY_FRAME_LOCALS, 43},
	{PY_FRAME_OWNER, 44}, {PY_CODE_FILENAME, 48}, {PY_CODE_NAME, 49}, {PY_CODE_QUALNAME, 50}, {PY_CODE_LINES, 51},
	{PY_CODE_FIRSTLINE, 52}, {PY_CODE_VARIABLES, 54}, {PY_CODE_BYTES, 56}, {0, 0},
};

static const struct setting *const offset_tables[] = {v3_13, v3_14, v3_15};

/* The members of PyCode_Type that are looked for. */
static const struct {
	const char *name;
	enum python_word word;
} members[] = {
	{"co_filename", PY_CODE_FILENAME},       {"co_name", PY_CODE_NAME},       {"co_qualname", PY_CODE_QUALNAME},
	{"co_firstlineno", PY_CODE_FIRSTLINE},   {"co_linetable", PY_CODE_LINES}, {"co_lnotab", PY_CODE_LINES},
	{"co_code", PY_CODE_BYTES},              {"co_varnames", PY_CODE_VARIABLES},
	{"co_cellvars", PY_CODE_CELLS},          {"co_freevars", PY_CODE_FREE}, /* these four are members up to 3.10 */
	{"co_exceptiontable", PY_CODE_EXCEPTIONS}, {"co_names", PY_CODE_NAMES},
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static void take_member(const char *name, uint64_t offset, struct python_layout *out)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(members[i].name, name) == 0)
			out->at[members[i].word] = offset;
}

/* Each version's own type object tells where the parts of a code object are. */
static int read_members(const struct python_symbols *symbols, struct mem *mem, struct err *err, struct python_layout *out)
{
	uint64_t table;

	if (!read_u64(mem, symbols->code_type + TYPE_MEMBERS, &table))
		return err_set(err, EFAULT, "PyCode_Type cannot be read");
	for (int i = 0; i < MAX_MEMBERS; i++) {
		uint64_t member[MEMBER_SIZE / 8];
		char name[24] = "";

		if (!mem_read_exact(mem, table + (uint64_t)i * MEMBER_SIZE, member, sizeof(member)))
			return err_set(err, EFAULT, "the members of PyCode_Type cannot be read");
		if (!member[0])
			break;
		if (mem->read(mem, member[0], name, sizeof(name) - 1) > 0)
			take_member(name, member[2], out);
	}
	if (!out->at[PY_CODE_FILENAME] || !out->at[PY_CODE_NAME] || !out->at[PY_CODE_FIRSTLINE])
		return err_set(err, EINVAL, "layout check failed: PyCode_Type does not tell where its members are");
	return 0;
}

static int read_table(unsigned minor, struct python_layout *out)
{
	for (const struct setting *s = tables[minor - FIRST_MINOR]; s->word; s++)
		out->at[s->word] = s->value;
	out->at[PY_TSTATE_NEXT] = 8;
	out->at[PY_TSTATE_INTERP] = 16;
	return 0;
}

/* 3.13 and later. What PyCode_Type has said must be what is said here. */
static int read_offsets(const struct python_symbols *symbols, unsigned minor, struct mem *mem, struct err *err,
			struct python_layout *out)
{
	uint64_t words[MAX_OFFSET_WORDS];

	if (!mem_read_exact(mem, symbols->runtime, words, sizeof(words)))
		return err_set(err, EFAULT, "_PyRuntime cannot be read");
	if (memcmp(&words[0], "xdebugpy", 8) != 0)
		return err_set(err, EINVAL, "layout check failed: _PyRuntime does not begin with its table of offsets");
	if (words[1] >> 16 != symbols->version >> 16)
		return err_set(err, EINVAL, "layout check failed: its table of offsets is of version %x, and it is %x",
			       (unsigned)words[1], (unsigned)symbols->version);
	if (words[2])
		return err_set(err, ENOTSUP, "free-threaded builds are not supported");
	for (const struct setting *s = offset_tables[minor - FIRST_WITH_OFFSETS]; s->word; s++) {
		if (out->at[s->word] && out->at[s->word] != words[s->value])
			return err_set(err, EINVAL, "layout check failed: two sources differ in where a code object has its parts");
		out->at[s->word] = words[s->value];
	}
	out->at[PY_FRAMES] = PY_FRAMES_SHIM;
	out->at[PY_GEN_FRAME] = 72;
	out->at[PY_GEN_STATE] = 67;
	out->at[PY_FRAME_STACK] = 64;
	out->at[PY_STR_ASCII] = 40;
	out->at[PY_STR_OTHER] = 56;
	return 0;
}

static unsigned find_minor(const struct python_symbols *symbols, struct mem *mem, struct python_layout *out)
{
	uint32_t version;

	out->at[PY_VERSION] = UINT64_C(3) << 24 | (uint64_t)symbols->minor << 16;
	if (symbols->version && mem_read_exact(mem, symbols->version, &version, sizeof(version)))
		out->at[PY_VERSION] = version;
	return out->at[PY_VERSION] >> 24 == 3 ? python_minor(out) : 0;
}

bool python_layout_is_sane(const struct python_layout *layout)
{
	bool shims = layout->at[PY_FRAMES] == PY_FRAMES_SHIM;

	for (int i = PY_EVAL_END + 1; i < PY_WORDS; i++)
		if (layout->at[i] > MAX_OFFSET)
			return false;
	return layout->at[PY_FORMAT] == PY_WORDS && layout->at[PY_FRAMES] >= PY_FRAMES_OBJECTS && layout->at[PY_FRAMES] <= PY_FRAMES_SHIM &&
	       layout->at[PY_RUNTIME] && layout->at[PY_CODE_TYPE] && layout->at[PY_TSTATE_FRAME] && layout->at[PY_CODE_NAME] &&
	       layout->at[PY_CODE_FILENAME] && layout->at[PY_CODE_LINES] && layout->at[PY_CODE_BYTES] &&
	       layout->at[PY_FRAME_PREVIOUS] < 128 && layout->at[PY_FRAME_INSTR] < 128 && layout->at[PY_FRAME_CODE] < 128 &&
	       layout->at[PY_FRAME_OWNER] < 128 && (!shims || layout->at[PY_FRAME_OWNER]);
}

int python_layout_read(const struct python_symbols *symbols, struct mem *mem, struct err *err, struct python_layout *out)
{
	struct python_symbols known = *symbols;
	uint64_t basic_size;
	unsigned minor;
	int rc;

	*out = (struct python_layout){.at[PY_FORMAT] = PY_WORDS};
	minor = find_minor(symbols, mem, out);
	known.version = out->at[PY_VERSION];
	if (!minor)
		return err_set(err, ENOTSUP, "its version is not known");
	if (minor < FIRST_MINOR || minor > LAST_MINOR)
		return err_set(err, ENOTSUP, "version 3.%u is not supported: 3.%d to 3.%d are", minor, FIRST_MINOR, LAST_MINOR);
	if (!symbols->code_type)
		return err_set(err, EINVAL, "PyCode_Type is not exported");
	rc = read_members(symbols, mem, err, out);
	if (rc == 0)
		rc = minor < FIRST_WITH_OFFSETS ? read_table(minor, out) : read_offsets(&known, minor, mem, err, out);
	if (rc < 0)
		return rc;
	/* Where instructions are part of the code object they begin where the rest ends: tp_basicsize. */
	if (out->at[PY_FRAMES] != PY_FRAMES_OBJECTS) {
		if (!read_u64(mem, symbols->code_type + 32, &basic_size) ||
		    (out->at[PY_CODE_BYTES] && out->at[PY_CODE_BYTES] != basic_size))
			return err_set(err, EINVAL, "layout check failed: two sources differ in where the instructions of a code object begin");
		out->at[PY_CODE_BYTES] = basic_size;
	}
	out->at[PY_RUNTIME] = symbols->runtime;
	out->at[PY_CODE_TYPE] = symbols->code_type;
	out->at[PY_CORO_TYPE] = symbols->coro_type;
	out->at[PY_GEN_TYPE] = symbols->gen_type;
	out->at[PY_ASYNC_GEN_TYPE] = symbols->async_gen_type;
	if (symbols->interp_tasks <= MAX_OFFSET && symbols->tstate_tasks <= MAX_OFFSET && symbols->task_node <= MAX_OFFSET) {
		out->at[PY_INTERP_TASKS] = symbols->interp_tasks;
		out->at[PY_TSTATE_TASKS] = symbols->tstate_tasks;
		out->at[PY_TASK_NODE] = symbols->task_node;
	}
	out->at[PY_EVAL_START] = symbols->eval;
	out->at[PY_EVAL_END] = symbols->eval_end;
	out->at[PY_GIL_HOLDER] = 8;
	out->at[PY_GIL_LOCKED] = 16;
	out->at[PY_GIL_MUTEX] = 80;
	out->at[PY_RLOCK_OWNER] = 24;
	out->at[PY_RLOCK_COUNT] = 32; /* since 3.14 counted from 0 */
	if (!python_layout_is_sane(out))
		return err_set(err, EINVAL, "layout check failed: an offset is beyond its structure");
	return 0;
}
