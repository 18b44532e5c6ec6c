#include "claim_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "layouts.h"
#include "message.h"

struct names {
    char **list;
    size_t count;
};

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(struct names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->list[i]);
    free(names->list);
    *names = (struct names){0};
}

static bool add_name(struct names *names, const char *name) {
    if (name[0] == '.') return true;
    char **list = realloc(names->list, (names->count + 1) * sizeof *list);
    if (!list) return false;
    names->list = list;
    list[names->count] = strdup(name);
    return list[names->count] && ++names->count;
}

static bool read_names(DIR *directory, struct names *names) {
    errno = 0;
    for (const struct dirent *entry; (entry = readdir(directory));)
        if (!add_name(names, entry->d_name)) return false;
    return errno == 0;
}

/* What is not there, or no folder, has no names. */
static bool list_folder(const char *path, struct names *names) {
    *names = (struct names){0};
    DIR *directory = opendir(path);
    if (!directory && (errno == ENOENT || errno == ENOTDIR)) return true;
    bool done = directory && read_names(directory, names);
    if (!done) message_refusal(path, "cannot be listed: %s; make it readable", strerror(errno));
    if (directory) closedir(directory);
    if (done && names->count) qsort(names->list, names->count, sizeof *names->list, compare);
    if (!done) free_names(names);
    return done;
}

static bool join(char path[MAX_BUDGET_PATH], const char *folder, const char *name) {
    int length = snprintf(path, MAX_BUDGET_PATH, "%s/%s", folder, name);
    if (length >= 0 && length < MAX_BUDGET_PATH) return true;
    message_refusal(folder, "%d bytes is too long a path, at most %d; choose a shorter run folder",
                    length, MAX_BUDGET_PATH - 1);
    return false;
}

/* Calls `visit` with every path `depth` levels below a folder. */
static bool visit_below(const char *folder, int depth, bool (*visit)(const char *path)) {
    if (depth == 0) return visit(folder);
    struct names names;
    if (!list_folder(folder, &names)) return false;
    bool going_on = true;
    for (size_t i = 0; going_on && i < names.count; i++) {
        char path[MAX_BUDGET_PATH];
        going_on = join(path, folder, names.list[i]) && visit_below(path, depth - 1, visit);
    }
    free_names(&names);
    return going_on;
}

static bool names_guard(char *text) {
    char *rest;
    for (char *word = strtok_r(text, " \t\n:", &rest); word;
         word = strtok_r(NULL, " \t\n:", &rest)) {
        const char *slash = strrchr(word, '/');
        if (strcmp(slash ? slash + 1 : word, PATH_GUARD_LIBRARY) == 0) return true;
    }
    return false;
}

/* In a container the agent's mount on this file loads the guard; there the environment, which the
 * tenant writes, has no say. */
static bool preloaded_by_file(void) {
    char text[4096];
    int descriptor = open(PATH_PRELOAD_FILE, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    ssize_t bytes = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (bytes < 0) return false;
    text[bytes] = 0;
    return names_guard(text);
}

static const char *run_folder(void) {
    const char *chosen = secure_getenv("CASABA_RUN_DIR");
    return chosen && *chosen && !preloaded_by_file() ? chosen : PATH_RUN_DIR;
}

bool claim_folders_visit(bool (*visit)(const char *folder)) {
    char claims[MAX_BUDGET_PATH];
    return join(claims, run_folder(), PATH_CLAIMS) && visit_below(claims, 2, visit);
}
