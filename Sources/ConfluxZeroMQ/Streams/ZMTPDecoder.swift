import ConfluxVocabulary

/// Decodes the bytes of one connection, in whatever pieces they arrive.
///
/// It keeps only the incomplete frame. Without a pool it reserves memory only for bytes that have
/// arrived, whatever length the frame announces; with a pool it may reserve the whole frame's, up
/// to ``BufferPool/bufferBytesMax``.
struct ZMTPDecoder {
    /// What was decoded.
    enum Event: Equatable {
        /// The handshake continues: send the peer these bytes.
        case answer([UInt8])
        /// The peer has proved which key it has. Admit it with ``ZMTPDecoder/admit()``, or end its
        /// connection.
        case identified(CurvePublicKey)
        /// A message of one frame.
        case message(Bytes)
        /// A message of this many frames, which was discarded.
        case malformed(frames: Int)
        /// The peer asks for a pong with these bytes.
        case ping(Bytes)
        /// A command of ZMTP 3.1 that begins or ends a subscription to a prefix.
        case subscription(isOn: Bool, prefix: Bytes)
    }

    private enum Phase { case greeting, handshake, admission, traffic }

    private let type: ZMTP.SocketType
    private let messageBytesMax: Int
    /// The session that opens and seals messages; nil if connections are not encrypted.
    let curve: CurveSession?
    private var phase = Phase.greeting
    /// What has arrived of the greeting, or of the incomplete frame with its header.
    private var unit = PartialFrame()
    /// Reuses the memory of large frames.
    private let pool: BufferPool?
    /// How many frames of an incomplete message of several frames were discarded.
    private var framesPassed = 0
    /// If fewer bytes are missing, they are received together with those of the next frame.
    private static let directBytesMin = 16 << 10
    /// A message of more frames than this ends the connection: no peer sends one by mistake.
    static let framesMax = 64

    /// Makes a decoder for a new connection.
    ///
    /// - Parameters:
    ///   - type: The type of this side's socket.
    ///   - messageBytesMax: The most bytes of one message.
    ///   - curve: The session that opens and seals messages, if connections are encrypted.
    ///   - pool: Reuses the memory of earlier frames; nil for new memory each time.
    init(
        _ type: ZMTP.SocketType, messageBytesMax: Int, curve: CurveSession? = nil,
        pool: BufferPool? = nil
    ) {
        self.type = type
        self.messageBytesMax = messageBytesMax + (curve == nil ? 0 : CurveSession.overheadBytes)
        self.curve = curve
        self.pool = pool
    }

    /// What this side sends first.
    var greeting: [UInt8] { ZMTP.greeting(mechanism, isServing: type.isServing) }

    private var mechanism: ZMTP.Mechanism { curve == nil ? .null : .curve }

    /// Admits the peer, which has proved its key: from now on it may send messages.
    ///
    /// - Returns: The command to answer with; nil if the peer has not proved a key.
    mutating func admit() -> [UInt8]? {
        guard phase == .admission, let curve else { return nil }
        phase = .traffic
        return curve.ready(ZMTP.metadata(type))
    }

    /// How many bytes are reserved for the incomplete frame.
    var heldBytes: Int { unit.heldBytes }

    /// Whether the handshake is complete.
    var isReady: Bool { phase == .traffic }

    /// Whether the peer has sent its greeting.
    var isGreeted: Bool { phase != .greeting }

    /// Receives bytes of a large frame where they stay, so that they are not copied. Then call
    /// ``decode(_:into:)``, even without other bytes: the frame may be complete.
    ///
    /// - Parameter receive: Writes bytes and returns how many; not more than 0 if there are none.
    /// - Returns: How much room there was, and what `receive` returned; nil if it was not called, since little of a
    ///   large frame has arrived, or is missing.
    mutating func receive(
        _ receive: (UnsafeMutableRawBufferPointer) -> Int
    ) -> (room: Int, count: Int)? {
        // The header was checked when it arrived.
        guard phase == .traffic, unit.count >= Self.directBytesMin,
            let needed = try? neededBytes(),
            case let missing = needed - unit.count, missing >= Self.directBytesMin
        else { return nil }
        var room = 0
        let count = unit.append(missing: missing) {
            room = $0.count
            return receive($0)
        }
        return (room, count)
    }

    /// Takes the next bytes.
    ///
    /// - Parameters:
    ///   - input: The bytes. They are copied, never kept by reference.
    ///   - events: What the bytes complete is appended here, even if this throws.
    /// - Throws: ``ZMTPFault`` if the peer violated the protocol or a bound; the connection must end.
    mutating func decode(
        _ input: UnsafeRawBufferPointer, into events: inout [Event]
    ) throws(ZMTPFault) {
        var rest = input
        while true {
            if unit.isEmpty, phase == .traffic, let layout = try readLayout(of: rest) {
                if rest.count >= layout.wholeBytes {
                    // Most frames arrive whole, and are copied only once.
                    try takeWhole(rest, layout, into: &events)
                    rest = UnsafeRawBufferPointer(rebasing: rest[layout.wholeBytes...])
                    continue
                }
                if let pool {
                    unit = PartialFrame(memory: pool.take(byteCount: layout.wholeBytes))
                }
            }
            let needed = try neededBytes()
            if unit.count < needed {
                let count = min(needed - unit.count, rest.count)
                guard count > 0 else { return }
                unit.append(
                    UnsafeRawBufferPointer(rebasing: rest[..<count]), missing: needed - unit.count)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                continue
            }
            let whole = unit.take()
            if phase == .greeting {
                try checkGreeting(whole)
                phase = .handshake
                try beginHandshake(into: &events)
            } else {
                let headerBytes = whole[0] & ZMTP.longFlag == 0 ? 2 : ZMTP.headerBytesMax
                pool?.keep(whole)
                try take(whole[headerBytes...], flags: whole[0], into: &events)
            }
        }
    }

    private mutating func takeWhole(
        _ input: UnsafeRawBufferPointer, _ layout: Layout, into events: inout [Event]
    ) throws(ZMTPFault) {
        let body = UnsafeRawBufferPointer(
            rebasing: input[layout.headerBytes..<layout.wholeBytes])
        var frame = pool?.take(byteCount: body.count) ?? []
        if frame.capacity == 0 {
            frame = [UInt8](body)
        } else {
            frame.append(contentsOf: body)
        }
        pool?.keep(frame)
        try take(frame[...], flags: input[0], into: &events)
    }

    private func beginHandshake(into events: inout [Event]) throws(ZMTPFault) {
        // A serving side answers: so it can refuse a peer before that peer takes the handshake for complete.
        guard !type.isServing else { return }
        if let curve {
            events.append(.answer(try curve.hello()))
        } else {
            events.append(.answer(ready))
        }
    }

    /// The command that ends the handshake without CURVE.
    private var ready: [UInt8] { ZMTP.command("READY", ZMTP.metadata(type)) }

    // MARK: Frames

    private struct Layout {
        let headerBytes: Int
        let wholeBytes: Int
    }

    /// How many bytes `unit` needs for the next step: a header, or the whole unit.
    private func neededBytes() throws(ZMTPFault) -> Int {
        if phase == .greeting {
            if let first = unit.beginning.first, first != 0xFF {
                throw ZMTPFault("a greeting that is not of ZMTP 3", failure: .stranger)
            }
            return ZMTP.greetingBytes
        }
        let layout: Layout? = try unit.beginning.withRawBytes { bytes throws(ZMTPFault) in
            try readLayout(of: bytes)
        }
        return layout?.wholeBytes ?? (unit.count < 2 ? 2 : ZMTP.headerBytesMax)
    }

    /// - Returns: The layout; nil if the header is incomplete.
    private func readLayout(of bytes: UnsafeRawBufferPointer) throws(ZMTPFault) -> Layout? {
        guard let flags = bytes.first else { return nil }
        let isCommand = flags & ZMTP.commandFlag != 0
        guard flags & ~(ZMTP.moreFlag | ZMTP.longFlag | ZMTP.commandFlag) == 0,
            !(isCommand && flags & ZMTP.moreFlag != 0), isCommand || phase == .traffic
        else { throw ZMTPFault("a frame with the flags \(flags)") }
        let headerBytes = flags & ZMTP.longFlag == 0 ? 2 : ZMTP.headerBytesMax
        guard bytes.count >= headerBytes else { return nil }
        let size = bytes[1..<headerBytes].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let most = isCommand ? ZMTP.commandBytesMax : messageBytesMax
        guard size <= UInt64(most) else {
            throw ZMTPFault("a frame of \(size) bytes, where \(most) are allowed")
        }
        return Layout(headerBytes: headerBytes, wholeBytes: headerBytes + Int(size))
    }

    private mutating func take(
        _ frame: Bytes, flags frameFlags: UInt8, into events: inout [Event]
    ) throws(ZMTPFault) {
        var (flags, body) = (frameFlags, frame)
        if phase == .traffic, let curve {
            guard frameFlags & (ZMTP.commandFlag | ZMTP.moreFlag) == 0 else {
                throw ZMTPFault("a frame that is not sealed")
            }
            let content = try curve.open(frame)
            flags =
                (content.flags & 1) * ZMTP.moreFlag + (content.flags >> 1 & 1) * ZMTP.commandFlag
            body = content.payload
        }
        if flags & ZMTP.commandFlag != 0 {
            try takeCommand(body, into: &events)
        } else if flags & ZMTP.moreFlag != 0 {
            // The frame is discarded.
            framesPassed += 1
            guard framesPassed < Self.framesMax else {
                throw ZMTPFault("a message of more than \(Self.framesMax) frames")
            }
        } else if framesPassed > 0 {
            events.append(.malformed(frames: framesPassed + 1))
            framesPassed = 0
        } else {
            events.append(.message(body))
        }
    }

    // MARK: Greeting and commands

    private func checkGreeting(_ greeting: [UInt8]) throws(ZMTPFault) {
        guard greeting[0] == 0xFF, greeting[9] & 1 == 1, greeting[10] >= 3 else {
            throw ZMTPFault("a greeting that is not of ZMTP 3", failure: .stranger)
        }
        guard greeting[12..<32] == ZMTP.greeting(mechanism)[12..<32] else {
            throw ZMTPFault(
                "a security mechanism other than \(mechanism.rawValue)", failure: .otherMechanism)
        }
    }

    private func checkType(_ properties: CommandReader) throws(ZMTPFault) {
        var properties = properties
        let peer = try properties.socketType()
        guard type.peers.contains(peer) else {
            throw ZMTPFault(
                type.isServing
                    ? "a \(peer) that connects to a \(type.rawValue)"
                    : "a \(peer) that a \(type.rawValue) connects to",
                says: type.isServing ? ZMTP.error(type.refusal) : nil, failure: .otherSocket)
        }
    }

    private mutating func takeCommand(
        _ body: Bytes, into events: inout [Event]
    ) throws(ZMTPFault) {
        var reader = CommandReader(rest: body)
        let name = try reader.text()
        switch (phase, name) {
        case (.handshake, "READY") where curve == nil:
            try checkType(reader)
            // Without CURVE the peer needs no admission.
            phase = .traffic
            if type.isServing { events.append(.answer(ready)) }
            return
        case (.handshake, "READY"):
            guard let curve, !type.isServing else { break }
            try checkType(CommandReader(rest: try curve.takeReady(reader.rest)))
            phase = .traffic
            return
        case (.handshake, "WELCOME"):
            guard let curve, !type.isServing else { break }
            events.append(
                .answer(try curve.initiate(reader.rest, metadata: ZMTP.metadata(type))))
            return
        case (.handshake, "ERROR"):
            guard !type.isServing else { break }
            let status = try reader.text()
            let failure = ConnectionFailure.denied(status: Int(status.prefix(3)) ?? 0)
            throw ZMTPFault(
                "the error \(status) of the peer",
                failure: status.hasPrefix(ZMTP.otherSocketReason) ? .otherSocket : failure)
        case (.handshake, "HELLO"):
            guard let curve, type.isServing else { break }
            events.append(.answer(try curve.welcome(reader.rest)))
            return
        case (.handshake, "INITIATE"):
            guard let curve, type.isServing else { break }
            let (key, metadata) = try curve.initiate(reader.rest)
            try checkType(CommandReader(rest: metadata))
            phase = .admission
            events.append(.identified(key))
            return
        default: break
        }
        guard phase == .traffic else { throw ZMTPFault("\(name) in the handshake") }
        switch name {
        case "PING":
            // After the time to live, a ping has up to 16 bytes of context.
            events.append(.ping(reader.rest.dropFirst(2).prefix(16)))
        case "SUBSCRIBE": events.append(.subscription(isOn: true, prefix: reader.rest))
        case "CANCEL": events.append(.subscription(isOn: false, prefix: reader.rest))
        case "ERROR": throw ZMTPFault("an error of the peer")
        default: break
        }
    }
}
