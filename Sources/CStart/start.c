#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A program may be started with standard input, output or error closed. The next descriptor that it opens would take
// that number, and results would go into a socket or a database. Swift's runtime opens one before an asynchronous
// main runs, hence a constructor.

// Puts /dev/null where a standard descriptor is closed, opened such that what the program does with a standard
// descriptor fails as if it were closed: reading of 0, and writing to 1 and 2.
__attribute__((constructor)) static void conflux_fill_standard_descriptors(void) {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number += 1) {
        if (fcntl(number, F_GETFD) >= 0) continue;
        // The system takes the lowest free number, which is this one.
        if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number) {
            dprintf(
                STDERR_FILENO, "descriptor %d is closed, and /dev/null can't be opened: %s\n", number,
                strerror(errno));
            // The exit code of a program that fails itself.
            _exit(70);
        }
    }
}
