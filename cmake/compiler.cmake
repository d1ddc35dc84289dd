# SPDX-License-Identifier: Apache-2.0
# Language, warnings and sanitizers: the same for every target.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wshadow -Wvla -Wundef -Wformat=2 -Wstrict-prototypes
                    -Wmissing-prototypes -Wcast-qual -fno-strict-aliasing
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${CMAKE_BINARY_DIR} inside)
if(NOT inside) # the same bytes as of a build inside of the sources
  get_filename_component(above ${CMAKE_BINARY_DIR} DIRECTORY)
  add_compile_options(-ffile-prefix-map=${above}/=)
endif()
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  # Members that a row leaves out are zero. gcc reports this too, but not inside of designated initializers.
  add_compile_options(-Wno-missing-field-initializers)
endif()
if(RP_WERROR)
  add_compile_options(-Werror)
endif()
if(RP_SANITIZE)
  add_compile_options(-fsanitize=${RP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RP_SANITIZE})
  if(RP_SANITIZE STREQUAL "memory")
    add_compile_options(-fsanitize-memory-track-origins)
    add_link_options(-fsanitize-memory-track-origins -Wl,--wrap=inflate -Wl,--wrap=deflate) # cmake/msan/zlib.c
  endif()
endif()
# What an attacker who finds a defect may not have: stacks and copies that overflow unseen, tables of functions that
# can be written, jumps into the middle of functions (tools/check-hardening). Sanitizers have their own.
if(NOT RP_SANITIZE AND NOT RP_FUZZ)
  include(CheckCCompilerFlag)
  set(CMAKE_REQUIRED_FLAGS -Werror) # clang warns of flags of another processor
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "RP_HAS${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
    endif()
  endforeach()
  unset(CMAKE_REQUIRED_FLAGS)
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
if(RP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The tables of the program are full of addresses: packed, their relocations take a hundredth of the room. Where what
# links and the C library that loads both know how.
include(CheckCSourceRuns)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
set(CMAKE_REQUIRED_QUIET ON)
if(NOT CMAKE_CROSSCOMPILING AND NOT RP_PORTABLE AND NOT DEFINED SKBUILD) # a wheel is for other machines, too
  check_c_source_runs("static int a; int *const at[] = {&a}; int main(void) { return *at[0]; }" RP_PACKS_RELOCATIONS)
endif()
unset(CMAKE_REQUIRED_LINK_OPTIONS)
unset(CMAKE_REQUIRED_QUIET)
if(RP_PACKS_RELOCATIONS)
  set(RP_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
endif()
