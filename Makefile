# SPDX-License-Identifier: Apache-2.0
# Short names for CMake commands; CMakePresets.json has their settings. BUILD is the folder of the
# release build; the others are beside it: $(BUILD)-asan, $(BUILD)-tsan ...
BUILD ?= build
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
FILES ?= $(shell find src include tests bench examples tools -name '*.[ch]')
ifneq ($(shell command -v ninja),)
export CMAKE_GENERATOR ?= Ninja
endif
export BUILD JOBS FUZZ_SECONDS

configure = cmake --preset $(1) -B $(2) $(CMAKE_FLAGS) $(if $(V),,--log-level=WARNING >/dev/null)
build = @$(call configure,$(1),$(2)) && cmake --build $(2) -j $(JOBS) --target $(or $(3),all)
ctest = @ctest --test-dir $(1) --output-on-failure --timeout 300 -j $(JOBS) $(CTEST_FLAGS)

.PHONY: all demo test check bench fuzz asan tsan minimal aarch64 fmt install test-live clean help
all:       ## the program, build/reprise, and the libraries
	$(call build,release,$(BUILD))
demo:      ## install dependencies, build, and show what it does
	tools/install-deps build
	+$(MAKE) --no-print-directory all
	tools/demo
test:      ## install dependencies, build, run every test
	tools/install-deps build test
	$(call build,release,$(BUILD),all tests)
	$(call ctest,$(BUILD))
check: all ## layers, headers, formatting, analysers, sizes
	tools/check
bench: all ## speed, memory and accuracy against peers
	cmake --build $(BUILD) -j $(JOBS) --target benches
	bench/run
fuzz:      ## every fuzzer for FUZZ_SECONDS; adds new inputs to the corpus
	tests/fuzz/run
asan:      ## the tests with the address and undefined-behaviour sanitizers
	$(call build,asan,$(BUILD)-asan,all tests)
	$(call ctest,$(BUILD)-asan)
tsan:      ## the unit tests with the thread sanitizer
	$(call build,tsan,$(BUILD)-tsan,all tests)
	$(call ctest,$(BUILD)-tsan) -R '^unit_'
tsan: export TSAN_OPTIONS ?= die_after_fork=0 # recorded programs start threads after a fork
minimal:   ## the tests of a build with libc and zlib only
	$(call build,minimal,$(BUILD)-minimal,all tests)
	$(call ctest,$(BUILD)-minimal) -R '^(unit|golden)'
aarch64:   ## cross build; the tests run under qemu
	tools/install-deps aarch64
	tools/sysroot-aarch64 $(BUILD)-aarch64/sysroot
	$(call build,aarch64,$(BUILD)-aarch64,all tests)
	$(call ctest,$(BUILD)-aarch64) -R '^(unit|corpus)_'
fmt:       ## format the C sources
	clang-format -i $(FILES)
install: all ## into PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)
test-live: all ## tests against the real frameworks, from PyPI, in build/; lists what it skips
	@set -e; for t in tests/live/*; do if [ -x $$t ] && [ -f $$t ]; then $$t; fi; done
clean:     ## remove the build folders
	rm -rf $(BUILD) $(addprefix $(BUILD)-,asan tsan clang fuzz minimal aarch64 dev mutate)
help:      ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' Makefile | expand -t 12
