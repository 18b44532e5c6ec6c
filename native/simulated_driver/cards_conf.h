/* cards.conf: which driver and cards this host pretends to have.
 *
 *     # comment
 *     driver_version = 580.126.09
 *     cuda_version   = 13000             major * 1000 + minor * 10
 *     device_nodes   = ignored           or when_present: where /dev holds the node nvidia<minor>
 *                                        of any of the cards, only the cards that have one are
 *                                        seen, as in a container on a real host
 *     slice_us       = 2000              optional: how long the card serves one process when
 *                                        several have work
 *     kernel_us      = 0                 optional: how long a kernel takes whose name does not say;
 *                                        $CASABA_SIMULATED_KERNEL_US goes before
 *     utilization_window_ms = 1000       optional: over how long NVML's utilisation is taken
 *     utilization_lag_ms = 0             optional: how long ago that ended; both are rounded to
 *                                        samples of 1/6 s and at most 2500 ms
 *   faults, all optional; $CASABA_SIMULATED_FAULTS sets them for one process, as `key=value;...`:
 *     nvml_delay_ms  = 0                 how much later every answer of NVML comes
 *     nvml_absent    = no                or yes: NVML does not start
 *     alloc_fails_every = 0              every so many allocations of a process one is refused
 *     fails_after_launches = 0           after so many launches of a process it has what a real one
 *                                        has behind an XID: every call that works on a stream fails
 *     [card]                             one section per card, in the order of NVML's index
 *     model       = A10                  see models.def
 *     uuid        = GPU-13e066b9-098c-8932-9d26-ea75a943d6ba
 *     bus_id      = 00000000:00:03.0
 *     minor       = 0                    of /dev/nvidia<minor>
 *     memory_mib  = 23028                optional: the model's
 *     context_mib = 0                    optional: what each live context takes of the card
 */
#ifndef CASABA_CARDS_CONF_H
#define CASABA_CARDS_CONF_H

#include <stdbool.h>
#include <stdint.h>

enum { CARDS_MAX = 16, REASON_SIZE = 512, MIB = 1 << 20 };

struct model {
    const char *id, *name;
    unsigned architecture; /* NVML_DEVICE_ARCH_* */
    int major, minor;      /* compute capability */
    unsigned memory_mib;
    unsigned multiprocessors, cores_per_multiprocessor, threads_per_multiprocessor;
    unsigned shared_kib, shared_block_kib; /* shared memory of a multiprocessor, of one block */
    unsigned l2_kib, memory_bus_bits;
    unsigned sm_clock_mhz, memory_clock_mhz;
    unsigned power_limit_mw;
    unsigned pcie_generation;
    unsigned pci_device_id, pci_subsystem_id;
};

struct card {
    const struct model *model;
    char uuid[48];          /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
    uint8_t uuid_bytes[16]; /* the same */
    unsigned domain, bus, device;
    unsigned minor;
    uint64_t memory_bytes;
    uint64_t context_bytes;
};

struct host {
    char driver_version[64];
    int cuda_version;
    bool nodes_when_present;
    uint64_t slice_ns, kernel_ns;
    unsigned window_samples, lag_samples; /* of card_schedule.h */
    unsigned nvml_delay_ms;
    bool nvml_absent;
    unsigned alloc_fails_every, fails_after_launches;
    unsigned card_count;
    struct card cards[CARDS_MAX];
};

/* Why something failed, for a person. */
struct reason {
    char text[REASON_SIZE];
};

/* Reads `path`. False, with a reason naming file, line and value, when it cannot be used. */
bool cards_conf_read(const char *path, struct host *host, struct reason *reason);

/* True when this process may see the card; see device_nodes above. */
bool card_is_visible(const struct host *host, unsigned card);

/* Finds a card by UUID text, also by an unambiguous beginning of it; -1 when there is none. */
int card_by_uuid(const struct host *host, const char *uuid);

#endif
