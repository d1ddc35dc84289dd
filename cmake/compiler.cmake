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
endif()
if(RP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
