# SPDX-License-Identifier: Apache-2.0
# A text file as C: `cmake -DIN=h200.model -DOUT=h200_model.c -DNAME=rp_cost_h200_model -P embed_text.cmake` makes NAME[], ended by a NUL.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "((........){12})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "/* made by cmake/embed_text.cmake */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
