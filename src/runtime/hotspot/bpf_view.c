/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/bpf_view.h"

#include "runtime/hotspot/frame.h"

/* *head becomes how much of the structure is read. */
static struct offcpu_field field_for_bpf(const struct layout *layout, enum hotspot_fact fact, uint32_t *head)
{
	struct field field = layout_field(layout, fact);

	if (!layout_has(layout, fact))
		return (struct offcpu_field){0};
	if (field.offset + field.size > *head)
		*head = field.offset + field.size;
	return (struct offcpu_field){.offset = (uint16_t)field.offset, .size = field.size, .is_signed = field.is_signed};
}

static void describe_heaps(const struct layout *layout, struct offcpu_hotspot *out)
{
	out->low = UINT64_MAX;
	out->nheaps = (uint32_t)layout->facts[HS_NHEAPS];
	for (uint32_t i = 0; i < out->nheaps && i < OFFCPU_CODE_HEAPS; i++) {
		const uint64_t *heap = &layout->facts[HS_HEAPS + 5 * i];

		out->heaps[i] = (struct offcpu_code_heap){.low = heap[0], .high = heap[1], .map = heap[2], .log2_segment = heap[4]};
		out->low = heap[0] < out->low ? heap[0] : out->low;
		out->high = heap[1] > out->high ? heap[1] : out->high;
	}
}

static void describe_blobs(const struct layout *layout, struct offcpu_hotspot *out)
{
	out->block = (uint32_t)layout->facts[HS_SIZE_HEAP_BLOCK];
	out->blob_name = field_for_bpf(layout, HS_BLOB_NAME, &out->head);
	out->blob_size = field_for_bpf(layout, HS_BLOB_SIZE, &out->head);
	out->frame_size = field_for_bpf(layout, HS_BLOB_FRAME_SIZE, &out->head);
	out->frame_complete = field_for_bpf(layout, HS_BLOB_FRAME_COMPLETE, &out->head);
	out->code_begin = field_for_bpf(layout, HS_BLOB_CODE_BEGIN, &out->head);
	out->code_end = field_for_bpf(layout, HS_BLOB_CODE_END, &out->head);
	out->code_offset = field_for_bpf(layout, HS_BLOB_CODE_OFFSET, &out->head);
	out->data_offset = field_for_bpf(layout, HS_BLOB_DATA_OFFSET, &out->head);
	out->compile_id = field_for_bpf(layout, HS_NM_COMPILE_ID, &out->head);
	out->deopt_handler = field_for_bpf(layout, HS_NM_DEOPT_HANDLER, &out->head);
	out->deopt_offset = field_for_bpf(layout, HS_NM_DEOPT_HANDLER_OFFSET, &out->head);
	if (out->deopt_handler.size || out->deopt_offset.size)
		out->orig_pc_offset = field_for_bpf(layout, HS_NM_ORIG_PC_OFFSET, &out->head);
}

bool bpf_view_of(const struct layout *layout, const struct arch *arch, struct offcpu_hotspot *out)
{
	const uint64_t *facts = layout->facts;
	struct offcpu_hotspot found = {0};
	uint32_t unread = 0;

	if (!layout_has(layout, HS_INTERPRETER) || !layout_has(layout, HS_INTERPRETER_SIZE))
		return false;
	describe_heaps(layout, &found);
	describe_blobs(layout, &found);
	found.call_return = facts[HS_CALL_RETURN];
	found.interpreter = facts[HS_INTERPRETER];
	found.interpreter_end = facts[HS_INTERPRETER] + facts[HS_INTERPRETER_SIZE];
	found.bytecode = java_bytecode_slot(layout, arch);
	found.method_const = layout_field(layout, HS_METHOD_CONST).offset;
	found.const_size = (uint32_t)facts[HS_SIZE_CONST_METHOD];
	found.const_code_size = field_for_bpf(layout, HS_CONST_CODE_SIZE, &unread);
	if (found.head > OFFCPU_HOTSPOT_HEAD || !found.bytecode)
		return false;
	*out = found;
	return true;
}
