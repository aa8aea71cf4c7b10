import ConfluxNode
import ConfluxSequencer
import ConfluxZeroMQ
import Foundation

/// Peers that cost the sequencer as much as they can. They have the lowest priority, since in reality they would
/// run on other processors.
enum HostileRoles {
    /// The state for which a flood's actions are. No node hosts it.
    static let floodedState = "flood"

    private static func begin() throws {
        guard nice(19) > 0 else { throw BenchError("the priority can't be lowered") }
    }

    /// Opens connections that send their handshake byte by byte, and reconnect when they are cut off.
    /// They are divided among the addresses.
    static func loris(addresses: [String], count: Int) throws {
        try begin()
        let greeting: [UInt8] =
            [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Array("CURVE".utf8)
            + [UInt8](repeating: 0, count: 47)
        var connections = try (0..<count).map { index in
            (try ByteConnection(to: addresses[index % addresses.count]), 0, index)
        }
        Control.tell(.ready)
        while true {
            for place in connections.indices {
                let (connection, said, index) = connections[place]
                // After the greeting comes a command that never ends.
                let byte: UInt8 =
                    said < greeting.count ? greeting[said] : said == greeting.count ? 4 : 200
                if connection.send(byte) {
                    connections[place].1 += 1
                } else {
                    connections[place] = (
                        try ByteConnection(to: addresses[index % addresses.count]), 0, index
                    )
                }
            }
            usleep(100_000)
        }
    }

    /// Opens connections of authorised keys that send nothing after the handshake. With a feed's address, they
    /// subscribe and read.
    static func idle(places: [Place], feed: String?, count: Int) throws {
        try begin()
        var pollers: [(Poller, [ClientSocket])] = []
        for index in 0..<count {
            let place = places[index % places.count]
            var settings = SocketSettings()
            settings.security = try place.security
            let socket = try ClientSocket(feed == nil ? .dealer : .subscriber, settings: settings)
            try socket.connect(Endpoint(feed ?? place.address))
            if index.isMultiple(of: Poller.socketsMax / 2) {
                pollers.append((Poller(waker: try Waker()), []))
            }
            _ = try pollers[pollers.count - 1].0.add(socket)
            pollers[pollers.count - 1].1.append(socket)
        }
        // Each has made its handshake, and those of a feed have received a beat.
        var silent = Set(pollers.flatMap { $0.1 }.map { ObjectIdentifier($0) })
        var isReady = false
        while true {
            for (poller, sockets) in pollers {
                _ = try poller.wait(timeout: .milliseconds(isReady && feed == nil ? 100 : 1))
                for socket in sockets {
                    while let event = try socket.receive() {
                        switch event {
                        case .connected where feed == nil, .message:
                            silent.remove(ObjectIdentifier(socket))
                        default: break
                        }
                    }
                }
            }
            if !isReady, silent.isEmpty {
                isReady = true
                Control.tell(.ready)
            }
        }
    }

    /// Opens connections of one key that send expensive messages as fast as they can: hellos of new
    /// processes, large batches, fetches without acknowledgements, and questions. The same number of subscribers
    /// never reads.
    static func flood(place: Place, feed: String, count: Int) throws {
        try begin()
        guard let state = Name(floodedState) else { throw BenchError("no name: \(floodedState)") }
        var settings = SocketSettings()
        settings.security = try place.security
        settings.sendQueueMessages = 100
        var peers: [FloodPeer] = []
        var stalled: [ClientSocket] = []
        for _ in 0..<count {
            peers.append(
                try FloodPeer(state: state) { [settings] in
                    let socket = try ClientSocket(.dealer, settings: settings)
                    try socket.connect(Endpoint(place.address))
                    return socket
                })
            let subscriber = try ClientSocket(.subscriber, settings: settings)
            try subscriber.connect(Endpoint(feed))
            stalled.append(subscriber)
        }
        var isReady = false
        while true {
            var isBlocked = true
            for subscriber in stalled where !subscriber.isConnected {
                _ = try subscriber.receive()
            }
            for index in peers.indices {
                for _ in 0..<16 where try peers[index].speak() { isBlocked = false }
            }
            if !isReady, peers.allSatisfy({ $0.hasBeenWelcome }) {
                isReady = true
                Control.tell(.ready)
            }
            if isBlocked { usleep(1_000) }
        }
    }
}
