import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// A failure of libzmq.
struct LibraryFailure: Error {
    /// The error number.
    let number: Int32
    /// What was attempted.
    let attempt: String

    /// The present error.
    static func now(_ attempt: String) -> LibraryFailure {
        LibraryFailure(number: zmq_errno(), attempt: attempt)
    }

    /// What happened, in the library's words.
    var message: String { "\(attempt) failed: \(String(shownCString: zmq_strerror(number)))" }
}

/// The sockets of libzmq of one gateway belong together. It may be used on any thread.
final class LibraryContext: Sendable {
    // libzmq's contexts may be used on any thread.
    fileprivate nonisolated(unsafe) let pointer: UnsafeMutableRawPointer

    init() {
        guard let pointer = zmq_ctx_new() else { fatalError("there is no memory for libzmq") }
        self.pointer = pointer
    }

    /// Waits until every socket is closed.
    deinit { zmq_ctx_term(pointer) }
}

/// A socket of libzmq. Used by one thread at a time.
final class LibrarySocket {
    let pointer: UnsafeMutableRawPointer
    private let context: LibraryContext
    private var isClosed = false

    /// - Parameters:
    ///   - kind: `ZMQ_XPUB`, `ZMQ_ROUTER` …
    ///   - context: Its context.
    /// - Throws: If there are too many sockets.
    init(_ kind: Int32, in context: LibraryContext) throws(LibraryFailure) {
        guard let pointer = zmq_socket(context.pointer, kind) else {
            throw .now("Making a socket")
        }
        self.pointer = pointer
        self.context = context
        // What nobody has read when the gateway ends is lost: a reader finds its gap by the numbers.
        try set(ZMQ_LINGER, Int32(0))
    }

    deinit { close() }

    /// Ends its connections. It is not used after that.
    func close() {
        if !isClosed { zmq_close(pointer) }
        isClosed = true
    }

    func set(_ option: Int32, _ value: some FixedWidthInteger) throws(LibraryFailure) {
        try withUnsafeBytes(of: value) { (bytes) throws(LibraryFailure) in
            try set(option, bytes: bytes)
        }
    }

    func set(_ option: Int32, bytes: UnsafeRawBufferPointer) throws(LibraryFailure) {
        guard zmq_setsockopt(pointer, option, bytes.baseAddress, bytes.count) == 0 else {
            throw .now("Setting option \(option) of a socket")
        }
    }

    func set(_ option: Int32, _ bytes: [UInt8]) throws(LibraryFailure) {
        let failure = bytes.withUnsafeBytes { bytes -> LibraryFailure? in
            do throws(LibraryFailure) {
                try set(option, bytes: bytes)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Lets the system notice a peer that is gone. libzmq's heartbeats would end the connection of a slow subscriber, and
    /// may abort the process: see decision 22.
    func keepAlive() throws(LibraryFailure) {
        try set(ZMQ_TCP_KEEPALIVE, Int32(1))
        try set(ZMQ_TCP_KEEPALIVE_IDLE, Int32(15))
        try set(ZMQ_TCP_KEEPALIVE_INTVL, Int32(5))
        try set(ZMQ_TCP_KEEPALIVE_CNT, Int32(3))
    }

    /// - Returns: The address, with the port that the system chose if it was 0.
    func bind(_ text: String) throws(LibraryFailure) -> String {
        let address = Endpoint.whole(text)
        try allowIPv6(if: address)
        let isFree = address.hasPrefix("tcp://") && address.hasSuffix(":0")
        guard zmq_bind(pointer, isFree ? "\(address.dropLast())*" : address) == 0 else {
            throw .now("Binding \(address)")
        }
        return endpoint
    }

    func connect(_ address: String) throws(LibraryFailure) {
        try allowIPv6(if: address)
        guard zmq_connect(pointer, address) == 0 else { throw .now("Connecting to \(address)") }
    }

    /// Only for such an address: with it, all addresses are printed in the form of IPv6.
    private func allowIPv6(if address: String) throws(LibraryFailure) {
        let isIPv6 = address.hasPrefix("tcp://[")
        if isIPv6 { try set(ZMQ_IPV6, Int32(1)) }
    }

    /// Has the library report what happens to the socket's connections.
    ///
    /// - Parameters:
    ///   - events: `ZMQ_EVENT_DISCONNECTED` …
    ///   - name: A name that no other monitor has in this context.
    /// - Returns: The socket that the reports come from.
    /// - Throws: If the name is taken, or there are too many sockets.
    func monitor(_ events: Int32, name: String) throws(LibraryFailure) -> LibrarySocket {
        let address = "inproc://\(name)"
        guard zmq_socket_monitor(pointer, address, events) == 0 else { throw .now("A monitor") }
        let monitor = try LibrarySocket(ZMQ_PAIR, in: context)
        try monitor.connect(address)
        return monitor
    }

    /// Nothing more is reported of the socket.
    func endMonitor() { _ = zmq_socket_monitor(pointer, nil, 0) }

    /// The address to which it was bound last.
    private var endpoint: String {
        var bytes = [CChar](repeating: 0, count: 1_024)
        var count = bytes.count
        zmq_getsockopt(pointer, ZMQ_LAST_ENDPOINT, &bytes, &count)
        return String(shown: bytes.prefix(max(0, count - 1)).map { UInt8(bitPattern: $0) })
    }

    // MARK: Messages

    /// Takes the messages that have arrived, and sends each on as it is, without a copy.
    ///
    /// - Parameters:
    ///   - other: Where they go; nil to discard them.
    ///   - limit: The most parts of messages that are taken.
    /// - Returns: How many were taken.
    func forward(to other: LibrarySocket?, limit: Int) -> Int {
        var count = 0
        var part = zmq_msg_t()
        zmq_msg_init(&part)
        defer { zmq_msg_close(&part) }
        while count < limit, zmq_msg_recv(&part, pointer, ZMQ_DONTWAIT) >= 0 {
            count += 1
            guard let other else { continue }
            let more = zmq_msg_more(&part) != 0 ? ZMQ_SNDMORE : 0
            // A publisher never refuses a message: it drops it for those who are too slow.
            zmq_msg_send(&part, other.pointer, more | ZMQ_DONTWAIT)
        }
        return count
    }

    /// Sends a message, without waiting.
    ///
    /// - Returns: Whether the library took it. It takes all parts or none.
    @discardableResult
    func send(_ parts: [[UInt8]]) -> Bool {
        for (index, part) in parts.enumerated() {
            let more = index < parts.count - 1 ? ZMQ_SNDMORE : 0
            guard zmq_send(pointer, part, part.count, more | ZMQ_DONTWAIT) >= 0 else {
                return false
            }
        }
        return true
    }

    /// A received message.
    struct Message {
        var parts: [[UInt8]]
        /// What the authentication said of the sender; nil without keys.
        var userID: String?
        /// Whether parts were left out since there are too many, or they are too long together.
        var isCut = false
    }

    /// Receives a message, without waiting.
    ///
    /// - Parameters:
    ///   - partsMax: The most parts that are kept.
    ///   - bytesMax: The most bytes of all parts that are kept.
    /// - Returns: nil if none has arrived.
    func receive(partsMax: Int, bytesMax: Int) -> Message? {
        var message = Message(parts: [])
        var byteCount = 0
        while true {
            var part = zmq_msg_t()
            zmq_msg_init(&part)
            defer { zmq_msg_close(&part) }
            guard zmq_msg_recv(&part, pointer, ZMQ_DONTWAIT) >= 0 else { return nil }
            // A part that the socket has added, such as a routing id, has no sender.
            if message.userID == nil, let id = zmq_msg_gets(&part, "User-Id") {
                message.userID = String(shownCString: id)
            }
            let size = zmq_msg_size(&part)
            byteCount += size
            if message.parts.count < partsMax, byteCount <= bytesMax {
                message.parts.append(
                    [UInt8](UnsafeRawBufferPointer(start: zmq_msg_data(&part), count: size)))
            } else {
                message.isCut = true
            }
            if zmq_msg_more(&part) == 0 { return message }
        }
    }
}

extension Waker {
    /// Waits until one of libzmq's sockets has something, another thread wakes this one, or a time has come.
    ///
    /// - Parameters:
    ///   - sockets: The sockets.
    ///   - deadline: The time, monotonic.
    ///   - mayWait: Whether to wait at all. Otherwise it only looks.
    func poll(
        for sockets: [UnsafeMutableRawPointer], until deadline: Duration, mayWait: Bool = true
    ) {
        var items = sockets.map {
            zmq_pollitem_t(socket: $0, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0)
        }
        items.append(
            zmq_pollitem_t(socket: nil, fd: readEnd, events: Int16(ZMQ_POLLIN), revents: 0))
        let pause = (deadline - Moment.now.monotonic) / .milliseconds(1)
        let timeout = beginSleep() && mayWait ? max(0, pause.rounded(.up)) : 0
        _ = zmq_poll(&items, Int32(items.count), Int(timeout))
        _ = endSleep(isSignalled: items.last?.revents != 0)
    }
}
