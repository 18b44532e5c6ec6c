#define _GNU_SOURCE
#include "cards_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cards_keys.h"

enum { LINE_SIZE = 512, SLICE_NS = 2000000, WINDOW_SAMPLES = 6 };

struct parser {
    const char *path;
    unsigned line;
    unsigned section_line;
    struct host *host;
    struct reason *reason;
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct parser *parser, unsigned line,
                                                         const char *format, ...)
{
    char text[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(parser->reason->text, REASON_SIZE, "%.200s:%u: %.300s", parser->path, line, text);
    return false;
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* The keys that were given, as bits, in the part of the file that ends here. */
static bool finish_section(struct parser *parser, unsigned given, bool of_card)
{
    for (unsigned i = 0; i < KEY_COUNT; i++)
        if (keys[i].of_card == of_card && keys[i].required && !(given & 1u << i))
            return refuse(parser, parser->section_line, "%s is missing: give %s",
                          keys[i].name, keys[i].wanted);
    if (!of_card)
        return true;
    struct card *card = &parser->host->cards[parser->host->card_count - 1];
    if (card->memory_bytes == 0)
        card->memory_bytes = (uint64_t)card->model->memory_mib * MIB;
    for (const struct card *other = parser->host->cards; other < card; other++)
        if (strcmp(other->uuid, card->uuid) == 0 || other->minor == card->minor ||
            (other->domain == card->domain && other->bus == card->bus &&
             other->device == card->device))
            return refuse(parser, parser->section_line,
                          "this card has the uuid, bus_id or minor of an earlier one");
    return true;
}

static bool start_card(struct parser *parser, unsigned *given, bool in_card)
{
    if (!finish_section(parser, *given, in_card))
        return false;
    if (parser->host->card_count == CARDS_MAX)
        return refuse(parser, parser->line, "more than %d cards", CARDS_MAX);
    parser->host->card_count++;
    parser->section_line = parser->line;
    *given = 0;
    return true;
}

static bool read_setting(struct parser *parser, char *text, unsigned *given, bool in_card)
{
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return refuse(parser, parser->line, "'%s' is neither [card] nor KEY = VALUE", text);
    *equals = '\0';
    const char *name = trim(text), *value = trim(equals + 1);
    struct card *card = in_card ? &parser->host->cards[parser->host->card_count - 1] : NULL;
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys[i].of_card != in_card || strcmp(keys[i].name, name) != 0)
            continue;
        *given |= 1u << i;
        if (keys[i].set(parser->host, card, value))
            return true;
        return refuse(parser, parser->line, "%s = '%s': give %s", name, value, keys[i].wanted);
    }
    return refuse(parser, parser->line, "'%s' is not a key %s", name,
                  in_card ? "of a [card]" : "before the first [card]");
}

static bool read_lines(struct parser *parser, FILE *file)
{
    char line[LINE_SIZE];
    unsigned given = 0;
    bool in_card = false;
    while (fgets(line, sizeof line, file) != NULL) {
        parser->line++;
        line[strcspn(line, "#")] = '\0';
        char *text = trim(line);
        if (*text == '\0')
            continue;
        if (strcmp(text, "[card]") == 0) {
            if (!start_card(parser, &given, in_card))
                return false;
            in_card = true;
        } else if (!read_setting(parser, text, &given, in_card)) {
            return false;
        }
    }
    return finish_section(parser, given, in_card);
}

/* What goes before the file, for one process. */
static bool read_environment(struct parser *parser)
{
    char settings[LINE_SIZE], *rest = NULL;
    unsigned given = 0;
    const char *kernel_us = getenv("CASABA_SIMULATED_KERNEL_US");
    const char *faults = getenv("CASABA_SIMULATED_FAULTS");
    parser->path = "environment";
    parser->line = 0;
    if (kernel_us != NULL && !keys[KEY_KERNEL].set(parser->host, NULL, kernel_us))
        return refuse(parser, 0, "CASABA_SIMULATED_KERNEL_US = '%s': give %s", kernel_us,
                      keys[KEY_KERNEL].wanted);
    snprintf(settings, sizeof settings, "%s", faults == NULL ? "" : faults);
    for (char *setting = strtok_r(settings, ";", &rest); setting != NULL;
         setting = strtok_r(NULL, ";", &rest))
        if (!read_setting(parser, setting, &given, false))
            return false;
    return true;
}

bool cards_conf_read(const char *path, struct host *host, struct reason *reason)
{
    struct parser parser = {.path = path, .section_line = 1, .host = host, .reason = reason};
    memset(host, 0, sizeof *host);
    host->slice_ns = SLICE_NS;
    host->window_samples = WINDOW_SAMPLES;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(reason->text, REASON_SIZE, "%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    bool good = read_lines(&parser, file);
    fclose(file);
    return good && read_environment(&parser);
}

static bool has_node(const struct card *card)
{
    char path[32];
    snprintf(path, sizeof path, "/dev/nvidia%u", card->minor);
    return access(path, F_OK) == 0;
}

bool card_is_visible(const struct host *host, unsigned card)
{
    if (!host->nodes_when_present || has_node(&host->cards[card]))
        return true;
    for (unsigned i = 0; i < host->card_count; i++)
        if (has_node(&host->cards[i]))
            return false;
    return true;
}

int card_by_uuid(const struct host *host, const char *uuid)
{
    int found = -1;
    size_t length = strlen(uuid);
    for (unsigned i = 0; i < host->card_count; i++) {
        if (strncmp(host->cards[i].uuid, uuid, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}
