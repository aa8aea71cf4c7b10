import Foundation
import Spawning
import Synchronization

#if os(Linux)
    /// A TCP relay between two programs, which can cut their connections and delay what they send.
    ///
    /// It listens at the port of its target, on another host of the loopback network. So a node that
    /// connects through it reaches the feed through a second proxy, since the welcome announces the
    /// feed's port at the host to which the node connected.
    final class Proxy: Sendable {
        /// The host where it listens. Only Linux has more than one host on the loopback network.
        static let host = "127.0.0.2"

        private struct State {
            var connections: [Int: Connection] = [:]
            var next = 0
            var delay = Duration.zero
            var isClosed = false
        }

        /// The address to connect to.
        let address: String
        private let target: sockaddr_in
        private let cutBytes: Int?
        private let swap: (from: String, to: String)?
        private let listener: Int32
        private let state = Mutex(State())

        /// Starts a proxy for an address of the form `tcp://a.b.c.d:port`.
        ///
        /// - Parameters:
        ///   - address: The address. The proxy has its port.
        ///   - other: The address to which connections go instead; nil for the same.
        ///   - cutBytes: The most bytes that a connection gets from there before it is cut; nil for any number.
        ///   - swap: A text in what comes from there, and the one of the same length that replaces it.
        /// - Throws: ``Failure`` if the port is taken.
        init(
            before address: String, to other: String? = nil, cuttingAfter cutBytes: Int? = nil,
            replacing swap: (from: String, to: String)? = nil
        ) throws {
            func parse(_ address: String) throws -> (String, UInt16) {
                let parts = address.dropFirst("tcp://".count).split(separator: ":")
                guard parts.count == 2, let port = UInt16(parts[1]) else {
                    throw Failure("no address: \(address)")
                }
                return (String(parts[0]), port)
            }
            let port = try parse(address).1
            let (host, targetPort) = try parse(other ?? address)
            target = place(host, targetPort)
            self.cutBytes = cutBytes
            self.swap = swap
            self.address = "tcp://\(Self.host):\(port)"
            listener = socket(
                AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var own = place(Self.host, port)
            var isOn: Int32 = 1
            setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(4))
            let isBound = withAddress(of: &own) { bind(listener, $0, $1) == 0 }
            guard isBound, listen(listener, 64) == 0 else {
                let reason = systemError()
                Foundation.close(listener)
                throw Failure("no proxy at \(self.address): \(reason)")
            }
            let thread = Thread { self.accept() }
            thread.name = "proxy"
            thread.start()
        }

        /// Ends all connections at once, like a broken network.
        ///
        /// - Returns: How many connections there were.
        @discardableResult
        func cut() -> Int {
            let connections = state.withLock { Array($0.connections.values) }
            for connection in connections { connection.end() }
            return connections.count
        }

        /// From now on, delays each piece of data by this time.
        func delay(_ delay: Duration) {
            state.withLock { $0.delay = delay }
        }

        /// Ends the proxy, with all connections.
        func close() {
            state.withLock { $0.isClosed = true }
            shutdown(listener, Int32(SHUT_RDWR))
            cut()
        }

        // MARK: Relaying

        private func accept() {
            while true {
                let client = Foundation.accept(listener, nil, nil)
                guard client >= 0 else {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    break
                }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                connect(client)
            }
            Foundation.close(listener)
        }

        private func connect(_ client: Int32) {
            let server = socket(
                AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var target = target
            let isConnected = withAddress(of: &target) { Foundation.connect(server, $0, $1) == 0 }
            let connection = Connection(client, server)
            // Nobody listens there. A proxy can tell the client only by ending the connection.
            guard isConnected else {
                connection.end()
                connection.release()
                connection.release()
                return
            }
            let (number, isClosed) = state.withLock { state in
                state.next += 1
                state.connections[state.next] = connection
                return (state.next, state.isClosed)
            }
            if isClosed { connection.end() }
            for (from, to) in [(client, server), (server, client)] {
                let thread = Thread {
                    let isServer = from == server
                    self.pump(
                        from, to, atMost: isServer ? self.cutBytes : nil,
                        replacing: isServer ? self.swap : nil)
                    connection.end()
                    self.state.withLock { $0.connections[number] = nil }
                    connection.release()
                }
                thread.name = "proxy-pump"
                thread.start()
            }
        }

        private func pump(
            _ from: Int32, _ to: Int32, atMost bytesMax: Int?,
            replacing swap: (from: String, to: String)?
        ) {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var bytes = 0
            while true {
                let count = recv(from, &buffer, buffer.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                bytes += count
                if let bytesMax, bytes > bytesMax { return }
                if let swap, let range = buffer[..<count].firstRange(of: swap.from.utf8) {
                    buffer.replaceSubrange(range, with: swap.to.utf8)
                }
                let delay = state.withLock { $0.delay }
                // This delay is the fault itself: no test waits here.
                if delay > .zero { _ = poll(nil, 0, Int32(delay / .milliseconds(1))) }
                var sent = 0
                while sent < count {
                    let part = buffer.withUnsafeBytes {
                        send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
                    }
                    if part < 0, errno == EINTR { continue }
                    guard part > 0 else { return }
                    sent += part
                }
            }
        }

        /// Two sockets, which are closed once both directions have ended.
        private final class Connection: Sendable {
            private let descriptors: [Int32]
            private let users = Mutex(2)

            init(_ client: Int32, _ server: Int32) {
                descriptors = [client, server]
                // Closing discards the data in transit, and both ends learn it.
                var abrupt = linger(l_onoff: 1, l_linger: 0)
                var isOn: Int32 = 1
                for descriptor in descriptors {
                    setsockopt(
                        descriptor, SOL_SOCKET, SO_LINGER, &abrupt,
                        socklen_t(MemoryLayout<linger>.size))
                    setsockopt(
                        descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(4))
                }
            }

            /// Makes both directions end. The descriptors stay open until then.
            func end() {
                users.withLock { users in
                    guard users > 0 else { return }
                    for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
                }
            }

            func release() {
                users.withLock { users in
                    users -= 1
                    guard users == 0 else { return }
                    for descriptor in descriptors { Foundation.close(descriptor) }
                }
            }
        }
    }

    private func place(_ host: String, _ port: UInt16) -> sockaddr_in {
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &place.sin_addr)
        return place
    }

    private func withAddress<Result>(
        of place: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
#endif
