/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_OBJECTS_H
#define STAKEOUT_RUNTIME_HOTSPOT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot/layout.h"
#include "runtime/hotspot/symbol.h"
#include "runtime/pages.h"

/* Objects of Java, and references to them. Collectors may move them: whoever reads them checks what comes of it. */

/* The class of an object whose header has that many bytes: 8, 12 or 16. */
bool java_class_of(const struct layout *layout, struct pages *pages, uint32_t header, uint64_t object, uint64_t *out);

/* A reference in a field, of four bytes or of eight. False: it cannot be read, or is null. */
bool java_reference(const struct layout *layout, struct pages *pages, uint64_t address, bool narrow, uint64_t *out);

/* The name of a class as the virtual machine has it: "java/lang/Object". */
bool java_class_name(const struct layout *layout, struct pages *pages, uint64_t class, struct symbol_text *out);

#endif
