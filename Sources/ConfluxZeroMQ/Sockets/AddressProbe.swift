import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Looks why no connection to an address comes about: libzmq tries again for ever, and does not say.
///
/// It connects once, as anybody could, and says what a ZMTP peer says first.
public enum AddressProbe {
    /// What was found.
    public enum Finding: Sendable, Hashable {
        /// The host has no address, for the reason that the system gives.
        case unresolvable(String)
        /// Nothing listens there.
        case refused
        /// Nobody answers, for the reason that the system gives.
        case unreachable(String)
        /// Whoever listens there does not speak ZMTP.
        case stranger
        /// A ZMTP socket that takes no requests listens there, such as a sequencer's feed.
        case feed
        /// A router listens there, or a socket that speaks to authorised keys only.
        case router
    }

    /// Looks at an address. It blocks for as long as resolving the host takes, and for each of its
    /// addresses for the patience at most.
    ///
    /// - Parameters:
    ///   - endpoint: The address; only TCP can be looked at.
    ///   - patience: How long to wait for an answer.
    /// - Returns: What was found; nil for another transport than TCP.
    public static func finding(of endpoint: Endpoint, patience: Duration) -> Finding? {
        guard case .tcp(let host, let port) = endpoint.transport else { return nil }
        var hints = addrinfo()
        #if canImport(Darwin)
            hints.ai_socktype = SOCK_STREAM
        #else
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        let number = getaddrinfo(host, "\(port)", &hints, &list)
        guard number == 0 else { return .unresolvable(String(cString: gai_strerror(number))) }
        defer { freeaddrinfo(list) }
        var finding = Finding.refused
        var next = list
        while let address = next?.pointee {
            finding = look(at: address, patience)
            switch finding {
            case .refused, .unreachable, .unresolvable: next = address.ai_next
            case .stranger, .feed, .router: return finding
            }
        }
        return finding
    }

    private static func look(at address: addrinfo, _ patience: Duration) -> Finding {
        let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
        guard descriptor >= 0 else { return .unreachable(reason(errno)) }
        defer { close(descriptor) }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
            var isOn: Int32 = 1
            setsockopt(
                descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
        let end = ContinuousClock.now + patience
        if connect(descriptor, address.ai_addr, address.ai_addrlen) != 0 {
            guard errno == EINPROGRESS else { return finding(errno) }
            guard isReady(descriptor, POLLOUT, until: end) else {
                return .unreachable(reason(ETIMEDOUT))
            }
            var number: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &length)
            guard number == 0 else { return finding(number) }
        }
        return greet(descriptor, until: end)
    }

    private static func greet(_ descriptor: Int32, until end: ContinuousClock.Instant) -> Finding {
        say(ZMTP.greeting(.null), descriptor)
        let greeting = hear(64, descriptor, until: end)
        guard greeting.count == 64, greeting[0] == 0xFF, greeting[9] & 1 == 1, greeting[10] >= 3
        else { return .stranger }
        // Who encrypts says nothing more to a peer that does not.
        guard greeting[12..<16].elementsEqual("NULL".utf8) else { return .router }
        say(ZMTP.command("READY", ZMTP.metadata(.dealer)), descriptor)
        let ready = String(decoding: hear(64, descriptor, until: end), as: UTF8.self)
        return ready.contains(ZMTP.SocketType.router.rawValue) ? .router : .feed
    }

    private static func finding(_ number: Int32) -> Finding {
        number == ECONNREFUSED ? .refused : .unreachable(reason(number))
    }

    private static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }

    // MARK: Bytes

    private static func isReady(
        _ descriptor: Int32, _ events: Int32, until end: ContinuousClock.Instant
    ) -> Bool {
        while true {
            let rest = end - ContinuousClock.now
            guard rest > .zero else { return false }
            var state = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let count = poll(&state, 1, rest.wholeMilliseconds + 1)
            if count > 0 { return true }
            if count < 0, errno != EINTR { return false }
        }
    }

    private static func say(_ bytes: [UInt8], _ descriptor: Int32) {
        // What has no room in an empty connection nobody would answer.
        #if canImport(Darwin)
            _ = send(descriptor, bytes, bytes.count, 0)
        #else
            _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        #endif
    }

    /// Reads up to so many bytes: all of them, or what came before the end or a pause.
    private static func hear(
        _ most: Int, _ descriptor: Int32, until end: ContinuousClock.Instant
    ) -> [UInt8] {
        var heard: [UInt8] = []
        var end = end
        while heard.count < most, isReady(descriptor, POLLIN, until: end) {
            var bytes = [UInt8](repeating: 0, count: most - heard.count)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            heard += bytes[..<count]
            // A command is short and comes whole.
            if heard.count < most { end = min(end, ContinuousClock.now + .milliseconds(100)) }
        }
        return heard
    }
}
