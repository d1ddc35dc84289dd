/* SPDX-License-Identifier: Apache-2.0 */
/* One row per library. To add one: a line in cmake/features.cmake and a row here. */
#include "machine/features.h"

#include "rp_config.h"

#include <zlib.h>
#if RP_HAVE_ISAL
#include <isa-l.h>
#endif
#if RP_HAVE_ZSTD
#include <zstd.h>
#endif
#if RP_HAVE_LZMA
#include <lzma.h>
#endif
#if RP_HAVE_SQLITE
#include <sqlite3.h>
#endif

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static const char *version_zlib(void)
{
    return zlibVersion();
}

static const char *version_isal(void)
{
#if RP_HAVE_ISAL
    return TEXT(ISAL_MAJOR_VERSION) "." TEXT(ISAL_MINOR_VERSION) "." TEXT(ISAL_PATCH_VERSION);
#else
    return NULL;
#endif
}

static const char *version_zstd(void)
{
#if RP_HAVE_ZSTD
    return ZSTD_versionString();
#else
    return NULL;
#endif
}

static const char *version_lzma(void)
{
#if RP_HAVE_LZMA
    return lzma_version_string();
#else
    return NULL;
#endif
}

static const char *version_sqlite(void)
{
#if RP_HAVE_SQLITE
    return sqlite3_libversion();
#else
    return NULL;
#endif
}

static const char *version_babeltrace(void)
{
#if RP_HAVE_BABELTRACE
    return "2";
#else
    return NULL;
#endif
}

static const struct rp_feature features[] = {
    {"zlib", "gzip input", "zlib1g-dev", true, version_zlib},
    {"isal", "faster gzip input", "libisal-dev", RP_HAVE_ISAL, version_isal},
    {"zstd", "zstd input", "libzstd-dev", RP_HAVE_ZSTD, version_zstd},
    {"lzma", "xz input", "liblzma-dev", RP_HAVE_LZMA, version_lzma},
    {"sqlite", "SQLite export and input", "libsqlite3-dev", RP_HAVE_SQLITE, version_sqlite},
    {"babeltrace", "CTF traces of LTTng", "libbabeltrace2-dev", RP_HAVE_BABELTRACE,
     version_babeltrace},
};

const struct rp_feature *rp_feature_list(size_t *n)
{
    *n = sizeof features / sizeof features[0];
    return features;
}
