/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For libraries that intercept calls by symbol name. */

/*
 * Finds the function that the caller would have called without this library, or NULL: the next one
 * in the global scope, else that of the libraries which the caller's own library needs (an
 * extension module of Python brings its libraries into a scope of its own), else that of a library
 * that is loaded and whose name begins with `library`. The library stays loaded.
 */
void *rp_capture_next(const char *name, const void *caller, const char *library);
