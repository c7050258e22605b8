/* SPDX-License-Identifier: MIT */
#include "runtime/python/coroutine.h"

#include "runtime/python/types.h"

enum {
	HELPER_COROUTINE = 16, /* where all helpers have what they step through */
	MAX_HELPERS = 3,       /* one steps through what another one steps through */
	FRAME_VALUES = 64,     /* PyFrameObject, up to 3.10: the first of its values */
	FRAME_LASTI_NONE = -1,
	BYTES_DATA = 32,
	OP_YIELD_FROM = 72,  /* up to 3.10 */
	FIRST_AWAIT_ARG = 2, /* 3.11 and 3.12: what a RESUME has that follows a wait, and not a yield */
	FIRST_WITH_DEPTH = 10, /* a number of values, and not a pointer behind the last one, is kept since then; f_lasti counts units */
	FIRST_WITH_YIELD_FROM = 13, /* states tell a wait from a yield since then */
	FIRST_WITH_POINTER = 14,    /* a pointer again */
	FIRST_ASCENDING = 15,       /* states are counted from 0 on since then */
	MAX_VALUES = 1 << 16,
};

/* As the versions number them: up to 3.12; since 3.13; since 3.15. */
enum { OLD_CREATED = -2, OLD_SUSPENDED = -1, OLD_RUNNING = 0 };
enum { MIDDLE_CREATED = -3, MIDDLE_YIELDED = -2, MIDDLE_AWAITS = -1, MIDDLE_RUNNING = 0 };
enum { NEW_CREATED = 0, NEW_YIELDED = 1, NEW_AWAITS = 2, NEW_RUNNING = 4 };

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

bool python_is_coroutine(const struct python_layout *layout, struct mem *mem, uint64_t object)
{
	uint64_t type = object % 8 == 0 ? python_type_of(mem, object) : 0;

	return type && (type == layout->at[PY_CORO_TYPE] || type == layout->at[PY_GEN_TYPE] || type == layout->at[PY_ASYNC_GEN_TYPE]);
}

uint64_t python_awaited_coroutine(const struct python_layout *layout, struct mem *mem, uint64_t object)
{
	for (int i = 0; object && !python_is_coroutine(layout, mem, object); i++) {
		struct python_type type;

		if (i == MAX_HELPERS || !python_type_read(mem, object, &type) || type.of_program ||
		    type.basic_size < HELPER_COROUTINE + 8 || !read_u64(mem, object + HELPER_COROUTINE, &object))
			return 0;
	}
	return object;
}

/* What its own state says; *awaits: it waits, as far as that tells. */
static enum python_coroutine_state read_state(const struct python_layout *layout, int8_t state, bool *awaits)
{
	unsigned minor = python_minor(layout);

	*awaits = false;
	if (minor >= FIRST_ASCENDING) {
		*awaits = state == NEW_AWAITS;
		return state == NEW_CREATED   ? PYTHON_COROUTINE_CREATED
		       : state == NEW_RUNNING ? PYTHON_COROUTINE_RUNNING
		       : state < NEW_RUNNING  ? PYTHON_COROUTINE_SUSPENDED
					      : PYTHON_COROUTINE_ENDED;
	}
	if (minor >= FIRST_WITH_YIELD_FROM) {
		*awaits = state == MIDDLE_AWAITS;
		return state == MIDDLE_CREATED                              ? PYTHON_COROUTINE_CREATED
		       : state == MIDDLE_YIELDED || state == MIDDLE_AWAITS ? PYTHON_COROUTINE_SUSPENDED
		       : state == MIDDLE_RUNNING                           ? PYTHON_COROUTINE_RUNNING
									    : PYTHON_COROUTINE_ENDED;
	}
	*awaits = state == OLD_SUSPENDED;
	return state == OLD_CREATED     ? PYTHON_COROUTINE_CREATED
	       : state == OLD_SUSPENDED ? PYTHON_COROUTINE_SUSPENDED
	       : state == OLD_RUNNING   ? PYTHON_COROUTINE_RUNNING
					: PYTHON_COROUTINE_ENDED;
}

/* The last value is where a pointer, or a number of them, leads to; 0: there is none. */
static uint64_t last_value(const struct python_layout *layout, struct mem *mem, uint64_t frame)
{
	uint64_t at = frame + layout->at[PY_FRAME_STACK], end, first = frame + layout->at[PY_FRAME_LOCALS];
	unsigned minor = python_minor(layout);
	uint32_t count;

	if (minor < FIRST_WITH_DEPTH || minor >= FIRST_WITH_POINTER)
		return read_u64(mem, at, &end) && end % 8 == 0 && end ? end - 8 : 0;
	if (layout->at[PY_FRAMES] == PY_FRAMES_OBJECTS && !read_u64(mem, frame + FRAME_VALUES, &first))
		return 0;
	return mem_read_exact(mem, at, &count, sizeof(count)) && count && count < MAX_VALUES ? first + (uint64_t)(count - 1) * 8 : 0;
}

static uint64_t read_awaited(const struct python_layout *layout, struct mem *mem, uint64_t frame)
{
	uint64_t at = last_value(layout, mem, frame), value = 0;

	if (!at || !read_u64(mem, at, &value))
		return 0;
	value &= ~UINT64_C(3); /* tagged since 3.14 */
	if (!value && python_minor(layout) >= FIRST_ASCENDING && read_u64(mem, at - 8, &value)) /* an empty one is above it */
		value &= ~UINT64_C(3);
	return value;
}

/* Up to 3.12 the instruction at which it will go on tells whether it waits, or has yielded a value. */
static bool is_at_wait(const struct python_layout *layout, struct mem *mem, const struct python_frame *frame)
{
	uint64_t bytes, offset = frame->instr * (python_minor(layout) >= FIRST_WITH_DEPTH ? 2 : 1);
	uint8_t unit[2];

	if (python_minor(layout) >= FIRST_WITH_YIELD_FROM)
		return true;
	if (layout->at[PY_FRAMES] != PY_FRAMES_OBJECTS)
		return mem_read_exact(mem, frame->instr + 2, unit, sizeof(unit)) && unit[1] >= FIRST_AWAIT_ARG;
	return read_u64(mem, frame->code + layout->at[PY_CODE_BYTES], &bytes) &&
	       mem_read_exact(mem, bytes + BYTES_DATA + offset + 2, unit, sizeof(unit)) && unit[0] == OP_YIELD_FROM;
}

/* Where frames are objects a generator points to its own; up to 3.9 only a running one has no end of its values there. */
static bool find_frame(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *frame, int8_t *state)
{
	uint64_t end;
	int32_t lasti;

	*frame = object + layout->at[PY_GEN_FRAME];
	if (layout->at[PY_FRAMES] != PY_FRAMES_OBJECTS)
		return mem_read_exact(mem, object + layout->at[PY_GEN_STATE], state, sizeof(*state));
	if (!read_u64(mem, *frame, frame))
		return false;
	*state = OLD_RUNNING + 1;
	if (!*frame)
		return true;
	if (layout->at[PY_GEN_STATE])
		return mem_read_exact(mem, *frame + layout->at[PY_GEN_STATE], state, sizeof(*state));
	if (!read_u64(mem, *frame + layout->at[PY_FRAME_STACK], &end) ||
	    !mem_read_exact(mem, *frame + layout->at[PY_FRAME_INSTR], &lasti, sizeof(lasti)))
		return false;
	*state = !end ? OLD_RUNNING : lasti == FRAME_LASTI_NONE ? OLD_CREATED : OLD_SUSPENDED;
	return true;
}

bool python_coroutine_is_alive(const struct python_layout *layout, struct mem *mem, uint64_t object)
{
	uint64_t frame;
	int8_t state;
	bool awaits;

	return python_is_coroutine(layout, mem, object) && find_frame(layout, mem, object, &frame, &state) &&
	       read_state(layout, state, &awaits) != PYTHON_COROUTINE_ENDED;
}

static bool is_awaitable(const struct python_layout *layout, struct mem *mem, uint64_t object)
{
	struct python_type type;

	return python_is_coroutine(layout, mem, object) || (python_type_read(mem, object, &type) && type.is_iterator);
}

/*
 * What is awaited is a coroutine or an iterator, and only generators are suspended without a wait. Where it looks otherwise the
 * coroutine is just about to go on, or its words are of two instants (test_tasks_that_run).
 */
bool python_coroutine_peek(const struct python_layout *layout, struct mem *mem, uint64_t object, struct python_coroutine *out)
{
	uint64_t frame;
	int8_t state;
	bool awaits;

	*out = (struct python_coroutine){0};
	if (!python_is_coroutine(layout, mem, object) || !find_frame(layout, mem, object, &frame, &state))
		return false;
	out->state = read_state(layout, state, &awaits);
	if (out->state == PYTHON_COROUTINE_ENDED)
		return true;
	if (!python_frame_read(layout, mem, frame, &out->frame))
		return false;
	if (awaits && is_at_wait(layout, mem, &out->frame))
		out->awaits = read_awaited(layout, mem, frame);
	if (out->awaits)
		return is_awaitable(layout, mem, out->awaits);
	return out->state != PYTHON_COROUTINE_SUSPENDED || python_type_of(mem, object) != layout->at[PY_CORO_TYPE];
}

bool python_coroutine_read(struct python_codes *codes, uint64_t object, struct python_coroutine *out)
{
	const struct python_code *code;
	int64_t offset;

	if (!python_coroutine_peek(codes->layout, codes->mem, object, out))
		return false;
	if (out->state == PYTHON_COROUTINE_ENDED)
		return true;
	code = python_codes_find(codes, out->frame.code, 0);
	return code && code->valid && python_code_offset(codes->layout, code, out->frame.instr, &offset);
}
