/* SPDX-License-Identifier: Apache-2.0 */
#include "result/columns.h"

#include "result/walk.h"

static const struct rp_field *field_named(const struct rp_type *type, const char *key)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        if (f->key && strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

/* Parses one column: a word such as "self_ns+" or "window_ns:span", which is modified. */
static bool column_choose(const struct rp_type *type, char *word, struct rp_field *out)
{
    char *title = strchr(word, ':'), *mark;
    unsigned more = 0, less = 0;

    if (title)
        *title++ = '\0';
    for (mark = word + strcspn(word, "+-~*"); *mark; *mark++ = '\0') {
        more |= *mark == '+' ? RP_WIDE : *mark == '~' ? RP_SHORTEN : *mark == '*' ? RP_WHOLE : 0;
        less |= *mark == '-' ? RP_WIDE : 0;
    }
    const struct rp_field *field = field_named(type, word);
    if (!field)
        return false;
    *out = *field;
    out->title = title ? title : field->title;
    out->flags = (field->flags | more) & ~less;
    return out->title != NULL;
}

const char *rp_columns_choose(const struct rp_field *list, struct rp_columns *out)
{
    static const struct rp_field end = RP_FIELD_END;
    const struct rp_field *name = field_named(list->item, "name");
    size_t n = 0;
    char *rest = out->text, *word;

    if (strlen(list->columns) >= sizeof out->text)
        return list->columns;
    strcpy(out->text, list->columns);
    while ((word = strsep(&rest, ",")) != NULL) {
        word += strspn(word, " ");
        if (n == RP_COLUMNS_MOST || !column_choose(list->item, word, &out->fields[n]))
            return word;
        name = name && strcmp(word, "name") == 0 ? NULL : name;
        n++;
    }
    if (name) {
        out->fields[n] = *name;
        out->fields[n++].title = NULL;
    }
    out->fields[n] = end;
    out->type = *list->item;
    out->type.fields = out->fields;
    return NULL;
}
