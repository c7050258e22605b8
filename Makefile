# SPDX-License-Identifier: MIT
# `make help` lists what can be made; V=1 shows the commands.

BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= lib
VERSION := 0.1.0

CLANG ?= clang
PYTHON ?= /usr/bin/python3
BPFTOOL ?= $(shell for t in bpftool /usr/sbin/bpftool /usr/lib/linux-tools*/*/bpftool; do \
	$$t version >/dev/null 2>&1 && echo $$t && break; done)

MAKEFLAGS += --no-print-directory
# On all processors, unless the command line or a make above this one has said how many. Of several goals each is made
# after the one before, as in `make clean all`: tests must not share the machine with a build, either.
ifeq ($(MAKELEVEL)$(word 2,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2);)

# SANITIZE=address,undefined instruments the program (in another BUILD directory: see asan and fuzz).
ifdef SANITIZE
SAN_FLAGS := -fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | sed 's/-.*//')
BPF_ARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)

CFLAGS ?= -O2 -g
# The same bytes wherever and whenever it is built: no path of this directory in them, and no date (check-reproducible).
SAME_BYTES := -ffile-prefix-map=$(CURDIR)=. -Werror=date-time
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -Isrc -I$(BUILD)/gen -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wno-unused-parameter -fPIC -fvisibility=hidden -Iinclude \
	-DSTAKEOUT_VERSION=\"$(VERSION)\" $(SAME_BYTES) $(SAN_FLAGS) $(CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS := $(SAN_FLAGS) $(LDFLAGS)
LIBS := -liberty -llzma -ldeflate -lzstd -lpthread -ldl
TEST_LIBS := -ldw -lelf # what our own readers are compared with
HEADERS_NEEDED := elf.h dwarf.h libiberty/demangle.h lzma.h libdeflate.h zstd.h

# The BPF rung needs clang, bpftool and libbpf; without them the program is built without it. BPF=0 forces that.
ifeq ($(BPF),0)
NO_BPF := BPF=0
else
NO_BPF := $(shell command -v $(CLANG) >/dev/null 2>&1 || { echo $(CLANG) not found; exit; }; \
	[ -n "$(BPFTOOL)" ] || { echo bpftool not found; exit; }; \
	printf '\043include <bpf/libbpf.h>\n' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 || echo libbpf not found)
endif
ifeq ($(NO_BPF),)
ALL_CFLAGS += -DHAVE_BPF=1
LIBS := -lbpf $(LIBS)
SKELETONS := $(patsubst src/bpf/%.bpf.c,$(BUILD)/gen/%.skel.h,$(wildcard src/bpf/*.bpf.c)) \
	$(BUILD)/gen/offcpu_finding.skel.h $(BUILD)/gen/task_iter.lskel.h $(BUILD)/gen/window.lskel.h \
	$(BUILD)/gen/open_files.lskel.h $(BUILD)/gen/page_fault.lskel.h
endif
# Clang does not look for <asm/types.h> where the host's compiler does.
BPF_CPPFLAGS ?= $(addprefix -idirafter ,$(wildcard /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)))

LIB_SRCS := $(filter-out src/cmd/main.c src/bpf/%,$(sort $(wildcard src/*/*.c src/*/*/*.c)))
LIB_OBJS := $(LIB_SRCS:%.c=$(BUILD)/%.o)

.PHONY: all
all: $(BUILD)/stakeout library ## build the program and the library (the default)

$(BUILD)/stakeout: $(BUILD)/src/cmd/main.o $(BUILD)/libstakeout.a
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# One file that needs nothing of the machine that it is copied to: the same objects, but for those that would load libraries
# there. The linker warns of what the C library would still load, and that is an error here.
STATIC_SRCS := src/base/library.c src/base/user.c
STATIC_OBJS := $(STATIC_SRCS:%.c=$(BUILD)/static/%.o)
STATIC_FLAGS := $(if $(shell $(CC) -dM -E -x c /dev/null 2>/dev/null | grep __pie__),-static-pie,-static) -s -Wl,--fatal-warnings
STATIC_LIBS := $(if $(NO_BPF),,-lbpf -lelf -lz) $(filter-out -lbpf,$(LIBS))

.PHONY: static
static: $(BUILD)/static/stakeout ## build the program as one file, build/static/stakeout, that runs on any Linux of this architecture

$(BUILD)/static/stakeout: $(BUILD)/src/cmd/main.o $(STATIC_OBJS) $(BUILD)/libstakeout.a
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) $(STATIC_FLAGS) -o $@ $^ $(STATIC_LIBS)

$(BUILD)/static/src/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -DSTATIC_BUILD -MMD -MP -c -o $@ $<

$(BUILD)/libstakeout.a: $(LIB_OBJS)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcsD $@ $^

# libstakeout, for other programs: what src/lib needs, and nothing else, with the names of include/stakeout.h. The archive above
# is that of the program and the tests.

LIBRARY_DIR := $(BUILD)/lib
LIB_SONAME := libstakeout.so.1
LIB_PARTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/lib/*.c)) $(BUILD)/libstakeout.a
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)

.PHONY: library
library: $(LIBRARY_DIR)/$(LIB_SONAME) $(LIBRARY_DIR)/libstakeout.a ## build libstakeout, shared and static

$(LIBRARY_DIR)/$(LIB_SONAME): $(LIB_PARTS) src/lib/stakeout.map
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) -Wl,--version-script=src/lib/stakeout.map \
		$(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(LIB_PARTS) $(LIBS)

# One object, in which all other names are local: they cannot clash with those of a program.
$(LIBRARY_DIR)/libstakeout.a: $(LIB_PARTS)
	@mkdir -p $(@D); rm -f $@
	$(call say,AR,$@)$(CC) -r -nostdlib -o $(@:.a=.o) $^ && $(OBJCOPY) --localize-hidden $(@:.a=.o) && \
		$(AR) rcsD $@ $(@:.a=.o) && rm $(@:.a=.o)

# Made again for each PREFIX.
$(LIBRARY_DIR)/libstakeout.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/$(LIBDIR)' 'includedir=$${prefix}/include' '' 'Name: libstakeout' \
		'Description: Stacks of running processes, names of addresses, and where threads wait' 'Version: $(VERSION)' \
		'Libs: -L$${libdir} -lstakeout' 'Libs.private: $(LIBS)' 'Cflags: -I$${includedir}' > $@

$(BUILD)/src/%.o: src/%.c $(BUILD)/flags | $(SKELETONS)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/gen/%.bpf.o: src/bpf/%.bpf.c $(wildcard src/bpf/*.h) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) $(BPF_CPPFLAGS) -Isrc -Wall \
		$(SAME_BYTES) -c -o $@ $<

# The same programs, for kernels that let them look at what a process has mapped.
$(BUILD)/gen/offcpu_finding.bpf.o: src/bpf/offcpu.bpf.c $(wildcard src/bpf/*.h) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) $(BPF_CPPFLAGS) -Isrc -Wall \
		$(SAME_BYTES) -DFINDS_CODE -c -o $@ $<

$(BUILD)/gen/%.skel.h: $(BUILD)/gen/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

# One loader works with both, by the first one's types: what it shares with them must lie at the same places.
$(BUILD)/gen/offcpu_finding.skel.h: $(BUILD)/gen/offcpu_finding.bpf.o $(BUILD)/gen/offcpu.skel.h
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name offcpu_finding_bpf > $@.tmp && \
		sed -n '/__rodata {/,/} \*bss;/p' $(BUILD)/gen/offcpu.skel.h > $@.plain && \
		sed -n '/__rodata {/,/} \*bss;/p' $@.tmp | sed s/_finding_bpf/_bpf/ | cmp - $@.plain && mv $@.tmp $@

# A program that loads the other one: the kernel searches its own BTF, in a fraction of the time in which libbpf reads it.
$(BUILD)/gen/%.lskel.h: $(BUILD)/gen/%.bpf.o
	$(call say,SKEL,$@){ echo '#pragma GCC system_header' && $(BPFTOOL) gen skeleton -L $< name $*_light; } > $@.tmp && \
		mv $@.tmp $@

.PRECIOUS: $(BUILD)/gen/%.lskel.h $(BUILD)/gen/%.bpf.o $(BUILD)/gen/%.skel.h

# Changes when the way to build changes, so that everything is then built again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' > $@.tmp
	@cmp -s $@.tmp $@ && rm $@.tmp || { \
		for header in $(HEADERS_NEEDED); do \
			echo "#include <$$header>" | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 || \
				{ echo "$(CC) with <$$header> is needed: run 'make setup'" >&2; exit 1; }; \
		done; \
		[ -z "$(NO_BPF)" ] || echo "building without the BPF rung: $(NO_BPF)"; \
		mv $@.tmp $@; }

.PHONY: FORCE
FORCE:

# Test programs: tests/targets/README.md tells how they are built.

TARGETS_DIR ?= $(BUILD)/tests/targets
TARGETS := $(patsubst tests/targets/%,$(TARGETS_DIR)/%,$(basename $(wildcard tests/targets/*.c tests/targets/*.cc))) \
	$(TARGETS_DIR)/demo
TARGET_FLAGS := -g -O2 -Wall -pthread -MMD -MP
# The value of the comment line "/* $(1): VALUE */" in the source.
source_says = $(shell sed -n 's,^/\* $(1): \(.*\) \*/$$,\1,p' $<)

define build_target
@mkdir -p $(@D)
$(call say,TARGET,$<)cc='$(or $(call source_says,build-with),$(1))'; command -v $$cc >/dev/null || \
	{ echo "$@ is not built: $$cc not found"; exit 0; }; \
	$$cc $(TARGET_FLAGS) -MF $@.d -MT $@ -o $@ $< $(call source_says,build)
endef

.PHONY: targets
targets: $(TARGETS)

$(TARGETS_DIR)/%: tests/targets/%.c
	$(call build_target,$(CC))

$(TARGETS_DIR)/%: tests/targets/%.cc
	$(call build_target,$(CXX))

$(TARGETS_DIR)/demo: tests/targets/demo/main.cc tests/targets/demo/waits.c tests/targets/demo/waits.h
	@mkdir -p $(@D)
	$(call say,TARGET,tests/targets/demo)$(CC) -g -O2 -Wall -c -o $@.o tests/targets/demo/waits.c && \
		$(CXX) -std=c++17 -g -O2 -Wall -pthread -o $@ $< $@.o

# Tests. Each suite adds a line to $(RESULTS): name, passed, failed, skipped.

RESULTS ?= $(BUILD)/results
RUN_TESTS_ENV = RESULTS=$(RESULTS) STAKEOUT=$(abspath $(BUILD)/stakeout) STAKEOUT_TARGETS=$(abspath $(TARGETS_DIR)) \
	PYTEST_FLAGS='$(PYTEST_FLAGS)' PYTEST_TIMEOUT=180
RUN_TESTS = $(RUN_TESTS_ENV) tools/run-tests
PYTEST = $(PYTHON) -B -m pytest -p no:cacheprovider -q -rs
# Nearly all that this one does is the kernel's, which takes its time to check the programs: nothing for the sanitizers.
UNIT_SRCS := $(filter-out $(if $(SANITIZE),tests/unit/test_offcpu_probe.c),$(sort $(wildcard tests/unit/test_*.c)))
UNIT_BINS := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/unit/%)
FUZZ_SRCS := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_SRCS:tests/fuzz/%.c=$(BUILD)/tests/fuzz/%)
REPLAY_BINS := $(FUZZ_SRCS:tests/fuzz/fuzz_%.c=$(BUILD)/tests/replay/fuzz_%)
# All of them take FUZZ_TOTAL seconds together, one on each processor at a time.
FUZZ_TOTAL ?= 150
# 0: other inputs in each run.
FUZZ_SEED ?= 0
FUZZ_SECONDS ?= $(shell expr $(FUZZ_TOTAL) \* $(JOBS) / $(words $(FUZZ_SRCS)))

ifneq ($(filter unit,$(MAKECMDGOALS)),)
ifneq ($(shell $(CC) $(CPPFLAGS) -E tests/unit/cmocka_all.h >/dev/null 2>&1 || echo missing),)
$(error the unit tests need cmocka: run 'make setup')
endif
endif

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libstakeout.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -MT $@ $(ALL_LDFLAGS) \
		-o $@ $< $(BUILD)/libstakeout.a -lcmocka $(LIBS) $(TEST_LIBS)

# Needs no libFuzzer: one build with sanitizers serves the unit tests, the end-to-end tests and the seeds of the fuzzers.
$(BUILD)/tests/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(BUILD)/libstakeout.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -MT $@ $(ALL_LDFLAGS) \
		-o $@ $< tests/fuzz/replay.c $(BUILD)/libstakeout.a $(LIBS)

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/libstakeout.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -MT $@ -fsanitize=fuzzer $(ALL_LDFLAGS) \
		-o $@ $< $(BUILD)/libstakeout.a $(LIBS)

# Unit tests run side by side, but for those that need the processors for themselves, and why:
#	test_offcpu_probe, test_recording	naps of 3 ms are counted, and whoever else runs cuts them short
UNIT_ALONE := test_offcpu_probe test_recording
# Those that are run again when they have failed, once, and why chance can fail them: none
UNIT_CHANCE :=
JOBS ?= $(shell nproc)
UNIT_ALONE_BINS := $(filter $(UNIT_ALONE:%=$(BUILD)/tests/unit/%),$(UNIT_BINS))

.PHONY: unit
unit: $(UNIT_BINS) $(TARGETS) ## run the unit tests
	@status=0; \
	printf '%s\n' $(filter-out $(UNIT_ALONE_BINS),$(UNIT_BINS)) | \
		$(RUN_TESTS_ENV) AGAIN='$(UNIT_CHANCE)' xargs -P $(JOBS) -I{} tools/run-tests -q -t 300 {} {} || status=1; \
	for t in $(UNIT_ALONE_BINS); do AGAIN='$(UNIT_CHANCE)' $(RUN_TESTS) -q -t 300 $$t $$t || status=1; done; \
	exit $$status

# MARKED=asan for those that are marked so. Side by side where pytest can do that, with those that only sit and wait beside them, and then those
# that must be alone.
E2E_TESTS = -m '$(MARKED)$(if $(MARKED), and )$(1)' $(PYTEST_FLAGS) tests/e2e
XDIST = $(shell $(PYTHON) -c 'import xdist' 2>/dev/null && echo --numprocesses=$(JOBS))

.PHONY: e2e
e2e: $(BUILD)/stakeout $(if $(SANITIZE),,$(BUILD)/static/stakeout library) $(TARGETS) ## run the end-to-end tests (PYTEST_FLAGS="-k name" for some)
	@status=0; \
	$(RUN_TESTS) -q -t 1200 $(BUILD)/e2e-patient $(PYTEST) $(call E2E_TESTS,patient and not alone) & \
	$(RUN_TESTS) -t 1200 $(BUILD)/e2e $(PYTEST) $(XDIST) $(call E2E_TESTS,not patient and not alone) || status=1; \
	wait $$! || status=1; \
	$(RUN_TESTS) -t 1200 $(BUILD)/e2e-alone $(PYTEST) $(call E2E_TESTS,alone) || status=1; \
	exit $$status

# On aarch64 gcc's search for leaks, at the end of each program, goes through a table of all memory that there could be, for
# four seconds. ASAN_LEAKS= has it done all the same.
ASAN_LEAKS := $(if $(filter aarch64,$(shell uname -m)),detect_leaks=0)
ASAN_CFLAGS := -O1 -g1 # takes half the time to build

.PHONY: asan
asan: ## run unit tests, seeds of the fuzzers and end-to-end tests that are marked so with ASan and UBSan
	@status=0; for check in unit replay e2e; do \
		ASAN_OPTIONS="$(ASAN_LEAKS):$$ASAN_OPTIONS" $(MAKE) BUILD=$(BUILD)/asan SANITIZE=address,undefined CFLAGS='$(ASAN_CFLAGS)' \
			TARGETS_DIR=$(TARGETS_DIR) RESULTS=$(RESULTS) MARKED=asan $$check || status=1; \
	done; exit $$status

# Where threads meet that know nothing of each other: those of a program that uses the library.
TSAN_TESTS := test_library test_signals test_filemap

.PHONY: tsan
tsan: ## run what many threads do at the same time with ThreadSanitizer
	@$(MAKE) BUILD=$(BUILD)/tsan SANITIZE=thread TARGETS_DIR=$(TARGETS_DIR) RESULTS=$(RESULTS) tsan-run

.PHONY: tsan-run
tsan-run: $(TSAN_TESTS:%=$(BUILD)/tests/unit/%)
	@status=0; for t in $^; do TSAN_OPTIONS="die_after_fork=0:$$TSAN_OPTIONS" $(RUN_TESTS) -q -t 600 $$t $$t || status=1; done; \
		exit $$status

.PHONY: replay
replay: $(REPLAY_BINS) ## run each fuzzer on its seeds, once (asan does that, too)
	@printf '%s\n' $(REPLAY_BINS) | $(RUN_TESTS_ENV) xargs -P $(JOBS) -I{} sh -c \
		'tools/run-tests -q -t 120 $$1 $$1 tests/fuzz/corpus/$$(basename $$1)' - {}

.PHONY: fuzz
fuzz: ## let all fuzzers search, FUZZ_TOTAL seconds together (or each for FUZZ_SECONDS); FUZZ_SEED=1 for the same inputs
	@mkdir -p $(BUILD)/fuzz
	@if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
		$(CLANG) -fsanitize=fuzzer,address -x c - -o $(BUILD)/fuzz/probe 2>/dev/null; then \
		$(MAKE) BUILD=$(BUILD)/fuzz CC=$(CLANG) SANITIZE=fuzzer-no-link,address,undefined RESULTS=$(RESULTS) fuzz-run; \
	else \
		$(RUN_TESTS) -q $(BUILD)/fuzz/probe sh -c 'echo "skip: no clang with libFuzzer"; exit 77'; \
	fi

.PHONY: fuzz-run
fuzz-run: $(FUZZ_BINS)
	@printf '%s\n' $(FUZZ_BINS) | $(RUN_TESTS_ENV) xargs -P $(JOBS) -I{} tools/run-tests -q \
		-t $$(($(FUZZ_SECONDS) + 60)) {} tests/fuzz/run {} $(FUZZ_SECONDS) $(FUZZ_SEED)

RUNS ?= 10000

.PHONY: torture
torture: $(BUILD)/stakeout $(TARGETS) ## name addresses of a file that changes all the time, RUNS times (10000)
	@RUNS=$(RUNS) $(RUN_TESTS) -t 7200 $(BUILD)/torture tests/torture/run

# The whole matrix of versions, each looked at RUNTIME_LOOKS times while it recurses.
PYTHONS ?= host 3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15
NODES ?= host 18 20 22 24
RUNTIME_LOOKS ?= 10000
JAVA_TESTS := tests/e2e/test_java.py tests/e2e/test_offcpu_java.py tests/e2e/test_why_runtimes.py
JAVA_RUN = $(RUN_TESTS_ENV) PYTEST_TIMEOUT=3600 tools/run-tests -t 3600

.PHONY: check-runtimes
check-runtimes: $(BUILD)/stakeout $(TARGETS) ## look at all versions of Python, Node.js and Java that can be had, for hours (PYTHONS="3.13", NODES="22", JDKS="21", RUNTIME_LOOKS=100)
	@STAKEOUT_TEST_PYTHONS='$(PYTHONS)' STAKEOUT_TEST_NODES='$(NODES)' STAKEOUT_TEST_LOOKS=$(RUNTIME_LOOKS) $(RUN_TESTS_ENV) PYTEST_TIMEOUT=3600 \
		tools/run-tests -t 21600 $(BUILD)/runtimes $(PYTEST) $(XDIST) $(PYTEST_FLAGS) tests/e2e/test_python.py tests/e2e/test_python_tasks.py \
		tests/e2e/test_offcpu_python.py tests/e2e/test_why_runtimes.py tests/e2e/test_node.py tests/e2e/test_offcpu_node.py
	@tools/prepare-jdks $(JDKS) | while read -r version start; do \
		export STAKEOUT_JAVA=$$start STAKEOUT_TEST_LOOKS=$(RUNTIME_LOOKS); \
		$(JAVA_RUN) $(BUILD)/java-$$version $(PYTEST) $(XDIST) -m 'not alone' $(PYTEST_FLAGS) $(JAVA_TESTS) && \
		$(JAVA_RUN) $(BUILD)/java-$$version-alone $(PYTEST) -m alone $(PYTEST_FLAGS) $(JAVA_TESTS) || exit 1; done

LIMITS_THREADS ?= 32000

.PHONY: check-limits
check-limits: $(BUILD)/stakeout $(TARGETS) ## look at a process with LIMITS_THREADS threads (32000), and at one with 65,000 mappings
	@STAKEOUT_TEST_THREADS=$(LIMITS_THREADS) $(RUN_TESTS_ENV) PYTEST_TIMEOUT=600 \
		tools/run-tests -t 1800 $(BUILD)/limits $(PYTEST) $(PYTEST_FLAGS) -k 'very_many or as_many' tests/e2e/test_odd_targets.py

.PHONY: no-bpf
no-bpf: ## build without the BPF rung, and as fast as it can be built
	@$(RUN_TESTS) -q -t 600 $(BUILD)/no-bpf $(MAKE) BUILD=$(BUILD)/no-bpf BPF=0 CFLAGS=-O0

.PHONY: includes
includes: ## check that no folder includes what it must not
	@$(RUN_TESTS) -q -t 60 $(BUILD)/includes tools/check-includes

.PHONY: docs
docs: $(BUILD)/stakeout ## check that every command has a manual page, and that pages and completions know every option
	@$(RUN_TESTS) -q -t 180 $(BUILD)/docs tools/check-docs $(abspath $(BUILD)/stakeout)

.PHONY: places
places: $(BUILD)/stakeout ## check what install puts where, and that uninstall leaves nothing of it
	@$(RUN_TESTS) -q -t 60 $(BUILD)/places tools/check-install $(MAKE) BUILD=$(BUILD)

.PHONY: same-bytes
same-bytes: $(BUILD)/stakeout $(BUILD)/static/stakeout ## check that what is built tells neither where nor when it was
	@$(RUN_TESTS) -q -t 60 $(BUILD)/same-bytes tools/check-reproducible $^ $(patsubst %.skel.h,%.bpf.o,$(filter %.skel.h,$(SKELETONS)))

.PHONY: check-reproducible
check-reproducible: ## build twice, in other directories, and compare
	+@$(RUN_TESTS) -t 3000 $(BUILD)/reproducible tools/check-reproducible -b $(MAKE)

.PHONY: check-packages
check-packages: $(BUILD)/stakeout ## build the packages, and compare them with what is installed
	@tools/setup build package
	+@$(RUN_TESTS) -t 3000 $(BUILD)/packages tools/check-packages $(BUILD) $(MAKE)

.PHONY: check-roots
check-roots: $(BUILD)/stakeout $(BUILD)/static/stakeout $(TARGETS) ## run the static program in the roots of other systems, made for that (ROOTS="trixie musl" for some)
	@tools/setup build static test package
	@roots=$$(tools/prepare-roots $(ROOTS)) && STAKEOUT_TEST_ROOTS="$$roots" $(RUN_TESTS) -t 3000 $(BUILD)/roots \
		$(PYTEST) $(PYTEST_FLAGS) tests/e2e/test_static.py

LOCK_ROOTS := bullseye bookworm trixie sid
GOS ?= 1.24 1.26

.PHONY: check-locks
check-locks: $(BUILD)/stakeout ## find who holds each kind of lock with other C libraries (LOCK_ROOTS="bullseye sid" for some), and with Rust; and programs of other versions of Go (GOS="1.26" for some)
	@tools/setup build test package rust
	@roots=$$(tools/prepare-roots $(LOCK_ROOTS)); STAKEOUT_TEST_ROOTS="$$roots" $(RUN_TESTS) -t 3000 $(BUILD)/locks \
		$(PYTEST) $(PYTEST_FLAGS) tests/e2e/test_why_glibcs.py tests/e2e/test_why_rust.py
	@# DWARF 5 of Go is not read by the addr2line that names are compared with.
	@status=0; tools/prepare-gos $(GOS) > $(BUILD)/gos || status=1; while read -r version folder; do \
		PATH=$$folder:$$PATH GOTOOLCHAIN=local GOEXPERIMENT=$$(case $$version in 1.1? | 1.2[0-4]) ;; *) echo nodwarf5 ;; esac) \
			$(RUN_TESTS) -t 1200 $(BUILD)/go-$$version $(PYTEST) $(XDIST) $(PYTEST_FLAGS) tests/e2e/test_why_go.py tests/e2e/test_go.py || \
			status=1; done < $(BUILD)/gos; exit $$status

CHECKS := includes docs places same-bytes unit e2e asan no-bpf

.PHONY: check
check: ## install what is missing, then run all tests
	@tools/setup build static test
	@$(MAKE) check-run

# One after the other, whatever fails: tests that look at timing must not share the machine with a build.
.PHONY: check-run
check-run:
	@mkdir -p $(BUILD); rm -f $(RESULTS)
	@status=0; for check in $(CHECKS); do $(MAKE) $$check || status=1; done; tools/run-tests -s $(RESULTS); exit $$status

.PHONY: check-vm
check-vm: ## run the end-to-end tests marked arch on the other one, in a virtual machine (or on VM_ARCH=arm64|amd64)
	@tools/setup build vm
	@mkdir -p $(BUILD)
	+@$(RUN_TESTS) -t $$(($${VM_SECONDS:-1500} + 1500)) $(BUILD)/vm-e2e tests/vm/run $(BUILD)/vm $(VM_ARCH)

.PHONY: check-kernels
check-kernels: ## boot Debian's kernels and tell what each lets the program do, for hours (KERNELS="amd64:sid:cloud …" for some)
	@tools/setup build vm kernels
	@mkdir -p $(BUILD)/vm
	+@tests/vm/kernels $(BUILD)/vm $(KERNELS)

.PHONY: soak
soak: $(BUILD)/stakeout $(TARGETS) ## what takes hours (SOAK=rounds, servers or kills; SOAK_ROUNDS, SOAK_SNAPSHOTS, SOAK_KILLS)
	@tools/setup test soak
	+@$(RUN_TESTS_ENV) BUILD=$(BUILD) tests/soak/run $(SOAK)

.PHONY: bench
bench: $(BUILD)/stakeout $(TARGETS) ## measure beside peers (BENCH=snapshot, window, waits, python, java, node, symbolize, offcpu or brief for one; quick)
	@STAKEOUT=$(abspath $(BUILD)/stakeout) STAKEOUT_TARGETS=$(abspath $(TARGETS_DIR)) bench/run $(BENCH)

# Setting up, showing, installing

.PHONY: setup
setup: ## install what building and testing need
	@tools/setup build static test vm

.PHONY: demo
demo: ## install what is missing, then show a demo program's threads
	@tools/setup build
	@$(MAKE) demo-run

.PHONY: demo-run
demo-run: $(BUILD)/stakeout $(TARGETS_DIR)/demo
	@tests/targets/demo/run $(BUILD)/stakeout $(TARGETS_DIR)/demo

# What is installed, each as MODE:FILE:PLACE, or link:FILE:PLACE, of a link to a file beside it. Debian's zsh has a directory of its own for what packages bring; what the
# administrator installs is in the usual one.
ZSH_COMPLETIONS ?= share/zsh/$(if $(filter /usr,$(PREFIX)),$(if $(wildcard /etc/debian_version),vendor-completions,$\
	site-functions),site-functions)
INSTALLED = \
	755:$(BUILD)/stakeout:bin/stakeout \
	$(foreach page,$(sort $(wildcard docs/man/*.1)),644:$(page):share/man/man1/$(notdir $(page))) \
	644:completions/stakeout.bash:share/bash-completion/completions/stakeout \
	644:completions/stakeout.zsh:$(ZSH_COMPLETIONS)/_stakeout \
	644:completions/stakeout.fish:share/fish/vendor_completions.d/stakeout.fish \
	$(foreach schema,$(sort $(wildcard docs/schema/*.schema.json)),644:$(schema):share/stakeout/$(notdir $(schema))) \
	644:LICENSE:share/doc/stakeout/LICENSE \
	$(INSTALLED_LIBRARY)
INSTALLED_LIBRARY = \
	644:include/stakeout.h:include/stakeout.h \
	644:$(LIBRARY_DIR)/$(LIB_SONAME):$(LIBDIR)/$(LIB_SONAME) \
	link:$(LIB_SONAME):$(LIBDIR)/libstakeout.so \
	644:$(LIBRARY_DIR)/libstakeout.a:$(LIBDIR)/libstakeout.a \
	644:$(LIBRARY_DIR)/libstakeout.pc:$(LIBDIR)/pkgconfig/libstakeout.pc \
	644:docs/man/libstakeout.3:share/man/man3/libstakeout.3
part = $(word $(1),$(subst :, ,$(2)))
place = $(DESTDIR)$(PREFIX)/$(call part,3,$(1))

define install_one
$(if $(filter link,$(call part,1,$(1))),ln -sf,install -D -m $(call part,1,$(1))) $(call part,2,$(1)) $(call place,$(1))

endef

# Its own directories go, too; where a package is put together, all that are then empty.
INSTALLED_DIRS = $(patsubst /%,%,$(patsubst %/,%,$(sort $(dir $(foreach one,$(INSTALLED),$(PREFIX)/$(call part,3,$(one)))))))
EMPTY_DIRS = $(if $(DESTDIR),-p $(INSTALLED_DIRS),$(filter %/stakeout,$(INSTALLED_DIRS)))

.PHONY: install
install: $(BUILD)/stakeout library $(LIBRARY_DIR)/libstakeout.pc ## install under PREFIX (and DESTDIR)
	$(foreach one,$(INSTALLED),$(call install_one,$(one)))

.PHONY: uninstall
uninstall: ## remove what was installed there
	rm -f $(foreach one,$(INSTALLED),$(call place,$(one)))
	@cd $(or $(DESTDIR),/) && rmdir --ignore-fail-on-non-empty $(EMPTY_DIRS) 2>/dev/null || true

.PHONY: deb
deb: ## build a Debian package, in build/deb; lintian must have nothing to say of it
	@packaging/build-deb $(BUILD)/deb

.PHONY: rpm
rpm: ## build an RPM package, in build/rpm
	@packaging/build-rpm $(BUILD)/rpm

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | sort | expand -t 20

-include $(shell find $(BUILD)/src $(BUILD)/static $(BUILD)/tests $(TARGETS_DIR) -name '*.d' 2>/dev/null)
