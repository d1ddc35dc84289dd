/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that reach the server of `view`, and the parameters of those that it accepts. */
#include "http/request.h"
#include "view/view.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_http_guard guard = {"0123456789abcdef0123456789abcdef", 8000};
    struct rp_http_request request;
    char text[64];
    size_t used = 0;
    int64_t number;

    if (rp_http_parse((const char *)data, size, &guard, &request, &used) != 200)
        return 0;
    if (used > size || strlen(request.path) >= sizeof request.path)
        __builtin_trap();
    if (rp_view_number(request.query, "z", 50, &number, NULL) == RP_OK &&
        (number < 0 || number > 50))
        __builtin_trap();
    if (rp_view_text(request.query, "q", text, sizeof text, NULL) == RP_OK &&
        strlen(text) >= sizeof text)
        __builtin_trap();
    return 0;
}
