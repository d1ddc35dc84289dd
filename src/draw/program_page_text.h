/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DRAW_PROGRAM_PAGE_TEXT_H
#define RP_DRAW_PROGRAM_PAGE_TEXT_H
/* The page around a program's data: everything up to "const P={" and everything behind "}". */

extern const char rp_program_page_head[], rp_program_page_tail[];

#endif
