import ConfluxProtocol
import ConfluxZeroMQ

/// The feed that is followed: where the last welcome said that it is.
extension LinkThread {
    /// The socket that follows it.
    struct Feed {
        let endpoint: Endpoint
        let socket: SubscriberSocket
        let token: Poller.Token
        let monitor: SocketMonitor
        let monitorToken: Poller.Token
        var wasConnected = false
    }

    func takeFeedEvents(_ feed: Feed) throws(ZeroMQError) {
        while let event = try feed.monitor.receive() {
            switch event.kind {
            case .handshakeSucceeded:
                // The first connection is of the welcome that named it.
                if self.feed?.wasConnected == true { perform(.feedReconnected) }
                self.feed?.wasConnected = true
            case .authenticationFailed, .protocolViolated:
                // libzmq gives it up. The next welcome names it again.
                closeFeed()
                return
            default: break
            }
        }
    }

    func closeFeed() {
        guard let feed else { return }
        poller.remove(feed.token)
        poller.remove(feed.monitorToken)
        feed.monitor.close()
        feed.socket.close()
        self.feed = nil
    }

    func takeFeed(_ feed: Feed) throws(ZeroMQError) {
        for _ in 0..<Self.framesPerTurn {
            guard let frame = try feed.socket.receive() else { return }
            // A new connection is told of before what it brings is there.
            try takeFeedEvents(feed)
            guard self.feed != nil else { return }
            do throws(WireError) {
                let epoch = try Frame.header(of: frame).epoch
                switch try Frame.decodeFeedMessage(frame) {
                case .commit(let commit):
                    perform(.fed(commit, byteCount: frame.count, epoch: epoch))
                case .beat(let beat): perform(.beaten(beat, epoch: epoch))
                }
            } catch {
                // The feed is a hint: what could not be read is fetched.
                events(.unreadableFrame(error.message))
            }
        }
    }

    func subscribe(_ announced: String) {
        do {
            let endpoint = try Endpoint(announced).replacingWildcard(with: address.host)
            guard feed?.endpoint != endpoint else { return }
            closeFeed()
            var settings = SocketSettings()
            settings.receiveQueueMessages = 10_000
            settings.security = security
            let socket = try SubscriberSocket(context, settings: settings)
            let monitor = try socket.openMonitor()
            try socket.subscribe()
            try socket.connect(endpoint)
            feed = Feed(
                endpoint: endpoint, socket: socket, token: try poller.add(socket),
                monitor: monitor, monitorToken: try poller.add(monitor))
        } catch {
            end = .unreadable("The feed at \(announced) can't be followed. \(error)")
        }
    }
}
