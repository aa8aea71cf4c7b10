import ConfluxVocabulary

/// Turns the bytes of one connection into what its peer said, in whatever pieces they come.
///
/// It keeps no more than the frame that is under way, and reserves memory only for bytes that
/// have come, whatever length the frame announces.
struct ZMTPDecoder {
    /// What the peer said.
    enum Event: Equatable {
        /// The handshake continues with these bytes to the peer.
        case answer([UInt8])
        /// The peer has proven which key it has. It is admitted by ``ZMTPDecoder/admit()``, or its
        /// connection ends.
        case identified(CurvePublicKey)
        /// A message of one frame.
        case message(Bytes)
        /// A message of this many frames, which was thrown away.
        case malformed(frames: Int)
        /// It wants a pong with these bytes.
        case ping(Bytes)
        /// A command of ZMTP 3.1: it subscribes, or ends a subscription.
        case subscription(isOn: Bool)
    }

    private enum Phase { case greeting, handshake, admission, traffic }

    private let type: ZMTP.SocketType
    private let messageBytesMax: Int
    /// What opens and seals messages; nil if nothing is encrypted.
    let curve: CurveSession?
    private var phase = Phase.greeting
    /// What has come of the greeting, or of the frame under way: its header and its body.
    private var unit: [UInt8] = []
    /// Where the memory of large frames comes from, and goes to.
    private let pool: FramePool?
    /// How many frames of a message of several have passed.
    private var framesPassed = 0
    /// A message of more frames than this ends the connection: nobody sends one by mistake.
    static let framesMax = 64

    /// Makes a decoder for a new connection.
    ///
    /// - Parameters:
    ///   - type: What this side's socket is.
    ///   - messageBytesMax: The most bytes of one message.
    ///   - curve: What opens and seals messages, where connections are encrypted.
    ///   - pool: The memory of frames that were; nil for new memory each time.
    init(
        _ type: ZMTP.SocketType, messageBytesMax: Int, curve: CurveSession? = nil,
        pool: FramePool? = nil
    ) {
        self.type = type
        self.messageBytesMax = messageBytesMax + (curve == nil ? 0 : CurveSession.overheadBytes)
        self.curve = curve
        self.pool = pool
    }

    /// What this side says first.
    var greeting: [UInt8] { ZMTP.greeting(mechanism, isServing: type.isServing) }

    private var mechanism: ZMTP.Mechanism { curve == nil ? .null : .curve }

    /// The peer is admitted that proved its key: messages come now.
    ///
    /// - Returns: What is to be said to the peer; nil when none proved a key.
    mutating func admit() -> [UInt8]? {
        guard phase == .admission, let curve else { return nil }
        phase = .traffic
        return curve.ready(ZMTP.metadata(type))
    }

    /// How many bytes are reserved for the frame under way.
    var heldBytes: Int { unit.capacity }

    /// Whether the handshake is complete.
    var isReady: Bool { phase == .traffic }

    /// Whether the peer has said that it speaks ZMTP.
    var isGreeted: Bool { phase != .greeting }

    /// Takes the next bytes.
    ///
    /// - Parameters:
    ///   - input: The bytes. None of them is kept by reference.
    ///   - events: What they complete is appended here, also where this throws.
    /// - Throws: ``ZMTPFault`` when the peer broke the protocol or a bound; the connection must end.
    mutating func decode(
        _ input: UnsafeRawBufferPointer, into events: inout [Event]
    ) throws(ZMTPFault) {
        var rest = input
        while true {
            if unit.isEmpty, phase == .traffic, let layout = try readLayout(of: rest) {
                if rest.count >= layout.wholeBytes {
                    // Most frames are whole: they are copied once.
                    try takeWhole(rest, layout, into: &events)
                    rest = UnsafeRawBufferPointer(rebasing: rest[layout.wholeBytes...])
                    continue
                }
                if let pool { unit = pool.take(byteCount: layout.wholeBytes) }
            }
            let needed = try neededBytes()
            if unit.count < needed {
                let count = min(needed - unit.count, rest.count)
                guard count > 0 else { return }
                unit.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                continue
            }
            let whole = unit
            unit = []
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
        if let curve {
            if !type.isServing { events.append(.answer(try curve.hello())) }
        } else {
            events.append(.answer(ZMTP.command("READY", ZMTP.metadata(type))))
        }
    }

    // MARK: Frames

    private struct Layout {
        let headerBytes: Int
        let wholeBytes: Int
    }

    /// How many bytes there must be before more can be told: when `unit` has them it is complete.
    private func neededBytes() throws(ZMTPFault) -> Int {
        if phase == .greeting {
            if let first = unit.first, first != 0xFF {
                throw ZMTPFault("a greeting that is not of ZMTP 3", failure: .stranger)
            }
            return ZMTP.greetingBytes
        }
        let layout: Layout? = try unit[...].withRawBytes { bytes throws(ZMTPFault) in
            try readLayout(of: bytes)
        }
        return layout?.wholeBytes ?? (unit.count < 2 ? 2 : ZMTP.headerBytesMax)
    }

    /// - Returns: nil while the header is not complete.
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
            // Nothing of it is kept.
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
                    : "a \(peer) that a \(type.rawValue) connects to", failure: .otherSocket)
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
            // Whoever proves nothing may speak at once.
            phase = .traffic
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
            throw ZMTPFault(
                "the error \(status) of the peer",
                failure: .denied(status: Int(status.prefix(3)) ?? 0))
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
            // Behind the time to live come up to 16 bytes of its own.
            events.append(.ping(reader.rest.dropFirst(2).prefix(16)))
        case "SUBSCRIBE": events.append(.subscription(isOn: true))
        case "CANCEL": events.append(.subscription(isOn: false))
        case "ERROR": throw ZMTPFault("an error of the peer")
        default: break
        }
    }
}
