#ifndef CONFLUX_CONSOLE_PAGE_H
#define CONFLUX_CONSOLE_PAGE_H

#include <stddef.h>

// A file of the console's page, as it is served.
struct conflux_console_file {
    const char *path;
    const unsigned char *bytes;
    size_t count;
};

// The file with an index; NULL behind the last one.
const struct conflux_console_file *conflux_console_file_at(size_t index);

#endif
