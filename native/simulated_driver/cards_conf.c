#define _GNU_SOURCE
#include "cards_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml_api.h"

#define MODEL(identifier, ...) {.id = #identifier, __VA_ARGS__},
static const struct model models[] = {
#include "models.def"
};
#undef MODEL

enum { MODEL_COUNT = sizeof models / sizeof models[0], LINE_SIZE = 512 };

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

static bool parse_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)text[0]))
        return false;
    *number = strtoul(text, &end, 10);
    return errno == 0 && *end == '\0' && *number <= most;
}

static int hex_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    return -1;
}

static bool parse_uuid(const char *text, uint8_t bytes[16])
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    unsigned digits = 0;
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i] != '\0'; i++) {
        int digit = hex_digit(text[i]);
        if (form[i] != 'x' ? text[i] != form[i] : digit < 0)
            return false;
        if (form[i] != 'x')
            continue;
        bytes[digits / 2] = (uint8_t)(digits % 2 == 0 ? digit << 4 : bytes[digits / 2] | digit);
        digits++;
    }
    return true;
}

static bool set_driver_version(struct host *host, struct card *card, const char *value)
{
    (void)card;
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof host->driver_version ||
        strspn(value, "0123456789.") != length)
        return false;
    memcpy(host->driver_version, value, length + 1);
    return true;
}

static bool set_cuda_version(struct host *host, struct card *card, const char *value)
{
    (void)card;
    unsigned long number;
    if (!parse_number(value, 99990, &number) || number < 2000)
        return false;
    host->cuda_version = (int)number;
    return true;
}

static bool set_device_nodes(struct host *host, struct card *card, const char *value)
{
    (void)card;
    host->nodes_when_present = strcmp(value, "when_present") == 0;
    return host->nodes_when_present || strcmp(value, "ignored") == 0;
}

static bool set_model(struct host *host, struct card *card, const char *value)
{
    (void)host;
    for (unsigned i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].id, value) == 0)
            card->model = &models[i];
    return card->model != NULL;
}

static bool set_uuid(struct host *host, struct card *card, const char *value)
{
    (void)host;
    if (!parse_uuid(value, card->uuid_bytes))
        return false;
    memcpy(card->uuid, value, strlen(value) + 1);
    return true;
}

static bool set_bus_id(struct host *host, struct card *card, const char *value)
{
    (void)host;
    int end = 0;
    return sscanf(value, "%8x:%2x:%2x.0%n", &card->domain, &card->bus, &card->device, &end) == 3 &&
           end > 0 && value[end] == '\0';
}

static bool set_minor(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 255, &number))
        return false;
    card->minor = (unsigned)number;
    return true;
}

static bool set_memory(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 1UL << 24, &number) || number == 0)
        return false;
    card->memory_bytes = (uint64_t)number * MIB;
    return true;
}

static bool set_context(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 1UL << 16, &number))
        return false;
    card->context_bytes = (uint64_t)number * MIB;
    return true;
}

enum { KEY_DRIVER_VERSION, KEY_CUDA_VERSION, KEY_DEVICE_NODES, KEY_MODEL, KEY_UUID, KEY_BUS_ID,
       KEY_MINOR, KEY_MEMORY, KEY_CONTEXT, KEY_COUNT };

static const struct key {
    const char *name;
    bool of_card, required;
    bool (*set)(struct host *host, struct card *card, const char *value);
    const char *wanted;
} keys[KEY_COUNT] = {
    [KEY_DRIVER_VERSION] = {"driver_version", false, true, set_driver_version,
                            "a version such as 580.126.09"},
    [KEY_CUDA_VERSION] = {"cuda_version", false, true, set_cuda_version,
                          "major * 1000 + minor * 10, such as 13000"},
    [KEY_DEVICE_NODES] = {"device_nodes", false, false, set_device_nodes,
                          "ignored or when_present"},
    [KEY_MODEL] = {"model", true, true, set_model, "A10, T4, L4 or H200"},
    [KEY_UUID] = {"uuid", true, true, set_uuid,
                  "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in lower case hexadecimal"},
    [KEY_BUS_ID] = {"bus_id", true, true, set_bus_id, "a PCI address such as 00000000:00:03.0"},
    [KEY_MINOR] = {"minor", true, true, set_minor, "a number from 0 to 255"},
    [KEY_MEMORY] = {"memory_mib", true, false, set_memory, "a number of MiB above 0"},
    [KEY_CONTEXT] = {"context_mib", true, false, set_context, "a number of MiB up to 65536"},
};

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

bool cards_conf_read(const char *path, struct host *host, struct reason *reason)
{
    struct parser parser = {.path = path, .section_line = 1, .host = host, .reason = reason};
    memset(host, 0, sizeof *host);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(reason->text, REASON_SIZE, "%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    bool good = read_lines(&parser, file);
    fclose(file);
    return good;
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
