#pragma once
#include <stddef.h>
#include <stdint.h>

// Appends to etcd over gRPC in C++, by the transactions that a log makes: each compares two keys and puts two,
// one of them with `bytes` bytes. They follow each other, `count` times; nanoseconds each. Returns a null pointer,
// or what failed.
#ifdef __cplusplus
extern "C"
#endif
const char *etcd_partner_append(
    const char *address, const char *prefix, uint64_t count, size_t bytes, uint64_t *nanoseconds);
