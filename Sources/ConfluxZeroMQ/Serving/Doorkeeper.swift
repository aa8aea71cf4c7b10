import CSockets
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The thread of a ``Door``: it accepts peers, makes their handshakes, and hands over those that have completed them.
///
/// It accepts and reads before it computes, and computes for a bounded time before it accepts again. Its priority is
/// normal: if it were low, nobody could connect to a busy machine. Others that need the processor have their turn after
/// each piece of computing. ``StrangerTable`` decides who is served first. A HELLO that was answered before is not
/// answered again, so a recorded one costs no arithmetic.
///
/// Confined to its thread. *Invariant*: strangers and arrivals together are at most ``SocketSettings/handshakesMax``.
final class Doorkeeper {
    private struct Stranger {
        let descriptor: Int32
        var decoder: ZMTPDecoder
        /// Whether it was sent WELCOME.
        var isWelcome = false
        /// What it has sent and waits to be decoded.
        var piece: [UInt8] = []
        /// What it has sent after the handshake.
        var events: [ZMTPDecoder.Event] = []
    }

    private let type: ZMTP.SocketType
    private let settings: SocketSettings
    private let key: CurveKeyPair?
    private let hall: Door.Hall
    private let seen = SeenKeys()

    private var strangers: [UInt32: Stranger] = [:]
    private var table = StrangerTable()
    private var lastNumber = Doorkeeper.listenersMax
    /// Whether the process has run out of descriptors. *Use*: nothing is accepted until the next review.
    private var isFull = false
    private var reviewedAt = Duration.zero
    private var ready = [conflux_ready](repeating: conflux_ready(), count: Doorkeeper.readyMax)
    private let piece: UnsafeMutableRawBufferPointer

    private static let readyMax = 64
    /// Numbers up to this are listeners'; 0 is the alarm's.
    private static let listenersMax: UInt32 = 1 << 16
    /// How many connections are accepted before others are read. *Invariant*: fewer than `readyMax`, so that reading
    /// keeps up with accepting.
    private static let acceptedMax = 32
    /// How long it computes before it accepts again.
    private static let computingMax = Duration.milliseconds(1)
    /// The most bytes that are read of a stranger at a time. No command of a handshake is longer.
    private static let pieceBytes = 4 << 10
    /// How often strangers that take too long are looked for.
    private static let reviewInterval = Duration.seconds(1)

    init(_ type: ZMTP.SocketType, _ settings: SocketSettings, _ hall: Door.Hall) {
        self.type = type
        self.settings = settings
        self.hall = hall
        key = settings.security.serverKey
        piece = .allocate(byteCount: Self.pieceBytes, alignment: 16)
    }

    deinit { piece.deallocate() }

    /// Works until the door is closed.
    func run() {
        while !hall.isClosing {
            let pause = table.hasWaiting ? 0 : Self.reviewInterval.wholeMilliseconds
            let count = max(
                0, Int(conflux_watch_ready(hall.watch, &ready, Int32(Self.readyMax), pause)))
            let now = Moment.now.monotonic
            for item in ready[..<count] {
                switch item.number {
                case 0: conflux_waker_drain(hall.alarm)
                case ...Self.listenersMax: accept(item.number, at: now)
                default: read(item.number)
                }
            }
            serve(until: now + Self.computingMax)
            review(at: now)
            hall.strangerCount.store(strangers.count, ordering: .relaxed)
        }
        for number in Array(strangers.keys) { end(number) }
        hall.strangerCount.store(0, ordering: .relaxed)
    }

    private func review(at now: Duration) {
        guard now - reviewedAt >= Self.reviewInterval else { return }
        reviewedAt = now
        for number in table.overdue(at: now, after: settings.handshakeInterval) { end(number) }
        guard isFull else { return }
        isFull = false
        for (number, listener) in hall.listeners
        where conflux_watch(hall.watch, listener, number, 1, 0) != 0 {
            isFull = true
        }
    }

    private func accept(_ listenerNumber: UInt32, at now: Duration) {
        guard !isFull, let listener = hall.listeners[listenerNumber] else {
            return
        }
        for _ in 0..<Self.acceptedMax {
            var origin = conflux_origin()
            let descriptor = conflux_accept(listener, &origin)
            guard descriptor >= 0 else {
                if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
                    // Otherwise the listener would be ready all the time, and nothing could be done.
                    isFull = true
                    for descriptor in hall.listeners.values {
                        conflux_unwatch(hall.watch, descriptor)
                    }
                }
                return
            }
            let number = takeNumber()
            // If the system can't watch another descriptor, only this connection ends.
            guard conflux_watch_once(hall.watch, descriptor, number, 1) == 0 else {
                closeDescriptor(descriptor)
                continue
            }
            strangers[number] = Stranger(
                descriptor: descriptor,
                decoder: ZMTPDecoder(
                    type, messageBytesMax: settings.messageBytesMax,
                    curve: key.map { CurveSession($0, seen: seen) }))
            table.add(
                number, from: .init(family: origin.family, network: origin.network), at: now)
            let waiting = hall.arrivalCount
            while strangers.count + waiting > settings.handshakesMax, let surplus = table.surplus {
                end(surplus)
            }
            say(ZMTP.greeting(key == nil ? .null : .curve), to: number)
        }
    }

    private func takeNumber() -> UInt32 {
        repeat {
            lastNumber = lastNumber == .max ? Self.listenersMax + 1 : lastNumber + 1
        } while strangers[lastNumber] != nil
        return lastNumber
    }

    /// Reads what a stranger has sent. If it needs no arithmetic, it is decoded at once.
    private func read(_ number: UInt32) {
        guard let stranger = strangers[number] else { return }
        let count = conflux_receive(stranger.descriptor, piece.baseAddress, piece.count)
        guard count > 0 else {
            let mustWait = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
            if !mustWait || !watchOn(number) { end(number) }
            return
        }
        let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count])
        if key == nil || !stranger.decoder.isGreeted && count <= ZMTP.greetingBytes {
            decode(bytes, from: number)
        } else {
            strangers[number]?.piece = Array(bytes)
            table.wait(number, isFirst: stranger.isWelcome)
        }
    }

    /// Decodes what strangers have sent, for a while.
    private func serve(until end: Duration) {
        while let number = table.next() {
            let piece = strangers[number]?.piece ?? []
            strangers[number]?.piece = []
            piece.withUnsafeBytes { decode($0, from: number) }
            guard Moment.now.monotonic < end else { return NamedThread.yield() }
        }
    }

    private func decode(_ bytes: UnsafeRawBufferPointer, from number: UInt32) {
        var events: [ZMTPDecoder.Event] = []
        do throws(ZMTPFault) {
            try strangers[number]?.decoder.decode(bytes, into: &events)
        } catch {
            if let says = error.says { say(says, to: number) }
            end(number)
            return
        }
        for event in events {
            switch event {
            case .answer(let bytes):
                strangers[number]?.isWelcome = key != nil
                say(bytes, to: number)
            case .identified(let key):
                arrive(number, with: key)
                return
            case .message, .malformed, .ping, .subscription: strangers[number]?.events.append(event)
            }
        }
        guard let stranger = strangers[number] else { return }
        let isExpected =
            !type.awaitsSubscription
            || stranger.events.contains {
                switch $0 {
                case .message, .subscription: true
                default: false
                }
            }
        if stranger.decoder.isReady, isExpected {
            arrive(number, with: nil)
        } else if !watchOn(number) {
            end(number)
        }
    }

    private func watchOn(_ number: UInt32) -> Bool {
        guard let stranger = strangers[number] else { return true }
        return conflux_watch_once(hall.watch, stranger.descriptor, number, 0) == 0
    }

    /// Hands a peer over to the socket, unless its key may not connect.
    private func arrive(_ number: UInt32, with key: CurvePublicKey?) {
        guard let stranger = strangers[number] else { return }
        if let key {
            let most = hall.connectionsMax(key)
            guard let most, most > 0 else {
                say(ZMTP.error(most == nil ? ZMTP.refusedStatus : ZMTP.fullStatus), to: number)
                end(number)
                return
            }
        }
        guard conflux_keep(stranger.descriptor, settings.keeping) == 0 else {
            end(number)
            return
        }
        conflux_unwatch(hall.watch, stranger.descriptor)
        strangers[number] = nil
        table.remove(number)
        hall.add(
            Door.Arrival(
                descriptor: stranger.descriptor, decoder: stranger.decoder, key: key,
                events: stranger.events))
    }

    /// Sends bytes of the handshake. The system has room for them, unless the connection is broken.
    private func say(_ bytes: [UInt8], to number: UInt32) {
        guard let descriptor = strangers[number]?.descriptor else { return }
        if conflux_send(descriptor, bytes, bytes.count, nil, 0) != bytes.count { end(number) }
    }

    private func end(_ number: UInt32) {
        guard let stranger = strangers.removeValue(forKey: number) else { return }
        table.remove(number)
        conflux_end(stranger.descriptor, piece.baseAddress, piece.count, piece.count)
    }
}
