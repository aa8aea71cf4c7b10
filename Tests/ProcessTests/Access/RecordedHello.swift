import Foundation
import Spawning

/// The first message of a client's handshake, as somebody between the client and the sequencer can record it.
enum RecordedHello {
    /// A HELLO as a frame.
    private static let frameBytes = 202

    /// Records the greeting and the HELLO of a program that connects to an address.
    static func record(
        _ start: @escaping @Sendable (_ address: String) throws -> Child
    ) async throws -> [UInt8] {
        try await onThread {
            let listener = try HeldPort(isListening: true)
            let child = try start(listener.address)
            defer { child.signal(SIGKILL) }
            let client = try listener.accept()
            defer { close(client) }
            let greeting = HalfOpenFlood.greeting
            guard write(client, greeting, greeting.count) == greeting.count else {
                throw Failure("no greeting: \(systemError())")
            }
            var bytes = [UInt8](repeating: 0, count: greeting.count + frameBytes)
            guard recv(client, &bytes, bytes.count, Int32(MSG_WAITALL)) == bytes.count else {
                throw Failure("no HELLO: \(systemError())")
            }
            return bytes
        }
    }
}
