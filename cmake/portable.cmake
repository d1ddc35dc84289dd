# SPDX-License-Identifier: Apache-2.0
# RP_PORTABLE: what is built runs on every Linux with this or a newer glibc and needs no other library. The optional libraries
# are linked statically, ISA-L is loaded if there is one, and tools/glibc-stubs stands in for the C library of this machine.
set(RP_PORTABLE_GLIBC 2.17) # of 2012: manylinux2014
set(stubs ${CMAKE_BINARY_DIR}/glibc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/glibc-stubs ${RP_PORTABLE_GLIBC} ${CMAKE_C_COMPILER} ${stubs}
                COMMAND_ERROR_IS_FATAL ANY)
link_directories(BEFORE ${stubs})
add_link_options(-Wl,--push-state,--no-as-needed -lpthread -ldl -Wl,--pop-state -Wl,--exclude-libs,ALL)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
