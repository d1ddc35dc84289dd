# SPDX-License-Identifier: Apache-2.0
# Files of web/ as C: `cmake -DOUT=web.c -DROOT=web -P embed.cmake report/page.css …` makes rp_web_report_css[], ended by a NUL.
# Without other tools, so that the program still needs only a compiler and CMake.
set(text "/* made by cmake/embed.cmake */\n#include \"draw/web.h\"\n")
math(EXPR last "${CMAKE_ARGC} - 1")
set(files FALSE)
foreach(i RANGE 1 ${last})
  set(file ${CMAKE_ARGV${i}})
  if(files)
    string(REGEX REPLACE "^(.*)/[^/]*\\.([a-z]+)$" "rp_web_\\1_\\2" name ${file})
    file(READ ${ROOT}/${file} hex HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
    string(REGEX REPLACE "((........){12})" "\\1\n" bytes "${bytes}")
    string(APPEND text "\nconst char ${name}[] = {\n${bytes}0};\n")
  elseif(file MATCHES "embed\\.cmake$")
    set(files TRUE)
  endif()
endforeach()
file(WRITE ${OUT} "${text}")
