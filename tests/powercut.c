/* Remembers what a power cut would take back. Loaded before libc (LD_PRELOAD), it writes a journal of every
 * change below the folder POWERCUT_DIR to the file POWERCUT_JOURNAL: before a change the bytes that were there,
 * after a sync that it was done. `powercut.py` reads it and takes back what no sync has made durable.
 *
 * A record is a `struct record`, one or two paths, and old bytes. A file that is unlinked or replaced keeps a
 * second name beside the journal. Changes through shared writable mappings, stdio (fwrite), io_uring and raw
 * system calls are not seen; of such mappings there is a record, so that a test can refuse to believe itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct record {
    uint32_t magic;
    uint8_t type, pad[3];
    uint32_t path_length, other_length;
    uint64_t inode, offset, length, old_size, old_length;
} __attribute__((packed));
enum { WRITE = 1, TRUNCATE, SYNC, SYNC_FAILED, CREATE, RENAME, UNLINK, SYNC_FOLDER, SYNC_ALL, MAPPED, LINK };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_length;
static const char *journal_path;
static int journal = -1, ready;
static long saved, made, last;

#define REAL(ret, name, ...)                 \
    static ret (*real_##name)(__VA_ARGS__);  \
    if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name)

static void init(void) {
    if (ready) return;
    pthread_mutex_lock(&lock);
    if (!ready) {
        const char *given = getenv("POWERCUT_DIR");
        journal_path = getenv("POWERCUT_JOURNAL");
        if (given && journal_path && strlen(given) < PATH_MAX) {
            strcpy(folder, given);
            folder_length = strlen(folder);
            journal = (int)syscall(SYS_openat, AT_FDCWD, journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        }
        ready = 1;
    }
    pthread_mutex_unlock(&lock);
}

/* --- which files --------------------------------------------------------------------------------------- */

static int inside(const char *path) {
    return journal >= 0 && !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static int path_of(int fd, char *out) {
    if (journal < 0) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (length <= 0) return 0;
    out[length] = 0;
    if (length > 10 && !strcmp(out + length - 10, " (deleted)")) return 0;
    return inside(out);
}

static int absolute(int at, const char *path, char *out) {
    char whole[PATH_MAX * 2], base[NAME_MAX + 1], real[PATH_MAX], start[PATH_MAX];
    if (journal < 0 || !path || !*path) return 0;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        if (at == AT_FDCWD) {
            if (!getcwd(start, sizeof start)) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, start, PATH_MAX - 1);
            if (length <= 0) return 0;
            start[length] = 0;
        }
        snprintf(whole, sizeof whole, "%s/%s", start, path);
    }
    char *slash = strrchr(whole, '/');
    if (!slash) return 0;
    snprintf(base, sizeof base, "%s", slash + 1);
    slash[slash == whole] = 0;
    if (!realpath(whole, real) || strlen(real) + strlen(base) + 2 > PATH_MAX) return 0;
    sprintf(out, "%s/%s", real, base);
    return inside(out);
}

/* --- the journal --------------------------------------------------------------------------------------- */

static void put(uint8_t type, const char *path, const char *other, uint64_t inode, uint64_t offset, uint64_t length,
                uint64_t old_size, const void *old, uint64_t old_length) {
    if (journal < 0) return;
    struct record record = {.magic = 0x50574331, .type = type, .inode = inode, .offset = offset, .length = length};
    record.path_length = path ? strlen(path) : 0;
    record.other_length = other ? strlen(other) : 0;
    record.old_size = old_size;
    record.old_length = old_length;
    struct iovec parts[4] = {{&record, sizeof record},
                             {(void *)path, record.path_length},
                             {(void *)other, record.other_length},
                             {(void *)old, old_length}};
    pthread_mutex_lock(&lock);
    syscall(SYS_writev, journal, parts, 4);
    int end = ++made == last;
    pthread_mutex_unlock(&lock);
    if (end) syscall(SYS_kill, syscall(SYS_getpid), 9);
}

/* The process gets SIGKILL at its n-th record from now on, just before a change or just after a sync; never if 0. */
void powercut_end(long n) {
    init();
    made = 0;
    last = n;
}

long powercut_made(void) { return made; }

static void put_name(uint8_t type, const char *path, const char *other, uint64_t inode) {
    put(type, path, other, inode, 0, 0, 0, NULL, 0);
}

/* The bytes that a write or a cut is about to replace. */
static void put_old(int fd, const char *path, uint64_t offset, uint64_t length, uint8_t type, uint64_t new_size) {
    struct stat stat;
    if (journal < 0 || syscall(SYS_fstat, fd, &stat)) return;
    uint64_t size = stat.st_size, from = offset, count = length;
    if (type == TRUNCATE) {
        from = new_size;
        count = size > new_size ? size - new_size : 0;
    } else if (from >= size) {
        count = 0;
    } else if (from + count > size) {
        count = size - from;
    }
    char *old = count ? malloc(count) : NULL;
    uint64_t got = 0;
    if (old) {
        int reader = fd;
        if ((syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
            /* Read through a second descriptor that is never closed: that would drop the process's locks. */
            static struct { uint64_t inode; int fd; } readers[512];
            static int known;
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            pthread_mutex_lock(&lock);
            reader = -1;
            for (int i = 0; i < known; i++)
                if (readers[i].inode == stat.st_ino) reader = readers[i].fd;
            if (reader < 0) {
                reader = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
                if (reader >= 0 && known < 512) {
                    readers[known].inode = stat.st_ino;
                    readers[known++].fd = reader;
                }
            }
            pthread_mutex_unlock(&lock);
        }
        while (reader >= 0 && got < count) {
            ssize_t more = syscall(SYS_pread64, reader, old + got, count - got, from + got);
            if (more <= 0) break;
            got += more;
        }
    }
    put(type, path, NULL, stat.st_ino, from, type == TRUNCATE ? new_size : length, size, old, got);
    free(old);
}

static uint64_t position(int fd) {
    if (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) {
        struct stat stat;
        return syscall(SYS_fstat, fd, &stat) ? 0 : (uint64_t)stat.st_size;
    }
    off_t at = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    return at < 0 ? 0 : (uint64_t)at;
}

static size_t total(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += parts[i].iov_len;
    return sum;
}

/* --- bytes --------------------------------------------------------------------------------------------- */

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    init();
    char path[PATH_MAX];
    if (fd > 2 && path_of(fd, path)) put_old(fd, path, position(fd), length, WRITE, 0);
    return real_write(fd, data, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    init();
    char path[PATH_MAX];
    if (fd > 2 && path_of(fd, path)) put_old(fd, path, position(fd), total(parts, count), WRITE, 0);
    return real_writev(fd, parts, count);
}

#define PWRITE(name)                                                     \
    ssize_t name(int fd, const void *data, size_t length, off_t at) {    \
        REAL(ssize_t, name, int, const void *, size_t, off_t);           \
        init();                                                          \
        char path[PATH_MAX];                                             \
        if (path_of(fd, path)) put_old(fd, path, at, length, WRITE, 0);  \
        return real_##name(fd, data, length, at);                        \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define PWRITEV(name)                                                                   \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t at) {              \
        REAL(ssize_t, name, int, const struct iovec *, int, off_t);                     \
        init();                                                                         \
        char path[PATH_MAX];                                                            \
        if (path_of(fd, path)) put_old(fd, path, at, total(parts, count), WRITE, 0);    \
        return real_##name(fd, parts, count, at);                                       \
    }
PWRITEV(pwritev)
PWRITEV(pwritev64)

#define FTRUNCATE(name)                                            \
    int name(int fd, off_t size) {                                 \
        REAL(int, name, int, off_t);                               \
        init();                                                    \
        char path[PATH_MAX];                                       \
        if (path_of(fd, path)) put_old(fd, path, 0, 0, TRUNCATE, size); \
        return real_##name(fd, size);                              \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define FALLOCATE(name)                                                             \
    int name(int fd, int mode, off_t at, off_t length) {                            \
        REAL(int, name, int, int, off_t, off_t);                                    \
        init();                                                                     \
        char path[PATH_MAX];                                                        \
        struct stat stat;                                                           \
        if (path_of(fd, path) && !syscall(SYS_fstat, fd, &stat))                    \
            put_old(fd, path, 0, 0, TRUNCATE, mode == 0 && at + length > stat.st_size ? at + length : stat.st_size); \
        return real_##name(fd, mode, at, length);                                   \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

#define MMAP(name)                                                                                    \
    void *name(void *address, size_t length, int protection, int flags, int fd, off_t at) {           \
        REAL(void *, name, void *, size_t, int, int, int, off_t);                                     \
        char path[PATH_MAX];                                                                          \
        if (ready && fd >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED) && path_of(fd, path)) \
            put(MAPPED, path, NULL, 0, 0, length, 0, NULL, 0);                                        \
        return real_##name(address, length, protection, flags, fd, at);                               \
    }
MMAP(mmap)
MMAP(mmap64)

/* --- syncs --------------------------------------------------------------------------------------------- */

static int synced(int fd, int (*real)(int)) {
    char path[PATH_MAX];
    struct stat stat;
    int seen = path_of(fd, path) && !syscall(SYS_fstat, fd, &stat);
    int failed = real(fd);
    if (seen) put_name(failed ? SYNC_FAILED : S_ISDIR(stat.st_mode) ? SYNC_FOLDER : SYNC, path, NULL, stat.st_ino);
    return failed;
}

int fsync(int fd) {
    REAL(int, fsync, int);
    init();
    return synced(fd, real_fsync);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    init();
    return synced(fd, real_fdatasync);
}

void sync(void) {
    REAL(void, sync, void);
    init();
    real_sync();
    put_name(SYNC_ALL, NULL, NULL, 0);
}

/* --- names --------------------------------------------------------------------------------------------- */

static int opened(int at, const char *given, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat stat;
    int existed = 0, seen = 0;
    if ((flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE && absolute(at, given, path)) {
        seen = 1;
        existed = syscall(SYS_newfstatat, AT_FDCWD, path, &stat, 0) == 0;
        if (existed && (flags & O_TRUNC) && stat.st_size) {
            int before = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
            if (before >= 0) put_old(before, path, 0, 0, TRUNCATE, 0); /* left open on purpose, see above */
        }
    }
    int fd = (int)syscall(SYS_openat, at, given, flags, mode);
    if (fd >= 0 && seen && !existed && !syscall(SYS_fstat, fd, &stat)) put_name(CREATE, path, NULL, stat.st_ino);
    return fd;
}

#define MODE                                                        \
    mode_t mode = 0;                                                \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {    \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode = va_arg(rest, int);                                   \
        va_end(rest);                                               \
    }                                                               \
    init()
int open(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE; return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE; return opened(at, path, flags, mode); }
int creat(const char *path, mode_t mode) {
    init();
    return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* A second name of a file that is about to lose its own. */
static void save(const char *path, char *out) {
    snprintf(out, PATH_MAX, "%s.saved.%d.%ld", journal_path, (int)getpid(), __sync_add_and_fetch(&saved, 1));
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, out, 0)) out[0] = 0;
}

static int unlinked(int at, const char *given, int flags) {
    char path[PATH_MAX], kept[PATH_MAX];
    struct stat stat;
    if (!(flags & AT_REMOVEDIR) && absolute(at, given, path) &&
        !syscall(SYS_newfstatat, AT_FDCWD, path, &stat, AT_SYMLINK_NOFOLLOW)) {
        save(path, kept);
        put_name(UNLINK, path, kept, stat.st_ino);
    }
    return (int)syscall(SYS_unlinkat, at, given, flags);
}
int unlink(const char *path) { init(); return unlinked(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { init(); return unlinked(at, path, flags); }

static int renamed(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char one[PATH_MAX], two[PATH_MAX], kept[PATH_MAX], both[PATH_MAX * 2 + 2];
    struct stat stat, target;
    int seen = absolute(from_at, from, one) & absolute(to_at, to, two);
    kept[0] = 0;
    if (seen && !syscall(SYS_newfstatat, AT_FDCWD, one, &stat, AT_SYMLINK_NOFOLLOW)) {
        if (!syscall(SYS_newfstatat, AT_FDCWD, two, &target, AT_SYMLINK_NOFOLLOW) && S_ISREG(target.st_mode)) save(two, kept);
        snprintf(both, sizeof both, "%s\n%s", two, kept);
        put_name(RENAME, one, both, stat.st_ino);
    }
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}
int rename(const char *from, const char *to) { init(); return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { init(); return renamed(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    init();
    return renamed(from_at, from, to_at, to, flags);
}

static int linked(int from_at, const char *from, int to_at, const char *to, int flags) {
    char path[PATH_MAX];
    struct stat stat;
    int failed = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    if (!failed && absolute(to_at, to, path) && !syscall(SYS_newfstatat, AT_FDCWD, path, &stat, AT_SYMLINK_NOFOLLOW))
        put_name(LINK, path, NULL, stat.st_ino);
    return failed;
}
int link(const char *from, const char *to) { init(); return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    init();
    return linked(from_at, from, to_at, to, flags);
}
