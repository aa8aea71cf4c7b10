#pragma once
#include <stddef.h>
#include <stdint.h>

// Appends to etcd over gRPC in C++, with the transactions that a log makes: each compares two keys and puts two,
// one of them with `bytes` bytes. Makes `count` of them, one after the other, and notes the nanoseconds of each.
// Returns a null pointer, or a text that says what failed.
#ifdef __cplusplus
extern "C"
#endif
const char *etcd_partner_append(
    const char *address, const char *prefix, uint64_t count, size_t bytes, uint64_t *nanoseconds);
