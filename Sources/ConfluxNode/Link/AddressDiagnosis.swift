import ConfluxZeroMQ
import Dispatch
import Synchronization

/// Why no sequencer serves this node yet. The address is looked at once, when the first attempt to connect
/// has failed.
final class AddressDiagnosis: Sendable {
    private struct Content {
        var hasBegun = false
        var error: NodeError?
        /// Whether it is not worth waiting.
        var isFinal = false
        var listener: (@Sendable (NodeError) -> Void)?
    }

    private let endpoint: Endpoint
    private let state = Mutex(Content())
    /// How long whoever listens may take to answer.
    private static let patience = Duration.seconds(1)

    init(of endpoint: Endpoint) { self.endpoint = endpoint }

    /// What was found; nil before that.
    var error: NodeError? { state.withLock { $0.error } }

    /// An attempt to connect has failed. Looks at the address in the background, if nobody has.
    func begin() {
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else { return }
        DispatchQueue.global().async { [self] in
            guard let finding = AddressProbe.finding(of: endpoint, patience: Self.patience) else {
                return
            }
            let error = NodeError(code: .unreachable, message: Self.message(finding, endpoint))
            if finding == .router {
                state.withLock { $0.error = $0.error ?? error }
            } else {
                conclude(error)
            }
        }
    }

    /// The sequencer says why it hears nobody. It may serve again at once, so that is waited for.
    func sequencerSays(_ message: String) {
        let error = NodeError(
            code: .notServing, message: "The sequencer at \(endpoint) does not serve: \(message)")
        let isFirst = state.withLock { state in
            defer { state.error = error }
            return state.error?.code != .notServing
        }
        guard isFirst else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience.dispatchInterval) {
            [self] in conclude(error)
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

    /// Has a function called once it is found that there is no sequencer, or that it does not serve. It is
    /// looked for at the latest behind ``patience``: whoever listens may never say anything.
    func whenFinal(_ listener: @escaping @Sendable (NodeError) -> Void) {
        let error = state.withLock { state in
            state.listener = listener
            return state.isFinal ? state.error : nil
        }
        if let error { listener(error) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience.dispatchInterval) {
            [self] in begin()
        }
    }

    /// A sequencer is heard, or nobody waits for one any more: nobody looks from here on.
    func end() {
        state.withLock { state in
            state.hasBegun = true
            state.listener = nil
        }
    }

    private static func message(
        _ finding: AddressProbe.Finding, _ endpoint: Endpoint
    ) -> String {
        switch finding {
        case .unresolvable(let reason):
            "The host of \(endpoint) has no address (\(reason)). Check the name."
        case .refused:
            """
            Nothing listens at \(endpoint). Start a sequencer there (conflux sequencer --bind \
            \(endpoint)), or check the port.
            """
        case .unreachable(let reason):
            "\(endpoint) can't be reached (\(reason)). Check the address, the network and firewalls."
        case .stranger: "The server at \(endpoint) is not a sequencer. Check the port."
        case .feed:
            """
            \(endpoint) is not a sequencer's address. It may be its feed's: connect to the address that \
            the sequencer's ready line shows.
            """
        case .router:
            """
            The sequencer at \(endpoint) accepts connections, but does not answer in time: it reads its log, \
            or is busy. See what it prints.
            """
        }
    }
}
