/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that glibc has had since 2.25 (getrandom), 2.27 (memfd_create), 2.28 (fcntl64) and 2.33
 * (stat), for programs that run with older ones, too: tools/glibc-stubs links them. Before 2.33 the
 * stat functions were inline calls of functions that name the version of the struct, which a 64-bit
 * Linux never changed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

int __xstat(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int fd, struct stat *out);
int __fxstatat(int version, int fd, const char *path, struct stat *out, int flags);

int stat(const char *path, struct stat *out)
{
    return __xstat(STAT_VERSION, path, out);
}

int lstat(const char *path, struct stat *out)
{
    return __lxstat(STAT_VERSION, path, out);
}

int fstat(int fd, struct stat *out)
{
    return __fxstat(STAT_VERSION, fd, out);
}

int fstatat(int fd, const char *path, struct stat *out, int flags)
{
    return __fxstatat(STAT_VERSION, fd, path, out, flags);
}

int stat64(const char *path, struct stat64 *out) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *out) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat64 *out) __attribute__((alias("fstat")));

int fcntl64(int fd, int command, ...)
{
    va_list rest;
    void *argument;

    va_start(rest, command);
    argument = va_arg(rest, void *);
    va_end(rest);
    return fcntl(fd, command, argument);
}

ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    return syscall(SYS_getrandom, out, n, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}
