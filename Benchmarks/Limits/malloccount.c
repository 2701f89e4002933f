// Counts allocations: LD_PRELOAD this and name a file in MALLOCCOUNT_FILE. The file holds one
// 64-bit count, in the machine's byte order, that runs on while the process does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc's own names: no dlsym, which allocates itself.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uint64_t before_mapping;
static uint64_t *counter = &before_mapping;

static void count_one(void) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void map_counter(void) {
    const char *path = getenv("MALLOCCOUNT_FILE");
    if (!path) return;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    if (ftruncate(descriptor, sizeof *counter) == 0) {
        void *mapped = mmap(
            NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (mapped != MAP_FAILED) counter = mapped;
    }
    close(descriptor);
}

void *malloc(size_t size) {
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    count_one();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *memory = memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}
