/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "unwind/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One page in which every word holds an address of the page. */
static ssize_t read_page(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	uint64_t word = 0x1000 + (address & 0xff);

	if (address < 0x1000 || address >= 0x2000 || len > sizeof(word))
		return -EFAULT;
	memcpy(buf, &word, len);
	return (ssize_t)len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct regs regs = {0};
	struct mem mem = {.read = read_page};
	struct expr_env env = {.word = 8, .regs = &regs, .mem = &mem, .bias = 0x100000};
	const uint64_t cfa = 0x1800;
	uint64_t value;

	for (unsigned i = 0; i < 17; i++)
		regs_put(&regs, i, 0x1000 + 8 * i);
	expr_eval(data, size, &env, NULL, &value);
	expr_eval(data, size, &env, &cfa, &value);
	return 0;
}
