import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Connects the node, and follows the feed that the last welcome named.
extension LinkThread {
    /// The socket that follows the feed.
    struct Feed {
        let endpoint: Endpoint
        let socket: ClientSocket
        let token: Poller.Token
        var wasConnected = false
    }

    /// Connects to another address: the one that the sequencer named, or the next of the node's own.
    func move(to address: String?) {
        guard let address else {
            if let former = dealer.endpoint {
                diagnosis.gaveUp(former)
                if dealer.isConnected { troubles.requests.fallSilent(former) }
            }
            return dealer.moveOn()
        }
        do throws(ZeroMQError) {
            let endpoint = try Endpoint(address)
            if case .ipc = endpoint.transport, case .tcp? = dealer.endpoint?.transport {
                throw ZeroMQError(
                    .invalidEndpoint,
                    """
                    A sequencer on another machine named \(address), which is a path on this one. Give \
                    each sequencer an address that nodes can reach (--advertise).
                    """)
            }
            try dealer.move(to: endpoint)
        } catch {
            // The node continues to say hello, and to try its own addresses.
            events(.unreadableFrame("A redirect can't be followed. \(error.message)"))
        }
    }

    func closeFeed() {
        guard let feed else { return }
        poller.remove(feed.token)
        feed.socket.close()
        self.feed = nil
    }

    func takeFeed(_ feed: Feed) throws(ZeroMQError) {
        for _ in 0..<Self.framesPerTurn {
            guard let event = try feed.socket.receive() else { return }
            troubles.feed.take(event, of: feed.endpoint)
            switch event {
            case .connected:
                // The first connection belongs to the welcome that named the feed.
                if self.feed?.wasConnected == true { perform(.feedReconnected) }
                self.feed?.wasConnected = true
            case .message(let frame): hear(frame)
            case .failed: tellTroubles()
            case .connecting, .accepted: break
            }
            // A message may have named another feed.
            guard self.feed?.token == feed.token else { return }
        }
    }

    private func hear(_ frame: Bytes) {
        do throws(WireError) {
            let (message, epoch) = try Frame.readFeedMessage(frame)
            switch message {
            case .commit(let commit):
                perform(.fed(commit, byteCount: frame.count, epoch: epoch))
            case .beat(let beat): perform(.beaten(beat, epoch: epoch))
            }
        } catch {
            // The feed is a hint. Commits that could not be read are fetched.
            events(.unreadableFrame(error.message))
        }
    }

    func subscribe(_ announced: String) {
        do {
            let endpoint = try Endpoint(announced).replacingWildcard(with: dealer.endpoint?.host)
            if let feed, feed.endpoint == endpoint {
                feed.socket.endPause()
                return
            }
            closeFeed()
            troubles.feed.works()
            var settings = SocketSettings()
            settings.security = security
            settings.linger = .zero
            let socket = try ClientSocket(.subscriber, settings: settings)
            try socket.connect(endpoint)
            feed = Feed(endpoint: endpoint, socket: socket, token: try poller.add(socket))
        } catch {
            end = .unreadable("The feed at \(announced) can't be followed. \(error)")
        }
    }
}
