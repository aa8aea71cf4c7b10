import ConfluxZeroMQ
import Dispatch
import Synchronization

/// Finds out why no sequencer serves this node yet, from its attempts to connect.
final class AddressDiagnosis: Sendable {
    private struct Content {
        var error: NodeError?
        /// Whether to wait longer is pointless.
        var isFinal = false
        /// Whether it becomes pointless with time: the listening program may never answer.
        var isSuspect = false
        var isOver = false
        /// The addresses at which nobody was seen to serve.
        var failed: Set<Endpoint> = []
        /// Whether there is a sequencer at one of them that redirected the node. It may take over.
        var isSentOn = false
        /// Whether the node has heard from the address that it is connected to.
        var isConnected = false
        var listener: (@Sendable (NodeError) -> Void)?
    }

    private let addresses: [Endpoint]
    private let state = Mutex(Content())
    /// How long a listening program may take to answer.
    private static let patience = Duration.seconds(2)
    /// How long a sequencer may take to serve again, or another one to take over.
    private static let servingPatience = Duration.seconds(4)

    init(of addresses: [Endpoint]) { self.addresses = addresses }

    /// The finding; nil before there is one.
    var error: NodeError? { state.withLock { $0.error } }

    /// Whether nobody waits for a sequencer any more.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Takes an event of the connection.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - endpoint: The address of the connection.
    func take(_ event: ClientEvent, of endpoint: Endpoint) {
        // If there are several addresses, the socket leaves a silent one by itself, and another one may serve.
        let isOnly = addresses.count == 1
        state.withLock { $0.isConnected = event == .connected }
        switch event {
        case .connecting:
            note(Self.unreachable("Connection timed out", endpoint), isSuspect: isOnly)
        case .accepted: note(Self.silent(endpoint), isSuspect: isOnly)
        case .connected:
            state.withLock { _ = $0.failed.remove(endpoint) }
            note(Self.silentRouter(endpoint), isSuspect: false)
        // The program may be about to end, together with connections that it has not accepted yet.
        case .failed(.silent, let endpoint) where isOnly:
            note(Self.silent(endpoint), isSuspect: true)
        case .failed(let failure, let endpoint):
            guard let message = Self.message(failure, endpoint) else { return }
            fails(endpoint, message)
        case .message: break
        }
    }

    /// Notes that the sequencer at an address redirected the node, so it does not serve.
    func sendsOn(_ endpoint: Endpoint) {
        state.withLock { state in
            state.failed.insert(endpoint)
            state.isSentOn = true
        }
    }

    /// Notes that nobody answers at an address, so the node tries its next one.
    func gaveUp(_ endpoint: Endpoint) {
        // A sequencer that was heard is busy, or does not serve yet.
        guard addresses.count > 1, !state.withLock({ $0.isConnected }) else { return }
        fails(endpoint, Self.silent(endpoint))
    }

    /// Notes a failure at one address. Another one may still serve.
    private func fails(_ endpoint: Endpoint, _ message: String) {
        let isSentOn = state.withLock { state in
            state.failed.insert(endpoint)
            return state.isSentOn
        }
        let error = NodeError(code: .unreachable, message: message)
        guard haveAllFailed else { return note(message, isSuspect: false) }
        guard isSentOn else { return conclude(error) }
        note(message, isSuspect: false)
        DispatchQueue.global().asyncAfter(
            deadline: .now() + Self.servingPatience.dispatchInterval
        ) { [self] in
            // An address may have been heard in the meantime.
            if haveAllFailed { conclude(error) }
        }
    }

    private var haveAllFailed: Bool { state.withLock { $0.failed.isSuperset(of: addresses) } }

    /// Takes the sequencer's reason for not serving. It may serve again soon, so the node waits.
    func sequencerSays(_ message: String, at endpoint: Endpoint?) {
        let place = endpoint.map { " at \($0)" } ?? ""
        let error = NodeError(
            code: .notServing, message: "The sequencer\(place) does not serve: \(message)")
        let isFirst = state.withLock { state in
            defer { (state.error, state.isSuspect) = (error, false) }
            return state.error?.code != .notServing
        }
        guard isFirst else { return }
        DispatchQueue.global().asyncAfter(
            deadline: .now() + Self.servingPatience.dispatchInterval
        ) { [self] in conclude(error) }
    }

    private func note(_ message: String, isSuspect: Bool) {
        state.withLock { state in
            // A finding stays, unless it was only suspected: the program may listen by now.
            guard !state.isFinal || !isSuspect else { return }
            state.isSuspect = isSuspect
            // What the sequencer itself said takes precedence.
            guard state.error?.code != .notServing else { return }
            state.error = NodeError(code: .unreachable, message: message)
        }
    }

    private func conclude(_ error: NodeError) {
        let listener = state.withLock { state in
            state.error = error
            state.isFinal = true
            return state.listener
        }
        listener?(error)
    }

    /// Calls a function once it is found that there is no sequencer, or that it does not serve. A program that listens
    /// and is silent for ``patience`` is no sequencer.
    func whenFinal(_ listener: @escaping @Sendable (NodeError) -> Void) {
        let error = state.withLock { state in
            state.listener = listener
            return state.isFinal ? state.error : nil
        }
        if let error { listener(error) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience.dispatchInterval) {
            [self] in
            let suspicion = state.withLock { state in state.isSuspect ? state.error : nil }
            if let suspicion { conclude(suspicion) }
        }
    }

    /// Ends the diagnosis: a sequencer was heard, or nobody waits for one any more.
    func end() {
        state.withLock { state in
            state.isOver = true
            state.listener = nil
        }
    }

    // MARK: Messages

    /// - Returns: nil if there may be a sequencer anyway, also if it refused the node's keys.
    private static func message(_ failure: ConnectionFailure, _ endpoint: Endpoint) -> String? {
        switch failure {
        case .unresolvable(let reason):
            "The host of \(endpoint) has no address (\(reason)). Check the name."
        case .refused:
            """
            Nothing listens at \(endpoint). Start a sequencer there (conflux sequencer --bind \
            \(endpoint)), or check the port.
            """
        case .unreachable(let reason): unreachable(reason, endpoint)
        case .silent: silent(endpoint)
        case .stranger, .broken: stranger(endpoint)
        case .otherSocket:
            """
            \(endpoint) is not a sequencer's address. It may be its feed's: connect to the address that \
            the sequencer's ready line shows.
            """
        case .otherMechanism, .denied, .ended: nil
        }
    }

    private static func unreachable(_ reason: String, _ endpoint: Endpoint) -> String {
        "\(endpoint) can't be reached (\(reason)). Check the address, the network and firewalls."
    }

    private static func silent(_ endpoint: Endpoint) -> String {
        """
        Something listens at \(endpoint), but does not answer. It is not a sequencer, or it is \
        stopped, cut off, or at its limit of connections. Check the port, the process and the \
        network.
        """
    }

    private static func stranger(_ endpoint: Endpoint) -> String {
        "The server at \(endpoint) is not a sequencer. Check the port."
    }

    private static func silentRouter(_ endpoint: Endpoint) -> String {
        """
        The sequencer at \(endpoint) accepts connections, but does not answer in time: it reads its log, \
        or is busy. See what it prints.
        """
    }
}
