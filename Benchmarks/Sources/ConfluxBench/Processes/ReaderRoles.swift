import ConfluxSequencer
import ConfluxZeroMQ
import Foundation

/// Observers that read the log from its first entry and keep nothing, all on one thread.
enum ReaderRoles {
    private struct Reader {
        let socket: ClientSocket
        let token: Poller.Token
        var next = SequenceNumber(1)
        var speaker = Speaker.unwelcomed
    }

    static func readers(address: String, count: Int) throws {
        // In reality they would run on other processors.
        guard nice(19) > 0 else {
            throw BenchError("the priority of the readers can't be lowered")
        }
        let poller = Poller(waker: try Waker())
        var readers: [Reader] = []
        for _ in 0..<count {
            let socket = try ClientSocket(.dealer)
            try socket.connect(Endpoint(address))
            readers.append(Reader(socket: socket, token: try poller.add(socket)))
        }
        var waiting = Set(readers.indices)
        while true {
            let readiness = try poller.wait(timeout: nil)
            for index in readers.indices where readiness.isReadable(readers[index].token) {
                while let event = try readers[index].socket.receive() {
                    if case .connected = event { try greet(readers[index].socket) }
                    guard case .message(let frame) = event else { continue }
                    if try take(frame, &readers[index]), waiting.remove(index) != nil,
                        waiting.isEmpty
                    {
                        Control.tell(.ready)
                    }
                }
            }
        }
    }

    private static func greet(_ socket: ClientSocket) throws {
        _ = try socket.send(
            Frame.encode(
                .hello(Hello(request: 1, nonce: .random(), name: nil, role: .observer))
                    as NodeMessage,
                by: .unwelcomed))
    }

    /// - Returns: Whether the frame had entries.
    private static func take(_ frame: Bytes, _ reader: inout Reader) throws -> Bool {
        var acknowledged: UInt64 = 0
        var hasEntries = false
        switch try Frame.decodeSequencerMessage(frame) {
        case .welcome(let welcome):
            reader.speaker = Speaker(
                epoch: try Frame.header(of: frame).epoch, session: welcome.incarnation)
        case .entries(let entries):
            acknowledged = entries.deliveryTag
            hasEntries = true
            guard let body = entries.commits.last, body.count >= 52 else {
                reader.next = SequenceNumber(1)
                break
            }
            // The fields before the blocks: log, two epochs, the first number, time and count.
            let first = number(body, at: 32, UInt64.self)
            reader.next = SequenceNumber(first + UInt64(number(body, at: 48, UInt32.self)))
            if reader.next > entries.last { reader.next = SequenceNumber(1) }
        default: return false
        }
        _ = try reader.socket.send(
            Frame.encode(
                .fetch(
                    Fetch(
                        request: reader.next.rawValue, from: reader.next, limitBytes: 4 << 20,
                        acknowledged: acknowledged)) as NodeMessage, by: reader.speaker))
        return hasEntries
    }

    private static func number<Value: FixedWidthInteger>(
        _ bytes: Bytes, at offset: Int, _: Value.Type
    ) -> Value {
        bytes.withUnsafeBytes {
            Value(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Value.self))
        }
    }
}
