#include "etcd_partner.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

void put_number(std::string &message, uint64_t number) {
    while (number >= 0x80) {
        message.push_back(char(number | 0x80));
        number >>= 7;
    }
    message.push_back(char(number));
}

void put_bytes(std::string &message, int field, const std::string &bytes) {
    put_number(message, uint64_t(field) << 3 | 2);
    put_number(message, bytes.size());
    message += bytes;
}

// A comparison of a key's value.
std::string compared(const std::string &key, const std::string &value) {
    std::string message("\x10\x03", 2);
    put_bytes(message, 3, key);
    put_bytes(message, 7, value);
    return message;
}

std::string written(const std::string &key, const std::string &value) {
    std::string put, operation;
    put_bytes(put, 1, key);
    put_bytes(put, 2, value);
    put_bytes(operation, 2, put);
    return operation;
}

std::string end_at(uint64_t number) {
    char text[128];
    snprintf(text, sizeof text, "%llu 1 %064llx %016llx", (unsigned long long)number,
        (unsigned long long)number, (unsigned long long)number);
    return text;
}

// Whether the comparisons of the answer succeeded: field 2 of the message, whose field 1 is a header.
bool has_succeeded(const std::string &answer) {
    size_t place = 0;
    if (answer.size() > 2 && answer[0] == 0x0A) place = 2 + size_t(uint8_t(answer[1]));
    return answer.size() > place + 1 && answer[place] == 0x10 && answer[place + 1] == 1;
}

class Client {
public:
    explicit Client(const char *address)
        : stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}

    // Returns whether etcd answered, with its answer.
    bool transact(const std::string &request, std::string &answer) {
        grpc::ClientContext context;
        context.set_wait_for_ready(true);
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
        grpc::Slice slice(request);
        grpc::ByteBuffer input(&slice, 1), output;
        auto call = stub.PrepareUnaryCall(&context, "/etcdserverpb.KV/Txn", input, &queue);
        call->StartCall();
        grpc::Status status;
        call->Finish(&output, &status, this);
        void *tag = nullptr;
        bool is_well = false;
        if (!queue.Next(&tag, &is_well) || !status.ok()) {
            words = status.error_message();
            return false;
        }
        std::vector<grpc::Slice> slices;
        output.Dump(&slices);
        answer.clear();
        for (const auto &part : slices) answer.append((const char *)part.begin(), part.size());
        return true;
    }

    std::string words;

private:
    grpc::GenericStub stub;
    grpc::CompletionQueue queue;
};

}  // namespace

extern "C" const char *etcd_partner_append(
    const char *address, const char *prefix, uint64_t count, size_t bytes, uint64_t *nanoseconds) {
    static thread_local std::string failure;
    Client client(address);
    const std::string folder(prefix), epoch = folder + "/epoch", end = folder + "/end";
    const std::string term = "1 0123456789abcdef0123456789abcdef 0123456789abcdef";
    std::string request, answer, value(bytes, 'x');
    put_bytes(request, 2, written(epoch, term));
    put_bytes(request, 2, written(end, end_at(0)));
    if (!client.transact(request, answer)) {
        failure = client.words;
        return failure.c_str();
    }
    for (uint64_t index = 0; index < count; index += 1) {
        auto begun = std::chrono::steady_clock::now();
        char key[32];
        snprintf(key, sizeof key, "/commits/%016llx", (unsigned long long)index + 1);
        request.clear();
        put_bytes(request, 1, compared(epoch, term));
        put_bytes(request, 1, compared(end, end_at(index)));
        put_bytes(request, 2, written(folder + key, value));
        put_bytes(request, 2, written(end, end_at(index + 1)));
        if (!client.transact(request, answer) || !has_succeeded(answer)) {
            failure = "a transaction failed: " + client.words;
            return failure.c_str();
        }
        nanoseconds[index] = uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::steady_clock::now() - begun).count());
    }
    return nullptr;
}
