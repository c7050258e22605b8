/* SPDX-License-Identifier: MIT */
/*
 * Kernel stacks are named where they were taken: the addresses mean something to this kernel only, until it is started
 * again, while a snapshot may be saved and looked at elsewhere.
 */
#include "capture/take.h"
#include "kernel/address_names.h"

struct naming {
	struct snapshot *snap;
	VEC(uint64_t) addresses; /* each once */
	struct u64map index;	 /* address to position in it */
	VEC(const char *) texts; /* beside addresses; NULL: no name */
};

static bool collect(struct naming *naming)
{
	for (size_t i = 0; i < naming->snap->threads.len; i++) {
		const struct snap_thread *t = &naming->snap->threads.data[i];

		for (uint32_t k = 0; t->kernel_pcs && k < t->nkernel; k++) {
			bool created;
			uint64_t *slot = u64map_put(&naming->index, t->kernel_pcs[k], &created);

			if (!slot)
				return false;
			if (!created)
				continue;
			*slot = naming->addresses.len;
			if (!vec_push(&naming->addresses, t->kernel_pcs[k]) || !vec_push(&naming->texts, NULL))
				return false;
		}
	}
	return naming->addresses.len > 0;
}

static void found(void *arg, size_t index, const char *text)
{
	struct naming *naming = arg;

	naming->texts.data[index] = arena_intern(naming->snap->arena, text);
}

static void store(struct naming *naming)
{
	for (size_t i = 0; i < naming->snap->threads.len; i++) {
		struct snap_thread *t = &naming->snap->threads.data[i];

		if (!t->kernel_pcs || !t->nkernel)
			continue;
		t->kernel_text = arena_alloc(naming->snap->arena, t->nkernel * sizeof(*t->kernel_text));
		for (uint32_t k = 0; t->kernel_text && k < t->nkernel; k++)
			t->kernel_text[k] = naming->texts.data[*u64map_find(&naming->index, t->kernel_pcs[k])];
	}
}

void take_kernel_text(struct snapshot *snap)
{
	struct naming naming = {.snap = snap};

	if (collect(&naming) && address_names_ask(naming.addresses.data, naming.addresses.len, found, &naming, NULL) == 0)
		store(&naming);
	vec_deinit(&naming.addresses);
	vec_deinit(&naming.texts);
	u64map_deinit(&naming.index);
}
