#pragma once
#include <spawn.h>

#if defined(__GLIBC__)
// glibc declares it only if all extensions are wanted.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
#endif

// Lets a process to be spawned inherit no descriptor from a number on. On Darwin, POSIX_SPAWN_CLOEXEC_DEFAULT does
// that.
static inline int conflux_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
#if defined(__GLIBC__)
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
#else
    (void)actions;
    (void)first;
    return 0;
#endif
}
