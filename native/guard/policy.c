#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "shared_file.h"

int policy_open(const char *path, const struct policy_file **policy) {
    const struct shared_header wanted = {POLICY_MAGIC, POLICY_VERSION, POLICY_SIZE};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)) return 0;
    if (descriptor < 0) {
        message_refusal(path, "cannot be opened: %s; make it readable for this user",
                        strerror(errno));
        return -1;
    }
    *policy = shared_file_map(path, descriptor, false, &wanted);
    close(descriptor);
    return *policy ? 1 : -1;
}

static uint32_t crc32(const unsigned char *bytes, size_t count) {
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

static bool is_whole(const struct policy_copy *limits) {
    size_t after = offsetof(struct policy_copy, card_count);
    uint32_t checksum = crc32((const unsigned char *)limits + after, sizeof *limits - after);
    return limits->checksum == checksum && limits->card_count <= POLICY_MAX_CARDS;
}

static bool read_once(const struct policy_file *policy, struct policy_copy *limits,
                      uint64_t *index) {
    *index = atomic_load_explicit(&policy->index, memory_order_acquire);
    memcpy(limits, &policy->copies[*index & 1], sizeof *limits);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&policy->index, memory_order_relaxed) == *index &&
           is_whole(limits);
}

bool policy_read(const struct policy_file *policy, int tries, struct policy_copy *limits,
                 uint64_t *index) {
    const struct timespec pause = {.tv_nsec = 200 * 1000};
    while (!read_once(policy, limits, index)) {
        if (--tries <= 0) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
