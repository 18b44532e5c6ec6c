#include "card_schedule.h"

#include <string.h>

bool schedule_waits(const struct schedule *schedule, unsigned slot)
{
    return schedule->waiting[slot / 64] >> slot % 64 & 1;
}

static void set_waiting(struct schedule *schedule, unsigned slot, bool waits)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (waits)
        schedule->waiting[slot / 64] |= bit;
    else
        schedule->waiting[slot / 64] &= ~bit;
}

/* The first waiting slot from `slot` on, round the end; SLOTS when none waits. */
static unsigned waiting_from(const struct schedule *schedule, unsigned slot)
{
    uint64_t bits = schedule->waiting[slot / 64] >> slot % 64 << slot % 64;
    for (unsigned i = 0; i <= SLOT_WORDS; i++) {
        if (bits != 0)
            return (slot / 64 + i) % SLOT_WORDS * 64 + (unsigned)__builtin_ctzll(bits);
        bits = schedule->waiting[(slot / 64 + i + 1) % SLOT_WORDS];
    }
    return SLOTS;
}

static void pass_marks(struct schedule *schedule, struct mark marks[MARKS])
{
    const struct step *step = &schedule->step;
    struct channel *channel = &schedule->channels[step->slot];
    while (channel->marks_passed < channel->marks_made) {
        struct mark *mark = &marks[channel->marks_passed % MARKS];
        if (mark->position_ns > step->from_ns + step->run_ns)
            return;
        mark->time_ns = step->at_ns + (mark->position_ns - step->from_ns);
        channel->marks_passed++;
    }
}

static void carry_out(struct schedule *schedule, struct mark (*marks)[MARKS])
{
    const struct step *step = &schedule->step;
    struct channel *channel = &schedule->channels[step->slot];
    if (marks != NULL)
        pass_marks(schedule, marks[step->slot]);
    channel->completed_ns = step->from_ns + step->run_ns;
    schedule->served = step->slot;
    schedule->slice_used_ns = step->slice_used_ns;
    schedule->busy_ns = step->busy_ns;
    schedule->now_ns = step->at_ns + step->run_ns;
    if (channel->completed_ns == channel->submitted_ns)
        set_waiting(schedule, step->slot, false);
}

void schedule_repair(struct schedule *schedule, struct mark (*marks)[MARKS])
{
    if (!atomic_load_explicit(&schedule->step.pending, memory_order_acquire))
        return;
    carry_out(schedule, marks);
    atomic_store_explicit(&schedule->step.pending, 0, memory_order_release);
}

static uint64_t least(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

static void serve(struct schedule *schedule, uint64_t until_ns, const struct pace *pace)
{
    unsigned slot = schedule->served;
    bool goes_on = schedule_waits(schedule, slot) && schedule->slice_used_ns < pace->slice_ns;
    if (!goes_on)
        slot = waiting_from(schedule, (slot + 1) % SLOTS);
    if (slot == SLOTS) {
        schedule->now_ns = until_ns;
        return;
    }
    const struct channel *channel = &schedule->channels[slot];
    uint64_t used_ns = goes_on ? schedule->slice_used_ns : 0;
    uint64_t run_ns = least(until_ns - schedule->now_ns,
                            channel->submitted_ns - channel->completed_ns);
    if (waiting_from(schedule, (slot + 1) % SLOTS) != slot)
        run_ns = least(run_ns, pace->slice_ns - used_ns);
    struct step *step = &schedule->step;
    step->slot = slot;
    step->from_ns = channel->completed_ns;
    step->run_ns = run_ns;
    step->at_ns = schedule->now_ns;
    step->slice_used_ns = least(used_ns + run_ns, pace->slice_ns);
    step->busy_ns = schedule->busy_ns + run_ns;
    atomic_store_explicit(&step->pending, 1, memory_order_release);
    /* For the compiler is enough: a killed process has done all up to somewhere, in order. */
    atomic_signal_fence(memory_order_seq_cst);
    carry_out(schedule, pace->marks);
    atomic_store_explicit(&step->pending, 0, memory_order_release);
}

static void take_sample(struct schedule *schedule, unsigned slots)
{
    unsigned sample = (unsigned)(schedule->next_sample_ns / SAMPLE_PERIOD_NS % SAMPLES);
    for (unsigned slot = 0; slot < slots; slot++)
        schedule->samples_ns[sample][slot] = schedule->channels[slot].completed_ns;
    schedule->busy_samples_ns[sample] = schedule->busy_ns;
    schedule->next_sample_ns += SAMPLE_PERIOD_NS;
}

/* An idle card's time passes at once, but for what the samples still show. */
static void skip_idle(struct schedule *schedule, uint64_t now_ns)
{
    const uint64_t shown_ns = (uint64_t)SAMPLES * SAMPLE_PERIOD_NS;
    bool idle = waiting_from(schedule, 0) == SLOTS;
    bool before_boot = schedule->now_ns > now_ns + shown_ns; /* the file is older than the boot */
    if (!before_boot && (!idle || now_ns < schedule->now_ns + 2 * shown_ns))
        return;
    schedule->now_ns = (now_ns < shown_ns ? 0 : now_ns - shown_ns) / SAMPLE_PERIOD_NS *
                       SAMPLE_PERIOD_NS;
    schedule->next_sample_ns = schedule->now_ns;
}

void schedule_advance(struct schedule *schedule, uint64_t now_ns, const struct pace *pace)
{
    if (now_ns >= schedule->next_sample_ns || schedule->now_ns > now_ns)
        skip_idle(schedule, now_ns);
    while (schedule->now_ns < now_ns) {
        uint64_t until_ns = least(now_ns, schedule->next_sample_ns);
        if (schedule->now_ns < until_ns)
            serve(schedule, until_ns, pace);
        if (schedule->now_ns >= schedule->next_sample_ns)
            take_sample(schedule, pace->slots);
    }
}

uint64_t schedule_submit(struct schedule *schedule, unsigned slot, uint64_t work_ns)
{
    struct channel *channel = &schedule->channels[slot];
    channel->submitted_ns += work_ns;
    if (channel->submitted_ns > channel->completed_ns)
        set_waiting(schedule, slot, true);
    return channel->submitted_ns;
}

void schedule_drop(struct schedule *schedule, unsigned slot)
{
    schedule->channels[slot].submitted_ns = schedule->channels[slot].completed_ns;
    set_waiting(schedule, slot, false);
}

/* Marks lie in the order of their positions, so those that wait are the last ones. */
bool schedule_mark(struct card_time *time, unsigned slot, uint64_t position_ns)
{
    struct channel *channel = &time->schedule.channels[slot];
    struct mark *marks = time->marks[slot];
    uint64_t place = channel->marks_made;
    while (place > channel->marks_passed && marks[(place - 1) % MARKS].position_ns > position_ns)
        place--;
    if (place > channel->marks_passed && marks[(place - 1) % MARKS].position_ns == position_ns)
        return true;
    if (channel->marks_made - channel->marks_read == MARKS)
        return false;
    for (uint64_t moved = channel->marks_made; moved > place; moved--)
        marks[moved % MARKS] = marks[(moved - 1) % MARKS];
    marks[place % MARKS] = (struct mark){.position_ns = position_ns};
    channel->marks_made++;
    return true;
}

uint64_t schedule_marked(const struct card_time *time, unsigned slot, uint64_t position_ns)
{
    const struct channel *channel = &time->schedule.channels[slot];
    const struct mark *marks = time->marks[slot];
    uint64_t low = channel->marks_made > MARKS ? channel->marks_made - MARKS : 0;
    uint64_t high = channel->marks_passed;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (marks[middle % MARKS].position_ns < position_ns)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < channel->marks_passed && marks[low % MARKS].position_ns == position_ns;
    return found ? marks[low % MARKS].time_ns : 0;
}

void schedule_open(struct schedule *schedule, unsigned slot, uint64_t pid)
{
    struct channel *channel = &schedule->channels[slot];
    if (channel->serial != 0) {
        schedule->ended[schedule->ended_count % ENDED] =
            (struct ended){channel->serial, channel->pid, channel->completed_ns};
        schedule->ended_count++;
    }
    set_waiting(schedule, slot, false);
    *channel = (struct channel){.serial = ++schedule->last_serial, .pid = pid};
    for (unsigned sample = 0; sample < SAMPLES; sample++)
        schedule->samples_ns[sample][slot] = 0;
}
