import CPartner
import Foundation

/// The processes of plain libzmq, in C.
enum PartnerRoles {
    private static func check(_ failure: Int32, _ attempt: String) throws {
        guard failure == 0 else {
            throw BenchError("\(attempt): \(String(cString: strerror(failure)))")
        }
    }

    static func sequencer(path: String?, zeroedBytes: Int, subscribers: Int) throws {
        var sequencer = partner_sequencer()
        try check(partner_sequencer_open(&sequencer, path, zeroedBytes), "opening")
        Control.tell(
            .listening([text(of: &sequencer.input_address), text(of: &sequencer.output_address)]))
        try check(partner_sequencer_await(&sequencer, Int32(subscribers)), "subscriptions")
        Control.tell(.ready)
        try check(partner_sequencer_run(&sequencer), "serving")
    }

    private static func text<Characters>(of characters: inout Characters) -> String {
        withUnsafeBytes(of: &characters) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    private static func withClient(
        input: String?, output: String?, _ body: (inout partner_client) throws -> Void
    ) throws {
        var client = partner_client()
        defer { partner_client_close(&client) }
        try check(partner_client_open(&client, input, output), "connecting")
        try body(&client)
    }

    static func producer(input: String, producer: Int, count: Int, frameActions: Int) throws {
        try withClient(input: input, output: nil) { client in
            Control.awaitStart()
            let start = monotonicNanoseconds()
            try check(
                partner_client_produce(
                    &client, UInt64(producer), UInt64(count), UInt32(frameActions)),
                "sending")
            let end = monotonicNanoseconds()
            Control.tell(.produced(start: start, dispatched: end, settled: end))
        }
    }

    static func replica(output: String, count: Int) throws {
        try withClient(input: nil, output: output) { client in
            Control.tell(.ready)
            var order = partner_order()
            try check(partner_client_receive(&client, UInt64(count), &order), "receiving")
            Control.tell(
                .replicated(
                    Sighting(
                        count: order.count, hash: order.hash, disorders: order.disorders,
                        end: monotonicNanoseconds())))
        }
    }

    static func roundTrips(input: String, output: String, count: Int) throws {
        try withClient(input: input, output: output) { client in
            Control.awaitStart()
            var times = [UInt64](repeating: 0, count: Role.warmUpCount + count)
            try check(
                partner_client_round_trips(&client, UInt64(times.count), &times), "round trips")
            times.removeFirst(Role.warmUpCount)
            Control.tell(.roundTrips(applied: times, receipt: times))
        }
    }
}
