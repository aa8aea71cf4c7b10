import ConfluxZeroMQ
import Synchronization

/// Finds out why no sequencer serves this node yet, from its attempts to connect.
///
/// A finding is *final* if somebody has to change something before a further attempt can succeed, at every address. A
/// sequencer that is silent, stopped, cut off or not serving may serve in the next moment, so nothing of that is final.
final class AddressDiagnosis: Sendable {
    private struct Content {
        var error: NodeError?
        var isFinal = false
        var isOver = false
        /// The address at which an attempt failed, if `error` is about that.
        var failure: Endpoint?
        /// The addresses at which the last finding was final.
        var failed: Set<Endpoint> = []
        /// Whether the node has heard from the address that it is connected to.
        var isConnected = false
        var listener: (@Sendable (NodeError) -> Void)?
    }

    private let addresses: [Endpoint]
    private let state = Mutex(Content())

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
        state.withLock { $0.isConnected = event == .connected }
        guard let finding = WayFinding(event, of: endpoint, way: .requests) else { return }
        // An attempt that has only begun says less than what the last one found.
        if event == .connecting, error != nil { return }
        let endpoint = finding.endpoint
        // A standby works if it sends the node to another address. What failed there is the reason.
        if !finding.isFailure, let failure = state.withLock({ $0.failure }), failure != endpoint,
            !addresses.contains(failure)
        {
            return
        }
        note(finding.message, failure: finding.isFailure ? endpoint : nil)
        let error = state.withLock { state -> NodeError? in
            guard finding.isFinal else {
                state.failed.remove(endpoint)
                return nil
            }
            state.failed.insert(endpoint)
            guard state.failed.isSuperset(of: addresses) else { return nil }
            let error = NodeError(code: .unreachable, message: finding.message)
            (state.error, state.isFinal) = (error, true)
            return error
        }
        if let error { state.withLock { $0.listener }?(error) }
    }

    /// Notes that nobody answers at an address, so the node tries its next one.
    func gaveUp(_ endpoint: Endpoint) {
        // A sequencer that was heard is busy, or does not serve yet.
        guard addresses.count > 1,
            state.withLock({ !$0.isConnected && $0.failure != endpoint })
        else { return }
        note(WayFinding.silent(endpoint))
    }

    /// Takes the sequencer's reason for not serving. It may serve again soon, so the node waits.
    func sequencerSays(_ message: String, at endpoint: Endpoint?) {
        let place = endpoint.map { " at \($0)" } ?? ""
        let error = NodeError(
            code: .notServing, message: "The sequencer\(place) does not serve: \(message)")
        state.withLock { $0.error = error }
    }

    private func note(_ message: String, failure: Endpoint? = nil) {
        state.withLock { state in
            // What the sequencer itself said takes precedence.
            guard state.error?.code != .notServing else { return }
            state.error = NodeError(code: .unreachable, message: message)
            state.failure = failure
        }
    }

    /// Calls a function once a finding is final.
    func whenFinal(_ listener: @escaping @Sendable (NodeError) -> Void) {
        let error = state.withLock { state in
            state.listener = listener
            return state.isFinal ? state.error : nil
        }
        if let error { listener(error) }
    }

    /// Ends the diagnosis: a sequencer was heard, or nobody waits for one any more.
    func end() {
        state.withLock { state in
            state.isOver = true
            state.listener = nil
        }
    }
}
