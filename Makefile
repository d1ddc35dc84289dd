# SPDX-License-Identifier: Apache-2.0
# Short names for CMake commands; CMakePresets.json has their settings. BUILD is the folder of the
# release build; the others are beside it: $(BUILD)-asan, $(BUILD)-tsan ... Recipes take folders from
# the environment, "$$BUILD", because names may contain spaces.
BUILD ?= build
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 3600
FILES ?= $(shell find src include tests bench examples tools -name '*.[ch]')
ifneq ($(shell command -v ninja),)
export CMAKE_GENERATOR ?= Ninja
endif
export BUILD DESTDIR JOBS PREFIX FUZZ_SECONDS SOAK_SECONDS

# $(call build,PRESET,ENDING of the folder,TARGETS) and $(call ctest,ENDING) (one test more than jobs, since many wait)
configure = cmake --preset $(1) -B "$$BUILD$(2)" $(CMAKE_FLAGS) $(if $(V),,--log-level=WARNING >/dev/null)
build = @$(call configure,$(1),$(2)) && cmake --build "$$BUILD$(2)" -j $(JOBS) --target $(or $(3),all)
ctest = @ctest --test-dir "$$BUILD$(1)" --output-on-failure --timeout 1800 -j $$(($(JOBS) + 1)) $(CTEST_FLAGS)

.PHONY: all demo test check bench fuzz asan msan tsan clang minimal aarch64 aarch64-build fmt install install-debug uninstall \
        test-live soak wheel wheel-aarch64 deb static clean help
all:       ## the program, build/reprise, and the libraries
	$(call build,release)
demo:      ## install dependencies, build, and show what it does
	tools/install-deps build
	+tools/demo
test:      ## install dependencies, build, run every test
	tools/install-deps build test
	$(call build,release,,all tests)
	$(call ctest)
check: all ## layers, headers, formatting, analysers, sizes, growth
	tools/check
bench: all ## speed, memory and accuracy against peers
	cmake --build "$$BUILD" -j $(JOBS) --target benches
	bench/run
fuzz:      ## every fuzzer for FUZZ_SECONDS; adds new inputs to the corpus
	tests/fuzz/run
asan:      ## the tests with the address and undefined-behaviour sanitizers
	$(call build,asan,-asan,all tests)
	$(call ctest,-asan)
# Of libraries that are not built with it nothing is known, so it is the build with libc and zlib only (cmake/msan/zlib.c).
MSAN_UNITS = base io trace program lower dataset
msan:      ## readers and engines, unit tests and corpora, with clang's memory sanitizer: what is read before it is written
	$(call build,msan,-msan,corpus $(addprefix unit_,$(MSAN_UNITS)))
	$(call ctest,-msan) -R '^(corpus_|unit_($(subst $(eval ) ,|,$(MSAN_UNITS)))$$)'
msan: export MSAN_OPTIONS ?= allocator_may_return_null=1 # as malloc does
tsan:      ## the unit tests with the thread sanitizer
	$(call build,tsan,-tsan,all tests)
	$(call ctest,-tsan) -R '^unit_'
tsan: export TSAN_OPTIONS ?= die_after_fork=0 # recorded programs start threads after a fork
clang:     ## the unit tests of a build with clang
	$(call build,clang,-clang,all tests)
	$(call ctest,-clang) -R '^unit_'
minimal:   ## the tests of a build with libc and zlib only
	$(call build,minimal,-minimal,all tests)
	$(call ctest,-minimal) -R '^(unit|golden|install)'
aarch64-build: ## cross build for aarch64, with its tests
	tools/install-deps aarch64
	tools/sysroot-aarch64 "$$BUILD-aarch64/sysroot"
	$(call build,aarch64,-aarch64,$(or $(AARCH64_TARGETS),all tests))
aarch64: aarch64-build ## and run the unit tests and corpora under qemu
	$(call ctest,-aarch64) -R '^(unit|corpus)_'
fmt:       ## format the C sources
	clang-format -i $(FILES)
install: all ## into PREFIX (/usr/local), below DESTDIR if that is set, without debug symbols
	@cmake --install "$$BUILD" --strip --prefix "$$(realpath -m "$$PREFIX")"
install-debug: all ## their debug symbols, into PREFIX/lib/debug, where gdb looks if PREFIX is /usr
	@set -e; for file in reprise libreprise.so.0; do \
	    id=$$(readelf -n "$$BUILD/$$file" | sed -n 's/.*Build ID: //p'); \
	    to="$$DESTDIR$$(realpath -m "$$PREFIX")/lib/debug/.build-id/$${id%$${id#??}}"; mkdir -p "$$to"; \
	    objcopy --only-keep-debug "$$BUILD/$$file" "$$to/$${id#??}.debug"; done
uninstall: ## remove what `make install` with the same PREFIX and DESTDIR has written
	@cmake -DROOT="$$DESTDIR$$(realpath -m "$$PREFIX")" -P cmake/uninstall.cmake
test-live: all ## tests against the real frameworks, from PyPI, in build/; lists what it skips
	@set -e; for t in tests/live/*; do if [ -x $$t ] && [ -f $$t ]; then $$t; fi; done
soak: all  ## view, mcp and metrics under load for SOAK_SECONDS, recordings that are killed 50 times meanwhile, 10,000 attachments
	tests/live/soak "$$SOAK_SECONDS"
	tests/record/check_attach "$$BUILD/reprise" 10000
# $(call portable,ENDING of the folder,OPTIONS of CMake,TARGETS): a build for machines with an older C library
portable = @cmake -S . -B "$$BUILD-$(1)" -DCMAKE_BUILD_TYPE=Release -DRP_PORTABLE=ON -DRP_TESTS=OFF \
    -DCMAKE_INSTALL_LIBDIR=lib $(2) --log-level=WARNING >/dev/null && cmake --build "$$BUILD-$(1)" -j $(JOBS) --target $(3)
wheel:     ## the Python package with everything inside, for any Linux of this processor, in build-packages
	$(call portable,portable,,python)
	@tools/package wheel "$$BUILD-portable" "$$BUILD-packages"
wheel-aarch64: ## the same for aarch64, cross compiled
	tools/install-deps aarch64
	tools/sysroot-aarch64 "$$BUILD-portable-aarch64/sysroot"
	$(call portable,portable-aarch64,--toolchain cmake/aarch64.cmake,python)
	@tools/package wheel "$$BUILD-portable-aarch64" "$$BUILD-packages"
deb:       ## Debian packages: program, library, development; in build-packages
	@cmake -S . -B "$$BUILD-deb" -DCMAKE_BUILD_TYPE=Release -DRP_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr --log-level=WARNING >/dev/null
	@cmake --build "$$BUILD-deb" -j $(JOBS)
	@tools/package deb "$$BUILD-deb" "$$BUILD-packages"
static:    ## one program with everything but libc inside, in build-packages
	$(call portable,portable,,reprise)
	@mkdir -p "$$BUILD-packages" && cp "$$BUILD-portable/reprise" "$$BUILD-packages/reprise" && strip "$$BUILD-packages/reprise"
clean:     ## remove the build folders
	rm -rf "$$BUILD"
	for kind in asan msan tsan clang fuzz minimal aarch64 dev mutate portable portable-aarch64 deb packages; do rm -rf "$$BUILD-$$kind"; done
help:      ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' Makefile | expand -t 16
