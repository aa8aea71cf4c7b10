import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Connects the node, and follows the feed that the last welcome named.
extension LinkThread {
    /// The socket that follows the feed.
    struct Feed {
        var socket: ClientSocket
        var token: Poller.Token
        var choice: FeedChoice
        var wasConnected = false
        /// A second socket, which tries the first choice while the feed comes from elsewhere.
        var trial: (socket: ClientSocket, token: Poller.Token)?

        /// The address that it is connected to, or connects to next.
        var endpoint: Endpoint { socket.endpoint ?? choice.present }
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
        closeTrial()
        poller.remove(feed.token)
        feed.socket.close()
        self.feed = nil
    }

    func takeFeed(_ feed: Feed) throws(ZeroMQError) {
        for _ in 0..<Self.framesPerTurn {
            // The address of what comes next: a failure moves the socket on.
            let endpoint = feed.endpoint
            guard let event = try feed.socket.receive() else { return }
            troubles.feed.take(event, of: endpoint)
            switch event {
            case .connected:
                // The first connection belongs to the welcome that named the feed. What another address brings counts
                // only after another welcome (rule 4): it may lag, or pass on what another term published.
                if self.feed?.wasConnected == true || endpoint != feed.choice.addresses[0] {
                    perform(.feedReconnected)
                }
                self.feed?.wasConnected = true
                feedConnected(to: endpoint)
            case .message(let frame): hear(frame)
            case .failed(let failure, let address):
                self.feed?.choice.failed(failure.words, at: address)
                tellTroubles()
            case .connecting, .accepted: break
            }
            // A message may have named another feed.
            guard self.feed?.socket === feed.socket else { return }
        }
    }

    // MARK: The choice

    private func feedConnected(to endpoint: Endpoint) {
        guard let move = feed?.choice.connected(to: endpoint, at: now.monotonic) else { return }
        if let choice = feed?.choice, choice.present == choice.addresses[0] { closeTrial() }
        switch move {
        case .restored: events(.feedRestored(to: "\(endpoint)"))
        case .fellBack(let former, let present, let reason):
            let own = feed?.choice.addresses.last
            events(
                .feedFellBack(
                    from: "\(former)", to: "\(present)",
                    message: """
                        The feed no longer comes from \(former)\(former == own ? "" : ", a relay"): \(reason). It comes \
                        from \(present) now. Check that a relay runs at \(feed?.choice.addresses[0] ?? former): the \
                        node tries that address again by itself.
                        """))
        }
    }

    /// Goes on to the next address, since nothing comes from the present one.
    func leaveSilentFeed() {
        guard let feed else { return }
        self.feed?.choice.failed("nothing comes from there", at: feed.endpoint)
        feed.socket.moveOn()
    }

    /// Tries the first choice again, if that is due. The feed stays where it is meanwhile.
    func retryFeed(at now: Duration) {
        guard let feed, self.feed?.choice.takeRetry(at: now) == true else { return }
        do throws(ZeroMQError) {
            let socket = try feedSocket(feed.choice)
            self.feed?.trial = (socket, try poller.add(socket))
        } catch {
            end = .unreadable("The feed can't be tried at another address. \(error)")
        }
    }

    /// Takes what happens to the second socket. A relay listens only while it works, so the connection alone shows that
    /// the feed can come from there.
    func takeTrial(
        _ trial: (socket: ClientSocket, token: Poller.Token)
    ) throws(ZeroMQError) {
        while let event = try trial.socket.receive() {
            switch event {
            case .connected:
                guard var feed else { return }
                poller.remove(feed.token)
                feed.socket.close()
                (feed.socket, feed.token) = trial
                feed.trial = nil
                feed.wasConnected = true
                self.feed = feed
                perform(.feedReconnected)
                return feedConnected(to: feed.endpoint)
            case .failed:
                closeTrial()
                feed?.choice.retryFailed(at: now.monotonic)
                return
            case .connecting, .accepted, .message: break
            }
        }
    }

    private func closeTrial() {
        guard let trial = feed?.trial else { return }
        poller.remove(trial.token)
        trial.socket.close()
        feed?.trial = nil
    }

    private func feedSocket(_ choice: FeedChoice) throws(ZeroMQError) -> ClientSocket {
        var settings = SocketSettings()
        settings.security = security
        settings.linger = .zero
        let socket = try ClientSocket(.subscriber, settings: settings)
        try socket.connect(toAnyOf: choice.addresses)
        return socket
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
        do throws(ZeroMQError) {
            let given = try FeedChoice.addresses(
                announced: announced, relays: relays.addresses, host: dealer.endpoint?.host)
            if let feed, feed.choice.given == given {
                feed.socket.endPause()
                return
            }
            closeFeed()
            troubles.feed.works()
            let choice = FeedChoice(
                given, pause: relays.retryPause, seed: .random(in: 0 ... .max))
            let socket = try feedSocket(choice)
            feed = Feed(socket: socket, token: try poller.add(socket), choice: choice)
        } catch {
            end = .unreadable("The feed at \(announced) can't be followed. \(error)")
        }
    }
}

extension ConnectionFailure {
    /// Why a feed can't come from an address, without a full stop.
    fileprivate var words: String {
        switch self {
        case .refused: "nothing listens there"
        case .ended: "the connection ended"
        case .silent: "what listens there does not answer"
        case .denied(Self.otherServer), .otherMechanism:
            "it has another key than the sequencer, or none; a relay has the sequencer's own"
        case .denied(Self.full): "it has no place for this node"
        case .denied:
            "it does not admit this node's key; a relay admits keys that may observe everything (observe=*/*)"
        case .stranger, .otherSocket, .broken: "it is not a feed"
        case .unresolvable(let reason), .unreachable(let reason), .hindered(let reason):
            "it can't be reached (\(reason))"
        }
    }
}
